"""Queues of pages, one per host, with a queue of hosts on top: a resting host costs nothing."""

from __future__ import annotations

from collections.abc import Container
from heapq import heappop, heappush

__all__ = ["HostQueues"]


class HostQueues:
    """Pages ordered by (key, page), smallest first, leaving out the pages of hosts that rest.

    Parameters
    ----------
    resting : container of int
        The hosts that rest; whoever takes one out calls `host_returns`.

    Notes
    -----
    For every host that does not rest, its first page or something before it stands in the queue of hosts; an entry that
    is not the host's first any more is dropped when it comes to the top. All methods are amortised O(log n).
    """

    def __init__(self, resting: Container[int]) -> None:
        self._resting = resting
        self._queues: dict[int, list[tuple[float, int]]] = {}
        self._hosts: list[tuple[float, int, int]] = []
        #: The key of each page; an entry in a queue counts only while it agrees.
        self.keys: dict[int, float] = {}

    def __len__(self) -> int:
        return len(self.keys)

    def __contains__(self, page: int) -> bool:
        return page in self.keys

    def push(self, host: int, key: float, page: int) -> None:
        """Put a page in, or move it to another key."""
        self.keys[page] = key
        queue = self._queues.get(host)
        entry = (key, page)
        if queue is None:
            self._queues[host] = [entry]
        else:
            heappush(queue, entry)
            if queue[0] is not entry:
                return
        heappush(self._hosts, (key, page, host))

    def discard(self, page: int) -> None:
        """Take a page out, if it is in."""
        self.keys.pop(page, None)

    def first(self) -> tuple[float, int, int] | None:
        """Return (key, page, host) of the first page whose host does not rest; None if there is none."""
        hosts, keys = self._hosts, self.keys
        while hosts:
            first = hosts[0]
            key, page, host = first
            if host not in self._resting:
                if keys.get(page) == key and self._queues[host][0] == (key, page):
                    return first
                heappop(hosts)
                self.host_returns(host)
            else:
                heappop(hosts)
        return None

    def pop(self, host: int) -> None:
        """Take out the first page of a host, which `first` has just returned."""
        _, page = heappop(self._queues[host])
        del self.keys[page]
        heappop(self._hosts)
        self.host_returns(host)

    def host_returns(self, host: int) -> None:
        """Put a host's first page into the queue of hosts."""
        queue = self._queues.get(host)
        if queue is None:
            return
        while queue:
            key, page = queue[0]
            if self.keys.get(page) == key:
                if not (self._hosts and self._hosts[0] == (key, page, host)):
                    heappush(self._hosts, (key, page, host))
                return
            heappop(queue)
        del self._queues[host]

    def has_host(self, host: int) -> bool:
        """Whether a page of this host is in; O(its pages that have left)."""
        return any(self.keys.get(page) == key for key, page in self._queues.get(host, ()))

    def check(self) -> None:
        """Raise `AssertionError` unless every page stands in a queue, and every host at work can be found."""
        entries = {(page, key) for queue in self._queues.values() for key, page in queue}
        assert set(self.keys.items()) <= entries
        found = {host: min(e[:2] for e in self._hosts if e[2] == host) for host in {e[2] for e in self._hosts}}
        for host, queue in self._queues.items():
            assert all(queue[i] >= queue[(i - 1) // 2] for i in range(1, len(queue)))
            living = [entry for entry in queue if self.keys.get(entry[1]) == entry[0]]
            if living and host not in self._resting:
                assert found[host] <= min(living)
