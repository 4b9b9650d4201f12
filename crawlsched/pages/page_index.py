"""The page index, which finds a page by its request fingerprint."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from crawlsched.columns.growing import inserted

__all__ = ["PageIndex"]

# A segment has the pages whose keys begin with the same bits: the keys, ascending, and the page of each key.
_Segment = tuple[NDArray[np.uint64], NDArray[np.int32]]


class PageIndex:
    """Finds a page by its request fingerprint, with 12 bytes for each page.

    The first 8 bytes of the fingerprint (a SHA-1) are the key. Lookups take O(log n), and other threads can make them
    while pages are added. `add` takes O(log n) and copies the arrays of one of 1,024 segments. After pages were
    forgotten, or added by `add_many`, the next `len` goes through all pages.

    Examples
    --------
    >>> index = PageIndex()
    >>> index.add(b"fingerprint-of-page-0", 0)
    >>> index.page(b"fingerprint-of-page-0"), index.page(b"another fingerprint  ")
    (0, -1)
    """

    def __init__(self, bits: int = 10) -> None:
        self._segments = [_EMPTY] * (1 << bits)
        self._behind = 64 - bits  # the leading bits of a key choose its segment
        # Pages that were forgotten, ascending. They stay in their segments until `purged`.
        self._gone: NDArray[np.int32] = np.empty(0, np.int32)
        # The number of pages; None if they have to be counted.
        self._n: int | None = 0

    def __len__(self) -> int:
        if self._n is None:
            self._n = sum(int(np.count_nonzero(~self._is_gone(pages))) for _, pages in self._segments)
        return self._n

    @staticmethod
    def keys(fingerprints: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Return the keys of many fingerprints (uint8, shape (n, 8 or more)) for `add_many`."""
        return np.ascontiguousarray(fingerprints[:, :8]).view(">u8").ravel().astype(np.uint64)

    def add(self, fingerprint: bytes, page: int) -> None:
        """Add a page, or let a known fingerprint lead to this page."""
        key, (keys, pages), row, is_known = self._place(fingerprint)
        if self._n is not None and (not is_known or self._is_gone(pages[row : row + 1]).item()):
            self._n += 1
        if is_known:
            pages[row] = page
        else:
            self._segments[key >> self._behind] = inserted(keys, row, key), inserted(pages, row, page)

    def add_many(self, keys: NDArray[np.uint64], pages: NDArray[np.integer]) -> None:
        """Add pages with distinct `keys`, or let known keys lead to these pages; O(log n) a page."""
        order = np.argsort(keys)
        keys, rows = keys[order], pages[order].astype(np.int32)
        begins = np.arange(len(self._segments), dtype=np.uint64) << np.uint64(self._behind)
        for number, (begin, end) in enumerate(pairwise([*keys.searchsorted(begins).tolist(), keys.size])):
            if begin < end:
                self._put(number, keys[begin:end], rows[begin:end])
        self._n = None

    def _put(self, number: int, keys: NDArray[np.uint64], pages: NDArray[np.int32]) -> None:
        keys_here, pages_here = self._segments[number]
        at = keys_here.searchsorted(keys)
        known = at < keys_here.size
        known[known] = keys_here[at[known]] == keys[known]
        pages_here[at[known]] = pages[known]
        new, at = ~known, at[~known]
        self._segments[number] = np.insert(keys_here, at, keys[new]), np.insert(pages_here, at, pages[new])

    def discard(self, pages: NDArray[np.integer]) -> None:
        """Forget the fingerprints of pages. Rows must not be added again before `purged`. O(pages discarded)."""
        self._gone = np.sort(np.concatenate([self._gone, pages.astype(np.int32)]))
        self._n = None

    def purged(self) -> Iterator[None]:
        """Free the discarded fingerprints step by step. Then the rows of their pages may be added again. O(n)."""
        gone = self._gone
        for number, (keys, pages) in enumerate(self._segments):
            stays = ~self._is_gone(pages)
            if not stays.all():
                self._segments[number] = keys[stays], pages[stays]
            yield
        self._gone = np.setdiff1d(self._gone, gone)

    def page(self, fingerprint: bytes) -> int:
        """Return the page with this request fingerprint, or -1."""
        _, (_, pages), row, is_known = self._place(fingerprint)
        if not is_known or (self._gone.size and self._is_gone(pages[row : row + 1]).item()):
            return -1
        return pages.item(row)

    def _place(self, fingerprint: bytes) -> tuple[int, _Segment, int, bool]:
        """Return a fingerprint's key, the key's segment, its row in the segment, and whether the segment has it."""
        key = int.from_bytes(fingerprint[:8], "big")
        segment = self._segments[key >> self._behind]
        keys, _ = segment
        row = int(keys.searchsorted(np.uint64(key)))
        return key, segment, row, row < keys.size and keys.item(row) == key

    def _is_gone(self, pages: NDArray[np.int32]) -> NDArray[np.bool_]:
        at = np.minimum(self._gone.searchsorted(pages), max(self._gone.size - 1, 0))
        return self._gone[at] == pages if self._gone.size else np.zeros(pages.size, bool)


_EMPTY: _Segment = np.empty(0, np.uint64), np.empty(0, np.int32)
