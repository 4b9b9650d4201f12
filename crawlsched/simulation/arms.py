"""Arms, the policies of a replay: their common parts, their rates, and the policies that need no rates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators import LearnedRates, Posterior, learn_prior
from crawlsched.simulation.history import CrawlResult, Window

__all__ = [
    "INTERVALS",
    "NO_PAGE",
    "AdaptiveIntervals",
    "Arm",
    "ArmSetting",
    "PosteriorRates",
    "RoundRobinArm",
    "rate_grid",
]


class PosteriorRates:
    """Mean rates of a gridded posterior, whose prior is learned from the pages visited."""

    def __init__(self, n_pages: int, even_rate: float, duration: float) -> None:
        self._bank = Posterior(n_pages, rate_grid(even_rate, duration))
        self._visited = np.zeros(n_pages, bool)

    def change_rate(self, rows: IndexArray) -> FloatArray:
        """Return changes per second, after learning the prior anew."""
        if self._visited.any():
            self._bank.prior = learn_prior(self._bank.log_likelihood(np.flatnonzero(self._visited)))
        estimates: FloatArray = self._bank.change_rate(rows)
        return estimates

    def observe(self, row: int, elapsed: float, changed: bool, *, time_since_modified: float | None) -> None:
        """Learn from a visit."""
        self._bank.update(row, elapsed, changed, time_since_modified=time_since_modified)
        self._visited[row] = True


def rate_grid(
    even_rate: float, duration: float, n_rates: int = 32, in_replay: float = 0.1, in_interval: float = 100.0
) -> FloatArray:
    """Return the grid of change rates for a replay, in equal ratios, shape (n_rates,).

    Rates below one change in ten replays cannot be distinguished, nor can rates above a hundred changes in an interval
    of 1 / `even_rate`.
    """
    slowest = min(in_replay / duration, even_rate / in_interval)
    return np.geomspace(slowest, even_rate * in_interval, n_rates)


#: The pick of an arm when no page is there.
NO_PAGE = -1


@dataclass(frozen=True, eq=False)
class ArmSetting:
    """What every arm knows before a replay begins."""

    importance: FloatArray  # of all pages that will ever be there, a row each; shape (n,)
    bandwidth: float  # crawls per second
    window: Window
    even_rate: float  # crawls per second and page if all pages get the same number
    # The known change rates per second, or the estimator that learns them; if there is neither, the arm learns by
    # itself or needs no rates.
    known: FloatArray | None
    learned: LearnedRates | PosteriorRates | None
    recall: FloatArray | None  # None: not known; shape (n,)
    false_signal_rate: FloatArray | None
    has_signals: bool  # whether something announces changes
    seed: int  # decides all random choices
    signal_delay: float = 0.0  # seconds after a crawl in which arms discard announcements

    def change_rate(self, rows: IndexArray) -> FloatArray:
        """Return the change rates of pages, known or learned, per second."""
        if self.known is not None:
            return self.known[rows]
        assert self.learned is not None
        return self.learned.change_rate(rows)

    def observe(self, visit: CrawlResult) -> None:
        """Learn from a visit, if rates are learned."""
        if self.learned is not None:
            self.learned.observe(visit.row, visit.elapsed, visit.changed, time_since_modified=visit.time_since_modified)


class Arm(ABC):
    """Decides which page is crawled. From one call to the next, time never decreases.

    Attributes
    ----------
    crawled_at : ndarray, shape (n,)
        When each page was crawled last; inf for a page that is not there, so that it never counts as the page that has
        waited longest.
    """

    def __init__(self, setting: ArmSetting) -> None:
        self.setting = setting
        self.there = np.zeros(setting.importance.size, bool)  # which pages may be crawled; shape (n,)
        self.crawled_at = np.full(setting.importance.size, np.inf)
        self.n_there = 0

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages begin, with copies made at `crawled_at`."""
        self.there[rows] = True
        self.crawled_at[rows] = crawled_at
        self.n_there += rows.size

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages end."""
        self.there[rows] = False
        self.crawled_at[rows] = np.inf
        self.n_there -= rows.size

    def signalled(self, rows: IndexArray, now: float) -> None:  # noqa: B027
        """Changes of distinct pages are announced; most arms ignore announcements."""

    def pick(self, now: float) -> int:
        """Return the page to crawl now; `NO_PAGE` only if none is there."""
        return self.choose(now) if self.n_there else NO_PAGE

    @abstractmethod
    def choose(self, now: float) -> int:
        """Return the page to crawl now; at least one page is there."""

    def crawled(self, visit: CrawlResult) -> None:
        """The page picked was crawled."""
        self.crawled_at[visit.row] = visit.time


class RoundRobinArm(Arm):
    """Crawl the pages in order, again and again; a new page is crawled at its place in this order."""

    _next = 0

    def choose(self, now: float) -> int:
        """Return the next page in the round."""
        ahead = self.there[self._next :]
        found = int(ahead.argmax()) if ahead.size else 0
        return self._next + found if ahead.size and ahead[found] else int(self.there.argmax())

    def crawled(self, visit: CrawlResult) -> None:
        """Continue with the next page."""
        self._next = visit.row + 1


#: The interval after a visit, by policy: ``following(interval, changed, shortest)``. ``uniform`` does not change the
#: interval. Nutch's AdaptiveFetchSchedule makes it 20 % shorter after a change, and 40 % longer otherwise.
#: After a change, StormCrawler's AdaptiveScheduler takes the mean of the interval and the shortest interval. Otherwise
#: it makes the interval 50 % longer.
INTERVALS: dict[str, Callable[[float, bool, float], float]] = {
    "uniform": lambda interval, changed, shortest: interval,
    "nutch": lambda interval, changed, shortest: interval * (0.8 if changed else 1.4),
    "stormcrawler": lambda interval, changed, shortest: 0.5 * (interval + shortest) if changed else 1.5 * interval,
}


class AdaptiveIntervals(Arm):
    """Crawl the page that was due first; a policy of `INTERVALS` sets its next interval after each visit.

    Notes
    -----
    In both crawlers an operator sets the first, the shortest and the longest interval. Here every page begins with the
    interval that just uses up the bandwidth. No interval goes below one slot or above the length of the replay. An arm
    never idles: if no page is due, it crawls the page that will be due first.
    """

    def __init__(self, setting: ArmSetting, policy: str) -> None:
        super().__init__(setting)
        self._due = np.full(self.there.size, np.inf)
        self._interval = np.full(self.there.size, 1.0 / setting.even_rate)
        self._shortest = 1.0 / setting.bandwidth
        self._longest = max(setting.window.end - setting.window.start, self._shortest)
        self._following = INTERVALS[policy]

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages begin."""
        super().begin(rows, crawled_at, now)
        self._due[rows] = crawled_at + self._interval[rows]

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages end."""
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
