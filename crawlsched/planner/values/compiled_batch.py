"""Crawl values of many pages where compiled code is in use: gathered by one loop, and evaluated by others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.compiling import Compilable
from crawlsched.crawl_value.evaluation import ELEMENTS
from crawlsched.frontier import PageValue, PageValues
from crawlsched.frontier.candidates.candidates import LOOPS as CANDIDATE_LOOPS
from crawlsched.planner.values import compiled_batch_loops, plug_in_loops
from crawlsched.planner.values.compiled_batch_loops import SIGNALLED, STEADY
from crawlsched.planner.values.signalled import DOUBT, Grid
from crawlsched.planner.values.signalled import LOOPS as POSTERIOR_LOOPS

__all__ = ["LOOPS", "GatheredValues"]

ByteArray = npt.NDArray[np.uint8]

#: `crawlsched.planner.values.compiled_batch_loops`.
LOOPS = Compilable(
    compiled_batch_loops,
    uses=(ELEMENTS, CANDIDATE_LOOPS, plug_in_loops, POSTERIOR_LOOPS),
    keeps_lock=True,
)


class GatheredValues(PageValues):
    """Crawl values of several pages of all kinds.

    Parameters
    ----------
    one_of : callable
        Returns the crawl value of a page as things stand, by which picks are decided where a doubt is left.
    grid : Grid
    pages : ndarray of int, shape (n,)
    kinds : ndarray of uint8, shape (n,)
        Of `compiled_batch_loops`.
    steady_values : ndarray, shape (n,)
        Values of the pages whose value does not change.
    weights : ndarray, shape (n, K)
        What each rate counts for.
    crawled_at, importance : ndarray, shape (n,)
    signals : ndarray, shape (3, n)
        Signal rate, signal weight, and the evidence of announcements since the last crawl.
    """

    def __init__(
        self,
        one_of: Callable[[int], PageValue],
        grid: Grid,
        pages: IndexArray,
        kinds: ByteArray,
        steady_values: FloatArray,
        weights: FloatArray,
        crawled_at: FloatArray,
        importance: FloatArray,
        signals: FloatArray,
    ) -> None:
        self._one_of = one_of
        self._grid = grid
        self._pages = pages
        self.steady: BoolArray = kinds == STEADY
        self._columns = kinds, steady_values, weights, grid.rates, crawled_at, importance, signals
        # When the last parabolas began, and the values, slopes and curvatures there.
        self._known: tuple[float, FloatArray] | None = None

    def at(self, now: float) -> FloatArray:
        """Return the crawl values at a time."""
        values: FloatArray = self._terms(now, now)[0][0]
        return values

    def one(self, row: int) -> PageValue:
        """Return the crawl value of one of the pages."""
        return self._one_of(self._pages.item(row))

    def some(self, rows: IndexArray) -> GatheredValues:
        """Return the crawl values of some of the pages."""
        kinds, steady, weights, _, crawled_at, importance, signals = self._columns
        of_pages = self._pages[rows], kinds[rows], steady[rows], weights[rows], crawled_at[rows], importance[rows]
        return GatheredValues(self._one_of, self._grid, *of_pages, np.ascontiguousarray(signals[:, rows]))

    def one_at(self, row: int, now: float) -> tuple[float, float]:
        """Return the crawl value of one of the pages, and the doubt that it leaves."""
        return LOOPS.value_of_one(*self._columns, row, now), DOUBT if self._columns[0][row] == SIGNALLED else 0.0

    def best(
        self, bounds: FloatArray, rows: npt.NDArray[np.int32], now: float
    ) -> tuple[int, float, float, float, float] | None:
        """Return which bound is the highest, and the value of its page and the doubt that it leaves."""
        found: tuple[int, float, float, float, float] = LOOPS.best(*self._columns, bounds, rows, now)
        return found

    def parabolas(self, after: float, until: float) -> FloatArray:
        """Return value, slope and half curvature of parabolas that no crawl value exceeds, shape (3, n)."""
        terms, found = self._terms(after, until)
        self._known = after, terms
        return found

    def crossings(self, values: FloatArray, after: float, where: BoolArray) -> FloatArray:
        """Return times before which the crawl values of the pages in `where` are below `values`; O(K log T) a page."""
        if self._known is None or self._known[0] > after:
            self._known = after, self._terms(after, after)[0]
        at, terms = self._known
        kinds, _, *columns = self._columns
        chosen, grid = np.flatnonzero(where), self._grid
        found = np.empty(chosen.size)
        known = terms, at, grid.elapsed, grid.gain, grid.slope
        LOOPS.crossings(kinds, *columns, *known, values, chosen, after, found)
        return found

    def _terms(self, after: float, until: float) -> tuple[FloatArray, FloatArray]:
        terms, found = np.empty((2, 3, self._pages.size))
        LOOPS.parabolas(*self._columns, after, until, terms, found)
        return terms, found
