"""The calendar: which pages are to be looked at again in which tick of time."""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush

import numpy as np
import numpy.typing as npt

from crawlsched.pages import grown

__all__ = ["Calendar"]

IndexArray = npt.NDArray[np.intp]
FloatArray = npt.NDArray[np.float64]

# Ticks are told apart exactly up to so many ticks ahead, and coarser in proportion beyond: an alarm rings up to 1/64 of
# its distance early, and the 4-byte numbers of a page's bucket cover the age of the universe with 2000 buckets.
_EXACT_BITS = 7
# Further ahead an alarm rings early; whoever set it sets it again.
_FURTHEST = 2**30
#: No alarm is set.
NONE = 0


class Calendar:
    """One alarm per page, in buckets of time.

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
    A bucket is an array of page numbers. An entry counts only if the page's alarm, one 4-byte number, still names its
    bucket, so that moving an alarm is O(1) and leaves a dead entry behind; when more than half of all entries are dead,
    all buckets are swept, which is amortised O(1) an alarm. Memory: 4 bytes a page, and 4 to 8 for each alarm set.
    """

    def __init__(self, tick: float, start: float) -> None:
        self.tick = tick
        self._start = start
        self._alarm: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._buckets: dict[int, array[int]] = {}
        self._order: list[int] = []
        self._entries = 0
        self._live = 0

    def __len__(self) -> int:
        """Count the alarms that are set; O(1)."""
        return self._live

    def reserve(self, capacity: int) -> None:
        """Make room for so many pages."""
        self._alarm = grown(self._alarm, capacity)

    def number(self, time: float) -> int:
        """Return the number of the tick that contains a time; at least 1."""
        return max(1, int((time - self._start) / self.tick) + 1)

    def end(self, time: float) -> float:
        """Return when the tick that contains a time ends."""
        return self._start + self.number(time) * self.tick

    def is_set(self, page: int) -> bool:
        """Whether a page has an alarm."""
        return bool(self._alarm[page] != NONE)

    def has_alarm(self, pages: IndexArray) -> npt.NDArray[np.bool_]:
        """Whether each page has an alarm."""
        has: npt.NDArray[np.bool_] = self._alarm[pages] != NONE
        return has

    def set_one(self, page: int, time: float, now: float) -> None:
        """Set a page's alarm, instead of the one it may have; O(1).

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
        ahead = min((time - self._start) / self.tick + 1.0 - current, _FURTHEST)
        distance = int(ahead) if ahead > 1 else 1
        bucket = current + distance
        shift = distance.bit_length() - _EXACT_BITS
        if shift > 0:
            bucket = (bucket >> shift) << shift
        old = self._alarm.item(page)
        if old == bucket:
            return
        self._alarm[page] = bucket
        self._live += old == NONE
        self._bucket(bucket).append(page)
        self._entries += 1
        if self._entries > 2 * self._live + 1024:
            self._sweep()

    def set(self, pages: IndexArray, times: FloatArray, now: float) -> None:
        """Set the alarms of distinct pages as `set_one` does; O(n log n)."""
        if not pages.size:
            return
        current = self.number(now)
        ahead = (times - self._start) / self.tick + (1.0 - current)
        distance = np.clip(ahead, 1.0, _FURTHEST).astype(np.int64)
        shift = np.maximum(np.frexp(distance)[1] - _EXACT_BITS, 0)
        buckets = ((distance + current) >> shift) << shift
        old = self._alarm[pages]
        moved = np.flatnonzero(old != buckets)
        self._live += int(np.count_nonzero(old == NONE))
        self._alarm[pages] = buckets
        moved = moved[np.argsort(buckets[moved], kind="stable")]
        sorted_buckets, sorted_pages = buckets[moved], pages[moved].astype(np.uint32)
        first = np.flatnonzero(np.diff(sorted_buckets, prepend=-1))
        for begin, stop in zip(first.tolist(), [*first[1:].tolist(), moved.size], strict=True):
            self._bucket(int(sorted_buckets[begin])).frombytes(sorted_pages[begin:stop].tobytes())
        self._entries += moved.size
        if self._entries > 2 * self._live + 1024:
            self._sweep()

    def clear_one(self, page: int) -> None:
        """Take a page's alarm back, if it has one; O(1)."""
        if self._alarm.item(page) != NONE:
            self._alarm[page] = NONE
            self._live -= 1

    def clear(self, pages: IndexArray) -> None:
        """Take the alarms of distinct pages back; O(n)."""
        self._live -= int(np.count_nonzero(self._alarm[pages]))
        self._alarm[pages] = NONE

    def due(self, now: float) -> IndexArray:
        """Take out and return the distinct pages whose alarms ring in the tick of `now` or before; O(their number)."""
        current = self.number(now)
        if not self._order or self._order[0] > current:
            return np.empty(0, np.intp)
        found = []
        while self._order and self._order[0] <= current:
            bucket = heappop(self._order)
            entries = self._buckets.pop(bucket)
            pages = np.frombuffer(entries, np.uint32).astype(np.intp)
            self._entries -= pages.size
            found.append(pages[self._alarm[pages] == bucket])
        # A page that left a bucket and came back stands in it twice.
        due = np.unique(np.concatenate(found))
        self.clear(due)
        return due

    def next_time(self) -> float:
        """Return when the first bucket rings, POSIX seconds; inf if there is none. O(1)."""
        return self._start + (self._order[0] - 1) * self.tick if self._order else np.inf

    def soonest(self, n: int) -> IndexArray:
        """Return about `n` pages whose alarms ring soonest, not necessarily all of them distinct; O(n)."""
        found: list[IndexArray] = []
        for bucket in sorted(self._order)[: 64 + n // 4]:
            pages = np.frombuffer(self._buckets[bucket], np.uint32).astype(np.intp)
            found.append(pages[self._alarm[pages] == bucket])
            n -= found[-1].size
            if n <= 0:
                break
        return np.concatenate(found) if found else np.empty(0, np.intp)

    def _bucket(self, bucket: int) -> array[int]:
        entries = self._buckets.get(bucket)
        if entries is None:
            entries = self._buckets[bucket] = array("I")
            heappush(self._order, bucket)
        return entries

    def _sweep(self) -> None:
        for bucket, entries in list(self._buckets.items()):
            pages = np.frombuffer(entries, np.uint32)
            living = np.unique(pages[self._alarm[pages] == bucket])
            if living.size:
                self._buckets[bucket] = array("I", living.tobytes())
            else:
                del self._buckets[bucket]
        self._order = list(self._buckets)
        heapify(self._order)
        self._entries = sum(map(len, self._buckets.values()))

    def check(self) -> None:
        """Raise `AssertionError` unless every alarm stands in its bucket and all counts agree; O(n)."""
        assert sorted(self._order) == sorted(self._buckets)
        assert self._entries == sum(map(len, self._buckets.values()))
        set_pages = np.flatnonzero(self._alarm)
        assert self._live == set_pages.size
        for page in set_pages.tolist():
            assert page in self._buckets[int(self._alarm[page])]
