"""Figures for whoever watches: a sample a minute, and the first pages of several orders at each new plan.

Both are gathered in moments that the slots leave, from pages in memory, and written in the other thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from crawlsched.crawl.refresher import Refresher
from crawlsched.freshness import estimated
from crawlsched.pages import ERROR, LIVE, NEW
from crawlsched.planner.reports.outlook import known_fresh, wanted
from crawlsched.planner.sampling import evenly
from crawlsched.store.records import put_first_pages, put_sample

__all__ = ["VIEWS", "Figures"]

# How many pages of each order are kept.
_FIRST_PAGES = 1_000
#: The orders: what their values are.
VIEWS = {
    "changing": "changes found",
    "oldest": "last looked at, POSIX seconds",
    "uncertain": "standard deviation of the logarithm of the change rate",
    "failing": "failed visits in a row",
    "new": "never looked at; known since, POSIX seconds",
}

# Pages in the sample of expected freshness, and how many in a step of a millisecond at most.
_SAMPLE, _AT_ONCE = 10_000, 250
# Rows of a column that are looked at in a step.
_LOOKED_AT = 2**15

# What is counted in Scrapy's statistics, by the names of `store.models.FIGURES`.
_COUNTED = {
    "used": "slots/used",
    "idle": "slots/idle",
    "no_free_host": "slots/no_free_host",
    "visits": "resolved",
    "errors": "resolved/error",
    "changes": "changes_found",
    "delivered": "delivered",
}


class Figures:
    """Gather figures of a running crawl."""

    def __init__(self, refresher: Refresher, stat: Callable[[str], float]) -> None:
        self.newest: dict[str, Any] = {}
        self._refresher = refresher
        self._stat = stat
        self._counts = self._counted()
        self._since = refresher.clock()
        self._offset = 0

    def sample(self) -> None:
        """Take a sample, in moments that the slots leave."""
        self._refresher.long_work.add(self._sampling())

    def rank(self) -> None:
        """Find the first pages, in moments that the slots leave."""
        self._refresher.long_work.add(self._ranking())

    def _counted(self) -> dict[str, float]:
        refresher = self._refresher
        counts = {name: float(self._stat(stat) or 0) for name, stat in _COUNTED.items()}
        return {**counts, "missed": float(refresher.rate.slots.missed)}

    def _sampling(self) -> Iterator[None]:
        refresher, now = self._refresher, self._refresher.clock()
        planner = refresher.planner
        n = planner.pages.n
        every = max(1, -(-n // _SAMPLE))
        # Another part of the pages each time, so that no page is left out for ever.
        self._offset = (self._offset + 1) % every
        rows = wanted(planner, np.arange(self._offset, n, every))
        fresh, importance = np.empty(rows.size), planner.pages.importance[rows].astype(np.float64)
        for start in range(0, rows.size, _AT_ONCE):
            some = rows[start : start + _AT_ONCE]
            fresh[start : start + _AT_ONCE] = known_fresh(planner, some, now)
            yield
        share, error = estimated(fresh, importance, rows.size * every)
        counts, before, seconds = self._counted(), self._counts, now - self._since
        self._counts, self._since = counts, now
        self.newest = {
            **{name: n - before[name] for name, n in counts.items()},
            "seconds": seconds,
            "expected_freshness": share,
            "freshness_error": error,
            "wanted": float(rows.size * every),
        }
        store, figures = refresher.collection.store, self.newest
        refresher.collection.aside.run("the sample", lambda: put_sample(store, now, figures))

    def _ranking(self) -> Iterator[None]:
        planner = self._refresher.planner
        columns, n = planner.pages, planner.pages.n
        orders: dict[str, Callable[[slice], Any]] = {
            "changing": lambda rows: np.where(columns.n_changes[rows] > 0, columns.n_changes[rows].astype(float), 0.0),
            "oldest": lambda rows: np.where(columns.state[rows] == LIVE, -columns.crawled_at[rows], -np.inf),
            "failing": lambda rows: np.where(columns.state[rows] == ERROR, columns.n_errors[rows] + 0.0, 0.0),
            "new": lambda rows: np.where(columns.state[rows] == NEW, -columns.first_seen[rows], -np.inf),
        }
        nothing = {"changing": 0.0, "failing": 0.0}
        best = {view: (np.empty(0, np.intp), np.empty(0)) for view in orders}
        for start in range(0, n, _LOOKED_AT):
            rows = slice(start, min(start + _LOOKED_AT, n))
            for view, order in orders.items():
                values = order(rows)
                chosen = np.flatnonzero(values > nothing.get(view, -np.inf))
                pages = np.concatenate([best[view][0], chosen + start])
                best[view] = _first(pages, np.concatenate([best[view][1], values[chosen]]))
                yield
        _, sample = yield from evenly(columns.n_crawls, n, lambda n_crawls: n_crawls != 0, _SAMPLE)
        spread = np.empty(sample.size)
        logs = np.log(planner.posterior.rates)
        for start in range(0, sample.size, _AT_ONCE):
            weights = planner.values.weights(sample[start : start + _AT_ONCE])
            spread[start : start + _AT_ONCE] = weights @ logs**2 - (weights @ logs) ** 2
            yield
        best["uncertain"] = _first(sample, np.sqrt(np.maximum(spread, 0.0)))
        times = ("oldest", "new")
        store, numbers = self._refresher.collection.store, self._refresher.collection.numbers
        ranked = [(v, numbers.of(pages).tolist(), (-x if v in times else x).tolist()) for v, (pages, x) in best.items()]
        self._refresher.collection.aside.run("the first pages", lambda: put_first_pages(store, ranked))


def _first(pages: Any, values: Any) -> tuple[Any, Any]:
    """Return the pages with the largest values, largest first."""
    if pages.size > _FIRST_PAGES:
        among = np.argpartition(-values, _FIRST_PAGES)[:_FIRST_PAGES]
        pages, values = pages[among], values[among]
    order = np.lexsort((pages, -values))
    return pages[order], values[order]
