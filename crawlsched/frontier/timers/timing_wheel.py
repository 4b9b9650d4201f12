"""The calendar: which pages are to be looked at again in which tick of time."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.compiling import Compilable
from crawlsched.frontier.buckets.buckets import Buckets
from crawlsched.frontier.buckets.entries import LOOPS as BUCKET_LOOPS
from crawlsched.frontier.timers import timing_wheel_loops
from crawlsched.frontier.timers.timing_wheel_loops import FURTHEST, LAST_TICK, NONE
from crawlsched.pages import distinct

__all__ = ["NONE", "Calendar"]


# In so many ticks all alarms are gone through once. Fewer: less is in buckets, and more alarms are looked at in a tick.
_EPOCH = 4096
# Alarms looked at in one call.
_AT_ONCE = 2**16
# To pass over a dead entry when its tick comes takes less than to sweep it out before. So entries are counted as if so
# large a part of the alarms that are further ahead had some, too.
_SPARED = 0.2
# Who sets more alarms than this at once sweeps what that leaves behind, too: while all pages are filed again, slice by
# slice, a tick would have many slices' dead entries.
_MANY = 128
# So often `ahead` goes for what rings in a tick.
_TIMES_AHEAD = 3
_NOBODY: IndexArray = np.empty(0, np.intp)
#: `crawlsched.frontier.timers.timing_wheel_loops`.
LOOPS = Compilable(timing_wheel_loops, uses=(BUCKET_LOOPS,), keeps_lock=True)


def _alarm_of(tick: Any) -> tuple[Any, Any]:
    """Return the first and the last alarm that a bucket is for, or each of several: both are its tick."""
    return tick, tick


class Calendar:
    """One alarm per page, in ticks of time.

    An alarm rings in the tick that contains its time or in an earlier one, never in a later one: being woken early
    costs a look at the page, being woken late would cost exactness.

    Parameters
    ----------
    tick : float
        Seconds; pages of one tick ring together.
    start : float
        POSIX seconds; the first tick begins here.

    Notes
    -----
    A bucket is an array of page numbers for one tick, and there are buckets for the ticks soon to come only: of all
    other pages there is but the alarm, one 4-byte number. In each epoch of 4096 ticks the alarms of all pages are gone
    through once, some in each tick, and those of the epoch after the next one are gathered into buckets: so each is
    in its bucket at least an epoch before it rings. An entry counts only if it is the page's alarm, so that moving an
    alarm is O(1) and leaves a dead entry behind (see `Buckets`). Memory: 4 bytes a page, and 4 to 5 for each alarm that
    rings within two epochs.
    """

    def __init__(self, tick: float, start: float) -> None:
        self.tick = tick
        self._start = start
        self._alarm: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._buckets = Buckets(self._alarms, _alarm_of)
        # The ticks that have buckets, as a heap.
        self._order: list[int] = []
        self._current = self.number(start)  # tick of the last `due`
        # Alarms up to the first of these ticks are in buckets; up to the second those of pages that were gone through.
        self._near, self._nearer = self._current + _EPOCH, self._current + 2 * _EPOCH
        self._gathered = 0
        # By tick what is left of those who ring in it when `ahead` hands them out, and how often it went for them.
        self._ahead: dict[int, IndexArray] = {}
        self._times_ahead: dict[int, int] = {}
        self._room = np.empty(1024, np.int64)  # for what rings, with compiled code
        # How many alarms are set, and how many of these are in buckets.
        self._living = self._n_near = 0

    def __len__(self) -> int:
        """Count the alarms that are set; O(1)."""
        return self._living

    def adapt(self) -> None:
        """Keep the alarms as suits the code in use; O(1), or O(n) when that has changed."""
        self._buckets.adapt()

    def reserve(self, capacity: int) -> None:
        """Make room for so many pages; O(n)."""
        self._alarm = grown(self._alarm, capacity)

    def number(self, time: float) -> int:
        """Return the number of the tick that contains a time; at least 1. O(1)."""
        return max(1, int((time - self._start) / self.tick) + 1)

    def _alarms(self) -> npt.NDArray[np.uint32]:
        return self._alarm

    def end(self, time: float, more: int = 0) -> float:
        """Return when the tick that contains a time ends, or some ticks later; O(1)."""
        return self._start + (self.number(time) + more) * self.tick

    def is_set(self, page: int) -> bool:
        """Whether a page has an alarm; O(1)."""
        return bool(self._alarm[page] != NONE)

    def has_alarm(self, pages: IndexArray) -> BoolArray:
        """Whether each page has an alarm; O(n)."""
        has: BoolArray = self._alarm[pages] != NONE
        return has

    def set_one(self, page: int, time: float, now: float) -> None:
        """Set a page's alarm, instead of the one it may have; amortised O(1).

        Parameters
        ----------
        page : int
            Row number.
        time : float
            When to ring, POSIX seconds; a time in the tick of `now` or before rings in the next tick.
        now : float
            POSIX seconds.
        """
        current = self.number(now)
        # Bounded before it becomes an integer: a time may be anything up to the largest float.
        ahead = min((time - self._start) / self.tick + 1.0 - current, FURTHEST)
        alarm = min(current + (int(ahead) if ahead > 1 else 1), LAST_TICK)
        old, last = self._alarm.item(page), self._nearer if page < self._gathered else self._near
        self._alarm[page] = alarm
        if old == NONE:
            self._living += 1
        elif old <= last:
            self._n_near -= 1
        if alarm <= last:
            self._n_near += 1
            if alarm != old and self._buckets.add_one(alarm, page):
                heappush(self._order, alarm)

    def set(self, pages: IndexArray, times: FloatArray, now: float) -> None:
        """Set the alarms of distinct pages as `set_one` does, but for infinite times; O(n log n)."""
        if not pages.size:
            return
        current = self.number(now)
        if (arrays := self._buckets.arrays((), pages.size, self._most_buckets())) is not None:
            new = np.empty(pages.size, np.int64)
            when = pages, times, self._start, self.tick, current, self._gathered, self._near, self._nearer
            n_new, n_unset, n_near = LOOPS.set_alarms(*arrays, self._alarm, *when, new)
            self._buckets.came(pages.size)
            self._living += n_unset
            self._n_near += n_near
            self._note(new[:n_new].tolist())
        else:
            self._set(pages, times, current)
        if pages.size > _MANY:
            self._sweep()

    def _set(self, pages: IndexArray, times: FloatArray, current: int) -> None:
        """Do what `set` does, in numpy."""
        rings = times < np.inf
        if not rings.all():
            pages, times = pages[rings], times[rings]
        ahead = (times - self._start) / self.tick + (1.0 - current)
        alarms = np.minimum(np.clip(ahead, 1.0, FURTHEST).astype(np.int64) + current, LAST_TICK)
        before, last = self._alarm[pages], self._last(pages)
        self._living += pages.size - int(np.count_nonzero(before))
        self._n_near -= int(np.count_nonzero((before != NONE) & (before <= last)))
        self._alarm[pages] = alarms
        near = alarms <= last
        self._add(pages[near], alarms[near])

    def _last(self, pages: IndexArray) -> npt.NDArray[np.int64]:
        """Return the last tick whose alarms are in buckets, for each of some pages."""
        return np.where(pages < self._gathered, self._nearer, self._near)

    def _most_buckets(self) -> int:
        return self._nearer - self._current + 1

    def _add(self, pages: IndexArray, alarms: npt.NDArray[np.int64]) -> None:
        """Put pages into the buckets of their alarms."""
        if pages.size:
            self._n_near += pages.size
            self._note(self._buckets.add(alarms, pages))

    def _note(self, ticks: list[int]) -> None:
        for tick in ticks:
            heappush(self._order, tick)

    def clear_one(self, page: int) -> None:
        """Take a page's alarm back, if it has one; O(1)."""
        alarm = self._alarm.item(page)
        if alarm != NONE:
            self._alarm[page] = NONE
            self._living -= 1
            self._n_near -= alarm <= (self._nearer if page < self._gathered else self._near)

    def clear(self, pages: IndexArray) -> None:
        """Take the alarms of distinct pages back; O(n)."""
        alarms = self._alarm[pages]
        there = alarms != NONE
        self._living -= int(np.count_nonzero(there))
        self._n_near -= int(np.count_nonzero(there & (alarms <= self._last(pages))))
        self._alarm[pages] = NONE

    # -- what is soon to come

    def _advance(self, current: int) -> None:
        """Let the tick be the current one: gather the alarms that have to be in buckets by then."""
        if current >= self._near:
            self._gather(self._alarm.size)
            if current >= self._nearer:  # nobody has asked for long
                self._begin_epoch(current + _EPOCH)
                self._gather(self._alarm.size)
            self._begin_epoch(self._nearer + _EPOCH)
        self._gather(self._alarm.size * (current - self._near + _EPOCH) // _EPOCH)
        self._current = current

    def _begin_epoch(self, end: int) -> None:
        self._near, self._nearer, self._gathered = self._nearer, end, 0

    def _gather(self, end: int) -> None:
        """Go through the alarms of all pages below a number, and put those of the next epoch into buckets."""
        # Unsigned numbers below the first go round, and are above the span, too: one comparison instead of two.
        last = min(self._nearer, LAST_TICK)
        first, span = np.uint32(min(self._near + 1, LAST_TICK)), np.uint32(max(last - self._near, 0))
        for start in range(self._gathered, end, _AT_ONCE):
            stop = min(start + _AT_ONCE, end)
            if (arrays := self._buckets.arrays((), stop - start, self._most_buckets())) is not None:
                new = np.empty(min(stop - start, self._most_buckets()), np.int64)
                n_new, n_near = LOOPS.gather(*arrays, self._alarm, start, stop, self._near, last, self._room, new)
                self._buckets.came(n_near)
                self._n_near += n_near
                self._note(new[:n_new].tolist())
                continue
            pages = start + (self._alarm[start:stop] - first < span).nonzero()[0]
            if pages.size:
                self._add(pages, self._alarm[pages].astype(np.int64))
        self._gathered = max(self._gathered, end)

    def due(self, now: float) -> IndexArray:
        """Take out and return the distinct pages whose alarms ring in the tick of `now` or before; O(their number).

        With them come those that `ahead` began to hand out and is not through with.
        """
        self._advance(self.number(now))
        ticks: list[int] = []
        while self._order and self._order[0] <= self._current:
            ticks.append(heappop(self._order))
        found = self._ring_compiled(ticks)
        if found is None:
            found = [self._buckets.pop(tick) for tick in ticks]
            for pages in found:
                self.clear(pages)
        for tick in [tick for tick in self._ahead if tick <= self._current]:
            left = self._living_ahead(tick)
            del self._ahead[tick], self._times_ahead[tick]
            if left.size:
                self.clear(left)
                found.append(left)
        self._sweep()
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.empty(0, np.intp)

    def _sweep(self) -> None:
        self._buckets.sweep(self._n_near + int(_SPARED * (self._living - self._n_near)))

    def _ring_compiled(self, ticks: list[int]) -> list[IndexArray] | None:
        """Take out those whose alarms ring in some ticks by compiled code; they have no alarms then.

        None, and nothing is done, where the buckets are not such as compiled code can walk.
        """
        arrays = self._buckets.arrays(ticks, 0)
        if arrays is None:
            return None
        if not ticks:
            return []
        wanted = np.array(ticks)
        n_found = LOOPS.ring(*arrays, self._alarm, wanted, self._room)
        if n_found < 0:
            self._room = np.empty(-2 * n_found, np.int64)
            n_found = LOOPS.ring(*arrays, self._alarm, wanted, self._room)
        self._living -= n_found
        self._n_near -= n_found
        return [self._room[:n_found].copy()]

    def ahead(self, n: int, least: int | None = None, rest: int = 0, later: int = 0) -> IndexArray:
        """Take out up to `n` pages of those that ring in the tick after the last `due`, if many do; O(their number).

        Or in one that is some ticks `later`.

        Alarms that are set for that tick meanwhile are handed out, too, if they are many again, but not without end,
        unless all are asked for: some are set by whoever has just looked at their pages.

        Parameters
        ----------
        n : int
        least : int, optional
            More than so many are many; by default `n`. All are asked for by 0.
        rest : int, default 0
            So many more may be handed out, if none is left then.
        """
        tick, least = self._current + 1 + later, n if least is None else least
        ahead = self._ahead.get(tick, _NOBODY)
        if not ahead.size:
            times = self._times_ahead.get(tick, 0)
            if (least and times == _TIMES_AHEAD) or self._buckets.size(tick) <= least:
                return ahead
            ahead = distinct(self._buckets.pop_some(tick, self._buckets.size(tick)))
            if ahead.size <= least:  # the others were dead
                self._buckets.add(np.full(ahead.size, tick), ahead)
                return ahead[:0]
            self._times_ahead[tick] = times + 1
        if ahead.size <= n + rest:
            n = ahead.size
        some, self._ahead[tick] = ahead[:n], ahead[n:]
        living: IndexArray = some[self._alarm[some] == tick]
        self.clear(living)
        return living

    def n_ahead(self, later: int = 0) -> int:
        """Return how many pages `ahead` could hand out, at most; O(1)."""
        tick = self._current + 1 + later
        return self._ahead.get(tick, _NOBODY).size + self._buckets.size(tick)

    def _living_ahead(self, tick: int) -> IndexArray:
        """Return what is left of those who ring in a tick that `ahead` hands out."""
        pages = self._ahead[tick]
        living: IndexArray = pages[self._alarm[pages] == tick]
        return living

    def next_time(self) -> float:
        """Return a time until which nothing rings, after the tick of the last `due`; inf if there is none. O(1)."""
        ticks = self._order[:1]
        if self._living > self._n_near:
            ticks.append(self._near + 1)
        return self._start + (min(ticks) - 1) * self.tick if ticks else np.inf

    def soonest(self, n: int) -> IndexArray:
        """Return about `n` pages whose alarms ring soonest, not necessarily all of them distinct.

        O(n), or as long as it takes to look at all alarms if fewer ring within an epoch.
        """
        found: list[IndexArray] = []
        for tick in sorted(self._ahead):
            found.append(self._living_ahead(tick))
            n -= found[-1].size
        ticks = sorted(self._buckets)
        looked_at = ticks[: 64 + n // 4]
        for tick in looked_at:
            found.append(self._buckets.pages(tick))
            n -= found[-1].size
            if n <= 0:
                break
        if n > 0 and len(looked_at) == len(ticks) and self._living > self._n_near:
            found.append(self._soonest_far(n))
        return np.concatenate(found) if found else np.empty(0, np.intp)

    def _soonest_far(self, n: int) -> IndexArray:
        """Return up to `n` pages whose alarms are in no bucket and ring soonest, in that order; O(alarms)."""
        found, before = _NOBODY, LAST_TICK + 1
        for start in range(0, self._alarm.size, _AT_ONCE):
            alarms = self._alarm[start : start + _AT_ONCE]
            found = np.concatenate([found, start + np.flatnonzero((alarms > self._near) & (alarms < before))])
            if found.size > n:
                # Of the parts that follow hardly any is as soon as all of these.
                found = found[np.argpartition(self._alarm[found], n - 1)[:n]]
                before = int(self._alarm[found].max())
        return found[np.argsort(self._alarm[found], kind="stable")]

    def check(self) -> None:
        """Raise `AssertionError` unless every alarm that is near stands in its bucket and all counts agree; O(n)."""
        self._buckets.check()
        assert self._current < self._near < self._nearer
        assert sorted(self._order) == sorted(self._buckets)
        alarmed = np.flatnonzero(self._alarm)
        near = alarmed[self._alarm[alarmed] <= self._last(alarmed)]
        assert (self._living, self._n_near) == (alarmed.size, near.size)
        inside = [_NOBODY, *(self._living_ahead(tick) for tick in self._ahead)]
        inside += [self._buckets.pages(tick) for tick in self._buckets]
        assert np.array_equal(np.unique(np.concatenate(inside)), near)
