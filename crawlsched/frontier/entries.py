"""Where the entries of buckets are kept: in Python's own arrays, or in arrays that compiled code can walk."""

from __future__ import annotations

from array import array

import numpy as np
import numpy.typing as npt

from crawlsched.crawl_value.evaluation import Compilable
from crawlsched.frontier import bucket_rows
from crawlsched.frontier.bucket_rows import CHUNK, EMPTY
from crawlsched.pages import distinct

__all__ = ["ROWS", "CompactEntries", "PlainEntries"]

IndexArray = npt.NDArray[np.intp]
ColumnArray = npt.NDArray[np.uint32]

#: `crawlsched.frontier.bucket_rows`.
ROWS = Compilable(bucket_rows)


class PlainEntries:
    """Entries in one of Python's own arrays for each bucket."""

    def __init__(self) -> None:
        self.entries = 0
        self._buckets: dict[int, array[int]] = {}
        self._living: dict[int, int] = {}

    def __contains__(self, key: int) -> bool:
        return key in self._buckets

    def all_keys(self) -> list[int]:
        """Return the keys of all buckets."""
        return list(self._buckets)

    def size(self, key: int) -> int:
        """Return how many entries a bucket has."""
        return len(self._buckets[key])

    def add_one(self, key: int, page: int) -> bool:
        """Put one page into a bucket; return whether the bucket is new."""
        self.entries += 1
        bucket = self._buckets.get(key)
        if bucket is not None:
            bucket.append(page)
            self._living[key] += 1
            return False
        self._buckets[key] = array("I", (page,))
        self._living[key] = 1
        return True

    def add(self, keys: npt.NDArray[np.int64], pages: IndexArray) -> list[int]:
        """Put each page into the bucket of its key; return the keys of which there was none."""
        if keys.size == 1:
            return [keys.item(0)] if self.add_one(keys.item(0), pages.item(0)) else []
        if not keys.size:
            return []
        order = np.argsort(keys, kind="stable")
        sorted_keys, sorted_pages = keys[order], pages[order].astype(np.uint32)
        first = np.flatnonzero(np.concatenate([[True], sorted_keys[1:] != sorted_keys[:-1]]))
        new, data = [], sorted_pages.tobytes()
        stops = [*first[1:].tolist(), order.size]
        for key, begin, stop in zip(sorted_keys[first].tolist(), first.tolist(), stops, strict=True):
            bucket = self._buckets.get(key)
            if bucket is None:
                self._buckets[key] = array("I", data[4 * begin : 4 * stop])
                self._living[key] = stop - begin
                new.append(key)
            else:
                bucket.frombytes(data[4 * begin : 4 * stop])
                self._living[key] += stop - begin
        self.entries += pages.size
        return new

    def take(self, key: int, n: int, column: ColumnArray, low: int, high: int) -> IndexArray:
        """Take up to `n` entries out; return those whose page's number in a column is from `low` to `high`."""
        bucket = self._buckets[key]
        pages = np.frombuffer(bucket, np.uint32)[-n:].astype(np.intp)
        del bucket[-n:]
        self.entries -= pages.size
        return _alive(pages, column, low, high)

    def sweep(self, key: int, column: ColumnArray, low: int, high: int) -> None:
        """Drop the entries of a bucket that do not count, or stand in it a second time."""
        pages = distinct(self.take(key, self.size(key), column, low, high))
        self._buckets[key].frombytes(pages.astype(np.uint32).tobytes())
        self.entries += pages.size

    def look(self, key: int, column: ColumnArray, low: int, high: int) -> IndexArray:
        """Return the same of a whole bucket, and leave it as it is."""
        return _alive(np.frombuffer(self._buckets[key], np.uint32).astype(np.intp), column, low, high)

    def discard(self, key: int) -> None:
        """Take out a bucket."""
        del self._buckets[key], self._living[key]

    def leave(self, keys: npt.NDArray[np.int64]) -> None:
        """Count one page less in the bucket of each key."""
        for key in keys.tolist():
            self._living[key] -= 1

    def living(self, key: int) -> int:
        """Return how many entries were added to a bucket, less those that left."""
        return self._living[key]

    def set_living(self, key: int, n: int) -> None:
        """Set what `living` returns."""
        self._living[key] = n

    def crowded(self, above: int, least: int) -> list[tuple[int, int]]:
        """Return (key, `living`) of buckets above a key with at least so many living pages."""
        return [(key, n) for key, n in self._living.items() if n >= least and key > above]


def _alive(pages: IndexArray, column: ColumnArray, low: int, high: int) -> IndexArray:
    values = column[pages]
    living: IndexArray = pages[(values >= low) & (values <= high)]
    return living


class CompactEntries:
    """Entries in chunks of one array, found by a hash table; see `bucket_rows`."""

    def __init__(self) -> None:
        self._entries = np.zeros((4, CHUNK), np.uint32)
        self._before = np.zeros(4, np.int32)
        self._table(16)
        self._numbers = np.array([-1, 0, 0, 0, 0])

    def _table(self, size: int) -> None:
        self._keys = np.full(size, EMPTY)
        self._head = np.zeros(size, np.int32)
        self._count, self._living = np.zeros((2, size), np.int64)

    def _make_room(self, n: int) -> None:
        _, used, n_keys, _, n_free = self._numbers.tolist()
        if n_free + self._before.size - used < n:
            # What is never written to takes no memory.
            size = used + n + used // 4 + 4
            entries, before = np.zeros((size, CHUNK), np.uint32), np.zeros(size, np.int32)
            entries[:used], before[:used] = self._entries[:used], self._before[:used]
            self._entries, self._before = entries, before
        if 2 * (n_keys + n) > self._keys.size:
            there = self._keys != EMPTY
            kept = self._keys[there], self._head[there], self._count[there], self._living[there]
            self._table(1 << (4 * (n_keys + n)).bit_length())
            for key, *row in zip(*(column.tolist() for column in kept), strict=True):
                at = ROWS.find(self._keys, key)
                self._keys[at] = key
                self._head[at], self._count[at], self._living[at] = row

    @property
    def entries(self) -> int:
        """Entries in all buckets."""
        return int(self._numbers[3])

    def _row(self, key: int) -> int:
        row: int = ROWS.find(self._keys, key)
        return row

    def __contains__(self, key: int) -> bool:
        return bool(self._keys[self._row(key)] == key)

    def all_keys(self) -> list[int]:
        """Return the keys of all buckets."""
        keys: list[int] = self._keys[self._keys != EMPTY].tolist()
        return keys

    def size(self, key: int) -> int:
        """Return how many entries a bucket has."""
        return self._count.item(self._row(key))

    def add_one(self, key: int, page: int) -> bool:
        """Put one page into a bucket; return whether the bucket is new."""
        return bool(self.add(np.array([key]), np.array([page])))

    def add(self, keys: npt.NDArray[np.int64], pages: IndexArray) -> list[int]:
        """Put each page into the bucket of its key; return the keys of which there was none."""
        self._make_room(pages.size)
        new = np.empty(pages.size, np.int64)
        table = self._keys, self._head, self._count, self._living, self._numbers
        n = ROWS.add(self._entries, self._before, *table, keys, pages, new)
        found: list[int] = new[:n].tolist()
        return found

    def take(self, key: int, n: int, column: ColumnArray, low: int, high: int) -> IndexArray:
        """Take up to `n` entries out; return those whose page's number in a column is from `low` to `high`."""
        found = np.empty(min(n, self.size(key)), np.int64)
        table = self._keys, self._head, self._count, self._numbers
        return found[: ROWS.take(self._entries, self._before, *table, key, n, column, low, high, found)]

    def sweep(self, key: int, column: ColumnArray, low: int, high: int) -> None:
        """Drop the entries of a bucket that do not count, or stand in it a second time."""
        table = self._keys, self._head, self._count, self._numbers
        ROWS.sweep(self._entries, self._before, *table, key, column, low, high)

    def look(self, key: int, column: ColumnArray, low: int, high: int) -> IndexArray:
        """Return the same of a whole bucket, and leave it as it is."""
        found = np.empty(self.size(key), np.int64)
        table = self._keys, self._head, self._count
        return found[: ROWS.peek(self._entries, self._before, *table, key, column, low, high, found)]

    def discard(self, key: int) -> None:
        """Take out a bucket."""
        ROWS.discard(self._keys, self._head, self._count, self._living, self._numbers, key)

    def leave(self, keys: npt.NDArray[np.int64]) -> None:
        """Count one page less in the bucket of each key."""
        ROWS.leave(self._keys, self._living, keys)

    def living(self, key: int) -> int:
        """Return how many entries were added to a bucket, less those that left."""
        return self._living.item(self._row(key))

    def set_living(self, key: int, n: int) -> None:
        """Set what `living` returns."""
        self._living[self._row(key)] = n

    def crowded(self, above: int, least: int) -> list[tuple[int, int]]:
        """Return (key, `living`) of buckets above a key with at least so many living pages."""
        rows = np.flatnonzero((self._living >= least) & (self._keys > above))
        return list(zip(self._keys[rows].tolist(), self._living[rows].tolist(), strict=True))
