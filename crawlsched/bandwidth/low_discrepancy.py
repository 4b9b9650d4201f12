"""Low-discrepancy schedule: a page for each slot, such that each page is crawled close to its rate at all times."""

from heapq import heappop, heappush
from math import ceil

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.division import not_negative, page_arrays
from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["low_discrepancy_schedule"]


def low_discrepancy_schedule(rates: ArrayLike, n_slots: int) -> IndexArray:
    """Assign a page to each slot; after any number of slots, each page is within one crawl of its share.

    Parameters
    ----------
    rates : array_like of shape (n_pages,)
        Crawls per second, or in any other unit. Only the ratios of the rates matter, since every slot is used.
    n_slots : int
        How many slots to fill.

    Notes
    -----
    Algorithm 3 of Azar et al. (LDS in Busa-Fekete et al., section 6.4), which is the schedule of Tijdeman. Let q be a
    page's share of all rates, x the number of its crawls so far, k the number of pages whose rate is not 0, and d = 1 /
    (2k - 2). The page may be crawled again from the first slot n with q n - x ≥ d. Its deadline is the last slot with q
    n - x ≤ 1 - d. Among the pages that may be crawled, the page with the earliest deadline is crawled (if deadlines are
    equal, the page with the lowest number). After n slots, the number of crawls of a page differs from q n by at most 1
    - d. No schedule can guarantee a smaller difference. The schedule takes O(log k) operations per slot: pages that may
    not be crawled yet wait in a list per slot, and the others in a heap ordered by deadline.

    This function differs from the algorithm in one way: if rounding leaves no page that may be crawled, the page whose
    turn comes next is crawled.

    References
    ----------
    Y. Azar et al. (2018). Tractable near-optimal policies for crawling. PNAS 115(32).
    R. Tijdeman (1980). The chairman assignment problem. Discrete Mathematics 32(3).

    Examples
    --------
    >>> from crawlsched.bandwidth import low_discrepancy_schedule
    >>> low_discrepancy_schedule([3.0, 2.0, 0.0, 1.0], n_slots=12)
    array([0, 1, 0, 3, 1, 0, 0, 1, 0, 3, 1, 0])
    """
    (rate,) = page_arrays(rates=rates)
    not_negative("rates", rate)
    if n_slots < 0:
        raise ValueError(f"n_slots is {n_slots!r}; it must be 0 or more.")
    crawled = np.flatnonzero(rate)
    if crawled.size == 0:
        raise ValueError("rates are all 0; at least one page must have a rate above 0.")
    # The rates are first divided by the largest, so that their sum stays finite.
    scaled = rate[crawled] / rate[crawled].max()
    order = _earliest_deadlines_first(scaled / scaled.sum(), int(n_slots))
    return crawled[order]


def _earliest_deadlines_first(shares: FloatArray, n_slots: int) -> IndexArray:
    """Schedule pages whose shares add up to 1."""
    order = np.zeros(n_slots, dtype=np.intp)
    if shares.size == 1:
        return order
    margin = 1.0 / (2 * shares.size - 2)
    periods = (1.0 / shares).tolist()
    waiting: dict[int, list[int]] = {}
    n_crawls = [0] * shares.size

    def wait(page: int, soonest: int) -> None:
        release = (n_crawls[page] + margin) * periods[page]
        if release <= n_slots + 1.0:
            waiting.setdefault(max(ceil(release), soonest), []).append(page)

    for page in range(shares.size):
        wait(page, 1)
    may: list[tuple[float, int]] = []
    for slot in range(1, n_slots + 1):
        released = waiting.pop(slot, None)
        if released is None and not may:
            released = waiting.pop(min(waiting))  # rounding: see Notes
        for page in released or ():
            heappush(may, ((n_crawls[page] + 1.0 - margin) * periods[page], page))
        page = heappop(may)[1]
        order[slot - 1] = page
        n_crawls[page] += 1
        wait(page, slot + 1)
    return order
