"""Crawl values by the papers' rules, page by page, in plain Python that numba can compile.

`crawlsched.planner.values.plug_in_values` has the formulas for many pages in numpy, and uses these for single ones;
compiled they serve for many pages, too. Compiled or not the same operations are done in the same order, those of
`elements`.

What a crawl value depends on stands in one array, a page a column: what `Rule.heard` returned (change rate, recall and
false signal rate, then alpha, gamma and kappa), announcements since the last crawl, when that was, importance, and what
the page is worth if it has never been crawled.
"""

from __future__ import annotations

from math import exp, inf, isnan, nan, sqrt
from typing import Any

import numpy as np

from crawlsched.crawl_value.elements import element_terms
from crawlsched.frontier.candidates.candidate_loops import highest

__all__ = [
    "EXAMPLES",
    "HIGHEST",
    "N_ROWS",
    "gather",
    "gather_from",
    "point_best",
    "point_crossing",
    "point_crossings",
    "point_parabolas",
    "point_terms",
    "point_value",
    "tangent_wait",
]

# Rows of the array.
_CHANGE_RATE, _ALPHA, _GAMMA, _KAPPA, _N_SIGNALS, _CRAWLED_AT, _IMPORTANCE, _NEW = 0, 3, 4, 5, 6, 7, 8, 9
#: How many there are.
N_ROWS = 10

#: Values have to be finite; only a page that never changes and was announced by a rule that trusts blindly gets here.
HIGHEST = 1e300
# A crossing time is approached by so many tangents at most, until one adds less than this to the wait.
_MOST_TANGENTS = 4
_SHORT_STEP = 0.02


def tangent_wait(aim: float, value: float, slope: float, curvature: float) -> float:
    """Return in how many seconds, at the earliest, a value reaches `aim`; see `signalled.SignalledValues`."""
    missing = aim - value
    if missing <= 0:
        return 0.0
    rise = slope + sqrt(slope * slope + 2.0 * curvature * missing)
    return 2.0 * missing / rise * (1 - 1e-9) if rise > 0 else inf


def point_crossing(
    change_rate: float, alpha: float, gamma: float, kappa: float, max_terms: float, stale: float, aim: float
) -> float:
    """Return for how long, from where the staleness is `stale`, the value per importance is certainly below `aim`."""
    # Each tangent (see `RuleValues`) reaches the value too early, and from there the next is closer.
    if alpha == 0.0 or aim * change_rate >= 1.0:
        return inf
    wait = 0.0
    for _ in range(_MOST_TANGENTS):
        value, rise = element_terms(stale, alpha, gamma, kappa, max_terms)
        step = tangent_wait(aim, value, alpha * rise, alpha * exp(-stale))
        wait += step
        stale += alpha * step
        if step <= _SHORT_STEP * wait:
            break
    return wait


def gather(
    known: Any,
    importance: Any,
    pages: Any,
    crawled_at: Any,
    n_signals: Any,
    horizon: float,
    columns: Any,
) -> int:
    """Set what the crawl values of pages depend on; return how many of them have no known rates (theirs are nan).

    `crawled_at` and `n_signals` are those of these pages, `known` and `importance` of all.
    """
    unknown = 0
    for n in range(len(pages)):
        unknown += _gather_one(known, importance, pages[n], crawled_at[n], float(n_signals[n]), horizon, columns, n)
    return unknown


def gather_from(
    known: Any,
    importance: Any,
    pages: Any,
    crawled_at: Any,
    n_signals: Any,
    further: Any,
    horizon: float,
    columns: Any,
) -> int:
    """Do what `gather` does where all columns are of all pages; -1, and half of it, if several sources name a page."""
    unknown = 0
    for n in range(len(pages)):
        page = pages[n]
        if further[page] > 0:
            return -1
        at, heard = crawled_at[page], float(n_signals[page])
        unknown += _gather_one(known, importance, page, at, heard, horizon, columns, n)
    return unknown


def _gather_one(
    known: Any, importance: Any, page: int, crawled_at: float, n_signals: float, horizon: float, columns: Any, n: int
) -> int:
    for row in range(6):
        columns[row, n] = known[page, row] if page < len(known) else nan
    columns[_N_SIGNALS, n], columns[_CRAWLED_AT, n] = n_signals, crawled_at
    columns[_IMPORTANCE, n] = importance[page]
    columns[_NEW, n] = columns[_IMPORTANCE, n] / (columns[_CHANGE_RATE, n] + 1.0 / horizon)
    return 1 if isnan(columns[0, n]) else 0


def _stale(columns: Any, n: int, now: float) -> float:
    stale: float = columns[_ALPHA, n] * max(now - columns[_CRAWLED_AT, n], 0.0)
    if columns[_N_SIGNALS, n] > 0.0:
        stale += columns[_KAPPA, n] * columns[_N_SIGNALS, n]
    return stale


def point_value(columns: Any, max_terms: float, n: int, now: float) -> float:
    """Return the crawl value of the page in column n, as `PointValue.at` does."""
    if columns[_CRAWLED_AT, n] == -inf:
        value: float = min(columns[_NEW, n], HIGHEST)
        return value
    if columns[_IMPORTANCE, n] == 0.0:
        return 0.0
    stale = _stale(columns, n, now)
    terms = element_terms(stale, columns[_ALPHA, n], columns[_GAMMA, n], columns[_KAPPA, n], max_terms)
    value = terms[0] * columns[_IMPORTANCE, n]
    return value if value < HIGHEST else HIGHEST


def point_best(
    columns: Any, max_terms: float, bounds: Any, rows: Any, now: float
) -> tuple[int, float, float, float, float]:
    """Return `candidate_loops.highest`, the crawl value of that page, and that it leaves no doubt: 0.

    `rows` has the column of each bound.
    """
    row, bound, following = highest(bounds, now)
    value = point_value(columns, max_terms, rows[row], now) if bound >= 0.0 else 0.0
    return row, bound, following, value, 0.0


def point_terms(columns: Any, max_terms: float, now: float, found: Any) -> None:
    """Set crawl value, slope in time and a bound on the slope's slope, shape (3, n), as `RuleValues` does in numpy."""
    for n in range(columns.shape[1]):
        importance = columns[_IMPORTANCE, n]
        if columns[_CRAWLED_AT, n] == -inf or importance == 0.0:
            found[0, n] = min(columns[_NEW, n], HIGHEST) if columns[_CRAWLED_AT, n] == -inf else 0.0
            found[1, n] = found[2, n] = 0.0
            continue
        growth, stale = columns[_ALPHA, n] * importance, _stale(columns, n, now)
        value, slope = element_terms(stale, columns[_ALPHA, n], columns[_GAMMA, n], columns[_KAPPA, n], max_terms)
        found[0, n] = min(value * importance, HIGHEST)
        found[1, n] = slope * growth if growth > 0.0 else 0.0
        found[2, n] = exp(-stale) * growth


def point_parabolas(columns: Any, max_terms: float, now: float, slack: float, found: Any) -> None:
    """Set value, slope and half curvature of parabolas that no crawl value exceeds, shape (3, n)."""
    point_terms(columns, max_terms, now, found)
    for n in range(columns.shape[1]):
        if columns[_CRAWLED_AT, n] > -inf and columns[_IMPORTANCE, n] > 0.0:
            found[0, n] *= slack
            found[1, n] *= slack
            found[2, n] *= 0.5 * slack


def point_crossings(columns: Any, max_terms: float, chosen: Any, aims: Any, after: float, found: Any) -> None:
    """Set times before which the values of the chosen pages are below `aims`; inf where that is for ever."""
    for at in range(len(chosen)):
        n = chosen[at]
        if columns[_CRAWLED_AT, n] == -inf or columns[_IMPORTANCE, n] == 0.0:
            found[at] = inf
            continue
        natural = columns[_ALPHA, n], columns[_GAMMA, n], columns[_KAPPA, n], max_terms
        aim = aims[at] / columns[_IMPORTANCE, n]
        found[at] = after + point_crossing(columns[_CHANGE_RATE, n], *natural, _stale(columns, n, after), aim)


_ROW, _COLUMNS, _FOUND = np.full(2, 0.5), np.full((N_ROWS, 2), 0.5), np.empty((3, 2))
_KNOWN, _FLOAT32, _PAGES = np.full((2, 6), 0.5), _ROW.astype(np.float32), np.arange(2)
_COUNTS = np.zeros(2, np.uint16), np.zeros(2, np.int32)
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "gather": (_KNOWN, _FLOAT32, _PAGES, _ROW, _ROW, 1.0, _COLUMNS.copy()),
    "gather_from": (_KNOWN, _FLOAT32, _PAGES, _ROW, *_COUNTS, 1.0, _COLUMNS.copy()),
    "point_crossing": (0.5, 0.5, 0.5, 0.5, inf, 0.5, 0.1),
    "point_best": (_COLUMNS, inf, np.zeros((5, 2)), np.zeros(2, np.int32), 1.0),
    "point_value": (_COLUMNS, inf, 0, 1.0),
    "point_terms": (_COLUMNS, inf, 1.0, _FOUND),
    "point_parabolas": (_COLUMNS, inf, 1.0, 1.0, _FOUND),
    "point_crossings": (_COLUMNS, inf, np.arange(2), _ROW, 1.0, _ROW.copy()),
}
