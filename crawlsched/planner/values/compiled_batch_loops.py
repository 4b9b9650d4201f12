"""What is known of pages, page by page, made into what they are worth, as numba compiles it.

`announcements`, `posterior_values` and `signalled` have the same for numpy, which needs a hundred calls for what
stands here in one loop.
"""

from __future__ import annotations

import math
from math import inf
from typing import Any

import numpy as np

from crawlsched.frontier.candidates.candidate_loops import highest
from crawlsched.planner.values.plug_in_loops import tangent_wait
from crawlsched.planner.values.posterior_loops import growing_crossing, growing_terms, signalled_terms
from crawlsched.planner.values.signalled import DOUBT, SLACK, SLACK_PER_SECOND

__all__ = [
    "EXAMPLES",
    "GROWING",
    "SIGNALLED",
    "STEADY",
    "best",
    "crossings",
    "kinds_of",
    "parabolas",
    "value_of_one",
]

#: Kinds of page values: one that does not change, one without announcements, and one with.
STEADY, GROWING, SIGNALLED = range(3)

# As close as that, relatively, to the time for which the value is known, a tangent there is off by less than that of
# the wait.
_CLOSE = 1e-3
# Up to there a parabola over a value with announcements is nearly a straight line, and nothing comes closer.
_CURVED = 0.05


def kinds_of(pages: Any, crawled_at: Any, importance: Any, signals: Any, of_pages: Any, kinds: Any) -> tuple[int, int]:
    """Set when pages were last crawled and the kinds of their values; return how many are steady, and how many silent.

    `crawled_at` is by page; `signals` has the shape (3, n), all others have (n,). A page without announcements that
    count is silent, steady or not.
    """
    n_steady = n_silent = 0
    for n in range(len(pages)):
        of_pages[n] = crawled_at[pages[n]]
        kinds[n] = SIGNALLED
        if signals[0, n] <= 0.0 or signals[1, n] == 0.0:
            kinds[n] = GROWING
            n_silent += 1
        if of_pages[n] == -inf or importance[n] == 0.0:
            kinds[n] = STEADY
            n_steady += 1
    return n_steady, n_silent


def terms_of_one(
    kind: int, steady: float, weights: Any, rates: Any, elapsed: float, importance: float, signals: Any, n: int
) -> tuple[float, float, float]:
    """Return crawl value, slope in time and a bound on the slope's slope."""
    if kind == STEADY:
        return steady, 0.0, 0.0
    if kind == GROWING:
        value, curvature = growing_terms(weights, rates, elapsed)
        curvature *= importance
        return max(value * importance, 0.0), curvature * elapsed, curvature
    value, slope, curvature = signalled_terms(weights, rates, elapsed, signals[2, n], signals[0, n], signals[1, n])
    return max(value, 0.0) * importance, slope * importance, curvature * importance


def value_of_one(
    kinds: Any,
    steady: Any,
    weights: Any,
    rates: Any,
    crawled_at: Any,
    importance: Any,
    signals: Any,
    n: int,
    now: float,
) -> float:
    """Return the crawl value of one page, as `terms_of_one` has it."""
    elapsed = max(now - crawled_at[n], 0.0)
    value: float = terms_of_one(kinds[n], steady[n], weights[n], rates, elapsed, importance[n], signals, n)[0]
    return value


def best(
    kinds: Any,
    steady: Any,
    weights: Any,
    rates: Any,
    crawled_at: Any,
    importance: Any,
    signals: Any,
    bounds: Any,
    rows: Any,
    now: float,
) -> tuple[int, float, float, float, float]:
    """Return `candidate_loops.highest`, the crawl value of that page, and the doubt that it leaves.

    `rows` has the number of the page, among the others, of each bound.
    """
    row, bound, following = highest(bounds, now)
    if bound < 0.0:
        return row, bound, following, 0.0, 0.0
    n = rows[row]
    value = value_of_one(kinds, steady, weights, rates, crawled_at, importance, signals, n, now)
    return row, bound, following, value, DOUBT if kinds[n] == SIGNALLED else 0.0


def parabolas(
    kinds: Any,
    steady: Any,
    weights: Any,
    rates: Any,
    crawled_at: Any,
    importance: Any,
    signals: Any,
    after: float,
    until: float,
    terms: Any,
    found: Any,
) -> None:
    """Set `terms_of_one` at a time, shape (3, n), and value, slope and half curvature of parabolas above the values."""
    for n in range(len(kinds)):
        elapsed = max(after - crawled_at[n], 0.0)
        value, slope, curvature = terms_of_one(
            kinds[n], steady[n], weights[n], rates, elapsed, importance[n], signals, n
        )
        terms[0, n], terms[1, n], terms[2, n] = value, slope, curvature
        if kinds[n] != STEADY:
            value = value * SLACK + importance[n] * (until - crawled_at[n]) * SLACK_PER_SECOND
        found[0, n], found[1, n], found[2, n] = value, slope * SLACK, curvature * (0.5 * SLACK)


def crossings(
    kinds: Any,
    weights: Any,
    rates: Any,
    crawled_at: Any,
    importance: Any,
    signals: Any,
    terms: Any,
    at: float,
    table: Any,
    gains: Any,
    slopes: Any,
    aims: Any,
    chosen: Any,
    after: float,
    found: Any,
) -> None:
    """Set times before which the values of the chosen pages are below `aims`; `terms` are those at the time `at`."""
    for k in range(len(chosen)):
        n = chosen[k]
        if kinds[n] == STEADY:
            found[k] = inf
            continue
        start, scale = crawled_at[n], importance[n]
        value, slope, curvature = terms[0, n] / scale, terms[1, n] / scale, terms[2, n] / scale
        aim, elapsed = aims[k] / scale, max(at - start, 0.0)
        if kinds[n] == GROWING:
            wait = _growing_wait(weights[n], rates, elapsed, value, curvature, table, gains, slopes, aim, after - start)
        else:
            wait = elapsed + tangent_wait(aim, value, slope, curvature)
            if signals[2, n] == 0.0 and curvature * (wait - elapsed) > _CURVED * slope:
                # Before the first announcement the value is at most what it were if none ever came.
                wait = max(wait, growing_crossing(weights[n], rates, table, gains, slopes, aim, after - start))
        found[k] = max(after, start + wait)


def _growing_wait(
    weights: Any,
    rates: Any,
    elapsed: float,
    value: float,
    curvature: float,
    table: Any,
    gains: Any,
    slopes: Any,
    aim: float,
    since: float,
) -> float:
    """Return `growing_crossing`, by a tangent where the value is known if the level is near."""
    if value >= aim:
        return since
    if curvature > 0.0:
        rise = 2.0 * (aim - value) / curvature
        if rise <= 2.0 * _CLOSE * elapsed * elapsed:
            return math.sqrt(elapsed * elapsed + rise) * (1.0 - 1e-9)
    wait: float = growing_crossing(weights, rates, table, gains, slopes, aim, since)
    return wait


_ROW, _ROWS, _THREE, _INT = np.full(2, 0.5), np.full((2, 2), 0.5), np.full((3, 2), 0.5), np.arange(2)
_UINT16 = _INT.astype(np.uint16)
_KINDS = np.arange(2).astype(np.uint8)
_KNOWN = _KINDS, _ROW, _ROWS, _ROW, _ROW, _ROW, _THREE
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "kinds_of": (_INT, _ROW, _ROW, _THREE, _ROW.copy(), _KINDS.copy()),
    "value_of_one": (*_KNOWN, 0, 1.0),
    "best": (*_KNOWN, np.zeros((5, 2)), np.zeros(2, np.int32), 1.0),
    "parabolas": (*_KNOWN, 1.0, 2.0, _THREE.copy(), _THREE.copy()),
    "crossings": (_KINDS, *_KNOWN[2:], _THREE, 1.0, _ROW, _ROWS, _ROWS, _ROW, _INT, 1.0, _ROW.copy()),
}
