"""Poisson crawl rates: the best plan for crawls at random times."""

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.allocation import Allocation
from crawlsched.bandwidth.division import divide
from crawlsched.bandwidth.gain import Gain
from crawlsched.columns.array_types import FloatArray

__all__ = ["poisson_crawl_rates"]


def poisson_crawl_rates(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> Allocation:
    """Divide a bandwidth so that freshness is largest when pages are crawled at random times.

    Notes
    -----
    Maximises Σ μ p / (p + Δ), the freshness of pages crawled as Poisson processes with rates p: the result of
    Algorithm 2 of Azar et al.; equation (10) of Avrachenkov, Patil and Thoppe. With Λ the threshold,
    p = sqrt(μ Δ / Λ) - Δ where that is positive.

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
    return divide(PoissonGain.checked(change_rate, importance), bandwidth)


class PoissonGain(Gain):
    """Gain μ p / (p + Δ) of the rate p."""

    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Give p = sqrt(μΔ/Λ) - Δ, written so that it does not cancel: Δ (μ/(ΔΛ) - 1) / (sqrt(μ/(ΔΛ)) + 1)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            steepness = self.importance / self.change_rate / threshold
            rates = self.change_rate * ((steepness - 1.0) / (np.sqrt(steepness) + 1.0))
            rates = np.where(np.isinf(steepness), np.inf, np.maximum(rates, 0.0))
        return np.where(self.importance * self.change_rate > 0.0, rates, 0.0)
