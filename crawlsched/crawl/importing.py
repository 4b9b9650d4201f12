"""Importing: pages that others know, what they are worth, and what visits of others have taught of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.loading import planner_for
from crawlsched.crawl.page_rules import PageLimits, PageRules
from crawlsched.crawl.sources import Sources
from crawlsched.estimators import LearnedRates, Posterior
from crawlsched.pages import LIVE, NEW, Pages
from crawlsched.pages.page_index import PageIndex
from crawlsched.planner.knowledge import DAY, RENEWAL
from crawlsched.settings import Settings
from crawlsched.store import Batch, NewPage, ObservationRow, Outcome, Store

__all__ = ["Histories", "Import", "ImportedPage", "learned_from"]

_READ_AT_ONCE = 20_000


class ImportedPage(NamedTuple):
    """A page as a file names it."""

    url: str  # as a request has it
    host: str  # the URL's
    request_fingerprint: bytes  # 20 bytes
    importance: float | None = None  # the worth of a fresh copy, if the file has it


class Import:
    """Fills a collection that nobody crawls at the moment.

    `counts` has the ``pages`` that the file names, the ``new``, ``forgotten`` and ``weighed`` ones among them, the
    ``visits`` learned from, and pages with ``visits_of_their_own``, whose history is left out.
    """

    learns = True

    def __init__(
        self,
        store: Store,
        settings: Settings,
        fingerprinter: str,
        importance: Callable[[str], float],
        now: float,
        *,
        asks_robots: bool = False,
    ) -> None:
        self._store, self._settings, self._fingerprinter = store, settings, fingerprinter
        self._importance, self._now = importance, now
        self._planner = planner_for(settings)
        self._asks_robots = asks_robots and settings.find_sources
        self._sources, self._origins = Sources(settings.source_interval), set[str]()
        if self._asks_robots:
            self._sources.load(store.reader.sources())
            self._next_source = store.reader.next_source()
        self._index = PageIndex()
        self._next_page = store.reader.next_page()
        self._next_observation = store.reader.next_observation()
        names = ("pages", "new", "forgotten", "too_many", "weighed", "visits", "visits_of_their_own")
        self.counts = dict.fromkeys(names, 0)
        self.visited: list[NDArray[np.int64]] = []
        self._rules = PageRules(settings.pages)
        self._limits = PageLimits(settings.max_pages, [rule.max_pages for rule in settings.pages])
        if self._next_page:
            self._index.load(self._known(), self._next_page)
            self._limits.n = len(self._index)
            for _ in self._limits.count_known(store, self._rules):
                pass

    def _known(self) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.integer]]]:
        for block in self._store.load(_READ_AT_ONCE):
            yield PageIndex.keys(block["request_fingerprint"]), block["page"]

    def take(self, named: Sequence[ImportedPage], histories: Histories | None = None) -> None:
        """Take in some thousands of distinct pages, or weigh those that are known; learn from other crawlers' visits.

        The rows of `histories` are places in `named`. What a history has seen last counts as the copy.
        """
        self.counts["pages"] += len(named)
        new: dict[bytes, int] = {}  # places by fingerprint
        known: dict[int, int] = {}  # and by number
        for place, page in enumerate(named):
            number = self._index.page(page.request_fingerprint)
            if number < 0:
                new[page.request_fingerprint] = place
            else:
                known[number] = place
        places = list(new.values())
        forgotten = self._store.tombstones.cover([named[place].url for place in places])
        self.counts["forgotten"] += sum(forgotten)
        kept = [place for place, is_forgotten in zip(places, forgotten, strict=True) if not is_forgotten]
        fitting = [place for place in kept if self._limits.takes(self._rules.number(named[place].url))]
        self.counts["too_many"] += len(kept) - len(fitting)
        self._add(named, fitting, histories)
        if histories is not None or any(named[place].importance is not None for place in known.values()):
            self._change(named, known, histories)

    def _add(self, named: Sequence[ImportedPage], places: Sequence[int], histories: Histories | None) -> None:
        if not places:
            return
        new = [named[place] for place in places]
        numbers = range(self._next_page, self._next_page + len(new))
        self._next_page += len(new)
        self.counts["new"] += len(new)
        visits = None if histories is None else histories.of_rows(np.array(places), len(named))
        weights = [self._importance(p.url) if p.importance is None else p.importance for p in new]
        columns = {**_columns_of_new(len(new), self._now, weights), "page": np.array(numbers)}
        batch = self._batch(columns, visits)
        # A page was known when it was visited first.
        first_seen = np.full(len(new), self._now)
        if visits is not None:
            np.minimum.at(first_seen, visits.row, visits.time)
        for number, page, seen in zip(numbers, new, first_seen.tolist(), strict=True):
            self._index.add(page.request_fingerprint, number)
            batch.new_pages[number] = NewPage(
                number,
                page.url,
                page.host,
                page.request_fingerprint,
                seen,
                request_fingerprinter=self._fingerprinter,
            )
            if page.importance is not None:
                _change_content(batch, number, importance_stated=1)
            self._add_robots(batch, page)
        self._store.save(batch)

    def _add_robots(self, batch: Batch, page: ImportedPage) -> None:
        """Let the crawl read the sitemaps of a site that is new."""
        if not self._asks_robots or (origin := "/".join(page.url.split("/", 3)[:3])) in self._origins:
            return
        self._origins.add(origin)
        source = self._sources.add("robots", f"{origin}/robots.txt", page.host, self._now)
        if source is not None:
            batch.sources[self._next_source] = replace(source, source=self._next_source)
            self._next_source += 1

    def _change(self, named: Sequence[ImportedPage], known: Mapping[int, int], histories: Histories | None) -> None:
        """Change what is known of pages that are there: by what the file states, and by visits if they had none."""
        grid, n_rates = self._planner.grid, self._planner.posterior.rates.size
        for block in self._store.load(grid=grid, n_rates=n_rates, pages=list(known)):
            places = np.array([known[number] for number in block["page"].tolist()])
            stated = [named[place].importance for place in places.tolist()]
            weights = np.array([np.nan if weight is None else weight for weight in stated], np.float32)
            is_other = ~np.isnan(weights) & (weights != block["importance"])
            visits, is_new = None, block["state"] == NEW
            if histories is not None:
                visited = histories.of_rows(places, len(named))
                has_own = np.unique(visited.row[~is_new[visited.row]])
                self.counts["visits_of_their_own"] += has_own.size
                visits = visited.only(is_new[visited.row])
            touched = is_other.copy()
            if visits is not None:
                touched[visits.row] = True
                visits = visits.of_rows(np.flatnonzero(touched), touched.size)
            rows = {name: column[touched] for name, column in block.items()}
            likelihood, has_likelihood = rows.pop("log_likelihood"), rows.pop("has_log_likelihood")
            rows.pop("host")
            weights, is_other = weights[touched], is_other[touched]
            rows["importance"] = np.where(is_other, weights, rows["importance"])
            batch = self._batch(rows, visits)
            if "log_likelihood" in batch.columns and has_likelihood.any():
                kept = np.where(has_likelihood[:, np.newaxis], likelihood, batch.columns["log_likelihood"])
                batch.columns["log_likelihood"] = kept
            self.counts["weighed"] += int(np.count_nonzero(is_other))
            for number in rows["page"][~np.isnan(weights)].tolist():
                _change_content(batch, number, importance_stated=1)
            self._store.save(batch)

    def _batch(self, columns: dict[str, NDArray[Any]], visits: Histories | None) -> Batch:
        """Make a batch of the columns of pages, with what visits teach of them, if there are any."""
        if visits is None or not visits.row.size:
            return Batch(columns=columns, grid=self._planner.grid)
        n, pages = columns["page"].size, columns["page"]
        name, parameters = self._settings.estimator
        learned = None
        if name != "posterior":
            learned = LearnedRates(name, n, 1.0 / DAY, dict(parameters))
        likelihood = learned_from(visits, n, self._planner.posterior.rates, learned)
        found = visits.only((visits.changed == 1) & ~visits.is_first)
        n_crawls = np.bincount(visits.row, minlength=n)
        columns = {
            **columns,
            "state": np.where(n_crawls > 0, LIVE, columns["state"]),
            "n_crawls": columns["n_crawls"] + n_crawls,
            "n_changes": columns["n_changes"] + np.bincount(found.row, minlength=n),
            "crawled_at": np.maximum(columns["crawled_at"], visits.last(n)),
            "log_likelihood": likelihood,
        }
        batch = Batch(columns=columns, grid=self._planner.grid)
        if learned is not None:
            columns["estimator_state"], batch.estimator = np.array(learned.packed(np.arange(n)), object), learned.key
        self.visited.append(pages)
        for number, changed_at in zip(pages.tolist(), found.last(n).tolist(), strict=True):
            if changed_at > -np.inf:
                _change_content(batch, number, changed_at=changed_at)
        batch.observations = list(self._observations(visits, pages))
        self.counts["visits"] += visits.row.size
        return batch

    def _observations(self, visits: Histories, pages: NDArray[np.int64]) -> Iterator[ObservationRow]:
        """Give the visits that are not too old to be kept."""
        oldest = self._now - self._settings.observation_retention
        elapsed, known = visits.elapsed, visits.is_known
        for at in np.flatnonzero(visits.time >= oldest).tolist():
            changed = bool(visits.changed[at] == 1) if known[at] else None
            yield ObservationRow(
                id=self._next_observation,
                page=int(pages[visits.row[at]]),
                time=float(visits.time[at]),
                elapsed=None if np.isnan(elapsed[at]) else float(elapsed[at]),
                n_signals=0,
                source=-1,
                changed=changed,
                outcome=Outcome.UNCHANGED if changed is False else Outcome.CHANGED,
            )
            self._next_observation += 1


def _change_content(batch: Batch, page: int, **changes: Any) -> None:
    batch.contents[page] = {**batch.contents.get(page, {}), **changes}


def _columns_of_new(n: int, now: float, importance: Sequence[float]) -> dict[str, NDArray[Any]]:
    pages = Pages()
    rows = pages.add(np.zeros(n, np.intp), now, np.array(importance))
    none = np.zeros(n, np.float32)
    columns = {**pages.columns(rows), "true_signals": none, "false_signals": none}
    columns.pop("host")  # a number of these arrays; the store has the name
    return columns


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


def learned_from(
    histories: Histories, n_pages: int, rates: NDArray[np.float64], learned: LearnedRates | None = None
) -> NDArray[np.uint16]:
    """Learn from histories as a crawl learns from its visits; return the posterior's compact rows.

    `learned` is an estimator that learns beside the posterior.

    Examples
    --------
    A page that was found changed at its second visit is more likely a fast one:

    >>> histories = Histories.of(np.zeros(2, int), np.array([0.0, 60.0]), np.array([-1, 1], np.int8))
    >>> learned_from(histories, 1, np.array([1e-6, 1e-1])).tolist()[0][1]  # steps below the likeliest
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
