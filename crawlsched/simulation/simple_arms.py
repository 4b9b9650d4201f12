"""Arms that know no rates: round robin, even intervals, and those of Nutch and StormCrawler."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.arm import NO_PAGE, Setting, Turns
from crawlsched.simulation.truth import Visit

__all__ = ["AdaptiveIntervals", "RoundRobin", "nutch_interval", "same_interval", "stormcrawler_interval"]


class RoundRobin:
    """Crawl the pages in order, again and again.

    Parameters
    ----------
    setting : Setting
    """

    def __init__(self, setting: Setting) -> None:
        self._turns = Turns(setting.importance.size)
        self._next = 0

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages are there: each has its place in the round."""
        self._turns.begin(rows, crawled_at)

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages are there no more."""
        self._turns.end(rows)

    def signalled(self, rows: IndexArray, now: float) -> None:
        """Announcements do not count."""

    def pick(self, now: float) -> int:
        """Return the next page in the round."""
        if not self._turns.n_there:
            return NO_PAGE
        there = self._turns.there
        ahead = there[self._next :]
        found = int(ahead.argmax()) if ahead.size else 0
        if ahead.size and ahead[found]:
            return self._next + found
        return int(there.argmax())

    def crawled(self, visit: Visit) -> None:
        """Go on with the page after it."""
        self._next = visit.row + 1


Interval = Callable[[float, bool, float], float]


def same_interval(interval: float, changed: bool, shortest: float) -> float:
    """Return the same interval for ever: the page that waits longest is due first."""
    return interval


def nutch_interval(interval: float, changed: bool, shortest: float) -> float:
    """Return the next interval as Nutch's AdaptiveFetchSchedule has it: 0.2 less when changed, 0.4 more when not."""
    return interval * (0.8 if changed else 1.4)


def stormcrawler_interval(interval: float, changed: bool, shortest: float) -> float:
    """Return the next interval as StormCrawler's AdaptiveScheduler has it: half way to the shortest, or half more."""
    return 0.5 * interval + 0.5 * shortest if changed else 1.5 * interval


class AdaptiveIntervals:
    """Crawl the page that was due first; its interval follows what visits find.

    Parameters
    ----------
    setting : Setting
    following : callable
        ``following(interval, changed, shortest)`` gives the next interval, seconds.

    Notes
    -----
    Both crawlers begin with, and are bounded by, intervals that an operator sets. Here every page begins with the
    interval at which the bandwidth is just used up, and none goes below one slot or above the length of the replay.
    Being work-conserving, an arm crawls a page before it is due if none is.
    """

    def __init__(self, setting: Setting, following: Interval) -> None:
        n_pages = setting.importance.size
        self._turns = Turns(n_pages)
        self._due = np.full(n_pages, np.inf)
        self._interval = np.full(n_pages, 1.0 / setting.even_rate)
        self._shortest = 1.0 / setting.bandwidth
        self._longest = max(setting.window.end - setting.window.start, self._shortest)
        self._following = following

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages are there."""
        self._turns.begin(rows, crawled_at)
        self._due[rows] = crawled_at + self._interval[rows]

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages are there no more."""
        self._turns.end(rows)
        self._due[rows] = np.inf

    def signalled(self, rows: IndexArray, now: float) -> None:
        """Announcements do not count."""

    def pick(self, now: float) -> int:
        """Return the page that is due first."""
        return int(self._due.argmin()) if self._turns.n_there else NO_PAGE

    def crawled(self, visit: Visit) -> None:
        """Set when the page is due again."""
        interval = self._following(float(self._interval[visit.row]), visit.changed, self._shortest)
        self._interval[visit.row] = min(max(interval, self._shortest), self._longest)
        self._due[visit.row] = visit.time + self._interval[visit.row]
