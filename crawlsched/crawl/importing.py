"""Importing: pages that others know, what they are worth, and what visits of others have taught of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.project import Requests
from crawlsched.crawl.refresher import Refresher
from crawlsched.estimators import LearnedRates, Posterior
from crawlsched.exceptions import StoreError
from crawlsched.pages import LIVE, NEW
from crawlsched.planner.knowledge import DAY, RENEWAL
from crawlsched.settings import Settings
from crawlsched.store import Batch, Lease, ObservationRow, Outcome, Store

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
        self._settings, self._now = settings, now
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

        The rows of `histories` are places in `named`. What a history has seen last counts as the copy.
        """
        self.counts["pages"] += len(named)
        for name, n in self._crawl.admission.named(named, self._now).items():
            self.counts[name] += n
        self._collection.flush(self._now)
        writer = self._collection.write_behind
        if not writer.drain(_WRITTEN_WITHIN):
            raise StoreError(writer.lost or writer.failure or "the database does not answer.")
        if histories is not None:
            self._learn(named, histories)

    def _learn(self, named: Sequence[FoundPage], histories: Histories) -> None:
        """Learn from the visits of pages that have none of their own."""
        planner, index, numbers = self._crawl.planner, self._collection.index, self._collection.numbers
        rows = [index.page(page.request_fingerprint) for page in named]
        places = {numbers.item(row): place for place, row in enumerate(rows) if row >= 0}
        for block in self.store.load(grid=planner.grid, n_rates=planner.posterior.rates.size, pages=list(places)):
            visits = histories.of_rows(np.array([places[number] for number in block["page"].tolist()]), len(named))
            has_own = block["state"][visits.row] != NEW
            self.counts["visits_of_their_own"] += np.unique(visits.row[has_own]).size
            visits = visits.only(~has_own)
            if visits.row.size:
                visited = np.unique(visits.row)
                columns = {name: column[visited] for name, column in block.items() if name not in _NOT_WRITTEN}
                self.store.save(self._batch(columns, visits.of_rows(visited, block["page"].size)))

    def _batch(self, columns: dict[str, NDArray[Any]], visits: Histories) -> Batch:
        """Make a batch of the columns of pages, with what visits teach of them."""
        n, pages, planner = columns["page"].size, columns["page"], self._crawl.planner
        name, parameters = self._settings.estimator
        learned = None if name == "posterior" else LearnedRates(name, n, 1.0 / DAY, dict(parameters))
        found = visits.only((visits.changed == 1) & ~visits.is_first)
        n_crawls = np.bincount(visits.row, minlength=n)
        columns |= {
            "state": np.where(n_crawls > 0, LIVE, columns["state"]),
            "n_crawls": columns["n_crawls"] + n_crawls,
            "n_changes": columns["n_changes"] + np.bincount(found.row, minlength=n),
            "crawled_at": np.maximum(columns["crawled_at"], visits.last(n)),
            "log_likelihood": _learned_from(visits, n, planner.posterior.rates, learned),
        }
        batch = Batch(columns=columns, grid=planner.grid)
        if learned is not None:
            columns["estimator_state"], batch.estimator = np.array(learned.packed(np.arange(n)), object), learned.key
        self.visited.append(pages)
        for number, changed_at in zip(pages.tolist(), found.last(n).tolist(), strict=True):
            if changed_at > -np.inf:
                batch.contents[number] = {"changed_at": changed_at}
        batch.observations = list(self._observations(visits, pages))
        self.counts["visits"] += visits.row.size
        return batch

    def _observations(self, visits: Histories, pages: NDArray[np.int64]) -> Iterator[ObservationRow]:
        """Give the visits that are not too old to be kept."""
        oldest, shard = self._now - self._settings.observation_retention, self._collection.shards.only
        elapsed, known = visits.elapsed, visits.is_known
        for at in np.flatnonzero(visits.time >= oldest).tolist():
            changed = bool(visits.changed[at] == 1) if known[at] else None
            yield ObservationRow(
                id=shard.next_observation,
                page=int(pages[visits.row[at]]),
                time=float(visits.time[at]),
                elapsed=None if np.isnan(elapsed[at]) else float(elapsed[at]),
                n_signals=0,
                source=-1,
                changed=changed,
                outcome=Outcome.UNCHANGED if changed is False else Outcome.CHANGED,
            )
            shard.next_observation += 1


# What the store gives of a page and does not take back by this name.
_NOT_WRITTEN = frozenset({"host", "log_likelihood", "has_log_likelihood"})


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
        """Sort visits; of several of a page at the same time the first one counts.

        Where `changed` is not known, a `digest` that differs from the one before says it; 0: not known.

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

    def of_rows(self, rows: NDArray[np.intp], n_rows: int) -> Histories:
        """Return the visits of some rows of `n_rows`, numbered by their places among these.

        >>> histories = Histories.of(np.array([0, 1, 2]), np.array([3.0, 4.0, 5.0]), np.zeros(3, np.int8))
        >>> histories.of_rows(np.array([2, 0]), 3).time.tolist()
        [5.0, 3.0]
        """
        place = np.full(n_rows, -1)
        place[rows] = np.arange(rows.size)
        kept = place[self.row] >= 0
        return Histories.of(place[self.row[kept]], self.time[kept], self.changed[kept])

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
        """Of which visits is known whether the page had changed; there is nothing to compare a first one with."""
        return (self.changed >= 0) & ~self.is_first


def _learned_from(
    histories: Histories, n_pages: int, rates: NDArray[np.float64], learned: LearnedRates | None = None
) -> NDArray[np.uint16]:
    """Learn from histories as a crawl learns from its visits; return the posterior's compact rows.

    `learned` is an estimator that learns beside the posterior.

    Examples
    --------
    A page that was found changed at its second visit is more likely a fast one:

    >>> histories = Histories.of(np.zeros(2, int), np.array([0.0, 60.0]), np.array([-1, 1], np.int8))
    >>> _learned_from(histories, 1, np.array([1e-6, 1e-1])).tolist()[0][1]  # steps below the likeliest
    0
    """
    posterior = Posterior(n_pages, rates, dtype=np.uint16, renewal=RENEWAL)
    teach = np.flatnonzero(histories.is_known)
    row, elapsed, changed = histories.row[teach], histories.elapsed[teach], histories.changed[teach] == 1
    _, start, count = np.unique(row, return_index=True, return_counts=True)
    # What the first visits of all pages teach, then the second ones, and so on.
    for number in range(int(count.max(initial=0))):
        at = start[count > number] + number
        posterior.update(row[at], elapsed[at], changed[at])
        if learned is not None:
            learned.observe(row[at], elapsed[at], changed[at])
    packed: NDArray[np.uint16] = posterior.packed(np.arange(n_pages))[:, :-1]  # without the number of updates
    return packed
