"""When crawl values reach a level: the parts that all formulas have in common."""

from __future__ import annotations

import math
from sys import float_info

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.columns.blocks import blocks
from crawlsched.crawl_value.terms import LARGEST_EXPONENT, first_signal_integral, noisy_terms

__all__ = ["HIGHEST", "Grid", "gain", "growth", "noisy_bounds", "tangent_wait"]

#: The highest crawl value, so that the product of two crawl values is finite. A page that never changes gets it after
#: an announcement, if the rule trusts every announcement.
HIGHEST = math.sqrt(float_info.max)
# A matrix product has at most this number of rows. OpenBLAS divides larger products among threads, which takes ten
# times the CPU time.
_PRODUCT = 64


def gain(elapsed: FloatArray, rates: FloatArray) -> FloatArray:
    """Return the GREEDY crawl value of importance 1, (1 - (1 + x) exp(-x)) / r with x = r τ.

    Its rounding error is below 1e-15 τ for all rates.
    """
    # Beyond x = 40, exp(-x) is negligible, and a larger x would only add rounding errors.
    minus_x = np.maximum(rates * -elapsed, -LARGEST_EXPONENT)
    lost = np.expm1(minus_x)
    # 1 - (1 + x) e^-x = -(e^-x - 1) - x (e^-x - 1) - x. In this form no exponential is subtracted from 1.
    value = lost * minus_x
    value -= lost
    value += minus_x
    value /= rates
    return value


def growth(elapsed: FloatArray, rates: FloatArray) -> FloatArray:
    """Return the derivative of `gain` with respect to the elapsed time, x exp(-x) with x = r τ."""
    x = np.minimum(rates * elapsed, LARGEST_EXPONENT)
    value: FloatArray = x * np.exp(-x)
    return value


class Grid:
    """A grid of change rates, with the crawl value of each rate after some elapsed times."""

    def __init__(self, rates: FloatArray) -> None:
        self.rates = rates
        self.elapsed: FloatArray = np.geomspace(1e-3, 1e11, 384)
        self.gain = gain(self.elapsed[:, np.newaxis], rates)
        # Two successive times have the ratio 1.3. Between them, a crawl value is approximated by a power of the time.
        self._times: FloatArray = np.geomspace(self.elapsed[0], self.elapsed[-1], 128)
        self._values = gain(self._times, rates[:, np.newaxis]).astype(np.float32)

    def elapsed_at(self, weights: FloatArray, aims: FloatArray, elapsed: FloatArray) -> FloatArray:
        """Return the seconds τ after which Σ w (1 - (1 + r τ) exp(-r τ)) / r reaches `aims`, above 0; inf: never.

        `weights` has a row for each page, and `aims` has a column for each page, in ascending order. After the first
        time later than a page's `elapsed`, the same time is returned for the higher aims: an early estimate.
        """
        found, n = np.empty(aims.shape), len(weights)
        for block in blocks(n, self._times.size):
            values = np.empty((block.stop - block.start, self._times.size), np.float32)
            for start in range(0, len(values), _PRODUCT):
                part = slice(start, start + _PRODUCT)
                np.matmul(weights[block][part].astype(np.float32), self._values, out=values[part])
            times = found[:, block]
            times[0] = self._elapsed_at(values, aims[0, block])
            for row in range(1, len(aims)):
                times[row] = times[row - 1]
                past = (times[row] <= elapsed[block]).nonzero()[0]
                times[row, past] = self._elapsed_at(values[past], aims[row, block][past])
        return found

    def _elapsed_at(self, values: FloatArray, aim: FloatArray) -> FloatArray:
        times, is_below = self._times, values < aim[:, np.newaxis].astype(np.float32)
        above = np.maximum(is_below.argmin(axis=1), 1)  # values grow with time, so this is the first that is not below
        row = np.arange(aim.size)
        low, high = np.log(values[row, above - 1]), np.log(values[row, above])
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.minimum((np.log(aim) - low) / (high - low), 1.0)
        elapsed = times[above - 1] * (times[1] / times[0]) ** np.where(np.isfinite(part), part, 1.0)
        found: FloatArray = np.where(is_below[:, -1], np.inf, elapsed)
        return found

    def noisy(self, weights: FloatArray, elapsed: FloatArray, signals: FloatArray) -> FloatArray:
        """Return crawl values of importance 1, their first derivatives, and bounds on the second; shape (3, n)."""
        rates, (rate, weight, _), stale = self.rates, signals, self._stale(elapsed, signals)
        alpha = np.broadcast_to(rates, stale.shape).ravel()
        value, slope = noisy_terms(stale.ravel(), alpha, rate.repeat(rates.size), weight.repeat(rates.size))
        return self._expected(weights, stale, value.reshape(stale.shape), slope.reshape(stale.shape))

    def noisy_bounds(self, weights: FloatArray, elapsed: FloatArray, signals: FloatArray) -> FloatArray:
        """Return upper bounds of what `noisy` returns, at a fifth of its cost; shape (3, n)."""
        stale = self._stale(elapsed, signals)
        value, slope = noisy_bounds(stale, self.rates, *signals[:2, :, np.newaxis])
        return self._expected(weights, stale, value, slope)

    def _stale(self, elapsed: FloatArray, signals: FloatArray) -> FloatArray:
        stale: FloatArray = elapsed[:, np.newaxis] * self.rates + signals[2][:, np.newaxis]
        return stale

    def _expected(self, weights: FloatArray, stale: FloatArray, value: FloatArray, slope: FloatArray) -> FloatArray:
        parts = value, slope * self.rates, np.exp(-stale) * self.rates
        return np.stack([np.vecdot(weights, part) for part in parts])


def noisy_bounds(
    y: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return upper bounds of the two results of `noisy_terms`; the arrays are broadcast against each other.

    Notes
    -----
    The value is the integral of exp(-u) psi(u) from 0 to y. Until u = kappa one announcement is enough, and psi(u) is
    (1 - exp(-c u)) / gamma with c = gamma / alpha. Beyond, it is at most u / alpha, the time without announcements. By
    Wald's identity it is at most (u + kappa) / (alpha + gamma kappa), since the last announcement goes beyond u by at
    most kappa. For all parameters, the bound of the value is at most a third too high.
    """
    y, kappa, c = np.minimum(y, LARGEST_EXPONENT), np.minimum(kappa, LARGEST_EXPONENT), gamma / alpha
    first, later = np.minimum(y, kappa), np.maximum(y, kappa)
    fresh, at_kappa = np.exp(-y), np.exp(-kappa)
    missed, after = np.expm1(-c * first), np.minimum(fresh, at_kappa)
    alone = (1.0 + kappa) * at_kappa - (1.0 + later) * after  # the integral of u exp(-u) from kappa on
    drift = 1.0 + c * kappa  # of the log-probability of freshness, in units of alpha
    helped = (alone + kappa * (at_kappa - after)) / drift
    value = first_signal_integral(first, c, np.maximum(fresh, at_kappa) * missed) + np.minimum(alone, helped)
    psi = np.where(y <= kappa, -missed / c, np.minimum(y, (y + kappa) / drift))
    return value / alpha, fresh * psi / alpha


def tangent_wait(missing: FloatArray, slope: FloatArray, curvature: FloatArray) -> FloatArray:
    """Return a lower bound, in seconds, of the time in which a value grows by the amount `missing`; inf: never.

    By Lemma 4 of the noisy-signals paper the slope of a value is μ Σ w α exp(-α ι) ψ(ι), and ψ grows by at most one
    second per second. So d seconds later the value has grown by at most slope d + c d²/2, with c = μ Σ w α exp(-α ι).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rise = slope + np.sqrt(slope * slope + 2.0 * curvature * missing)
        wait: FloatArray = np.where(missing > 0.0, np.where(rise > 0.0, 2.0 * missing / rise, np.inf), 0.0)
    return wait
