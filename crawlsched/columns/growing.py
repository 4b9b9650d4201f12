"""Growing: columns that become longer in place, so that one more page among ten million is added without a copy."""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["NumberColumn", "grown", "inserted", "zeros"]

# Columns with fewer bytes are copied when they grow, which takes a tenth of a millisecond.
_LEAST = 2**20
# For each larger column, addresses of at least this number of bytes are reserved. The machine provides the memory at
# the first write, one memory page at a time.
_AHEAD = 2**30
# Columns of this number of bytes or more use the machine's large memory pages, which makes scattered reads a third
# faster. The reserved addresses behind such a column use no large pages, so they take no memory.
_LARGE = 2**24


class _Room(mmap.mmap):
    """Reserved addresses for one column, which uses the first `given` bytes."""

    given = 0

    def give(self, size: int) -> None:
        """Let the column use this number of bytes."""
        self.given = size
        if size >= _LARGE and hasattr(mmap, "MADV_HUGEPAGE"):
            with suppress(OSError):  # the machine has no large pages
                self.madvise(mmap.MADV_HUGEPAGE, 0, size - size % mmap.PAGESIZE)


def zeros(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return what `numpy.zeros` returns. Behind a large array, addresses are reserved for `grown`."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size >= _LEAST and hasattr(mmap, "MAP_PRIVATE"):
        for length in (max(_AHEAD, 2 * size), 2 * size):
            try:
                room = _Room(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            except (OSError, OverflowError):
                continue  # the machine gives no more addresses than it has memory for
            room.give(size)
            return np.ndarray(shape, dtype, buffer=room)
    return np.zeros(shape, dtype)


def grown(column: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return a longer column that begins with the given column; the rest is 0 and takes no memory until it is written.

    Use only the returned column afterwards, since it may share the memory of the given column.

    Examples
    --------
    >>> column = grown(np.arange(3), 5)
    >>> column
    array([0, 1, 2, 0, 0])
    >>> large = grown(column, 1_000_000)
    >>> larger = grown(large, 1_200_000)
    >>> np.shares_memory(large, larger), larger.sum(), larger.size
    (True, np.int64(3), 1200000)
    """
    shape = size, *column.shape[1:]
    n_bytes = math.prod(shape) * column.itemsize
    room = column.base
    # A slice of a column cannot grow in place, since the numbers behind it are not 0.
    if isinstance(room, _Room) and room.given == column.nbytes and n_bytes <= len(room):
        room.give(n_bytes)
        return np.ndarray(shape, column.dtype, buffer=room)
    longer = zeros(shape, column.dtype)
    longer[: column.shape[0]] = column
    return longer


def inserted(column: npt.NDArray[Any], row: int, value: int) -> npt.NDArray[Any]:
    """Return a copy of a short column with a value inserted before a row; `numpy.insert` takes five times as long.

    >>> inserted(np.array([1, 2, 4]), 2, 3)
    array([1, 2, 3, 4])
    """
    longer = np.empty(column.size + 1, column.dtype)
    longer[:row], longer[row], longer[row + 1 :] = column[:row], value, column[row:]
    return longer


Halves = npt.NDArray[np.uint16]

_BITS = np.iinfo(np.uint16).bits
_LOW = np.iinfo(np.uint16).max


class NumberColumn:
    """A whole number for each page: 2 bytes a page, or 4 if any number is 65,536 or more above `empty`.

    Numbers are read and set by row numbers, a mask or a slice, as in a numpy array. Each operation is O(1) a page.

    Attributes
    ----------
    low : ndarray of uint16
        How far the numbers are above `empty`, modulo 65,536.
    high : ndarray of uint16
        How many times 65,536 has to be added to `low`. The array is empty as long as that is 0 for all pages.
    item : callable
        ``item(page)`` returns the number of one page.

    Examples
    --------
    >>> n_crawls = NumberColumn(np.uint32)
    >>> n_crawls.lengthen(3)
    >>> n_crawls[[0, 2]] = 7, 65_535
    >>> n_crawls.count_one(2)
    >>> n_crawls[:], n_crawls.low, n_crawls.high
    (array([    7,     0, 65536], dtype=uint32), array([7, 0, 0], dtype=uint16), array([0, 0, 1], dtype=uint16))
    """

    def __init__(self, dtype: npt.DTypeLike, empty: int = 0) -> None:
        self._dtype = np.dtype(dtype)
        self._empty = empty
        self._set_halves(np.empty(0, np.uint16), np.empty(0, np.uint16))

    def _set_halves(self, low: Halves, high: Halves) -> None:
        self.low, self.high = low, high
        # `item` is called very often, so where possible it is numpy's own, faster method.
        self.item: Callable[[int], int] = self._item if high.size or self._empty else low.item

    def __len__(self) -> int:
        return self.low.size

    def __getitem__(self, pages: Any) -> Any:
        numbers = self.low[pages].astype(self._dtype)
        if self.high.size:
            numbers |= self.high[pages].astype(self._dtype) << self._dtype.type(_BITS)
        if self._empty:
            numbers += self._dtype.type(self._empty)
        return numbers

    def __setitem__(self, pages: Any, numbers: npt.ArrayLike) -> None:
        above = np.asarray(numbers, np.int64) - self._empty
        if not self.high.size and bool((above > _LOW).any()):
            self._set_halves(self.low, zeros((self.low.size,), np.uint16))
        self.low[pages] = above & _LOW
        if self.high.size:
            self.high[pages] = above >> _BITS

    def _item(self, page: int) -> int:
        above: int = self.low.item(page)
        if self.high.size:
            above |= self.high.item(page) << _BITS
        return above + self._empty

    def count_one(self, page: int) -> None:
        """Add 1 to the number of one page."""
        above = self.low.item(page) + 1
        if above <= _LOW and not self.high.size:
            self.low[page] = above
        else:
            self[page] = self._item(page) + 1

    def lengthen(self, size: int) -> None:
        """Make room for this number of pages. New pages have the number `empty`, which takes no memory."""
        self._set_halves(grown(self.low, size), grown(self.high, size) if self.high.size else self.high)
