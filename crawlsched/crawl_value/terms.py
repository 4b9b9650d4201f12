"""Terms of the noisy-signals crawl value, computed at a bounded cost for all parameters.

Private to `crawlsched.crawl_value`: float64 arrays, arguments unchecked. The elementary integrals at the beginning
avoid cancellation. For pages crawled recently, the closed forms in the papers are small differences of large numbers.
So the closed forms are used only where their two terms differ by at least a fifth. Elsewhere power series are used.

With y = alpha tau + kappa n (minus the log-probability of freshness) and c = gamma / alpha, the crawl value of Lemma 4
(Busa-Fekete et al., 2025) is the sum over i = 0 .. floor(y / kappa) of

    V_i = mu / gamma  exp(-i kappa)  E[(exp(-T_i) - exp(-s_i))^+],    T_i ~ Gamma(i + 1, rate c),   s_i = y - i kappa.

In this form no term is a difference of large numbers (`docs/explanation/posterior_crawl_value.md`). Four methods
compute the sum:

- *first*: the term i = 0 is elementary.
- *certain*: where c s_i is far above i + 1, the i-th announcement certainly comes in time. These terms are geometric in
  i. They are summed in closed form, at the same cost for any number of terms.
- *open*: about 16 sqrt(c y) / (1 + kappa c) terms lie in between. Gauss-Legendre quadrature over T_i computes them.
- *settled*: where many announcements are needed, psi (the mean time until the threshold) is a straight line plus
  decaying oscillations (renewal theorem). This method is used if a few oscillations are enough; if many would be
  needed, there are few open terms.
"""

import math
from statistics import NormalDist
from sys import float_info

import numpy as np
from numpy.typing import NDArray

from crawlsched.columns.array_types import FloatArray
from crawlsched.columns.blocks import blocks

# exp(-40) * 41 is 2e-16, so beyond 40 a crawl value equals its limit up to rounding. The limit also keeps every exp()
# finite.
LARGEST_EXPONENT = 40.0

# Below this argument, series are used, since the closed forms would lose more than one digit there.
SERIES_BELOW = 0.2

# exp(y) - 1 - y = y**2 sum_k y**k / (k+2)!. The error of 10 terms is 5e-16 / 10! at y = 0.2.
RESIDUAL_COEFFICIENTS = [1.0 / math.factorial(k + 2) for k in range(10)]


def residual_one(y: FloatArray) -> FloatArray:
    """R^1(y) = 1 - (1 + y) exp(-y), the integral of s exp(-s) from 0 to y."""
    y = np.minimum(np.asarray(y, np.float64), LARGEST_EXPONENT)
    negative = np.expm1(-y)
    value = np.asarray(-negative - y * (1.0 + negative))
    small = np.asarray(y < SERIES_BELOW)
    if not small.any():
        return value
    # exp(-y) (exp(y) - 1 - y): all terms of the series are positive.
    z = y[small]
    value[small] = polynomial(z, RESIDUAL_COEFFICIENTS) * z * z * (1.0 + negative[small])
    return value


def polynomial(z: FloatArray, coefficients: list[float]) -> FloatArray:
    """coefficients[0] + coefficients[1] z + ..., by Horner's rule."""
    value = np.full_like(z, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        value *= z
        value += coefficient
    return value


def first_signal_integral(y: FloatArray, ratio: FloatArray, missed: FloatArray) -> FloatArray:
    """Integral from 0 to y of exp(-u) (1 - exp(-ratio u)) / ratio du, for ratio > 0 and y up to 40.

    It is the crawl value (times alpha / mu) if one announcement reaches the threshold, with ratio = gamma / alpha.
    `missed` is exp(-y) (exp(-ratio y) - 1).
    """
    both = 1.0 + ratio
    closed: FloatArray = (missed / ratio - np.expm1(-y)) / both
    x = both * y
    # The series takes many calls, so it is used only below half of `SERIES_BELOW`. Just above this, rounding errors are
    # a little larger (4e-15).
    small = np.asarray(x < 0.5 * SERIES_BELOW)
    if not small.any():
        return closed
    # The series is sum_k (-1)^k y^k ((1 + ratio)^(k-1) - 1) / (ratio k!). Its numerators obey z -> x z + y^(k+1).
    x, y = x[small], y[small]
    power = y * y
    z = power.copy()
    series, factorial = z / 2.0, 2.0
    for k in range(3, 12):
        power *= y
        z *= x
        z += power
        factorial *= -k
        series += z / factorial
    closed[small] = series
    return closed


# Announcements are left out if their relative rate or their weight (nats) is below this. They would change no digit. If
# every change is announced (alpha = 0), alpha / gamma takes this value.
NEGLIGIBLE = 1e-100
LEAST_RATE = NEGLIGIBLE * NEGLIGIBLE  # announcements with a lower rate (per second) are left out
# The settled form is used if at most this number of oscillations is needed, and at least half this number of
# announcements.
MOST_OSCILLATIONS = 8
SETTLED_EXPONENT = 62.0  # oscillations below exp(-62 / 2) are left out
ENDLESS = 1e9  # if more announcements are needed, open terms are below 1e-13 of the whole
# A normal variable exceeds 8.2 standard deviations with a probability of the size of rounding errors. A Gamma(a)
# variable lies between a + 8.2 (1 - sqrt(a)) and a + 8.2 (3 + sqrt(a)), and outside these limits with a probability of
# 1e-15.
WIDTH = -NormalDist().inv_cdf(float_info.epsilon / 2.0)

_nodes, _weights = np.polynomial.legendre.leggauss(40)
NODES: FloatArray = (_nodes + 1.0) / 2.0
WEIGHTS: FloatArray = _weights / 2.0

# lgamma(i + 1) - (i log i - i) for small i. For larger i, Stirling's series is used.
STIRLING: FloatArray = np.array(
    [0.0] + [math.lgamma(i + 1.0) - (i * math.log(i) - i) for i in range(1, 32)], dtype=np.float64
)
# kappa**2 / 2 - kappa + 1 - exp(-kappa) = kappa**3 sum_k (-kappa)**k / (k+3)!
CUBIC_COEFFICIENTS = [(-1.0) ** k / math.factorial(k + 3) for k in range(15)]
# sinh(z) / z - 1 = sum_k z**(2k) / (2k+1)!
SINCH_COEFFICIENTS = [1.0 / math.factorial(2 * k + 1) for k in range(1, 9)]


def noisy_terms(
    y: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray, max_terms: float = math.inf
) -> tuple[FloatArray, FloatArray]:
    """Return the crawl value of importance 1 from the first `max_terms` terms, and its derivative with respect to y.

    All arrays are flat and of equal length. The derivative exp(-y) psi is meant for searches: some digits may be wrong.
    """
    value, slope = np.empty(y.shape), np.empty(y.shape)
    for part in blocks(y.size, 32):
        value[part], slope[part] = _block(y[part], alpha[part], gamma[part], kappa[part], max_terms)
    return value, slope


def _block(
    y: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray, max_terms: float
) -> tuple[FloatArray, FloatArray]:
    y = np.minimum(y, LARGEST_EXPONENT)
    plain = (gamma <= NEGLIGIBLE * alpha) | (gamma <= LEAST_RATE)
    if max_terms == math.inf:
        plain |= kappa <= NEGLIGIBLE
    else:  # the approximations also count announcements without weight, up to a limit
        kappa = np.maximum(kappa, NEGLIGIBLE)
    if not plain.any():
        return _with_signals(y, alpha, gamma, kappa, max_terms)
    value, slope = np.empty(y.shape), np.empty(y.shape)
    value[plain], slope[plain] = _without_signals(y[plain], alpha[plain])
    rest = ~plain
    if rest.any():
        value[rest], slope[rest] = _with_signals(y[rest], alpha[rest], gamma[rest], kappa[rest], max_terms)
    return value, slope


def _without_signals(y: FloatArray, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    # R^1(y) / alpha. For a page that never changes it is 0 if y is 0, and infinite otherwise.
    still = alpha <= 0.0
    rate = np.where(still, 1.0, alpha)
    endless = np.where(y > 0.0, np.inf, 0.0)
    return np.where(still, endless, residual_one(y) / rate), np.where(still, endless, y * np.exp(-y) / rate)


def _with_signals(
    y: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray, max_terms: float
) -> tuple[FloatArray, FloatArray]:
    c = gamma / np.maximum(alpha, gamma * NEGLIGIBLE)
    needed = y / kappa  # number of announcements that would be enough if no time passed
    fresh = np.exp(-y)
    missed = np.expm1(-c * y)
    value = first_signal_integral(y, c, fresh * missed) * c
    value /= gamma
    slope = -fresh * missed
    slope /= gamma
    index = ((needed > 1.0) & (max_terms > 1.0)).nonzero()[0]
    if not index.size:
        return value, slope
    columns = np.stack((y, alpha, gamma, kappa, c, needed, fresh))[:, index]
    needed, smoothness = columns[5], columns[4] * columns[3]
    last = _last_term(needed, smoothness)
    oscillations = _n_oscillations(needed, smoothness)
    settled = (oscillations <= MOST_OSCILLATIONS) & (2.0 * needed >= MOST_OSCILLATIONS) & (last < max_terms)
    at = settled.nonzero()[0]
    if at.size:
        value[index[at]], slope[index[at]] = _settled(columns[:, at], oscillations[at])
    if at.size < index.size:
        at = (~settled).nonzero()[0]
        y, _, gamma, kappa, c, needed, fresh = columns[:, at]
        last, smoothness, index = last[at], smoothness[at], index[at]
        endless = (needed > ENDLESS) & (last < max_terms)
        certain = _n_certain(needed, smoothness)
        last = np.where(endless, certain - 1.0, np.minimum(last, max_terms - 1.0))
        gain, announcements = _later_terms(y, kappa, c, certain, last)
        weight = fresh / gamma
        value[index] += weight * gain
        slope[index] += weight * announcements
    return value, slope


def _last_term(needed: FloatArray, smoothness: FloatArray) -> FloatArray:
    # Largest i with smoothness (needed - i) > i + 1 - 8.2 sqrt(i + 1): later announcements do not come in time.
    root = (WIDTH + np.sqrt(WIDTH**2 + 4.0 * (1.0 + smoothness) * smoothness * (needed + 1.0))) / (
        2.0 * (1.0 + smoothness)
    )
    return np.minimum(np.floor(needed), np.floor(root * root))


def _n_certain(needed: FloatArray, smoothness: FloatArray) -> FloatArray:
    # Number of i with smoothness (needed - i) >= i + 1 + 8.2 (3 + sqrt(i + 1)): these announcements certainly come in
    # time.
    excess = np.maximum(smoothness * (needed + 1.0) - 3.0 * WIDTH, 0.0)
    root = (np.sqrt(WIDTH**2 + 4.0 * (1.0 + smoothness) * excess) - WIDTH) / (2.0 * (1.0 + smoothness))
    return np.minimum(np.floor(root * root), np.floor(needed) + 1.0)


def _n_oscillations(needed: FloatArray, smoothness: FloatArray) -> FloatArray:
    # The k-th oscillation decays as (1 + (2 pi k / smoothness)^2)^(-needed / 2), see `_settled`. With k - 1/2 in place
    # of k, this also covers a small smoothness.
    exponent = SETTLED_EXPONENT / needed
    return np.floor(0.5 + smoothness / (2.0 * np.pi) * np.sqrt(np.expm1(exponent) + exponent / smoothness))


def _later_terms(
    y: FloatArray, kappa: FloatArray, c: FloatArray, certain: FloatArray, last: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return two sums over i = 1 .. last: the terms of V times exp(y) gamma / mu, and those of psi times gamma."""
    certain = np.minimum(certain, last + 1.0)
    gain, announcements = np.zeros(y.shape), np.maximum(certain - 1.0, 0.0)
    some = (certain > 1.0).nonzero()[0]
    if some.size:
        gain[some] = _certain_terms(y[some], kappa[some], c[some], certain[some] - 1.0)
    begin = np.maximum(certain, 1.0)
    count = np.maximum(last + 1.0 - begin, 0.0).astype(np.intp)
    element, nth = enumerate_counts(count)
    if not element.size:
        return gain, announcements
    i = begin[element] + nth
    x = c[element] * np.maximum(y[element] - i * kappa[element], 0.0)
    gains, probabilities = open_terms(i, x, c[element])
    gain += np.bincount(element, weights=gains, minlength=y.size)
    announcements += np.bincount(element, weights=probabilities, minlength=y.size)
    return gain, announcements


def enumerate_counts(count: NDArray[np.intp]) -> tuple[NDArray[np.intp], FloatArray]:
    """Return each element's index, repeated as often as its count, and the numbers 0, 1, 2, ... within each element."""
    element = np.repeat(np.arange(count.size), count)
    starts = np.repeat(np.cumsum(count) - count, count)
    before: FloatArray = np.asarray(np.arange(element.size) - starts, dtype=np.float64)
    return element, before


def _certain_terms(y: FloatArray, kappa: FloatArray, c: FloatArray, n: FloatArray) -> FloatArray:
    # Sum over i = 1 .. n of expm1(d_i), where the d_i = s_i - (i + 1) log(1 + 1/c) fall by eta each. In terms of their
    # mean the sum is n (exp(mean) R - 1), with R = sinh(n eta / 2) / (n sinh(eta / 2)) >= 1.
    per_term = np.log1p(1.0 / c)
    mean = y - 0.5 * (n + 1.0) * kappa - 0.5 * (n + 3.0) * per_term
    half = 0.5 * (kappa + per_term)
    one, together = _sinch_minus_one(np.stack((half, n * half)))
    excess = (together - one) / (1.0 + one)
    return np.asarray(n * (np.expm1(mean) + np.exp(mean) * excess))


def _sinch_minus_one(z: FloatArray) -> FloatArray:
    square = np.minimum(z * z, 1.0)
    series = square * polynomial(square, SINCH_COEFFICIENTS)
    large = np.maximum(z, 1.0)
    return np.where(z > 1.0, np.sinh(large) / large - 1.0, series)


def open_terms(i: FloatArray, x: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E[(exp((x - v) / c) - 1)^+] and P(v < x) for v ~ Gamma(i + 1), i >= 1, by quadrature over the mass of v."""
    gains, probabilities = np.empty(i.shape), np.empty(i.shape)
    for part in blocks(i.size, NODES.size):
        gains[part], probabilities[part] = _open_terms(i[part], x[part], c[part])
    return gains, probabilities


def _open_terms(i: FloatArray, x: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    shape = i + 1.0
    root = np.sqrt(shape)
    shrink = c / (1.0 + c)  # exp(-v / c) times the density of v is a Gamma density, narrower by this factor
    low = shrink * np.maximum(shape + WIDTH * (1.0 - root), 0.0)
    width = np.maximum(np.minimum(x, shrink * (shape + WIDTH * (3.0 + root))) - low, 0.0)
    v = width[:, None] * NODES
    v += low[:, None]
    i_column = i[:, None]
    d = v - i_column
    d /= i_column
    np.maximum(d, float_info.epsilon - 1.0, out=d)
    density = np.log1p(d)
    density -= d
    density *= i_column
    density -= stirling(i)[:, None]
    np.exp(density, out=density)
    np.subtract(x[:, None], v, out=v)
    v /= c[:, None]
    np.maximum(v, 0.0, out=v)
    probabilities = width * np.vecdot(density, WEIGHTS)
    density *= np.expm1(v, out=v)
    return width * np.vecdot(density, WEIGHTS), probabilities


def stirling(i: FloatArray) -> FloatArray:
    """lgamma(i + 1) - (i log i - i), which is 0 at i = 0."""
    if i.size and i.max() < STIRLING.size:
        few: FloatArray = STIRLING[i.astype(np.intp)]
        return few
    large = np.maximum(i, STIRLING.size)
    inverse = 1.0 / (large * large)
    series = 0.5 * np.log(2.0 * np.pi * large) + (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse / 1260.0)) / large
    return np.where(i < STIRLING.size, STIRLING[np.minimum(i, STIRLING.size - 1).astype(np.intp)], series)


def _settled(columns: FloatArray, oscillations: FloatArray) -> tuple[FloatArray, FloatArray]:
    # psi(u) = u / D + gamma kappa^2 / (2 D^2) + oscillations, with D = alpha + gamma kappa. V is the integral of
    # exp(-u) psi(u). `start` is the integral up to infinity without the straight line: 1/Delta minus the integral of
    # the line.
    y, alpha, gamma, kappa, c, needed, fresh = columns
    smoothness = c * kappa
    ahead = 0.5 * kappa * smoothness / (1.0 + smoothness)
    half_square = 0.5 * kappa * kappa
    cubic = cubic_residual(kappa)
    start = c / (1.0 - c * np.expm1(-kappa)) * (ahead * (half_square - cubic) - cubic)
    value = residual_one(y) - ahead * np.expm1(-y) + start
    interval = y + ahead
    element, before = enumerate_counts(oscillations.astype(np.intp))
    if element.size:
        parts = _oscillations(before + 1.0, smoothness[element], kappa[element], needed[element])
        waves, swings = (np.bincount(element, weights=part, minlength=y.size) for part in parts)
        factor = 2.0 * kappa * (1.0 + smoothness)
        value -= factor * kappa * fresh * waves
        interval += factor * swings
    rate = alpha + gamma * kappa
    return value / rate, fresh * interval / rate


def cubic_residual(kappa: FloatArray) -> FloatArray:
    """kappa^2 / 2 - kappa + 1 - exp(-kappa), about kappa^3 / 6 for small kappa."""
    value = np.asarray(0.5 * kappa * kappa - kappa - np.expm1(-kappa))
    small = kappa <= SERIES_BELOW
    if small.any():
        k = kappa[small]
        value[small] = polynomial(k, CUBIC_COEFFICIENTS) * k * k * k
    return value


def _oscillations(
    k: FloatArray, smoothness: FloatArray, kappa: FloatArray, needed: FloatArray
) -> tuple[FloatArray, FloatArray]:
    # There is one complex pair of roots x of x / smoothness + 1 = exp(-x) for each k: x = 2 pi i k - log(1 + x /
    # smoothness).
    turn = 2j * np.pi * k
    x = turn - np.log(1.0 + turn / smoothness)
    for _ in range(3):
        total = smoothness + x
        x = x - (x - turn + np.log(total / smoothness)) * total / (total + 1.0)
    swing = np.exp(x * needed) / (x * (1.0 + smoothness + x))
    return (swing / (kappa - x)).real, swing.real
