"""Alarms in the buckets of a calendar, one by one, as numba compiles it; `calendar` has the same for numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawlsched.frontier import bucket_rows
from crawlsched.frontier.bucket_rows import COUNT, discard, find, pop, put

__all__ = ["EXACT_BITS", "EXAMPLES", "FURTHEST", "LAST_TICK", "NONE", "WIDTH_BITS", "ring", "set_alarms", "wanted"]

#: No alarm is set.
NONE = 0
#: Alarms up to so many ticks ahead stand in buckets of one tick each, others in buckets that are wider in proportion to
#: their distance: 2000 buckets reach as far as 4-byte tick numbers do.
EXACT_BITS = 7
#: Further ahead an alarm rings early; whoever set it sets it again.
FURTHEST = 2**30
LAST_TICK = 2**32 - 1
#: Keys of buckets hold the width in their lowest bits.
WIDTH_BITS = 6


def _key(alarm: Any, current: int) -> int:
    """Return the key of the bucket for an alarm."""
    shift = max(math.frexp(float(alarm - current))[1] - EXACT_BITS, 0)
    key: int = (alarm >> shift << shift) << WIDTH_BITS | shift
    return key


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
    new: Any,
) -> tuple[int, int]:
    """Set the alarms of pages, but for those whose time is infinite, and put them into their buckets.

    As `Calendar.set` does in numpy. Sets `new` to the keys that there were not, and returns how many, and how many
    pages had no alarm.
    """
    n_new = n_unset = 0
    for n in range(len(pages)):
        if times[n] == math.inf:
            continue
        page = pages[n]
        ahead = (times[n] - start) / tick + (1.0 - current)
        ring = min(current + int(min(max(ahead, 1.0), float(FURTHEST))), LAST_TICK)
        if alarm[page] == NONE:
            n_unset += 1
        alarm[page] = ring
        n_new = put(entries, before, table, numbers, _key(ring, current), page, new, n_new)
    return n_new, n_unset


def wanted(table: Any, keys: Any, n_due: int, current: int, part: int, n_of: Any) -> int:
    """Set how many entries are to be taken out of buckets, the first `n_due` of which are due; return how many in all.

    Of the others as many as `Calendar._move` moves.
    """
    total = 0
    for k in range(len(keys)):
        left, ticks = table[find(table, keys[k]), COUNT], (keys[k] >> WIDTH_BITS) - current
        if k < n_due or ticks <= 0:
            n_of[k] = left
        elif left > part * ticks:
            n_of[k] = -(-left // ticks)
        else:
            n_of[k] = max(0, left - part * (ticks - 1))
        total += n_of[k]
    return total


def ring(
    entries: Any,
    before: Any,
    table: Any,
    numbers: Any,
    alarm: Any,
    keys: Any,
    n_of: Any,
    n_due: int,
    current: int,
    found: Any,
    new: Any,
) -> tuple[int, int]:
    """Take `n_of` entries out of each bucket: let alarms ring that are due, and move others to narrower buckets.

    Sets `found` to the distinct pages whose alarms ring, which have none then, and `new` to the keys that there were
    not; returns how many of both.
    """
    n_found = n_new = 0
    for k in range(len(keys)):
        start, width = keys[k] >> WIDTH_BITS, keys[k] & ((1 << WIDTH_BITS) - 1)
        last = start + (1 << width) - 1
        for _ in range(n_of[k]):
            page = pop(entries, before, table, numbers, find(table, keys[k]))
            set_for = np.int64(alarm[page])
            if set_for < start or set_for > last:
                continue
            if set_for <= current:
                # A page that left a bucket and came back stands in it twice, and has no alarm the second time.
                alarm[page] = NONE
                found[n_found] = page
                n_found += 1
            else:
                n_new = put(entries, before, table, numbers, _key(set_for, current), page, new, n_new)
        if k < n_due or start <= current:
            discard(table, numbers, keys[k])
    return n_found, n_new


_ALARM, _PAGE, _KEYS = np.zeros(2, np.uint32), np.arange(2), np.array([3 << WIDTH_BITS])
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "set_alarms": (*bucket_rows.example(), _ALARM, _PAGE, np.full(2, 0.5), 0.5, 0.5, 1, _PAGE.copy()),
    "wanted": (bucket_rows.empty_table(4), _KEYS, 0, 1, 512, np.zeros(1, np.int64)),
    "ring": (*bucket_rows.example(), _ALARM, _KEYS, np.zeros(1, np.int64), 0, 1, _PAGE.copy(), _PAGE.copy()),
}
