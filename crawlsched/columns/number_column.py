"""Number columns: whole numbers of all pages that are small in most collections, so that two bytes do for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.growing import grown, zeros

__all__ = ["NumberColumn"]

Halves = npt.NDArray[np.uint16]

_BITS = 16
_LOW = 2**_BITS - 1


class NumberColumn:
    """Whole numbers of pages: 2 bytes each, and 2 more once there is one that is 65,536 above the least.

    Read by row numbers, a mask or a slice, and set by them, as an array of numpy would be; all O(1) a page.

    Attributes
    ----------
    low : ndarray of uint16
        How far the numbers are above `empty`, modulo 65,536.
    high : ndarray of uint16
        How often they have gone through these; of no page as long as none has.
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
        # Numpy's own, where that is all there is to it: some are asked for several times in a slot of ten microseconds.
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

    def set_one(self, page: int, number: int) -> None:
        """Set the number of one page."""
        above = number - self._empty
        if above <= _LOW and not self.high.size:
            self.low[page] = above
        else:
            self[page] = number

    def count_one(self, page: int) -> None:
        """Add 1 to the number of one page."""
        above = self.low.item(page) + 1
        if above <= _LOW and not self.high.size:
            self.low[page] = above
        else:
            self[page] = self._item(page) + 1

    def lengthen(self, size: int) -> None:
        """Make room for this number of pages; the new ones have `empty`, which takes no memory (`columns.growing`)."""
        self._set_halves(grown(self.low, size), grown(self.high, size) if self.high.size else self.high)
