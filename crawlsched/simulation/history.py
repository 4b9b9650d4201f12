"""Histories of pages, with their changes and announcements: how they are read, and what visits find."""

from __future__ import annotations

import csv
import gzip
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.blocks import blocks
from crawlsched.exceptions import CrawlschedError

__all__ = [
    "CrawlResult",
    "History",
    "SimulationError",
    "Window",
    "open_text",
    "read_changes",
    "read_history",
    "slot_times",
    "visiting",
]


class SimulationError(CrawlschedError, ValueError):
    """A history, a figure or a setting of a replay is impossible; the message is one sentence."""


@dataclass(frozen=True, eq=False)
class History:
    """What happened to some pages; a row per page, in ascending order of page."""

    page: npt.NDArray[np.int64]  # identifiers, ascending and distinct; shape (n,)
    birth: FloatArray  # a page is there from its birth to its end, POSIX seconds; inf for no end; shape (n,)
    end: FloatArray
    importance: FloatArray  # weight of a fresh copy; shape (n,)
    change_rows: IndexArray  # row and time of each change, ordered by row and then by time; shape (n_changes,)
    change_times: FloatArray
    # Row and time of each ChangeSignal, ordered by time; None if nothing announces changes; shape (n_signals,)
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
        """Return when each page begins and ends in a window; a page that ends before it begins is not there."""
        return np.maximum(self.birth, window.start), np.minimum(self.end, window.end)

    def hindsight_rates(self, window: Window) -> FloatArray:
        """Return each page's changes per second of its life in a window; 0 for a page without changes."""
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


def slot_times(window: Window, bandwidth: float) -> Iterator[float]:
    """Give start + j/R for j = 1, 2, ... up to and including the end.

    Notes
    -----
    300 crawls an hour are 1/12 a second, which no float represents exactly. So R is the simple fraction that rounds to
    `bandwidth`, and j/R is rounded only once. Slot 300 is then exactly an hour after the start.

    Examples
    --------
    >>> list(slot_times(Window(0.0, 3600.0, 0.0), 3 / 3600))
    [1200.0, 2400.0, 3600.0]
    """
    simple = Fraction(bandwidth).limit_denominator(10**7)
    exact = simple if float(simple) == bandwidth else Fraction(bandwidth)
    slots, seconds = (exact.numerator, exact.denominator) if exact == simple else (bandwidth, 1)
    last = floor(Fraction(window.end - window.start) * exact)
    # The difference of end and start is rounded, too, so one more slot is tried.
    for part in blocks(last + 1):
        numbers = np.arange(part.start + 1, part.stop + 1, dtype=np.float64)
        times = window.start + numbers * seconds / slots
        yield from times[times <= window.end].tolist()


# Columns of the file of pages: name, whether it may be missing, what an empty field means (None: an empty field is
# an error).
_PAGE_COLUMNS = (
    ("page", False, None),
    ("birth", False, None),
    ("end", False, np.inf),
    ("importance", True, None),
    ("change_rate", True, None),
    ("recall", True, None),
    ("false_signal_rate", True, None),
)


def read_history(pages: str | Path, changes: str | Path, signals: str | Path | None = None) -> History:
    """Read a history; a file that cannot be read raises `SimulationError` with file, line and value.

    Parameters
    ----------
    pages : path
        CSV with the columns ``page,birth,end`` and optionally ``importance,change_rate,recall,false_signal_rate``;
        an empty ``end`` means no end.
    changes, signals : path
        CSV with the columns ``page,time``, in any order.
    """
    columns = _read(pages, _PAGE_COLUMNS)
    page = _whole(columns["page"], pages)
    order = np.argsort(page, kind="stable")
    page = page[order]
    columns = {name: column[order] for name, column in columns.items()}
    twice = np.flatnonzero(page[1:] == page[:-1])
    if twice.size:
        raise SimulationError(f"{pages} names page {page[twice[0]]} twice; it may stand there once.")
    _check_pages(columns, page, pages)
    rows, times = _events(changes, page, pages)
    by_page = np.lexsort((times, rows))
    announced: tuple[IndexArray, FloatArray] | None = None
    if signals is not None:
        announced = _events(signals, page, pages)
        by_time = np.lexsort(announced)
        announced = announced[0][by_time], announced[1][by_time]
    return History(
        page=page,
        birth=columns["birth"],
        end=columns["end"],
        importance=columns.get("importance", np.ones(page.size)),
        change_rows=rows[by_page],
        change_times=times[by_page],
        signal_rows=None if announced is None else announced[0],
        signal_times=None if announced is None else announced[1],
        change_rate=columns.get("change_rate"),
        recall=columns.get("recall"),
        false_signal_rate=columns.get("false_signal_rate"),
    )


def read_changes(path: str | Path) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Read changes without their pages: page numbers and times, in the order of the file."""
    columns = _read(path, (("page", False, None), ("time", False, None)))
    if not np.isfinite(columns["time"]).all():
        raise SimulationError(f"{path} must give finite times, in POSIX seconds, for all its rows.")
    return _whole(columns["page"], path), columns["time"]


def open_text(path: str | Path, mode: str = "r") -> IO[str]:
    """Open a text file, compressed by gzip if its name ends with .gz, or raise `SimulationError`."""
    try:
        if str(path).endswith(".gz"):
            return cast(IO[str], gzip.open(path, f"{mode}t", encoding="utf-8", newline=""))
        return open(path, mode, encoding="utf-8", newline="")
    except OSError as error:
        verb = "read" if mode == "r" else "written"
        raise SimulationError(f"{path} cannot be {verb}: {error.strerror or error}.") from None


def _events(path: str | Path, page: npt.NDArray[np.int64], pages: str | Path) -> tuple[IndexArray, FloatArray]:
    named, times = read_changes(path)
    rows = np.searchsorted(page, named)
    known = page[np.minimum(rows, max(page.size - 1, 0))] == named if page.size else np.zeros(named.size, bool)
    if not known.all():
        raise SimulationError(f"{path} names page {named[~known][0]}, which does not stand in {pages}.")
    return rows, times


def _read(path: str | Path, wanted: Sequence[tuple[str, bool, float | None]]) -> dict[str, FloatArray]:
    """Read some columns of a CSV file as numbers."""
    try:
        with open_text(path) as file:
            reader = csv.reader(file)
            heading = [name.strip() for name in next(reader, [])]
            places = _places(path, heading, wanted)
            table = [line for line in reader if line]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise SimulationError(f"{path} cannot be read as CSV (gzip for a name ending with .gz): {error}.") from None
    widths = {len(line) for line in table} - {len(heading)}
    if widths:
        number = next(n for n, line in enumerate(table, 2) if len(line) in widths)
        raise SimulationError(
            f"{path} must have {len(heading)} fields in every line, got {widths.pop()} in line {number}."
        )
    return {
        name: _numbers([line[place] for line in table], path, name, empty) for name, (place, empty) in places.items()
    }


def _places(
    path: str | Path, heading: Sequence[str], wanted: Sequence[tuple[str, bool, float | None]]
) -> dict[str, tuple[int, float | None]]:
    places = {}
    for name, optional, empty in wanted:
        if name in heading:
            places[name] = heading.index(name), empty
        elif not optional:
            needed = ",".join(column for column, may_be_missing, _ in wanted if not may_be_missing)
            raise SimulationError(f"{path} must begin with a line naming the columns {needed}, but {name} is missing.")
    return places


def _numbers(texts: list[str], path: str | Path, name: str, empty: float | None) -> FloatArray:
    if empty is not None:
        texts = [text if text.strip() else repr(empty) for text in texts]
    try:
        return np.array(texts, dtype=np.float64) if texts else np.zeros(0)
    except ValueError:
        number, text = next((n, text) for n, text in enumerate(texts, 2) if not _is_number(text))
        raise SimulationError(
            f"{path} must hold numbers in the column {name}, got {text!r} in line {number}."
        ) from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _whole(numbers: FloatArray, path: str | Path) -> npt.NDArray[np.int64]:
    wrong = ~((numbers == np.floor(numbers)) & (np.abs(numbers) < 2**53))
    if wrong.any():
        raise SimulationError(f"{path} must hold whole numbers in the column page, got {numbers[wrong][0]:.15g}.")
    return numbers.astype(np.int64)


def _check_pages(columns: dict[str, FloatArray], page: npt.NDArray[np.int64], path: str | Path) -> None:
    allowed_values: dict[str, tuple[FloatArray | float, float, str]] = {
        "birth": (-1e300, 1e300, "a finite time in POSIX seconds"),
        "end": (columns["birth"], np.inf, "a time not before the birth, or nothing"),
        "importance": (0.0, 3e38, "0 or more and finite"),
        "change_rate": (0.0, 1e300, "0 or more and finite"),
        "recall": (0.0, 1.0, "from 0 to 1"),
        "false_signal_rate": (0.0, 1e300, "0 or more and finite"),
    }
    for name, (least, most, allowed) in allowed_values.items():
        if name not in columns:
            continue
        wrong = ~((columns[name] >= least) & (columns[name] <= most))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise SimulationError(
                f"{path}: {name} must be {allowed}, got {columns[name][row]:.15g} for page {page[row]}."
            )


# Each slot makes a `CrawlResult`; `tuple.__new__` is twice as fast as calling the class.
_make = tuple.__new__


class CrawlResult(NamedTuple):
    """What a crawl found."""

    row: int
    time: float  # POSIX seconds
    elapsed: float  # seconds since the previous crawl
    changed: bool  # whether the page changed since the previous crawl
    # Seconds since the page's last change; None if it never changed. Real pages reveal this only by honest dates.
    time_since_modified: float | None


def visiting(history: History, crawled_at: FloatArray, n_near: int = 8) -> Callable[[int, float], CrawlResult]:
    """Return a function that crawls one page of a history at each call; the first copies were made at `crawled_at`.

    The page's next `n_near` changes are searched before its later changes, which is faster.
    """
    n = history.page.size
    # Single numbers are read several times faster from a list than from numpy's arrays. A list of millions of changes
    # would scatter numbers all over the memory. An `array` is as fast, and stores numbers next to each other.
    times = array("d", np.ascontiguousarray(history.change_times, np.float64).tobytes())
    row_starts = np.searchsorted(history.change_rows, np.arange(n + 1))
    starts: list[int] = row_starts.tolist()
    old = history.change_times <= crawled_at[history.change_rows]
    n_seen: list[int] = (row_starts[:-1] + np.bincount(history.change_rows[old], minlength=n)).tolist()
    last: list[float] = crawled_at.tolist()

    def visit(row: int, now: float) -> CrawlResult:
        """Crawl a page; a change at exactly this time is seen."""
        before, end = n_seen[row], starts[row + 1]
        near = before + n_near
        if near < end and times[near] > now:
            end = near
        seen = bisect_right(times, now, before, end)
        elapsed = now - last[row]
        n_seen[row], last[row] = seen, now
        modified = now - times[seen - 1] if seen > starts[row] else None
        return _make(CrawlResult, (row, now, elapsed, seen > before, modified))

    return visit
