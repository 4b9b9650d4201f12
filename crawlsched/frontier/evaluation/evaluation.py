"""A look at pages that is spread over several picks: in numpy each part of it takes as long as a pick should."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crawlsched.columns.array_types import BoolArray, IndexArray
from crawlsched.frontier.candidates.evaluated import Found
from crawlsched.frontier.placement import Standing
from crawlsched.frontier.places import AWAKE, FRESH, RUNNING
from crawlsched.pages import distinct

__all__ = ["Look"]


# So many pages at most go to bed with one pick.
_PUT = 128


class Look:
    """Some pages that are put where they belong, as by `Standing.put`, in several parts.

    They stay where they are until all is known of them, and what holds of them there holds: so it is to be done while
    their own alarms have not rung, and before bounds end. Then those that wake go first, and the others with the next
    picks. Their alarms are set at the end: without one they may sleep until the next turn ends.

    Parameters
    ----------
    standing : Standing
    pages : ndarray of int
        Those that neither sleep nor are awake, nor were crawled just now, are left alone.
    falling, waking
        As for `Standing.put`.
    """

    def __init__(self, standing: Standing, pages: IndexArray, falling: bool = False, waking: int = 0) -> None:
        self._standing = standing
        self._pages = distinct(pages)
        # What was filed meanwhile stands where it belongs; what is known here of its value is out of date.
        self._left_out: BoolArray = np.zeros(self._pages.size, bool)
        self._parts = self._look(falling, waking)
        self._is_settled = False

    def go_on(self) -> bool:
        """Do one more part; return whether that was not the last one. O(n), of one of the things that `put` does."""
        return next(self._parts, True) is None

    def finish(self) -> None:
        """Do all that is left; O(n log n)."""
        for _ in self._parts:
            pass

    def settle(self) -> None:
        """Do all that is left, but for alarms; O(n log n)."""
        while not self._is_settled and self.go_on():
            pass

    def leave_out(self, page: int) -> None:
        """Leave a page alone from now on, which is being filed; O(log n)."""
        row = int(self._pages.searchsorted(page))
        if row < self._pages.size and self._pages.item(row) == page:
            self._left_out[row] = True

    def leave_out_many(self, pages: IndexArray) -> None:
        """Do what `leave_out` does for many pages, which may be others, too; O(n log n)."""
        rows = self._pages.searchsorted(pages)
        rows, pages = rows[rows < self._pages.size], pages[rows < self._pages.size]
        self._left_out[rows[self._pages[rows] == pages]] = True

    def _look(self, falling: bool, waking: int) -> Iterator[None]:
        standing = self._standing
        places = standing.place[self._pages]
        here = ((places > RUNNING) | (places == AWAKE) | (places == FRESH)) & ~self._left_out
        pages, places, self._left_out = self._pages[here], places[here], self._left_out[here]
        self._pages = pages
        if not pages.size:
            return
        values = standing.look_at(pages)
        yield
        after = standing.now
        until, lasts = max(standing.holds, after), max(standing.lasts, after)
        found = Found.of(pages, values, values.parabolas(after, lasts), (after, until, lasts))
        if waking:
            standing.let_wake(waking, found.levels)
        wakes = found.levels > standing.cutoff
        yield
        sleepers = []
        for some in (wakes.nonzero()[0], *self._in_beds((~wakes).nonzero()[0])):
            rows = some[(standing.place[pages[some]] == places[some]) & ~self._left_out[some]]
            if rows.size:
                standing.leave(pages[rows])
                asleep = standing.settle(found, rows, falling)
                if asleep is not None:
                    sleepers.append((asleep, standing.place[asleep.pages]))
                yield
        self._is_settled = True
        for n, (asleep, settled) in enumerate(sleepers):
            if n:
                yield
            there = (standing.place[asleep.pages] == settled) & ~self._left_out[asleep.where]
            standing.set_alarms(asleep, there)
        if (places == FRESH).any():
            standing.forget_fresh()

    def _in_beds(self, rows: IndexArray) -> list[IndexArray]:
        """Return rows in as many parts as it takes to put so many to bed."""
        return np.array_split(rows, max(-(-rows.size // _PUT), 1))
