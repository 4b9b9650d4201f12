"""Reading a history from CSV files, plain or compressed by gzip."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.history import History, SimulationError

__all__ = ["open_text", "read_changes", "read_history"]

# Columns of the file of pages: name, whether it may be missing, what an empty field means (None: nothing).
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
        an empty ``end`` stands for none.
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
        raise SimulationError(f"{pages} names page {page[twice[0]]} twice; every page stands once.")
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
