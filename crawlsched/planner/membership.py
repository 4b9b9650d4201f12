"""Membership: pages come, from a site or from a store, and are forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.change_signals import FurtherRow
from crawlsched.columns.array_types import IndexArray
from crawlsched.pages import FREE
from crawlsched.planner.knowledge import Knowledge

__all__ = ["Membership"]

# What an estimator learns from.
_VISIT_COLUMNS = ("page", "elapsed", "changed", "n_signals", "time_since_modified")


class Membership:
    """Take pages in, and let them go.

    Parameters
    ----------
    known : Knowledge

    Attributes
    ----------
    clipped : int
        Loaded pages whose last crawl was in the future.
    """

    def __init__(self, known: Knowledge) -> None:
        self._known = known
        self.clipped = 0

    def reserve(self, n_pages: int) -> None:
        """Make room for so many pages at once, so that no memory is lost to growing; O(n)."""
        self._known.pages.reserve(n_pages)
        if self._known.posterior.n_pages < n_pages:
            self._known.posterior.resize(n_pages)
            self._grow()
        if self._known.frontier_or_none is not None:
            self._known.frontier_or_none.reserve(n_pages)

    def _grow(self) -> None:
        rows = self._known.posterior.n_pages
        if rows < self._known.pages.n:
            self._known.posterior.resize(max(self._known.pages.n, rows + rows // 8))
        if self._known.learned is not None and self._known.learned.n_pages < self._known.posterior.n_pages:
            self._known.learned.resize(self._known.posterior.n_pages)

    def add(
        self,
        host: npt.ArrayLike,
        now: float,
        importance: npt.ArrayLike = 1.0,
        n: int | None = None,
        part: npt.ArrayLike = 0,
        interval_rules: npt.NDArray[np.uint8] | None = None,
        priority: Sequence[int] = (),
    ) -> IndexArray:
        """Take in new pages; O(log n) a page.

        Parameters
        ----------
        host : int or array_like of int
            Row number of each page's host.
        now : float
            POSIX seconds.
        importance : float or array_like of float
            Weight of a fresh copy.
        n : int, optional
            How many pages, where neither of these is an array.
        part : int or array_like of int
            Part of its site that each page is in (`crawlsched.change_signals.part_number`).
        interval_rules : ndarray of uint8, optional
            By which of its rules each page has its crawl intervals; 0: by none.
        priority : sequence of int
            Priorities of the requests by which pages were found: the highest get their first copies first.

        Returns
        -------
        ndarray of int
            The new pages.
        """
        now = self._known.at(now)
        pages = self._known.pages.add(host, now, importance, n, part)
        if interval_rules is not None:
            self._known.intervals.put(pages, interval_rules)
        self._grow()
        for page, asked in zip(pages.tolist(), priority, strict=False):
            if asked:
                self.set_priority(page, asked, now)
        self._known.file(pages, now)
        return pages

    def set_priority(self, page: int, priority: int, now: float) -> None:
        """Say which priority the request for a page has: by that it waits for its first copy. O(log n)."""
        self._known.at(now)
        self._known.frontier.reserve(page + 1)
        self._known.frontier.new.set_priority(page, priority)
        self._known.refile(np.array([page]), now)

    def load(
        self, columns: dict[str, npt.NDArray[np.generic]], log_likelihood: npt.NDArray[np.uint16] | None, now: float
    ) -> None:
        """Take in pages from a store, block by block; O(log n) a page.

        Parameters
        ----------
        columns : dict of ndarray, shape (n,)
            ``page`` and the columns of `Pages`; others are ignored, but ``has_log_likelihood``, where it stands, says
            which rows of `log_likelihood` count.
        log_likelihood : ndarray of uint16, shape (n, K), optional
            Compact rows of the posterior.
        now : float
            POSIX seconds; a last crawl later than that is set to it, and counted in `clipped`.
        """
        now = self._known.at(now)
        pages = np.asarray(columns["page"], np.intp)
        # Numbers of rows that another planner has given out; `load_further` brings what they stand for.
        known = {name: column for name, column in columns.items() if name != "further"}
        if "first_seen" in known and "crawled_at" in known:
            # Of a page that was crawled nothing depends any more on when it became known.
            found = np.asarray(known["first_seen"], float)
            known["first_seen"] = np.where(np.asarray(known["crawled_at"]) > -np.inf, np.nan, found)
        self._known.pages.set_rows(pages, known)
        self._known.own_precision.load(pages, columns)
        self._grow()
        future = pages[self._known.pages.crawled_at[pages] > now]
        self.clipped += future.size
        self._known.pages.crawled_at[future] = now
        if log_likelihood is not None:
            chosen = np.asarray(columns.get("has_log_likelihood", np.ones(pages.size, bool)), bool)
            self._known.posterior.unpack(pages[chosen], log_likelihood[chosen])
        filed = pages[self._known.pages.state[pages] != FREE]
        self._known.file(filed, now)

    def load_learned(self, pages: IndexArray, rows: Sequence[bytes], now: float) -> None:
        """Take in from a store what the estimator knew of pages, once they are there."""
        assert self._known.learned is not None
        self._known.learned.unpack(pages, rows)
        self._known.refile(pages, self._known.at(now))

    def relearn(self, visits: Mapping[str, npt.NDArray[Any]], now: float) -> None:
        """Learn once more from the visits that are kept of pages, by an estimator that does not know them yet.

        Parameters
        ----------
        visits : mapping of str to ndarray
            ``page``, ``elapsed``, ``changed``, ``n_signals`` and ``time_since_modified`` (nan: not known), the visits
            of each page in their order.
        now : float
            POSIX seconds.
        """
        assert self._known.learned is not None
        order = np.argsort(visits["page"], kind="stable")
        columns = {name: column[order] for name, column in visits.items()}
        pages, starts, counts = np.unique(columns["page"], return_index=True, return_counts=True)
        # The first visits of all pages, then the second ones, and so on.
        for number in range(int(counts.max(initial=0))):
            at = starts[counts > number] + number
            page, *told = (columns[name][at] for name in _VISIT_COLUMNS)
            self._known.learned.observe(page, *told)
        self._known.refile(pages.astype(np.intp), self._known.at(now))

    def load_further(self, rows: Iterable[tuple[int, int, *FurtherRow]], now: float) -> None:
        """Take in from a store what several sources say of the same pages, once the pages are there."""
        loaded = set()
        for row in rows:
            page = row[0]
            if page < self._known.pages.n and self._known.pages.state.item(page) != FREE:
                self._known.further.load(*row)
                loaded.add(page)
        if loaded:
            self._known.refile(np.array(sorted(loaded), np.intp), self._known.at(now))

    def remove(self, pages: npt.ArrayLike) -> None:
        """Forget pages; their numbers are not given out again. O(1) a page."""
        rows = self._known.rows(pages)
        self._known.in_flight.difference_update(rows.tolist())
        if self._known.frontier_or_none is not None:
            self._known.frontier_or_none.discard(rows)
        self._known.announcements.free(rows)
        self._known.pages.free(rows)
        self._known.posterior.unpack(rows, np.zeros((rows.size, self._known.posterior.rates.size), np.uint16))
