"""Where each page of the frontier stands: asleep, awake, not yet allowed; and what the passing of time does to that."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count

import numpy as np
import numpy.typing as npt

from crawlsched.crawl_value.evaluation import Compilable
from crawlsched.frontier import filing_rows
from crawlsched.frontier.awake import Awake
from crawlsched.frontier.calendar import Calendar
from crawlsched.frontier.followers import Followers
from crawlsched.frontier.host_queues import HostQueues
from crawlsched.frontier.ladder import AWAKE, BARRED, FRESH, IN_FLIGHT, LOWEST, OUT, OWN_LADDER, RUNNING, Ladder, Run
from crawlsched.frontier.levels import bed_level, bed_levels, coarseness, level_above, levels_above, value_at, values_at
from crawlsched.frontier.values import CrawlValues, PageValues, as_bytes
from crawlsched.growing import grown
from crawlsched.pages import Pages, distinct

__all__ = ["PICKS_PER_TICK", "Filing"]

IndexArray = npt.NDArray[np.intp]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: `crawlsched.frontier.filing_rows`.
ROWS = Compilable(filing_rows)

# Levels are crossed a little later than they are said to be, so that rounding makes no page late.
_SLACK = 1e-9
# POSIX seconds as floats are good to 1e-16 of themselves; alarms ring some roundings earlier.
_CLOCK_SLACK = 1e-15
# When more pages than this are awake on hosts that do not rest, all but the best _KEPT_AWAKE go to bed.
_MOST_AWAKE = 192
_KEPT_AWAKE = 64
# A host with more pages than this gets a ladder of its own when it rests for the first time.
_SMALL_HOST = 512
# Of what the cutoff is above where it has been for some time, 1/64 is made up for in each tick.
_CALMNESS = 6
# Beds with more sleepers than this are thinned out when the cutoff will be there in so many ticks.
_CROWD = 512
_FORESEEN = 64
_MOST_THINNED = 128
#: About so many picks make a tick.
PICKS_PER_TICK = 32
# Fewer pages than this are put into a ladder one by one.
_FEW = 24
# More pages than this that are overdue at once are kept in arrays.
_MANY_OVERDUE = 256
# More pages than this that would wake at once and whose values do not grow are sorted instead.
_LEAST_RUN = 256


class Filing:
    """Keep pages where they can be found when their time comes; `Frontier` adds the picks."""

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
        self._turned = False  # whether a tick has begun with the last call
        self._n_worked = 0  # picks after which there was time for other work
        self._cutoff = LOWEST
        self._coarse = coarseness(0)
        # Where the cutoff has been for some time, or lower: pages sleep in view of that, and not of a passing rise.
        self._calm = LOWEST
        # How fast the cutoff falls, levels a tick, and the crowded beds that it is coming down to, highest last.
        self._fall = 0.0
        self._cutoff_before = LOWEST
        self._crowded: list[tuple[Ladder, int, int]] = []
        self._thinned = 0  # so many pages of these with each pick,
        self._owed = 0  # and so many are to be looked at by now
        self._ladders: dict[int, Ladder] = {}
        self._shared = Ladder(-1, 0, self._places)
        self._ladder_order: list[tuple[float, int, int]] = []
        # By host: its pages, and what its own cutoff has above LOWEST if it has a ladder of its own and is resting.
        self._pages_of_host: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._cutoff_of_host: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._rests: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._resting: dict[int, float] = {}
        self._resting_order: list[tuple[float, int]] = []
        self._soon: list[tuple[float, int]] = []
        self._overdue_soon: list[tuple[float, int]] = []
        # By page, the number by which forced pages are ordered.
        self._force_number: dict[int, float] = {}
        self._forced = HostQueues(self._resting, self._force_number.get)
        self._overdue = HostQueues(self._resting, self.deadline_of)
        self._awake = Awake()
        self._were_kept = 0  # awake, when they were compared among each other for the last time but by a turn
        self._resting_awake: dict[int, set[int]] = {}  # pages that would be awake if their host did not rest
        # Pages that were crawled in this tick, some elsewhere by now, and what none of their values exceeds in it.
        self._fresh: list[int] = []
        self._fresh_at_most = 0.0
        self._followers = Followers()
        self._force_numbers = count()
        self._run_numbers = count()

    def _places(self) -> npt.NDArray[np.int32]:
        return self._place

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
            self._coarse = coarseness(capacity)
            capacity = max(capacity, size + size // 4)
            self._place = grown(self._place, capacity)
            self._place[size:] = OUT
            self._calendar.reserve(capacity)
            if self._max is not None:
                self._deadlines.reserve(capacity)

    def file(self, pages: IndexArray, now: float, falling: bool = False) -> None:
        """Put distinct pages where they belong now, wherever they were; O(log n) a page, in numpy.

        Parameters
        ----------
        pages : ndarray of int, shape (n,)
            Pages that are new or back from a visit.
        now : float
            POSIX seconds.
        falling : bool
            Whether the values picked may be falling soon: then pages sleep where they are not disturbed by that.
        """
        if not pages.size:
            return
        self._advance(now)
        self.reserve(int(pages.max()) + 1)
        self._count_hosts(pages[self._place[pages] == OUT], 1)
        self._leave(pages)
        if self._followers:
            self._place[pages] = IN_FLIGHT  # so that none of them takes over from another
            self._hand_over(pages)
        eligible = self._eligible_at(pages)
        self.set_deadlines(pages, now)
        barred = eligible > now
        if barred.any():
            for page, until in zip(pages[barred].tolist(), eligible[barred].tolist(), strict=True):
                self._bar(page, until, now)
            pages = pages[~barred]
        if pages.size:
            self._put(pages, falling)
            if pages.size > _MOST_AWAKE and not falling:
                self._calm = self._cutoff
            if self._awake.pages.size > 2 * max(_MOST_AWAKE, self._were_kept):
                # Slice after slice of a collection that is being loaded has left its best pages here.
                self._compare_awake()

    def refile(self, pages: IndexArray, now: float) -> None:
        """File those of some pages that are in the frontier and not in flight: their values have changed. As `file`."""
        inside = pages[pages < self._place.size]
        inside = inside[self._place[inside] > IN_FLIGHT]
        if inside.size <= self.values.few:
            for page in inside.tolist():
                self.file_one(page, now)
        else:
            self.file(inside, now, falling=inside.size > _MOST_AWAKE)

    def refile_one(self, page: int, now: float) -> None:
        """Do what `refile` does for a single page."""
        if page < self._place.size and self._place.item(page) > IN_FLIGHT:
            self.file_one(page, now)

    def file_one(self, page: int, now: float) -> None:
        """Do what `file` does for a single page that was filed before; O(log n)."""
        if page >= self._place.size or self._place[page] == OUT:
            self.file(np.array([page]), now)
            return
        self._advance(now)
        if self._place[page] != IN_FLIGHT:
            self._leave_one(page)
            self._place[page] = IN_FLIGHT
            self._hand_over_one(page)
        if self._max is not None:
            self._set_deadline(page, now)
        eligible = self._eligible_at_one(page)
        if eligible > now:
            self._bar(page, eligible, now)
        else:
            # Such pages are dealt with together when the tick ends: in numpy, one costs as much as some dozens.
            at_most = self.values.soon_at_most(page, self._until)
            if at_most < value_at(self._cutoff):
                self._place[page] = FRESH
                self._fresh.append(page)
                if at_most > self._fresh_at_most:
                    self._fresh_at_most = at_most
            else:
                self._put_one(page)

    def discard(self, pages: IndexArray) -> None:
        """Take distinct pages out of the frontier, in flight or not; O(1) a page."""
        inside = pages[pages < self._place.size]
        inside = inside[self._place[inside] != OUT]
        self._count_hosts(inside, -1)
        self._leave(inside)
        self._place[inside] = OUT
        self._hand_over(inside)
        self._forced.discard_many(inside)
        self._overdue.discard_many(inside)
        if self._max is not None:
            self._deadlines.clear(inside)

    def force(self, pages: IndexArray) -> None:
        """Let pages go before all others, in the order of these calls and of the array; O(log n) a page.

        Pages which may not be crawled yet go too; pages in flight are left alone.
        """
        host = self._pages.host
        for page in pages.tolist():
            if page not in self._forced and self._is_in(page):
                number = self._force_number[page] = float(next(self._force_numbers))
                self._forced.push(host.item(page), number, page)

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
        self._shared.leave(beds[~own])
        if self._ladders:
            hosts, levels = self._pages.host[asleep[own]], beds[own] - OWN_LADDER
            for at, host in enumerate(hosts.tolist()):
                self._ladders[host].leave(levels[at : at + 1])

    def _leave_one(self, page: int) -> None:
        place = self._place.item(page)
        if place == IN_FLIGHT:
            return
        self._calendar.clear_one(page)
        if place == AWAKE:
            self._fall_asleep(page)
        elif place > OWN_LADDER // 2:
            self._ladders[self._pages.host.item(page)].leave(np.array([place - OWN_LADDER]))
        elif place > RUNNING:
            self._shared.leave(np.array([place]))

    def _hand_over(self, pages: IndexArray) -> None:
        """Let others take over from those of some pages that they stand behind."""
        if self._followers:
            for page in pages[np.isin(pages, self._followers.leaders())].tolist():
                self._hand_over_one(page)

    def _hand_over_one(self, page: int) -> None:
        if self._followers:
            successor = self._followers.succeed(page, self._place)
            if successor is not None:
                self._put_one(successor)

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
            self._rests = grown(self._rests, most + most // 2)
        np.add.at(self._pages_of_host, hosts, sign)

    # -- not yet eligible, overdue

    def _eligible_at(self, pages: IndexArray) -> FloatArray:
        eligible: FloatArray = np.maximum(self._pages.not_before[pages], self._pages.crawled_at[pages] + self._min)
        return eligible

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

    def set_deadlines(self, pages: IndexArray, now: float) -> None:
        """See to it that pages are found when they become overdue; O(log n) a page, in numpy."""
        if self._max is None or not pages.size:
            return
        last = self._pages.crawled_at[pages]
        never = last == -np.inf
        if never.any():
            last[never] = self._pages.first_seen[pages[never]]
        deadlines = last + self._max
        due = np.maximum(deadlines, self._eligible_at(pages))
        self._overdue.discard_many(pages[due > now])
        late = due <= self._until
        if np.count_nonzero(late) > _MANY_OVERDUE:
            many = (due <= now) & ~self._overdue.inside(pages)
            self._deadlines.clear(pages[many])
            self._overdue.push_many(self._pages.host[pages[many]], deadlines[many], pages[many])
            soon = late & (due > now)
        else:
            soon = late
        for page in pages[soon].tolist():
            self._set_deadline(page, now)
        pages, due = pages[~late], due[~late]
        unset = ~self._deadlines.has_alarm(pages)
        self._deadlines.set(pages[unset], due[unset], now)

    # -- asleep or awake

    def _put(self, pages: IndexArray, falling: bool) -> None:
        """Put eligible pages to bed, or among those that are awake."""
        values = self.values.many(pages)
        parabolas = value, slope, curve = values.parabolas(self._now, self._until)
        left = self._until - self._now
        if ROWS.compiled and self._put_compiled(pages, values, parabolas, falling):
            return
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
        if np.count_nonzero(awake) > _MOST_AWAKE and not steady[awake].all():
            # What is left are pages of very nearly the same value: those that are equal in all need to be there once.
            asleep = ~awake
            awake &= ~self._stand_behind(pages, hosts, awake & ~steady)
        else:
            asleep = ~awake
        if awake.any():
            self._wake(pages, awake, parabolas, values)
        if not asleep.any():
            return
        sleepers, levels, cutoffs = pages[asleep], levels[asleep], cutoffs[asleep]
        below = levels < self._calm
        cutoffs[below] = self._calm
        levels = bed_levels(levels, cutoffs, falling | descending[asleep] | ~below, self._coarse)
        self._sleep(sleepers, levels, hosts[asleep], values, asleep)

    def _put_compiled(
        self, pages: IndexArray, values: PageValues, parabolas: tuple[FloatArray, FloatArray, FloatArray], falling: bool
    ) -> bool:
        """Do what `_put` does by compiled code; return False, and do nothing, where too many pages would be awake."""
        hosts, awake, beds = self._pages.host[pages], np.empty(pages.size, bool), np.empty(pages.size, np.int32)
        limits = self._cutoff_of_host, int(self._cutoff), int(self._calm), falling, self._coarse
        n_awake = ROWS.belong(*parabolas, self._until - self._now, hosts, *limits, awake, beds)
        if n_awake > _MOST_AWAKE:
            return False
        if n_awake:
            self._wake(pages, awake, parabolas, values)
        if n_awake < pages.size:
            asleep = ~awake
            self._sleep(pages[asleep], beds[asleep], hosts[asleep], values, asleep)
        return True

    def _sleep(
        self,
        pages: IndexArray,
        levels: npt.NDArray[np.int32],
        hosts: npt.NDArray[np.int32],
        values: PageValues,
        where: BoolArray,
    ) -> None:
        """Put pages to bed, and set their alarms; `where` says which of the values are theirs."""
        self._put_to_bed(pages, levels, hosts)
        ring = values.crossings(values_at(levels) * (1 - _SLACK), self._until, where)
        rings = ring < np.inf
        self._calendar.set(pages[rings], ring[rings] - _CLOCK_SLACK * abs(self._now), self._now)

    def _put_one(self, page: int) -> None:
        value = self.values.one(page)
        bound = value.bound(self._until, rough=True)
        level = level_above(bound)
        host = self._pages.host.item(page)
        ladder = self._ladders.get(host, self._shared)
        cutoff = max(self._cutoff, LOWEST + self._cutoff_of_host.item(host))
        if level > cutoff and (value.steady or host in self._resting):
            self._put(np.array([page]), falling=False)
            return
        if level > cutoff:
            level = level_above(value.bound(self._until))
        if level > cutoff:
            self._place[page] = AWAKE
            self._awake.add_one(page, host, value.parabola(self._now, self._until), self._now, value)
            return
        bed = bed_level(level, self._calm if level < self._calm else cutoff, self._coarse)
        self._place[page] = bed + ladder.offset
        ladder.add_one(page, bed)
        self._note(ladder)
        if not value.steady:
            ring = value.crossing(value_at(bed) * (1 - _SLACK), self._until)
            if ring < np.inf:
                self._calendar.set_one(page, ring - _CLOCK_SLACK * abs(self._now), self._now)

    def _take_fresh(self) -> IndexArray:
        """Take out the pages that were crawled in this tick; return them, ascending."""
        if not self._fresh:
            return np.empty(0, np.intp)
        pages = distinct(np.array(self._fresh, np.intp))
        self._fresh, self._fresh_at_most = [], 0.0
        fresh: IndexArray = pages[self._place[pages] == FRESH]
        self._place[fresh] = IN_FLIGHT
        return fresh

    def _put_fresh(self) -> None:
        """Put the pages that were crawled in this tick where they belong."""
        pages = self._take_fresh()
        if pages.size:
            self._put(pages, falling=False)

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
            resting = self._rests[hosts]
            for host, page in zip(hosts[resting].tolist(), woken[resting].tolist(), strict=True):
                self._resting_awake.setdefault(host, set()).add(page)
            rows, woken, hosts = rows[~resting], woken[~resting], hosts[~resting]
        if rows.size:
            value, slope, curve = (column[rows] for column in parabolas)
            if 4 * rows.size < pages.size:
                # What is kept is not to hold the posterior probabilities of all the others in memory.
                values, rows = values.some(rows), np.arange(rows.size)
            self._awake.add(woken, hosts, (value, slope, curve), self._now, values, rows)

    def _stand_behind(self, pages: IndexArray, hosts: npt.NDArray[np.int32], chosen: BoolArray) -> BoolArray:
        """Let those of the chosen pages stand behind another one that are alike in all; return which do."""
        rows = np.flatnonzero(chosen)
        alike = as_bytes(hosts[rows], *self.values.deciding(pages[rows]))
        chosen[rows] = self._followers.gather(pages[rows], alike, self._place)
        return chosen

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
        ladder.sweep()
        bound = ladder.bound()
        if bound is not None and bound != ladder.noted:
            ladder.noted = bound
            heappush(self._ladder_order, (*bound, ladder.host))

    # -- time passes

    def _advance(self, now: float) -> None:
        """Let everything happen that was to happen until now; amortised O(log n) per event."""
        self._now = now
        self._turned = now >= self._until
        if self._turned:
            self._turn(now)
        if self._resting_order or self._soon or self._overdue_soon:
            self._let_happen(now)

    def _let_happen(self, now: float) -> None:
        """Let hosts return, pages become eligible and overdue whose time has come within the tick."""
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
        self._calendar.adapt()
        self._deadlines.adapt()
        for ladder in (self._shared, *self._ladders.values()):
            ladder.adapt()
        self._calm += (self._cutoff - self._calm >> _CALMNESS) + 1 if self._calm < self._cutoff else 0
        self._foresee()
        pages = np.concatenate([self._take_awake(), self._take_fresh()])
        if self._max is not None:
            overdue = self._deadlines.due(now)
            self.set_deadlines(overdue[self._place[overdue] > IN_FLIGHT], now)
        due = self._rung(self._calendar.due(now), now)
        if due.size:
            pages = np.concatenate([pages, due])
        if pages.size:
            self._put(pages, falling=False)
        for host in list(self._resting_awake):
            self._put_worst_to_bed(host)

    def _take_awake(self) -> IndexArray:
        """Take out and return the pages that are awake, those of hosts that rest aside; O(A)."""
        if self._resting:
            self._set_aside()
        pages = self._awake.living()
        self._awake.clear()
        return pages

    def _compare_awake(self) -> None:
        """Keep awake only the best of those that are, as far as they are not all alike; O(A)."""
        self._put(self._take_awake(), falling=False)
        self._were_kept = self._awake.pages.size

    def _rung(self, due: IndexArray, now: float) -> IndexArray:
        """Take pages whose alarms have rung from where they stand; return those that may be crawled by now."""
        if not due.size:
            return due
        place = self._place[due]
        barred = due[place == BARRED]
        if barred.size:
            eligible = self._eligible_at(barred)
            later = eligible > now
            for page, until in zip(barred[later].tolist(), eligible[later].tolist(), strict=True):
                self._bar(page, until, now)
            due = np.concatenate([due[place != BARRED], barred[~later]])
        self._leave(due)
        return due

    def _ring_ahead(self, now: float) -> None:
        """Look at some pages whose alarms ring in the next tick, if these are many: to ring early does no harm."""
        pages = self._rung(self._calendar.ahead(now, self.values.portion), now)
        if pages.size:
            self._put(pages, falling=False)

    def _foresee(self) -> None:
        """Find the crowded beds that the cutoff will have come down to in the next ticks, if it is falling."""
        fallen, self._cutoff_before = self._cutoff_before - self._cutoff, self._cutoff
        self._fall = max(0.0, self._fall + (fallen - self._fall) / 8)
        self._crowded, self._thinned = [], 0
        if self._fall < 1 or self._cutoff == LOWEST:
            return
        deep = self._cutoff - int(_FORESEEN * self._fall)
        for ladder in (self._shared, *self._ladders.values()):
            if ladder.sleepers > _CROWD and ladder.host not in self._resting:
                self._crowded += [(ladder, level, n) for level, n in ladder.crowded(deep, _CROWD)]
        self._crowded.sort(key=lambda crowd: crowd[1])
        before = 0
        for _, level, n in reversed(self._crowded):
            before += n
            # So many with each pick that each bed is thinned out when the cutoff is there.
            ticks = max((self._cutoff - level) / self._fall, 1.0)
            self._thinned = max(self._thinned, min(_MOST_THINNED, int(before / ticks / PICKS_PER_TICK) + 1))

    def _set_aside(self) -> None:
        """Keep the pages of hosts that rest elsewhere, where they need no bounds; O(A)."""
        pages, hosts = self._awake.take_resting()
        for page, host in zip(pages.tolist(), hosts.tolist(), strict=True):
            self._resting_awake.setdefault(host, set()).add(page)

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
        self._rests[host] = True
        if host not in self._ladders and self._pages_of_host.item(host) > _SMALL_HOST:
            # Its pages move over as they are looked at; until then they are left out one by one.
            self._ladders[host] = Ladder(host, OWN_LADDER, self._places)
        if until < np.inf:
            heappush(self._resting_order, (until, host))
        self._awake.rest(host, True)

    def release_host(self, host: int) -> None:
        """Let a host's pages take part again; O(its awake pages)."""
        if self._resting.pop(host, None) is None:
            return
        self._rests[host] = False
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
