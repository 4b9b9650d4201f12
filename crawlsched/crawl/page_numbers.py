"""Page numbers: the number of each page in the database, by its row in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from crawlsched.columns.growing import grown

__all__ = ["PageNumbers"]


class PageNumbers:
    """The numbers of pages in the database; 4 bytes a page, or 8 bytes after the first number of 2^31 or more.

    A number is given to one page only, in all processes and copies of the database. A page's row in memory is valid in
    one run only.

    Examples
    --------
    >>> numbers = PageNumbers()
    >>> numbers.put(np.array([0, 1, 2]), np.array([3, 70, 71]))
    >>> numbers.of([2, 0])
    array([71,  3])
    >>> numbers.rows(np.array([70, 3, 5]))
    array([ 1,  0, -1])

    >>> numbers.put(np.array([2]), np.array([2**40])); numbers.of([2, 0])
    array([1099511627776,             3])

    Each shard has numbers of its own, so with several shards `among` has the pages of one shard:

    >>> numbers.put(np.array([3, 1]), np.array([3, 70]))
    >>> numbers.rows(np.array([70, 3]), among=np.array([3, 1]))
    array([1, 3])
    """

    def __init__(self) -> None:
        self._numbers: NDArray[np.integer] = np.empty(0, np.int32)
        self._n = 0

    def reserve(self, n_pages: int) -> None:
        """Make room for more pages."""
        if n_pages > self._numbers.size:
            self._numbers = grown(self._numbers, max(n_pages, self._n + self._n // 4))

    def put(self, rows: NDArray[np.integer], numbers: NDArray[np.integer]) -> None:
        """Set the numbers of pages."""
        if rows.size:
            self._n = max(self._n, int(rows.max()) + 1)
            self.reserve(self._n)
            if int(numbers.max()) > np.iinfo(self._numbers.dtype).max:
                self._numbers = self._numbers.astype(np.int64)
            self._numbers[rows] = numbers

    def of(self, pages: NDArray[np.integer] | list[int]) -> NDArray[np.int64]:
        """Return the numbers of pages."""
        found: NDArray[np.int64] = self._numbers[pages].astype(np.int64)
        return found

    def item(self, page: int) -> int:
        """Return the number of one page."""
        number: int = self._numbers.item(page)
        return number

    def rows(self, numbers: NDArray[np.integer], among: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
        """Return the page with each of these numbers; -1 if there is no such page.

        Parameters
        ----------
        numbers : ndarray of int, shape (n,)
        among : ndarray of int, shape (m,), optional
            The pages to look among, in O(m log m). None: all pages, whose numbers must ascend, in O(n log m).
        """
        if among is None:
            known, order = self._numbers[: self._n], None
        else:
            order = among[np.argsort(self._numbers[among])]
            known = self._numbers[order]
        if not known.size:
            return np.full(len(numbers), -1)
        # Without the cast to the same type, all known numbers would be copied. A number that is too large for this type
        # cannot be one of the known numbers.
        at = np.minimum(known.searchsorted(numbers.astype(known.dtype)), known.size - 1)
        return np.where(known[at] == numbers, at if order is None else order[at], -1)
