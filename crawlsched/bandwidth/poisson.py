"""Poisson crawl rates: the best plan for crawls at random times."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.allocation import Allocation
from crawlsched.bandwidth.arguments import not_negative, page_arrays, positive_number
from crawlsched.bandwidth.division import host_limited, relative_duality_gap, within
from crawlsched.bandwidth.gain import Pages
from crawlsched.bandwidth.limits import Limits
from crawlsched.columns.array_types import FloatArray

__all__ = ["poisson_crawl_rates"]


def poisson_crawl_rates(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    minimum_rate: ArrayLike = 0.0,
    maximum_rate: ArrayLike = np.inf,
    hosts: ArrayLike | None = None,
    host_caps: ArrayLike | None = None,
) -> Allocation:
    """Divide a bandwidth so that freshness is largest when pages are crawled at random times.

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
        The rates, and the threshold Λ.

    Raises
    ------
    ValueError
        If an argument is wrong, or if the least rates need more than the bandwidth or a host's cap.

    Notes
    -----
    Maximises Σ μ p / (p + Δ), the freshness of pages crawled as Poisson processes with rates p: Azar et al.,
    Algorithm 2; equation (10) of Avrachenkov, Patil and Thoppe. With Λ the threshold, p = sqrt(μ Δ / Λ) - Δ where
    that is positive. In s = 1 / sqrt(Λ) every page's rate is a line between two corners, at its least and at its
    greatest rate; the corners are sorted, the two between which the rates add up to the bandwidth are found by
    halving, and there s is the solution of one linear equation. The result is exact, in O(n log n) operations.
    (Azar et al. have no least and greatest rates and so one corner per page, sqrt(Δ/μ), and sum up from the
    smallest; here sums are taken afresh for each halving, so that they do not cancel.) Caps of hosts are turned into
    greatest rates first, by a search.

    References
    ----------
    Y. Azar, E. Horvitz, E. Lubetzky, Y. Peres, D. Shahaf (2018). Tractable near-optimal policies for crawling.
    Proceedings of the National Academy of Sciences 115(32), 8099-8103.

    K. Avrachenkov, K. Patil, G. Thoppe (2020). Change rate estimation and optimal freshness in web page crawling.
    VALUETOOLS 2020.

    Examples
    --------
    >>> from crawlsched.bandwidth import poisson_crawl_rates
    >>> allocation = poisson_crawl_rates([1.0, 4.0, 100.0], 1.0, bandwidth=4.0)
    >>> allocation.rates
    array([2., 2., 0.])
    >>> allocation.threshold
    0.111
    """
    change, weight = page_arrays(change_rate=change_rate, importance=importance)
    gain = PoissonGain(not_negative("change_rate", change), not_negative("importance", weight))
    limits = Limits.checked(change.size, minimum_rate, maximum_rate, hosts, host_caps)
    budget = positive_number("bandwidth", bandwidth, "crawls per second")
    limits.check_bandwidth(budget)
    maximum, host_thresholds = host_limited(gain, limits)
    rates, threshold = _exact_rates(gain, limits.minimum_rate, maximum, budget)
    gap = relative_duality_gap(gain, limits, budget, rates, threshold, host_thresholds)
    return Allocation(rates=rates, threshold=threshold, duality_gap=gap, host_thresholds=host_thresholds)


def _exact_rates(
    gain: "PoissonGain", minimum: FloatArray, maximum: FloatArray, bandwidth: float
) -> tuple[FloatArray, float]:
    """Solve by sorting the corners of the rates, which are lines between them in s = 1 / sqrt(threshold)."""
    per_s = np.sqrt(gain.importance) * np.sqrt(gain.change_rate)
    room = np.where(per_s > 0.0, maximum - minimum, 0.0)
    spare = bandwidth - float(np.sum(minimum))
    if spare <= 0.0:
        return minimum.copy(), float(gain.slope(minimum).max(initial=0.0))
    if np.sum(room) <= spare:
        return np.where(per_s > 0.0, maximum, minimum), 0.0
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        first = (minimum + gain.change_rate) / per_s
        last = np.where(room > 0.0, first + room / per_s, -np.inf)
    corners = np.concatenate([first[room > 0.0], last[(room > 0.0) & np.isfinite(room)]])
    corners.sort()

    def excess(s: float) -> FloatArray:
        # Rates above the minimum. Written with s - first, which is exact near the corner where a page starts.
        with np.errstate(invalid="ignore"):
            return np.where(s < last, np.maximum(s - first, 0.0) * per_s, room)

    low, high = -1, corners.size  # excess(corners[low]) <= spare < excess(corners[high]); none below the first corner
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if np.sum(excess(corners[middle])) <= spare else (low, middle)
    s = float(corners[max(low, 0)])
    rates = excess(s) if low >= 0 else np.zeros_like(room)
    # Between two corners every rate is linear in s, and beyond the last one those without a greatest rate rise.
    if high < corners.size:
        rise, width = excess(corners[high]) - rates, float(corners[high]) - s
    else:
        rise, width = np.where((room > 0.0) & (s < last), per_s, 0.0), 1.0
    step = (spare - float(np.sum(rates))) / float(np.sum(rise))
    greatest = np.where(per_s > 0.0, maximum, minimum)
    # Rounded up: one digit too low, a threshold credits pages that are hardly worth a crawl with more than they have.
    threshold = (1.0 + 8.0 * np.finfo(np.float64).eps) / (s + step * width) ** 2
    return within(minimum, greatest, rates + step * rise), float(threshold)


@dataclass(frozen=True)
class PoissonGain:
    """Gain μ p / (p + Δ) of the rate p."""

    change_rate: FloatArray
    importance: FloatArray

    def of(self, pages: Pages) -> Self:
        """Give the gain of some of the pages."""
        return type(self)(self.change_rate[pages], self.importance[pages])

    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Give p = sqrt(μΔ/Λ) - Δ, written so that it does not cancel: Δ (μ/(ΔΛ) - 1) / (sqrt(μ/(ΔΛ)) + 1)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            steepness = self.importance / self.change_rate / threshold
            rates = self.change_rate * ((steepness - 1.0) / (np.sqrt(steepness) + 1.0))
            rates = np.where(np.isinf(steepness), np.inf, np.maximum(rates, 0.0))
        return np.where(self.importance * self.change_rate > 0.0, rates, 0.0)

    def total(self, rates: FloatArray) -> FloatArray:
        """Give μ p / (p + Δ); μ for a page that never changes."""
        with np.errstate(invalid="ignore"):
            return self.importance * np.where(self.change_rate > 0.0, rates / (rates + self.change_rate), 1.0)

    def surplus(self, threshold: FloatArray | float) -> FloatArray:
        """Give the largest μ p / (p + Δ) - Λp, which is (sqrt(μ) - sqrt(ΔΛ))² as long as p is positive."""
        root = np.sqrt(self.importance) - np.sqrt(self.change_rate) * np.sqrt(threshold)
        return np.asarray(np.square(np.maximum(root, 0.0)))

    def slope(self, rates: FloatArray) -> FloatArray:
        """Give μΔ / (p + Δ)²."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.change_rate / (rates + self.change_rate)
            slope = self.importance * share / (rates + self.change_rate)
        return np.where(self.change_rate > 0.0, slope, 0.0)
