"""Count columns: how often something has happened to each page; most of it seldom, so that two bytes do."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.growing import grown, zeros

__all__ = ["CountColumn"]

CountArray = npt.NDArray[np.uint32]

_BITS = 16
_LOW = 2**_BITS - 1


class CountColumn:
    """Numbers from 0 to 4,294,967,295, one per page: 2 bytes each, and 2 more once any has reached 65,536.

    Read by row numbers, a mask or a slice, and set by them, as an array of uint32 would be; all O(1) a page.

    Attributes
    ----------
    low : ndarray of uint16
        The numbers modulo 65,536.
    high : ndarray of uint16
        How often they have gone through these; empty as long as none has.

    Examples
    --------
    >>> n_crawls = CountColumn()
    >>> n_crawls.lengthen(3)
    >>> n_crawls[[0, 2]] = 7, 65_535
    >>> n_crawls.add_one(2)
    >>> n_crawls[:], n_crawls.item(2)
    (array([    7,     0, 65536], dtype=uint32), 65536)
    """

    def __init__(self) -> None:
        self.low: npt.NDArray[np.uint16] = np.empty(0, np.uint16)
        self.high: npt.NDArray[np.uint16] = np.empty(0, np.uint16)

    def __len__(self) -> int:
        return self.low.size

    def __getitem__(self, pages: Any) -> Any:
        numbers = self.low[pages].astype(np.uint32)
        if self.high.size:
            numbers |= self.high[pages].astype(np.uint32) << np.uint32(_BITS)
        return numbers

    def __setitem__(self, pages: Any, numbers: npt.ArrayLike) -> None:
        given = np.asarray(numbers).astype(np.uint32)
        if not self.high.size and bool((given > _LOW).any()):
            self.high = zeros((self.low.size,), np.uint16)
        self.low[pages] = given & np.uint32(_LOW)
        if self.high.size:
            self.high[pages] = given >> np.uint32(_BITS)

    def item(self, page: int) -> int:
        """Return the number of one page."""
        number: int = self.low.item(page)
        return number | self.high.item(page) << _BITS if self.high.size else number

    def add_one(self, page: int) -> None:
        """Count once more for one page."""
        number = self.low.item(page)
        if number < _LOW:
            self.low[page] = number + 1
        else:
            self[page] = self.item(page) + 1

    def lengthen(self, size: int) -> None:
        """Make room for so many pages; the new ones have 0, which takes no memory (`crawlsched.growing`)."""
        self.low = grown(self.low, size)
        if self.high.size:
            self.high = grown(self.high, size)

    def everything(self, name: str, n: int) -> dict[str, npt.NDArray[np.uint16]]:
        """Return, of the first so many pages, what `restore` needs; views, by names that begin with the given one."""
        return {name: self.low[:n]} | ({f"{name}.high": self.high[:n]} if self.high.size else {})

    def restore(self, name: str, columns: dict[str, npt.NDArray[Any]]) -> None:
        """Become what `everything` was taken of; the arrays are kept."""
        self.low, self.high = columns[name], columns.get(f"{name}.high", np.empty(0, np.uint16))
