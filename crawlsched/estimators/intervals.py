"""Intervals between visits, as many per page as there were: rows of different lengths in one array."""

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["Intervals", "sums"]


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
