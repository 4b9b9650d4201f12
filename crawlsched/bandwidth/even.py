"""Refresh rates: the best plan for crawls at even intervals, which is the best plan there is without announcements."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.allocation import Allocation
from crawlsched.bandwidth.arguments import not_negative, page_arrays, positive_number
from crawlsched.bandwidth.division import divide
from crawlsched.bandwidth.gain import Pages
from crawlsched.bandwidth.limits import Limits
from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import elapsed_at_value, greedy
from crawlsched.freshness import page_freshness

__all__ = ["EvenGain", "refresh_rates"]


def refresh_rates(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    minimum_rate: ArrayLike = 0.0,
    maximum_rate: ArrayLike = np.inf,
    hosts: ArrayLike | None = None,
    host_caps: ArrayLike | None = None,
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
    minimum_rate, maximum_rate : array_like of shape (n_pages,) or float
        Least and greatest crawls per second of each page.
    hosts : array_like of int, shape (n_pages,), optional
        Number of each page's host, an index into `host_caps`.
    host_caps : array_like of shape (n_hosts,), optional
        Greatest crawls per second of each host; ``inf`` for no cap.

    Returns
    -------
    Allocation
        The rates, and the threshold: the value that `crawlsched.crawl_value.greedy` has at the end of each interval.

    Raises
    ------
    ValueError
        If an argument is wrong, or if the least rates need more than the bandwidth or a host's cap.

    Notes
    -----
    Problem (5) of Busa-Fekete et al.: maximise Σ G(ξ; μ, Δ) with G = (μ/Δ) ξ (1 - exp(-Δ/ξ)), subject to Σ ξ = R.
    The slope of G is the crawl value μ/Δ (1 - (1 + x) exp(-x)) after the interval 1/ξ, with x = Δ/ξ, and at
    the optimum it is the threshold Λ for every page that is crawled; pages with μ/Δ ≤ Λ are given up. A page which
    never changes, or does not matter, gets its least rate.

    Memory is bounded by a few numbers per page besides the arguments, and ten million pages take some seconds.

    References
    ----------
    R. Busa-Fekete, J. Zimmert, A. György, L. Qiu, T. Sung, H. Shen, H. Choi, S. Subramaniam, L. Xiao (2025).
    A scalable crawling algorithm utilizing noisy change-indicating signals.

    J. Cho, H. Garcia-Molina (2003). Effective page refresh policies for web crawlers. ACM Transactions on
    Database Systems 28(4).

    Examples
    --------
    >>> from crawlsched.bandwidth import refresh_rates
    >>> allocation = refresh_rates([1.0, 3.0, 100.0], importance=1.0, bandwidth=2.0)
    >>> allocation.rates
    array([0.9947..., 1.0052..., 0.        ])
    >>> allocation.threshold
    0.2662
    """
    gain = EvenGain.checked(change_rate, importance)
    limits = Limits.checked(gain.change_rate.size, minimum_rate, maximum_rate, hosts, host_caps)
    return divide(gain, limits, positive_number("bandwidth", bandwidth, "crawls per second"))


@dataclass(frozen=True)
class EvenGain:
    """Gain G(ξ; μ, Δ) = (μ/Δ) ξ (1 - exp(-Δ/ξ)) of the rate ξ: the freshness of a page crawled at even intervals."""

    change_rate: FloatArray
    importance: FloatArray

    @classmethod
    def checked(cls, change_rate: ArrayLike, importance: ArrayLike) -> Self:
        """Make the gain from a caller's arguments, or say which of them is wrong."""
        change, weight = page_arrays(change_rate=change_rate, importance=importance)
        return cls(not_negative("change_rate", change), not_negative("importance", weight))

    def of(self, pages: Pages) -> Self:
        """Give the gain of some of the pages."""
        return type(self)(self.change_rate[pages], self.importance[pages])

    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Give one over the elapsed time after which the crawl value is the threshold."""
        useful = self.importance * self.change_rate > 0.0
        with np.errstate(divide="ignore", over="ignore"):
            return np.where(useful, 1.0 / self._interval(threshold), 0.0)

    def total(self, rates: FloatArray) -> FloatArray:
        """Give G, which is μ for a page that never changes."""
        return self.importance * page_freshness(rates, self.change_rate)

    def surplus(self, threshold: FloatArray | float) -> FloatArray:
        """Give the largest G - Λξ, which is μ exp(-Δ/ξ): at Λ = V(1/ξ) all other terms cancel."""
        interval = np.where(self.change_rate > 0.0, self._interval(threshold), 0.0)
        return self.importance * np.exp(-self.change_rate * interval)

    def slope(self, rates: FloatArray) -> FloatArray:
        """Give the crawl value at the end of each interval."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(greedy(1.0 / rates, self.change_rate, self.importance), dtype=np.float64)

    def _interval(self, threshold: FloatArray | float) -> FloatArray:
        return np.asarray(elapsed_at_value(threshold, self.change_rate, importance=self.importance))
