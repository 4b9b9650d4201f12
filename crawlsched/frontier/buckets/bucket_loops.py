"""Buckets of page numbers in arrays, entry by entry, as numba compiles it; see `entries`.

A bucket is a row of an open hash table: its key, its newest chunk, how many entries it has, and how many pages are said
to live in it, side by side, since they are looked at together. Chunks hold `CHUNK` entries each and know the chunk
before; those that are free form a list of their own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = [
    "CHUNK",
    "COUNT",
    "EMPTY",
    "EXAMPLES",
    "KEY",
    "LIVING",
    "add",
    "crowded",
    "discard",
    "empty_table",
    "example",
    "find",
    "leave",
    "move_over",
    "peek",
    "peek_some",
    "pop",
    "pop_all",
    "put",
    "size_of",
    "sweep",
    "sweep_some",
    "take",
]

#: Entries of a chunk.
CHUNK = 32
#: Stands for no key.
EMPTY = -(2**63)
#: Columns of the table.
KEY, _HEAD, COUNT, LIVING = range(4)
# Numbers: the newest free chunk, chunks ever used, keys in the table, entries in all, chunks in the list of free ones.
_FREE, _USED, _KEYS, _ENTRIES, _N_FREE = range(5)


def empty_table(size: int) -> Any:
    """Return a table of so many rows, a power of two."""
    table = np.zeros((size, 4), np.int64)
    table[:, KEY] = EMPTY
    return table


def _home(key: int, n_rows: int) -> int:
    # The fractional part of a multiple of the golden ratio: keys that follow each other are spread over all rows.
    return (((((key ^ (key >> 21)) & 0xFFFFFF) * 0x9E3779) & 0xFFFFFF) * n_rows) >> 24


def find(table: Any, key: int) -> int:
    """Return the row of a key, or that in which it has to be put."""
    mask, row = len(table) - 1, _home(key, len(table))
    while table[row, KEY] != key and table[row, KEY] != EMPTY:
        row = (row + 1) & mask
    return row


def move_over(table: Any, longer: Any) -> None:
    """Put all buckets of a table into one that is empty."""
    for n in range(len(table)):
        if table[n, KEY] != EMPTY:
            row = find(longer, table[n, KEY])
            for column in range(4):
                longer[row, column] = table[n, column]


def _remove(table: Any, row: int) -> None:
    # What follows moves up, so that no search ends before it.
    mask, hole = len(table) - 1, row
    while True:
        row = (row + 1) & mask
        key = table[row, KEY]
        if key == EMPTY:
            break
        wanted = _home(key, len(table))
        if (row - wanted) & mask >= (row - hole) & mask:
            for column in range(4):
                table[hole, column] = table[row, column]
            hole = row
    table[hole, KEY] = EMPTY
    table[hole, COUNT] = table[hole, LIVING] = 0


def _push(entries: Any, before: Any, table: Any, numbers: Any, row: int, page: int) -> None:
    inside = table[row, COUNT] % CHUNK
    if inside == 0:
        chunk = numbers[_FREE]
        if chunk >= 0:
            numbers[_FREE] = before[chunk]
            numbers[_N_FREE] -= 1
        else:
            chunk = numbers[_USED]
            numbers[_USED] += 1
        before[chunk] = table[row, _HEAD]
        table[row, _HEAD] = chunk
    entries[table[row, _HEAD], inside] = page
    table[row, COUNT] += 1
    numbers[_ENTRIES] += 1


def put(entries: Any, before: Any, table: Any, numbers: Any, key: int, page: int, new: Any, n_new: int) -> int:
    """Put a page into the bucket of a key, which joins the `n_new` of `new` where there was none; return `n_new`."""
    row = find(table, key)
    if table[row, KEY] == EMPTY:
        table[row, KEY], table[row, _HEAD], table[row, COUNT], table[row, LIVING] = key, -1, 0, 0
        numbers[_KEYS] += 1
        new[n_new] = key
        n_new += 1
    _push(entries, before, table, numbers, row, page)
    table[row, LIVING] += 1
    return n_new


def pop(entries: Any, before: Any, table: Any, numbers: Any, row: int) -> int:
    """Take the newest entry out of a bucket, dead or alive, and return it."""
    chunk = table[row, _HEAD]
    inside = (table[row, COUNT] - 1) % CHUNK
    table[row, COUNT] -= 1
    numbers[_ENTRIES] -= 1
    if inside == 0:
        table[row, _HEAD] = before[chunk]
        before[chunk] = numbers[_FREE]
        numbers[_FREE] = chunk
        numbers[_N_FREE] += 1
    page: int = entries[chunk, inside]
    return page


def pop_all(entries: Any, before: Any, table: Any, numbers: Any, row: int, found: Any, n_found: int) -> int:
    """Take all entries out of a bucket, which join the `n_found` of `found`, newest first; return `n_found`."""
    while table[row, COUNT] > 0:
        chunk = table[row, _HEAD]
        inside = (table[row, COUNT] - 1) % CHUNK + 1
        for n in range(inside - 1, -1, -1):
            found[n_found] = entries[chunk, n]
            n_found += 1
        table[row, _HEAD] = before[chunk]
        before[chunk] = numbers[_FREE]
        numbers[_FREE] = chunk
        numbers[_N_FREE] += 1
        table[row, COUNT] -= inside
        numbers[_ENTRIES] -= inside
    return n_found


def add(entries: Any, before: Any, table: Any, numbers: Any, key_of: Any, pages: Any, new: Any) -> int:
    """Put each page into the bucket of its key; set `new` to the keys that there were not, and return how many."""
    n_new = 0
    for i in range(len(pages)):
        n_new = put(entries, before, table, numbers, key_of[i], pages[i], new, n_new)
    return n_new


def take(
    entries: Any,
    before: Any,
    table: Any,
    numbers: Any,
    key: int,
    n: int,
    values: Any,
    low: int,
    high: int,
    found: Any,
) -> int:
    """Take the newest `n` entries out of a bucket; set `found` to the living ones, and return how many."""
    row, n_taken, n_found = find(table, key), 0, 0
    if n >= table[row, COUNT]:
        n_taken = pop_all(entries, before, table, numbers, row, found, 0)
    else:
        for n_taken in range(n):
            found[n_taken] = pop(entries, before, table, numbers, row)
        n_taken = n
    # Without a branch that waits for a value, somewhere in memory, the machine reads several at once.
    for at in range(n_taken):
        page = found[at]
        value = np.int64(values[page])
        found[n_found] = page
        n_found += int(low <= value) & int(value <= high)
    return n_found


def sweep(entries: Any, before: Any, table: Any, numbers: Any, key: int, values: Any, low: int, high: int) -> None:
    """Drop the entries of a bucket that are dead, or stand in it a second time."""
    row = find(table, key)
    found = np.empty(table[row, COUNT], np.int64)
    n = take(entries, before, table, numbers, key, len(found), values, low, high, found)
    alive = np.sort(found[:n])
    for i in range(n):
        if i == 0 or alive[i] != alive[i - 1]:
            _push(entries, before, table, numbers, row, alive[i])


def sweep_some(
    entries: Any,
    before: Any,
    table: Any,
    numbers: Any,
    keys: Any,
    values: Any,
    lows: Any,
    highs: Any,
    largest: int,
    most: int,
) -> tuple[int, int]:
    """Do what `sweep` does for one bucket after the other, of keys some of which there may be no more.

    Ends before a bucket that has more than `largest` entries, and after `most` entries. Returns how many keys are done
    with, and how many entries these buckets had.
    """
    n_entries = 0
    for k in range(len(keys)):
        row = find(table, keys[k])
        if n_entries >= most or table[row, COUNT] > largest:
            return k, n_entries
        if table[row, KEY] == keys[k]:
            n_entries += table[row, COUNT]
            sweep(entries, before, table, numbers, keys[k], values, lows[k], highs[k])
    return len(keys), n_entries


def peek(entries: Any, before: Any, table: Any, key: int, values: Any, low: int, high: int, found: Any) -> int:
    """Set `found` to the living entries of a bucket, which stay in it, and return how many."""
    row, n_found = find(table, key), 0
    chunk, inside = table[row, _HEAD], (table[row, COUNT] - 1) % CHUNK
    for _ in range(table[row, COUNT]):
        page = entries[chunk, inside]
        value = np.int64(values[page])
        if low <= value and value <= high:
            found[n_found] = page
            n_found += 1
        inside -= 1
        if inside < 0:
            chunk, inside = before[chunk], CHUNK - 1
    return n_found


def size_of(table: Any, keys: Any) -> int:
    """Return how many entries some buckets have."""
    n = 0
    for k in range(len(keys)):
        n += table[find(table, keys[k]), COUNT]
    return n


def peek_some(entries: Any, before: Any, table: Any, keys: Any, values: Any, lows: Any, highs: Any, found: Any) -> int:
    """Do what `peek` does for one bucket after the other."""
    n = 0
    for k in range(len(keys)):
        n += peek(entries, before, table, keys[k], values, lows[k], highs[k], found[n:])
    return n


def discard(table: Any, numbers: Any, key: int) -> None:
    """Take a bucket without entries out of the table."""
    row = find(table, key)
    if table[row, KEY] == key:
        numbers[_KEYS] -= 1
        _remove(table, row)


def crowded(table: Any, above: int, highest: int, least: int, keys: Any, living: Any) -> int:
    """Set the keys above one, up to another, of buckets with at least so many living pages, and how many these are.

    Returns how many such buckets there are. Key by key where there are not so many as rows.
    """
    n_found = 0
    by_key = highest - above < len(table)
    for n in range(highest - above if by_key else len(table)):
        row = find(table, above + 1 + n) if by_key else n
        key = table[row, KEY]
        if table[row, LIVING] >= least and key > above and key <= highest:
            keys[n_found], living[n_found] = key, table[row, LIVING]
            n_found += 1
    return n_found


def leave(table: Any, key_of: Any) -> None:
    """Count one page less in the bucket of each key."""
    for i in range(len(key_of)):
        table[find(table, key_of[i]), LIVING] -= 1


def example() -> tuple[Any, Any, Any, Any]:
    """Return entries, before, table and numbers of nothing, with room for two chunks and four buckets."""
    return np.zeros((2, CHUNK), np.uint32), np.zeros(2, np.int32), empty_table(4), np.array([-1, 0, 0, 0, 0])


_BUCKETS = _ENTRY, _BEFORE, _TABLE, _NUMBER = example()
_VALUE, _ROW = np.zeros(4, "u4"), np.zeros(1, np.int64)
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "find": (_TABLE, 3),
    "move_over": (_TABLE, _TABLE.copy()),
    "add": (*example(), _ROW, _ROW, _ROW.copy()),
    "take": (*_BUCKETS, 3, 0, _VALUE, 0, 0, _ROW.copy()),
    "sweep": (*_BUCKETS, 3, _VALUE, 0, 0),
    "sweep_some": (*_BUCKETS, _ROW, _VALUE, _ROW, _ROW, 1, 1),
    "peek": (_ENTRY, _BEFORE, _TABLE, 3, _VALUE, 0, 0, _ROW.copy()),
    "size_of": (_TABLE, _ROW),
    "peek_some": (_ENTRY, _BEFORE, _TABLE, _ROW, _VALUE, _ROW, _ROW, _ROW.copy()),
    "discard": (_TABLE, _NUMBER, 3),
    "crowded": (_TABLE, 0, 1, 1, _ROW.copy(), _ROW.copy()),
    "leave": (_TABLE, _ROW[:0]),
}
