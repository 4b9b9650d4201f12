"""Some pages and what each is worth as time passes, as straight lines that are drawn anew now and then."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.pages import Pages

__all__ = ["CrawlValues", "ValueLines"]


class CrawlValues(Protocol):
    """What pages are worth now, and when they will reach a level.

    Values are finite, not negative, and do not fall with time until something happens to the page.
    """

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at a time, or each at its own; shape (n,). O(n K), K rates."""

    def reaches(self, pages: IndexArray, level: float | FloatArray, now: float) -> FloatArray:
        """Return about when crawl values reach a level, POSIX seconds; `now` at least, inf: never; O(n K).

        An early time costs another look at the page, a late one leaves the page behind: so guesses are early.
        """


# A value is evaluated again when the time since the crawl has grown by so much; between, it is on a straight line. It
# grows about as the square of that time, so that the line is off by a quarter of a per cent.
_SPAN = 0.1


class ValueLines:
    """Crawl values of some pages, without an order."""

    def __init__(self, columns: Pages, values: CrawlValues) -> None:
        self._columns, self._values = columns, values
        self._n, self._until = 0, np.inf
        self._page: IndexArray = np.zeros(0, np.intp)
        self._host: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        # By page value, slope, the time from which they hold and the time until which they do.
        self._lines: FloatArray = np.zeros((4, 0))

    def __len__(self) -> int:
        return self._n

    @property
    def pages(self) -> IndexArray:
        """The pages; a view. O(1)."""
        return self._page[: self._n]

    @property
    def hosts(self) -> npt.NDArray[np.int32]:
        """Their hosts; a view. O(1)."""
        return self._host[: self._n]

    def of(self, pages: IndexArray, now: float) -> FloatArray:
        """Return lines for pages, for `append`; the first row has what they are worth now. O(n) values."""
        lines: FloatArray = np.zeros((4, pages.size))
        lines[2:], elapsed = now, now - self._columns.crawled_at[pages]
        grows = elapsed < np.inf
        lines[3, ~grows] = np.inf
        lines[3, grows] += _SPAN * elapsed[grows]
        again = np.flatnonzero(grows & (lines[3] > now))
        found = self._values.value_at(
            np.concatenate([pages, pages[again]]), np.concatenate([lines[2], lines[3, again]])
        )
        lines[0] = found[: pages.size]
        lines[1, again] = (found[pages.size :] - lines[0, again]) / (lines[3, again] - now)
        return lines

    def append(self, pages: IndexArray, hosts: npt.NDArray[np.int32], lines: FloatArray) -> None:
        """Put pages in that are not in; amortised O(1) a page."""
        begin, end = self._n, self._n + pages.size
        if end > self._page.size:
            size, longer = end + end // 2, np.zeros((4, end + end // 2))
            longer[:, :begin] = self._lines[:, :begin]
            self._page, self._host, self._lines = np.resize(self._page, size), np.resize(self._host, size), longer
        self._page[begin:end], self._host[begin:end], self._lines[:, begin:end] = pages, hosts, lines
        self._n = end
        self._until = min(self._until, float(lines[3].min(initial=np.inf)))

    def values_at(self, now: float) -> FloatArray:
        """Return what the pages are worth, shape (n,). O(n), and a value for each line that has ended."""
        if now > self._until:
            over = np.flatnonzero(self._lines[3, : self._n] < now)
            self._lines[:, over] = self.of(self._page[over], now)
            self._until = float(self._lines[3, : self._n].min(initial=np.inf))
        value, slope, since, _ = self._lines[:, : self._n]
        values: FloatArray = value + slope * (now - since)
        return values

    def take(self, chosen: BoolArray) -> tuple[IndexArray, npt.NDArray[np.int32], FloatArray]:
        """Take pages out, and return what `append` takes. O(n)."""
        rows, kept = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        taken = self._page[rows], self._host[rows], self._lines[:, rows]
        if rows.size:
            self._n = kept.size
            self._page[: self._n], self._host[: self._n] = self._page[kept], self._host[kept]
            self._lines[:, : self._n] = self._lines[:, kept]
        return taken

    def take_row(self, row: int) -> int:
        """Take one page out, and return it. O(1)."""
        page, last = self._page.item(row), self._n - 1
        self._page[row], self._host[row] = self._page[last], self._host[last]
        self._lines[:, row] = self._lines[:, last]
        self._n = last
        return page
