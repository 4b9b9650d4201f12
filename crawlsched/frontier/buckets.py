"""Buckets of page numbers whose entries die in place, and are swept out a few at a time."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from crawlsched.pages import distinct

__all__ = ["Buckets"]

IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

# Buckets are swept when more than a quarter of all entries are dead, five times as fast as entries come in: so at most
# two fifths of them are ever dead, and no call does more than a few times its own work.
_LEAST_DEAD = 1024
_DEAD_SHARE = 0.25
_PACE = 5
# A bucket with no more entries than this is swept whole, so that pages which stand in it twice are seen.
_WHOLE = 8192
# The calls of numpy for a part take as long as so many entries do.
_FEW = 64


class Buckets:
    """Arrays of page numbers by an integer key, 4 bytes an entry.

    Parameters
    ----------
    alive : callable
        ``alive(key, pages)`` tells which entries of a bucket still count.

    Attributes
    ----------
    entries : int
        Entries in all buckets, dead ones included.

    Notes
    -----
    Taking a page out of a bucket is nothing but a change of what `alive` says: O(1), and no search. Dead entries are
    swept out bucket by bucket as new ones come in. A page that left and came back may stand in its bucket twice.
    """

    def __init__(self, alive: Callable[[int, IndexArray], BoolArray]) -> None:
        self.entries = 0
        self._alive = alive
        self._buckets: dict[int, array[int]] = {}
        # A sweep goes through the keys there were when it began; of a large bucket the rest is kept aside meanwhile.
        self._to_sweep: list[int] = []
        self._key: int | None = None
        self._rest: npt.NDArray[np.uint32] = np.empty(0, np.uint32)
        self._due = 0

    def __contains__(self, key: int) -> bool:
        return key in self._buckets

    def __len__(self) -> int:
        return len(self._buckets)

    def __iter__(self) -> Iterator[int]:
        """Go through the keys of all buckets."""
        return iter(self._buckets)

    def add_one(self, key: int, page: int) -> bool:
        """Put one page into a bucket; return whether the bucket is new. O(1)."""
        self.entries += 1
        self._due += _PACE
        bucket = self._buckets.get(key)
        if bucket is not None:
            bucket.append(page)
            return False
        self._buckets[key] = array("I", (page,))
        return True

    def add(self, key: int, pages: npt.NDArray[np.uint32]) -> bool:
        """Put pages into a bucket; return whether the bucket is new. O(n)."""
        self.entries += pages.size
        self._due += _PACE * pages.size
        bucket = self._buckets.get(key)
        if bucket is not None:
            bucket.frombytes(pages.tobytes())
            return False
        self._buckets[key] = array("I", pages.tobytes())
        return True

    def pop(self, key: int) -> IndexArray:
        """Take a bucket out; return its distinct living pages, ascending. O(n log n)."""
        pages = self._take(key)
        return distinct(pages[self._alive(key, pages)])

    def pop_some(self, key: int, n: int) -> IndexArray:
        """Take the last `n` entries out of a bucket; return those alive, not all of them distinct. O(n)."""
        self._finish(key)
        bucket = self._buckets[key]
        pages = np.frombuffer(bucket, np.uint32)[-n:].astype(np.intp)
        del bucket[-n:]
        self.entries -= pages.size
        return pages[self._alive(key, pages)]

    def size(self, key: int) -> int:
        """Return how many entries a bucket has; O(1)."""
        return len(self._buckets[key]) + (self._rest.size if key == self._key else 0)

    def pages(self, key: int) -> IndexArray:
        """Return the living pages of a bucket, not all of them distinct; O(n)."""
        self._finish(key)
        pages = np.frombuffer(self._buckets[key], np.uint32).astype(np.intp)
        return pages[self._alive(key, pages)]

    def discard(self, key: int) -> None:
        """Take out a bucket that has no living pages; O(1)."""
        self._take(key)

    def _take(self, key: int) -> IndexArray:
        self._finish(key)
        pages = np.frombuffer(self._buckets.pop(key), np.uint32).astype(np.intp)
        self.entries -= pages.size
        return pages

    def _finish(self, key: int) -> None:
        if key == self._key:
            self._buckets[key].frombytes(self._rest.tobytes())
            self._key, self._rest = None, self._rest[:0]

    # -- sweeping

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
        while self._due > 0:
            if self._key is None and not self._begin_next():
                return
            self._sweep_part()

    def _begin_next(self) -> bool:
        if not self._to_sweep:
            self._to_sweep = list(self._buckets)
        while self._to_sweep:
            key = self._to_sweep.pop()
            bucket = self._buckets.get(key)
            if bucket is not None:
                self._key, self._rest = key, np.frombuffer(bucket, np.uint32)
                self._buckets[key] = array("I")
                return True
        return False

    def _sweep_part(self) -> None:
        key = self._key
        assert key is not None
        part = self._rest[:_WHOLE]
        self._rest = self._rest[_WHOLE:]
        pages = part.astype(np.intp)
        living = distinct(pages[self._alive(key, pages)]).astype(np.uint32)
        self._buckets[key].frombytes(living.tobytes())
        self.entries -= part.size - living.size
        self._due -= max(part.size, _FEW)
        if not self._rest.size:
            self._key = None

    def check(self) -> None:
        """Raise `AssertionError` unless the count of entries agrees; O(buckets)."""
        assert self.entries == sum(map(len, self._buckets.values())) + self._rest.size
        assert self._key is None or self._key in self._buckets
