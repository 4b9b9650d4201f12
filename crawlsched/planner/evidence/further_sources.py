"""Further sources: announcements of pages that several sources cover, with a row for each page and source."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crawlsched.change_signals import FurtherRow
from crawlsched.columns.array_types import IndexArray
from crawlsched.columns.growing import grown
from crawlsched.pages import Pages

__all__ = ["MOST_SIGNALS", "MOST_SOURCES", "FurtherSources", "SourceSignals"]


#: At most this number of sources count for a page. Announcements of other sources are ignored.
MOST_SOURCES = 8
_NEVER = -np.inf
# A row has the columns that a store has for a page and a source, and the number of the page's next row (-1: none). It
# takes 42 bytes.
_ROW = np.dtype(
    [
        ("source", "i4"),
        ("n_signals", "u2"),
        ("n_signals_total", "u4"),
        ("signalled_since", "f8"),
        ("n_heard", "u4"),
        ("signalled_at", "f8"),
        ("true_signals", "f4"),
        ("false_signals", "f4"),
        ("next", "i4"),
    ]
)
#: At most this number of announcements since a visit are counted.
MOST_SIGNALS = int(np.iinfo(_ROW["n_signals"]).max)


class SourceSignals(NamedTuple):
    """The announcements of a page by one source.

    Attributes
    ----------
    true_signals, false_signals : float
        Announcements that visits found true and false, without the prior of the source. For the first source of a page
        they are in `OwnPrecision`.
    """

    source: int
    n_signals: int  # counted announcements since the last crawl; `n_signals_total`: all counted announcements
    n_signals_total: int
    signalled_since: float  # time since which the source names the page, POSIX seconds
    true_signals: float
    false_signals: float
    n_heard: int  # announcements after `since`, including those counted for another source
    since: float  # when the page first had both this source and another source, POSIX seconds
    signalled_at: float  # time of the last announcement after `since`, POSIX seconds; -inf: none
    row: int  # row of the table; for the first source of the page, the counts are columns of `Pages`


class FurtherSources:
    """Rows of pages that more than one source covers, chained from `Pages.further`.

    Notes
    -----
    The first row of a chain belongs to the page's first source. Only `n_heard` and `signalled_at` of this row are used.
    They show whether two announcements are of the same change.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._n = 0
        self._free: list[int] = []
        self.table = np.zeros(0, _ROW)

    def __len__(self) -> int:
        return self._n - len(self._free)

    # -- rows are added and removed

    def cover(self, pages: IndexArray, source: int, now: float) -> IndexArray:
        """Add a further source to distinct pages; return the pages that lacked this source."""
        absent, length = np.ones(pages.size, bool), np.zeros(pages.size, np.intp)
        at = self._pages.further[pages].astype(np.intp) - 1
        while (live := at >= 0).any():
            absent[live] &= self.table["source"][at[live]] != source
            length[live] += 1
            at[live] = self.table["next"][at[live]]
        new: IndexArray = pages[absent & (length < MOST_SOURCES) & (self._pages.source[pages] != source)]
        for page in new.tolist():
            if not self._pages.further.item(page):
                self.load(page, self._pages.source.item(page), 0, 0, now, 0, None, 0.0, 0.0)
            self.load(page, source, 0, 0, now, 0, None, 0.0, 0.0)
        return new

    def load(self, page: int, source: int, *columns: *FurtherRow) -> None:
        """Load a row from a store. The store also has a row for the page's first source."""
        n_signals, n_total, since, n_heard, at, true, false = columns
        row = self._free.pop() if self._free else self._n
        if row == self._n:
            self._n += 1
        if row >= self.table.size:
            self.table = grown(self.table, max(1024, row + row // 4))
        head = self._pages.further.item(page) - 1
        leads = head < 0 or source == self._pages.source.item(page)
        following = head if leads else self.table["next"].item(head)
        last = _NEVER if at is None else at
        self.table[row] = source, n_signals, n_total, since, n_heard, last, true, false, following
        if leads:
            self._pages.further[page] = row + 1
        else:
            self.table["next"][head] = row

    def free(self, pages: IndexArray) -> None:
        """Forget pages."""
        for page in pages[self._pages.further[pages] > 0].tolist():
            self._free.extend(self._rows(page))
            self._pages.further[page] = 0

    # -- what is known

    def _rows(self, page: int) -> list[int]:
        rows, row = [], self._pages.further.item(page) - 1
        while row >= 0:
            rows.append(row)
            row = self.table["next"].item(row)
        return rows

    def of(self, page: int) -> list[SourceSignals]:
        """Return a page's announcements by source, the first source first; empty if the page has a single source."""
        found = []
        for place, row in enumerate(self._rows(page)):
            source, n_signals, n_total, since, n_heard, at, true, false, _ = self.table[row].item()
            named_since = since
            if place == 0:  # the counts of the first source are columns of `Pages`
                columns = self._pages
                n_signals, n_total = columns.n_signals.item(page), columns.n_signals_total.item(page)
                named_since = columns.signalled_since.item(page)
            found.append(SourceSignals(source, n_signals, n_total, named_since, true, false, n_heard, since, at, row))
        return found

    def judge(self, row: int, counts: tuple[float, float]) -> None:
        """Store how many announcements of a page by a source were true and how many false, as visits found."""
        self.table["true_signals"][row], self.table["false_signals"][row] = counts

    def everything(self) -> tuple[IndexArray, IndexArray]:
        """Return all rows of further sources, without the rows of first sources, and the page of each row."""
        heads = self._pages.further[: self._pages.n]
        page_of = np.full(self._n, -1)
        pages = np.flatnonzero(heads)
        following = self.table["next"]
        at = following[heads[pages].astype(np.intp) - 1].astype(np.intp)
        while (more := at >= 0).any():
            at, pages = at[more], pages[more]
            page_of[at] = pages
            at = following[at].astype(np.intp)
        rows = np.flatnonzero(page_of >= 0)
        return rows, page_of[rows]

    def stored(self, pages: IndexArray) -> dict[tuple[int, int], FurtherRow]:
        """Return the rows of some pages, by page and source, with the values that a store has."""
        found: dict[tuple[int, int], FurtherRow] = {}
        for page in pages[self._pages.further[pages] > 0].tolist():
            for row in self._rows(page):
                source, n_signals, n_total, since, n_heard, at, true, false, _ = self.table[row].item()
                last = None if at == _NEVER else at
                found[page, source] = n_signals, n_total, since, n_heard, last, true, false
        return found

    # -- announcements and crawls

    def announced(self, page: int, source: int, at: float) -> None:
        """Store when a source announced a change of a page, even if the announcement does not count."""
        rows = self._rows(page)
        row = rows[0] if source == self._pages.source.item(page) else self._row(rows, source)
        self.table["n_heard"][row] += 1
        self.table["signalled_at"][row] = at

    def _row(self, rows: list[int], source: int) -> int:
        return next(row for row in rows[1:] if self.table["source"].item(row) == source)

    def count(self, page: int, source: int, by: int) -> None:
        """Count an announcement of a page by a source; if `by` is -1, subtract it."""
        columns: tuple[Any, Any, int] = self._pages.n_signals, self._pages.n_signals_total, page
        if source != self._pages.source.item(page):
            columns = self.table["n_signals"], self.table["n_signals_total"], self._row(self._rows(page), source)
        counts, total, row = columns
        n_signals = counts.item(row) + by
        if 0 <= n_signals <= MOST_SIGNALS:
            counts[row] = n_signals
            total[row] = max(total.item(row) + by, 0)

    def crawled(self, page: int) -> None:
        """Clear the announcements of a page, since a visit has seen what they announced."""
        for row in self._rows(page):
            self.table["n_signals"][row] = 0
