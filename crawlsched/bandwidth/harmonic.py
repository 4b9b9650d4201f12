"""Harmonic rates: the plan that starves no page."""

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.allocation import Allocation
from crawlsched.bandwidth.division import divide
from crawlsched.bandwidth.gain import Gain
from crawlsched.columns.array_types import FloatArray

__all__ = ["harmonic_rates"]


def harmonic_rates(
    change_rate: ArrayLike,
    importance: ArrayLike,
    bandwidth: float,
) -> Allocation:
    """Divide a bandwidth so that every page that changes and matters is crawled, however fast it changes.

    Notes
    -----
    With ρ the rate, Δ the change rate, μ the importance, the plan minimises the harmonic staleness cost
    -Σ μ ln(ρ / (ρ + Δ)) of Kolobov et al.; ρ / (ρ + Δ) is the freshness of a page which is crawled at random times
    (as a Poisson process). The slope μ Δ / (ρ (ρ + Δ)) grows without bound as the rate falls, so no page is given up,
    which the optimum of the other plans does to pages that change too fast. Solved for the rate,
    ρ = (sqrt(Δ² + 4 μ Δ / Λ) - Δ) / 2; it is computed as 2c / (Δ + sqrt(Δ² + 4c)) with c = μ Δ / Λ, where
    nothing cancels. Pages that never change, or do not matter, get no crawls.

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
    return divide(HarmonicGain.checked(change_rate, importance), bandwidth)


class HarmonicGain(Gain):
    """Gain μ ln(ρ / (ρ + Δ)) of the rate ρ."""

    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Give ρ = (sqrt(Δ² + 4c) - Δ) / 2 with c = μΔ/Λ."""
        useful = self.importance * self.change_rate
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            c = useful / threshold
            # sqrt(Δ² + (2 sqrt(c))²) without overflow; where nothing is useful, 0/0 stands for 0.
            rates = 2.0 * c / (self.change_rate + np.hypot(self.change_rate, 2.0 * np.sqrt(c)))
            rates = np.where(np.isinf(c), np.inf, rates)
        return np.where(useful > 0.0, rates, 0.0)
