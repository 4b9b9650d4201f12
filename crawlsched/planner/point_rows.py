"""Crawl values by the papers' rules, page by page, in plain Python that numba can compile.

`crawlsched.planner.point_value` has the formulas for many pages in numpy, and uses these for single ones; compiled they
serve for many pages, too. Compiled or not the same operations are done in the same order.
"""

from __future__ import annotations

from math import exp, inf, sqrt
from typing import Any

import numpy as np

from crawlsched.crawl_value.elements import element_terms

__all__ = ["EXAMPLES", "HIGHEST", "point_crossing", "point_crossings", "point_terms", "point_value", "tangent_wait"]

#: Values have to be finite; only a page that never changes and was announced by a rule that trusts blindly gets here.
HIGHEST = 1e300
# A crossing time is approached by so many tangents at most, until one adds less than this to the wait.
_MOST_TANGENTS = 4
_SHORT_STEP = 0.02


def tangent_wait(aim: float, value: float, slope: float, curvature: float) -> float:
    """Return in how many seconds, at the earliest, a value reaches `aim`; see `posterior_value.SignalledValues`."""
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


def point_value(
    seen: Any, n_signals: Any, crawled_at: Any, importance: Any, new: Any, max_terms: float, n: int, now: float
) -> float:
    """Return the crawl value of the page in row n, as `PointValue.at` does."""
    if crawled_at[n] == -inf:
        value: float = min(new[n], HIGHEST)
        return value
    if importance[n] == 0.0:
        return 0.0
    stale = seen[3, n] * max(now - crawled_at[n], 0.0)
    if n_signals[n] > 0.0:
        stale += seen[5, n] * n_signals[n]
    value = element_terms(stale, seen[3, n], seen[4, n], seen[5, n], max_terms)[0] * importance[n]
    return value if value < HIGHEST else HIGHEST


def point_terms(
    seen: Any, n_signals: Any, crawled_at: Any, importance: Any, new: Any, max_terms: float, now: float, found: Any
) -> None:
    """Set crawl value, slope in time and a bound on the slope's slope, shape (3, n), as `RuleValues` does in numpy."""
    for n in range(len(crawled_at)):
        if crawled_at[n] == -inf or importance[n] == 0.0:
            found[0, n] = min(new[n], HIGHEST) if crawled_at[n] == -inf else 0.0
            found[1, n] = found[2, n] = 0.0
            continue
        alpha, kappa, growth = seen[3, n], seen[5, n], seen[3, n] * importance[n]
        stale = alpha * max(now - crawled_at[n], 0.0)
        if n_signals[n] > 0.0:
            stale += kappa * n_signals[n]
        value, slope = element_terms(stale, alpha, seen[4, n], kappa, max_terms)
        found[0, n] = min(value * importance[n], HIGHEST)
        found[1, n] = slope * growth if growth > 0.0 else 0.0
        found[2, n] = exp(-stale) * growth


def point_crossings(
    seen: Any,
    n_signals: Any,
    crawled_at: Any,
    importance: Any,
    max_terms: float,
    chosen: Any,
    aims: Any,
    after: float,
    found: Any,
) -> None:
    """Set times before which the values of the chosen pages are below `aims`; inf where that is for ever."""
    for at in range(len(chosen)):
        n = chosen[at]
        if crawled_at[n] == -inf or importance[n] == 0.0:
            found[at] = inf
            continue
        stale = seen[3, n] * max(after - crawled_at[n], 0.0)
        if n_signals[n] > 0.0:
            stale += seen[5, n] * n_signals[n]
        found[at] = after + point_crossing(
            seen[0, n], seen[3, n], seen[4, n], seen[5, n], max_terms, stale, aims[at] / importance[n]
        )


_ROW, _SEEN, _FOUND = np.full(2, 0.5), np.full((6, 2), 0.5), np.empty((3, 2))
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "point_crossing": (0.5, 0.5, 0.5, 0.5, inf, 0.5, 0.1),
    "point_value": (_SEEN, _ROW, _ROW, _ROW, _ROW, inf, 0, 1.0),
    "point_terms": (_SEEN, _ROW, _ROW, _ROW, _ROW, inf, 1.0, _FOUND),
    "point_crossings": (_SEEN, _ROW, _ROW, _ROW, inf, np.arange(2), _ROW, 1.0, _ROW.copy()),
}
