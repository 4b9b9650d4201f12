"""Page numbers: what names a page in the database, by its row in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crawlsched.columns.growing import grown

__all__ = ["PageNumbers"]


class PageNumbers:
    """The numbers of pages in the database; 8 bytes a page.

    A number is given once and never changes, in whatever process, shard or copy of the database the page is. Its row in
    memory is that of one run.

    Examples
    --------
    >>> numbers = PageNumbers()
    >>> numbers.put(np.array([0, 1, 2]), np.array([3, 70, 71]))
    >>> numbers.of([2, 0])
    array([71,  3])
    >>> numbers.rows(np.array([70, 3, 5]))
    array([ 1,  0, -1])
    """

    def __init__(self) -> None:
        self._numbers = np.empty(0, np.int64)
        self._n = 0

    def reserve(self, n_pages: int) -> None:
        """Make room for so many pages."""
        if n_pages > self._numbers.size:
            self._numbers = grown(self._numbers, max(n_pages, self._n + self._n // 4))

    def put(self, rows: NDArray[np.integer], numbers: NDArray[np.integer]) -> None:
        """Say which numbers pages have that stand behind all others; they ascend."""
        if rows.size:
            self._n = int(rows[-1]) + 1
            self.reserve(self._n)
            self._numbers[rows] = numbers

    def of(self, pages: NDArray[np.integer] | list[int]) -> NDArray[np.int64]:
        """Return the numbers of pages."""
        found: NDArray[np.int64] = self._numbers[pages]
        return found

    def item(self, page: int) -> int:
        """Return the number of one page."""
        return self._numbers.item(page)

    def rows(self, numbers: NDArray[np.integer]) -> NDArray[np.intp]:
        """Return the pages that have these numbers; -1: none has. O(log n) each."""
        known = self._numbers[: self._n]
        at = np.minimum(known.searchsorted(numbers), max(self._n - 1, 0))
        return np.where(known[at] == numbers, at, -1) if self._n else np.full(len(numbers), -1)
