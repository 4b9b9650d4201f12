"""Candidates: the due pages of one queue, and the level of crawl value at which pages are due."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.pages import Pages

__all__ = ["ENOUGH", "Candidates", "CrawlValues", "ValueLines"]


class CrawlValues(Protocol):
    """What pages are worth now, and when they will reach a level.

    Values are finite, not negative, and do not fall with time until something happens to the page.
    """

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at one time, or at a time for each page; shape (n,). O(n K) for K rates."""

    def values_and_slopes(self, pages: IndexArray, now: float) -> tuple[FloatArray, FloatArray]:
        """Return the crawl values of pages, and by how much they grow in a second; shapes (n,). O(n K)."""

    def reaches(self, pages: IndexArray, levels: FloatArray, now: float) -> FloatArray:
        """Estimate when crawl values reach levels, in POSIX seconds, `now` or later; inf: never. O(n K).

        `levels` and the result have the shape (m, n): a column for each page, with ascending levels. If a time is too
        early, the page is only evaluated once more. If it is too late, the crawl is late. So the estimate has to be too
        early rather than too late. In each column only the times until the first one after `now` have to be good.
        """


# A crawl value is computed anew when the time since the crawl has grown by this share. Until then the value follows its
# tangent. Real values grow about as the square of the time since the crawl, so the tangent is off by about a tenth of a
# per cent in the end.
_SPAN = 0.03


class ValueLines:
    """The crawl values of some pages, in no order; each value follows a straight line in time, its tangent."""

    def __init__(self, columns: Pages, values: CrawlValues) -> None:
        self._columns, self._values = columns, values
        self._n, self._until, self._at = 0, np.inf, np.nan  # `_at` is the time of the last values, if they still hold
        self._page: IndexArray = np.zeros(0, np.intp)
        self._host: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        # Each column is a page. The rows are the value of the line at time 0, its slope, the time at which it ends, and
        # its value at the last call of `values_at`.
        self._lines: FloatArray = np.zeros((4, 0))

    def __len__(self) -> int:
        return self._n

    @property
    def pages(self) -> IndexArray:
        """The pages; a view. O(1)."""
        return self._page[: self._n]

    @property
    def hosts(self) -> npt.NDArray[np.int32]:
        """The hosts of the pages; a view. O(1)."""
        return self._host[: self._n]

    @property
    def lines(self) -> FloatArray:
        """The lines of the pages, as `append` takes them; the last row has the last `values_at`. A view. O(1)."""
        return self._lines[:, : self._n]

    def of(self, pages: IndexArray, now: float) -> FloatArray:
        """Return the straight lines of pages, for `append`. O(n) values."""
        value, slope = self._values.values_and_slopes(pages, now)
        elapsed = now - self._columns.crawled_at[pages]
        end = np.where(elapsed < np.inf, now + _SPAN * elapsed, np.inf)
        return np.stack([value - slope * now, slope, end, value])

    def append(self, pages: IndexArray, hosts: npt.NDArray[np.int32], lines: FloatArray) -> None:
        """Add pages that were not added before; amortised O(1) a page."""
        begin, end = self._n, self._n + pages.size
        if end > self._page.size:
            size, longer = end + end // 2, np.zeros((4, end + end // 2))
            longer[:, :begin] = self._lines[:, :begin]
            self._page, self._host, self._lines = np.resize(self._page, size), np.resize(self._host, size), longer
        self._page[begin:end], self._host[begin:end], self._lines[:, begin:end] = pages, hosts, lines
        self._n, self._at = end, np.nan
        self._until = min(self._until, float(lines[2].min(initial=np.inf)))

    def values_at(self, now: float, ahead: float = 0.0) -> FloatArray:
        """Return the values `ahead` seconds after `now`, a view; begin new lines where lines have ended. O(n)."""
        if now > self._until:  # one value takes about as long as several, so lines that end soon are begun anew, too
            over = np.flatnonzero(self.lines[2] < now + 0.25 * _SPAN * (now - self._columns.crawled_at[self.pages]))
            self._lines[:, over] = self.of(self._page[over], now)
            self._until = float(self.lines[2].min(initial=np.inf))
        values: FloatArray = self.lines[3]
        if now + ahead != self._at:  # a tick that uses several slots asks for the same time again
            self._at = now + ahead
            np.add(self.lines[0], self.lines[1] * self._at, out=values)
        return values

    def take(self, chosen: BoolArray) -> tuple[IndexArray, npt.NDArray[np.int32], FloatArray]:
        """Take out the chosen pages, and return them as the arguments of `append`. O(n)."""
        rows = chosen.nonzero()[0]
        taken = self._page[rows], self._host[rows], self._lines[:, rows]
        self._n -= rows.size
        gaps, last = rows[rows < self._n], self._n + (~chosen[self._n :]).nonzero()[0]
        self._page[gaps], self._host[gaps] = self._page[last], self._host[last]
        self._lines[:, gaps] = self._lines[:, last]
        return taken

    def take_row(self, row: int) -> None:
        """Take one page out. O(1)."""
        self._n -= 1
        self._page[row], self._host[row] = self._page[self._n], self._host[self._n]
        self._lines[:, row] = self._lines[:, self._n]


#: A page becomes a candidate if it is worth at least this share of the level. Due times are not more exact than that.
ENOUGH = 0.95


class Candidates:
    """The candidates of one queue, and the level that they have to reach.

    Candidates whose hosts rest are set aside. A host gets a higher level of its own if it has more due pages than may
    be requested from it.
    """

    def __init__(self, pages: Pages, values: CrawlValues) -> None:
        self._columns, self._values = pages, values
        self.level = 0.0  # pages are due when their crawl value reaches this
        self.host_levels: dict[int, float] = {}
        # The candidates whose hosts do not rest, and the candidates of each resting host.
        self.going = ValueLines(pages, values)
        self.aside: dict[int, ValueLines] = {}
        self.n_aside = 0
        self._best_row = 0  # of the best candidate, which is usually the next to leave
        self.crawled_by = np.inf  # a page that was crawled after this time is not picked yet

    def levels(self, hosts: npt.NDArray[Any]) -> FloatArray:
        """Return the level of each host. O(n)."""
        if not self.host_levels:
            return np.full(hosts.size, self.level)
        own = np.array([self.host_levels.get(host, 0.0) for host in hosts.tolist()])
        higher: FloatArray = np.maximum(own, self.level)
        return higher

    def add(
        self, pages: IndexArray, now: float, until: float, resting: Container[int]
    ) -> tuple[IndexArray, dict[int, IndexArray]]:
        """Add pages that are worth enough by `until`; return the others, and the pages set aside of each host. O(n)."""
        lines, hosts = self.going.of(pages, now), self._columns.host[pages]
        enough = lines[0] + lines[1] * until >= ENOUGH * self.levels(hosts)
        self.going.append(pages[enough], hosts[enough], lines[:, enough])
        return pages[~enough], {host: self.rest(host) for host in set(hosts[enough].tolist()) if host in resting}

    def highest(self, now: float) -> float:
        """Return the value of the best candidate, even if its host is not free; -inf: no candidate. O(candidates)."""
        best = self.best(now, lambda host: True)
        return -np.inf if best is None else best[1]

    def best(self, now: float, is_free: Callable[[int], bool]) -> tuple[int, float] | None:
        """Return the best candidate and its value; of equal candidates, the lowest page. O(candidates).

        ``is_free(host)`` returns whether a host may be asked. If the host may not be asked, the call lets it rest.
        """
        values = self.going.values_at(now)
        while values.size:
            row = int(values.argmax())
            if (value := values.item(row)) == -np.inf:
                return None
            if np.count_nonzero(equal := values == value) > 1:
                row = int(np.where(equal, self.going.pages, np.inf).argmin())
            page = self.going.pages.item(row)
            if self._columns.crawled_at.item(page) > self.crawled_by:
                values = np.where(self._columns.crawled_at[self.going.pages] > self.crawled_by, -np.inf, values)
            elif is_free(self.going.hosts.item(row)):
                self._best_row = row
                return page, value
            else:
                values = self.going.lines[3]  # without the pages of the host, which rests now
        return None

    def raise_level(self, now: float, until: float, host: int | None = None) -> IndexArray:
        """Raise the level, or the level of a resting host, to the median value of the candidates.

        Take out and return the candidates that will still be below the level at `until`. O(candidates).
        """
        lines = self.going if host is None else self.aside[host]
        values = lines.values_at(now)
        if host is None:
            level = self.level = max(self.level, float(np.median(values)))
        else:
            level = self.host_levels[host] = max(self.host_levels.get(host, self.level), float(np.median(values)))
        below = lines.take(lines.values_at(now, until - now) < level)[0]
        self.n_aside -= 0 if host is None else below.size
        return below

    def rest(self, host: int) -> IndexArray:
        """Set a host's candidates aside, and return them. O(candidates)."""
        chosen = self.going.hosts == host
        if not np.count_nonzero(chosen):
            return np.zeros(0, np.intp)
        taken = self.going.take(chosen)
        self.aside.setdefault(host, ValueLines(self._columns, self._values)).append(*taken)
        self.n_aside += taken[0].size
        return taken[0]

    def returns(self, host: int) -> IndexArray:
        """Let a host's candidates take part again, and return them. O(candidates of the host)."""
        waiting = self.aside.pop(host, None)
        if waiting is None:
            return np.zeros(0, np.intp)
        self.n_aside -= len(waiting)
        self.going.append(waiting.pages, waiting.hosts, waiting.lines)
        return waiting.pages

    def discard(self, page: int) -> None:
        """Take out a page that is a candidate. O(candidates)."""
        if self._best_row < len(self.going) and self.going.pages.item(self._best_row) == page:
            self.going.take_row(self._best_row)
            return
        lines = self.aside.get(self._columns.host.item(page), self.going)
        lines.take_row((lines.pages == page).nonzero()[0].item(0))
        self.n_aside -= lines is not self.going
