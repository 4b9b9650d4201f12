"""The truth of a replay: what a visit finds. Arms see it by visits only."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.history import History

__all__ = ["CrawlResult", "Truth"]

_NEAR = 8
# What `CrawlResult(...)` does, in half of the time: one is made in each slot.
_make = tuple.__new__


class CrawlResult(NamedTuple):
    """What a crawl found."""

    row: int
    time: float  # POSIX seconds
    elapsed: float  # seconds since the crawl before
    changed: bool  # whether the page changed since then
    # Seconds since its last change; None if it never changed. Only honest dates of modification say it.
    time_since_modified: float | None


class Truth:
    """Answers visits to the pages of a history, whose first copies are from `crawled_at`."""

    def __init__(self, history: History, crawled_at: FloatArray) -> None:
        n = history.page.size
        # Lists: one number at a time is read out of them several times faster than out of numpy's arrays. Of millions
        # of changes a list would be numbers all over the memory: `array` is as fast, and has them side by side.
        self._times = array("d", np.ascontiguousarray(history.change_times, np.float64).tobytes())
        starts = np.searchsorted(history.change_rows, np.arange(n + 1))
        self._starts = starts.tolist()
        old = history.change_times <= crawled_at[history.change_rows]
        self._seen = (starts[:-1] + np.bincount(history.change_rows[old], minlength=n)).tolist()
        self._crawled_at = crawled_at.tolist()

    def visit(self, row: int, now: float) -> CrawlResult:
        """Crawl a page: a change at this very time is seen."""
        times, before, end = self._times, self._seen[row], self._starts[row + 1]
        # A few changes on, if any: to look there first is faster than to search among all that will ever come.
        near = before + _NEAR
        if near < end and times[near] > now:
            end = near
        seen = bisect_right(times, now, before, end)
        elapsed = now - self._crawled_at[row]
        self._seen[row], self._crawled_at[row] = seen, now
        modified = now - times[seen - 1] if seen > self._starts[row] else None
        return _make(CrawlResult, (row, now, elapsed, seen > before, modified))
