"""A history: when pages were there, when they changed, and what was announced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.exceptions import CrawlschedError

__all__ = ["History", "ReplayError", "Window"]


class ReplayError(CrawlschedError, ValueError):
    """A history, or what is asked of it, is not possible; the message is one sentence."""


@dataclass(frozen=True, eq=False)
class History:
    """What happened to some pages; a row per page, in ascending order of page."""

    page: npt.NDArray[np.int64]  # identifiers, ascending and distinct; shape (n,)
    birth: FloatArray  # a page is there from its birth to its end, POSIX seconds; inf for no end; shape (n,)
    end: FloatArray
    importance: FloatArray  # weight of a fresh copy; shape (n,)
    change_rows: IndexArray  # row and time of each change, ordered by row and then by time; shape (n_changes,)
    change_times: FloatArray
    # Row and time of each ChangeSignal, ordered by time; None where nothing listens for any; shape (n_signals,)
    signal_rows: IndexArray | None = None
    signal_times: FloatArray | None = None
    change_rate: FloatArray | None = None  # the true rates (per second), where the history tells them; shape (n,)
    recall: FloatArray | None = None
    false_signal_rate: FloatArray | None = None

    def window(self, start: float | None = None, end: float | None = None, measure_from: float | None = None) -> Window:
        """Return the part of the history that a replay covers, checked; by default all of it."""
        if not self.page.size:
            raise ReplayError("The history has no pages; a replay needs at least one.")
        if start is None:
            start = float(self.birth.min())
        if end is None:
            ends = self.end[np.isfinite(self.end)]
            end = float(max(self.birth.max(), ends.max(initial=-np.inf), self.change_times.max(initial=-np.inf)))
        if not -np.inf < start < end < np.inf:
            raise ReplayError(f"end must be a time after the start ({start!r}), got {end!r}.")
        if measure_from is None:
            measure_from = start
        if not start <= measure_from < end:
            raise ReplayError(
                f"measure-from must be a time from the start ({start!r}) to before the end ({end!r}), "
                f"got {measure_from!r}."
            )
        return Window(start, end, measure_from)

    def lives(self, window: Window) -> tuple[FloatArray, FloatArray]:
        """Return from when to when each page is there within a window; for some pages the second is the earlier."""
        return np.maximum(self.birth, window.start), np.minimum(self.end, window.end)

    def hindsight_rates(self, window: Window) -> FloatArray:
        """Return the changes of each page in a window by its life in it, per second; 0 without such a life."""
        begins, ends = self.lives(window)
        inside = (self.change_times > begins[self.change_rows]) & (self.change_times <= ends[self.change_rows])
        changes = np.bincount(self.change_rows[inside], minlength=self.page.size)
        return np.divide(changes, ends - begins, out=np.zeros(self.page.size), where=ends > begins)


@dataclass(frozen=True)
class Window:
    """The time of a replay."""

    start: float  # slots are after the start, up to and including the end, POSIX seconds
    end: float
    measure_from: float  # freshness counts from here to the end
