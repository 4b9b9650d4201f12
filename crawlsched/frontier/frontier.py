"""The frontier: when each page will be worth a crawl, and which of the due pages goes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.frontier.candidates import ENOUGH
from crawlsched.frontier.due_times import FILED, IN_FLIGHT, SOON
from crawlsched.frontier.filing import LEAST_WAIT, Filing

__all__ = ["Frontier", "Pick"]

HostFreeAt = Callable[[int, float], float]

_PLACE_NAMES = ("out", "in flight", "waiting", "waiting", "waiting", "candidate", "aside", "overdue", "new")


class Pick(NamedTuple):
    """The page to crawl now."""

    page: int
    crawl_value: float  # at the time of the pick, exact to half a per cent; nan if `reason` is not "value"
    reason: str  # ``"value"``, ``"overdue"`` (its longest crawl interval has passed) or ``"forced"``
    is_first_copy: bool = False  # whether the page was picked as a new page


class Frontier(Filing):
    """A queue of pages that are due when their crawl value reaches a level, and a queue of new pages.

    Notes
    -----
    A pick takes the first page in this order:

    1. forced pages, in the order in which they were forced;
    2. overdue pages, oldest deadline first, then lowest number;
    3. in the share of the slots that is for new pages, the new page whose turn it is;
    4. the candidate with the highest crawl value, or the lowest number if values are equal.

    Slots that new pages do not need go to known pages, and vice versa. Pages that may not be crawled yet (`not_before`,
    the shortest interval) are left out unless they are forced. Pages of resting hosts are always left out.

    The best candidate is worth at least 0.95 of the best page of all, since the other pages are below the level. When
    no candidate is left, the level is lowered. docs/explanation/frontier.md has the argument and the measurements.
    """

    # -- the places of pages

    def place_of(self, page: int) -> str:
        """Return the name of a page's place, such as "in flight" or "barred" (it may not be crawled yet); O(1)."""
        place = self._place_of(page)
        is_barred = FILED <= place <= SOON and bool(self._eligible_at(page) > self._now)
        return "barred" if is_barred else _PLACE_NAMES[place]

    def is_forced(self, page: int) -> bool:
        """Whether a page goes before all others. O(1)."""
        return page in self._forced

    def is_resting(self, host: int) -> bool:
        """Whether a host's pages are left out. O(1)."""
        return host in self._resting

    def rests_until(self, host: int) -> float:
        """Return the time until which a host's pages are left out, POSIX seconds; -inf: it does not rest. O(1)."""
        return float(self._resting.at.get(host, -np.inf))

    def returning(self, until: float, n: int) -> IndexArray:
        """Return candidates of hosts that stop resting by `until`, and up to `n` new pages; O(pages + h log n)."""
        hosts = [host for host, end in self._resting.at.items() if end <= until]
        still = self._resting.at.keys() - hosts
        new = self.new.likely(n, still) if any(self.new.of_host[host] for host in hosts) else []
        aside = [self._queue.aside[host].pages for host in hosts if host in self._queue.aside]
        return np.concatenate([np.array(new, np.intp), *aside])

    def waits_for_host(self) -> bool:
        """Return whether some page could go if its host did not rest; at most O(n)."""
        for host in self._resting.at:
            if len(self._queue.aside.get(host, ())) or self.new.of_host[host]:
                return True
            if self._forced.has_host(host) or self._overdue.has_host(host):
                return True
        return bool(self._resting) and self._may_go(np.arange(self._pages.n), self._now, resting=True).size > 0

    def out_of_turn(self, n: int) -> list[int]:
        """Return up to about `n` pages that go before all pages picked by value, in their order. O(n log n)."""
        return [*self._forced.likely(n), *self._overdue.likely(n, self._now)]

    def peek(self, n: int) -> IndexArray:
        """Return up to about `n` pages that are likely to be picked next, the likeliest first. O(n log n)."""
        self._follow(self._now)
        found = self.out_of_turn(n)
        values = -self._queue.going.values_at(self._now)
        best = np.argpartition(values, n)[:n] if n < values.size else np.arange(values.size)  # to sort all takes longer
        known = self._queue.going.pages[best[np.argsort(values[best])]]
        new = self.new.likely(n, self._resting)
        n_new = max(round(n * self.share.share), n - known.size)
        found += new[:n_new] + known.tolist() + new[n_new:]
        if len(found) < n:
            found += self._due.soonest(n - len(found)).tolist()
        return np.array(list(dict.fromkeys(found))[:n], np.intp)

    # -- picks

    def advance(self, now: float) -> None:
        """Bring the frontier up to `now`, as `pick` does; amortised O(log n) for each page that falls due."""
        self._let_hosts_return(now)
        self._look(now)

    def pick(self, now: float, host_free_at: HostFreeAt) -> Pick | None:
        """Take out and return the page to crawl now; None if no page may go. Amortised O(log n), plus a few values.

        Parameters
        ----------
        host_free_at : callable
            ``host_free_at(host, now)`` returns the time from which a host may be asked: `now` or earlier if it may be
            asked now. It is called only for hosts of pages that would be picked. A host that may not be asked yet rests
            until that time.
        """
        self._follow(now)
        self._work(now)
        self._picks_until_look -= 1
        is_free = self._asking(now, host_free_at)
        pick = self._out_of_turn(now, is_free) or self._choose(now, is_free)
        if pick is not None:
            self._leave_one(pick.page)
            self._forced.discard(pick.page)
            self._due.place[pick.page] = IN_FLIGHT
        return pick

    def _asking(self, now: float, host_free_at: HostFreeAt) -> Callable[[int], bool]:
        def is_free(host: int) -> bool:
            until = host_free_at(host, now)
            if until > now:
                self.rest_host(host, until)
            return until <= now

        return is_free

    def _out_of_turn(self, now: float, is_free: Callable[[int], bool]) -> Pick | None:
        for queue, reason, until in ((self._forced, "forced", np.inf), (self._overdue, "overdue", now)):
            while (first := queue.first(until)) is not None:
                page, host = first
                if is_free(host):
                    return Pick(page, np.nan, reason)
        return None

    def _choose(self, now: float, is_free: Callable[[int], bool]) -> Pick | None:
        """Return the new page whose turn it is, or the best candidate."""
        new = self.new.first(is_free)
        best = None
        if not self._is_for_new(new, now):
            best = self._queue.best(now, is_free)
            while (best is None or best[1] < ENOUGH * self._queue.level) and self._fill(now):
                best = self._queue.best(now, is_free)
        if best is not None:
            self.share.went(is_first_copy=False)
            return Pick(*best, "value")
        if new is None:
            return None
        self.share.went(is_first_copy=True)
        self.new.took(new, self.share.share / self.slot)
        return Pick(new, self.values.value_at(np.array([new]), now).item(), "value", True)

    def _is_for_new(self, new: int | None, now: float) -> bool:
        """Return whether a new page takes this slot. While a new page waits, set a least wait for known pages."""
        waits = new is not None and self.new.matters(new)
        before, self._least_wait = self._least_wait, LEAST_WAIT * self.slot if waits else 0.0
        self._queue.crawled_by = now - self._least_wait if waits else np.inf
        if self._least_wait < before:
            self._idle_until = -np.inf  # known pages may go earlier now
        return waits and self.share.is_due
