"""One run of a crawl: which requests are sent first, and when a run of one pass is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from crawlsched.pages import FREE, MOVED
from crawlsched.pages.marks import TRIED
from crawlsched.planner import Pick, Planner

__all__ = ["OnePass", "Starts"]

# The least number of seconds between two searches through all pages.
_LOOKED_THROUGH = 0.2
_FORCED_AT_ONCE = 1_000


@dataclass(eq=False)
class OnePass:
    """Knows which pages were tried in this run, and whether any page is left. The run has at most `most` visits.

    The pages of a host that has failed for `patience` seconds are left to the next pass.

    Examples
    --------
    >>> planner = Planner(bandwidth=1.0)
    >>> _ = planner.add(host=0, now=0.0)
    >>> one_pass = OnePass(planner, True)
    >>> one_pass.is_over(0.0)
    False
    >>> one_pass.tried(planner.pick(0.0, lambda host, now: now).page)
    >>> planner.crawled(0, 0.0, None)
    >>> one_pass.is_over(1.0)
    True
    """

    planner: Planner
    most: bool | int  # True: all pages
    failing_since: Callable[[float], list[int]] = lambda time: []
    patience: float = 300.0
    #: Whether the planner had no page to give at the last call.
    is_drained: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._n = self._n_released = 0
        self._held: set[int] = set()
        # How many pages, visits and releases there were when the planner last ran out of pages.
        self._over_at: tuple[int, int, int] | None = None
        self._looked_at = -np.inf

    def pick(self, now: float, host_free_at: Callable[[int, float], float]) -> Pick | None:
        """Return the page to crawl now, or None; pages that had their visit in this run are put aside."""
        if self.is_full:
            return None
        while (pick := self.planner.pick(now, host_free_at)) and self.planner.pages.marks.item(pick.page) & TRIED:
            self.planner.hold(pick.page)
            self._held.add(pick.page)
        self.is_drained = pick is None
        return pick

    def tried(self, page: int) -> None:
        """A page is visited."""
        self.planner.pages.marks[page] |= np.uint16(TRIED)
        self._n += 1

    def taken_back(self, page: int) -> None:
        """No request was sent for a page that was to be visited."""
        self.planner.pages.marks[page] &= ~np.uint16(TRIED)
        self._n -= 1
        self._n_released += 1

    def tried_since(self, since: float) -> None:
        """Mark the pages that any process has crawled since this time as tried in this pass."""
        pages = self.planner.pages
        pages.marks[: pages.n][pages.crawled_at[: pages.n] >= since] |= np.uint16(TRIED)

    def released(self, page: int, now: float) -> None:
        """A page that was tried has news, so it may be visited once more."""
        self._n_released += 1
        if page in self._held:
            self._held.discard(page)
            self.planner.release(page, now)

    @property
    def is_full(self) -> bool:
        """Whether the largest number of visits is reached."""
        return self.most is not True and self._n >= self.most

    def left(self, now: float) -> NDArray[np.intp]:
        """Return the pages that may be tried and were not tried yet; O(n)."""
        pages = self.planner.pages
        every = slice(0, pages.n)
        state = pages.state[every]
        is_left = (state != FREE) & (state != MOVED) & (pages.marks[every] & TRIED == 0)
        is_left &= pages.crawled_at[every] + self.planner.intervals.shortest(np.arange(pages.n)) <= now
        if failing := self.failing_since(now - self.patience):
            is_left &= ~np.isin(pages.host[every], failing)
        return np.flatnonzero(is_left)

    def is_over(self, now: float) -> bool:
        """Whether there is no page left to try; pages that back off are tried when no other page is left."""
        if self.is_full:
            return True
        known = (self.planner.pages.n, self._n, self._n_released)
        if known == self._over_at:
            return True
        if now - self._looked_at < _LOOKED_THROUGH:
            return False
        self._looked_at = now
        left = self.left(now)
        if not left.size:
            self._over_at = known
        if left.size and self.is_drained:
            self.planner.force(left[:_FORCED_AT_ONCE], now)
        return not left.size


# Known pages wait for at most this time (seconds). They wait longer if the first start requests, with one slot each,
# take longer.
_LONGEST_WAIT = 60.0


@dataclass(eq=False)
class Starts:
    """Make known pages wait for the first start requests (`first` of them), and for all requests that are no pages.

    Until these have ended, all requests are start requests or follow from start requests, such as a log-in.

    Examples
    --------
    >>> starts = Starts(first=1)
    >>> starts.begin(now=0.0, bandwidth=1.0)
    >>> starts.asked(page=7); starts.asked(page=8)
    >>> starts.line, starts.is_over
    (deque([7]), False)
    """

    first: int
    line: deque[int] = field(default_factory=deque, init=False)
    has_ended: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.is_over = self.first == 0
        self._until, self._n = inf, 0

    def begin(self, now: float, bandwidth: float) -> None:
        """The slots begin."""
        self._until = now + max(_LONGEST_WAIT, self.first / bandwidth)

    def asked(self, page: int = -1) -> None:
        """start() made a request, for a page or for no page (-1); the first start requests go out first."""
        self._n += 1
        if not self.is_over and self._n <= self.first and page >= 0:
            self.line.append(page)

    def look(self, now: float, is_busy: bool) -> bool:
        """Return whether the other pages may go out now; `is_busy`: requests that go first are under way."""
        is_through = self.has_ended or self._n >= self.first
        if now >= self._until or (is_through and not (self.line or is_busy)):
            self.is_over = True
            self.line.clear()
        return self.is_over
