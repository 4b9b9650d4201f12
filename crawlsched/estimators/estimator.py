"""What all change-rate estimators share: rows of state in numpy columns, four verbs, and nothing per page in Python."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.estimators.observations import Observations, check_n_pages, check_observations, check_rows

__all__ = ["Estimator", "Intervals", "sums"]


class Intervals:
    """Numbers appended row by row, each row contiguous in one pool.

    A full row moves to the end of the pool into twice the room: appending takes constant time on average, and the pool
    at most four times its numbers.
    """

    def __init__(self, n_rows: int) -> None:
        self.length: IndexArray = np.zeros(n_rows, dtype=np.intp)
        self._room: IndexArray = np.zeros(n_rows, dtype=np.intp)
        self._start: IndexArray = np.zeros(n_rows, dtype=np.intp)
        self._pool: FloatArray = np.zeros(64)
        self._used = 0

    def append(self, rows: IndexArray, values: FloatArray) -> None:
        """Append one value to each of some distinct rows."""
        for row in rows[self.length[rows] == self._room[rows]]:
            self._move(int(row))
        self._pool[self._start[rows] + self.length[rows]] = values
        self.length[rows] += 1

    def extend(self, row: int, values: FloatArray) -> None:
        """Append several values to one row."""
        for value in values:
            self.append(np.array([row]), np.array([value]))

    def _move(self, row: int) -> None:
        length = int(self.length[row])
        room = max(2 * length, 4)
        if self._used + room > self._pool.size:
            self._pool = np.concatenate([self._pool, np.zeros(max(self._pool.size, room))])
        start = int(self._start[row])
        self._pool[self._used : self._used + length] = self._pool[start : start + length]
        self._start[row], self._room[row] = self._used, room
        self._used += room

    def gather(self, rows: IndexArray) -> tuple[FloatArray, IndexArray]:
        """Return the values of some rows one after the other, and how many each has."""
        lengths = self.length[rows]
        ends = np.cumsum(lengths)
        within = np.arange(int(lengths.sum())) - np.repeat(ends - lengths, lengths)
        return self._pool[np.repeat(self._start[rows], lengths) + within], lengths

    def resize(self, n_rows: int) -> None:
        """Grow to `n_rows` rows."""
        more = np.zeros(n_rows - self.length.size, dtype=np.intp)
        self.length = np.concatenate([self.length, more])
        self._room = np.concatenate([self._room, more])
        self._start = np.concatenate([self._start, more])


def sums(values: FloatArray, lengths: IndexArray) -> FloatArray:
    """Return the sum of each row's values, 0 for an empty row, whatever rows stand beside it."""
    total = np.zeros(lengths.size)
    filled = np.flatnonzero(lengths)
    if filled.size:
        starts = np.cumsum(lengths[filled]) - lengths[filled]
        total[filled] = np.add.reduceat(values, starts)
    return total


Columns = dict[str, npt.NDArray[Any]]


class Estimator(ABC):
    """A bank of change-rate estimators, one row of state per page.

    A subclass says what a new row holds (`_new_rows`), how an observation changes it (`_observe`), and how the change
    rate is read from it (`_estimate`). All three take arrays of rows and must treat each row by itself, so that rows
    one by one and an array at once give the same numbers.
    """

    #: Rows of different lengths, for the methods that need every interval.
    _histories: ClassVar[tuple[str, ...]] = ()

    def __init__(self, n_pages: int) -> None:
        self.n_pages = check_n_pages(n_pages)
        self._columns: Columns = self._new_rows(self.n_pages)
        self._intervals = {name: Intervals(self.n_pages) for name in self._histories}

    @abstractmethod
    def _new_rows(self, n: int) -> Columns:
        """Return `n` rows as they are before the first visit."""

    @abstractmethod
    def _observe(self, seen: Observations) -> None:
        """Take one visit to each of some distinct pages into the state."""

    @abstractmethod
    def _estimate(self, pages: IndexArray) -> FloatArray:
        """Return the change rate of each row."""

    def update(
        self,
        pages: npt.ArrayLike,
        elapsed: npt.ArrayLike,
        changed: npt.ArrayLike,
        n_signals: npt.ArrayLike | None = None,
        time_since_modified: npt.ArrayLike | None = None,
    ) -> None:
        """Learn from one visit to each of some distinct pages.

        Parameters
        ----------
        pages : int or array_like of int
            Row numbers, each at most once.
        elapsed : array_like
            Seconds since the visit before, one or one per page; positive.
        changed : array_like of bool
            Whether the page differs from the copy of the visit before, one or one per page.
        n_signals : array_like, optional
            ChangeSignals since the visit before. Ignored unless the class says otherwise.
        time_since_modified : array_like, optional
            Seconds from the page's last modification to this visit, NaN where unknown. Ignored unless the class says
            otherwise.

        Raises
        ------
        ValueError
            If a page is unknown or stands twice, a length differs, or a value is not possible; nothing is changed then.
        """
        self._observe(check_observations(self.n_pages, pages, elapsed, changed, n_signals, time_since_modified))

    def change_rate(self, pages: npt.ArrayLike | None = None) -> Any:
        """Return the changes per second of some pages, all by default: finite and never negative."""
        if pages is None:
            return self._estimate(np.arange(self.n_pages))
        rates = self._estimate(check_rows(pages, self.n_pages))
        return float(rates[0]) if np.ndim(pages) == 0 else rates

    def resize(self, n_pages: int) -> None:
        """Grow to `n_pages` rows; the new ones are as before a first visit."""
        size = check_n_pages(n_pages)
        if size < self.n_pages:
            raise ValueError(f"n_pages must be at least the {self.n_pages} rows there are, got {size}; rows stay.")
        for name, new in self._new_rows(1).items():
            column = self._columns[name] = grown(self._columns[name], size)
            if new.any():
                column[self.n_pages :] = new
        for intervals in self._intervals.values():
            intervals.resize(size)
        self.n_pages = size

    def rows_to_bytes(self, pages: npt.ArrayLike) -> list[bytes]:
        """Return the rows of some pages as bytes for `rows_from_bytes`.

        A row is its columns one after the other (little-endian); then, for each history, its length (int64) and its
        numbers.
        """
        rows = check_rows(pages, self.n_pages)
        self._estimate(rows)  # what some put off until somebody asks
        parts = [_bytes_of(column[rows]) for column in self._columns.values()]
        packed = [b"".join(row) for row in zip(*parts, strict=True)]
        for intervals in self._intervals.values():
            values, lengths = intervals.gather(rows)
            ends = np.cumsum(lengths)
            for row, (end, length) in enumerate(zip(ends.tolist(), lengths.tolist(), strict=True)):
                packed[row] += np.int64(length).tobytes() + values[end - length : end].tobytes()
        return packed

    def rows_from_bytes(self, pages: npt.ArrayLike, packed: Sequence[bytes]) -> None:
        """Read what `rows_to_bytes` gave for distinct pages, into rows without a visit.

        A row of the wrong length raises ValueError, and nothing is changed then.
        """
        rows = check_rows(pages, self.n_pages)
        sizes = {name: column[:1].nbytes if column.shape[0] else 0 for name, column in self._columns.items()}
        fixed, histories = sum(sizes.values()), [_unpacked(row, sum(sizes.values()), self._histories) for row in packed]
        start = 0
        for name, column in self._columns.items():
            joined = b"".join([row[start : start + sizes[name]] for row in packed])
            column[rows] = np.frombuffer(joined, column.dtype).reshape(rows.size, *column.shape[1:])
            start += sizes[name]
        assert start == fixed
        for number, intervals in enumerate(self._intervals.values()):
            for row, history in zip(rows.tolist(), histories, strict=True):
                intervals.extend(row, history[number])


def _bytes_of(column: npt.NDArray[Any]) -> list[bytes]:
    buffer, width = np.ascontiguousarray(column).tobytes(), column[:1].nbytes
    return [buffer[start : start + width] for start in range(0, len(buffer), width)]


def _unpacked(row: bytes, fixed: int, histories: tuple[str, ...]) -> list[FloatArray]:
    """Return the histories behind the columns of a row."""
    found, at = [], fixed
    for _ in histories:
        length = int.from_bytes(row[at : at + 8], "little") if len(row) >= at + 8 else -1
        at += 8 + 8 * length
        found.append(np.frombuffer(row[at - 8 * length : at], np.float64) if 0 <= at <= len(row) else np.empty(0))
    if len(row) != at:
        raise ValueError(f"packed must hold rows of this estimator, got one of {len(row)} bytes.")
    return found
