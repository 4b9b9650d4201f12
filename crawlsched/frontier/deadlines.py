"""Deadlines: pages that have not been crawled for the longest interval go before anything of value."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.frontier.hosts.host_queues import HostQueues
from crawlsched.frontier.placement import Standing
from crawlsched.frontier.places import IN_FLIGHT
from crawlsched.frontier.timers.eligibility import Eligibility
from crawlsched.frontier.timers.timing_wheel import Calendar
from crawlsched.pages.intervals import Intervals

__all__ = ["Deadlines"]


# More pages than this that are overdue at once are kept in arrays.
_MANY_OVERDUE = 256


class Deadlines:
    """When pages become overdue, and those that are.

    Parameters
    ----------
    eligibility : Eligibility
    standing : Standing
        Read, never written.
    intervals : Intervals
        How long after its last crawl (or after it was first seen) a page is overdue.
    tick, now : float
        As for `Calendar`.

    Attributes
    ----------
    come : bool
        Whether pages become overdue.
    overdue : HostQueues
        By deadline.
    calendar : Calendar
        A deadline moves with each visit, but mostly away: the alarm that is set may ring early, and is then set again.
    soon : list of tuple
        A heap of (time, page): pages that become overdue before the turn ends.
    """

    def __init__(
        self,
        eligibility: Eligibility,
        standing: Standing,
        *,
        intervals: Intervals,
        tick: float,
        now: float,
    ) -> None:
        self._eligibility = eligibility
        self._standing = standing
        self._intervals = intervals
        self.come = intervals.come
        self.calendar = Calendar(tick, now)
        self.overdue = HostQueues(standing.resting.until, self.of)
        self.soon: list[tuple[float, int]] = []

    def of(self, page: int) -> float:
        """Return when a page becomes overdue, POSIX seconds; inf without a longest crawl interval. O(1)."""
        longest = self._intervals.longest_one(page)
        if longest == np.inf:
            return np.inf
        pages = self._eligibility.pages
        last: float = pages.crawled_at.item(page)
        return (last if last > -np.inf else pages.first_seen.item(page)) + longest

    def set_one(self, page: int) -> None:
        """See to it that a page is found when it becomes overdue; O(log n)."""
        if not self.come:
            return
        due = max(self.of(page), self._eligibility.at_one(page))
        if due > self._standing.now:
            self.overdue.discard(page)
        if due == np.inf:
            return
        if due <= self._standing.until:
            self.calendar.clear_one(page)
            heappush(self.soon, (due, page))
        elif not self.calendar.is_set(page):
            self.calendar.set_one(page, due, self._standing.rung)

    def set(self, pages: IndexArray) -> None:
        """See to it that distinct pages are found when they become overdue; O(log n) a page, in numpy."""
        if not self.come or not pages.size:
            return
        columns, now = self._eligibility.pages, self._standing.now
        last = columns.crawled_at[pages]
        never = last == -np.inf
        if never.any():
            last[never] = columns.first_seen[pages[never]]
        deadlines = last + self._intervals.longest(pages)
        due = np.maximum(deadlines, self._eligibility.at(pages))
        self.overdue.discard_many(pages[due > now])
        late = due <= self._standing.until
        if np.count_nonzero(late) > _MANY_OVERDUE:
            many = (due <= now) & ~self.overdue.inside(pages)
            self.calendar.clear(pages[many])
            self.overdue.push_many(columns.host[pages[many]], deadlines[many], pages[many])
            soon = late & (due > now)
        else:
            soon = late
        for page in pages[soon].tolist():
            self.set_one(page)
        pages, due = pages[~late], due[~late]
        unset = ~self.calendar.has_alarm(pages) & (due < np.inf)
        self.calendar.set(pages[unset], due[unset], self._standing.rung)

    def discard(self, pages: IndexArray) -> None:
        """Forget pages; O(1) a page."""
        self.overdue.discard_many(pages)
        if self.come:
            self.calendar.clear(pages)

    def reserve(self, capacity: int) -> None:
        """Make room for so many pages; O(n)."""
        if self.come:
            self.calendar.reserve(capacity)

    def turn(self) -> None:
        """Begin a turn; O(pages that may become overdue in it)."""
        self.calendar.adapt()
        if self.come:
            pages = self.calendar.due(self._standing.rung)
            self.set(pages[self._standing.place[pages] > IN_FLIGHT])

    def advance(self) -> None:
        """Let those be overdue that have become so by now, within the turn; O(log n) each."""
        now = self._standing.now
        while self.soon and self.soon[0][0] <= now:
            _, page = heappop(self.soon)
            if self._standing.place[page] > IN_FLIGHT and page not in self.overdue:
                deadline = self.of(page)
                if max(deadline, self._eligibility.at_one(page)) <= now:
                    self.overdue.push(self._eligibility.pages.host.item(page), deadline, page)

    def next_time(self) -> float:
        """Return a time until which no other page becomes overdue; inf if none does. O(1)."""
        if not self.come:
            return np.inf
        return min(self.soon[0][0] if self.soon else np.inf, self.calendar.next_time())
