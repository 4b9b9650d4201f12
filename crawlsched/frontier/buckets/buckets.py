"""Buckets of page numbers whose entries die in place, and are swept out a few at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import ColumnArray, IndexArray
from crawlsched.frontier.buckets.entries import LOOPS, CompactEntries, PlainEntries
from crawlsched.pages import distinct

__all__ = ["Buckets"]


# Buckets are swept when more than a quarter of all entries are dead, five times as fast as entries come in: so at most
# two fifths of them are ever dead, and no call does more than a few times its own work.
_LEAST_DEAD = 1024
_DEAD_SHARE = 0.25
_PACE = 5
# A bucket with no more entries than this is swept whole, so that pages which stand in it twice are seen.
_WHOLE = 8192
# Compiled code sweeps one of no more than this in one call; numpy sorts larger ones faster.
_SMALL = 256
# The calls of numpy for a part, or one of compiled code for many buckets, take as long as so many entries do.
_FEW = 64
# Compiled, so many buckets at most are swept in one call, and none before that pays.
_AT_ONCE = 256
# Where it is known how many live in each bucket, those are swept in which more than this share of the entries is dead:
# what is looked at is then mostly what is dropped.
_WASTEFUL_SHARE = 1 / 3


class Buckets:
    """Page numbers by an integer key, 4 bytes an entry.

    Parameters
    ----------
    column : callable
        ``column()`` returns a number for each page, uint32.
    range_of : callable
        ``range_of(key)`` returns the least and the greatest of these numbers for which an entry of a bucket counts; of
        an array of keys two arrays.
    counted : bool, default False
        Whether `leave` is called for each page that leaves, so that it is known where dead entries are.

    Notes
    -----
    Taking a page out of a bucket is nothing but a change of its number: O(1), and no search. Dead entries are swept out
    bucket by bucket as new ones come in. A page that left and came back may stand in its bucket twice. While compiled
    code is in use the entries stand in arrays that it can walk.
    """

    def __init__(
        self, column: Callable[[], ColumnArray], range_of: Callable[[Any], tuple[Any, Any]], counted: bool = False
    ) -> None:
        self._column = column
        self._range_of = range_of
        self._counted = counted
        self._kept: PlainEntries | CompactEntries = CompactEntries() if LOOPS.compiled else PlainEntries()
        # A sweep goes through the keys there were when it began; what it has kept of a large bucket stands aside.
        self._to_sweep: IndexArray = np.empty(0, np.intp)
        self._key: int | None = None
        self._aside: list[IndexArray] = []
        self._n_aside = 0
        self._due = 0

    @property
    def entries(self) -> int:
        """Entries in all buckets, dead ones included; O(1)."""
        entries: int = self._kept.entries
        return entries + self._n_aside

    def __contains__(self, key: int) -> bool:
        return key in self._kept

    def __len__(self) -> int:
        return len(self._kept.all_keys())

    def __iter__(self) -> Iterator[int]:
        """Go through the keys of all buckets."""
        return iter(self._kept.all_keys())

    def adapt(self) -> None:
        """Keep the entries as suits the code in use; O(1), or O(n) when that has changed."""
        if isinstance(self._kept, CompactEntries) == LOOPS.compiled:
            return
        self._finish()
        before = self._kept
        self._kept = CompactEntries() if LOOPS.compiled else PlainEntries()
        column = self._column()
        for key in before.all_keys():
            pages, living = before.look(key, column, 0, 2**32 - 1), before.living(key)
            self._kept.add(np.full(pages.size, key), pages)
            if not pages.size:  # a bucket may be empty for a while
                self._kept.add_one(key, 0)
                self._kept.take(key, 1, column, 0, 0)
            self._kept.set_living(key, living)
            before.take(key, pages.size, column, 0, 0)

    def add_one(self, key: int, page: int) -> bool:
        """Put one page into a bucket; return whether the bucket is new. O(1)."""
        self._due += _PACE
        new: bool = self._kept.add_one(key, page)
        return new

    def add(self, keys: npt.NDArray[np.int64], pages: IndexArray) -> list[int]:
        """Put each page into the bucket of its key; return the keys of which there was none. O(n log n)."""
        self._due += _PACE * pages.size
        new: list[int] = self._kept.add(keys, pages)
        return new

    def arrays(self, keys: Iterable[int], n: int, n_new: int | None = None) -> tuple[Any, Any, Any, Any] | None:
        """Return the arrays of `bucket_loops` for compiled code that takes from some buckets, and adds up to `n` pages.

        These come into up to `n_new` new buckets; then `came` is to be told how many they were. None where the entries
        are not kept in such arrays. Amortised O(n).
        """
        if not isinstance(self._kept, CompactEntries):
            return None
        for key in keys:
            self._finish(key)
        return self._kept.arrays(n, n_new)

    def came(self, n: int) -> None:
        """Let so many entries that compiled code has put in be answered by sweeping; O(1)."""
        self._due += _PACE * n

    def living(self, key: int) -> int:
        """Return how many entries of a bucket were added, less those that were said to have left it; O(1)."""
        living: int = self._kept.living(key)
        return living

    def leave(self, keys: npt.NDArray[np.int64]) -> None:
        """Count one page less in the bucket of each key; O(n)."""
        self._kept.leave(keys)

    def leave_one(self, key: int) -> None:
        """Count one page less in the bucket of a key; O(1)."""
        self._kept.leave_one(key)

    def crowded(self, above: int, highest: int, least: int) -> list[tuple[int, int]]:
        """Return (key, `living`) of buckets above a key with at least so many living pages; O(buckets).

        O(keys) where there are fewer between that key and the `highest` one that has living pages.
        """
        found: list[tuple[int, int]] = self._kept.crowded(above, highest, least)
        return found

    def pop(self, key: int) -> IndexArray:
        """Take a bucket out; return its distinct living pages, ascending. O(n log n)."""
        self._finish(key)
        pages = distinct(self._kept.take(key, self._kept.size(key), self._column(), *self._range_of(key)))
        self._kept.discard(key)
        return pages

    def pop_some(self, key: int, n: int) -> IndexArray:
        """Take up to `n` entries out of a bucket; return those alive, not all of them distinct. O(n)."""
        self._finish(key)
        pages: IndexArray = self._kept.take(key, n, self._column(), *self._range_of(key))
        return pages

    def top(self, key: int, n: int) -> IndexArray:
        """Return up to `n` distinct living pages of a bucket, those that came last; amortised O(n)."""
        self._finish(key)
        found, more = np.empty(0, np.intp), n
        while found.size < n and self._kept.size(key):
            taken = self._kept.take(key, more, self._column(), *self._range_of(key))
            found = distinct(np.concatenate([taken, found]))
            more *= 2
        # The dead among them are gone now, and they themselves are the last again.
        self._kept.add_to(key, found)
        return found[:n]

    def size(self, key: int) -> int:
        """Return how many entries a bucket has, 0 if there is none; O(1)."""
        size: int = self._kept.size(key)
        return size + (self._n_aside if key == self._key else 0)

    def pages(self, key: int) -> IndexArray:
        """Return the living pages of a bucket, not all of them distinct; O(n)."""
        self._finish(key)
        pages: IndexArray = self._kept.look(key, self._column(), *self._range_of(key))
        return pages

    def pages_of(self, keys: list[int]) -> IndexArray:
        """Return the living pages of some buckets, not all of them distinct; O(n)."""
        for key in keys:
            self._finish(key)
        pages: IndexArray = self._kept.look_at_some(keys, self._column(), *self._range_of(np.array(keys)))
        return pages

    def discard(self, key: int) -> None:
        """Take out a bucket that has no living pages; O(n)."""
        self._finish(key)
        self._kept.take(key, self._kept.size(key), self._column(), *self._range_of(key))
        self._kept.discard(key)

    # -- sweeping

    def _finish(self, key: int | None = None) -> None:
        """Put back what a sweep keeps aside of a bucket, if it is this one."""
        if self._key is not None and key in (self._key, None):
            if self._aside:
                self._kept.add_to(self._key, np.concatenate(self._aside))
            self._key, self._aside, self._n_aside = None, [], 0

    def sweep(self, living: int) -> None:
        """Go on sweeping dead entries out, if there are many; amortised O(1) for each entry that came in.

        Parameters
        ----------
        living : int
            How many pages there are in all buckets.
        """
        if self.entries <= (1 + _DEAD_SHARE) * living + _LEAST_DEAD:
            self._due = min(self._due, 0)
            return
        if isinstance(self._kept, CompactEntries) and self._due < _AT_ONCE:
            return
        while self._due > 0:
            if self._key is None and not self._sweep_small() and not self._begin_next():
                return
            if self._key is not None:
                self._sweep_part()

    def _sweep_small(self) -> bool:
        """Sweep the next buckets as long as they are small, in one compiled call; return whether there were any."""
        if not isinstance(self._kept, CompactEntries):
            return False
        if not self._to_sweep.size:
            self._to_sweep = self._keys_to_sweep()
        keys = self._to_sweep[:_AT_ONCE]
        n_keys, n_entries = self._kept.sweep_some(keys, self._column(), *self._range_of(keys), _SMALL, self._due)
        self._to_sweep = self._to_sweep[n_keys:]
        self._due -= n_entries + _FEW
        return n_keys > 0

    def _begin_next(self) -> bool:
        if not self._to_sweep.size:
            self._to_sweep = self._keys_to_sweep()
        while self._to_sweep.size:
            key, self._to_sweep = self._to_sweep.item(0), self._to_sweep[1:]
            if key in self._kept:
                self._key = key
                return True
        return False

    def _keys_to_sweep(self) -> IndexArray:
        if not self._counted:
            return np.array(self._kept.all_keys(), np.intp)
        # Where there is no bucket that is worth it, the dead are spread over all of them.
        keys: IndexArray = self._kept.wasteful(_WASTEFUL_SHARE)
        return keys if keys.size else self._kept.wasteful(0.0)

    def _sweep_part(self) -> None:
        key = self._key
        assert key is not None
        n = self._kept.size(key)
        if n <= (_SMALL if isinstance(self._kept, CompactEntries) else _WHOLE) and not self._aside:
            self._kept.sweep(key, self._column(), *self._range_of(key))
            self._key = None
            self._due -= max(n, _FEW)
            return
        n = min(n, _WHOLE)
        if n:
            pages = distinct(self._kept.take(key, n, self._column(), *self._range_of(key)))
            self._aside.append(pages)
            self._n_aside += pages.size
        self._due -= max(n, _FEW)
        if not self._kept.size(key):
            self._finish()

    def check(self) -> None:
        """Raise `AssertionError` unless the count of entries agrees; O(buckets)."""
        assert self._kept.entries == sum(self._kept.size(key) for key in self._kept.all_keys())
        assert self._n_aside == sum(pages.size for pages in self._aside)
        assert self._key is None or self._key in self._kept
