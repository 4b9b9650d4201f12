"""Buckets of page numbers in arrays, entry by entry, as numba compiles it; see `compiled_buckets`.

A bucket is a row of an open hash table: its key, its newest chunk, how many entries it has, and how many pages are said
to live in it. Chunks hold `CHUNK` entries each and know the chunk before; those that are free form a list of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["CHUNK", "EMPTY", "EXAMPLES", "add", "discard", "find", "leave", "peek", "sweep", "take"]

#: Entries of a chunk.
CHUNK = 32
#: Stands for no key.
EMPTY = -(2**63)
# Numbers: the newest free chunk, chunks ever used, keys in the table, entries in all, chunks in the list of free ones.
_FREE, _USED, _KEYS, _ENTRIES, _N_FREE = range(5)


def find(keys: Any, key: int) -> int:
    """Return the row of a key, or that in which it has to be put."""
    mask = len(keys) - 1
    row = (((key ^ (key >> 21)) & 0xFFFFFF) * 0x9E3779 >> 24) & mask
    while keys[row] != key and keys[row] != EMPTY:
        row = (row + 1) & mask
    return row


def _remove(keys: Any, head: Any, count: Any, living: Any, row: int) -> None:
    # What follows moves up, so that no search ends before it.
    mask, hole = len(keys) - 1, row
    while True:
        row = (row + 1) & mask
        key = keys[row]
        if key == EMPTY:
            break
        wanted = (((key ^ (key >> 21)) & 0xFFFFFF) * 0x9E3779 >> 24) & mask
        if (row - wanted) & mask >= (row - hole) & mask:
            keys[hole], head[hole], count[hole], living[hole] = key, head[row], count[row], living[row]
            hole = row
    keys[hole] = EMPTY


def _push(entries: Any, before: Any, head: Any, count: Any, numbers: Any, row: int, page: int) -> None:
    inside = count[row] % CHUNK
    if inside == 0:
        chunk = numbers[_FREE]
        if chunk >= 0:
            numbers[_FREE] = before[chunk]
            numbers[_N_FREE] -= 1
        else:
            chunk = numbers[_USED]
            numbers[_USED] += 1
        before[chunk] = head[row]
        head[row] = chunk
    entries[head[row], inside] = page
    count[row] += 1
    numbers[_ENTRIES] += 1


def add(
    entries: Any,
    before: Any,
    keys: Any,
    head: Any,
    count: Any,
    living: Any,
    numbers: Any,
    key_of: Any,
    pages: Any,
    new: Any,
) -> int:
    """Put each page into the bucket of its key; set `new` to the keys that there were not, and return how many."""
    n_new = 0
    for i in range(len(pages)):
        row = find(keys, key_of[i])
        if keys[row] == EMPTY:
            keys[row], head[row], count[row], living[row] = key_of[i], -1, 0, 0
            numbers[_KEYS] += 1
            new[n_new] = key_of[i]
            n_new += 1
        _push(entries, before, head, count, numbers, row, pages[i])
        living[row] += 1
    return n_new


def take(
    entries: Any,
    before: Any,
    keys: Any,
    head: Any,
    count: Any,
    numbers: Any,
    key: int,
    n: int,
    values: Any,
    low: int,
    high: int,
    found: Any,
) -> int:
    """Take the newest `n` entries out of a bucket; set `found` to the living ones, and return how many."""
    row, n_found = find(keys, key), 0
    n = min(n, count[row])
    for _ in range(n):
        chunk = head[row]
        inside = (count[row] - 1) % CHUNK
        page = entries[chunk, inside]
        value = np.int64(values[page])
        if low <= value and value <= high:
            found[n_found] = page
            n_found += 1
        count[row] -= 1
        if inside == 0:
            head[row] = before[chunk]
            before[chunk] = numbers[_FREE]
            numbers[_FREE] = chunk
            numbers[_N_FREE] += 1
    numbers[_ENTRIES] -= n
    return n_found


def sweep(
    entries: Any,
    before: Any,
    keys: Any,
    head: Any,
    count: Any,
    numbers: Any,
    key: int,
    values: Any,
    low: int,
    high: int,
) -> None:
    """Drop the entries of a bucket that are dead, or stand in it a second time."""
    row = find(keys, key)
    found = np.empty(count[row], np.int64)
    n = take(entries, before, keys, head, count, numbers, key, len(found), values, low, high, found)
    alive = np.sort(found[:n])
    for i in range(n):
        if i == 0 or alive[i] != alive[i - 1]:
            _push(entries, before, head, count, numbers, row, alive[i])


def peek(
    entries: Any, before: Any, keys: Any, head: Any, count: Any, key: int, values: Any, low: int, high: int, found: Any
) -> int:
    """Set `found` to the living entries of a bucket, which stay in it, and return how many."""
    row, n_found = find(keys, key), 0
    chunk, inside = head[row], (count[row] - 1) % CHUNK
    for _ in range(count[row]):
        page = entries[chunk, inside]
        value = np.int64(values[page])
        if low <= value and value <= high:
            found[n_found] = page
            n_found += 1
        inside -= 1
        if inside < 0:
            chunk, inside = before[chunk], CHUNK - 1
    return n_found


def discard(keys: Any, head: Any, count: Any, living: Any, numbers: Any, key: int) -> None:
    """Take a bucket without entries out of the table."""
    row = find(keys, key)
    if keys[row] == key:
        numbers[_KEYS] -= 1
        _remove(keys, head, count, living, row)


def leave(keys: Any, living: Any, key_of: Any) -> None:
    """Count one page less in the bucket of each key."""
    for i in range(len(key_of)):
        living[find(keys, key_of[i])] -= 1


_ENTRY, _INT, _KEY, _VALUE = (
    np.zeros((2, CHUNK), np.uint32),
    np.zeros(4, np.int32),
    np.full(4, EMPTY),
    np.zeros(4, "u4"),
)
_LONG, _NUMBER = np.zeros(4, np.int64), np.array([-1, 0, 0, 0, 0])
_ROW = np.zeros(1, np.int64)
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "find": (_KEY, 3),
    "add": (_ENTRY, _INT, _KEY, _INT.copy(), _LONG, _LONG.copy(), _NUMBER, _ROW, _ROW, _ROW.copy()),
    "take": (_ENTRY, _INT, _KEY, _INT.copy(), _LONG, _NUMBER, 3, 0, _VALUE, 0, 0, _ROW.copy()),
    "sweep": (_ENTRY, _INT, np.full(4, EMPTY), _INT.copy(), np.zeros(4, np.int64), _NUMBER, 3, _VALUE, 0, 0),
    "peek": (_ENTRY, _INT, np.full(4, EMPTY), _INT.copy(), np.zeros(4, np.int64), 3, _VALUE, 0, 0, _ROW.copy()),
    "discard": (_KEY, _INT.copy(), _LONG, _LONG.copy(), _NUMBER, 3),
    "leave": (_KEY, _LONG.copy(), _ROW[:0]),
}
