"""Elementary integrals that crawl values are made of, without cancellation anywhere.

Private to `crawlsched.crawl_value`: plain functions of float64 arrays, arguments unchecked. Every crawl value is an
integral of a positive function (see `docs/explanation/posterior_crawl_value.md`), while the papers print its closed
form, a small difference of large numbers for pages crawled recently. Each function here uses the closed form where its
two terms differ by at least a fifth, and the power series elsewhere.
"""

import math

import numpy as np

from crawlsched.columns.array_types import FloatArray

# exp(-40) * 41 is 2e-16: beyond it a crawl value equals its limit to rounding. It also keeps every exp() finite.
LARGEST_EXPONENT = 40.0

# Below this argument the series is used: there, the closed form would lose more than one digit.
RESIDUAL_SERIES_BELOW = 0.2
# Of arrays a series takes many calls: a little more is lost to rounding (4e-15), and it is seldom needed.
_FIRST_SERIES_BELOW = 0.1

# exp(y) - 1 - y = y**2 sum_k y**k / (k+2)!, and 10 terms leave 5e-16 / 10! at y = 0.2.
RESIDUAL_COEFFICIENTS = [1.0 / math.factorial(k + 2) for k in range(10)]

_BLOCK = 16384  # elements: a handful of temporaries of this size stay in the second-level cache


def residual_one(y: FloatArray) -> FloatArray:
    """R^1(y) = 1 - (1 + y) exp(-y), the integral of s exp(-s) from 0 to y."""
    y = np.asarray(y, dtype=np.float64)
    if y.size <= _BLOCK:
        return _residual_one(y)
    out = np.empty(y.shape)
    flat, flat_out = np.ravel(y), out.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        flat_out[start : start + _BLOCK] = _residual_one(flat[start : start + _BLOCK])
    return out


def _residual_one(y: FloatArray) -> FloatArray:
    y = np.minimum(y, LARGEST_EXPONENT)
    negative = np.expm1(-y)
    value = np.asarray(-negative - y * (1.0 + negative))
    small = np.asarray(y < RESIDUAL_SERIES_BELOW)
    if not small.any():
        return value
    # exp(-y) (exp(y) - 1 - y): every term of the series is positive.
    z = y[small]
    series = z * RESIDUAL_COEFFICIENTS[-1]
    for coefficient in RESIDUAL_COEFFICIENTS[-2:0:-1]:
        series += coefficient
        series *= z
    series += RESIDUAL_COEFFICIENTS[0]
    series *= z
    series *= z
    series *= 1.0 + negative[small]
    value[small] = series
    return value


def first_signal_integral(y: FloatArray, ratio: FloatArray, missed: FloatArray | None = None) -> FloatArray:
    """Integral from 0 to y of exp(-u) (1 - exp(-ratio u)) / ratio du, for ratio > 0 and y up to 40.

    It is the crawl value (times alpha / mu) where one announcement reaches the threshold, with ratio = gamma / alpha.
    `missed` is exp(-y) (exp(-ratio y) - 1), if that is known already.
    """
    both = 1.0 + ratio
    closed = np.asarray(missed / ratio if missed is not None else np.exp(-y) * np.expm1(-ratio * y) / ratio)
    closed -= np.expm1(-y)
    closed /= both
    x = both * y
    small = np.asarray(x < _FIRST_SERIES_BELOW)
    if not small.any():
        return closed
    # sum_k (-1)^k y^k ((1 + ratio)^(k-1) - 1) / (ratio k!), whose numerators obey z -> x z + y^(k+1).
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
