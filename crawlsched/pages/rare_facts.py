"""Rare facts: what few pages have, or what many pages share, in rows that they refer to."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import LevelArray
from crawlsched.columns.growing import NumberColumn, grown

__all__ = ["Facts", "RareColumn", "RareFacts"]


# So many of the facts given last are remembered, so that who comes next with the same can share the row.
_REMEMBERED = 4096


class Facts(NamedTuple):
    """The facts of a row; by default those of pages without any."""

    signalled_since: float = np.nan  # when a source first covered the page, POSIX seconds; nan: none does
    first_seen: float = np.nan  # when a page became known, POSIX seconds; nan: it was crawled, and may be of any age
    not_before: float = 0.0  # not to be visited earlier, POSIX seconds; 0: no such limit
    n_errors: int = 0  # visits in a row which did not reach content

    @property
    def differ_after_a_visit(self) -> bool:
        """Whether a visit that reaches the page changes these facts."""
        return self.first_seen == self.first_seen or self.not_before != 0.0 or self.n_errors != 0


_NONE = Facts()
_TYPES = ("f8", "f8", "f8", "u1")
_Key = tuple[float | None, ...]


class RareFacts:
    """Rows of `Facts`, each used by any number of pages; row 0 is that of pages with nothing to say.

    Notes
    -----
    A row is never changed while a page uses it: a page for which something else becomes true gets another one. Fifty
    thousand pages that a sitemap named at once share one row, and a page that failed has one to itself (29 bytes)
    until it is reached again.

    Examples
    --------
    >>> rare = RareFacts()
    >>> row = rare.give(Facts(first_seen=100.0), n=2)
    >>> row, rare.give(Facts(first_seen=100.0)), rare.give(Facts())
    (1, 1, 0)
    >>> rare.take_back(np.array([1, 1, 1]))
    >>> len(rare)
    0
    """

    def __init__(self) -> None:
        self.columns: dict[str, npt.NDArray[Any]] = {
            name: np.full(1, value, dtype) for name, value, dtype in zip(Facts._fields, _NONE, _TYPES, strict=True)
        }
        self._users: npt.NDArray[np.uint32] = np.zeros(1, np.uint32)
        self._free = array("I")
        self._n = 1
        self._row_of: dict[_Key, int] = {}
        self._key_of: dict[int, _Key] = {}

    def __len__(self) -> int:
        return self._n - 1 - len(self._free)

    def facts(self, row: int) -> Facts:
        """Return the facts of a row."""
        return Facts(*[column.item(row) for column in self.columns.values()])

    def give(self, facts: Facts, n: int = 1) -> int:
        """Return a row with these facts, used by `n` more pages; O(1)."""
        key = _key(facts)
        if key == _NO_KEY or not n:
            return 0
        row = self._row_of.get(key)
        if row is None:
            row = self._new_rows(1).item(0)
            for name, value in zip(Facts._fields, facts, strict=True):
                self.columns[name][row] = value
            self._remember(key, row)
        self._users[row] += n
        return row

    def give_many(self, columns: dict[str, npt.NDArray[Any]]) -> LevelArray:
        """Return rows for pages with these facts, by name; equal ones share theirs. O(n log n)."""
        bits = np.stack([_bits(columns[name]) for name in Facts._fields])
        rows = np.zeros(bits.shape[1], np.int32)
        some = np.flatnonzero((bits != _NO_BITS[:, np.newaxis]).any(axis=0))
        order = some[np.lexsort(bits[:, some])]
        ordered = bits[:, order]
        first = np.ones(order.size, bool)
        first[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
        heads = order[first]
        users = np.diff(np.flatnonzero(first), append=order.size)
        if heads.size <= _REMEMBERED // 4:
            given = [
                self.give(Facts(*[columns[name][head].item() for name in Facts._fields]), n)
                for head, n in zip(heads.tolist(), users.tolist(), strict=True)
            ]
            distinct = np.array(given, np.int32)
        else:
            distinct = self._new_rows(heads.size)
            for name in Facts._fields:
                self.columns[name][distinct] = columns[name][heads]
            self._users[distinct] = users
        rows[order] = distinct[np.cumsum(first) - 1]
        return rows

    def take_back(self, rows: npt.NDArray[np.integer]) -> None:
        """Take rows back from as many pages; O(n log n)."""
        used, n = np.unique(rows[rows > 0], return_counts=True)
        self._users[used] -= n.astype(np.uint32)
        for row in used[self._users[used] == 0].tolist():
            self._forget(row)

    def take_back_one(self, row: int) -> None:
        """Take a row back from one page; O(1)."""
        if row:
            users = self._users.item(row) - 1
            self._users[row] = users
            if not users:
                self._forget(row)

    def _forget(self, row: int) -> None:
        self._free.append(row)
        key = self._key_of.pop(row, None)
        if key is not None:
            del self._row_of[key]

    def _remember(self, key: _Key, row: int) -> None:
        if len(self._row_of) >= _REMEMBERED:
            self._row_of.clear()
            self._key_of.clear()
        self._row_of[key], self._key_of[row] = row, key

    def _new_rows(self, n: int) -> npt.NDArray[np.int32]:
        again = min(n, len(self._free))
        rows = np.arange(self._n - again, self._n - again + n, dtype=np.int32)
        if again:
            rows[:again] = self._free[-again:]
            del self._free[-again:]
        self._n += n - again
        if self._n > self._users.size:
            size = max(self._n + self._n // 4, 64)
            self._users = grown(self._users, size)
            for name, column in self.columns.items():
                self.columns[name] = grown(column, size)
        return rows


class RareColumn:
    """One of the facts as if it were a column of all pages: read by row numbers, a mask or a slice, and set by them."""

    def __init__(
        self,
        name: str,
        facts: RareFacts,
        rows: Callable[[], NumberColumn],
        change: Callable[[Any, str, Any], None],
    ) -> None:
        self._name = name
        self._facts = facts
        self._rows = rows
        self._change = change

    def __getitem__(self, pages: Any) -> Any:
        return self._facts.columns[self._name][self._rows()[pages]]

    def __setitem__(self, pages: Any, values: Any) -> None:
        self._change(pages, self._name, values)

    def item(self, page: int) -> Any:
        """Return the value of one page as a Python number."""
        return self._facts.columns[self._name].item(self._rows().item(page))


def _key(facts: Facts) -> _Key:
    # Two nan are never equal, so that a row with one would never be found again.
    return tuple([None if value != value else value for value in facts])


_NO_KEY = _key(_NONE)


def _bits(column: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    numbers = np.array(column, np.float64)
    numbers[np.isnan(numbers)] = np.nan
    numbers += 0.0  # no negative zeros
    return numbers.view(np.int64)


_NO_BITS = _bits(np.array(_NONE, np.float64))
