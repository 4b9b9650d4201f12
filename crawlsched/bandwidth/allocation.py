"""Allocation: how a bandwidth is divided among pages, and the threshold that proves the division best."""

from dataclasses import dataclass

from crawlsched.columns.array_types import FloatArray

__all__ = ["Allocation", "SignalAllocation"]


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """A division of the bandwidth among pages.

    Parameters
    ----------
    rates : ndarray of shape (n_pages,)
        Crawls per second of each page.
    threshold : float
        The crawl value at which the bandwidth reaches a page (the Lagrange multiplier Λ), in importance
        times seconds. 0 where the bandwidth is more than the pages can use.
    duality_gap : float
        How far the division can be from the best one at most, as a share of the objective: (dual - primal) /
        max(abs(dual), abs(primal)). Rounding can make it negative by about 1e-16.
    host_thresholds : ndarray of shape (n_hosts,) or None
        For each host the crawl value at which its cap reaches a page; a page is crawled at the larger of this
        and `threshold`. 0 where the cap does not bind. None if no hosts were given.
    """

    rates: FloatArray
    threshold: float
    duality_gap: float
    host_thresholds: FloatArray | None = None


@dataclass(frozen=True, kw_only=True)
class SignalAllocation(Allocation):
    """A division of the bandwidth among pages whose changes are announced.

    Parameters
    ----------
    effective_elapsed : ndarray of shape (n_pages,)
        The threshold policy of each page (ι in the paper): it is crawled as soon as its elapsed time plus β for
        every ChangeSignal reaches this, in seconds. ``inf`` where time alone never makes a crawl worth it.
    least_freshness : ndarray of shape (n_pages,)
        The same policy as a probability, exp(-α ι): a page is crawled as soon as the probability that its copy is
        fresh has fallen to this. It also holds where recall is 1, for which β is infinite.
    """

    effective_elapsed: FloatArray
    least_freshness: FloatArray
