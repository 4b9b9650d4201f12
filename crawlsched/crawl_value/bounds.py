"""Bounds of the noisy-signals crawl value: elementary, at most a sixth too high, at a small part of what it costs.

The crawl value is V(y) = mu times the integral from 0 to y of exp(-u) psi(u), where psi(u) is the mean time until
alpha t + kappa N(t) reaches u, N a Poisson process of rate gamma (Lemma 4 of Busa-Fekete et al., 2025; see `terms`).
With D = alpha + gamma kappa and c = gamma / alpha, Wald's identity gives D psi(u) = u + the mean by which u is
overshot. Up to kappa, where one announcement is enough, psi(u) = (1 - exp(-c u)) / gamma, so that the overshoot is
highest at u = log(1 + c kappa) / c, where it is

    omega = kappa - log(1 + c kappa) / c.

Beyond kappa the first announcement either leaves a rest that is overshot by what comes after it, or comes so late that
it overshoots by just what it would at kappa. So the mean overshoot at u is a mean of those at or below u - kappa, or
at kappa, and is nowhere above omega (induction over multiples of kappa). Hence

    psi(u) <= (u + omega) / D  for u > kappa,

and the integral of that is elementary. Up to kappa psi is what it is, and up to 2 kappa its second term is elementary,
too; so there the bound is the value, but for rounding and for 1e-10 of it. Where most is waited for, y above 32, the
value has its limit 1 / Delta.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crawlsched.columns.array_types import FloatArray

__all__ = ["element_bounds", "noisy_bounds"]

# Up to here the first terms of a series, whose signs alternate, instead of the whole, of which no digits would be left.
_SERIES_BELOW = 1e-3
# The second term is a difference of numbers up to 1: with less than this it could lose too much of the whole.
_LEAST_WEIGHT, _LEAST_RATIO = 0.05, 0.01
# From here on exp(-y) psi(y) adds nothing any more.
_LIMIT_FROM = 32.0


def noisy_bounds(
    y: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return what the crawl value per unit of importance, and its derivative with respect to y, do not exceed.

    But by rounding: 1e-11 of themselves. Arrays are broadcast; gamma and kappa are above 0 and finite. The third array
    says where they are not known to be the value and its derivative themselves.
    """
    c = gamma / alpha
    reach = np.where((kappa >= _LEAST_WEIGHT) & (c >= _LEAST_RATIO), 2.0 * kappa, kappa)
    near = np.minimum(y, reach)
    missed = np.expm1(-c * near)
    # Not 1 + expm1: there the last digits of small ones are lost.
    lasts = np.exp(-near)
    value = lasts * missed
    value /= c
    value -= np.expm1(-near)
    value /= 1.0 + c
    small = (1.0 + c) * near < _SERIES_BELOW
    if small.any():
        series = near * ((3.0 + (3.0 + c) * c) / 12.0)
        series -= (2.0 + c) / 3.0
        series *= near
        series += 1.0
        series *= near
        series *= 0.5 * near
        value = np.where(small, series, value)
    value /= alpha
    mean_time = missed / -gamma
    left = np.maximum(near - kappa, 0.0)
    if left.any():
        gain, comes = _second_term(left, c)
        value += np.exp(-kappa) / gamma * gain
        mean_time += comes / gamma
    beyond = y > reach
    if not beyond.any():
        return value, lasts * mean_time, beyond
    further = y - near
    gone = -np.expm1(-further)
    overshot = kappa - np.log1p(c * kappa) / c
    rest = np.where(further < _SERIES_BELOW, 0.5 * further * further, gone - further * (1.0 - gone))
    rest += (reach + overshot) * gone
    rate = alpha + gamma * kappa
    rest *= lasts
    rest /= rate
    value += rest
    value = np.minimum(value, 1.0 / (alpha - gamma * np.expm1(-kappa)))
    return value, np.exp(-y) * np.where(beyond, (y + overshot) / rate, mean_time), beyond & (y < _LIMIT_FROM)


def _second_term(s: FloatArray, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return E[(exp(-T) - exp(-s))^+] and P(T < s) for T ~ Gamma(2, rate c)."""
    x = c * s
    stays, none = np.exp(-s), np.exp(-x)
    comes = 1.0 - (1.0 + x) * none
    share = c / (1.0 + c)
    gain = share * share * (1.0 - (1.0 + x + s) * stays * none)
    gain -= stays * comes
    return np.maximum(gain, 0.0), comes


def element_bounds(y: float, alpha: float, gamma: float, kappa: float) -> tuple[float, float]:
    """Return the first two of what `noisy_bounds` returns, for one element."""
    c = gamma / alpha
    reach = 2.0 * kappa if kappa >= _LEAST_WEIGHT and c >= _LEAST_RATIO else kappa
    near = min(y, reach)
    missed, lasts = math.expm1(-c * near), math.exp(-near)
    if (1.0 + c) * near < _SERIES_BELOW:
        series = (near * ((3.0 + (3.0 + c) * c) / 12.0) - (2.0 + c) / 3.0) * near + 1.0
        value = series * near * (0.5 * near) / alpha
    else:
        value = (lasts * missed / c - math.expm1(-near)) / ((1.0 + c) * alpha)
    mean_time = missed / -gamma
    s = near - kappa
    if s > 0.0:
        x, stays, none, share = c * s, math.exp(-s), math.exp(-c * s), c / (1.0 + c)
        comes = 1.0 - (1.0 + x) * none
        gain = share * share * (1.0 - (1.0 + x + s) * stays * none) - stays * comes
        value += math.exp(-kappa) / gamma * max(gain, 0.0)
        mean_time += comes / gamma
    if y <= reach:
        return value, lasts * mean_time
    further, rate = y - reach, alpha + gamma * kappa
    gone, overshot = -math.expm1(-further), kappa - math.log1p(c * kappa) / c
    rest = 0.5 * further * further if further < _SERIES_BELOW else gone - further * (1.0 - gone)
    value += lasts * ((reach + overshot) * gone + rest) / rate
    return min(value, 1.0 / (alpha - gamma * math.expm1(-kappa))), math.exp(-y) * (y + overshot) / rate
