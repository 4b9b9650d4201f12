"""Further sources: what sources beside its first one announce of a page; a row for each, for such pages only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.change_signals import FurtherRow
from crawlsched.columns.array_types import IndexArray
from crawlsched.columns.growing import grown
from crawlsched.pages import Pages

__all__ = ["COLUMNS", "MOST_SOURCES", "FurtherSources", "Heard"]


#: So many sources count for one page; what others say of it is not heard.
MOST_SOURCES = 8
_NEVER = -np.inf
_MOST_SIGNALS = 0xFFFF
# Name and type of what is kept of a page and a source, as a store holds it: 42 bytes with the link to the next.
COLUMNS: tuple[tuple[str, str], ...] = (
    ("source", "i4"),
    ("n_signals", "u2"),
    ("n_signals_total", "u4"),
    ("signalled_since", "f8"),
    ("n_heard", "u4"),
    ("signalled_at", "f8"),
    ("true_signals", "f4"),
    ("false_signals", "f4"),
)


class Heard(NamedTuple):
    """What one source has announced of a page.

    Attributes
    ----------
    source : int
    n_signals, n_signals_total : int
        Announcements that count, since the last crawl and in all.
    signalled_since : float
        Since when the source names the page, POSIX seconds.
    true_signals, false_signals : float
        Those that visits found to be true and false, beyond what the source counts for; of the page's first source
        `OwnPrecision` knows them.
    n_heard : int
        All its announcements since `since`, also those that counted for another source.
    since : float
        When a second source came to the page, or this one if it came later, POSIX seconds.
    signalled_at : float
        The last announcement, POSIX seconds; -inf: there was none since then.
    row : int
        Row of the table; -1 for the page's first source, whose counts are columns of `Pages`.
    """

    source: int
    n_signals: int
    n_signals_total: int
    signalled_since: float
    true_signals: float
    false_signals: float
    n_heard: int
    since: float
    signalled_at: float
    row: int


class FurtherSources:
    """Rows of pages that more than one source covers, chained from `Pages.further`.

    Parameters
    ----------
    pages : Pages
        Holds the first source of each page.

    Notes
    -----
    The first row of a chain is that of the page's first source; of it only `n_heard` and `signalled_at` count, by which
    announcements of the same change are recognised.

    Examples
    --------
    >>> pages = Pages()
    >>> rows = pages.add(host=np.zeros(2, int), now=0.0)
    >>> further = FurtherSources(pages)
    >>> pages.source[rows] = 5
    >>> further.cover(rows, 6, now=10.0)
    array([0, 1])
    >>> [(heard.source, heard.row, heard.since) for heard in further.of(0)]
    [(5, -1, 10.0), (6, 1, 10.0)]
    """

    source: npt.NDArray[np.int32]
    n_signals: npt.NDArray[np.uint16]
    n_signals_total: npt.NDArray[np.uint32]
    signalled_since: npt.NDArray[np.float64]
    n_heard: npt.NDArray[np.uint32]
    signalled_at: npt.NDArray[np.float64]
    true_signals: npt.NDArray[np.float32]
    false_signals: npt.NDArray[np.float32]

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._n = 0
        self._free: list[int] = []
        self._next: npt.NDArray[np.int32] = np.empty(0, np.int32)
        for name, dtype in COLUMNS:
            setattr(self, name, np.empty(0, dtype))

    def __len__(self) -> int:
        return self._n - len(self._free)

    # -- rows come and go

    def cover(self, pages: IndexArray, source: int, now: float) -> IndexArray:
        """Let a source count for distinct pages that have another first one; return those for which that is new."""
        absent, length = np.ones(pages.size, bool), np.zeros(pages.size, np.intp)
        at = self._pages.further[pages].astype(np.intp) - 1
        while (live := at >= 0).any():
            absent[live] &= self.source[at[live]] != source
            length[live] += 1
            at[live] = self._next[at[live]]
        new: IndexArray = pages[absent & (length < MOST_SOURCES) & (self._pages.source[pages] != source)]
        for page in new.tolist():
            if not self._pages.further.item(page):
                head = self._put(self._pages.source.item(page), 0, 0, now, 0, _NEVER, 0.0, 0.0)
                self._pages.further[page] = head + 1
            self._insert(page, self._put(source, 0, 0, now, 0, _NEVER, 0.0, 0.0))
        return new

    def load(
        self,
        page: int,
        source: int,
        n_signals: int,
        n_total: int,
        since: float,
        n_heard: int,
        at: float | None,
        true: float = 0.0,
        false: float = 0.0,
    ) -> None:
        """Take over a row of a store; that of the page's first source stands there, too."""
        row = self._put(source, n_signals, n_total, since, n_heard, _NEVER if at is None else at, true, false)
        head = self._pages.further.item(page) - 1
        if head < 0 or source == self._pages.source.item(page):
            self._next[row] = head
            self._pages.further[page] = row + 1
        else:
            self._insert(page, row)

    def free(self, pages: IndexArray) -> None:
        """Forget pages."""
        for page in pages[self._pages.further[pages] > 0].tolist():
            self._free.extend(self._rows(page))
            self._pages.further[page] = 0

    def _insert(self, page: int, row: int) -> None:
        head = self._pages.further.item(page) - 1
        self._next[row] = self._next[head]
        self._next[head] = row

    def _put(self, *values: float) -> int:
        """Write the values of `COLUMNS` into a row that is free, and return it."""
        row = self._free.pop() if self._free else self._n
        if row == self._n:
            self._n += 1
        if row >= self.source.size:
            size = max(1024, row + row // 4)
            self._next = grown(self._next, size)
            for name, _ in COLUMNS:
                setattr(self, name, grown(getattr(self, name), size))
        for (name, _), value in zip(COLUMNS, values, strict=True):
            getattr(self, name)[row] = value
        self._next[row] = -1
        return row

    # -- what is known

    def _rows(self, page: int) -> list[int]:
        rows, row = [], self._pages.further.item(page) - 1
        while row >= 0:
            rows.append(row)
            row = self._next.item(row)
        return rows

    def of(self, page: int) -> list[Heard]:
        """Return what each source of a page has announced, its first source first; nothing for a page with only one."""
        rows = self._rows(page)
        return [self._heard(page if place == 0 else -1, row) for place, row in enumerate(rows)]

    def _heard(self, page: int, row: int) -> Heard:
        """Return what a row says; of a page's first source (page -1: another one) the page itself knows what counts."""
        columns: Pages | FurtherSources = self if page < 0 else self._pages
        at = row if page < 0 else page
        return Heard(
            self.source.item(row),
            columns.n_signals.item(at),
            columns.n_signals_total.item(at),
            columns.signalled_since.item(at),
            self.true_signals.item(row),
            self.false_signals.item(row),
            self.n_heard.item(row),
            self.signalled_since.item(row),
            self.signalled_at.item(row),
            row if page < 0 else -1,
        )

    def judge(self, row: int, true: float, false: float) -> None:
        """Note how many announcements of a source and a page visits have found true and false."""
        self.true_signals[row], self.false_signals[row] = true, false

    def everything(self) -> tuple[IndexArray, IndexArray]:
        """Return the rows of all pages' further sources, without those of their first ones, and the page of each."""
        heads = self._pages.further[: self._pages.n]
        page_of = np.full(self._n, -1)
        pages = np.flatnonzero(heads)
        at = self._next[heads[pages].astype(np.intp) - 1].astype(np.intp)
        while (more := at >= 0).any():
            at, pages = at[more], pages[more]
            page_of[at] = pages
            at = self._next[at].astype(np.intp)
        rows = np.flatnonzero(page_of >= 0)
        return rows, page_of[rows]

    def stored(self, pages: IndexArray) -> dict[tuple[int, int], FurtherRow]:
        """Return the rows of some pages as a store keeps them, by page and source."""
        found = {}
        for page in pages[self._pages.further[pages] > 0].tolist():
            for row in self._rows(page):
                at = self.signalled_at.item(row)
                found[page, self.source.item(row)] = (
                    self.n_signals.item(row),
                    self.n_signals_total.item(row),
                    self.signalled_since.item(row),
                    self.n_heard.item(row),
                    None if at == _NEVER else at,
                    self.true_signals.item(row),
                    self.false_signals.item(row),
                )
        return found

    # -- announcements and crawls

    def announced(self, page: int, source: int, at: float) -> None:
        """Note when a source announced a change of a page, whatever it counts for."""
        rows = self._rows(page)
        row = rows[0] if source == self._pages.source.item(page) else self._row(rows, source)
        self.n_heard[row] += 1
        self.signalled_at[row] = at

    def _row(self, rows: list[int], source: int) -> int:
        return next(row for row in rows[1:] if self.source.item(row) == source)

    def count(self, page: int, source: int, by: int) -> None:
        """Count an announcement of a source for a page, or (`by` -1) give it to another source."""
        columns: Pages | FurtherSources
        if source == self._pages.source.item(page):
            columns, row = self._pages, page
        else:
            columns, row = self, self._row(self._rows(page), source)
        n_signals = columns.n_signals.item(row) + by
        if 0 <= n_signals <= _MOST_SIGNALS:
            columns.n_signals[row] = n_signals
            columns.n_signals_total[row] = max(columns.n_signals_total.item(row) + by, 0)

    def crawled(self, page: int) -> None:
        """A visit has seen whatever was announced of a page."""
        for row in self._rows(page):
            self.n_signals[row] = 0
