"""The page index: which page has this request fingerprint?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.columns.growing import inserted, let_go, zeros

__all__ = ["PageIndex"]

# A segment with more pages than this is split in two: a page more copies the arrays of one segment, some microseconds.
_MOST_IN_SEGMENT = 4096
# Leading bits of a key which the segment stands for, so that they need not be kept: at least, and at most (of 64, 48
# are kept).
_LEAST_IMPLIED, _MOST_IMPLIED = 8, 16
_KEPT = 48
# Loaded keys are first divided by their first byte.
_PARTS_BITS = 8
_N_PARTS = 1 << _PARTS_BITS


class _Segment(NamedTuple):
    """Pages whose keys begin with the same bits, in the order of their keys."""

    bits: int  # how many leading bits of their keys are the same
    high: NDArray[np.uint32]  # the 48 bits of the key behind the implied ones
    low: NDArray[np.uint16]
    pages: NDArray[np.int32]  # the pages

    def part(self, bits: int, rows: slice) -> _Segment:
        """Return some rows as a segment of their own, which does not keep the memory of the others."""
        return _Segment(bits, self.high[rows].copy(), self.low[rows].copy(), self.pages[rows].copy())


class _Parts:
    """Loaded pages by the first bytes of their keys, as they came; 11 bytes a page: the rest of the key, and the page.

    There is room from the start for an even share and four standard deviations more; what finds none is kept aside.
    """

    def __init__(self, n_pages: int) -> None:
        share = n_pages / _N_PARTS
        room = int(share + 4.0 * math.sqrt(share))
        self._keys, self._pages = zeros((_N_PARTS, room, 7), np.uint8), zeros((_N_PARTS, room), np.int32)
        self._sizes = np.zeros(_N_PARTS, np.intp)
        self._aside: list[tuple[NDArray[np.uint64], NDArray[np.integer]]] = []

    def add(self, keys: NDArray[np.uint64], pages: NDArray[np.integer]) -> None:
        order = np.argsort(keys)
        keys, pages = keys[order], pages[order]
        part = (keys >> np.uint64(64 - _PARTS_BITS)).astype(np.intp)
        row = self._sizes[part] + np.arange(part.size) - np.searchsorted(part, part)
        fits = row < self._pages.shape[1]
        self._sizes += np.bincount(part[fits], minlength=_N_PARTS)
        if not fits.all():
            self._aside.append((keys[~fits], pages[~fits]))
            keys, pages, part, row = keys[fits], pages[fits], part[fits], row[fits]
        self._keys[part, row] = keys.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :7]
        self._pages[part, row] = pages

    def each(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.int32]]]:
        """Give the keys and pages of one part after the other, and their memory back."""
        for part, size in enumerate(self._sizes.tolist()):
            found = np.full((size, 8), part, np.uint8)
            found[:, :7] = self._keys[part, :size]
            keys, pages = [found.view("<u8").ravel().astype(np.uint64, copy=False)], [self._pages[part, :size]]
            for more, of_pages in self._aside:
                chosen = more >> np.uint64(64 - _PARTS_BITS) == part
                keys.append(more[chosen])
                pages.append(of_pages[chosen].astype(np.int32))
            yield np.concatenate(keys), np.concatenate(pages)
            let_go(self._keys, part + 1)
            let_go(self._pages, part + 1)


class PageIndex:
    """Find a page by its request fingerprint, in 10 bytes a page.

    The first 8 bytes of the fingerprint (a SHA-1) are the key. Of them 48 bits are kept behind those that the place of
    a page in the index implies, 12 among ten million pages: the chance that any two of these share theirs is 4 in
    100,000. An index that was empty at first implies 8 until the next start, and then it is 7 in 10,000.

    Lookups cost O(log n), from other threads, too, while pages are added. `add` costs O(log n) and copies some ten
    thousand bytes; nothing goes through all pages but the first `len` after some were forgotten.

    Examples
    --------
    >>> index = PageIndex()
    >>> index.add(b"fingerprint-of-page-0", 0)
    >>> index.page(b"fingerprint-of-page-0"), index.page(b"another fingerprint  ")
    (0, -1)
    """

    def __init__(self) -> None:
        self._begin(_LEAST_IMPLIED)

    def _begin(self, implied: int) -> None:
        self._implied = implied
        # How many bits choose a segment, and the segments by these: together, for readers in other threads.
        self._segments: tuple[int, list[_Segment]] = implied, [_EMPTY._replace(bits=implied)] * (1 << implied)
        # Pages that were forgotten, ascending: they stay where they are until their fingerprints come again.
        self._gone: NDArray[np.int32] = np.empty(0, np.int32)
        # How many there are; None: they have to be counted, which goes through all pages.
        self._n: int | None = None

    def __len__(self) -> int:
        if self._n is None:
            self._n = sum(int(np.count_nonzero(~self._is_gone(segment.pages))) for segment in self._distinct())
        return self._n

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(sum(column.nbytes for column in segment[1:]) for segment in self._distinct())

    @staticmethod
    def keys(fingerprints: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Return the keys of many fingerprints (uint8, shape (n, 8 or more)), as `load` takes them."""
        return np.ascontiguousarray(fingerprints[:, :8]).view(">u8").ravel().astype(np.uint64)

    # -- all pages

    def load(self, blocks: Iterable[tuple[NDArray[np.uint64], NDArray[np.integer]]], n_pages: int) -> None:
        """Become the index of these pages and no others; O(n log n) for about `n_pages`.

        `blocks` are pairs of `keys` and pages, all distinct.
        """
        parts = _Parts(n_pages)
        for keys, pages in blocks:
            parts.add(keys, pages)
        segments = n_pages // _MOST_IN_SEGMENT
        self._begin(min(max(segments.bit_length(), _LEAST_IMPLIED), _MOST_IMPLIED))
        built: list[_Segment] = []
        for part, (keys, pages) in enumerate(parts.each()):
            built += self._built(keys, pages, part)
        self._segments = self._implied, built

    def _built(self, keys: NDArray[np.uint64], pages: NDArray[np.int32], part: int) -> list[_Segment]:
        """Return the segments of a part."""
        order = np.argsort(keys, kind="stable")
        keys, pages = keys[order], pages[order]
        per_part = self._implied - _PARTS_BITS
        heads = np.arange(part << per_part, (part + 1) << per_part, dtype=np.uint64) << np.uint64(64 - self._implied)
        begins = [*np.searchsorted(keys, heads).tolist(), keys.size]
        kept = keys >> np.uint64(64 - _KEPT - self._implied)
        high, low = (kept >> np.uint64(16)).astype(np.uint32), kept.astype(np.uint16)
        whole = _Segment(self._implied, high, low, pages)
        return [whole.part(self._implied, slice(begin, end)) for begin, end in pairwise(begins)]

    # -- single pages

    def add(self, fingerprint: bytes, page: int) -> None:
        """Add one page, or give a known fingerprint to another page."""
        number, segment, high, low = self._place(fingerprint)
        row = _row(segment, high, low)
        if row >= 0:
            if self._n is not None and self._is_gone(segment.pages[row : row + 1]).item():
                self._n += 1
            segment.pages[row] = page
            return
        row = int(segment.high.searchsorted(high))
        while row < segment.high.size and segment.high.item(row) == high and segment.low.item(row) < low:
            row += 1
        longer = segment._replace(
            high=inserted(segment.high, row, high),
            low=inserted(segment.low, row, low),
            pages=inserted(segment.pages, row, page),
        )
        self._put(number, longer)
        if self._n is not None:
            self._n += 1

    def add_many(self, keys: NDArray[np.uint64], pages: NDArray[np.integer]) -> None:
        """Add pages by their `keys`, or give known keys to them; O(log n) a page, and O(1) a page that is there."""
        order = np.argsort(keys)
        keys, rows = keys[order], pages[order].astype(np.int32)
        begin = 0
        while begin < keys.size:
            bits, segments = self._segments
            number = int(keys[begin]) >> 64 - bits
            segment = segments[number]
            # The segment may stand for fewer bits than choose among them.
            last = ((number >> bits - segment.bits) + 1 << 64 - segment.bits) - 1
            # So few at once that halves are small enough.
            end = min(int(keys.searchsorted(np.uint64(last), side="right")), begin + _MOST_IN_SEGMENT // 2)
            self._put_all(number, segment, keys[begin:end], rows[begin:end])
            begin = end
        self._n = None

    def _put_all(self, number: int, segment: _Segment, keys: NDArray[np.uint64], pages: NDArray[np.int32]) -> None:
        """Put pages, ascending by their keys, into a segment; it is split as often as need be."""
        new = keys >> np.uint64(64 - _KEPT - self._implied) & np.uint64((1 << _KEPT) - 1)
        known = segment.high.astype(np.uint64) << np.uint64(16) | segment.low
        kept, first = np.unique(np.concatenate([new, known]), return_index=True)
        of_pages = np.concatenate([pages, segment.pages])[first]
        high, low = (kept >> np.uint64(16)).astype(np.uint32), kept.astype(np.uint16)
        self._put(number, segment._replace(high=high, low=low, pages=of_pages))

    def discard(self, pages: NDArray[np.integer]) -> None:
        """Forget the fingerprints of some pages, whose rows do not come again before `purged`; O(pages discarded)."""
        self._gone = np.sort(np.concatenate([self._gone, pages.astype(np.int32)]))
        self._n = None

    def purged(self) -> Iterator[None]:
        """Take what was discarded by now out of memory, step by step; its rows may come again after that. O(n)."""
        gone, key = self._gone, 0
        while key < 1 << 64:
            bits, segments = self._segments
            number = key >> 64 - bits
            segment = segments[number]
            stays = ~self._is_gone(segment.pages)
            if not stays.all():
                rows = np.flatnonzero(stays)
                kept = segment._replace(high=segment.high[rows], low=segment.low[rows], pages=segment.pages[rows])
                self._put(number, kept)
            key = (key >> 64 - segment.bits) + 1 << 64 - segment.bits
            yield
        self._gone = np.setdiff1d(self._gone, gone)

    def page(self, fingerprint: bytes) -> int:
        """Return the page with this request fingerprint, or -1."""
        _, segment, high, low = self._place(fingerprint)
        row = _row(segment, high, low)
        if row < 0:
            return -1
        page = segment.pages.item(row)
        return -1 if self._gone.size and self._is_gone(segment.pages[row : row + 1]).item() else page

    def _place(self, fingerprint: bytes) -> tuple[int, _Segment, int, int]:
        """Return the number of a segment, it, and what it keeps of a key."""
        key = int.from_bytes(fingerprint[:8], "big")
        bits, segments = self._segments
        number = key >> 64 - bits
        kept = key >> 64 - _KEPT - self._implied
        return number, segments[number], kept >> 16 & 0xFFFFFFFF, kept & 0xFFFF

    def _put(self, number: int, segment: _Segment) -> None:
        """Put a segment in the place of the one that has this number, or its halves if it is too large."""
        depth, segments = self._segments
        if segment.pages.size > _MOST_IN_SEGMENT and segment.bits < self._implied + 32:
            if segment.bits == depth:
                depth, number, segments = depth + 1, 2 * number, [each for each in segments for _ in (0, 1)]
            bit = np.uint32(1 << 31 - (segment.bits - self._implied))
            cut = int(np.count_nonzero(segment.high & bit == 0))
            halves = [segment.part(segment.bits + 1, rows) for rows in (slice(0, cut), slice(cut, None))]
        else:
            halves = [segment]
        # A segment with fewer bits than choose among them stands in several places.
        n = 1 << depth - segment.bits
        begin = number // n * n
        for half, each in enumerate(halves):
            share = n // len(halves)
            segments[begin + half * share : begin + (half + 1) * share] = [each] * share
        self._segments = depth, segments

    def _distinct(self) -> list[_Segment]:
        depth, segments = self._segments
        found, number = [], 0
        while number < len(segments):
            found.append(segments[number])
            number += 1 << depth - segments[number].bits
        return found

    def _is_gone(self, pages: NDArray[np.int32]) -> NDArray[np.bool_]:
        at = np.minimum(self._gone.searchsorted(pages), max(self._gone.size - 1, 0))
        return self._gone[at] == pages if self._gone.size else np.zeros(pages.size, bool)


_EMPTY = _Segment(0, np.empty(0, np.uint32), np.empty(0, np.uint16), np.empty(0, np.int32))


def _row(segment: _Segment, high: int, low: int) -> int:
    row = int(segment.high.searchsorted(np.uint32(high)))
    while row < segment.high.size and segment.high.item(row) == high:
        if segment.low.item(row) == low:
            return row
        row += 1
    return -1
