"""Refresh rates: the best plan for crawls at even intervals, which is the best plan there is without announcements."""

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.allocation import Allocation
from crawlsched.bandwidth.division import divide
from crawlsched.bandwidth.gain import Gain
from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import elapsed_at_value

__all__ = ["EvenGain", "refresh_rates"]


def refresh_rates(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> Allocation:
    """Divide a bandwidth so that freshness is as large as it can be without announcements.

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
        The rates, and the threshold: the value that `crawlsched.crawl_value.greedy` has at the end of each interval.

    Notes
    -----
    Problem (5) of Busa-Fekete et al.: maximise Σ G(ξ; μ, Δ) with G = (μ/Δ) ξ (1 - exp(-Δ/ξ)), subject to Σ ξ = R.
    The slope of G is the crawl value μ/Δ (1 - (1 + x) exp(-x)) after the interval 1/ξ, with x = Δ/ξ, and at
    the optimum it is the threshold Λ for every page that is crawled; pages with μ/Δ ≤ Λ are given up. So is a page
    which never changes, or does not matter.

    Memory is bounded by a few numbers per page besides the arguments, and ten million pages take some seconds.

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
    return divide(EvenGain.checked(change_rate, importance), bandwidth)


class EvenGain(Gain):
    """Gain G(ξ; μ, Δ) = (μ/Δ) ξ (1 - exp(-Δ/ξ)) of the rate ξ: the freshness of a page crawled at even intervals."""

    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Give one over the elapsed time after which the crawl value is the threshold."""
        interval = np.asarray(elapsed_at_value(threshold, self.change_rate, importance=self.importance))
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(self.importance * self.change_rate > 0.0, 1.0 / interval, 0.0)
