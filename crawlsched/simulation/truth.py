"""The truth of a replay: what a visit finds. Arms never see it otherwise."""

from __future__ import annotations

from bisect import bisect_right
from math import nan
from typing import NamedTuple

import numpy as np

from crawlsched.simulation.history import FloatArray, History

__all__ = ["Truth", "Visit"]


class Visit(NamedTuple):
    """What a crawl found.

    Attributes
    ----------
    row : int
    time : float
        POSIX seconds.
    elapsed : float
        Seconds since the crawl before.
    changed : bool
        Whether the page changed since then.
    time_since_modified : float
        Seconds since its last change; nan if it never changed. Only a crawler whose pages tell knows it.
    """

    row: int
    time: float
    elapsed: float
    changed: bool
    time_since_modified: float


class Truth:
    """Answer visits.

    Parameters
    ----------
    history : History
    crawled_at : ndarray, shape (n,)
        Time of the copy that each page begins with.
    """

    def __init__(self, history: History, crawled_at: FloatArray) -> None:
        n = history.page.size
        # Lists: one number at a time is read out of them several times faster than out of arrays.
        self._times = history.change_times.tolist()
        starts = np.searchsorted(history.change_rows, np.arange(n + 1))
        self._starts = starts.tolist()
        old = history.change_times <= crawled_at[history.change_rows]
        self._seen = (starts[:-1] + np.bincount(history.change_rows[old], minlength=n)).tolist()
        self._crawled_at = crawled_at.tolist()

    def visit(self, row: int, now: float) -> Visit:
        """Crawl a page: a change at this very time is seen."""
        before = self._seen[row]
        seen = bisect_right(self._times, now, before, self._starts[row + 1])
        elapsed = now - self._crawled_at[row]
        self._seen[row], self._crawled_at[row] = seen, now
        modified = now - self._times[seen - 1] if seen > self._starts[row] else nan
        return Visit(row, now, elapsed, seen > before, modified)
