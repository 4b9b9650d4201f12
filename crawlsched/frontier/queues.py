"""Pages in an order of their own, by host: those of a host that rests cost nothing."""

from __future__ import annotations

from collections.abc import Container
from heapq import heappop, heappush, nsmallest

__all__ = ["HostQueue"]


class HostQueue:
    """Pages by key, lowest first, without those of hosts that rest.

    Notes
    -----
    A queue for each host, and one of hosts by their first pages. All methods are amortised O(log n).

    Examples
    --------
    >>> resting = {7}
    >>> queue = HostQueue(resting)
    >>> queue.push(7, 1.0, page=0); queue.push(8, 2.0, page=1)
    >>> queue.first()
    (2.0, 1, 8)
    >>> resting.clear(); queue.host_returns(7); queue.first()
    (1.0, 0, 7)
    """

    def __init__(self, resting: Container[int]) -> None:
        self._resting = resting
        self._keys: dict[int, float] = {}
        self._queues: dict[int, list[tuple[float, int]]] = {}
        self._hosts: list[tuple[float, int, int]] = []

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, page: int) -> bool:
        return page in self._keys

    def push(self, host: int, key: float, page: int) -> None:
        """Put a page in, or elsewhere in the order. O(log n)."""
        self._keys[page] = key
        queue = self._queues.setdefault(host, [])
        heappush(queue, (key, page))
        if queue[0] == (key, page):
            heappush(self._hosts, (key, page, host))

    def discard(self, page: int) -> None:
        """Take a page out, if it is in. O(1)."""
        self._keys.pop(page, None)

    def first(self) -> tuple[float, int, int] | None:
        """Return key, page and host of the first page; None if there is none. Amortised O(log n)."""
        while self._keys and self._hosts:
            key, page, host = self._hosts[0]
            if host not in self._resting:
                if self._first_of(host) == (key, page):
                    return key, page, host
                heappop(self._hosts)
                self.host_returns(host)
            else:
                heappop(self._hosts)  # it comes back with the host
        if not self._keys:
            self._queues.clear()
            self._hosts.clear()
        return None

    def host_returns(self, host: int) -> None:
        """Let a host's pages take part again. O(log n)."""
        first = self._first_of(host)
        if first is not None and (*first, host) not in self._hosts[:1]:
            heappush(self._hosts, (*first, host))

    def has_host(self, host: int) -> bool:
        """Whether a page of a host is in. Amortised O(log n)."""
        return self._first_of(host) is not None

    def likely(self, n: int) -> list[int]:
        """Return some pages, first ones first, without those of resting hosts; O(size)."""
        going = [entry for host, queue in self._queues.items() if host not in self._resting for entry in queue]
        found = nsmallest(n, [entry for entry in going if self._keys.get(entry[1]) == entry[0]])
        return list(dict.fromkeys(page for _, page in found))

    def _first_of(self, host: int) -> tuple[float, int] | None:
        queue = self._queues.get(host)
        while queue and self._keys.get(queue[0][1]) != queue[0][0]:
            heappop(queue)
        if not queue:
            self._queues.pop(host, None)
            return None
        return queue[0]
