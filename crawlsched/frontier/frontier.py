"""The frontier: the page with the highest crawl value among all that may be crawled now, exactly, at every slot."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.frontier.awake import Awake
from crawlsched.frontier.calendar import Calendar
from crawlsched.frontier.host_queues import HostQueues
from crawlsched.frontier.ladder import AWAKE, BARRED, IN_FLIGHT, LOWEST, OUT, OWN_LADDER, RUNNING, Ladder, Run
from crawlsched.frontier.levels import bed_level, bed_levels, level_above, levels_above, value_at, values_at
from crawlsched.frontier.values import CrawlValues, PageValues
from crawlsched.pages import Pages, grown

__all__ = ["Frontier", "Pick"]

IndexArray = npt.NDArray[np.intp]
FloatArray = npt.NDArray[np.float64]
HostFreeAt = Callable[[int, float], float]

# Levels are crossed a little later than they are said to be, so that rounding makes no page late.
_SLACK = 1e-9
# POSIX seconds as floats are good to 1e-16 of themselves; alarms ring some roundings earlier.
_CLOCK_SLACK = 1e-15
# When more pages than this are awake on hosts that do not rest, all but the best _KEPT_AWAKE go to bed.
_MOST_AWAKE = 192
_KEPT_AWAKE = 64
# So many pages at least are looked at when a ladder is opened, since numpy needs some to be worth its while.
_OPENED = 48
# A host with more pages than this gets a ladder of its own.
_SMALL_HOST = 512
# Fewer pages than this are put into a ladder one by one.
_FEW = 24
# More pages than this that would wake at once and whose values do not grow are sorted instead.
_LEAST_RUN = 256


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


class Frontier:
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
    Order of a pick: forced pages, first forced first; overdue pages, oldest deadline first, then lowest number; the page
    with the highest crawl value, lowest number first among equals. Pages which may not be crawled yet (`not_before`,
    `min_crawl_interval`) are left out unless forced, and pages of hosts that rest in any case.
    """

    def __init__(
        self,
        pages: Pages,
        values: CrawlValues,
        *,
        tick: float,
        now: float,
        min_crawl_interval: float = 0.0,
        max_crawl_interval: float | None = None,
    ) -> None:
        self._pages = pages
        self.values = values
        self._min = min_crawl_interval
        self._max = max_crawl_interval
        self._now = now
        self._calendar = Calendar(tick, now)
        self._deadlines = Calendar(tick, now)
        self._until = self._calendar.end(now)  # bounds hold until then
        self._place: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._cutoff = LOWEST
        self._ladders: dict[int, Ladder] = {}
        self._shared = Ladder(-1, 0)
        self._ladder_order: list[tuple[float, int, int]] = []
        # By host: its pages, and what its own cutoff has above LOWEST if it has a ladder of its own and is resting.
        self._pages_of_host: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._cutoff_of_host: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._resting: dict[int, float] = {}
        self._resting_order: list[tuple[float, int]] = []
        self._soon: list[tuple[float, int]] = []
        self._overdue_soon: list[tuple[float, int]] = []
        self._forced = HostQueues(self._resting)
        self._overdue = HostQueues(self._resting)
        self._awake = Awake()
        self._resting_awake: dict[int, set[int]] = {}  # pages that would be awake if their host did not rest
        self._force_numbers = count()
        self._run_numbers = count()

    def __len__(self) -> int:
        """Count the pages in the frontier; O(n)."""
        return int(np.count_nonzero(self._place != OUT))

    def __contains__(self, page: int) -> bool:
        return 0 <= page < self._place.size and bool(self._place[page] != OUT)

    # -- pages come and go

    def reserve(self, capacity: int) -> None:
        """Make room for so many pages; amortised O(1) a page."""
        size = self._place.size
        if capacity > size:
            capacity = max(capacity, size + size // 4)
            self._place = grown(self._place, capacity)
            self._place[size:] = OUT
            self._calendar.reserve(capacity)
            if self._max is not None:
                self._deadlines.reserve(capacity)

    def file(self, pages: IndexArray, now: float) -> None:
        """Put distinct pages where they belong now, wherever they were; O(log n) a page, in numpy.

        Parameters
        ----------
        pages : ndarray of int, shape (n,)
            Pages that are new or back from a visit.
        now : float
            POSIX seconds.
        """
        if not pages.size:
            return
        self._advance(now)
        self.reserve(int(pages.max()) + 1)
        self._count_hosts(pages[self._place[pages] == OUT], 1)
        self._leave(pages)
        eligible = self._eligible_at(pages)
        if self._max is not None:
            for page in pages.tolist():
                self._set_deadline(page, now)
        barred = eligible > now
        if barred.any():
            for page, until in zip(pages[barred].tolist(), eligible[barred].tolist(), strict=True):
                self._bar(page, until, now)
            pages = pages[~barred]
        if pages.size:
            self._put(pages, falling=pages.size > _MOST_AWAKE)

    def refile(self, pages: IndexArray, now: float) -> None:
        """Do what `file` does for those of some pages that are in the frontier and not in flight: their values changed."""
        inside = pages[pages < self._place.size]
        self.file(inside[self._place[inside] > IN_FLIGHT], now)

    def file_one(self, page: int, now: float) -> None:
        """Do what `file` does for a single page that was filed before; O(log n)."""
        if page >= self._place.size or self._place[page] == OUT:
            self.file(np.array([page]), now)
            return
        self._advance(now)
        self._leave_one(page)
        if self._max is not None:
            self._set_deadline(page, now)
        eligible = self._eligible_at_one(page)
        if eligible > now:
            self._bar(page, eligible, now)
        else:
            self._put_one(page)

    def discard(self, pages: IndexArray) -> None:
        """Take distinct pages out of the frontier, in flight or not; O(1) a page."""
        inside = pages[pages < self._place.size]
        inside = inside[self._place[inside] != OUT]
        self._count_hosts(inside, -1)
        self._leave(inside)
        self._place[inside] = OUT
        for page in inside.tolist():
            self._forced.discard(page)
            self._overdue.discard(page)
        if self._max is not None:
            self._deadlines.clear(inside)

    def force(self, pages: IndexArray) -> None:
        """Let pages go before all others, in the order of these calls and of the array; O(log n) a page.

        Pages which may not be crawled yet go too; pages in flight are left alone.
        """
        host = self._pages.host
        for page in pages.tolist():
            if page not in self._forced and self._is_in(page):
                self._forced.push(host.item(page), float(next(self._force_numbers)), page)

    def _is_in(self, page: int) -> bool:
        return 0 <= page < self._place.size and bool(self._place[page] > IN_FLIGHT)

    def _leave(self, pages: IndexArray) -> None:
        """Take pages from where they stand; their place is to be set by the caller."""
        place = self._place[pages]
        self._calendar.clear(pages)
        for page in pages[place == AWAKE].tolist():
            self._fall_asleep(page)
        asleep, beds = pages[place > RUNNING], place[place > RUNNING]
        own = beds > OWN_LADDER // 2
        levels, members = np.unique(beds[~own], return_counts=True)
        for level, n in zip(levels.tolist(), members.tolist(), strict=True):
            self._shared.leave(level, n)
        hosts = self._pages.host[asleep[own]]
        for host, level in zip(hosts.tolist(), (beds[own] - OWN_LADDER).tolist(), strict=True):
            self._ladders[host].leave(level)

    def _leave_one(self, page: int) -> None:
        place = self._place.item(page)
        if place == IN_FLIGHT:
            return
        self._calendar.clear_one(page)
        if place == AWAKE:
            self._fall_asleep(page)
        elif place > OWN_LADDER // 2:
            self._ladders[self._pages.host.item(page)].leave(place - OWN_LADDER)
        elif place > RUNNING:
            self._shared.leave(place)

    def _fall_asleep(self, page: int) -> None:
        self._awake.discard(page)
        if self._resting_awake:
            self._resting_awake.get(self._pages.host.item(page), set()).discard(page)

    def _count_hosts(self, pages: IndexArray, sign: int) -> None:
        if not pages.size:
            return
        hosts = self._pages.host[pages]
        most = int(hosts.max()) + 1
        if most > self._pages_of_host.size:
            self._pages_of_host = grown(self._pages_of_host, most + most // 2)
            self._cutoff_of_host = grown(self._cutoff_of_host, most + most // 2)
        np.add.at(self._pages_of_host, hosts, sign)
        if sign > 0:
            for host in np.unique(hosts[self._pages_of_host[hosts] > _SMALL_HOST]).tolist():
                if host not in self._ladders:
                    self._ladders[host] = Ladder(host, OWN_LADDER)

    # -- not yet eligible, overdue

    def _eligible_at(self, pages: IndexArray) -> FloatArray:
        return np.maximum(self._pages.not_before[pages], self._pages.crawled_at[pages] + self._min)

    def _eligible_at_one(self, page: int) -> float:
        not_before: float = self._pages.not_before.item(page)
        return max(not_before, self._pages.crawled_at.item(page) + self._min)

    def _bar(self, page: int, until: float, now: float) -> None:
        self._place[page] = BARRED
        if until <= self._until:
            heappush(self._soon, (until, page))
        else:
            self._calendar.set_one(page, until, now)

    def deadline_of(self, page: int) -> float:
        """Return when a page becomes overdue, POSIX seconds; inf without a longest crawl interval."""
        if self._max is None:
            return np.inf
        last: float = self._pages.crawled_at.item(page)
        return (last if last > -np.inf else self._pages.first_seen.item(page)) + self._max

    def _set_deadline(self, page: int, now: float) -> None:
        """See to it that a page is found when it becomes overdue."""
        deadline = self.deadline_of(page)
        due = max(deadline, self._eligible_at_one(page))
        if due > now:
            self._overdue.discard(page)
        if due <= self._until:
            self._deadlines.clear_one(page)
            heappush(self._overdue_soon, (due, page))
        else:
            # Deadlines mostly move away: the alarm that is set may ring early and is then set again.
            if not self._deadlines.is_set(page):
                self._deadlines.set_one(page, due, now)

    # -- asleep or awake

    def _put(self, pages: IndexArray, falling: bool) -> None:
        """Put eligible pages to bed, or among those that are awake."""
        values = self.values.many(pages)
        parabolas = value, slope, curve = values.parabolas(self._now, self._until)
        left = self._until - self._now
        bounds = value + left * (slope + left * curve)
        levels = levels_above(bounds)
        steady = values.steady
        hosts = self._pages.host[pages]
        cutoffs = np.maximum(self._cutoff, self._cutoff_of_host[hosts] + LOWEST)
        awake = levels > cutoffs
        if np.count_nonzero(awake) > _MOST_AWAKE and not steady.all():
            # Too many at once: the best few are kept, and the others wait until the cutoff comes down to them.
            self._cutoff = max(self._cutoff, level_above(float(np.partition(bounds, -_KEPT_AWAKE)[-_KEPT_AWAKE])) - 2)
            cutoffs = np.maximum(cutoffs, self._cutoff)
            descending = awake
            awake = levels > cutoffs
        else:
            descending = awake
        if awake.any():
            self._wake(pages, awake, parabolas, values)
            if awake.all():
                return
        asleep = ~awake
        sleepers, levels = pages[asleep], bed_levels(levels[asleep], cutoffs[asleep], falling | descending[asleep])
        self._put_to_bed(sleepers, levels, hosts[asleep])
        ring = values.crossings(values_at(levels) * (1 - _SLACK), self._until, asleep)
        rings = ring < np.inf
        self._calendar.set(sleepers[rings], ring[rings] - _CLOCK_SLACK * abs(self._now), self._now)

    def _put_one(self, page: int) -> None:
        value = self.values.one(page)
        bound = value.bound(self._until, rough=True)
        level = level_above(bound)
        host = self._pages.host.item(page)
        ladder = self._ladders.get(host, self._shared)
        cutoff = max(self._cutoff, LOWEST + self._cutoff_of_host.item(host))
        if level > cutoff:
            self._put(np.array([page]), falling=False)
            return
        bed = bed_level(level, cutoff)
        self._place[page] = bed + ladder.offset
        ladder.add_one(page, bed)
        self._note(ladder)
        if not value.steady:
            ring = value.crossing(value_at(bed) * (1 - _SLACK), self._until)
            if ring < np.inf:
                self._calendar.set_one(page, ring - _CLOCK_SLACK * abs(self._now), self._now)

    def _put_to_bed(self, pages: IndexArray, levels: npt.NDArray[np.int32], hosts: npt.NDArray[np.int32]) -> None:
        if not self._ladders:
            self._place[pages] = levels
            self._shared.add(pages, levels)
            self._note(self._shared)
            return
        order = np.argsort(hosts, kind="stable")
        hosts, pages, levels = hosts[order], pages[order], levels[order]
        first = np.flatnonzero(np.diff(hosts, prepend=-1)).tolist()
        shared = np.ones(pages.size, bool)
        for begin, stop in zip(first, [*first[1:], pages.size], strict=True):
            ladder = self._ladders.get(hosts.item(begin))
            if ladder is not None:
                shared[begin:stop] = False
                if stop - begin < _FEW:
                    for page, level in zip(pages[begin:stop].tolist(), levels[begin:stop].tolist(), strict=True):
                        ladder.add_one(page, level)
                else:
                    ladder.add(pages[begin:stop], levels[begin:stop])
        self._place[pages] = np.where(shared, levels, levels + OWN_LADDER)
        for begin in first:
            if not shared[begin]:
                self._note(self._ladders[hosts.item(begin)])
        if shared.any():
            self._shared.add(pages[shared], levels[shared])
            self._note(self._shared)

    def _wake(
        self,
        pages: IndexArray,
        awake: npt.NDArray[np.bool_],
        parabolas: tuple[FloatArray, FloatArray, FloatArray],
        values: PageValues,
    ) -> None:
        """Put pages among those that are awake, or into runs where many never change their value."""
        steady = awake & values.steady
        if np.count_nonzero(steady) > _LEAST_RUN:
            self._make_runs(pages[steady], parabolas[0][steady])
            awake = awake & ~steady
        rows = np.flatnonzero(awake)
        woken = pages[rows]
        self._place[woken] = AWAKE
        hosts = self._pages.host[woken]
        if self._resting:
            resting = np.isin(hosts, np.fromiter(self._resting, np.intp, len(self._resting)))
            for host, page in zip(hosts[resting].tolist(), woken[resting].tolist(), strict=True):
                self._resting_awake.setdefault(host, set()).add(page)
            rows, woken, hosts = rows[~resting], woken[~resting], hosts[~resting]
        if rows.size:
            value, slope, curve = (column[rows] for column in parabolas)
            if 4 * rows.size < pages.size:
                # What is kept is not to hold the posterior probabilities of all the others in memory.
                values, rows = self.values.many(woken), np.arange(rows.size)
            self._awake.add(woken, hosts, (value, slope, curve), self._now, values, rows)

    def _make_runs(self, pages: IndexArray, bounds: FloatArray) -> None:
        self._place[pages] = RUNNING
        hosts = self._pages.host[pages]
        shared = np.ones(pages.size, bool)
        for host in np.unique(hosts).tolist() if self._ladders else ():
            ladder = self._ladders.get(host)
            if ladder is not None:
                own = hosts == host
                shared &= ~own
                ladder.add_run(Run(next(self._run_numbers), pages[own], bounds[own]))
                self._note(ladder)
        if shared.any():
            self._shared.add_run(Run(next(self._run_numbers), pages[shared], bounds[shared]))
            self._note(self._shared)

    def _note(self, ladder: Ladder) -> None:
        """Let the ladder be found when its best pages are the best of all."""
        if ladder.entries > 2 * ladder.sleepers + 1024:
            ladder.sweep(self._place)
        bound = ladder.bound()
        if bound is not None and bound != ladder.noted:
            ladder.noted = bound
            heappush(self._ladder_order, (*bound, ladder.host))

    # -- time passes

    def _advance(self, now: float) -> None:
        """Let everything happen that was to happen until now; amortised O(log n) per event."""
        self._now = now
        if now >= self._until:
            self._turn(now)
        while self._resting_order and self._resting_order[0][0] <= now:
            until, host = heappop(self._resting_order)
            if self._resting.get(host) == until:
                self.release_host(host)
        while self._soon and self._soon[0][0] <= now:
            _, page = heappop(self._soon)
            if self._place[page] == BARRED:
                eligible = self._eligible_at_one(page)
                if eligible <= now:
                    self._calendar.clear_one(page)
                    self._put_one(page)
        while self._overdue_soon and self._overdue_soon[0][0] <= now:
            _, page = heappop(self._overdue_soon)
            if self._place[page] > IN_FLIGHT and page not in self._overdue:
                deadline = self.deadline_of(page)
                if max(deadline, self._eligible_at_one(page)) <= now:
                    self._overdue.push(self._pages.host.item(page), deadline, page)

    def _turn(self, now: float) -> None:
        """Begin the tick of `now`: all pages that are awake or whose alarms ring are put where they belong."""
        self._until = self._calendar.end(now)
        for host in self._resting:
            self._set_aside(host)
        pages = self._awake.living()
        self._awake.clear()
        if self._max is not None:
            for page in self._deadlines.due(now).tolist():
                if self._place[page] > IN_FLIGHT:
                    self._set_deadline(page, now)
        due = self._calendar.due(now)
        if due.size:
            place = self._place[due]
            barred = due[place == BARRED]
            if barred.size:
                eligible = self._eligible_at(barred)
                later = eligible > now
                for page, until in zip(barred[later].tolist(), eligible[later].tolist(), strict=True):
                    self._bar(page, until, now)
                due = np.concatenate([due[place != BARRED], barred[~later]])
            self._leave(due)
            pages = np.concatenate([pages, due])
        if pages.size:
            self._put(pages, falling=False)
        for host in list(self._resting_awake):
            self._put_worst_to_bed(host)

    def _set_aside(self, host: int) -> None:
        """Keep the pages of a host that rests elsewhere, where they need no bounds."""
        pages = self._awake.of_host(host).tolist()
        if pages:
            self._resting_awake.setdefault(host, set()).update(pages)
            for page in pages:
                self._awake.discard(page)

    def _put_worst_to_bed(self, host: int) -> None:
        """Raise the cutoff of a host that rests, where too many of its pages would be awake."""
        ladder, waiting = self._ladders.get(host), self._resting_awake[host]
        if ladder is None or len(waiting) <= _MOST_AWAKE:
            return
        pages = np.fromiter(waiting, np.intp, len(waiting))
        value, slope, curve = self.values.many(pages).parabolas(self._now, self._until)
        left = self._until - self._now
        bounds = value + left * (slope + left * curve)
        cutoff = level_above(float(np.partition(bounds, -_KEPT_AWAKE)[-_KEPT_AWAKE])) - 2
        self._cutoff_of_host[host] = cutoff - LOWEST
        worst = pages[levels_above(bounds) <= cutoff]
        self._leave(worst)
        self._put(worst, falling=True)

    # -- hosts

    def rest_host(self, host: int, until: float) -> None:
        """Leave a host's pages out until a time, or until `release_host`; O(log hosts)."""
        self._resting[host] = until
        if until < np.inf:
            heappush(self._resting_order, (until, host))
        self._awake.rest(host, True)

    def release_host(self, host: int) -> None:
        """Let a host's pages take part again; O(its awake pages)."""
        if self._resting.pop(host, None) is None:
            return
        self._awake.rest(host, False)
        waiting = self._resting_awake.pop(host, None)
        if waiting:
            self._put(np.fromiter(waiting, np.intp, len(waiting)), falling=False)
        self._overdue.host_returns(host)
        self._forced.host_returns(host)
        ladder = self._ladders.get(host)
        if ladder is not None:
            ladder.noted = None
            self._note(ladder)

    # -- what stands where

    def place_of(self, page: int) -> str:
        """Return where a page stands: out, in flight, barred, awake, in a run, or asleep. O(1)."""
        place = self._place.item(page) if 0 <= page < self._place.size else OUT
        return _PLACE_NAMES.get(place, "asleep")

    def is_forced(self, page: int) -> bool:
        """Whether a page goes before all others. O(1)."""
        return page in self._forced

    def is_resting(self, host: int) -> bool:
        """Whether a host's pages are left out. O(1)."""
        return host in self._resting

    def waits_for_host(self) -> bool:
        """Whether some page could go if its host did not rest; O(resting hosts)."""
        queues = (self._forced, self._overdue, self._awake)
        for host in self._resting:
            ladder = self._ladders.get(host)
            if (ladder is not None and ladder.bound() is not None) or any(queue.of_host(host) for queue in queues):
                return True
        return False

    def next_event(self, now: float) -> float:
        """Return the earliest time at which `pick` could give something, if it gives nothing now; inf: never. O(1)."""
        times = [self._calendar.next_time()]
        times += [queue[0][0] for queue in (self._soon, self._overdue_soon, self._resting_order) if queue]
        if self._max is not None:
            times.append(self._deadlines.next_time())
        return max(now, min(times))

    def peek(self, n: int) -> IndexArray:
        """Return up to about `n` pages that are likely to be picked next, likeliest first; O(n log n)."""
        found: list[int] = []
        for queues in (self._forced, self._overdue):
            found += sorted(queues.keys, key=queues.keys.__getitem__)
        bounds = self._awake.bounds(self._now)
        found += self._awake.pages[np.argsort(-bounds)[: np.count_nonzero(bounds >= 0)]].tolist()
        for ladder in (self._shared, *self._ladders.values()) if len(found) < n else ():
            found += [page for page in ladder.top(n - len(found)).tolist() if self._place[page] == RUNNING]
            if len(found) >= n:
                break
        if len(found) < n:
            found += self._calendar.soonest(n - len(found)).tolist()
        return np.array(list(dict.fromkeys(found))[:n], np.intp)

    # -- picks

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
        free: set[int] = set()
        for queues, reason in ((self._forced, "forced"), (self._overdue, "overdue")):
            while queues.keys and (entry := queues.first()) is not None:
                _, page, host = entry
                if self._is_free(host, now, host_free_at, free):
                    queues.pop(host)
                    self._send_off(page)
                    return Pick(page, np.nan, reason)
        best = self._best(now, host_free_at, free)
        if best is None:
            return None
        self._send_off(best[1])
        return Pick(best[1], -best[0], "value")

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
        bounds = self._awake.bounds(now)
        while True:
            while bounds.size:
                row = int(bounds.argmax())
                bound = bounds.item(row)
                page = self._awake.page(row)
                if bound < 0 or (best is not None and (-bound, page) > best):
                    break
                bounds[row] = -np.inf
                if self._is_free(self._awake.host(row), now, host_free_at, free):
                    candidate = (-self._awake.value(row).at(now), page)
                    best = candidate if best is None or candidate < best else best
                else:
                    bounds[self._awake.rows_of(self._awake.host(row))] = -np.inf
            ladder = self._highest_ladder()
            if ladder is None or (best is not None and best < ladder[:2]):
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
        pages, lowest = ladder.open(_OPENED, self._place)
        if lowest is not None:
            self._cutoff = min(self._cutoff, lowest - 1)
            if ladder.host >= 0:
                self._cutoff_of_host[ladder.host] = 0
        ladder.noted = None
        self._place[pages] = IN_FLIGHT
        self._calendar.clear(pages)
        if pages.size:
            self._put(pages, falling=True)
        self._note(ladder)

    def _send_off(self, page: int) -> None:
        self._leave_one(page)
        self._forced.discard(page)
        self._overdue.discard(page)
        self._place[page] = IN_FLIGHT

    def _check(self, now: float) -> None:
        """Raise `AssertionError` unless every page stands exactly where its number in `_place` says, with true bounds; O(n)."""
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
        assert sum(ladder.check(self._place, self._pages.host) for ladder in ladders) == int((place > RUNNING).sum())
        eligible = pages[place > BARRED]
        values = self.values.many(eligible).at(now)
        for page, value in zip(eligible.tolist(), values.tolist(), strict=True):
            host, level = self._pages.host.item(page), self._place.item(page)
            if level == AWAKE:
                if host not in self._resting:
                    assert value <= bounds[page]
            elif level > OWN_LADDER // 2:
                assert value < value_at(level - OWN_LADDER)
            elif level != RUNNING:
                assert value < value_at(level)
        assert (self._eligible_at(pages[place == BARRED]) > now).all()
