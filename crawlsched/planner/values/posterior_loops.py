"""The posterior crawl value of one page, rate by rate, in plain Python that numba can compile.

A page at a time is what decides picks, and there numpy spends its time on being called: a loop over 32 plain floats is
as fast, and compiled it is many times faster. Whether compiled or not, the same operations are done in the same order,
so that the same page is picked. `crawlsched.planner.values.signalled` has the formulas for many pages in numpy.
"""

from __future__ import annotations

import math
from math import expm1
from typing import Any

import numpy as np

from crawlsched.crawl_value.elements import element_terms
from crawlsched.crawl_value.integrals import LARGEST_EXPONENT

__all__ = [
    "EXAMPLES",
    "growing_crossing",
    "growing_terms",
    "growing_value",
    "signalled_terms",
]

# From x = 40 on exp(-x) - 1 is -1 to the last bit, and x itself would only add its rounding.
_NOTHING_LEFT = -40.0

# Rows are lists here and arrays when compiled.
Row = Any
Rows = Any


def growing_value(weights: Row, rates: Row, elapsed: float) -> float:
    """Return Σ w (1 - (1 + r τ) exp(-r τ)) / r, as `signalled.gain` computes it."""
    total, back = 0.0, -elapsed
    for weight, rate in zip(weights, rates):  # noqa: B905 - numba knows no strict=
        minus_x = rate * back
        if minus_x < _NOTHING_LEFT:
            minus_x = _NOTHING_LEFT
            lost = -1.0
        else:
            lost = expm1(minus_x)
        total += weight * ((lost * minus_x - lost + minus_x) / rate)
    return total


def growing_terms(weights: Row, rates: Row, elapsed: float) -> tuple[float, float]:
    """Return `growing_value`, and its slope by τ²/2: Σ w r exp(-r τ)."""
    total, slope, back = 0.0, 0.0, -elapsed
    for weight, rate in zip(weights, rates):  # noqa: B905
        minus_x = rate * back
        if minus_x < _NOTHING_LEFT:
            minus_x = _NOTHING_LEFT
            lost = -1.0
        else:
            lost = expm1(minus_x)
        total += weight * ((lost * minus_x - lost + minus_x) / rate)
        slope += weight * ((lost + 1.0) * rate)
    return total, slope


def signalled_terms(
    weights: Row, rates: Row, elapsed: float, evidence: float, signal_rate: float, signal_weight: float
) -> tuple[float, float, float]:
    """Return crawl value, its slope in time, and a bound on the slope's slope, per unit of importance."""
    value = slope = curvature = 0.0
    false_rate_less = signal_rate * expm1(-signal_weight)
    for k in range(len(rates)):
        weight = weights[k]
        if weight == 0.0:
            continue
        rate = rates[k]
        stale = rate * elapsed + evidence
        decay = weight * rate * math.exp(-stale)
        if stale < LARGEST_EXPONENT:
            part, rise = element_terms(stale, rate, signal_rate, signal_weight, math.inf)
            slope += weight * rate * rise
        else:  # the limit 1 / Δ to rounding
            part = 1.0 / (rate - false_rate_less)
        value += weight * part
        curvature += decay
    return value, slope, curvature


def growing_crossing(
    weights: Row, rates: Row, elapsed: Row, gains: Rows, slopes: Rows, aim: float, since: float
) -> float:
    """Return a time since the crawl before which the value per importance is below `aim`: 0 or more, inf if never.

    Until `since` it is known to be below; the search begins there.
    """
    # V is concave as a function of τ²/2 (its derivative by that is Σ w r exp(-r τ)), so a tangent at a time where V is
    # still below the level reaches the level too early, and never too late.
    low, high, below = -1, len(elapsed), 0.0
    if since > elapsed[0]:
        # The table goes up in equal ratios. Mostly the level is not far ahead of where the page is now.
        share = math.log(since / elapsed[0]) / math.log(elapsed[high - 1] / elapsed[0])
        now = int(min(share, 1.0) * (high - 1))
        value = _dot(gains, now, weights)
        if value < aim:
            low, below, step = now, value, 1
            while low + step < high:
                value = _dot(gains, low + step, weights)
                if value >= aim:
                    high = low + step
                else:
                    low, below, step = low + step, value, 4 * step
        else:
            high = now
    while high - low > 1:
        middle = (low + high) >> 1
        value = _dot(gains, middle, weights)
        if value >= aim:
            high = middle
        else:
            low, below = middle, value
    if low < 0:
        return 0.0
    if low == len(elapsed) - 1:
        return math.inf
    square = elapsed[low] * elapsed[low] + 2.0 * (aim - below) / _dot(slopes, low, weights)
    # A second tangent, where the first one reaches the level: among ten million pages the per mille that the table is
    # off would be a thousand ticks, in each of which the page would be looked at again.
    value, slope = growing_terms(weights, rates, math.sqrt(square))
    if value < aim and slope > 0.0:
        square += 2.0 * (aim - value) / slope
    return math.sqrt(square) * (1.0 - 1e-9)


def _dot(table: Rows, row: int, weights: Row) -> float:
    # Four sums at once: a processor adds one number to each while it waits for the one before.
    first = second = third = fourth = 0.0
    whole = len(weights) // 4 * 4
    for k in range(0, whole, 4):
        first += table[row, k] * weights[k]
        second += table[row, k + 1] * weights[k + 1]
        third += table[row, k + 2] * weights[k + 2]
        fourth += table[row, k + 3] * weights[k + 3]
    for k in range(whole, len(weights)):
        first += table[row, k] * weights[k]
    return (first + second) + (third + fourth)


_ROW, _ROWS, _TIMES = np.full(2, 0.5), np.full((2, 2), 0.5), np.array([0.5, 2.0])
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "growing_value": (_ROW, _ROW, 1.0),
    "growing_terms": (_ROW, _ROW, 1.0),
    "signalled_terms": (_ROW, _ROW, 1.0, 1.0, 1.0, 1.0),
    "growing_crossing": (_ROW, _ROW, _TIMES, _ROWS, _ROWS, 1.0, 1.0),
}
