"""Measuring: how fresh copies were, how old they grew, and how soon changes were seen; exactly, event by event."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.history import History, Window

__all__ = ["fresh_spans", "freshness", "timeliness"]


def freshness(history: History, window: Window, rows: npt.ArrayLike, times: npt.ArrayLike) -> float:
    """Return the importance-weighted share of the time in which living pages were fresh; nan if no page lived.

    Notes
    -----
    A copy is fresh from its crawl to the next change. A change at the very time of the crawl is in the copy.
    """
    copy_rows, copy_times, fresh_until = fresh_spans(history, window, rows, times)
    fresh = np.maximum(fresh_until - np.maximum(copy_times, window.measure_from), 0.0)
    total = _measured(history, window)
    return float(np.sum(history.importance[copy_rows] * fresh)) / total if total > 0 else float("nan")


def fresh_spans(
    history: History, window: Window, rows: npt.ArrayLike, times: npt.ArrayLike
) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return the row of each copy, first copies included, and the times at which it began and ceased to be fresh."""
    copy_rows, copy_times, until, changes_at = _copies(history, window, rows, times)
    return copy_rows, copy_times, np.minimum(until, changes_at)


def timeliness(history: History, window: Window, rows: npt.ArrayLike, times: npt.ArrayLike) -> dict[str, float]:
    """Return how old copies grew in the measured time, and how soon changes in that time were seen.

    Returns
    -------
    dict of str to float
        Importance-weighted seconds; nan without any page. ``age`` is the mean age of the copies: the time since the
        first change that a copy does not have; 0 for a fresh copy. ``delay``, ``delay_median``, ``delay_95`` and
        ``delay_longest`` are mean, median, 95 % quantile and maximum of the time from a change to the first crawl after
        it. If no crawl saw a change, its delay is the time until the window or the page ended. The real delay was at
        least that long.

    Examples
    --------
    A page changes at 2 and at 3, and is crawled at 4. For two of four seconds its copy lacked the first change:

    >>> history = History(
    ...     page=np.array([0]), birth=np.zeros(1), end=np.full(1, 4.0), importance=np.ones(1),
    ...     change_rows=np.array([0, 0]), change_times=np.array([2.0, 3.0]))
    >>> timeliness(history, Window(0.0, 4.0, 0.0), [0], [4.0])
    {'age': 0.5, 'delay': 1.5, 'delay_median': 1.0, 'delay_95': 2.0, 'delay_longest': 2.0}
    """
    copy_rows, _, until, changes_at = _copies(history, window, rows, times)
    begun = np.maximum(window.measure_from - changes_at, 0.0)
    ended = np.maximum(until - changes_at, 0.0)
    aged = np.where(ended > begun, (ended * ended - begun * begun) / 2.0, 0.0)
    total = _measured(history, window)
    age = float(np.sum(history.importance[copy_rows] * aged)) / total if total > 0 else float("nan")
    begins, ends = history.lives(window)
    changed, change_times = history.change_rows, history.change_times
    counted = (change_times > np.maximum(begins, window.measure_from)[changed]) & (change_times <= ends[changed])
    changed, change_times = changed[counted], change_times[counted]
    weights = history.importance[changed].astype(np.float64)
    if not weights.sum() > 0.0:
        return {"age": age, **dict.fromkeys(("delay", "delay_median", "delay_95", "delay_longest"), float("nan"))}
    order = np.lexsort((np.asarray(times), np.asarray(rows)))
    crawled, crawl_times = np.asarray(rows, np.intp)[order], np.asarray(times, np.float64)[order]
    seen = np.minimum(_next_times(changed, change_times, crawled, crawl_times, "left"), ends[changed])
    delays = seen - change_times
    order = np.argsort(delays, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    median, most = (float(delays[order][np.searchsorted(shares, share - 1e-12)]) for share in (0.5, 0.95))
    mean, longest = float(np.average(delays, weights=weights)), float(delays[weights > 0].max())
    return {"age": age, "delay": mean, "delay_median": median, "delay_95": most, "delay_longest": longest}


def _measured(history: History, window: Window) -> float:
    """Return the pages' importance-weighted seconds of life in the measured time."""
    begins, ends = history.lives(window)
    living = np.where(begins < ends, np.maximum(ends - np.maximum(begins, window.measure_from), 0.0), 0.0)
    return float(np.sum(history.importance * living))


def _copies(
    history: History, window: Window, rows: npt.ArrayLike, times: npt.ArrayLike
) -> tuple[IndexArray, FloatArray, FloatArray, FloatArray]:
    """Return each copy's row, the times when it was made and replaced, and its page's next change (inf: none)."""
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
    changes = history.change_rows, history.change_times
    return copy_rows, copy_times, until, _next_times(copy_rows, copy_times, *changes, "right")


def _next_times(
    rows: IndexArray, times: FloatArray, event_rows: IndexArray, event_times: FloatArray, side: Literal["left", "right"]
) -> FloatArray:
    """Return the time of each row's first event after a time (with `side` "left" also at this time); inf: none.

    Events are ordered by row and then by time.
    """
    # Each time is replaced with its rank among all times. Row and rank together are then one whole number, which can be
    # searched for.
    moments, ranks = np.unique(np.concatenate([event_times, times]), return_inverse=True)
    n = event_times.size
    events = event_rows * moments.size + ranks[:n]
    found = np.searchsorted(events, rows * moments.size + ranks[n:], side=side)
    after = np.full(times.size, np.inf)
    has = found < n
    has[has] = event_rows[found[has]] == rows[has]
    after[has] = event_times[found[has]]
    return after
