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
    """

    rates: FloatArray
    threshold: float


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
