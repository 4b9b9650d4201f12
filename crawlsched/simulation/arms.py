"""Arms: the policies of a replay; here what they have in common, and those that need no rates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.history import Window
from crawlsched.simulation.rates import Rates
from crawlsched.simulation.truth import CrawlResult

__all__ = ["INTERVALS", "NO_PAGE", "AdaptiveIntervals", "Arm", "RoundRobinArm", "Setting"]

#: What an arm picks when no page is there.
NO_PAGE = -1


@dataclass(frozen=True, eq=False)
class Setting:
    """What every arm knows before a replay begins."""

    importance: FloatArray  # of all pages that will ever be there, in rows; shape (n,)
    bandwidth: float  # crawls per second
    window: Window
    even_rate: float  # crawls per second and page if all get the same
    rates: Rates | None  # where change rates come from; None: the arm learns by itself, or needs none
    recall: FloatArray | None  # None: not known; shape (n,)
    false_signal_rate: FloatArray | None
    has_signals: bool  # whether something announces changes
    seed: int  # of what is random
    signal_delay: float = 0.0  # announcements within these seconds after a crawl are discarded, by arms that use any


class Arm(ABC):
    """Decides which page is crawled. Time never goes back from one call to the next.

    Attributes
    ----------
    crawled_at : ndarray, shape (n,)
        When they were crawled last; inf for pages that are not there, so that none of them waits longest.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.there = np.zeros(setting.importance.size, bool)  # which pages may be crawled; shape (n,)
        self.crawled_at = np.full(setting.importance.size, np.inf)
        self.n_there = 0

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages are there, and have been crawled when they began."""
        self.there[rows] = True
        self.crawled_at[rows] = crawled_at
        self.n_there += rows.size

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages are there no more."""
        self.there[rows] = False
        self.crawled_at[rows] = np.inf
        self.n_there -= rows.size

    def signalled(self, rows: IndexArray, now: float) -> None:  # noqa: B027
        """Changes of distinct pages are announced; most arms ignore that."""

    def pick(self, now: float) -> int:
        """Return the page to crawl now; `NO_PAGE` only if none is there."""
        return self.choose(now) if self.n_there else NO_PAGE

    @abstractmethod
    def choose(self, now: float) -> int:
        """Return the page to crawl now, of some that are there."""

    def crawled(self, visit: CrawlResult) -> None:
        """The page picked was crawled."""
        self.crawled_at[visit.row] = visit.time


class RoundRobinArm(Arm):
    """Crawl the pages in order, again and again; each that comes has its place in the round."""

    _next = 0

    def choose(self, now: float) -> int:
        """Return the next page in the round."""
        ahead = self.there[self._next :]
        found = int(ahead.argmax()) if ahead.size else 0
        return self._next + found if ahead.size and ahead[found] else int(self.there.argmax())

    def crawled(self, visit: CrawlResult) -> None:
        """Go on with the page after it."""
        self._next = visit.row + 1


#: How intervals follow what a visit finds, by policy: ``following(interval, changed, shortest)``. The same for ever;
#: Nutch's AdaptiveFetchSchedule, 0.2 less when changed, 0.4 more when not; StormCrawler's AdaptiveScheduler, half way
#: to the shortest, or half more.
INTERVALS: dict[str, Callable[[float, bool, float], float]] = {
    "uniform": lambda interval, changed, shortest: interval,
    "nutch": lambda interval, changed, shortest: interval * (0.8 if changed else 1.4),
    "stormcrawler": lambda interval, changed, shortest: 0.5 * (interval + shortest) if changed else 1.5 * interval,
}


class AdaptiveIntervals(Arm):
    """Crawl the page that was due first; its interval follows what visits find, by a policy of `INTERVALS`.

    Notes
    -----
    Both crawlers begin with, and are bounded by, intervals that an operator sets. Here every page begins with the
    interval at which the bandwidth is just used up, and none goes below one slot or above the length of the replay.
    Being work-conserving, an arm crawls a page before it is due if none is.
    """

    def __init__(self, setting: Setting, policy: str) -> None:
        super().__init__(setting)
        self._due = np.full(self.there.size, np.inf)
        self._interval = np.full(self.there.size, 1.0 / setting.even_rate)
        self._shortest = 1.0 / setting.bandwidth
        self._longest = max(setting.window.end - setting.window.start, self._shortest)
        self._following = INTERVALS[policy]

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages are there."""
        super().begin(rows, crawled_at, now)
        self._due[rows] = crawled_at + self._interval[rows]

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages are there no more."""
        super().end(rows, now)
        self._due[rows] = np.inf

    def choose(self, now: float) -> int:
        """Return the page that is due first."""
        return int(self._due.argmin())

    def crawled(self, visit: CrawlResult) -> None:
        """Set when the page is due again."""
        interval = self._following(self._interval.item(visit.row), visit.changed, self._shortest)
        self._interval[visit.row] = min(max(interval, self._shortest), self._longest)
        self._due[visit.row] = visit.time + self._interval[visit.row]
