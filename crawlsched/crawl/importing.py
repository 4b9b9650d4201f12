"""Importing: pages that others know, what they are worth, and what visits of others have taught of them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.project import Requests
from crawlsched.crawl.refresher import Refresher
from crawlsched.estimators import Posterior
from crawlsched.exceptions import StoreError
from crawlsched.pages import LIVE, NEW
from crawlsched.planner import Planner
from crawlsched.planner.knowledge import RENEWAL
from crawlsched.settings import Settings
from crawlsched.store import Lease, Outcome, Store

__all__ = ["Histories", "Import"]

# Seconds that the database has to write some thousand pages.
_WRITTEN_WITHIN = 600.0


class Import:
    """Fills a collection that nobody crawls at the moment, as a crawl that sends nothing.

    `counts` has the ``pages`` that the file names, the ``new``, ``forgotten`` and ``weighed`` ones among them, the
    ``visits`` learned from, and pages with ``visits_of_their_own``, whose history is left out.
    """

    learns = True

    def __init__(self, settings: Settings, requests: Requests, now: float) -> None:
        self._oldest, self._now = now - settings.observation_retention, now
        self._crawl = Refresher(
            settings,
            "crawlsched import",
            count=lambda name, n=1: None,
            request_fingerprint=requests.fingerprint,
            clock=lambda: now,
            rng=Random(),
            fingerprinter=requests.fingerprinter,
            obeys_robots=not requests.asks_robots,
        )
        self._collection = self._crawl.collection
        self._crawl.shard_pages.open(now)
        names = ("pages", "new", "forgotten", "too_many", "weighed", "visits", "visits_of_their_own")
        self.counts = dict.fromkeys(names, 0)
        self.visited: list[NDArray[np.int64]] = []

    @property
    def store(self) -> Store:
        """The store of the collection, which is owned meanwhile."""
        return self._collection.store

    @property
    def lease(self) -> Lease:
        """By which it is owned."""
        return self._collection.lease

    def close(self) -> None:
        """Give the collection back."""
        self._collection.close(self._now)

    def take(self, named: Sequence[FoundPage], histories: Histories | None = None) -> None:
        """Take in some thousands of distinct pages, or weigh those that are known; learn from other crawlers' visits.

        The rows of `histories` are places in `named`. The last content of a history counts as the copy.
        """
        self.counts["pages"] += len(named)
        for name, n in self._crawl.admission.named(named, self._now).items():
            self.counts[name] += n
        if histories is not None:
            self._learn(named, histories)
        self._collection.flush(self._now)
        writer = self._collection.write_behind
        if not writer.drain(_WRITTEN_WITHIN):
            raise StoreError(writer.lost or writer.failure or "the database does not answer.")

    def _learn(self, named: Sequence[FoundPage], histories: Histories) -> None:
        """Learn from the visits of pages that have none of their own."""
        columns, unsaved = self._crawl.planner.pages, self._collection.unsaved
        rows = np.array([self._collection.index.page(page.request_fingerprint) for page in named], np.intp)
        is_known, is_new = rows >= 0, columns.state[rows] == NEW
        visited = np.unique(histories.row)
        self.counts["visits_of_their_own"] += int(np.count_nonzero(is_known[visited] & ~is_new[visited]))
        visits = histories.only((is_known & is_new)[histories.row])
        if not visits.row.size:
            return
        places, place = np.unique(visits.row, return_inverse=True)
        pages, n, visits = rows[places], places.size, visits._replace(row=place)
        found = visits.only((visits.changed == 1) & ~visits.is_first)
        columns.state[pages] = LIVE
        columns.n_crawls[pages] = np.bincount(visits.row, minlength=n)
        columns.n_changes[pages] = np.bincount(found.row, minlength=n)
        columns.crawled_at[pages] = visits.last(n)
        _teach(self._crawl.planner, pages, visits)
        unsaved.pages(pages, self._now)
        for page, changed_at in zip(pages.tolist(), found.last(n).tolist(), strict=True):
            if changed_at > -np.inf:
                unsaved.content(page, self._now, changed_at=changed_at)
        self._observe(pages, visits)
        self.visited.append(self._collection.numbers.of(pages))
        self.counts["visits"] += visits.row.size

    def _observe(self, pages: NDArray[np.intp], visits: Histories) -> None:
        """Write down the visits that are not too old to be kept."""
        elapsed, known = visits.elapsed, visits.is_known
        for at in np.flatnonzero(visits.time >= self._oldest).tolist():
            changed = bool(visits.changed[at] == 1) if known[at] else None
            self._collection.unsaved.observation(
                float(visits.time[at]),
                int(pages[visits.row[at]]),
                source=-1,
                elapsed=None if np.isnan(elapsed[at]) else float(elapsed[at]),
                n_signals=0,
                changed=changed,
                outcome=Outcome.UNCHANGED if changed is False else Outcome.CHANGED,
            )


class Histories(NamedTuple):
    """Visits of some pages, those of each page side by side and in the order of their times."""

    row: NDArray[np.intp]  # which page, ascending; shape (V,)
    time: NDArray[np.float64]  # POSIX seconds; shape (V,)
    # 1: the page had changed since the visit before; 0: it had not; -1: that is not known; shape (V,)
    changed: NDArray[np.int8]

    @classmethod
    def of(
        cls,
        row: NDArray[np.intp],
        time: NDArray[np.float64],
        changed: NDArray[np.int8],
        digest: NDArray[np.int64] | None = None,
    ) -> Histories:
        """Sort visits; of a page's visits at the same time the first one counts.

        Where `changed` is not known, a `digest` unlike the one before shows a change; 0: not known.

        >>> time, unknown = np.array([9.0, 5.0, 3.0]), np.full(3, -1, np.int8)
        >>> found = Histories.of(np.array([1, 0, 1]), time, unknown, np.array([7, 7, 8]))
        >>> found.time.tolist(), found.changed.tolist()
        ([5.0, 3.0, 9.0], [-1, -1, 1])
        """
        order = np.lexsort((time, row))
        row, time, changed = row[order], time[order], changed[order]
        again = np.zeros(row.size, bool)
        again[1:] = (row[1:] == row[:-1]) & (time[1:] == time[:-1])
        made = cls(row[~again], time[~again], changed[~again])
        if digest is None:
            return made
        found = digest[order][~again]
        before = np.concatenate([[0], found[:-1]])
        tells = (made.changed < 0) & ~made.is_first & (found != 0) & (before != 0)
        return made._replace(changed=np.where(tells, found != before, made.changed).astype(np.int8))

    def only(self, chosen: NDArray[np.bool_]) -> Histories:
        """Return some of the visits."""
        return Histories(self.row[chosen], self.time[chosen], self.changed[chosen])

    def between(self, start: int, stop: int) -> Histories:
        """Return the visits of the rows from `start` to below `stop`, numbered from 0."""
        of = slice(*np.searchsorted(self.row, [start, stop]))
        return Histories(self.row[of] - start, self.time[of], self.changed[of])

    def last(self, n_rows: int) -> NDArray[np.float64]:
        """Return the time of each row's last visit; -inf where there is none."""
        last = np.full(n_rows, -np.inf)
        np.maximum.at(last, self.row, self.time)
        return last

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which visits are the first of their page."""
        first = np.ones(self.row.size, bool)
        first[1:] = self.row[1:] != self.row[:-1]
        return first

    @property
    def elapsed(self) -> NDArray[np.float64]:
        """Seconds since the visit before; nan for a first one."""
        return np.where(self.is_first, np.nan, np.diff(self.time, prepend=np.nan))

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Which visits tell whether the page had changed; a first one has nothing to be compared with."""
        return (self.changed >= 0) & ~self.is_first


def _teach(planner: Planner, pages: NDArray[np.intp], visits: Histories) -> None:
    """Learn of new pages from visits as a crawl learns from its own."""
    posterior = Posterior(pages.size, planner.posterior.rates, dtype=np.uint8, renewal=RENEWAL)
    teach = np.flatnonzero(visits.is_known)
    row, elapsed, changed = visits.row[teach], visits.elapsed[teach], visits.changed[teach] == 1
    _, start, count = np.unique(row, return_index=True, return_counts=True)
    # All pages' first visits teach first, then their second ones, and so on.
    for number in range(int(count.max(initial=0))):
        at = start[count > number] + number
        posterior.update(row[at], elapsed[at], changed[at], n_updates=number)
        if planner.learned is not None:
            planner.learned.observe(pages[row[at]], elapsed[at], changed[at])
    planner.posterior.unpack(pages, posterior.packed(np.arange(pages.size)))
