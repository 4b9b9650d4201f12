"""Where each page of the frontier stands: asleep, awake, just crawled; and how it is put where it belongs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray, LevelArray
from crawlsched.columns.growing import grown
from crawlsched.compiling import Compilable
from crawlsched.frontier import placement_loops
from crawlsched.frontier.buckets.entries import LOOPS as BUCKET_LOOPS
from crawlsched.frontier.candidates.candidates import PRECISE, Awake
from crawlsched.frontier.candidates.evaluated import Found, Sleepers, highest_within
from crawlsched.frontier.candidates.just_crawled import Fresh
from crawlsched.frontier.cutoff import Calm
from crawlsched.frontier.hosts.resting import RestingHosts
from crawlsched.frontier.places import AWAKE, BARRED, FRESH, IN_FLIGHT, LOWEST, OUT, OWN_LADDER, RUNNING
from crawlsched.frontier.sleeping.level_queues import Ladders
from crawlsched.frontier.sleeping.levels import (
    bed_level,
    bed_levels,
    coarseness,
    level_above,
    levels_above,
    meeting_levels,
    value_at,
    values_at,
)
from crawlsched.frontier.sleeping.ties import Followers
from crawlsched.frontier.timers.timing_wheel import Calendar
from crawlsched.frontier.values import CrawlValues, PageValues, as_bytes
from crawlsched.pages import Pages

__all__ = ["Standing"]


#: `crawlsched.frontier.placement_loops`.
LOOPS = Compilable(placement_loops, uses=(BUCKET_LOOPS,), keeps_lock=True)

# Levels are crossed a little later than they are said to be, so that rounding makes no page late.
_SLACK = 1e-9
# POSIX seconds as floats are good to 1e-16 of themselves; alarms ring some roundings earlier.
_CLOCK_SLACK = 1e-15
# When more pages than this are awake on hosts that do not rest, all but the best _KEPT_AWAKE go to bed; in turns of k
# ticks (k + 1) / 2 times as many are kept, and as many more may be awake.
_MOST_AWAKE = 192
_KEPT_AWAKE = 64
# When more pages than this of a host that rests would be awake, it gets a ladder of its own.
_MOST_ASIDE = 192
# A turn takes up to so many ticks, as long as no more pages are looked at in it than so many portions.
_MOST_TICKS = 4
_PORTIONS = 1.5
# For so many turns more than need be what is known of pages that are awake holds, where it is good enough.
_LASTING = 3
_NONE: npt.NDArray[np.int32] = np.empty(0, np.int32)
# More pages than this that would wake at once and whose values do not grow are sorted instead.
_LEAST_RUN = 256
# Up to so many pages that leave those awake are found one by one.
_FEW = 4


class Standing:
    """Where pages stand, and putting them where they belong.

    Parameters
    ----------
    pages : Pages
    values : CrawlValues
    tick, now : float
        As for `Calendar`.

    Attributes
    ----------
    place : ndarray of int32
        By page, where it stands; see `places`.
    now, until : float
        POSIX seconds: the time, and when the turn ends.
    holds : float
        POSIX seconds: until when bounds hold; without compiled code, where pages are looked at one after the other in
        each turn, until the second one from now ends.
    lasts : float
        POSIX seconds: until when those of pages hold that are awake, if they are good enough by then.
    rung : float
        POSIX seconds: a time in the last tick of the turn. All alarms up to that tick have rung.
    ticks : int
        How many ticks make a turn.
    calendar : Calendar
        The alarms of pages that sleep, or may not be crawled yet.
    awake : Awake
    ladders : Ladders
    resting : RestingHosts
    followers : Followers
    cutoff : int
        The level above which pages are awake.
    calm : Calm
        Where the cutoff has been for some time: pages sleep in view of that, and not of a passing rise.
    fresh : Fresh
        The pages that were crawled in this turn.
    """

    def __init__(self, pages: Pages, values: CrawlValues, tick: float, now: float) -> None:
        self.values = values
        self._pages = pages
        self.now = now
        self.calendar = Calendar(tick, now)
        self.ticks = 1
        self._begin(now)
        self.place: LevelArray = np.zeros(0, np.int32)
        self.awake = Awake()
        self.resting = RestingHosts()
        self.ladders = Ladders(pages, self.resting.until, self._places)
        self.followers = Followers()
        self.set_cutoff(LOWEST)
        self.calm = Calm()
        self._coarse = coarseness(0)
        self._were_kept = 0  # awake, when they were compared among each other for the last time but by a turn
        self.fresh = Fresh()
        self._n_looked_at = 0  # pages, in this turn

    def _places(self) -> LevelArray:
        return self.place

    def reserve(self, capacity: int) -> None:
        """Make room for so many pages, more than there are; O(n)."""
        size = self.place.size
        self._coarse = coarseness(capacity)
        self.place = grown(self.place, capacity)
        self.place[size:] = OUT
        self.calendar.reserve(capacity)

    def _begin(self, now: float) -> None:
        self.until = self.calendar.end(now, self.ticks - 1)
        self.rung = self.until - 0.5 * self.calendar.tick
        self.holds = self.lasts = self.until
        if not LOOPS.compiled:
            self.holds, self.lasts = self.calendar.end(now, 2), self.calendar.end(now, 2 + _LASTING)
        self._kept_awake = _KEPT_AWAKE * (self.ticks + 1) // 2
        self._most_awake = self._kept_awake + _MOST_AWAKE - _KEPT_AWAKE

    def begin_turn(self, now: float) -> None:
        """Begin a turn, the longer the fewer pages were looked at in each tick of the last one; O(1).

        Without compiled code it is one tick: what rings in the next turn is to be known in this one.
        """
        fit = int(self.ticks * _PORTIONS * self.values.portion / max(self._n_looked_at, 1))
        self.ticks = max(1, min(fit, self.ticks + 1, _MOST_TICKS)) if LOOPS.compiled else 1
        self._n_looked_at = 0
        self._begin(now)

    @property
    def at_once(self) -> float:
        """How many pages may be looked at with one pick, where there is a choice; compiled code does without that.

        O(1).
        """
        return np.inf if LOOPS.compiled else self.values.portion

    @property
    def _most_lower(self) -> int:
        """By how many levels the cutoff comes down, at most, so that enough pages wake: as far as beds are apart.

        Among many pages some dozens rise to each level in a tick, and all of them would wake.
        """
        return 1 << self._coarse

    def set_cutoff(self, level: int) -> None:
        """Let pages above a level be awake from now on; O(1)."""
        self.cutoff = level
        self._value_at_cutoff = value_at(level)

    def come_down(self, level: int, host: int) -> None:
        """Let pages above a level be awake from now on; that of a host that has a cutoff of its own, or -1, too.

        O(1).
        """
        self.set_cutoff(min(self.cutoff, level))
        self.calm.at_most(self.cutoff)
        if host >= 0:
            self.resting.cutoffs[host] = 0

    def _level_of_best(self, levels: LevelArray) -> int:
        """Return the level above which the best few are, of whose values these are the levels."""
        return int(np.partition(levels, -self._kept_awake)[-self._kept_awake]) - 2

    # -- pages leave where they stand

    def leave(self, pages: IndexArray, rung: bool = False) -> IndexArray:
        """Take distinct pages, whose alarms may have `rung`, from their places, which the caller sets anew. O(n).

        Returns those of them that may not have been crawled yet.
        """
        if not rung:
            self.calendar.clear(pages)
        if (table := self.ladders.shared.table()) is not None:
            others = np.empty(pages.size, np.int64)
            n_others = LOOPS.leave(table, self.place, pages, OWN_LADDER // 2, others)
            self.ladders.shared.have_left(pages.size - n_others)
            if not n_others:
                return others[:0]
            pages = others[:n_others]
        place = self.place[pages]
        self._fall_asleep(pages[place == AWAKE])
        asleep = place > RUNNING
        if asleep.any():
            self.ladders.leave(pages[asleep], place[asleep])
        barred: IndexArray = pages[place == BARRED]
        return barred

    def leave_one(self, page: int) -> None:
        """Do what `leave` does for a single page; O(log(awake))."""
        place = self.place.item(page)
        if place == IN_FLIGHT:
            return
        self.calendar.clear_one(page)
        if place == AWAKE:
            self._fall_asleep_one(page)
        elif place > RUNNING:
            self.ladders.leave_one(page, place)

    def hand_over(self, pages: IndexArray) -> None:
        """Let others take over from those of some pages that they stand behind; O(n log(leaders))."""
        if self.followers:
            for page in pages[np.isin(pages, self.followers.leaders())].tolist():
                self.hand_over_one(page)

    def hand_over_one(self, page: int) -> None:
        """Do what `hand_over` does for a single page. As `put_one`, amortised: O(log(levels))."""
        if self.followers and (successor := self.followers.succeed(page, self.place)) is not None:
            self.put_one(successor)

    def _fall_asleep(self, pages: IndexArray) -> None:
        if pages.size <= _FEW:
            for page in pages.tolist():
                self._fall_asleep_one(page)
            return
        self.place[pages] = IN_FLIGHT
        self.awake.discard_rows(self.place[self.awake.pages] == IN_FLIGHT)
        if self.resting.awake:
            for page, host in zip(pages.tolist(), self._pages.host[pages].tolist(), strict=True):
                self.resting.forget(page, host)

    def _fall_asleep_one(self, page: int) -> None:
        self.awake.discard(page)
        if self.resting.awake:
            self.resting.forget(page, self._pages.host.item(page))

    # -- asleep or awake

    def put(self, pages: IndexArray, falling: bool, waking: int = 0) -> None:
        """Put distinct eligible pages to bed, or among those that are awake; O(log n) a page.

        Parameters
        ----------
        pages : ndarray of int
        falling : bool
            Whether the cutoff is coming down to them, so that they sleep where they are not disturbed by that.
        waking : int
            Without compiled code the cutoff comes down a little further, if so many of them are awake then.
        """
        values = self.look_at(pages)
        holds = max(self.holds, self.now)
        parabolas = values.parabolas(self.now, self.lasts)
        if LOOPS.compiled and self._put_compiled(pages, values, parabolas, falling):
            return
        found = Found.of(pages, values, parabolas, (self.now, holds, self.lasts))
        if waking:
            self.let_wake(waking, found.levels)
        sleepers = self.settle(found, np.arange(pages.size), falling)
        if sleepers is not None:
            self.set_alarms(sleepers)

    def look_at(self, pages: IndexArray) -> PageValues:
        """Return the crawl values of pages that are about to be put somewhere, as `CrawlValues.many`; O(n)."""
        self._n_looked_at += pages.size
        return self.values.many(pages)

    def let_wake(self, waking: int, levels: LevelArray) -> None:
        """Let the cutoff come down a little further, if so many of some pages of these levels are awake then; O(n).

        Or the next pick would have to open the bed into which the best of them go.
        """
        if levels.size > waking:
            lowest = int(np.partition(levels, -waking)[-waking])
            if lowest <= self.cutoff:
                self.come_down(max(lowest - 1, self.cutoff - self._most_lower), -1)

    def settle(self, found: Found, rows: IndexArray, falling: bool) -> Sleepers | None:
        """Do what `put` does, in numpy, with some of the pages that were looked at, but for alarms; O(log n) a page.

        Parameters
        ----------
        found : Found
        rows : ndarray of int
            Which of the pages; ascending.
        falling
            As for `put`.

        Returns
        -------
        Sleepers or None
            Those that sleep now, if there are any.
        """
        pages, levels = found.pages[rows], found.levels[rows]
        cutoffs, stays = np.full(rows.size, self.cutoff, np.int32), np.zeros(rows.size, bool)
        if self.resting.have_cutoffs:
            hosts = self._pages.host[pages]
            np.maximum(cutoffs, self.resting.cutoffs[hosts] + LOWEST, out=cutoffs)
            stays = (cutoffs > self.cutoff) & self.resting.stays[hosts]
        awake = descending = levels > cutoffs
        asleep = ~awake
        if np.count_nonzero(awake) > self._most_awake:
            awake, asleep = self._keep_best(pages, levels, cutoffs, found.values.steady[rows])
        if awake.any():
            self._wake(found, rows[awake])
        if not asleep.any():
            return None
        sleepers, where = pages[asleep], rows[asleep]
        descends = falling | descending[asleep]
        beds = self._beds(levels[asleep], cutoffs[asleep], stays[asleep], descends, found.parabolas[:, where])
        self.ladders.put(sleepers, beds)
        there = np.zeros(found.pages.size, bool)
        there[where] = True
        return Sleepers(sleepers, beds, found.values, there, found.until)

    def _keep_best(
        self, pages: IndexArray, levels: LevelArray, cutoffs: LevelArray, steady: BoolArray
    ) -> tuple[BoolArray, BoolArray]:
        """Return which of very many pages above their cutoffs wake, and which go to bed; cutoffs rise for that. O(n).

        The others of both stand behind one of the first.
        """
        if not steady.all():
            # Too many at once: the best few are kept, and the others wait until the cutoff comes down to them.
            self.set_cutoff(max(self.cutoff, self._level_of_best(levels)))
            np.maximum(cutoffs, self.cutoff, out=cutoffs)
        awake = levels > cutoffs
        asleep = ~awake
        if np.count_nonzero(awake) > self._most_awake and not steady[awake].all():
            # What is left are of very nearly the same value: those that are equal in all need to be there once.
            awake &= ~self._stand_behind(pages, awake & ~steady)
        return awake, asleep

    def _beds(
        self, levels: LevelArray, cutoffs: LevelArray, stays: BoolArray, descends: BoolArray, parabolas: FloatArray
    ) -> LevelArray:
        """Return under which levels pages go to bed that stay below these for now, in view of where the cutoff is soon.

        Parameters
        ----------
        levels, cutoffs : ndarray of int32, shape (n,)
            The second ones come down to the calm level where pages are below it.
        stays : ndarray of bool, shape (n,)
            Whether that is a host's own, and does not come back.
        descends : ndarray of bool, shape (n,)
            Whether the cutoff is coming down to them faster than is known.
        parabolas : ndarray, shape (3, n)
        """
        calm, aims = self.calm, None
        below = levels < calm.level
        cutoffs[below] = calm.level
        descends |= ~below & (calm.level == LOWEST)
        if not (descends.all() or (below.all() and calm.drift == 0.0)):
            value, slope, curve = parabolas
            back = np.where(stays, 0.0, (cutoffs - float(calm.level)) * calm.comes_back)
            drift = np.where(below, calm.drift, back) / self.calendar.tick
            aims = np.where(descends, cutoffs, meeting_levels(levels, cutoffs, (value, slope, curve), drift))
        return bed_levels(levels, cutoffs, descends, self._coarse, aims)

    def _put_compiled(self, pages: IndexArray, values: PageValues, parabolas: FloatArray, falling: bool) -> bool:
        """Do what `put` does by compiled code; return False, and do nothing, where too many pages would be awake."""
        n, host, cutoffs = pages.size, self._pages.host, self.resting.cutoffs if self.resting.have_cutoffs else _NONE
        found = asleep, rows, beds = np.empty(n, bool), np.empty(n, np.int64), np.empty(n, np.int64)
        calm, tick = int(self.calm.level), self.calendar.tick
        drifts = self.calm.drift / tick, self.calm.comes_back / tick
        hosts = host.low, host.high, cutoffs, self.resting.stays
        limits = int(self.cutoff), calm, falling, self._coarse, *drifts
        n_asleep = LOOPS.belong(parabolas, self.until - self.now, pages, *hosts, *limits, *found)
        if n - n_asleep > self._most_awake:
            return False
        if n_asleep < n:
            self._wake(Found(pages, values, parabolas, _NONE, self.now, self.until, self.lasts), rows[n_asleep:])
        if n_asleep:
            sleepers, levels = pages[rows[:n_asleep]], beds[:n_asleep]
            self.ladders.put(sleepers, levels)
            self.set_alarms(Sleepers(sleepers, levels, values, asleep, self.until))
        return True

    def set_alarms(self, sleepers: Sleepers, there: BoolArray | None = None) -> None:
        """Set the alarms of pages that have gone to sleep, or of those that are still `there`; O(1) a page, or more."""
        pages, levels, values, where, until = sleepers
        ring = values.crossings(values_at(levels) * (1 - _SLACK), until, where)
        ring -= _CLOCK_SLACK * abs(self.now)
        if there is not None:
            pages, ring = pages[there], ring[there]
        self.calendar.set(pages, ring, self.rung)

    def put_one(self, page: int) -> None:
        """Do what `put` does for a single page; O(log(levels) + A)."""
        value = self.values.one(page)
        bound = value.bound(self.holds, rough=True)
        level = level_above(bound)
        host = self._pages.host.item(page)
        cutoff = max(self.cutoff, LOWEST + self.resting.cutoffs.item(host))
        if level > cutoff and host in self.resting:
            self.put(np.array([page]), falling=False)
            return
        if level > cutoff and not value.steady:
            level = level_above(value.bound(self.holds))
        if level > cutoff:
            self.place[page] = AWAKE
            self.awake.add_one(page, host, value.parabola(self.now, self.holds), self.now, value, self.holds)
            return
        bed = bed_level(level, self.calm.level if level < self.calm.level else cutoff, self._coarse)
        self.ladders.put_one(page, bed, host)
        if not value.steady:
            ring = value.crossing(value_at(bed) * (1 - _SLACK), self.holds)
            if ring < np.inf:
                self.calendar.set_one(page, ring - _CLOCK_SLACK * abs(self.now), self.rung)

    def _wake(self, found: Found, rows: IndexArray) -> None:
        """Put pages in some rows among those that are awake, or into runs where many never change their value."""
        pages, values = found.pages[rows], found.values
        if rows.size > _LEAST_RUN and np.count_nonzero(steady := values.steady[rows]) > _LEAST_RUN:
            self.ladders.run(pages[steady], found.parabolas[0][rows[steady]])
            rows, pages = rows[~steady], pages[~steady]
        self.place[pages] = AWAKE
        hosts = self._pages.host[pages]
        if self.resting:
            resting = self.resting.rests[hosts]
            self.resting.set_aside(pages[resting], hosts[resting])
            rows, pages, hosts = rows[~resting], pages[~resting], hosts[~resting]
        if rows.size:
            parabolas, shortfalls = found.parabolas.take(rows, axis=1), values.shortfalls(rows)
            until: FloatArray = np.full(rows.size, found.until)
            if shortfalls is not None:
                missing = shortfalls[0] + shortfalls[1] * (found.lasts - found.after) ** 2
                until[missing <= PRECISE * parabolas[0]] = found.lasts
            if 4 * rows.size < found.pages.size:
                # What is kept is not to hold the posterior probabilities of all the others in memory.
                values, rows = values.some(rows), np.arange(rows.size)
            self.awake.add(pages, hosts, parabolas, found.after, values, rows, until, shortfalls)

    def _stand_behind(self, pages: IndexArray, chosen: BoolArray) -> BoolArray:
        """Let those of the chosen pages stand behind another one that are alike in all; return which do."""
        rows = np.flatnonzero(chosen)
        alike = as_bytes(self._pages.host[pages[rows]], *self.values.deciding(pages[rows]))
        chosen[rows] = self.followers.gather(pages[rows], alike, self.place)
        return chosen

    # -- all that are awake, or were crawled in this tick

    def put_crawled(self, page: int) -> None:
        """Put a page that has just been crawled where it belongs; O(K), or as `put_one` where it is worth much already.

        Such pages are dealt with together when the tick ends: in numpy, one costs as much as some dozens.
        """
        at_most = self.values.soon_at_most(page, self.holds, self._value_at_cutoff)
        if at_most < self._value_at_cutoff:
            self.place[page] = FRESH
            self.fresh.add(page, at_most, self.holds)
        else:
            self.put_one(page)

    def take_fresh(self) -> IndexArray:
        """Take out and return the pages that were crawled in this turn; O(n)."""
        return self.fresh.take(self.place) if self.fresh.pages else np.empty(0, np.intp)

    def forget_fresh(self) -> None:
        """Keep only those in mind as crawled in this turn that were not put where they belong meanwhile; O(n)."""
        self.fresh.forget(self.place, self.values, self.holds, self._value_at_cutoff)

    def put_fresh(self) -> None:
        """Put the pages that were crawled in this turn where they belong; O(log n) a page."""
        pages = self.take_fresh()
        if pages.size:
            self.put(pages, falling=False)

    def still_awake(self) -> IndexArray:
        """Return the pages that are awake, and set those of hosts that rest aside; O(A)."""
        if self.resting:
            self.resting.set_aside(*self.awake.take_resting())
        return self.awake.living()

    def fading(self) -> IndexArray:
        """Return the pages that are awake of which what is known will not hold for the next two turns; O(A).

        All, if they are very many: then the cutoff may rise. Those of hosts that rest are set aside.
        """
        pages = self.still_awake()
        return pages if pages.size > 2 * self._most_awake else self.awake.ending(self.holds)

    def take_awake(self) -> IndexArray:
        """Take out and return the pages that are awake, those of hosts that rest aside; O(A)."""
        pages = self.still_awake()
        self.awake.clear()
        return pages

    def take_ending(self) -> IndexArray:
        """Take out and return the pages, awake or just crawled, of which too little is known for this turn; O(A)."""
        pages = self.awake.ending(self.until)
        if pages.size:
            self.leave(pages, rung=True)
        return pages if self.fresh.holds >= self.until else np.concatenate([pages, self.take_fresh()])

    def put_awake(self) -> None:
        """Put the pages that are awake where they belong now; O(A)."""
        pages = self.take_awake()
        if pages.size:
            self.put(pages, falling=False)

    def compare_awake(self) -> None:
        """Keep awake only the best of those that are, as far as they are not all alike, if very many have come; O(A).

        Slice after slice of a collection that is being loaded leaves its best pages here.
        """
        if self.awake.pages.size > 2 * max(self._most_awake, self._were_kept):
            self.put_awake()
            self._were_kept = self.awake.pages.size

    def part_resting(self) -> None:
        """Put to bed all but the best pages of hosts that rest, where too many would be awake; O(log n) a page.

        Such a host has a ladder of its own from then on, and its own cutoff, which rises. For all others, be they
        thousands, one ladder is enough.
        """
        for host in self.resting.crowded(_MOST_ASIDE):
            self.ladders.give_own(host)
            self._put_worst_to_bed(host)

    def _put_worst_to_bed(self, host: int) -> None:
        waiting = self.resting.awake[host]
        pages = np.fromiter(waiting, np.intp, len(waiting))
        parabolas = self.values.many(pages).parabolas(self.now, self.holds)
        levels = levels_above(highest_within(parabolas, self.holds - self.now))
        cutoff = self._level_of_best(levels)
        self.resting.cutoffs[host], self.resting.have_cutoffs = cutoff - LOWEST, True
        worst = pages[levels <= cutoff]
        self.leave(worst)
        self.put(worst, falling=True)
