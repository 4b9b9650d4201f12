"""When each page is due, in a column; those that are due soon stand in their order."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush, nsmallest

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown

__all__ = ["ASIDE", "CANDIDATE", "FILED", "IN_FLIGHT", "NEW", "OUT", "OVERDUE", "SOON", "WAITING", "DueTimes"]

#: Where a page stands: not in the frontier; being visited; its due time is not reckoned yet; only in the column;
#: in the order of those that are due soon; among the candidates; a candidate whose host rests; past its deadline;
#: it has no copy and may go.
OUT, IN_FLIGHT, FILED, WAITING, SOON, CANDIDATE, ASIDE, OVERDUE, NEW = range(9)

# So many pages stand in the order at most: those that are due first. The column is looked through for the next ones.
_MOST_SOON = 2**14
# So many rows of the column are looked through between two picks: a third of a millisecond.
_ROWS_AT_ONCE = 2**18


class DueTimes:
    """A column of due times, and an order of those pages whose times come first.

    Notes
    -----
    Every page that waits and is due at or before the horizon stands in the order. When few of these are left the column
    is looked through, a part with each pick, for the pages that are due first of all others. 9 bytes a page.
    """

    def __init__(self) -> None:
        self.at: FloatArray = np.zeros(0)  # by page, POSIX seconds; inf: never by itself
        self.place: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)  # by page, one of the constants of this module
        self._horizon = -np.inf
        self._heap: list[tuple[float, int]] = []
        self._look: Iterator[None] | None = None
        self._filed_meanwhile: list[IndexArray] = []

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy is made of; half a look cannot be copied: it is finished first."""
        self._finish_look()
        return self.__dict__

    def reserve(self, capacity: int) -> None:
        """Make room for more pages; amortised O(1) a page."""
        size = self.place.size
        if capacity > size:
            capacity = max(capacity, size + size // 4)
            self.at, self.place = grown(self.at, capacity), grown(self.place, capacity)

    def set(self, pages: IndexArray, times: FloatArray) -> None:
        """Say when distinct pages are due that wait from now on; O(1) a page, O(log n) for one that is due soon."""
        self.at[pages] = times
        self.place[pages] = WAITING
        soon = (times <= self._horizon) & (times < np.inf)
        if soon.any():
            self._put_in_order(pages[soon])
            if len(self._heap) > 2 * _MOST_SOON:
                self._stand(np.zeros(0, np.intp))  # as many pages come at once when a store is read
        if self._look is not None:
            self._filed_meanwhile.append(pages[~soon])

    def _put_in_order(self, pages: IndexArray) -> None:
        self.place[pages] = SOON
        for entry in zip(self.at[pages].tolist(), pages.tolist(), strict=True):
            heappush(self._heap, entry)

    def _stand(self, pages: IndexArray) -> None:
        """Let those pages stand in the order that are due first, of it and of some that wait; the others wait."""
        standing = np.unique(np.array([page for _, page in self._heap], np.intp))
        pages = np.concatenate([standing[self.place[standing] == SOON], pages])
        pages = pages[np.argsort(self.at[pages], kind="stable")]
        first, others = pages[:_MOST_SOON], pages[_MOST_SOON:]
        self.place[first], self.place[others] = SOON, WAITING
        self._heap = list(zip(self.at[first].tolist(), first.tolist(), strict=True))
        if others.size:
            self._horizon = self._heap[-1][0]
            if self._look is not None:
                self._filed_meanwhile.append(others)

    def take(self, until: float, most: int) -> IndexArray:
        """Take out some pages that are due at a time, in their order; amortised O(log n) each."""
        found: list[int] = []
        while len(found) < most:
            self._drop_stale()
            if self._heap and self._heap[0][0] <= until:
                page = heappop(self._heap)[1]
                found.append(page)
                self.place[page] = CANDIDATE
            elif self._horizon >= until or not self._is_in_column():
                break
        return np.array(found, np.intp)

    def _drop_stale(self) -> None:
        """Drop entries of pages that stand elsewhere by now, or are due at another time, from the beginning."""
        place, at, heap = self.place, self.at, self._heap
        while heap and not (place.item(heap[0][1]) == SOON and at.item(heap[0][1]) == heap[0][0]):
            heappop(heap)

    def next_time(self) -> float:
        """Return when the first page that waits is due; inf: none is. Amortised O(log n)."""
        while True:
            self._drop_stale()
            if self._heap:
                return self._heap[0][0]
            if not self._is_in_column():
                return np.inf

    def soonest(self, n: int) -> IndexArray:
        """Return some pages of the order, about those that are due first; O(n log n)."""
        self.next_time()
        pages = np.array([page for _, page in nsmallest(n, self._heap)], np.intp)
        return np.array(list(dict.fromkeys(pages[self.place[pages] == SOON].tolist())), np.intp)

    # -- the column is looked through

    def work(self) -> None:
        """Look through a part of the column, if soon nobody stands in the order. O(1)."""
        if self._look is None and self._horizon < np.inf and 4 * len(self._heap) < _MOST_SOON:
            self._look = self._look_through()
        if self._look is not None:
            next(self._look, None)

    def _is_in_column(self) -> bool:
        """Look through the whole column, if others may wait there; return whether there were any."""
        if self._horizon == np.inf and self._look is None:
            return False
        before = self._horizon
        self._finish_look()
        return before < self._horizon or bool(self._heap)

    def _finish_look(self) -> None:
        look = self._look or self._look_through()
        self._look = look
        for _ in look:
            pass

    def _look_through(self) -> Iterator[None]:
        """Put the pages of the column that are due first into the order, in parts."""
        pages, times, latest = np.zeros(0, np.intp), np.zeros(0), np.inf
        self._filed_meanwhile = []
        for start in range(0, self.place.size, _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            rows = start + np.flatnonzero((self.place[part] == WAITING) & (self.at[part] <= latest))
            pages, times = np.concatenate([pages, rows]), np.concatenate([times, self.at[rows]])
            if pages.size > 2 * _MOST_SOON:
                first = np.argpartition(times, _MOST_SOON)[:_MOST_SOON]
                pages, times = pages[first], times[first]
                latest = float(times.max())
            if start + _ROWS_AT_ONCE < self.place.size:
                yield
        pages = np.unique(np.concatenate([pages, *self._filed_meanwhile]))
        pages = pages[(self.place[pages] == WAITING) & (self.at[pages] <= latest) & (self.at[pages] < np.inf)]
        self._horizon, self._look = latest, None
        self._stand(pages)

    def check(self) -> None:
        """Raise `AssertionError` unless the order has each page once, and no other page is due before; O(n)."""
        heap = {page for time, page in self._heap if self.at[page] == time}
        assert set(np.flatnonzero(self.place == SOON).tolist()) <= heap
        waiting = np.flatnonzero(self.place == WAITING)
        assert not (self.at[waiting] < self._horizon).any() or self._look is not None
