"""Harmonic rates: the plan that starves no page."""

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

__all__ = ["harmonic_rates"]


def harmonic_rates(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
    *,
    minimum_rate: ArrayLike = 0.0,
    maximum_rate: ArrayLike = np.inf,
    hosts: ArrayLike | None = None,
    host_caps: ArrayLike | None = None,
) -> Allocation:
    """Divide a bandwidth so that every page that changes and matters is crawled, however fast it changes.

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
    With ρ the rate, Δ the change rate, μ the importance, the plan minimises the harmonic staleness cost
    -Σ μ ln(ρ / (ρ + Δ)) of Kolobov et al.; ρ / (ρ + Δ) is the freshness of a page which is crawled at random times
    (as a Poisson process). The slope μ Δ / (ρ (ρ + Δ)) grows without bound as the rate falls, so no page is given up,
    which the optimum of the other plans does to pages that change too fast. Solved for the rate,
    ρ = (sqrt(Δ² + 4 μ Δ / Λ) - Δ) / 2; it is computed as 2c / (Δ + sqrt(Δ² + 4c)) with c = μ Δ / Λ, where
    nothing cancels. Pages that never change, or do not matter, get their least rate.

    References
    ----------
    A. Kolobov, Y. Peres, C. Lu, E. Horvitz (2019). Staying up to date with online content changes using
    reinforcement learning for scheduling. NeurIPS 32.

    Examples
    --------
    >>> from crawlsched.bandwidth import harmonic_rates, refresh_rates
    >>> harmonic_rates([1.0, 100.0], 1.0, bandwidth=2.0).rates
    array([0.7366..., 1.2633...])
    >>> refresh_rates([1.0, 100.0], 1.0, bandwidth=2.0).rates
    array([2., 0.])
    """
    change, weight = page_arrays(change_rate=change_rate, importance=importance)
    gain = HarmonicGain(not_negative("change_rate", change), not_negative("importance", weight))
    limits = Limits.checked(change.size, minimum_rate, maximum_rate, hosts, host_caps)
    return divide(gain, limits, positive_number("bandwidth", bandwidth, "crawls per second"))


@dataclass(frozen=True)
class HarmonicGain:
    """Gain μ ln(ρ / (ρ + Δ)) of the rate ρ."""

    change_rate: FloatArray
    importance: FloatArray

    def of(self, pages: Pages) -> Self:
        """Give the gain of some of the pages."""
        return type(self)(self.change_rate[pages], self.importance[pages])

    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Give ρ = (sqrt(Δ² + 4c) - Δ) / 2 with c = μΔ/Λ."""
        useful = self.importance * self.change_rate
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            c = useful / threshold
            # sqrt(Δ² + (2 sqrt(c))²) without overflow; where nothing is useful, 0/0 stands for 0.
            rates = 2.0 * c / (self.change_rate + np.hypot(self.change_rate, 2.0 * np.sqrt(c)))
            rates = np.where(np.isinf(c), np.inf, rates)
        return np.where(useful > 0.0, rates, 0.0)

    def total(self, rates: FloatArray) -> FloatArray:
        """Give μ ln(ρ / (ρ + Δ)) = -μ ln(1 + Δ/ρ)."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            loss = self.importance * np.log1p(self.change_rate / rates)
        return -np.where(self.importance * self.change_rate > 0.0, loss, 0.0)

    def surplus(self, threshold: FloatArray | float) -> FloatArray:
        """Give the gain minus Λρ at the rate for the threshold."""
        rates = self.rates(threshold)
        with np.errstate(invalid="ignore"):
            return self.total(rates) - np.where(rates > 0.0, threshold * rates, 0.0)

    def slope(self, rates: FloatArray) -> FloatArray:
        """Give μΔ / (ρ (ρ + Δ))."""
        useful = self.importance * self.change_rate
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return np.where(useful > 0.0, useful / (rates * (rates + self.change_rate)), 0.0)
