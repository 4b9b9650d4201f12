"""The best plans without announcements: at even intervals, at random times, or with crawls for every page."""

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.division import Allocation, checked, divide
from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import elapsed_at_value

__all__ = [
    "even_rates",
    "harmonic_rates",
    "harmonic_wanted",
    "poisson_crawl_rates",
    "poisson_wanted",
    "refresh_rates",
]


def refresh_rates(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> Allocation:
    """Divide a bandwidth so that freshness is as high as possible without announcements.

    Parameters
    ----------
    change_rate : array_like of shape (n_pages,)
        Changes per second.
    importance : array_like of shape (n_pages,) or float
        Weight of a fresh copy.
    bandwidth : float
        Crawls per second, positive.

    Returns
    -------
    Allocation
        The rates, and the threshold: the crawl value `crawlsched.crawl_value.greedy` at the end of each interval.

    Notes
    -----
    This is problem (5) of Busa-Fekete et al.: maximise Σ G(ξ; μ, Δ), subject to Σ ξ = R, with
    G = (μ/Δ) ξ (1 - exp(-Δ/ξ)). After the interval 1/ξ the slope of G is the crawl value μ/Δ (1 - (1 + x) exp(-x)),
    with x = Δ/ξ. At the optimum this slope equals the threshold Λ for every page that is crawled. Pages with μ/Δ ≤ Λ
    are not crawled. Pages that never change or have no importance are not crawled, either.

    Besides the arguments, the function needs memory for a few numbers per page. Ten million pages take some seconds.

    References
    ----------
    R. Busa-Fekete et al. (2025). A scalable crawling algorithm utilizing noisy change-indicating signals.
    J. Cho, H. Garcia-Molina (2003). Effective page refresh policies for web crawlers.

    Examples
    --------
    >>> from crawlsched.bandwidth import refresh_rates
    >>> allocation = refresh_rates([1.0, 3.0, 100.0], importance=1.0, bandwidth=2.0)
    >>> allocation.rates
    array([0.9947..., 1.0052..., 0.        ])
    >>> allocation.threshold
    0.2662
    """
    return divide(even_rates, checked(change_rate, importance), bandwidth)


def even_rates(threshold: FloatArray | float, change_rate: FloatArray, importance: FloatArray) -> FloatArray:
    """Return the rates at which each page's crawl value reaches the threshold at the end of its interval."""
    interval = np.asarray(elapsed_at_value(threshold, change_rate, importance=importance))
    with np.errstate(divide="ignore", over="ignore"):
        return np.where(importance * change_rate > 0.0, 1.0 / interval, 0.0)


def harmonic_rates(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> Allocation:
    """Divide a bandwidth so that every page that changes and has importance is crawled, even if it changes fast.

    The arguments are those of `refresh_rates`.

    Notes
    -----
    With ρ the rate, Δ the change rate and μ the importance, the plan minimises the harmonic staleness cost
    -Σ μ ln(ρ / (ρ + Δ)) of Kolobov et al. Here ρ / (ρ + Δ) is the freshness of a page that is crawled at random times
    (as a Poisson process). The slope μ Δ / (ρ (ρ + Δ)) grows without bound as the rate falls, so every such page gets
    crawls. The other plans give up pages that change too fast. Solved for the rate, ρ = (sqrt(Δ² + 4 μ Δ / Λ) - Δ) / 2.
    It is computed as 2c / (Δ + sqrt(Δ² + 4c)) with c = μ Δ / Λ, which avoids cancellation. Pages that never change or
    have no importance get no crawls.

    References
    ----------
    A. Kolobov et al. (2019). Staying up to date with online content changes using reinforcement learning. NeurIPS 32.

    Examples
    --------
    >>> from crawlsched.bandwidth import harmonic_rates, refresh_rates
    >>> harmonic_rates([1.0, 100.0], 1.0, bandwidth=2.0).rates
    array([0.7366..., 1.2633...])
    >>> refresh_rates([1.0, 100.0], 1.0, bandwidth=2.0).rates
    array([2., 0.])
    """
    return divide(harmonic_wanted, checked(change_rate, importance), bandwidth)


def harmonic_wanted(threshold: FloatArray | float, change_rate: FloatArray, importance: FloatArray) -> FloatArray:
    """Return ρ = (sqrt(Δ² + 4c) - Δ) / 2 with c = μΔ/Λ, the rate at which μ ln(ρ / (ρ + Δ)) has the slope Λ."""
    useful = importance * change_rate
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        c = useful / threshold
        # sqrt(Δ² + (2 sqrt(c))²) is computed without overflow. If a page needs no crawls, 0/0 gives the rate 0.
        rates = 2.0 * c / (change_rate + np.hypot(change_rate, 2.0 * np.sqrt(c)))
        rates = np.where(np.isinf(c), np.inf, rates)
    return np.where(useful > 0.0, rates, 0.0)


def poisson_crawl_rates(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> Allocation:
    """Divide a bandwidth so that freshness is as high as possible if pages are crawled at random times.

    The arguments are those of `refresh_rates`.

    Notes
    -----
    The plan maximises Σ μ p / (p + Δ), the freshness of pages crawled as Poisson processes with rates p. The result is
    that of Algorithm 2 of Azar et al. and of equation (10) of Avrachenkov, Patil and Thoppe. With Λ the threshold, p is
    sqrt(μ Δ / Λ) - Δ where that is positive, and 0 elsewhere.

    References
    ----------
    Y. Azar et al. (2018). Tractable near-optimal policies for crawling. PNAS 115(32).
    K. Avrachenkov, K. Patil, G. Thoppe (2020). Change rate estimation and optimal freshness in web page crawling.

    Examples
    --------
    >>> from crawlsched.bandwidth import poisson_crawl_rates
    >>> allocation = poisson_crawl_rates([1.0, 4.0, 100.0], 1.0, bandwidth=4.0)
    >>> allocation.rates
    array([2., 2., 0.])
    >>> allocation.threshold
    0.111
    """
    return divide(poisson_wanted, checked(change_rate, importance), bandwidth)


def poisson_wanted(threshold: FloatArray | float, change_rate: FloatArray, importance: FloatArray) -> FloatArray:
    """Return p = sqrt(μΔ/Λ) - Δ, without cancellation as Δ (μ/(ΔΛ) - 1) / (sqrt(μ/(ΔΛ)) + 1)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        steepness = importance / change_rate / threshold
        rates = change_rate * ((steepness - 1.0) / (np.sqrt(steepness) + 1.0))
        rates = np.where(np.isinf(steepness), np.inf, np.maximum(rates, 0.0))
    return np.where(importance * change_rate > 0.0, rates, 0.0)
