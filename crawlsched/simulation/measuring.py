"""Measuring: the share of time during which copies were fresh, exactly, from event to event."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.history import History, Window

__all__ = ["fresh_spans", "freshness"]


def freshness(history: History, window: Window, rows: npt.ArrayLike, times: npt.ArrayLike) -> float:
    """Return the importance-weighted share of the time in which living pages were fresh.

    Parameters
    ----------
    history : History
    window : Window
        Measured from its `measure_from` to its end. Every page begins with a fresh copy at its birth, or at the start
        of the window if it was there before.
    rows, times : array_like, shape (n_crawls,)
        The crawls, in any order.

    Returns
    -------
    float
        0 to 1; nan if no page of any importance lives while it is measured.

    Notes
    -----
    A copy is fresh from its crawl to the first change after it; a change at the time of the crawl has been seen.
    """
    copy_rows, copy_times, fresh_until = fresh_spans(history, window, rows, times)
    fresh = np.maximum(fresh_until - np.maximum(copy_times, window.measure_from), 0.0)
    begins, ends = history.lives(window)
    living = np.where(begins < ends, np.maximum(ends - np.maximum(begins, window.measure_from), 0.0), 0.0)
    total = float(np.sum(history.importance * living))
    return float(np.sum(history.importance[copy_rows] * fresh)) / total if total > 0 else float("nan")


def fresh_spans(
    history: History, window: Window, rows: npt.ArrayLike, times: npt.ArrayLike
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return row of each copy, from when it was fresh, and until when: those that pages begin with, and those crawled.

    Parameters
    ----------
    history, window, rows, times
        As for `freshness`.
    """
    begins, ends = history.lives(window)
    there = np.flatnonzero(begins < ends)
    copy_rows = np.concatenate([there, np.asarray(rows, np.intp)])
    copy_times = np.concatenate([begins[there], np.asarray(times, np.float64)])
    order = np.lexsort((copy_times, copy_rows))
    copy_rows, copy_times = copy_rows[order], copy_times[order]
    # A copy serves until the next crawl of its page, or until the page's end.
    until = ends[copy_rows]
    followed = copy_rows[1:] == copy_rows[:-1]
    until[:-1][followed] = copy_times[1:][followed]
    return copy_rows, copy_times, np.minimum(until, _next_changes(history, copy_rows, copy_times))


def _next_changes(history: History, rows: IndexArray, times: FloatArray) -> FloatArray:
    """Return the time of the first change of each row after a time; inf if there is none."""
    # Times become their ranks among all times, so that row and time together are one whole number.
    moments, ranks = np.unique(np.concatenate([history.change_times, times]), return_inverse=True)
    n = history.change_times.size
    changes = history.change_rows * moments.size + ranks[:n]
    found = np.searchsorted(changes, rows * moments.size + ranks[n:], side="right")
    after = np.full(times.size, np.inf)
    has = found < n
    has[has] = history.change_rows[found[has]] == rows[has]
    after[has] = history.change_times[found[has]]
    return after
