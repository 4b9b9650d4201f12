"""Checked observations of visits: one array per fact, one row per visited page."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.numerics import LONGEST, SHORTEST

__all__ = ["Observations", "check_n_pages", "check_observations", "check_positive", "check_rows", "per_page"]


class Observations(NamedTuple):
    """One visit to each of some distinct pages."""

    pages: IndexArray  # row numbers, each at most once; shape (n,)
    elapsed: FloatArray  # seconds since the previous visit, between a nanosecond and 10^15 seconds; shape (n,)
    changed: npt.NDArray[np.bool_]  # whether the page differs from the copy of the previous visit; shape (n,)
    n_signals: FloatArray  # number of ChangeSignals since the previous visit, 0 by default; shape (n,)
    # Seconds from the page's last modification to this visit; NaN where unknown; shape (n,)
    time_since_modified: FloatArray


def check_n_pages(n_pages: int, name: str = "n_pages") -> int:
    """Return a number of rows as an int, or raise `ValueError`."""
    if isinstance(n_pages, (bool, np.bool_)) or not isinstance(n_pages, (int, np.integer)) or n_pages < 0:
        raise ValueError(f"{name} must be a whole number that is not negative, got {n_pages!r}.")
    return int(n_pages)


def check_positive(value: float, name: str, unit: str = "a number") -> float:
    """Return a positive finite number as a float, or raise `ValueError`."""
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be {unit} above 0 and finite, got {value!r}.")
    return number


def check_rows(pages: npt.ArrayLike, n_pages: int, name: str = "pages") -> IndexArray:
    """Return row numbers as a one-dimensional array, or raise `ValueError`; repeated rows are allowed."""
    given = np.atleast_1d(np.asarray(pages))
    if given.size == 0:
        return np.zeros(0, dtype=np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be one whole number or a one-dimensional array of them, "
            f"got an array of {given.dtype} with shape {given.shape}."
        )
    low, high = int(given.min()), int(given.max())
    if low < 0 or high >= n_pages:
        wrong, advice = low if low < 0 else high, "; resize() makes room for new rows" if name == "pages" else ""
        raise ValueError(f"{name} must lie between 0 and {n_pages - 1}, got {wrong}{advice}.")
    return given.astype(np.intp, copy=False)


def per_page(value: npt.ArrayLike, n: int, name: str) -> FloatArray:
    """Return one float64 per page; a single value is used for all pages."""
    given = np.asarray(value, dtype=np.float64)
    if given.shape == (n,):
        return given
    if given.size == 1 and given.ndim <= 1:
        return np.full(n, given.item())
    raise ValueError(f"{name} must be one value or one per page ({n}), got an array with shape {given.shape}.")


def check_observations(
    n_pages: int,
    pages: npt.ArrayLike,
    elapsed: npt.ArrayLike,
    changed: npt.ArrayLike,
    n_signals: npt.ArrayLike | None,
    time_since_modified: npt.ArrayLike | None,
) -> Observations:
    """Return the arguments of an estimator's ``update`` as arrays of one length, or raise `ValueError`."""
    rows = check_rows(pages, n_pages)
    n = rows.size
    if n > 1:
        _check_distinct(rows)
    times = per_page(elapsed, n, "elapsed")
    _check_all(times, (times > 0) & (times < np.inf), "elapsed", "seconds above 0 and finite")
    found = per_page(changed, n, "changed")
    _check_all(found, (found == 0) | (found == 1), "changed", "True or False")
    if n_signals is None:
        counts = np.zeros(n)
    else:
        counts = per_page(n_signals, n, "n_signals")
        _check_all(counts, (counts >= 0) & (counts < np.inf), "n_signals", "a finite number that is not negative")
    if time_since_modified is None:
        since = np.full(n, np.nan)
    else:
        since = per_page(time_since_modified, n, "time_since_modified")
        _check_all(since, ~(since < 0), "time_since_modified", "seconds that are not negative, or NaN where unknown")
    times = np.clip(times, SHORTEST, LONGEST)
    return Observations(rows, times, found.astype(np.bool_), counts, since)


def _check_all(values: FloatArray, allowed: npt.NDArray[Any], name: str, what: str) -> None:
    if not allowed.all():
        raise ValueError(f"{name} must be {what}, got {values[~allowed][0]}.")


def _check_distinct(rows: IndexArray) -> None:
    ordered = np.sort(rows)
    twice = ordered[1:] == ordered[:-1]
    if twice.any():
        raise ValueError(
            f"pages must be distinct within one update, got page {ordered[1:][twice][0]} more than once; "
            "call update once for each visit, in order of time."
        )
