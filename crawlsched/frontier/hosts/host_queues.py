"""Queues of pages, one per host, with a queue of hosts on top: a resting host costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Container
from heapq import heappop, heappush, nsmallest
from itertools import count

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown

__all__ = ["HostQueues"]


# Stands for no stretch in entries of single pages.
_SINGLE = -1
# Pages that come in many calls, as when a store is read, are sorted when so many have come, or when one is asked for.
_SORTED_AT_ONCE = 2**20
# Of each host so many of its next pages are said to be likely, at most.
_FORESEEN = 64


class _Stretch:
    """Pages of one host that came at once, in their order; 12 bytes a page."""

    __slots__ = ("at", "keys", "pages")

    def __init__(self, keys: FloatArray, pages: npt.NDArray[np.uint32]) -> None:
        self.keys = keys
        self.pages = pages
        self.at = 0


class HostQueues:
    """Pages ordered by (key, page), smallest first, leaving out the pages of hosts that rest.

    Parameters
    ----------
    resting : container of int
        The hosts that rest; whoever takes one out calls `host_returns`.
    key_of : callable
        ``key_of(page)`` returns the key that a page has now; an entry with another one does not count.

    Attributes
    ----------
    queues, unsorted : dict, list
        By host, and pages that came by the hundred; while both are empty no page is in.

    Notes
    -----
    For every host that does not rest, its first page or something before it stands in the queue of hosts; an entry that
    is not the host's first any more is dropped when it comes to the top. Pages that come by the hundred are sorted and
    stand in arrays, of which only the first page of each host is in its queue. All methods are amortised O(log n).
    """

    def __init__(self, resting: Container[int], key_of: Callable[[int], float | None]) -> None:
        self._resting = resting
        self._key_of = key_of
        self.queues: dict[int, list[tuple[float, int, int]]] = {}
        self._hosts: list[tuple[float, int, int]] = []
        self._stretches: dict[int, _Stretch] = {}
        self.unsorted: list[tuple[npt.NDArray[np.int32], FloatArray, IndexArray]] = []
        self._n_unsorted = 0
        self._numbers = count()
        # Whether a page is in; an entry counts only while it is.
        self._inside: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)

    def __contains__(self, page: int) -> bool:
        return page < self._inside.size and bool(self._inside[page])

    def __bool__(self) -> bool:
        """Whether there may be a page in."""
        return bool(self.queues or self.unsorted)

    def inside(self, pages: IndexArray) -> npt.NDArray[np.bool_]:
        """Return which pages are in; O(n)."""
        self._make_room(pages)
        inside: npt.NDArray[np.bool_] = self._inside[pages]
        return inside

    def _make_room(self, pages: IndexArray) -> None:
        if pages.size and (most := int(pages.max()) + 1) > self._inside.size:
            self._inside = grown(self._inside, most + most // 4)

    def _is_alive(self, key: float, page: int) -> bool:
        return bool(self._inside[page]) and self._key_of(page) == key

    # -- pages come and go

    def push(self, host: int, key: float, page: int) -> None:
        """Put a page in, or move it to another key; O(log n)."""
        if page >= self._inside.size:
            self._make_room(np.array([page]))
        self._inside[page] = True
        self._enter(host, (key, page, _SINGLE))

    def push_many(self, hosts: npt.NDArray[np.int32], keys: FloatArray, pages: IndexArray) -> None:
        """Put distinct pages in; O(n log n) in numpy, beside O(log n) a host."""
        if not pages.size:
            return
        self._make_room(pages)
        self._inside[pages] = True
        self.unsorted.append((hosts, keys, pages))
        self._n_unsorted += pages.size
        if self._n_unsorted >= _SORTED_AT_ONCE:
            self._sort()

    def _sort(self) -> None:
        hosts, keys, pages = (np.concatenate(column) for column in zip(*self.unsorted, strict=True))
        self.unsorted, self._n_unsorted = [], 0
        order = np.lexsort((pages, keys, hosts))
        hosts, keys, sorted_pages = hosts[order], keys[order], pages[order].astype(np.uint32)
        first = np.flatnonzero(np.diff(hosts, prepend=-1)).tolist()
        for begin, stop in zip(first, [*first[1:], hosts.size], strict=True):
            number = next(self._numbers)
            self._stretches[number] = _Stretch(keys[begin:stop], sorted_pages[begin:stop])
            self._enter(hosts.item(begin), (keys.item(begin), sorted_pages.item(begin), number))

    def _enter(self, host: int, entry: tuple[float, int, int]) -> None:
        queue = self.queues.setdefault(host, [])
        heappush(queue, entry)
        if queue[0] is entry:
            heappush(self._hosts, (*entry[:2], host))

    def discard(self, page: int) -> None:
        """Take a page out, if it is in; O(1)."""
        if page < self._inside.size:
            self._inside[page] = False

    def discard_many(self, pages: IndexArray) -> None:
        """Take pages out, those that are in; O(n)."""
        self._inside[pages[pages < self._inside.size]] = False

    def _drop_first(self, queue: list[tuple[float, int, int]]) -> None:
        number = heappop(queue)[2]
        if number == _SINGLE:
            return
        stretch = self._stretches[number]
        stretch.at += 1
        if stretch.at < stretch.pages.size:
            heappush(queue, (stretch.keys.item(stretch.at), stretch.pages.item(stretch.at), number))
        else:
            del self._stretches[number]

    # -- the first page

    def first(self) -> tuple[float, int, int] | None:
        """Return (key, page, host) of the first page whose host does not rest; None if there is none.

        Amortised O(log n).
        """
        if self.unsorted:
            self._sort()
        hosts = self._hosts
        while hosts:
            first = hosts[0]
            key, page, host = first
            if host not in self._resting:
                queue = self.queues.get(host)
                if queue and queue[0][:2] == (key, page) and self._is_alive(key, page):
                    return first
                heappop(hosts)
                self.host_returns(host)
            else:
                heappop(hosts)
        return None

    def pop(self, host: int) -> None:
        """Take out the first page of a host, which `first` has just returned; amortised O(log n)."""
        self._inside[self.queues[host][0][1]] = False
        heappop(self._hosts)
        self.host_returns(host)

    def host_returns(self, host: int) -> None:
        """Put a host's first page into the queue of hosts; amortised O(log n)."""
        if self.has_host(host):
            first = (*self.queues[host][0][:2], host)
            if not (self._hosts and self._hosts[0] == first):
                heappush(self._hosts, first)

    def has_host(self, host: int) -> bool:
        """Whether a page of this host is in; amortised O(log n)."""
        if self.unsorted:
            self._sort()
        queue = self.queues.get(host)
        while queue:
            if self._is_alive(*queue[0][:2]):
                return True
            self._drop_first(queue)
        self.queues.pop(host, None)
        return False

    def likely(self, n: int) -> list[int]:
        """Return up to about `n` pages that come soon, in about their order; O(n)."""
        if self.unsorted:
            self._sort()
        entries: list[tuple[float, int]] = []
        for _, _, host in nsmallest(n, self._hosts) if n > 0 else ():
            for key, page, number in nsmallest(_FORESEEN, self.queues.get(host, ())):
                entries.append((key, page))
                if number != _SINGLE:
                    stretch = self._stretches[number]
                    some = slice(stretch.at + 1, stretch.at + _FORESEEN)
                    entries += zip(stretch.keys[some].tolist(), stretch.pages[some].tolist(), strict=True)
        return [page for key, page in sorted(set(entries))[: 2 * n] if self._is_alive(key, page)][:n]

    def check(self) -> None:
        """Raise `AssertionError` unless every page stands in a queue, and every host at work can be found.

        O(n log n).
        """
        if self.unsorted:
            self._sort()
        found = {host: min(e[:2] for e in self._hosts if e[2] == host) for host in {e[2] for e in self._hosts}}
        known: set[int] = set()
        for host, queue in self.queues.items():
            assert all(queue[i] >= queue[(i - 1) // 2] for i in range(1, len(queue)))
            entries = [entry[:2] for entry in queue]
            for stretch in [self._stretches[number] for _, _, number in queue if number != _SINGLE]:
                rest = slice(stretch.at, None)
                entries += zip(stretch.keys[rest].tolist(), stretch.pages[rest].tolist(), strict=True)
            living = [entry for entry in entries if self._is_alive(*entry)]
            known.update(page for _, page in living)
            if living and host not in self._resting:
                assert found[host] <= min(living)
        assert {page for page in np.flatnonzero(self._inside).tolist() if self._key_of(page) is not None} == known
        assert {number for queue in self.queues.values() for _, _, number in queue} - {_SINGLE} == set(self._stretches)
