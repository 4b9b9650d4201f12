"""A forecast: which pages are crawled next if nothing unexpected happens."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappop, heappush

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.planner.planner import Planner

__all__ = ["forecast"]

# A forecast considers this multiple of `n` pages: the pages that are likeliest to be picked now.
_CANDIDATES = 8


def forecast(planner: Planner, now: float, n: int, pause: Callable[[int], float] = lambda host: 0.0) -> IndexArray:
    """Return at most `n` pages in the order of their next crawls, if nothing is announced or found in the meantime.

    Forced and overdue pages are first. Then new pages get their share of the slots, and known pages get the other
    slots, by their values halfway through the forecast. A page is crawled only when its host may be asked.

    Parameters
    ----------
    pause : callable, optional
        ``pause(host)`` returns the least number of seconds between two requests to a host; 0 by default.

    Examples
    --------
    >>> planner = Planner(bandwidth=1.0)
    >>> planner.add(host=[0, 0, 0, 1], now=0.0, importance=[1.0, 4.0, 3.0, 2.0])
    array([0, 1, 2, 3])
    >>> forecast(planner, 1.0, 3), forecast(planner, 1.0, 3, pause=lambda host: 1.5)
    (array([3, 1, 2]), array([3, 1, 2]))
    """
    now = planner.at(now)
    until = now + n / planner.bandwidth
    first = planner.out_of_turn(now, n)[:n]
    found = np.concatenate([planner.peek(now, _CANDIDATES * n), planner.frontier.returning(until, n)])
    candidates = np.setdiff1d(found[planner.pages.not_before[found] <= until], first)
    is_new = planner.pages.crawled_at[candidates] == -np.inf
    known = candidates[~is_new]
    values = planner.crawl_values.value_at(known, 0.5 * (now + until))
    new = np.array(list(dict.fromkeys(found[np.isin(found, candidates[is_new])].tolist())), np.intp)
    share = planner.frontier.share.share
    # The slot in which each page is crawled.
    times = np.concatenate([np.arange(new.size) / max(share, 1e-9), np.arange(known.size) / max(1.0 - share, 1e-9)])
    others = np.concatenate([new, known[np.lexsort((known, -values))]])[np.argsort(times, kind="stable")]
    return np.array(_by_turns(planner, [*first, *others.tolist()], now, n, pause), np.intp)


def _by_turns(planner: Planner, pages: list[int], now: float, n: int, pause: Callable[[int], float]) -> list[int]:
    """In each slot, take the first page whose host may be asked by then."""
    queues: dict[int, deque[tuple[int, int]]] = {}
    for rank, (page, host) in enumerate(zip(pages, planner.pages.host[pages].tolist(), strict=True)):
        queues.setdefault(host, deque()).append((rank, page))
    busy = [(planner.frontier.rests_until(host), host) for host in queues]
    free: list[tuple[int, int]] = []
    heapify(busy)
    slot, taken = now, list[int]()
    while len(taken) < n and (free or busy):
        if not free:
            slot = max(slot, busy[0][0])
        while busy and busy[0][0] <= slot:
            _, host = heappop(busy)
            heappush(free, (queues[host][0][0], host))
        _, host = heappop(free)
        taken.append(queues[host].popleft()[1])
        if queues[host]:
            heappush(busy, (slot + pause(host), host))
        slot += 1.0 / planner.bandwidth
    return taken
