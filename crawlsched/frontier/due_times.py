"""Due times: a column with the time at which each page is due, and a sorted order of the pages due soon."""

from __future__ import annotations

from heapq import heappop, heappush, nsmallest

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.blocks import ROWS_AT_ONCE
from crawlsched.columns.growing import grown

__all__ = ["ASIDE", "CANDIDATE", "FILED", "IN_FLIGHT", "NEW", "OUT", "OVERDUE", "SOON", "WAITING", "DueTimes"]

#: The places of a page, in this order: not in the frontier; being visited; without a computed due time; only in the
#: column; among the sorted pages that are due soon; a candidate; a candidate whose host rests; past its deadline;
#: without a copy and ready to go.
OUT, IN_FLIGHT, FILED, WAITING, SOON, CANDIDATE, ASIDE, OVERDUE, NEW = range(9)

# The sorted order should have this number of pages, or a sixteenth of all pages if that is less, but at least 256. It
# never has more than twice that number. The column is searched in parts of at least this number of rows. The parts are
# so large that the search of the whole column ends before the order is empty.
_MOST_SOON = 2**13


class DueTimes:
    """A column of due times, and a sorted order of the pages that are due first.

    Notes
    -----
    The sorted order has every waiting page whose due time is not after the horizon. When few pages are in the order,
    the horizon moves on to a time that is estimated from a sample of the column. Then each pick searches a part of the
    column for pages due before the new horizon. A page takes 10 bytes.
    """

    def __init__(self) -> None:
        self.at: FloatArray = np.zeros(0)  # by page, POSIX seconds; inf: never due
        self.place: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)  # by page, one of the constants of this module
        self.n_reached: npt.NDArray[np.uint8] = np.zeros(0, np.uint8)  # by page, how many lower levels it has reached
        # The sorted order has only pages due by `_horizon`, and all pages due by `_complete_until`.
        self._horizon = self._complete_until = np.inf
        self._heap: list[tuple[float, int]] = []
        self._n_soon = 0
        self._row: int | None = None  # the next row to search; None: no search of the column is under way

    def reserve(self, capacity: int) -> None:
        """Make room for more pages; amortised O(1) a page."""
        size = self.place.size
        if capacity > size:
            capacity = max(capacity, size + size // 4)
            self.at, self.place = grown(self.at, capacity), grown(self.place, capacity)
            self.n_reached = grown(self.n_reached, capacity)
            self._n_soon = min(_MOST_SOON, max(capacity // 16, 256))

    @property
    def are_many(self) -> bool:
        """Whether a search of all pages in one step would take too long. O(1)."""
        return self.place.size > ROWS_AT_ONCE

    def set(self, pages: IndexArray, times: FloatArray) -> None:
        """Set the due times of distinct pages, and let the pages wait; O(1) a page, O(log n) if it is due soon."""
        self.at[pages] = times
        self.place[pages] = WAITING
        self._put_in_order(pages[(times <= self._horizon) & (times < np.inf)])

    def _put_in_order(self, pages: IndexArray) -> None:
        """Put pages into the order. If it becomes too long, only the pages due first stay, and the others wait."""
        self.place[pages] = SOON
        for entry in zip(self.at[pages].tolist(), pages.tolist(), strict=True):
            heappush(self._heap, entry)
        if len(self._heap) <= 2 * self._n_soon:
            return
        standing = np.unique(np.array([page for _, page in self._heap], np.intp))
        standing = standing[self.place[standing] == SOON]
        standing = standing[np.argsort(self.at[standing], kind="stable")]
        first, others = standing[: self._n_soon], standing[self._n_soon :]
        self._heap = list(zip(self.at[first].tolist(), first.tolist(), strict=True))
        if others.size:
            self.place[others] = WAITING
            self._horizon = self._heap[-1][0]
            self._complete_until = min(self._complete_until, self._horizon)

    def take(self, until: float, most: int) -> IndexArray:
        """Take out at most `most` pages due by `until`; amortised O(log n) each."""
        found: list[int] = []
        while len(found) < most:
            if self._first() <= until:
                page = heappop(self._heap)[1]
                found.append(page)
                self.place[page] = CANDIDATE
            elif found or self._complete_until >= until or not self._look_on():
                break
        return np.array(found, np.intp)

    def next_time(self) -> float:
        """Return when the first waiting page is due, or an earlier time if this is not known. O(log n)."""
        while (first := self._first()) > self._complete_until and self._look_on():
            pass
        return min(first, self._complete_until)

    def _first(self) -> float:
        """Return when the first page of the order is due; inf: there is none. Amortised O(log n)."""
        place, at, heap = self.place, self.at, self._heap
        # Drop the entries of pages that have left the order or have another due time by now.
        while heap and not (place.item(heap[0][1]) == SOON and at.item(heap[0][1]) == heap[0][0]):
            heappop(heap)
        return heap[0][0] if heap else np.inf

    def soonest(self, n: int) -> IndexArray:
        """Return at most `n` pages of the sorted order, approximately the first ones; O(n log n)."""
        self.next_time()
        pages = np.array([page for _, page in nsmallest(n, self._heap)], np.intp)
        return np.array(list(dict.fromkeys(pages[self.place[pages] == SOON].tolist())), np.intp)

    # -- the search through the column

    def work(self) -> None:
        """Search a part of the column, if the order will soon be empty. O(1)."""
        if self._row is not None or (self._complete_until < np.inf and 4 * len(self._heap) < self._n_soon):
            self._look()

    def _look_on(self) -> bool:
        """Search some parts of the column, and stop at its end; return whether a page was found."""
        n_before = len(self._heap)
        for _ in range(ROWS_AT_ONCE // _MOST_SOON):
            self._look()
            if self._row is None:
                break
        return len(self._heap) > n_before

    def _look(self) -> None:
        """Search one part of the column, and put its pages that are due before the horizon into the order."""
        if self._row is None:
            step = 1 + self.place.size // _MOST_SOON
            times = np.sort(self.at[::step][self.place[::step] == WAITING])
            rank = self._n_soon // step
            self._row, self._horizon = 0, times.item(rank) if rank < times.size else np.inf
        part = slice(self._row, self._row + max(_MOST_SOON, 8 * self.place.size // self._n_soon))
        soon = (self.place[part] == WAITING) & (self.at[part] <= self._horizon) & (self.at[part] < np.inf)
        self._put_in_order(self._row + np.flatnonzero(soon))
        self._row = part.stop
        if self._row >= self.place.size:
            self._row, self._complete_until = None, self._horizon
