"""A look at pages that is spread over several picks: in numpy each part of it takes as long as a pick should."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from crawlsched.frontier.ladder import AWAKE, FRESH, RUNNING
from crawlsched.frontier.standing import Standing
from crawlsched.pages import distinct

__all__ = ["Look"]

IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


class Look:
    """Some pages that are put where they belong, as by `Standing.put`, in several parts.

    They stay where they are until nothing but alarms is left to be set, and what holds of them there holds: so it is to
    be done while their own alarms have not rung, and before bounds end, that is before the next turn.

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
        # What was filed meanwhile stands where it belongs; what is known here of its value is out of date.
        self._filed: set[int] = set()
        self._parts = self._look(pages, falling, waking)

    def go_on(self) -> bool:
        """Do one more part; return whether that was not the last one. O(n), of one of the things that `put` does."""
        return next(self._parts, True) is None

    def finish(self) -> None:
        """Do all that is left."""
        for _ in self._parts:
            pass

    def leave_out(self, page: int) -> None:
        """Leave a page alone from now on, which is being filed; O(1)."""
        self._filed.add(page)

    def _look(self, pages: IndexArray, falling: bool, waking: int) -> Iterator[None]:
        standing, pages = self._standing, distinct(pages)
        places = standing.place[pages]
        here = (places > RUNNING) | (places == AWAKE) | (places == FRESH)
        pages, places = pages[here], places[here]
        if not pages.size:
            return
        values = standing.look_at(pages)
        yield
        after, above = standing.now, standing.near_cutoff
        until = max(standing.holds, after)
        while values.prepare(after, until, above):
            yield
        yield
        parabolas = values.parabolas(after, until, above)
        yield
        there = standing.place[pages] == places
        there &= ~self._are_filed(pages)
        standing.leave(pages[there])
        sleepers = standing.settle(pages, values, parabolas, after, falling, waking, there)
        settled = standing.place[pages]
        yield
        if sleepers is not None:
            asleep = (standing.place[pages] == settled)[sleepers.where]
            standing.set_alarms(sleepers, asleep & ~self._are_filed(sleepers.pages))
        if (places == FRESH).any():
            standing.forget_fresh()

    def _are_filed(self, pages: IndexArray) -> BoolArray:
        return np.isin(pages, list(self._filed))
