"""Where the entries of buckets are kept: in Python's own arrays, or in arrays that compiled code can walk."""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import ColumnArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.compiling import Compilable
from crawlsched.frontier.buckets import bucket_loops
from crawlsched.frontier.buckets.bucket_loops import CHUNK, COUNT, EMPTY, KEY, LIVING
from crawlsched.pages import distinct

__all__ = ["LOOPS", "CompactEntries", "PlainEntries"]


# Up to so many entries, most of which come into buckets of their own, are put in faster than they are sorted.
_ONE_BY_ONE = 1024

#: `crawlsched.frontier.buckets.bucket_loops`.
LOOPS = Compilable(bucket_loops, keeps_lock=True)


class PlainEntries:
    """Entries in one of Python's own arrays for each bucket."""

    def __init__(self) -> None:
        self.entries = 0
        self._buckets: dict[int, array[int]] = {}
        self._living: dict[int, int] = {}

    def __contains__(self, key: int) -> bool:
        return key in self._buckets

    def all_keys(self) -> list[int]:
        """Return the keys of all buckets; O(buckets)."""
        return list(self._buckets)

    def size(self, key: int) -> int:
        """Return how many entries a bucket has, 0 if there is none; O(1)."""
        return len(self._buckets.get(key, ()))

    def add_one(self, key: int, page: int) -> bool:
        """Put one page into a bucket; return whether the bucket is new. Amortised O(1)."""
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
        """Put each page into the bucket of its key; return the keys of which there was none. O(n log n)."""
        if keys.size <= _ONE_BY_ONE:
            return self._add_few(keys.tolist(), pages.tolist())
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

    def add_to(self, key: int, pages: IndexArray) -> None:
        """Put pages into one bucket that there is, and let `living` be as it was; amortised O(n)."""
        self._buckets[key].frombytes(pages.astype(np.uint32).tobytes())
        self.entries += pages.size

    def _add_few(self, keys: list[int], pages: list[int]) -> list[int]:
        buckets, living, new = self._buckets, self._living, []
        for key, page in zip(keys, pages, strict=True):
            if (bucket := buckets.get(key)) is None:
                buckets[key], living[key] = array("I", (page,)), 1
                new.append(key)
            else:
                bucket.append(page)
                living[key] += 1
        self.entries += len(pages)
        return new

    def take(self, key: int, n: int, column: ColumnArray, low: int, high: int) -> IndexArray:
        """Take up to `n` entries out; return those whose page's number in a column is from `low` to `high`. O(n)."""
        bucket = self._buckets[key]
        pages = np.frombuffer(bucket, np.uint32)[-n:].astype(np.intp)
        del bucket[-n:]
        self.entries -= pages.size
        return _alive(pages, column, low, high)

    def sweep(self, key: int, column: ColumnArray, low: int, high: int) -> None:
        """Drop the entries of a bucket that do not count, or stand in it a second time; O(n log n)."""
        self.add_to(key, distinct(self.take(key, self.size(key), column, low, high)))

    def look(self, key: int, column: ColumnArray, low: int, high: int) -> IndexArray:
        """Return the same of a whole bucket, and leave it as it is; O(its entries)."""
        return _alive(np.frombuffer(self._buckets[key], np.uint32).astype(np.intp), column, low, high)

    def look_at_some(
        self, keys: list[int], column: ColumnArray, lows: npt.NDArray[Any], highs: npt.NDArray[Any]
    ) -> IndexArray:
        """Do the same for some buckets, with `low` and `high` for each of them, in fewer calls; O(their entries)."""
        buckets = [self._buckets[key] for key in keys]
        n = [len(bucket) for bucket in buckets]
        pages = np.frombuffer(b"".join(buckets), np.uint32).astype(np.intp)
        return _alive(pages, column, lows.repeat(n), highs.repeat(n))

    def discard(self, key: int) -> None:
        """Take out a bucket; O(1)."""
        del self._buckets[key], self._living[key]

    def leave(self, keys: npt.NDArray[np.int64]) -> None:
        """Count one page less in the bucket of each key; O(n)."""
        for key in keys.tolist():
            self._living[key] -= 1

    def leave_one(self, key: int) -> None:
        """Count one page less in a bucket; O(1)."""
        self._living[key] -= 1

    def living(self, key: int) -> int:
        """Return how many entries were added to a bucket, less those that left; O(1)."""
        return self._living[key]

    def set_living(self, key: int, n: int) -> None:
        """Set what `living` returns; O(1)."""
        self._living[key] = n

    def crowded(self, above: int, highest: int, least: int) -> list[tuple[int, int]]:
        """Return (key, `living`) of buckets above a key, up to the highest, with at least so many living pages.

        O(buckets), or O(keys) where these are fewer.
        """
        living = self._living
        if highest - above < len(living):
            return [(key, n) for key in range(above + 1, highest + 1) if (n := living.get(key, 0)) >= least]
        return [(key, n) for key, n in living.items() if n >= least and key > above]

    def wasteful(self, share: float) -> IndexArray:
        """Return the keys of buckets with more than a share of dead entries, those with the greatest share first.

        O(buckets), and O(log n) for each that is returned.
        """
        # Buckets and the numbers of their living pages come and go together, so that both are in the same order. A loop
        # over ten thousand buckets would take longer than a pick should.
        n = len(self._buckets)
        keys, living = np.fromiter(self._buckets, np.intp, n), np.fromiter(self._living.values(), np.intp, n)
        count = np.fromiter(map(len, self._buckets.values()), np.intp, n)
        return _wasteful(keys, living, count, share)


def _wasteful(keys: IndexArray, living: IndexArray, count: IndexArray, share: float) -> IndexArray:
    rows = np.flatnonzero(living < (1.0 - share) * count)
    wasteful: IndexArray = keys[rows[np.argsort(living[rows] / count[rows])]]
    return wasteful


def _alive(pages: IndexArray, column: ColumnArray, low: Any, high: Any) -> IndexArray:
    values = column[pages]
    living: IndexArray = pages[(values >= low) & (values <= high)]
    return living


class CompactEntries:
    """Entries in chunks of one array, found by a hash table; see `bucket_loops`."""

    def __init__(self) -> None:
        # What is never written to takes no memory, and to have more of it moves nothing (`crawlsched.columns.growing`).
        self._entries = np.zeros((4, CHUNK), np.uint32)
        self._before = np.zeros(4, np.int32)
        self._table = bucket_loops.empty_table(16)
        self._numbers = np.array([-1, 0, 0, 0, 0])

    def _make_room(self, n: int, n_new: int) -> None:
        _, used, n_keys, _, n_free = self._numbers.tolist()
        if n_free + self._before.size - used < n:
            size = used + n + used // 4 + 4
            self._entries, self._before = grown(self._entries, size), grown(self._before, size)
        if 2 * (n_keys + n_new) > len(self._table):
            longer = bucket_loops.empty_table(1 << (2 * (n_keys + n_new)).bit_length())
            LOOPS.move_over(self._table, longer)
            self._table = longer

    def arrays(self, n: int, n_new: int | None = None) -> tuple[Any, Any, Any, Any]:
        """Return entries, chunks before, table and numbers, with room for so many pages and new buckets more.

        Amortised O(n).
        """
        self._make_room(n, n if n_new is None else min(n, n_new))
        return self._entries, self._before, self._table, self._numbers

    @property
    def entries(self) -> int:
        """Entries in all buckets; O(1)."""
        return int(self._numbers[3])

    def _of(self, key: int, column: int) -> int:
        number: int = self._table.item(LOOPS.find(self._table, key), column)
        return number

    def __contains__(self, key: int) -> bool:
        return self._of(key, KEY) == key

    def all_keys(self) -> list[int]:
        """Return the keys of all buckets; O(buckets)."""
        keys = self._table[:, KEY]
        found: list[int] = keys[keys != EMPTY].tolist()
        return found

    def size(self, key: int) -> int:
        """Return how many entries a bucket has, 0 if there is none; O(1)."""
        return self._of(key, COUNT)

    def add_one(self, key: int, page: int) -> bool:
        """Put one page into a bucket; return whether the bucket is new. Amortised O(1)."""
        return bool(self.add(np.array([key]), np.array([page])))

    def add(self, keys: npt.NDArray[np.int64], pages: IndexArray) -> list[int]:
        """Put each page into the bucket of its key; return the keys of which there was none. Amortised O(n)."""
        new = np.empty(pages.size, np.int64)
        n = LOOPS.add(*self.arrays(pages.size), keys, pages, new)
        found: list[int] = new[:n].tolist()
        return found

    def add_to(self, key: int, pages: IndexArray) -> None:
        """Put pages into one bucket that there is, and let `living` be as it was; amortised O(n)."""
        living = self.living(key)
        self.add(np.full(pages.size, key), pages)
        self.set_living(key, living)

    def take(self, key: int, n: int, column: ColumnArray, low: int, high: int) -> IndexArray:
        """Take up to `n` entries out; return those whose page's number in a column is from `low` to `high`. O(n)."""
        found = np.empty(min(n, self.size(key)), np.int64)
        kept = self._entries, self._before, self._table, self._numbers
        return found[: LOOPS.take(*kept, key, n, column, low, high, found)]

    def sweep(self, key: int, column: ColumnArray, low: int, high: int) -> None:
        """Drop the entries of a bucket that do not count, or stand in it a second time; O(n log n)."""
        LOOPS.sweep(self._entries, self._before, self._table, self._numbers, key, column, low, high)

    def sweep_some(
        self, keys: IndexArray, column: ColumnArray, lows: IndexArray, highs: IndexArray, largest: int, most: int
    ) -> tuple[int, int]:
        """Do the same for some buckets, as `bucket_loops.sweep_some`; return for how many keys, of how many entries.

        O(keys and entries).
        """
        kept = self._entries, self._before, self._table, self._numbers
        n_keys, n_entries = LOOPS.sweep_some(*kept, keys, column, lows, highs, largest, most)
        return n_keys, n_entries

    def look(self, key: int, column: ColumnArray, low: int, high: int) -> IndexArray:
        """Return the same of a whole bucket, and leave it as it is; O(its entries)."""
        found = np.empty(self.size(key), np.int64)
        return found[: LOOPS.peek(self._entries, self._before, self._table, key, column, low, high, found)]

    def look_at_some(
        self, keys: list[int], column: ColumnArray, lows: npt.NDArray[Any], highs: npt.NDArray[Any]
    ) -> IndexArray:
        """Do the same for some buckets, with `low` and `high` for each of them, in one call; O(their entries)."""
        wanted, kept = np.array(keys), (self._entries, self._before, self._table)
        found = np.empty(LOOPS.size_of(self._table, wanted), np.int64)
        return found[: LOOPS.peek_some(*kept, wanted, column, lows, highs, found)]

    def discard(self, key: int) -> None:
        """Take out a bucket; O(1)."""
        LOOPS.discard(self._table, self._numbers, key)

    def leave(self, keys: npt.NDArray[np.int64]) -> None:
        """Count one page less in the bucket of each key; O(n)."""
        LOOPS.leave(self._table, keys)

    def leave_one(self, key: int) -> None:
        """Count one page less in a bucket; O(1)."""
        self._table[LOOPS.find(self._table, key), LIVING] -= 1

    def living(self, key: int) -> int:
        """Return how many entries were added to a bucket, less those that left; O(1)."""
        return self._of(key, LIVING)

    def set_living(self, key: int, n: int) -> None:
        """Set what `living` returns; O(1)."""
        self._table[LOOPS.find(self._table, key), LIVING] = n

    def crowded(self, above: int, highest: int, least: int) -> list[tuple[int, int]]:
        """Return (key, `living`) of buckets above a key, up to the highest, with at least so many living pages.

        O(buckets), or O(keys) where these are fewer.
        """
        keys, living = np.empty((2, min(max(highest - above, 0), len(self._table))), np.int64)
        n = LOOPS.crowded(self._table, above, highest, least, keys, living)
        return list(zip(keys[:n].tolist(), living[:n].tolist(), strict=True))

    def wasteful(self, share: float) -> IndexArray:
        """Return the keys of buckets with more than a share of dead entries, those with the greatest share first.

        O(buckets), and O(log n) for each that is returned.
        """
        return _wasteful(self._table[:, KEY], self._table[:, LIVING], self._table[:, COUNT], share)
