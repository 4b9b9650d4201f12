"""Pages that were crawled in this turn: they are worth next to nothing, and dealt with together when it ends."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import IndexArray, LevelArray
from crawlsched.compiling import Compilable
from crawlsched.frontier.candidates import just_crawled_loops
from crawlsched.frontier.places import FRESH, IN_FLIGHT
from crawlsched.frontier.values import CrawlValues

__all__ = ["Fresh"]


#: `crawlsched.frontier.candidates.just_crawled_loops`.
LOOPS = Compilable(just_crawled_loops, keeps_lock=True)


class Fresh:
    """Pages just crawled, and what none of them is worth more than.

    Attributes
    ----------
    pages : dict of int to (float, float)
        What each is worth at most, and until when, POSIX seconds; some are elsewhere by now.
    at_most : float
        What no crawl value of them exceeds until `holds`.
    holds : float
        POSIX seconds; inf where there are none.
    """

    def __init__(self) -> None:
        self.pages: dict[int, tuple[float, float]] = {}
        self.at_most, self.holds = 0.0, np.inf

    def add(self, page: int, at_most: float, holds: float) -> None:
        """Take a page that is worth no more than so much until a time; O(1)."""
        if not self.pages:
            self.holds = holds
        self.pages[page] = at_most, holds
        if at_most > self.at_most:
            self.at_most = at_most

    def take(self, place: LevelArray) -> IndexArray:
        """Take out and return those that are still here, as their places say; they are in flight then. O(n)."""
        if LOOPS.compiled:
            pages = self._numbers()
            fresh = pages[: LOOPS.take_fresh(place, pages)]
        else:
            fresh = self.still(place)
            place[fresh] = IN_FLIGHT
        self.pages, self.at_most, self.holds = {}, 0.0, np.inf
        return fresh

    def still(self, place: LevelArray) -> IndexArray:
        """Return those that are still here, in any order, and leave them as they are; O(n)."""
        pages = self._numbers()
        fresh: IndexArray = pages[place[pages] == FRESH]
        return fresh

    def _numbers(self) -> IndexArray:
        return np.fromiter(self.pages, np.intp, len(self.pages))

    def forget(self, place: LevelArray, values: CrawlValues, holds: float, enough: float) -> None:
        """Keep only those still here, with bounds below `enough` that hold until a time, where they can be; O(n)."""
        self.pages = {
            page: known if known[1] >= holds else (values.soon_at_most(page, holds, enough), holds)
            for page, known in self.pages.items()
            if place.item(page) == FRESH
        }
        self.at_most = max((at_most for at_most, _ in self.pages.values()), default=0.0)
        self.holds = holds if self.pages else np.inf
