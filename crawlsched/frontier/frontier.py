"""The frontier: the page with the highest crawl value among all that may be crawled now, exactly, at every slot."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.frontier.filing import Filing
from crawlsched.frontier.ladder import (
    AFTER_ALL_PAGES,
    AWAKE,
    BARRED,
    FRESH,
    IN_FLIGHT,
    OUT,
    OWN_LADDER,
    RUNNING,
    Ladder,
)
from crawlsched.frontier.levels import value_at
from crawlsched.frontier.values import PageValue

__all__ = ["Frontier", "Pick"]

IndexArray = npt.NDArray[np.intp]
HostFreeAt = Callable[[int, float], float]

# So many pages at least are looked at when a ladder is opened, since numpy needs some to be worth its while.
_OPENED = 48
# After so many picks some pages are looked at before their alarms ring.
_WORK_EVERY = 4
_PLACE_NAMES = {OUT: "out", IN_FLIGHT: "in flight", BARRED: "barred", AWAKE: "awake", RUNNING: "in a run"}


class Pick(NamedTuple):
    """The page to crawl now.

    Attributes
    ----------
    page : int
    crawl_value : float
        At the time of the pick; nan for a page that goes for another reason.
    reason : str
        ``"value"``, ``"overdue"`` (its longest crawl interval has passed) or ``"forced"``.
    """

    page: int
    crawl_value: float
    reason: str


def _is_before(
    key: tuple[float, int], value: PageValue, best: tuple[float, int], best_value: PageValue, now: float
) -> bool:
    """Whether a page goes before the best one so far; where their values leave a doubt, by their exact values."""
    doubt = max(value.doubt, best_value.doubt)
    if doubt and abs(key[0] - best[0]) <= -2.0 * doubt * min(key[0], best[0]):
        return (-value.exact(now), key[1]) < (-best_value.exact(now), best[1])
    return key < best


class Frontier(Filing):
    """Keep pages in such an order that the best one is found without looking at all of them.

    Parameters
    ----------
    pages : Pages
        Read, never written.
    values : CrawlValues
        The crawl value of each page; whenever it changes otherwise than by the passing of time, `file` the page.
    tick : float
        Seconds; about the time in which some ten pages are picked.
    now : float
        POSIX seconds; times passed later never fall.
    min_crawl_interval : float, default 0
        No page is picked sooner after its last crawl, seconds.
    max_crawl_interval : float, optional
        A page not crawled for longer (since it was first seen, if never) goes first, seconds.

    Notes
    -----
    Order of a pick: forced pages, first forced first; overdue pages, oldest deadline first, then lowest number; the
    page with the highest crawl value, lowest number first among equals. Pages which may not be crawled yet
    (`not_before`, `min_crawl_interval`) are left out unless forced, and pages of hosts that rest in any case.
    """

    # -- what stands where

    def place_of(self, page: int) -> str:
        """Return where a page stands: out, in flight, barred, awake, in a run, behind another, or asleep. O(1)."""
        place = self._place.item(page) if 0 <= page < self._place.size else OUT
        return _PLACE_NAMES.get(place, "asleep" if place > RUNNING else "behind another")

    def is_forced(self, page: int) -> bool:
        """Whether a page goes before all others. O(1)."""
        return page in self._forced

    def is_resting(self, host: int) -> bool:
        """Whether a host's pages are left out. O(1)."""
        return host in self._resting

    def waits_for_host(self) -> bool:
        """Whether some page could go if its host did not rest; O(resting hosts)."""
        self._put_fresh()
        if self._awake.has_resting():
            return True
        for host in self._resting:
            ladder = self._ladders.get(host)
            if (
                self._resting_awake.get(host)
                or self._forced.has_host(host)
                or self._overdue.has_host(host)
                or (ladder is not None and ladder.bound() is not None)
            ):
                return True
        return False

    def next_event(self, now: float) -> float:
        """Return the earliest time at which `pick` could give something, if it gives nothing now; inf: never. O(1)."""
        self._put_fresh()
        times = [self._calendar.next_time()]
        times += [queue[0][0] for queue in (self._soon, self._overdue_soon, self._resting_order) if queue]
        if self._max is not None:
            times.append(self._deadlines.next_time())
        return max(now, min(times))

    def peek(self, n: int) -> IndexArray:
        """Return up to about `n` pages that are likely to be picked next, likeliest first; O(n log n)."""
        self._put_fresh()
        found: list[int] = []
        for queues in (self._forced, self._overdue):
            found += queues.likely(n)
        bounds = self._awake.bounds(self._now)
        for page in self._awake.pages[np.argsort(-bounds)[: np.count_nonzero(bounds >= 0)]].tolist():
            found += [page, *self._followers.behind(page, self._place)[: max(n - len(found), 0)].tolist()]
        for ladder in (self._shared, *self._ladders.values()) if len(found) < n else ():
            found += [page for page in ladder.top(n - len(found)).tolist() if self._place[page] == RUNNING]
            if len(found) < n and self._fall >= 1:
                # The next ones come from the beds that the cutoff comes down to.
                found += ladder.highest_sleepers(n - len(found)).tolist()
            if len(found) >= n:
                break
        if len(found) < n:
            found += self._calendar.soonest(n - len(found)).tolist()
        return np.array(list(dict.fromkeys(found))[:n], np.intp)

    # -- picks

    def advance(self, now: float) -> None:
        """Let everything happen that was to happen until now; `pick` does so first. Amortised O(log n) per event."""
        self._advance(now)

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
        self._advance(now)
        if not (self._forced or self._overdue) and (pick := self._obvious(now, host_free_at)) is not None:
            return pick
        free: set[int] = set()
        for queues, reason in ((self._forced, "forced"), (self._overdue, "overdue")):
            while (entry := queues.first()) is not None:
                _, page, host = entry
                if self._is_free(host, now, host_free_at, free):
                    queues.pop(host)
                    self._send_off(page)
                    return Pick(page, np.nan, reason)
        best = self._best(now, host_free_at, free)
        if best is None:
            return None
        self._send_off(best[1])
        self._work_off()
        return Pick(best[1], -best[0], "value")

    def _obvious(self, now: float, host_free_at: HostFreeAt) -> Pick | None:
        """Return the best page where one look at it shows that no other can be, as it does mostly; None otherwise.

        The same as `_best` finds, in a tenth of the time. Where it is None, no more was done than to let a host rest.
        """
        if not self._awake.compiled:
            return None
        row, bound, following = self._awake.highest(now)
        if bound < 0.0:
            return None
        value, doubt = self._awake.value_at(row, now)
        least = value * (1.0 - doubt)
        if least <= following or (self._fresh and least <= self._fresh_at_most):
            return None
        ladder = self._highest_ladder()
        if ladder is not None and least <= -ladder[0]:
            return None
        host = self._awake.host(row)
        until = host_free_at(host, now)
        if until > now:
            self.rest_host(host, until)
            return None
        page = self._awake.page(row)
        self._awake.discard_row(row)
        self._place[page] = IN_FLIGHT
        self._hand_over_one(page)
        self._work_off()
        return Pick(page, value, "value")

    def _work_off(self) -> None:
        """Do a part of what a falling cutoff makes necessary, or what the next tick would have too much of."""
        if self._crowded:
            # Not a few with each pick: in numpy some dozens cost no more.
            self._owed += self._thinned
        if self._turned:
            return  # such a pick has done enough
        self._n_worked += 1
        if self._crowded and self._owed >= _OPENED:
            self._thin_out()
        elif not self._n_worked % _WORK_EVERY:
            self._ring_ahead(self._now)

    def _is_free(self, host: int, now: float, host_free_at: HostFreeAt, free: set[int]) -> bool:
        if host in free:
            return True
        until = host_free_at(host, now)
        if until > now:
            self.rest_host(host, until)
            return False
        free.add(host)
        return True

    def _best(self, now: float, host_free_at: HostFreeAt, free: set[int]) -> tuple[float, int] | None:
        """Branch and bound: look at pages and ladders, highest bound first, until no bound is left above the best."""
        best: tuple[float, int] | None = None
        best_value: PageValue | None = None
        limit = best  # what cannot be before it is no better than the best page, whatever doubt its value leaves
        bounds = self._awake.bounds(now)
        while True:
            while bounds.size:
                row = int(bounds.argmax())
                bound = bounds.item(row)
                page = self._awake.page(row)
                if bound < 0 or (limit is not None and (-bound, page) > limit):
                    break
                bounds[row] = -np.inf
                if self._is_free(self._awake.host(row), now, host_free_at, free):
                    value = self._awake.value(row)
                    candidate = (-value.at(now), page)
                    if best is None or best_value is None or _is_before(candidate, value, best, best_value, now):
                        best, best_value = candidate, value
                        limit = best if not value.doubt else (best[0] * (1.0 - value.doubt), AFTER_ALL_PAGES)
                else:
                    bounds[self._awake.rows_of(self._awake.host(row))] = -np.inf
            if self._fresh and (limit is None or -limit[0] <= self._fresh_at_most):
                self._put_fresh()
                bounds = self._awake.bounds(now)
                continue
            ladder = self._highest_ladder()
            if ladder is None or (limit is not None and limit < ladder[:2]):
                return best
            self._open(ladder[2])
            bounds = self._awake.bounds(now)

    def _highest_ladder(self) -> tuple[float, int, Ladder] | None:
        order = self._ladder_order
        while order:
            value, page, host = order[0]
            ladder = self._ladders[host] if host >= 0 else self._shared
            if host in self._resting:
                heappop(order)
                ladder.noted = None
                continue
            bound = ladder.bound()
            if bound == (value, page):
                return value, page, ladder
            heappop(order)
            if ladder.noted == (value, page):
                ladder.noted = None
            self._note(ladder)
        return None

    def _open(self, ladder: Ladder) -> None:
        pages, lowest = ladder.open(_OPENED)
        if lowest is not None:
            self._cutoff = min(self._cutoff, lowest - 1)
            self._calm = min(self._calm, self._cutoff)
            if ladder.host >= 0:
                self._cutoff_of_host[ladder.host] = 0
        ladder.noted = None
        self._place[pages] = IN_FLIGHT
        self._calendar.clear(pages)
        if pages.size:
            self._put(pages, falling=True)
        self._note(ladder)

    def _thin_out(self) -> None:
        """Look at some pages of a bed that the cutoff is coming down to, so that not all have to be looked at then."""
        ladder, level, _ = self._crowded[-1]
        pages, self._owed = ladder.take(level, self._owed), 0
        if pages.size:
            self._place[pages] = IN_FLIGHT
            self._calendar.clear(pages)
            self._put(pages, falling=True)
        else:
            self._crowded.pop()

    def _send_off(self, page: int) -> None:
        self._leave_one(page)
        self._forced.discard(page)
        self._force_number.pop(page, None)
        self._overdue.discard(page)
        self._place[page] = IN_FLIGHT
        self._hand_over_one(page)

    def _check(self, now: float) -> None:
        """Raise `AssertionError` unless every page stands where `_place` says, with true bounds; O(n)."""
        pages = np.flatnonzero(self._place != OUT)
        place = self._place[pages]
        self._calendar.check()
        for queues in (self._forced, self._overdue):
            queues.check()
        bounds = dict(zip(self._awake.pages.tolist(), self._awake.bounds(now).tolist(), strict=True))
        waiting = set[int]().union(*self._resting_awake.values())
        assert set(self._awake.living().tolist()) | waiting == set(pages[place == AWAKE].tolist())
        assert not set(self._awake.living().tolist()) & waiting
        assert set(self._resting_awake) <= set(self._resting)
        ladders = [self._shared, *self._ladders.values()]
        assert sum(ladder.check(self._pages.host) for ladder in ladders) == int((place > RUNNING).sum())
        behind = self._check_followers(pages[(place > AWAKE) & (place < RUNNING)], now)
        eligible = np.setdiff1d(pages[place > BARRED], behind)
        values = self.values.many(eligible).at(now)
        for page, value in zip(eligible.tolist(), values.tolist(), strict=True):
            host, level = self._pages.host.item(page), self._place.item(page)
            if level == AWAKE:
                if host not in self._resting:
                    assert value <= bounds[page]
            elif level == FRESH:
                assert page in self._fresh
                assert value <= self._fresh_at_most
            elif level > OWN_LADDER // 2:
                assert value < value_at(level - OWN_LADDER)
            elif level != RUNNING:
                assert value < value_at(level)
        assert (self._eligible_at(pages[place == BARRED]) > now).all()

    def _check_followers(self, pages: IndexArray, now: float) -> IndexArray:
        """Raise `AssertionError` unless each of these pages stands behind a lower one of the same value and host."""
        found: list[int] = []
        for leader in self._followers.leaders():
            behind = self._followers.behind(leader, self._place)
            found += behind.tolist()
            assert not behind.size or self._place[leader] > BARRED
            assert (behind > leader).all()
            assert (self._pages.host[behind] == self._pages.host[leader]).all()
            value = self.values.one(leader)
            assert all(self.values.one(page).exact(now) == value.exact(now) for page in behind.tolist())
        assert sorted(found) == pages.tolist()
        return pages
