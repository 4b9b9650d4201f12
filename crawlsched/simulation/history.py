"""A history: when pages were there, when they changed, and what was announced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import floor

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.exceptions import CrawlschedError

__all__ = ["History", "SimulationError", "Window", "slot_times"]


class SimulationError(CrawlschedError, ValueError):
    """A history, a figure, or what is asked of it, is not possible; the message is one sentence."""


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
    change_rate: FloatArray | None = None  # the true rates (per second); None: not known; shape (n,)
    recall: FloatArray | None = None
    false_signal_rate: FloatArray | None = None

    def window(self, start: float | None = None, end: float | None = None, measure_from: float | None = None) -> Window:
        """Return the part of the history that a replay covers, checked; by default all of it."""
        if not self.page.size:
            raise SimulationError("The history has no pages; a replay needs at least one.")
        if start is None:
            start = float(self.birth.min())
        if end is None:
            ends = self.end[np.isfinite(self.end)]
            end = float(max(self.birth.max(), ends.max(initial=-np.inf), self.change_times.max(initial=-np.inf)))
        if not -np.inf < start < end < np.inf:
            raise SimulationError(f"end must be a time after the start ({start!r}), got {end!r}.")
        if measure_from is None:
            measure_from = start
        if not start <= measure_from < end:
            raise SimulationError(
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


_BLOCK = 1 << 16


def slot_times(window: Window, bandwidth: float) -> Iterator[float]:
    """Give start + j/R for j = 1, 2, ... up to and including the end.

    Notes
    -----
    300 crawls an hour are 1/12 a second, which no float is. The simple fraction that rounds to `bandwidth` is meant,
    and with it j/R is rounded once: slot 300 is an hour after the start, and not some 10^-13 s later or earlier.

    Examples
    --------
    >>> list(slot_times(Window(0.0, 3600.0, 0.0), 3 / 3600))
    [1200.0, 2400.0, 3600.0]
    """
    simple = Fraction(bandwidth).limit_denominator(10**7)
    exact = simple if float(simple) == bandwidth else Fraction(bandwidth)
    slots, seconds = (exact.numerator, exact.denominator) if exact == simple else (bandwidth, 1)
    last = floor(Fraction(window.end - window.start) * exact)
    # The end less the start is itself rounded: one more is looked at.
    for first in range(1, last + 2, _BLOCK):
        numbers = np.arange(first, min(first + _BLOCK, last + 2), dtype=np.float64)
        times = window.start + numbers * seconds / slots
        yield from times[times <= window.end].tolist()
