"""The base of all change-rate estimators: each page is a row of numpy arrays instead of a Python object."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.estimators.observations import Observations, check_n_pages, check_observations, check_rows

__all__ = ["Estimator", "Intervals", "sums"]


class Intervals:
    """Growing rows of numbers, stored in one array; each row is contiguous.

    A full row is copied to the end of the array, where it gets twice the room. So appending takes constant time on
    average. After it has grown, at least an eighth of the array is in use.
    """

    def __init__(self, n_rows: int) -> None:
        self.length: IndexArray = np.zeros(n_rows, dtype=np.intp)
        self._room: IndexArray = np.zeros(n_rows, dtype=np.intp)
        self._start: IndexArray = np.zeros(n_rows, dtype=np.intp)
        self._pool: FloatArray = np.zeros(64)
        self._used = 0

    def append(self, rows: IndexArray, values: FloatArray) -> None:
        """Append one value to each of these rows; no row may be given twice."""
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
        """Return the values of some rows one after the other, and the number of values in each row."""
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
    """Return the sum of each row's values, 0 for an empty row. Other rows do not change how a sum is rounded."""
    total = np.zeros(lengths.size)
    filled = np.flatnonzero(lengths)
    if filled.size:
        starts = np.cumsum(lengths[filled]) - lengths[filled]
        total[filled] = np.add.reduceat(values, starts)
    return total


Columns = dict[str, npt.NDArray[Any]]


class Estimator(ABC):
    """A bank of change-rate estimators, one row of state per page.

    A subclass defines what a new row contains (`_new_rows`), how an observation changes it (`_observe`), and how the
    change rate is read from it (`_estimate`). All three work on several rows together. They must treat each row by
    itself, so that its numbers do not depend on the other rows.
    """

    #: Whether each row stores intervals between visits, for estimators that need more than sums.
    _keeps_intervals: ClassVar[bool] = False

    def __init__(self, n_pages: int) -> None:
        self.n_pages = check_n_pages(n_pages)
        self._columns: Columns = self._new_rows(self.n_pages)
        self._intervals = Intervals(self.n_pages if self._keeps_intervals else 0)

    @abstractmethod
    def _new_rows(self, n: int) -> Columns:
        """Return `n` rows as they are before the first visit."""

    @abstractmethod
    def _observe(self, seen: Observations) -> None:
        """Update the state with one visit to each of some distinct pages."""

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
            Seconds since the previous visit, positive; one number, or one per page.
        changed : array_like of bool
            Whether the page differs from the copy of the previous visit; one value, or one per page.
        n_signals : array_like, optional
            Number of ChangeSignals since the previous visit. Ignored unless the class says otherwise.
        time_since_modified : array_like, optional
            Seconds from the page's last modification to this visit, NaN where unknown. Ignored unless the class says
            otherwise.

        Raises
        ------
        ValueError
            If a page is unknown or named twice, a length differs, or a value is impossible. Nothing is changed then.
        """
        self._observe(check_observations(self.n_pages, pages, elapsed, changed, n_signals, time_since_modified))

    def change_rate(self, pages: npt.ArrayLike | None = None) -> Any:
        """Return the changes per second of some pages, all by default: finite and never negative."""
        return self._of(pages, self._estimate)

    def _of(self, pages: npt.ArrayLike | None, read: Callable[[IndexArray], Any]) -> Any:
        """Return the estimates of some rows, all by default. For a single row the result has no axis of rows."""
        found = read(np.arange(self.n_pages) if pages is None else check_rows(pages, self.n_pages))
        if pages is None or np.ndim(pages):
            return found
        return found.item() if found.ndim == 1 else found[0]

    def resize(self, n_pages: int) -> None:
        """Grow to `n_pages` rows; new rows have the state before a first visit."""
        size = check_n_pages(n_pages)
        if size < self.n_pages:
            raise ValueError(f"n_pages must be at least the {self.n_pages} rows there are, got {size}; no row can go.")
        for name, new in self._new_rows(1).items():
            column = self._columns[name] = grown(self._columns[name], size)
            if new.any():
                column[self.n_pages :] = new
        if self._keeps_intervals:
            self._intervals.resize(size)
        self.n_pages = size

    def rows_to_bytes(self, pages: npt.ArrayLike) -> list[bytes]:
        """Return the rows of some pages as bytes for `rows_from_bytes`.

        A row has the values of its columns (little-endian), followed by its stored intervals.
        """
        rows = check_rows(pages, self.n_pages)
        self._estimate(rows)  # brings stored estimates up to date
        parts = [_bytes_of(column[rows]) for column in self._columns.values()]
        packed = [b"".join(row) for row in zip(*parts, strict=True)]
        if self._keeps_intervals:
            values, lengths = self._intervals.gather(rows)
            kept = np.split(values, np.cumsum(lengths)[:-1])
            packed = [row + some.tobytes() for row, some in zip(packed, kept, strict=True)]
        return packed

    def rows_from_bytes(self, pages: npt.ArrayLike, packed: Sequence[bytes]) -> None:
        """Replace the state of distinct pages with rows that `rows_to_bytes` returned.

        A row of the wrong length raises ValueError, and nothing is changed then.
        """
        rows = check_rows(pages, self.n_pages)
        sizes = {name: column[:1].nbytes for name, column in self._columns.items()}
        fixed = sum(sizes.values())
        for row in packed:
            more = len(row) - fixed
            if more and not (self._keeps_intervals and more > 0 and more % 8 == 0):
                raise ValueError(f"packed must hold rows of this estimator, got one of {len(row)} bytes.")
        start = 0
        for name, column in self._columns.items():
            joined = b"".join([row[start : start + sizes[name]] for row in packed])
            column[rows] = np.frombuffer(joined, column.dtype).reshape(rows.size, *column.shape[1:])
            start += sizes[name]
        if self._keeps_intervals:
            self._intervals.length[rows] = 0
            for number, row in zip(rows.tolist(), packed, strict=True):
                self._intervals.extend(number, np.frombuffer(row[fixed:]))


def _bytes_of(column: npt.NDArray[Any]) -> list[bytes]:
    buffer, width = np.ascontiguousarray(column).tobytes(), column[:1].nbytes
    return [buffer[start : start + width] for start in range(0, len(buffer), width)]
