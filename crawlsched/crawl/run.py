"""One run of a crawl: what goes first in it, and when a run of one pass is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import NDArray

from crawlsched.pages import FREE, MOVED
from crawlsched.pages.marks import TRIED
from crawlsched.planner import Planner

__all__ = ["OnePass", "Starts"]

# The least seconds between two searches through all pages.
_LOOKED_THROUGH = 0.2
_FORCED_AT_ONCE = 1_000


class OnePass:
    """Knows which pages were tried in this run, and whether any is left; it ends after `most` visits at the latest.

    The pages of a host that has failed for `patience` seconds are left to the next pass.

    Examples
    --------
    >>> planner = Planner(bandwidth=1.0)
    >>> _ = planner.add(host=0, now=0.0)
    >>> one_pass = OnePass(planner, None)
    >>> one_pass.is_over(0.0)
    False
    >>> one_pass.tried(planner.pick(0.0, lambda host, now: now).page)
    >>> planner.crawled(0, 0.0, None)
    >>> one_pass.is_over(1.0)
    True
    """

    def __init__(
        self,
        planner: Planner,
        most: int | None,
        failing_since: Callable[[float], list[int]] = lambda time: [],
        patience: float = 300.0,
    ) -> None:
        self._patience = patience
        self._planner = planner
        self._failing_since = failing_since
        self._most = most
        self._n = 0
        self._n_released = 0
        self._held: set[int] = set()
        # How many pages, visits and releases there were when it last ran out of pages.
        self._over_at: tuple[int, int, int] | None = None
        self._looked_at = -np.inf
        #: Whether the planner had no page to give at the last call.
        self.is_drained = False

    def may_go(self, page: int) -> bool:
        """Whether a picked page has not had its visit in this run yet; if it has, it is put aside."""
        if not self._planner.pages.marks.item(page) & TRIED:
            return True
        self._planner.hold(page)
        self._held.add(page)
        return False

    def tried(self, page: int) -> None:
        """A page is visited."""
        self._planner.pages.marks[page] |= np.uint16(TRIED)
        self._n += 1

    def taken_back(self, page: int) -> None:
        """No request was sent for a page that was to be visited."""
        self._planner.pages.marks[page] &= ~np.uint16(TRIED)
        self._n -= 1
        self._n_released += 1

    def tried_since(self, since: float) -> None:
        """Another process had these shards: pages crawled from then on were tried in this pass."""
        pages = self._planner.pages
        pages.marks[: pages.n][pages.crawled_at[: pages.n] >= since] |= np.uint16(TRIED)

    def passed_over(self, page: int) -> None:
        """A page cannot be visited in this run, unless it is released."""
        self._planner.pages.marks[page] |= np.uint16(TRIED)

    def released(self, page: int, now: float) -> None:
        """A page that was tried has news: it may go once more."""
        self._n_released += 1
        if page in self._held:
            self._held.discard(page)
            self._planner.release(page, now)

    @property
    def is_full(self) -> bool:
        """Whether the number of visits is reached."""
        return self._most is not None and self._n >= self._most

    def left(self, now: float) -> NDArray[np.intp]:
        """Return the pages that were not tried and may be; O(n)."""
        pages = self._planner.pages
        every = slice(0, pages.n)
        state = pages.state[every]
        is_left = (state != FREE) & (state != MOVED) & (pages.marks[every] & TRIED == 0)
        is_left &= pages.crawled_at[every] + self._planner.intervals.shortest(np.arange(pages.n)) <= now
        if failing := self._failing_since(now - self._patience):
            is_left &= ~np.isin(pages.host[every], failing)
        return np.flatnonzero(is_left)

    def is_over(self, now: float) -> bool:
        """Whether there is no page left to try; those that back off are tried when no other is left."""
        if self.is_full:
            return True
        known = (self._planner.pages.n, self._n, self._n_released)
        if known == self._over_at:
            return True
        if now - self._looked_at < _LOOKED_THROUGH:
            return False
        self._looked_at = now
        left = self.left(now)
        if not left.size:
            self._over_at = known
        if left.size and self.is_drained:
            self._planner.force(left[:_FORCED_AT_ONCE], now)
        return not left.size


# Pages wait at most for these seconds, or for as many slots as there are first start requests if that is longer.
_LONGEST_WAIT = 60.0


class Starts:
    """What goes first in a run: known pages wait for the `first` start requests, and for all that are no pages.

    Until then all requests are start requests or come from them, such as a log-in.

    Examples
    --------
    >>> starts = Starts(first=1)
    >>> starts.begin(now=0.0, bandwidth=1.0)
    >>> starts.asked(page=7); starts.asked(page=8)
    >>> starts.line, starts.is_over
    (deque([7]), False)
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._until = inf
        self._n = 0
        self._pages: set[int] = set()
        self.line: deque[int] = deque()
        self.has_ended = False
        self.is_over = first == 0

    def begin(self, now: float, bandwidth: float) -> None:
        """The slots begin."""
        self._until = now + max(_LONGEST_WAIT, self._first / bandwidth)

    def asked(self, page: int = -1) -> None:
        """start() made a request, for a page or for none (-1); the first of them go first."""
        self._n += 1
        if not self.is_over and self._n <= self._first and page >= 0 and page not in self._pages:
            self._pages.add(page)
            self.line.append(page)

    def look(self, now: float, is_under_way: Callable[[int], bool], has_untracked: bool) -> bool:
        """Look whether all that goes first has ended; return whether the others may go now."""
        if self.is_over:
            return True
        self._pages = {page for page in self._pages if page in self.line or is_under_way(page)}
        is_through = self.has_ended or self._n >= self._first
        if now >= self._until or (is_through and not (self._pages or has_untracked)):
            self.is_over = True
            self._pages = set()
            self.line.clear()
        return self.is_over
