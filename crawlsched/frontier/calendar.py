"""The calendar: which pages are to be looked at again in which tick of time."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.crawl_value.evaluation import Compilable
from crawlsched.frontier import bucket_rows, calendar_rows
from crawlsched.frontier.buckets import Buckets
from crawlsched.frontier.calendar_rows import EXACT_BITS, FURTHEST, LAST_TICK, NONE, WIDTH_BITS
from crawlsched.growing import grown
from crawlsched.pages import distinct

__all__ = ["NONE", "Calendar"]

IndexArray = npt.NDArray[np.intp]
FloatArray = npt.NDArray[np.float64]

_WIDTH = 2**WIDTH_BITS - 1
# There are no more buckets at a time: 64 of each width, and those of one tick.
_MOST_BUCKETS = 4096
# What is in a wide bucket goes to narrower ones in parts of about so many alarms, before its first tick begins.
_PART = 512
# So often in a tick `ahead` goes for what rings in the next one.
_TIMES_AHEAD = 3
#: `crawlsched.frontier.calendar_rows`.
ROWS = Compilable(calendar_rows, bucket_rows)


def _alarms_of(key: Any) -> tuple[Any, Any]:
    """Return the first and the last tick of a bucket, or of each of several."""
    start = key >> WIDTH_BITS
    return start, start + (1 << (key & _WIDTH)) - 1


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
    A bucket is an array of page numbers, for a range of ticks that begins at a multiple of its width, a power of two.
    An entry counts only if the page's alarm, one 4-byte number, is in the bucket's range, so that moving an alarm is
    O(1) and leaves a dead entry behind (see `Buckets`). Before the range of a wide bucket begins, its alarms are moved
    to narrower ones, some hundreds in each tick: each alarm is moved three times or so on its way, and no tick has to
    do much more than any other. Memory: 4 bytes a page, and about 5 for each alarm set.
    """

    def __init__(self, tick: float, start: float) -> None:
        self.tick = tick
        self._start = start
        self._alarm: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._buckets = Buckets(lambda: self._alarm, _alarms_of)
        # By the tick in which something is to be done about them, and those whose alarms are being moved.
        self._order: list[tuple[int, int]] = []
        self._moving: list[int] = []
        # A tick, and what is left of those who ring in it when `ahead` hands them out.
        self._next_tick = NONE
        self._ahead: IndexArray = np.empty(0, np.intp)
        self._n_ahead = 0
        self._living = 0
        self._current = self.number(start)  # tick of the last `due`

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

    def end(self, time: float, more: int = 0) -> float:
        """Return when the tick that contains a time ends, or some ticks later; O(1)."""
        return self._start + (self.number(time) + more) * self.tick

    def is_set(self, page: int) -> bool:
        """Whether a page has an alarm; O(1)."""
        return bool(self._alarm[page] != NONE)

    def has_alarm(self, pages: IndexArray) -> npt.NDArray[np.bool_]:
        """Whether each page has an alarm; O(n)."""
        has: npt.NDArray[np.bool_] = self._alarm[pages] != NONE
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
        distance = int(ahead) if ahead > 1 else 1
        alarm = min(current + distance, LAST_TICK)
        shift = max(distance.bit_length() - EXACT_BITS, 0)
        old = self._alarm.item(page)
        self._alarm[page] = alarm
        if old == NONE:
            self._living += 1
        elif old >= alarm and old >> shift == alarm >> shift:
            return  # The entry of the alarm before is in a bucket at least as wide, so it counts for this one too.
        self._add_one(page, alarm >> shift << shift, shift)

    def _add_one(self, page: int, start: int, shift: int) -> None:
        key = start << WIDTH_BITS | shift
        if self._buckets.add_one(key, page):
            self._note(key)

    def set(self, pages: IndexArray, times: FloatArray, now: float) -> None:
        """Set the alarms of distinct pages as `set_one` does, but for infinite times; O(n log n)."""
        if not pages.size:
            return
        current = self.number(now)
        if (arrays := self._buckets.arrays((), pages.size, _MOST_BUCKETS)) is not None:
            new = np.empty(pages.size, np.int64)
            n_new, n_unset = ROWS.set_alarms(*arrays, self._alarm, pages, times, self._start, self.tick, current, new)
            self._living += n_unset
            for key in new[:n_new].tolist():
                self._note(key)
            return
        rings = times < np.inf
        if not rings.all():
            pages, times = pages[rings], times[rings]
        ahead = (times - self._start) / self.tick + (1.0 - current)
        alarms = np.minimum(np.clip(ahead, 1.0, FURTHEST).astype(np.int64) + current, LAST_TICK)
        self._living += pages.size - int(np.count_nonzero(self._alarm[pages]))
        self._alarm[pages] = alarms
        self._add(pages, alarms, current)

    def _add(self, pages: IndexArray, alarms: npt.NDArray[np.int64], current: int) -> None:
        """Put pages into the buckets of their alarms."""
        if not pages.size:
            return
        shift = np.maximum(np.frexp(alarms - current)[1] - EXACT_BITS, 0)
        keys = (alarms >> shift << shift) << WIDTH_BITS | shift
        for key in self._buckets.add(keys, pages):
            self._note(key)

    def _note(self, key: int) -> None:
        start, shift = key >> WIDTH_BITS, key & _WIDTH
        heappush(self._order, (start - (1 << shift) if shift else start, key))

    def clear_one(self, page: int) -> None:
        """Take a page's alarm back, if it has one; O(1)."""
        if self._alarm.item(page) != NONE:
            self._alarm[page] = NONE
            self._living -= 1

    def clear(self, pages: IndexArray) -> None:
        """Take the alarms of distinct pages back; O(n)."""
        self._living -= int(np.count_nonzero(self._alarm[pages]))
        self._alarm[pages] = NONE

    def due(self, now: float) -> IndexArray:
        """Take out and return the distinct pages whose alarms ring in the tick of `now` or before; O(their number)."""
        current = self.number(now)
        keys: list[int] = []
        while self._order and self._order[0][0] <= current:
            _, key = heappop(self._order)
            (self._moving if key & _WIDTH else keys).append(key)
        found = self._ring_compiled(keys, current)
        is_clear = found is not None
        if found is None:
            found = [self._buckets.pop(key) for key in keys]
            if self._moving:
                found += self._move(current)
        self._current = current
        if self._ahead.size:
            left = self._ahead[self._alarm[self._ahead] == self._next_tick]
            self._ahead = self._ahead[:0]
            if left.size:
                found.append(left)
        self._buckets.sweep(self._living)
        if not found:
            return np.empty(0, np.intp)
        if len(found) == 1 and is_clear:
            return found[0]
        # A page that left a bucket and came back stands in it twice.
        due = distinct(np.concatenate(found)) if len(found) > 1 else found[0]
        self.clear(due)
        return due

    def _ring_compiled(self, keys: list[int], current: int) -> list[IndexArray] | None:
        """Take out those whose alarms ring, of some buckets that are due and those being moved, by compiled code.

        They have no alarms then. None, and nothing is done, where the buckets are not such as compiled code can walk.
        """
        n_due, keys = len(keys), keys + self._moving
        arrays = self._buckets.arrays(keys, 0)
        if arrays is None:
            return None
        if not keys:
            return []
        key_of, n_of = np.array(keys), np.empty(len(keys), np.int64)
        n = ROWS.wanted(arrays[2], key_of, n_due, current, _PART, n_of)
        arrays = self._buckets.arrays((), n, _MOST_BUCKETS) or arrays
        found, new = np.empty((2, n), np.int64)
        n_found, n_new = ROWS.ring(*arrays, self._alarm, key_of, n_of, n_due, current, found, new)
        self._living -= n_found
        for key in new[:n_new].tolist():
            self._note(key)
        self._moving = [key for key in self._moving if key >> WIDTH_BITS > current]
        return [found[:n_found]]

    def ahead(self, n: int) -> IndexArray:
        """Take out up to `n` pages of those that ring in the tick after the last `due`, where there are more; O(n).

        Alarms that are set for that tick meanwhile are handed out, too, if they are many again, but not without end:
        some are set by whoever has just looked at their pages.
        """
        tick = self._current + 1
        if tick != self._next_tick:
            self._next_tick, self._n_ahead = tick, 0
        if not self._ahead.size:
            key = tick << WIDTH_BITS
            if self._n_ahead == _TIMES_AHEAD or key not in self._buckets or self._buckets.size(key) <= n:
                return self._ahead
            self._n_ahead += 1
            self._ahead = distinct(self._buckets.pop_some(key, self._buckets.size(key)))
        some, self._ahead = self._ahead[:n], self._ahead[n:]
        pages: IndexArray = some[self._alarm[some] == tick]
        self.clear(pages)
        return pages

    def _move(self, current: int) -> list[IndexArray]:
        """Move alarms of wide buckets to narrower ones; return the pages of those that ring by now."""
        found: list[IndexArray] = []
        still = []
        for key in self._moving:
            left, ticks = self._buckets.size(key), (key >> WIDTH_BITS) - current
            if ticks <= 0:
                n = left
            elif left > _PART * ticks:
                n = -(-left // ticks)
            else:  # The later the better: the nearer an alarm is, the narrower the bucket that it is moved to.
                n = max(0, left - _PART * (ticks - 1))
            if n:
                pages = self._buckets.pop_some(key, n)
                alarms = self._alarm[pages].astype(np.int64)
                rings = alarms <= current
                if rings.any():
                    found.append(distinct(pages[rings]))
                    pages, alarms = pages[~rings], alarms[~rings]
                self._add(pages, alarms, current)
            if ticks > 0:
                still.append(key)
            else:
                self._buckets.discard(key)
        self._moving = still
        return found

    def next_time(self) -> float:
        """Return a time until which nothing rings, after the tick of the last `due`; inf if there is none. O(1)."""
        ticks = [key >> WIDTH_BITS for key in self._moving]
        if self._order:
            ticks.append(self._order[0][0])
        return self._start + (min(ticks) - 1) * self.tick if ticks else np.inf

    def soonest(self, n: int) -> IndexArray:
        """Return about `n` pages whose alarms ring soonest, not necessarily all of them distinct; O(n)."""
        found: list[IndexArray] = []
        if self._ahead.size:
            found.append(self._ahead[self._alarm[self._ahead] == self._next_tick])
            n -= found[-1].size
        for key in sorted(self._buckets)[: 64 + n // 4]:
            found.append(self._buckets.pages(key))
            n -= found[-1].size
            if n <= 0:
                break
        return np.concatenate(found) if found else np.empty(0, np.intp)

    def check(self) -> None:
        """Raise `AssertionError` unless every alarm stands in its bucket and all counts agree; O(n)."""
        self._buckets.check()
        assert sorted([key for _, key in self._order] + self._moving) == sorted(self._buckets)
        alarmed = np.flatnonzero(self._alarm)
        assert self._living == alarmed.size
        inside = [self._ahead[self._alarm[self._ahead] == self._next_tick]]
        inside += [self._buckets.pages(key) for key in self._buckets]
        assert np.isin(alarmed, np.concatenate(inside)).all()
