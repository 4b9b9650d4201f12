"""Crawl interval: the mean time between crawls of a page that is crawled once its copy has become doubtful enough.

This is ψ of Lemma 4 (Busa-Fekete et al.), as a function of y = α ι, the log-probability of freshness at which the page
is crawled, with its sign turned: y rises by α each second and by κ with each ChangeSignal, which come at the rate γ.
"""

import math

import numpy as np

from crawlsched.bandwidth.threshold_search import narrowed
from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["doubt_at_interval", "mean_interval"]

# A Gamma(a) variable lies outside a - 8.2 sqrt(a) + 8 and a + 8.2 sqrt(a) + 24 with a probability below 1e-15.
_SPREAD, _BELOW, _ABOVE = 8.2, 8.0, 24.0
# Oscillations below exp(-62/2) = 3e-14 are left out. They are used if announcements needed are at least this many,
# and if no more oscillations than this are left.
_SETTLED_EXPONENT = 62.0
_FEWEST_SETTLED = 4.0
_MOST_OSCILLATIONS = 8.0
# With more announcements needed than this, all oscillations together are below 1e-10 of the whole.
_ENDLESS = 1e9
_nodes, _weights = np.polynomial.legendre.leggauss(40)
_NODES, _WEIGHTS = (_nodes + 1.0) / 2.0, _weights / 2.0
_LOG_FACTORIALS = np.array([math.lgamma(i + 1.0) for i in range(64)])
_PAIRS = 4096  # pages and announcements that are integrated together: 40 nodes each


def mean_interval(doubt: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray) -> FloatArray:
    """Give the mean time until α t + κ N(t) reaches the doubt, where N counts announcements at the rate γ.

    Parameters
    ----------
    doubt : ndarray
        The level y, 0 or more, or ``inf``.
    alpha : ndarray
        Changes per second that nobody announces, positive.
    gamma : ndarray
        Announcements per second, 0 or more.
    kappa : ndarray
        What one announcement adds, 0 or more.

    Returns
    -------
    ndarray
        Seconds.

    Notes
    -----
    Lemma 4: ψ = (1/γ) Σ P(i + 1, c (y - i κ)) for i = 0 .. floor(y / κ), with c = γ/α and P the regularised
    incomplete gamma function (R^i in the paper). Its terms are 1 at first and 0 at last, to rounding; only those in
    between are integrated. Where many announcements are needed the renewal theorem does it at once:
    ψ = y/D + γκ²/(2D²) + Σ_x κ exp(x y/κ) / (α x (1 + cκ + x)) with D = α + γκ, over the roots x of
    x/(cκ) + 1 = exp(-x), of which a few are enough.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        plain = (gamma <= 1e-100 * alpha) | (kappa <= 1e-100)
        c = np.where(plain, 1.0, gamma / alpha)
        needed = np.where(plain, 0.0, doubt / kappa)
        # One announcement at most: (1 - exp(-γι)) / γ.
        first = np.where(plain, doubt / alpha, -np.expm1(-c * doubt) / np.where(plain, 1.0, gamma))
        several = np.flatnonzero(np.isfinite(doubt) & (needed >= 1.0))
        if several.size:
            part = [array[several] for array in np.broadcast_arrays(doubt, alpha, gamma, kappa, c, needed)]
            first[several] = _several(*part)
        return np.where(np.isinf(doubt), np.inf, first)


def doubt_at_interval(interval: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray) -> FloatArray:
    """Give the doubt at which the mean interval is this: the inverse of `mean_interval`."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        interval, alpha, gamma, kappa = np.broadcast_arrays(interval, alpha, gamma, kappa)
        plain = (gamma <= 1e-100 * alpha) | (kappa <= 1e-100)
        # One announcement at most, as long as that gives a doubt below κ.
        doubt = np.where(plain, alpha * interval, -np.log1p(-np.minimum(gamma * interval, 1.0)) * alpha / gamma)
        several = np.flatnonzero(~plain & (doubt > kappa) & np.isfinite(interval))
        if several.size:
            part = [array[several] for array in (interval, alpha, gamma, kappa)]
            doubt[several] = _doubt_of_several(*part)
        return np.where(np.isinf(interval), np.inf, doubt)


def _doubt_of_several(interval: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray) -> FloatArray:
    """Invert `mean_interval` by narrowing a bracket."""
    # By Wald's equation (α + γκ) ψ is the mean level reached, and no announcement overshoots by more than κ.
    level = (alpha + gamma * kappa) * interval
    low = np.maximum(np.maximum(level - kappa, kappa), alpha * interval) * (1.0 - 1e-12)
    high = np.maximum(level, low) * (1.0 + 1e-12)

    def shortfall(log_doubt: FloatArray, which: IndexArray) -> FloatArray:
        found = mean_interval(np.exp(log_doubt), alpha[which], gamma[which], kappa[which])
        return np.asarray((interval[which] - found) / (interval[which] + found))

    low, high, all_ = np.log(low), np.log(high), np.arange(interval.size)
    return np.exp(narrowed(shortfall, low, shortfall(low, all_), high, shortfall(high, all_), 1e-15, near=4e-16)[0])


def _several(
    doubt: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray, c: FloatArray, needed: FloatArray
) -> FloatArray:
    slope = c * kappa
    # The k-th oscillation decays as (1 + (2πk/slope)²)^(-needed/2); k - 1/2 also covers small slopes.
    exponent = _SETTLED_EXPONENT / needed
    waves = np.floor(0.5 + slope / (2.0 * np.pi) * np.sqrt(np.expm1(exponent) + exponent / slope))
    settled = (needed >= _FEWEST_SETTLED) & (waves <= _MOST_OSCILLATIONS) | (needed > _ENDLESS)
    waves = np.where(waves <= _MOST_OSCILLATIONS, waves, 0.0)
    interval = np.empty(doubt.shape)
    at = np.flatnonzero(settled)
    interval[at] = _settled(doubt[at], alpha[at], gamma[at], kappa[at], slope[at], waves[at])
    at = np.flatnonzero(~settled)
    interval[at] = _expected_announcements(doubt[at], kappa[at], c[at], needed[at]) / gamma[at]
    return interval


def _settled(
    doubt: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray, slope: FloatArray, waves: FloatArray
) -> FloatArray:
    drift = alpha + gamma * kappa
    share = slope / (1.0 + slope)  # of the drift, what announcements contribute
    straight = (doubt + 0.5 * kappa * share) / drift
    page, number = _enumerated(waves)
    turn = 2j * np.pi * (number + 1.0)
    slope, needed = slope[page], (doubt / kappa)[page]
    x = turn - np.log(1.0 + turn / slope)  # the root of x = turn - log(1 + x/slope), one pair for each turn
    for _ in range(4):  # Newton's method
        total = slope + x
        x = x - (x - turn + np.log(total / slope)) * total / (total + 1.0)
    wave = (np.exp(x * needed) / (x * (1.0 + slope + x))).real
    return np.asarray(straight + 2.0 * kappa / alpha * np.bincount(page, weights=wave, minlength=doubt.size))


def _expected_announcements(doubt: FloatArray, kappa: FloatArray, c: FloatArray, needed: FloatArray) -> FloatArray:
    """Give Σ P(i + 1, c (y - i κ)): the number of announcements until the doubt is reached, and the one that is."""
    slope = c * kappa
    # i with slope (needed - i) ≥ i + 1 + 8.2 sqrt(i + 1) + 24: these announcements come in time for sure.
    excess = np.maximum(slope * (needed + 1.0) - _ABOVE, 0.0)
    root = (np.sqrt(_SPREAD**2 + 4.0 * (1.0 + slope) * excess) - _SPREAD) / (2.0 * (1.0 + slope))
    begin = np.minimum(np.floor(root * root), np.floor(needed) + 1.0)
    # i with slope (needed - i) > i + 1 - 8.2 sqrt(i + 1): later ones do not come in time.
    root = (_SPREAD + np.sqrt(_SPREAD**2 + 4.0 * (1.0 + slope) * slope * (needed + 1.0))) / (2.0 * (1.0 + slope))
    end = np.minimum(np.floor(needed), np.floor(root * root)) + 1.0
    page, number = _enumerated(np.maximum(end - begin, 0.0))
    i = begin[page] + number
    x = c[page] * np.maximum(doubt[page] - i * kappa[page], 0.0)
    terms = np.empty(page.size)
    for start in range(0, page.size, _PAIRS):
        pairs = slice(start, start + _PAIRS)
        terms[pairs] = _gamma_distribution(i[pairs], x[pairs])
    return begin + np.bincount(page, weights=terms, minlength=doubt.size)


def _enumerated(counts: FloatArray) -> tuple[IndexArray, FloatArray]:
    """List each index as often as its count says, and number its occurrences from 0."""
    whole = counts.astype(np.intp)
    index = np.repeat(np.arange(whole.size), whole)
    return index, (np.arange(index.size) - np.repeat(np.cumsum(whole) - whole, whole)).astype(np.float64)


def _gamma_distribution(i: FloatArray, x: FloatArray) -> FloatArray:
    """Give P(i + 1, x), the probability that a Poisson variable of mean x exceeds i: by Gauss-Legendre quadrature."""
    shape = i + 1.0
    low = np.minimum(np.maximum(shape + _BELOW - _SPREAD * np.sqrt(shape), 0.0), x)
    high = np.minimum(x, shape + _SPREAD * np.sqrt(shape) + _ABOVE)
    v = low[:, None] + (high - low)[:, None] * _NODES
    # v^i exp(-v) / i! around its peak at v = i, where its logarithm is i (log(1 + d) - d) with d = (v - i) / i.
    peak = np.maximum(i, 1.0)[:, None]
    d = (v - peak) / peak
    log_density = peak * (np.log1p(np.maximum(d, -1.0)) - d) - _stirling(np.maximum(i, 1.0))[:, None]
    integral = (high - low) * (np.exp(log_density) @ _WEIGHTS)
    return np.where(i > 0.0, integral, -np.expm1(-x))


def _stirling(i: FloatArray) -> FloatArray:
    """Give log(i!) - (i log(i) - i) without the cancellation that large i would bring."""
    exact = _LOG_FACTORIALS[np.minimum(i, 63.0).astype(np.intp)] - (i * np.log(i) - i)
    inverse = 1.0 / (i * i)
    series = 0.5 * np.log(2.0 * np.pi * i) + (1.0 / 12.0 - inverse * (1.0 / 360.0 - inverse / 1260.0)) / i
    return np.where(i < 32.0, exact, series)
