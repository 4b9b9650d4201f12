"""A ladder: pages that sleep, by the level of crawl value which they cannot reach before their alarm rings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray, LevelArray
from crawlsched.columns.number_column import NumberColumn
from crawlsched.frontier.buckets.buckets import Buckets
from crawlsched.frontier.places import AFTER_ALL_PAGES, IN_FLIGHT, RUNNING
from crawlsched.frontier.sleeping.levels import value_at
from crawlsched.pages import distinct

__all__ = ["Ladder", "Run"]


class Run:
    """Pages whose crawl value does not grow, sorted: highest value first, then lowest number.

    Parameters
    ----------
    number : int
        Tells runs apart.
    pages : ndarray of int
    values : ndarray of float
        Their crawl values.
    """

    __slots__ = ("_at", "_pages", "_values", "number")

    def __init__(self, number: int, pages: IndexArray, values: FloatArray) -> None:
        order = np.lexsort((pages, -values))
        self.number = number
        self._pages = pages[order].astype(np.uint32)
        self._values = values[order]
        self._at = 0

    def __len__(self) -> int:
        return int(self._pages.size) - self._at

    def head(self) -> tuple[float, int]:
        """Return (-value, page) of the best page; O(1)."""
        return -self._values.item(self._at), self._pages.item(self._at)

    def top(self, n: int) -> IndexArray:
        """Return the best `n` pages; O(n)."""
        return self._pages[self._at : self._at + n].astype(np.intp)

    def take(self, n: int) -> IndexArray:
        """Take the best `n` pages out; O(n)."""
        taken = self.top(n)
        self._at += taken.size
        return taken


class Ladder:
    """The sleeping pages of one host, or of all hosts that have none of their own.

    Parameters
    ----------
    host : int
        The host; -1 for the ladder that the small ones share.
    offset : int
        Where a page stands is one number per page, the `place` column of the frontier: for a page asleep in this
        ladder its level plus `offset`. An entry counts only while that column agrees.
    place : callable
        Returns that column.

    Attributes
    ----------
    sleepers : int
        Pages asleep.
    """

    def __init__(self, host: int, offset: int, place: Callable[[], LevelArray]) -> None:
        self.host = host
        self.offset = offset
        #: The bound under which the frontier can find this ladder.
        self.noted: tuple[float, int] | None = None
        self.sleepers = 0
        # What `bound` has found, until something happens here.
        self._bound: tuple[float, int] | None = None
        self._is_bound = False
        self._place = place
        self._beds = Buckets(self._places, self._place_under, counted=True)
        self._order: list[int] = []
        self._runs: list[tuple[float, int, int, Run]] = []

    def _places(self) -> npt.NDArray[np.uint32]:
        return self._place().view(np.uint32)

    def _place_under(self, level: Any) -> tuple[Any, Any]:
        place = (level + self.offset) & 0xFFFFFFFF  # as an unsigned number
        return place, place

    def adapt(self) -> None:
        """Keep the beds as suits the code in use; O(1), or O(n) when that has changed."""
        self._beds.adapt()

    def add_one(self, page: int, level: int) -> None:
        """Put one page to sleep under a level; O(log(levels))."""
        self._is_bound = False
        if self._beds.add_one(level, page):
            heappush(self._order, -level)
        self.sleepers += 1

    def add(self, pages: IndexArray, levels: npt.NDArray[np.integer]) -> None:
        """Put distinct pages to sleep, each under its level; O(n log n)."""
        self._is_bound = False
        for level in self._beds.add(levels.astype(np.int64, copy=False), pages):
            heappush(self._order, -level)
        self.sleepers += pages.size

    def add_run(self, run: Run) -> None:
        """Take a run; O(log(runs))."""
        self._is_bound = False
        heappush(self._runs, (*run.head(), run.number, run))

    def leave(self, levels: npt.NDArray[np.integer]) -> None:
        """Count one page less under each level; their entries are dead now. O(n)."""
        self._is_bound = False
        self._beds.leave(levels.astype(np.int64))
        self.sleepers -= levels.size

    def leave_one(self, level: int) -> None:
        """Count one page less under a level; its entry is dead now. O(1)."""
        self._is_bound = False
        self._beds.leave_one(level)
        self.sleepers -= 1

    def table(self) -> npt.NDArray[np.int64] | None:
        """Return the table of the beds for `placement_loops.leave`; None where compiled code is not in use. O(1)."""
        arrays = self._beds.arrays((), 0)
        return None if arrays is None else arrays[2]

    def have_left(self, n: int) -> None:
        """Count `n` pages less, whose beds know already; O(1)."""
        self._is_bound = False
        self.sleepers -= n

    def sweep(self) -> None:
        """Go on dropping dead entries, if there are many; amortised O(1) for each page put to sleep."""
        self._beds.sweep(self.sleepers)

    def highest(self) -> int | None:
        """Return the highest level under which a page sleeps; None if there is none. Amortised O(log(levels))."""
        order = self._order
        while order:
            level = -order[0]
            if self._beds.living(level):
                return level
            heappop(order)
            self._beds.discard(level)
        return None

    def bound(self) -> tuple[float, int] | None:
        """Return a key (-value, page) that is before those of all pages in the ladder; None if it is empty.

        Amortised O(log(levels)).
        """
        if not self._is_bound:
            self._bound, self._is_bound = self._find_bound(), True
        return self._bound

    def _find_bound(self) -> tuple[float, int] | None:
        level = self.highest()
        run = self._runs[0][:2] if self._runs else None
        if level is None:
            return run
        # A sleeper's value is strictly below its level, so this key stands after those of all pages of that value.
        bed = (-value_at(level), AFTER_ALL_PAGES)
        return bed if run is None or bed < run else run

    def open(self, least: int, most: float) -> tuple[IndexArray, int | None]:
        """Take out pages from the top: whole levels, as few as hold `least` pages, or the head of the best run.

        Amortised O(1) a page, O(log(levels)) a level.

        Parameters
        ----------
        least : int
        most : float
            Levels after the first one are left where they are if that made more pages than this.

        Returns
        -------
        pages : ndarray of int
            Distinct.
        lowest : int or None
            The lowest level that was opened; None for a run.
        """
        if self._runs and self.bound() == self._runs[0][:2]:
            return self._head_of_run(least), None
        self._is_bound = False
        levels = self._take_levels(least, most)
        self.sleepers -= sum(self._beds.living(level) for level in levels)
        return np.concatenate([self._beds.pop(level) for level in levels]), levels[-1]

    def coming(self, least: int, most: float) -> tuple[IndexArray, int | None]:
        """Return what `open` would take out, and leave it where it is; None where it is nothing, or of a run.

        O(1) a page, O(log(levels)) a level.
        """
        levels = self._take_levels(least, most)
        for level in levels:
            heappush(self._order, -level)
        if not levels:
            return np.empty(0, np.intp), None
        return distinct(self._beds.pages_of(levels)), levels[-1]

    def _take_levels(self, least: int, most: float) -> list[int]:
        """Take out of the order, and return, the highest levels above the best run, as few as hold `least` pages."""
        n, levels = 0, list[int]()
        while n < least and (level := self.highest()) is not None:
            living = self._beds.living(level)
            if (self._runs and -self._runs[0][0] >= value_at(level)) or (n and n + living > most):
                break
            heappop(self._order)
            levels.append(level)
            n += living
        return levels

    def crowded(self, above: int, least: int) -> list[tuple[int, int]]:
        """Return (level, sleepers) of the levels above one under which at least so many pages sleep; O(levels)."""
        highest = self.highest()
        return [] if highest is None else self._beds.crowded(above, highest, least)

    def next_bed(self) -> tuple[int, int] | None:
        """Return the level that `open` begins with, and how many sleep there; None where it is none. As `highest`.

        Amortised O(log(levels)).
        """
        level = self.highest()
        if level is None or (self._runs and -self._runs[0][0] >= value_at(level)):
            return None
        return level, self._beds.living(level)

    def take(self, level: int, n: int) -> IndexArray:
        """Take up to `n` distinct pages out of a bed, which may be gone; they are in flight then. O(n)."""
        if level not in self._beds:
            return np.empty(0, np.intp)
        pages = distinct(self._beds.pop_some(level, n))
        # A page may stand in a bed twice: so what the next call finds of it is dead.
        self._place()[pages] = IN_FLIGHT
        self.leave(np.full(pages.size, level))
        return pages

    def some(self, level: int, n: int) -> IndexArray:
        """Return up to `n` distinct pages of a bed, which may be gone; amortised O(n)."""
        return self._beds.top(level, n) if level in self._beds else np.empty(0, np.intp)

    def _head_of_run(self, least: int) -> IndexArray:
        self._is_bound = False
        run = heappop(self._runs)[-1]
        pages = run.take(least)
        if len(run):
            self.add_run(run)
        running: IndexArray = pages[self._place()[pages] == RUNNING]
        return running

    def highest_sleepers(self, n: int) -> IndexArray:
        """Return up to `n` pages that sleep under the highest levels, these from the highest down; O(n log(levels))."""
        whole: list[int] = []
        for key in _ascending(self._order) if n > 0 else ():
            living = self._beds.living(-key)
            if living >= n:  # perhaps far more than are asked for
                return np.append(self._all_of(whole), self.some(-key, n))
            if living:
                whole.append(-key)
                n -= living
        return self._all_of(whole)

    def _all_of(self, levels: list[int]) -> IndexArray:
        # A page may stand in a bed twice, and the levels keep their order.
        pages = self._beds.pages_of(levels).tolist() if levels else ()
        return np.array(list(dict.fromkeys(pages)), np.intp)

    def top(self, n: int) -> IndexArray:
        """Return up to `n` pages of the best run, some of which may have left it; O(n)."""
        return self._runs[0][-1].top(n) if self._runs else np.empty(0, np.intp)

    def check(self, host: NumberColumn) -> int:
        """Raise `AssertionError` unless the beds hold the pages that `place` says; return how many. O(n)."""
        self._beds.check()
        assert sorted(self._order) == sorted(-level for level in self._beds)
        assert self.sleepers == sum(self._beds.living(level) for level in self._beds)
        for level in self._beds:
            asleep = set(self._beds.pages(level).tolist())
            if self.offset:
                asleep = {page for page in asleep if host[page] == self.host}
            assert self._beds.living(level) == len(asleep)
        return self.sleepers


def _ascending(heap: list[int]) -> Iterator[int]:
    """Yield what is in a heap, smallest first, and leave it as it is; O(log n) for the n-th."""
    coming = [(key, 0) for key in heap[:1]]
    while coming:
        key, at = heappop(coming)
        yield key
        for child in (2 * at + 1, 2 * at + 2):
            if child < len(heap):
                heappush(coming, (heap[child], child))
