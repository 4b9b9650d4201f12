"""Alarms in the buckets of a calendar, one by one, as numba compiles it; `timing_wheel` has the same for numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawlsched.frontier.buckets import bucket_loops
from crawlsched.frontier.buckets.bucket_loops import COUNT, discard, find, pop_all, put

__all__ = ["EXAMPLES", "FURTHEST", "LAST_TICK", "NONE", "gather", "ring", "set_alarms"]

#: No alarm is set.
NONE = 0
#: Further ahead an alarm rings early; whoever set it sets it again.
FURTHEST = 2**30
LAST_TICK = 2**32 - 1


def set_alarms(
    entries: Any,
    before: Any,
    table: Any,
    numbers: Any,
    alarm: Any,
    pages: Any,
    times: Any,
    start: float,
    tick: float,
    current: int,
    gathered: int,
    near: int,
    nearer: int,
    new: Any,
) -> tuple[int, int, int]:
    """Set the alarms of pages, but for those whose time is infinite, and put the near ones into their buckets.

    As `Calendar.set` does in numpy; near are those up to `nearer` for pages below `gathered`, and up to `near` for
    others. Sets `new` to the keys that there were not, and returns how many, how many pages had no alarm, and by how
    many more are near now.
    """
    n_new = n_unset = n_near = 0
    for n in range(len(pages)):
        if times[n] == math.inf:
            continue
        page = pages[n]
        ahead = (times[n] - start) / tick + (1.0 - current)
        ring = min(current + int(min(max(ahead, 1.0), float(FURTHEST))), LAST_TICK)
        last = nearer if page < gathered else near
        old = np.int64(alarm[page])
        if old == NONE:
            n_unset += 1
        elif old <= last:
            n_near -= 1
        alarm[page] = ring
        if ring <= last:
            n_near += 1
            if ring != old:
                n_new = put(entries, before, table, numbers, ring, page, new, n_new)
    return n_new, n_unset, n_near


def ring(entries: Any, before: Any, table: Any, numbers: Any, alarm: Any, ticks: Any, found: Any) -> int:
    """Take out the buckets of some ticks: set `found` to the distinct pages whose alarms ring, and return how many.

    They have no alarms then. Where `found` has not room for all entries of these buckets nothing is done, and how many
    these are is returned as a negative number.
    """
    n_entries = 0
    for k in range(len(ticks)):
        n_entries += table[find(table, ticks[k]), COUNT]
    if n_entries > len(found):
        return -n_entries
    n_found = 0
    for k in range(len(ticks)):
        tick, begin = ticks[k], n_found
        stop = pop_all(entries, before, table, numbers, find(table, tick), found, begin)
        discard(table, numbers, tick)
        # Without a branch that waits for an alarm, somewhere in memory, the machine reads several at once.
        n_alive = begin
        for n in range(begin, stop):
            page = found[n]
            found[n_alive] = page
            n_alive += int(np.int64(alarm[page]) == tick)
        # A page that left a bucket and came back stands in it twice, and has no alarm the second time.
        for n in range(begin, n_alive):
            page = found[n]
            if np.int64(alarm[page]) == tick:
                alarm[page] = NONE
                found[n_found] = page
                n_found += 1
    return n_found


def gather(
    entries: Any,
    before: Any,
    table: Any,
    numbers: Any,
    alarm: Any,
    begin: int,
    stop: int,
    after: int,
    last: int,
    room: Any,
    new: Any,
) -> tuple[int, int]:
    """Put the alarms of pages from `begin` to `stop` that ring after one tick, up to another, into their buckets.

    Sets `new` to the keys that there were not, and returns how many, and how many alarms. `room` is for some pages.
    """
    n_new = n_near = 0
    for start in range(begin, stop, len(room)):
        # They are found first, so many at a time: a loop that does nothing else takes half as long.
        n_found = 0
        for page in range(start, min(start + len(room), stop)):
            tick: Any = np.int64(alarm[page])
            room[n_found] = page
            n_found += int(tick > after) & int(tick <= last)
        for n in range(n_found):
            tick = np.int64(alarm[room[n]])
            n_new = put(entries, before, table, numbers, tick, room[n], new, n_new)
        n_near += n_found
    return n_new, n_near


_ALARM, _PAGE, _TICKS = np.zeros(2, np.uint32), np.arange(2), np.array([3])
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "set_alarms": (*bucket_loops.example(), _ALARM, _PAGE, np.full(2, 0.5), 0.5, 0.5, 1, 0, 9, 9, _PAGE.copy()),
    "gather": (*bucket_loops.example(), _ALARM, 0, 2, 4, 9, _PAGE.copy(), _PAGE.copy()),
    "ring": (*bucket_loops.example(), _ALARM, _TICKS[:0], _PAGE.copy()),
}
