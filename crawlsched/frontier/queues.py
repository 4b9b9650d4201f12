"""Queues that leave out resting hosts: pages by host, and keys that take turns."""

from __future__ import annotations

from collections.abc import Container, Hashable
from heapq import heappop, heappush, nsmallest
from itertools import count
from math import inf
from typing import Any, Generic, TypeVar

__all__ = ["FairQueue", "HostQueue", "PriorityQueue"]

Key = TypeVar("Key", bound=Hashable)


class PriorityQueue(Generic[Key]):
    """Keys with places. The lowest place is first; among equal places, the key that was put in first.

    Attributes
    ----------
    at : dict
        The place of each key.
    """

    def __init__(self) -> None:
        self.at: dict[Key, Any] = {}
        self._heap: list[tuple[Any, int, Key]] = []
        self._aside: set[Key] = set()
        self._numbers = count()

    def __len__(self) -> int:
        return len(self.at)

    def __contains__(self, key: object) -> bool:
        return key in self.at

    def put(self, key: Key, at: Any) -> None:
        """Put a key in, or move it to another place. O(log n)."""
        self.at[key] = at
        heappush(self._heap, (at, next(self._numbers), key))

    def discard(self, key: Key) -> None:
        """Take a key out, if it is in the queue. O(1)."""
        self.at.pop(key, None)
        self._aside.discard(key)
        if not self.at:
            self._heap.clear()

    def first(self, resting: Container[Key] = ()) -> Key | None:
        """Return the first key that does not rest; None: there is none. Amortised O(log n)."""
        while self._heap:
            at, _, key = self._heap[0]
            if self.at.get(key) == at and key not in self._aside:
                if key not in resting:
                    return key
                self._aside.add(key)
            heappop(self._heap)
        return None

    def returns(self, key: Key) -> None:
        """Let a key that rested take part again. O(log n)."""
        if key in self._aside:
            self._aside.discard(key)
            self.put(key, self.at[key])


class FairQueue(PriorityQueue[Key]):
    """A fair queue of keys (stride scheduling): each turn has a cost, and the key that has spent least goes next.

    A key that rested goes before the keys that had turns in the meantime.

    Examples
    --------
    >>> turns = FairQueue()
    >>> for key in "ab":
    ...     turns.come(key)
    >>> turns.first(), turns.took("a"), turns.first()
    ('a', None, 'b')
    """

    def __init__(self) -> None:
        super().__init__()
        self._spent: dict[Key, float] = {}
        self._now = 0.0

    def come(self, key: Key) -> None:
        """Let a key take part behind the keys that already take part, so that no key waits forever. O(log n)."""
        if key not in self.at:
            self.put(key, max(self._spent.pop(key, 0.0), self._now + 1.0))

    def leave(self, key: Key) -> None:
        """Take a key out. Its costs still count if it takes part again. O(1)."""
        if self.at[key] > self._now:
            self._spent[key] = self.at[key]
        self.discard(key)

    def took(self, key: Key, cost: float = 1.0) -> None:
        """Count the turn of the key that was first. O(log n)."""
        at = self.at[key]
        if self.first() == key:  # no other key has been put in since
            heappop(self._heap)
        self._now = max(self._now, at)
        self.put(key, at + cost)

    def likely(self, n: int) -> list[Key]:
        """Return at most `n` keys, about in the order of their next turns; O(keys log n)."""
        return nsmallest(n, self.at, key=self.at.__getitem__)


class HostQueue:
    """Pages by key, without pages of hosts that rest: lowest key first; of equal keys, the lowest page.

    Notes
    -----
    There is a queue for each host, and a queue of hosts by their first pages.

    Examples
    --------
    >>> resting = {7}
    >>> queue = HostQueue(resting)
    >>> queue.push(7, 1.0, page=0); queue.push(8, 2.0, page=1)
    >>> queue.first()
    (1, 8)
    >>> resting.clear(); queue.host_returns(7); queue.first()
    (0, 7)
    """

    def __init__(self, resting: Container[int]) -> None:
        self._resting = resting
        self._host: dict[int, int] = {}  # by page
        self._pages: dict[int, PriorityQueue[int]] = {}  # by host
        self._hosts = PriorityQueue[int]()

    def __len__(self) -> int:
        return len(self._host)

    def __contains__(self, page: int) -> bool:
        return page in self._host

    def push(self, host: int, key: float, page: int) -> None:
        """Put a page in, or move it to another place. O(log n)."""
        self._host[page] = host
        pages = self._pages.setdefault(host, PriorityQueue())
        if pages.at.get(page) != (key, page):
            pages.put(page, (key, page))
            self._place(host)

    def discard(self, page: int) -> None:
        """Take a page out, if it is in the queue. Amortised O(log n)."""
        if (host := self._host.pop(page, None)) is not None:
            self._pages[host].discard(page)
            self._place(host)

    def _place(self, host: int) -> None:
        pages = self._pages[host]
        first = pages.first()
        if first is None:
            del self._pages[host]
            self._hosts.discard(host)
        elif self._hosts.at.get(host) != pages.at[first]:
            self._hosts.put(host, pages.at[first])

    def first(self, until: float = inf) -> tuple[int, int] | None:
        """Return page and host of the first page; None if its key is above `until`. O(log n)."""
        host = self._hosts.first(self._resting)
        if host is None or self._hosts.at[host][0] > until:
            return None
        return self._hosts.at[host][1], host

    def host_returns(self, host: int) -> None:
        """Let a host's pages take part again. O(log n)."""
        self._hosts.returns(host)

    def has_host(self, host: int) -> bool:
        """Whether a page of a host is in the queue. O(1)."""
        return host in self._pages

    def likely(self, n: int, until: float = inf) -> list[int]:
        """Return up to `n` pages with keys up to `until`, in their order, without pages of resting hosts; O(n)."""
        going = (pages.at.values() for host, pages in self._pages.items() if host not in self._resting)
        entries = (entry for of_host in going for entry in of_host if entry[0] <= until)
        return [page for _, page in nsmallest(n, entries)]
