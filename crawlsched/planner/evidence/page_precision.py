"""Own precision: what a page's own visits say of how far announcements of its changes can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.estimators.page_precision import EXTREME, OF_THE_SOURCE
from crawlsched.pages import Pages

__all__ = ["COLUMNS", "OwnPrecision"]


#: The columns, as a store holds them.
COLUMNS = ("true_signals", "false_signals")


class OwnPrecision:
    """Count the true and false announcements of each page, as visits judged them: 8 bytes a page.

    Notes
    -----
    The precision of a page is drawn from what its source, or the group of pages that it is in, is known to have:
    Beta(4 m, 4 (1 - m)) for a mean m, which so counts for four announcements. Visits make it Beta(4 m + true,
    4 (1 - m) + false), as `judged` does. Kept without m, so that what is newly learned of the source applies to all its
    pages at once.

    The noisy-signals paper has a precision for each page. On histories it gains nothing (docs/notes/learning.md).
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.counts: npt.NDArray[np.float32] = np.zeros((0, len(COLUMNS)), np.float32)

    def of(self, page: int) -> tuple[float, float]:
        """Return how many announcements of a page visits have found true and false."""
        if page >= self.counts.shape[0]:
            return 0.0, 0.0
        true, false = self.counts[page].tolist()
        return true, false

    def put(self, page: int, counts: tuple[float, float]) -> None:
        """Set these numbers."""
        self._make_room(page + 1)
        self.counts[page] = counts

    def _make_room(self, n_pages: int) -> None:
        if self.counts.shape[0] < n_pages:
            self.counts = grown(self.counts, max(n_pages, self._pages.capacity))

    def free(self, pages: IndexArray) -> None:
        """Forget what was learned of pages."""
        self.counts[pages[pages < self.counts.shape[0]]] = 0

    def columns(self, pages: IndexArray) -> dict[str, npt.NDArray[np.float32]]:
        """Return the numbers of some pages, by the name that their column has in a store."""
        found = np.zeros((pages.size, len(COLUMNS)), np.float32)
        there = np.flatnonzero(pages < self.counts.shape[0])
        found[there] = self.counts[pages[there]]
        return dict(zip(COLUMNS, found.T, strict=True))

    def load(self, pages: IndexArray, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Set pages to columns from a store; where none of them was ever announced that takes no memory."""
        if all(name in columns for name in COLUMNS):
            counts = np.column_stack([columns[name] for name in COLUMNS])
            rows = np.flatnonzero(counts.any(axis=1))
            self.free(pages)
            if rows.size:
                self._make_room(int(pages[rows].max()) + 1)
                self.counts[pages[rows]] = counts[rows]

    def betas(self, pages: IndexArray, of_source: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how many true and false announcements the evidence on each page's next announcement amounts to.

        `of_source` is the weight of one announcement of its source, in nats, on average over the source's pages.
        """
        mean = np.clip(-np.expm1(-of_source), EXTREME, 1.0 - EXTREME)
        true, false = self.columns(pages).values()
        return OF_THE_SOURCE * mean + true, OF_THE_SOURCE * (1.0 - mean) + false
