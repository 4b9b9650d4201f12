"""What the frontier asks of a crawl value, whatever its formula; what most formulas answer alike stands here."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray

__all__ = ["CrawlValues", "PageValue", "PageValues", "as_bytes"]


# So many pages are looked at together with numpy alone: its calls take hardly less for half as many.
_PORTION = 192


class PageValue(Protocol):
    """The crawl value of one page as a function of time, as long as nothing happens to the page.

    It is finite, not negative, and does not fall with time (but by rounding).

    Attributes
    ----------
    steady : bool
        Whether the value is the same at all times.
    """

    __slots__ = ()
    steady: bool

    def at(self, now: float) -> float:
        """Return the crawl value at a time; O(K), K rates or terms."""

    def exact(self, now: float) -> float:
        """Return the crawl value by which two pages are compared whose values as `at` gives them leave a doubt.

        O(K).
        """
        return self.at(now)

    @property
    def doubt(self) -> float:
        """How far `at` may be from `exact`, as a share of it: 0 where it is the same; O(1)."""
        return 0.0

    def bound(self, until: float, rough: bool = False) -> float:
        """Return what the crawl value as `at` gives it does not exceed until a time; O(K).

        For a steady value it is the value itself. A rough bound may be higher than need be, for speed.
        """

    def parabola(self, after: float, until: float) -> tuple[float, float, float]:
        """Return value, slope and half curvature of a parabola that the crawl value does not exceed until a time.

        O(K).
        """

    def crossing(self, value: float, after: float) -> float:
        """Return a time before which the crawl value is below `value`, at least `after`; inf if it is for ever.

        Until `after` the crawl value is below `value`. O(K log T), T rows of a table.
        """


class PageValues(Protocol):
    """`PageValue` for several pages at once.

    Picks are decided by `PageValue.exact`. What stands here agrees with it to rounding, and to the last bit for steady
    values: bounds are higher by more than that, and crossing times earlier.

    Attributes
    ----------
    steady : ndarray of bool, shape (n,)
        Whether each value is the same at all times.
    """

    __slots__ = ()
    steady: BoolArray

    def at(self, now: float) -> FloatArray:
        """Return the crawl values at a time; O(K) a page."""

    def one(self, row: int) -> PageValue:
        """Return the crawl value of one of the pages; O(K)."""

    def some(self, rows: IndexArray) -> PageValues:
        """Return those of some of the pages, which do not hold the others in memory; O(K) a page."""

    def one_at(self, row: int, now: float) -> tuple[float, float]:
        """Return what `one(row).at(now)` gives, to the last bit, and the doubt that it leaves; O(K)."""
        value = self.one(row)
        return value.at(now), value.doubt

    def best(
        self, bounds: FloatArray, rows: npt.NDArray[np.int32], now: float
    ) -> tuple[int, float, float, float, float] | None:
        """Return what `candidate_loops.highest` finds, and what `one_at` returns for the row with the highest bound.

        All in one call of compiled code; None where there is none for it. O(n + K).

        Parameters
        ----------
        bounds : ndarray, shape (5, n)
            As for `candidate_loops.highest`.
        rows : ndarray of int32, shape (n,)
            Which of the pages each bound belongs to.
        now : float
            POSIX seconds.
        """
        return None

    def parabolas(self, after: float, until: float) -> FloatArray:
        """Return value v, slope s and half curvature c of parabolas that hold until a time, shape (3, n); O(K) a page.

        No crawl value exceeds v + s d + c d² when d seconds have passed. For steady values v is the value itself, and
        both others are 0.
        """

    def shortfalls(self, rows: IndexArray) -> FloatArray | None:
        """Return how far some crawl values may be below the last `parabolas`, shape (2, m): g and h; O(1) a page.

        As long as those hold no crawl value is more than g + h d² below its parabola when d seconds have passed. None
        where that is not known.
        """
        return None

    def crossings(self, values: FloatArray, after: float, where: BoolArray) -> FloatArray:
        """Return `PageValue.crossing` of the pages in `where`, with one of `values` for each of these.

        O(K log T) a page.
        """


class CrawlValues(Protocol):
    """Where the frontier gets crawl values from."""

    def one(self, page: int) -> PageValue:
        """Return the crawl value of a page as things stand; O(K)."""
        return self.many(np.array([page])).one(0)

    def many(self, pages: IndexArray) -> PageValues:
        """Return the crawl values of pages as things stand; O(K) a page."""

    def soon_at_most(self, page: int, until: float, enough: float = np.inf) -> float:
        """Return what the crawl value of a page does not exceed until a time.

        Found without looking at its rates, O(1), if that is below `enough`; otherwise perhaps by looking at them, O(K).
        inf where it cannot be said: it serves pages that have just been crawled.
        """
        return self.one(page).bound(until)

    def deciding(self, pages: IndexArray) -> list[npt.NDArray[Any]]:
        """Return all that crawl values depend on, in arrays of shape (n,) or (n, k); O(K) a page.

        Pages of one host with equal rows are worth the same at all times, to the last bit, until something happens to
        one of them.
        """

    @property
    def portion(self) -> int:
        """How many pages are looked at together: more are dealt with in several picks; O(1)."""
        return _PORTION

    @property
    def few(self) -> int:
        """Up to how many pages are dealt with faster one by one than together; O(1)."""
        return 1


def as_bytes(*columns: npt.NDArray[Any]) -> npt.NDArray[np.void]:
    """Return the rows of several arrays as one array of bytes, shape (n,), which can be compared and sorted.

    Examples
    --------
    >>> rows = as_bytes(np.array([1.0, 1.0, 2.0]), np.array([[3, 4], [3, 4], [3, 4]]))
    >>> bool(rows[0] == rows[1]), bool(rows[0] == rows[2])
    (True, False)
    """
    n = columns[0].shape[0]
    parts = [np.ascontiguousarray(column).view(np.uint8).reshape(n, -1) for column in columns]
    together = np.ascontiguousarray(np.concatenate(parts, axis=1))
    rows: npt.NDArray[np.void] = together.view(f"V{together.shape[1]}")[:, 0]
    return rows
