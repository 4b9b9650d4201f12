"""The algorithm of `crawlsched.crawl_value.terms` for one element, in plain Python that numba can compile.

For a single page a loop over plain floats is many times faster than numpy on arrays of one element, and the same text
is what `crawlsched.crawl_value.compiled` compiles: one source for both, which agree to the last digit wherever the C
library stands behind both. Constants are those of `terms`, and the tests hold this and `terms` to the same values. Only
`_open_term` is another formula, the faster one here.
"""

import cmath
import math
from typing import Any

import numpy as np

from crawlsched.crawl_value import terms
from crawlsched.crawl_value.integrals import (
    LARGEST_EXPONENT,
    RESIDUAL_COEFFICIENTS,
    RESIDUAL_SERIES_BELOW,
    SERIES_BELOW,
)

__all__ = ["EXAMPLES", "element_terms", "many_terms"]

#: Arguments of the functions that are called from outside, as numba is to compile them.
_COLUMN = np.full(2, 0.5)
EXAMPLES = {
    "element_terms": (0.5, 0.1, 0.1, 1.0, math.inf),
    "many_terms": (_COLUMN, _COLUMN, _COLUMN, _COLUMN, math.inf, np.empty(2), np.empty(2)),
}

_NODES: tuple[float, ...] = tuple(terms.NODES.tolist())
_WEIGHTS: tuple[float, ...] = tuple(terms.WEIGHTS.tolist())
_STIRLING: tuple[float, ...] = tuple(terms.STIRLING.tolist())
_RESIDUAL = tuple(RESIDUAL_COEFFICIENTS)
_CUBIC = tuple(terms.CUBIC_COEFFICIENTS)
_SINCH = tuple(terms.SINCH_COEFFICIENTS)
_NEGLIGIBLE, _LEAST_RATE, _LARGEST_RATIO = terms.NEGLIGIBLE, terms.LEAST_RATE, terms.LARGEST_RATIO
_MOST_OSCILLATIONS, _FEWEST_SETTLED = terms.MOST_OSCILLATIONS, terms.FEWEST_SETTLED
_SETTLED_EXPONENT, _ENDLESS = terms.SETTLED_EXPONENT, terms.ENDLESS
_WIDTH, _ABOVE, _BELOW = terms.WIDTH, terms.ABOVE, terms.BELOW
_STIRLING_FROM, _EPSILON = terms.STIRLING_FROM, terms.EPSILON

# From here on, on the scale of y, the second term in closed form loses no digit of the whole.
_CLOSED_FROM = 0.3
# Up to here a series is faster than the 40 nodes of the quadrature, evaluated one by one.
_LONGEST_SERIES = 300.0


def _residual_one(y: float) -> float:
    """R^1(y) = 1 - (1 + y) exp(-y), for y up to 40."""
    negative = math.expm1(-y)
    if y >= RESIDUAL_SERIES_BELOW:
        return -negative - y * (1.0 + negative)
    series = 0.0
    for k in range(len(_RESIDUAL) - 1, -1, -1):
        series = series * y + _RESIDUAL[k]
    return (1.0 + negative) * y * y * series


def _first_signal_integral(y: float, ratio: float) -> float:
    x = (1.0 + ratio) * y
    if x >= SERIES_BELOW:
        return (-math.expm1(-y) + math.exp(-y) * math.expm1(-ratio * y) / ratio) / (1.0 + ratio)
    z = power = y * y
    series, factorial = z / 2.0, 2.0
    for k in range(3, 17):
        power *= y
        z = x * z + power
        factorial *= -k
        series += z / factorial
    return series


def _sinch_minus_one(z: float) -> float:
    if z > 1.0:
        return math.sinh(z) / z - 1.0
    square, series = z * z, 0.0
    for k in range(len(_SINCH) - 1, -1, -1):
        series = series * square + _SINCH[k]
    return square * series


def _certain_terms(y: float, kappa: float, c: float, n: float) -> float:
    per_term = math.log1p(1.0 / c)
    mean = y - 0.5 * (n + 1.0) * kappa - 0.5 * (n + 3.0) * per_term
    half = 0.5 * (kappa + per_term)
    one = _sinch_minus_one(half)
    excess = (_sinch_minus_one(n * half) - one) / (1.0 + one)
    return n * (math.expm1(mean) + math.exp(mean) * excess)


def _stirling(i: float) -> float:
    if i < _STIRLING_FROM:
        return _STIRLING[int(i)]
    inverse = 1.0 / (i * i)
    return 0.5 * math.log(2.0 * math.pi * i) + (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse / 1260.0)) / i


def _second_term(x: float, c: float, s: float) -> tuple[float, float]:
    """`_open_term` for i = 1 in closed form; s is x / c."""
    # The integral of v exp(-v) (exp(s - v / c) - 1) from 0 to x. It is a difference, but of numbers no larger than the
    # first term where y is not small.
    probability = _residual_one(min(x, LARGEST_EXPONENT))
    shrink = c / (1.0 + c)
    reached = math.exp(s) * _residual_one(min(x + s, LARGEST_EXPONENT)) * shrink * shrink
    return max(reached - probability, 0.0), probability


def _open_term(i: float, x: float, c: float) -> tuple[float, float]:
    if x <= 0.0:
        return 0.0, 0.0
    if i > _LONGEST_SERIES:
        return _open_term_by_quadrature(i, x, c)
    # The same expectation, with v < x written as "l > i events of a Poisson process before x":
    # sum over k >= 1 of Poisson(i + 1 + k; x) ((1 + 1/c)^k - 1), all positive.
    d = max((x - i) / i, _EPSILON - 1.0)
    step = 1.0 / c
    chance = math.exp((math.log1p(d) - d) * i - _stirling(i)) * x / (i + 1.0)
    factor, raised, probability, gain, count = step, chance, chance, 0.0, i + 1.0
    expected = x * (1.0 + step)
    while True:
        count += 1.0
        chance *= x / count
        raised *= expected / count
        # For small c the factor may overflow; for large c the difference would cancel.
        term = chance * factor if c > 1.0 else raised - chance
        gain += term
        probability += chance
        factor += factor * step + step
        if count > expected and term <= 1e-18 * gain:
            return gain, probability


def _open_term_by_quadrature(i: float, x: float, c: float) -> tuple[float, float]:
    shape = i + 1.0
    spread = _WIDTH * math.sqrt(shape)
    shrink = c / (1.0 + c)
    low = shrink * max(shape + _BELOW - spread, 0.0)
    width = min(x, shrink * (shape + spread + _ABOVE)) - low
    if width <= 0.0:
        return 0.0, 0.0
    gain, probability, offset = 0.0, 0.0, _stirling(i)
    for node in range(len(_NODES)):
        v = low + width * _NODES[node]
        d = max((v - i) / i, _EPSILON - 1.0)
        density = math.exp((math.log1p(d) - d) * i - offset) * _WEIGHTS[node]
        probability += density
        gain += density * math.expm1(max((x - v) / c, 0.0))
    return width * gain, width * probability


def _n_certain(needed: float, smoothness: float) -> float:
    excess = max(smoothness * (needed + 1.0) - _ABOVE, 0.0)
    root = (math.sqrt(_WIDTH**2 + 4.0 * (1.0 + smoothness) * excess) - _WIDTH) / (2.0 * (1.0 + smoothness))
    return min(root * root // 1.0, needed // 1.0 + 1.0)


def _later_terms(y: float, kappa: float, c: float, certain: float, last: float) -> tuple[float, float]:
    certain = min(certain, last + 1.0)
    gain = announcements = 0.0
    if certain > 1.0:
        announcements = certain - 1.0
        gain = _certain_terms(y, kappa, c, announcements)
    i = max(certain, 1.0)
    while i <= last:
        left = max(y - i * kappa, 0.0)
        if i == 1.0 and y > _CLOSED_FROM:
            term, probability = _second_term(c * left, c, left)
        else:
            term, probability = _open_term(i, c * left, c)
        gain += term
        announcements += probability
        i += 1.0
    return gain, announcements


def _cubic_residual(kappa: float) -> float:
    if kappa > 1.0:
        return 0.5 * kappa * kappa - kappa - math.expm1(-kappa)
    series = 0.0
    for k in range(len(_CUBIC) - 1, -1, -1):
        series = series * kappa + _CUBIC[k]
    return series * kappa * kappa * kappa


def _settled(y: float, alpha: float, gamma: float, kappa: float, c: float, oscillations: float) -> tuple[float, float]:
    smoothness = c * kappa
    ahead = 0.5 * kappa * smoothness / (1.0 + smoothness)
    cubic = _cubic_residual(kappa)
    start = c / (1.0 - c * math.expm1(-kappa)) * (ahead * (0.5 * kappa * kappa - cubic) - cubic)
    value = _residual_one(y) - ahead * math.expm1(-y) + start
    waves = swings = 0.0
    for k in range(1, int(oscillations) + 1):
        turn = complex(0.0, 2.0 * math.pi * k)
        x = turn - cmath.log(1.0 + turn / smoothness)
        for _ in range(3):
            total = smoothness + x
            x = x - (x - turn + cmath.log(total / smoothness)) * total / (total + 1.0)
        swing = cmath.exp(x * (y / kappa)) / (x * (1.0 + smoothness + x))
        waves += (swing / (kappa - x)).real
        swings += swing.real
    factor = 2.0 * kappa * (1.0 + smoothness)
    rate = alpha + gamma * kappa
    return (value - factor * kappa * math.exp(-y) * waves) / rate, math.exp(-y) * (y + ahead + factor * swings) / rate


def _with_signals(y: float, alpha: float, gamma: float, kappa: float, max_terms: float) -> tuple[float, float]:
    c = gamma / max(alpha, gamma / _LARGEST_RATIO)
    needed = y / kappa
    if needed > 1.0 and max_terms > 1.0:
        smoothness = c * kappa
        more = _WIDTH**2 + 4.0 * (1.0 + smoothness) * smoothness * (needed + 1.0)
        root = (_WIDTH + math.sqrt(more)) / (2.0 * (1.0 + smoothness))
        last = min(needed // 1.0, root * root // 1.0)
        exponent = _SETTLED_EXPONENT / needed
        waves = smoothness / (2.0 * math.pi) * math.sqrt(math.expm1(exponent) + exponent / smoothness)
        oscillations = (0.5 + waves) // 1.0
        if oscillations <= _MOST_OSCILLATIONS and needed >= _FEWEST_SETTLED and last < max_terms:
            return _settled(y, alpha, gamma, kappa, c, oscillations)
        certain = _n_certain(needed, smoothness)
        last = certain - 1.0 if needed > _ENDLESS and last < max_terms else min(last, max_terms - 1.0)
        gain, announcements = _later_terms(y, kappa, c, certain, last)
    else:
        gain = announcements = 0.0
    weight = math.exp(-y) / gamma
    value = _first_signal_integral(y, c) * c / gamma + weight * gain
    return value, weight * (announcements - math.expm1(-c * y))


def element_terms(y: float, alpha: float, gamma: float, kappa: float, max_terms: float) -> tuple[float, float]:
    """`terms.noisy_terms` for one element: crawl value per unit of importance, and its derivative by y."""
    y = min(y, LARGEST_EXPONENT)
    if max_terms < math.inf:  # the approximations stop counting announcements, even those without any weight
        kappa = max(kappa, _NEGLIGIBLE)
    if gamma > _NEGLIGIBLE * alpha and gamma > _LEAST_RATE and (kappa > _NEGLIGIBLE or max_terms < math.inf):
        return _with_signals(y, alpha, gamma, kappa, max_terms)
    if alpha > 0.0:
        return _residual_one(y) / alpha, y * math.exp(-y) / alpha
    endless = math.inf if y > 0.0 else 0.0
    return endless, endless


def many_terms(y: Any, alpha: Any, gamma: Any, kappa: Any, max_terms: float, value: Any, slope: Any) -> None:
    """Set what `element_terms` returns, for many elements."""
    for n in range(len(y)):
        value[n], slope[n] = element_terms(y[n], alpha[n], gamma[n], kappa[n], max_terms)
