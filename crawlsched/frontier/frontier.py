"""The frontier: when each page will be worth a crawl, and which of those whose time has come goes next."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.frontier.candidates import ENOUGH, Candidates
from crawlsched.frontier.due_times import ASIDE, CANDIDATE, FILED, IN_FLIGHT, OVERDUE, SOON
from crawlsched.frontier.filing import Filing

__all__ = ["Frontier", "Pick"]

HostFreeAt = Callable[[int, float], float]

# A page that was crawled so many times as long ago as is looked at together will come back as soon.
_SOON_AGAIN = 8
_PLACE_NAMES = ("out", "in flight", "waiting", "waiting", "waiting", "candidate", "aside", "overdue")


class Pick(NamedTuple):
    """The page to crawl now.

    Attributes
    ----------
    page : int
    crawl_value : float
        At the time of the pick, to half a per cent; nan for a page that goes for another reason.
    reason : str
        ``"value"``, ``"overdue"`` (its longest crawl interval has passed) or ``"forced"``.
    """

    page: int
    crawl_value: float
    reason: str


class Frontier(Filing):
    """A queue of crossing times: pages are due when their crawl value reaches a level, and the best due page goes.

    Parameters
    ----------
    pages : Pages
        Read, never written.
    values : CrawlValues
        The crawl value of each page; whenever it changes otherwise than by the passing of time, `file` the page.
    intervals : Intervals
        No page goes sooner after its last crawl than the shortest; one not crawled for the longest goes first.
    slot : float
        Seconds from one pick to the next.

    Notes
    -----
    Order of a pick: forced pages, first forced first; overdue pages, oldest deadline first, then lowest number; the
    candidate with the highest crawl value, lowest number first among equals. Pages which may not be crawled yet
    (`not_before`, the shortest interval) are left out unless forced, and pages of hosts that rest in any case.

    The best candidate is worth 0.95 of the best page of all, or more: who is no candidate is below the level, and where
    no candidate is left the level comes down. docs/explanation/frontier.md has the argument and the measurements.
    """

    # -- what stands where

    def place_of(self, page: int) -> str:
        """Return where a page stands: out, in flight, barred, waiting, candidate, aside, overdue. O(1).

        It is barred while it may not be crawled yet.
        """
        place = self._place_of(page)
        is_barred = FILED <= place <= SOON and self._eligible_at(np.array([page])).item() > self._now
        return "barred" if is_barred else _PLACE_NAMES[place]

    def is_forced(self, page: int) -> bool:
        """Whether a page goes before all others. O(1)."""
        return page in self._forced

    def is_resting(self, host: int) -> bool:
        """Whether a host's pages are left out. O(1)."""
        return host in self._resting

    def rests_until(self, host: int) -> float:
        """Return until when a host's pages are left out, POSIX seconds; -inf: it does not rest. O(1)."""
        return self._resting.until.get(host, -np.inf)

    def returning(self, until: float) -> IndexArray:
        """Return the pages that would be candidates if their hosts did not rest, until then at most.

        O(those returned).
        """
        hosts = [host for host, end in self._resting.until.items() if end <= until]
        aside = [queue.aside[host].pages for queue in self._queues for host in hosts if host in queue.aside]
        return np.concatenate([np.zeros(0, np.intp), *aside])

    def waits_for_host(self) -> bool:
        """Whether some page could go if its host did not rest.

        O(resting hosts), O(n) where none of their candidates waits.
        """
        for host in self._resting.until:
            if any(len(queue.aside.get(host, ())) for queue in self._queues):
                return True
            if self._forced.has_host(host) or self._overdue.has_host(host):
                return True
        return bool(self._resting) and self._may_go(np.arange(self._pages.n), self._now, resting=True).size > 0

    def host_returns(self, now: float) -> bool:
        """Whether a host has rested by now, and its pages are not among those that may go yet; O(1)."""
        return self._resting.next_time() <= now

    def next_event(self, now: float) -> float:
        """Return the earliest time at which `pick` could give something, if it gives nothing now; inf: never.

        As much work as a pick: amortised O(log n).
        """
        if self.bound(now) > -np.inf:
            return now
        idle = min(queue.idle_until for queue in self._queues)
        return max(now, min(idle, self._due.next_time(), self._resting.next_time()))

    def out_of_turn(self, n: int) -> list[int]:
        """Return up to about `n` pages that go before anything of value, in their order. O(n log n)."""
        return [page for queue in (self._forced, self._overdue) for page in queue.likely(n)]

    def peek(self, n: int) -> IndexArray:
        """Return up to about `n` pages that are likely to be picked next, likeliest first. O(n log n)."""
        self._gather(self._now)
        found = self.out_of_turn(n)
        pages = np.concatenate([queue.going.pages for queue in self._queues])
        values = np.concatenate([queue.going.values_at(self._now) for queue in self._queues])
        found += pages[np.argsort(-values, kind="stable")].tolist()
        if len(found) < n:
            found += self._due.soonest(n - len(found)).tolist()
        if len(found) < n:
            others = self._may_go(np.arange(min(self._pages.n, 64 * n)), self._now)
            found += others[np.argsort(self._due.at[others], kind="stable")].tolist()
        return np.array(list(dict.fromkeys(found))[:n], np.intp)

    # -- picks

    def advance(self, now: float) -> None:
        """Let everything happen that was to happen until now; `pick` does so too.

        Amortised O(log n) for each page that falls due.
        """
        self._gather(now)

    def bound(self, now: float) -> float:
        """Return what no page that `pick` could give now is worth more than, by more than a twentieth.

        O(candidates).

        It is inf if a page may go whatever it is worth, and -inf if none may go. Whether a host is free is not asked.
        """
        if self._goes_first(now):
            return np.inf
        while True:
            value = max(queue.highest(now) for queue in self._queues)
            if not self._fill_low(now, value):
                return value

    def best_value(self, now: float, host_free_at: HostFreeAt) -> float:
        """Return what the page is worth that `pick` would give; inf: whatever it is worth, -inf: there is none.

        As much work as a pick: amortised O(log n).
        """
        self._follow(now)
        is_free = self._asking(now, host_free_at)
        if self._first_out_of_turn(is_free) is not None:
            return np.inf
        best = self._best(now, is_free)
        return -np.inf if best is None else best[2]

    def pick(self, now: float, host_free_at: HostFreeAt) -> Pick | None:
        """Take out the page to crawl now; amortised O(log n), plus a few crawl values.

        Parameters
        ----------
        now : float
            POSIX seconds.
        host_free_at : callable
            ``host_free_at(host, now)`` returns when a host may be asked; at most `now` if it may be now. It is asked
            only for hosts of pages that would be picked. A host which may not be asked rests until then.

        Returns
        -------
        Pick or None
            The page is in flight then: out of the frontier until it is filed again. None if no page may go.
        """
        self._follow(now)
        self._work(now)
        is_free = self._asking(now, host_free_at)
        if (first := self._first_out_of_turn(is_free)) is not None:
            self._send_off(first[0])
            return Pick(first[0], np.nan, first[1])
        best = self._best(now, is_free)
        if best is None:
            return None
        queue, row, value = best
        if queue.host_levels:
            self._hosts_to_check.add(queue.going.hosts.item(row))
        page = queue.going.take_row(row)
        if now - self._pages.crawled_at.item(page) < _SOON_AGAIN * self._together:
            self._coming_back.add(page)
        self._due.place[page] = IN_FLIGHT
        self._forced.discard(page)
        return Pick(page, value, "value")

    def _asking(self, now: float, host_free_at: HostFreeAt) -> Callable[[int], bool]:
        def is_free(host: int) -> bool:
            until = host_free_at(host, now)
            if until > now:
                self.rest_host(host, until)
            return until <= now

        return is_free

    def _goes_first(self, now: float) -> bool:
        self._follow(now)
        return self._forced.first() is not None or self._overdue.first() is not None

    def _first_out_of_turn(self, is_free: Callable[[int], bool]) -> tuple[int, str] | None:
        for queue, reason in ((self._forced, "forced"), (self._overdue, "overdue")):
            while queue and (entry := queue.first()) is not None:
                _, page, host = entry
                if is_free(host):
                    return page, reason
        return None

    def _best(self, now: float, is_free: Callable[[int], bool]) -> tuple[Candidates, int, float] | None:
        """Return the queue, the row and the value of the best candidate; bring levels down as far as need be."""
        while True:
            best: tuple[Candidates, int, float] | None = None
            n_resting = len(self._resting.until)
            for queue in self._queues:
                found = queue.best(now, is_free)
                if len(self._resting.until) > n_resting:
                    break
                if found is not None:
                    page = queue.going.pages.item(found[0])
                    if best is None or (-found[1], page) < (-best[2], best[0].going.pages.item(best[1])):
                        best = queue, *found
            if len(self._resting.until) > n_resting:
                continue  # rows are others now
            value = -np.inf if best is None else best[2]
            if not self._fill_low(now, value):
                return best

    def _fill_low(self, now: float, value: float) -> bool:
        """Whether a queue, whose waiting pages could be worth more than a value, has such a candidate now."""
        low = [queue for queue in self._queues if ENOUGH * queue.level > value]
        return any(self._fill(queue, now, value) for queue in low)

    def _send_off(self, page: int) -> None:
        self._leave(page)
        self._forced.discard(page)
        self._due.place[page] = IN_FLIGHT

    def _check(self, now: float) -> None:
        """Raise `AssertionError` unless every page stands where its place says, and only there; O(n)."""
        self._due.check()
        places = self._due.place
        going = [page for queue in self._queues for page in queue.going.pages.tolist()]
        aside = [page for queue in self._queues for lines in queue.aside.values() for page in lines.pages.tolist()]
        assert sorted(going) == np.flatnonzero(places == CANDIDATE).tolist()
        assert sorted(aside) == np.flatnonzero(places == ASIDE).tolist()
        assert all(host in self._resting for queue in self._queues for host in queue.aside)
        assert set(np.flatnonzero(places == FILED).tolist()) <= set(self._filed)
        assert {page for page in np.flatnonzero(places == OVERDUE).tolist() if page in self._overdue} == set(
            np.flatnonzero(places == OVERDUE).tolist()
        )
        assert (self._eligible_at(np.array(going + aside, np.intp)) <= now).all()
