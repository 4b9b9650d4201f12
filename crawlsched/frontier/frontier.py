"""The frontier: the page with the highest crawl value among all that may be crawled now, exactly, at every slot."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.frontier.evaluation.evaluation_queue import OPENED
from crawlsched.frontier.membership import Filing
from crawlsched.frontier.places import AFTER_ALL_PAGES, AWAKE, BARRED, FRESH, IN_FLIGHT, OUT, OWN_LADDER, RUNNING
from crawlsched.frontier.sleeping.levels import value_at
from crawlsched.frontier.values import PageValue

__all__ = ["Frontier", "Pick"]

HostFreeAt = Callable[[int, float], float]

# After so many picks some pages are looked at before their alarms ring; in turns of k ticks k times as many.
_WORK_EVERY = 4
# Without compiled code that is done with each pick; when there is nothing to do, not in the next ones, so many.
_IDLE_PICKS = 8
# Where so many portions are owed.
_LAGGING = 2
# Pages that differ in value by no more than this share are alike to those who compare whole collections.
_ALIKE = 0.01
_PLACE_NAMES = {OUT: "out", IN_FLIGHT: "in flight", BARRED: "barred", AWAKE: "awake", RUNNING: "in a run"}


class Pick(NamedTuple):
    """The page to crawl now.

    Attributes
    ----------
    page : int
    crawl_value : float
        At the time of the pick, to a ten-millionth; nan for a page that goes for another reason.
    reason : str
        ``"value"``, ``"overdue"`` (its longest crawl interval has passed) or ``"forced"``.
    """

    page: int
    crawl_value: float
    reason: str


# As `Pick(...)`, in half the time: there is one in each slot.
_new_pick: Callable[[type[Pick], tuple[int, float, str]], Pick] = tuple.__new__


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
    intervals : Intervals, optional
        Both by page, instead of these two.

    Notes
    -----
    Order of a pick: forced pages, first forced first; overdue pages, oldest deadline first, then lowest number; the
    page with the highest crawl value, lowest number first among equals. Pages which may not be crawled yet
    (`not_before`, `min_crawl_interval`) are left out unless forced, and pages of hosts that rest in any case.
    """

    def __getstate__(self) -> dict[str, object]:
        """Return what a copy is made of; half a look cannot be copied: the one that is going on is finished first."""
        self._looks.finish()
        return self.__dict__

    # -- what stands where

    def place_of(self, page: int) -> str:
        """Return where a page stands: out, in flight, barred, awake, in a run, behind another, or asleep. O(1)."""
        column = self._standing.place
        place = column.item(page) if 0 <= page < column.size else OUT
        return _PLACE_NAMES.get(place, "asleep" if place > RUNNING else "behind another")

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
        """Return the pages that would be awake if their hosts did not rest, until then at most; O(hosts + A)."""
        hosts = [host for host, end in self._resting.until.items() if end <= until]
        aside = [page for host in hosts for page in self._resting.awake.get(host, ())]
        awake = self._standing.awake.living()
        return np.concatenate([np.array(aside, np.intp), awake[np.isin(self._pages.host[awake], hosts)]])

    def waits_for_host(self) -> bool:
        """Whether some page could go if its host did not rest; O(resting hosts)."""
        if self._is_looking:
            return True
        self._looks.finish()
        self._standing.put_fresh()
        if self._standing.awake.has_resting() or (self._resting.are_all() and self._ladders.highest() is not None):
            return True
        for host in self._resting.until:
            ladder = self._ladders.of_host.get(host)
            if (
                self._resting.awake.get(host)
                or self._forced.has_host(host)
                or self._deadlines.overdue.has_host(host)
                or (ladder is not None and ladder.bound() is not None)
            ):
                return True
        return False

    def host_returns(self, now: float) -> bool:
        """Whether a host has rested by now, and its pages are not among those that may go yet; O(1)."""
        return self._resting.next_time() <= now

    def next_event(self, now: float) -> float:
        """Return the earliest time at which `pick` could give something, if it gives nothing now; inf: never. O(1).

        It is `now` where the last pick has not looked at all that there is to look at.
        """
        self._looks.finish()
        self._standing.put_fresh()
        if self._is_looking:
            return now
        times = self._standing.calendar.next_time(), self._deadlines.next_time(), self._resting.next_time()
        return max(now, min(*times, self._soon[0][0] if self._soon else np.inf))

    def out_of_turn(self, n: int) -> list[int]:
        """Return up to about `n` pages that go before anything of value, in their order; O(n log n)."""
        return [page for queues in (self._forced, self._deadlines.overdue) for page in queues.likely(n)]

    def peek(self, n: int) -> IndexArray:
        """Return up to about `n` pages that are likely to be picked next, likeliest first; O(n log n).

        Behind them stand those that were crawled in this turn: where they belong is not known before it ends.
        """
        found = self.out_of_turn(n)
        bounds = self._standing.awake.bounds(self._standing.now)
        for page in self._standing.awake.pages[np.argsort(-bounds)[: np.count_nonzero(bounds >= 0)]].tolist():
            found += [
                page,
                *self._standing.followers.behind(page, self._standing.place)[: max(n - len(found), 0)].tolist(),
            ]
        for ladder in self._ladders if len(found) < n else ():
            found += [page for page in ladder.top(n - len(found)).tolist() if self._standing.place[page] == RUNNING]
            if len(found) < n and self._crowds.fall >= 1:
                # The next ones come from the beds that the cutoff comes down to.
                found += ladder.highest_sleepers(n - len(found)).tolist()
            if len(found) >= n:
                break
        if len(found) < n:
            found += self._standing.calendar.soonest(n - len(found)).tolist()
        fresh = self._standing.fresh.still(self._standing.place).tolist()
        return np.array(list(dict.fromkeys([*list(dict.fromkeys(found))[:n], *fresh])), np.intp)

    # -- picks

    def advance(self, now: float) -> None:
        """Let everything happen that was to happen until now; `pick` does so first. Amortised O(log n) per event."""
        self._advance(now)

    def _follow(self, now: float) -> None:
        """Do what `advance` does, where there is anything to do; between most picks there is nothing."""
        if now >= self._standing.until or self._soon or self._returning or self._deadlines.soon:
            self._advance(now)
        else:
            self._standing.now = now

    def bound(self, now: float) -> float:
        """Return what no page that `pick` could give now is worth more than; O(candidates).

        It is inf if a page may go whatever it is worth, and -inf if none may go. Whether a host is free is not asked.
        """
        self._follow(now)
        if self._forced.first() is not None or self._deadlines.overdue.first() is not None:
            return np.inf
        standing = self._standing
        bound, ladder = standing.awake.bound(now), self._ladders.highest()
        if ladder is not None:
            bound = max(bound, -ladder[0])
        return max(bound, standing.fresh.at_most) if standing.fresh.pages else bound

    def best_value(self, now: float, host_free_at: HostFreeAt) -> float:
        """Return about what the page is worth that `pick` would give; inf: whatever it is worth, -inf: there is none.

        As much work as a pick: amortised O(log n), plus a few crawl values. Where one look shows that none is worth a
        hundredth more, it is what the page with the highest bound is worth: of pages that are alike, as in a first
        crawl, any would do.
        """
        self._n_opened, self._is_looking = 0, False
        self._follow(now)
        for queues in (self._forced, self._deadlines.overdue):
            while (entry := queues.first()) is not None:
                if self._is_free(entry[2], now, host_free_at, set()):
                    return np.inf
        standing = self._standing
        row, bound, value = standing.awake.likeliest(now)
        others = max(bound, standing.fresh.at_most if standing.fresh.pages else 0.0)
        if (ladder := self._ladders.highest()) is not None:
            others = max(others, -ladder[0])
        if others <= (1.0 + _ALIKE) * value and host_free_at(standing.awake.host(row), now) <= now:
            return value
        best = self._best(now, host_free_at, set())
        return -np.inf if best is None else -best[0]

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
            The page is in flight then: out of the frontier until it is filed again. None if no page may go; or if,
            while hosts rest, some thousands of sleepers were looked at in vain: then the next pick goes on.
        """
        standing = self._standing
        self._n_opened, self._is_looking = 0, False
        if now >= standing.until or self._soon or self._returning or self._deadlines.soon:
            self._advance(now, picking=True)
        else:  # nothing happens between most picks
            standing.now, self._has_looked = now, False
        forced, overdue = self._forced, self._deadlines.overdue
        # Not `if forced`: four calls less in each slot.
        if not (forced.queues or overdue.queues or forced.unsorted or overdue.unsorted):
            pick = self._obvious(now, host_free_at)
            if pick is not None:
                return pick
        free: set[int] = set()
        for queues, reason in ((forced, "forced"), (overdue, "overdue")):
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
        self._n_picks_left -= 1
        self._work_off()
        return Pick(best[1], -best[0], "value")

    def _obvious(self, now: float, host_free_at: HostFreeAt) -> Pick | None:
        """Return the best page where one look at it shows that no other can be, as it does mostly; None otherwise.

        The same as `_best` finds, in a tenth of the time. Where it is None, hosts may rest now, and a bed may be open.
        """
        standing = self._standing
        awake, fresh = standing.awake, standing.fresh
        while True:
            ladder = self._ladders.highest()
            level = 0.0 if ladder is None else -ladder[0]
            row, bound, following, value, doubt = awake.best(now, level)
            if ladder is not None and bound < level:
                if self._resting.are_all() or self._n_opened >= self._most_opened:
                    return None
                self._open(ladder[2])
                continue
            least = value * (1.0 - doubt) if doubt else value
            if bound < 0.0 or least <= following or (fresh.pages and least <= fresh.at_most):
                return None
            if least <= level and ladder is not None:
                return None
            page, host = awake.pages.item(row), awake.hosts.item(row)
            until = host_free_at(host, now)
            if until <= now:
                break
            self.rest_host(host, until)
        awake.discard_row(row)
        standing.place[page] = IN_FLIGHT
        if standing.followers.queues:
            standing.hand_over_one(page)
        self._n_picks_left -= 1
        if self._n_picks_left <= 0 or self._crowds.beds:
            self._work_off()
        return _new_pick(Pick, (page, value, "value"))

    def _work_off(self) -> None:
        """Do a part of what a falling cutoff makes necessary, or what the next tick would have too much of."""
        standing, crowds = self._standing, self._crowds
        if crowds.beds:
            crowds.owe()
        if self._has_looked:
            return  # such a pick has done enough
        portion = self.values.portion
        if crowds.are_unforeseen(standing.at_once):
            crowds.foresee(standing.cutoff, standing.at_once)
        elif standing.at_once < np.inf:
            if crowds.beds and crowds.owed >= _LAGGING * portion:
                self._thin_out()
            elif self._n_picks_left <= 0 and not self._looks.go_on():
                self._n_picks_left = _IDLE_PICKS
        elif self._opening is not None:
            self._open_part()
        elif crowds.beds and crowds.owed >= max(OPENED, portion):
            self._thin_out()  # not a few with each pick: what is owed costs little more together
        elif self._n_picks_left <= 0:
            self._n_picks_left = _WORK_EVERY * standing.ticks
            self._ring_ahead()
            self._open_soon()

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
        standing = self._standing
        awake = standing.awake
        bounds = awake.bounds(now)
        while True:
            while bounds.size:
                row = int(bounds.argmax())
                bound = bounds.item(row)
                page = awake.page(row)
                if bound < 0 or (limit is not None and (-bound, page) > limit):
                    break
                bounds[row] = -np.inf
                if self._is_free(awake.host(row), now, host_free_at, free):
                    value = awake.value(row)
                    candidate = (-value.at(now), page)
                    if best is None or best_value is None or _is_before(candidate, value, best, best_value, now):
                        best, best_value = candidate, value
                        limit = best if not value.doubt else (best[0] * (1.0 - value.doubt), AFTER_ALL_PAGES)
                else:
                    bounds[awake.rows_of(awake.host(row))] = -np.inf
            if standing.fresh.pages and (limit is None or -limit[0] <= standing.fresh.at_most):
                standing.put_fresh()
                bounds = awake.bounds(now)
                continue
            if best is None and self._resting.are_all():
                return None  # all that sleeps would be looked at in vain: a minute for some millions of pages
            ladder = self._ladders.highest()
            if ladder is None or (limit is not None and limit < ladder[:2]):
                return best
            if self._n_opened >= self._most_opened:
                self._is_looking = True
                standing.part_resting()  # not all at the end of the turn, and what comes next is put there at once
                return None
            self._open(ladder[2])
            bounds = awake.bounds(now)

    def _send_off(self, page: int) -> None:
        standing = self._standing
        standing.leave_one(page)
        self._forced.discard(page)
        self._force_number.pop(page, None)
        self._deadlines.overdue.discard(page)
        standing.place[page] = IN_FLIGHT
        standing.hand_over_one(page)

    def _check(self, now: float) -> None:
        """Raise `AssertionError` unless every page stands where its place says, with true bounds; O(n)."""
        standing = self._standing
        pages = np.flatnonzero(standing.place != OUT)
        place = standing.place[pages]
        standing.calendar.check()
        for queues in (self._forced, self._deadlines.overdue):
            queues.check()
        bounds = dict(zip(standing.awake.pages.tolist(), standing.awake.bounds(now).tolist(), strict=True))
        waiting = set[int]().union(*self._resting.awake.values())
        assert set(standing.awake.living().tolist()) | waiting == set(pages[place == AWAKE].tolist())
        assert not set(standing.awake.living().tolist()) & waiting
        assert set(self._resting.awake) <= set(self._resting.until)
        assert sum(ladder.check(self._pages.host) for ladder in self._ladders) == int((place > RUNNING).sum())
        behind = self._check_followers(pages[(place > AWAKE) & (place < RUNNING)], now)
        eligible = np.setdiff1d(pages[place > BARRED], behind)
        values = self.values.many(eligible).at(now)
        for page, value in zip(eligible.tolist(), values.tolist(), strict=True):
            host, level = self._pages.host.item(page), standing.place.item(page)
            if level == AWAKE:
                if host not in self._resting:
                    assert value <= bounds[page]
            elif level == FRESH:
                assert page in standing.fresh.pages
                assert value <= standing.fresh.at_most
            elif level > OWN_LADDER // 2:
                assert value < value_at(level - OWN_LADDER)
            elif level != RUNNING:
                assert value < value_at(level)
        assert (self._eligibility.at(pages[place == BARRED]) > now).all()

    def _check_followers(self, pages: IndexArray, now: float) -> IndexArray:
        """Raise `AssertionError` unless each of these pages stands behind a lower one of the same value and host."""
        found: list[int] = []
        for leader in self._standing.followers.leaders():
            behind = self._standing.followers.behind(leader, self._standing.place)
            found += behind.tolist()
            assert not behind.size or self._standing.place[leader] > BARRED
            assert (behind > leader).all()
            assert (self._pages.host[behind] == self._pages.host[leader]).all()
            value = self.values.one(leader)
            assert all(self.values.one(page).exact(now) == value.exact(now) for page in behind.tolist())
        assert sorted(found) == pages.tolist()
        return pages
