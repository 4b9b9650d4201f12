"""Figures for operators: once a minute, a sample is taken between the slots and written in the other thread."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scrapy.statscollectors import StatsCollector

from crawlsched.crawl.refresher import Refresher
from crawlsched.freshness import estimated
from crawlsched.planner.reports.outlook import known_fresh, wanted
from crawlsched.store.records import put_sample

__all__ = ["Figures"]

# A step computes the freshness of this number of pages, which takes a millisecond at most.
_AT_ONCE = 250

# The names of Scrapy's statistics, by the names of the figures in `store.models.FIGURES`.
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
    """Gather figures of a running crawl; `most` pages are in the sample of expected freshness."""

    def __init__(self, refresher: Refresher, stats: StatsCollector, most: int = 10_000) -> None:
        self._most = most
        self._refresher = refresher
        self._stats = stats
        self._counts = self._counted()
        self._since = refresher.clock()
        self._offset = 0

    def sample(self) -> None:
        """Take a sample, between the slots."""
        self._refresher.long_work.add(self._sampling())

    def _counted(self) -> dict[str, float]:
        refresher = self._refresher
        counts = {name: float(self._stats.get_value(f"crawlsched/{stat}", 0)) for name, stat in _COUNTED.items()}
        return {**counts, "missed": float(refresher.rate.slots.missed)}

    def _sampling(self) -> Iterator[None]:
        refresher, now = self._refresher, self._refresher.clock()
        planner = refresher.planner
        n = planner.pages.n
        every = max(1, -(-n // self._most))
        # Each sample has another part of the pages, so that no page is left out for ever.
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
        figures = {
            **{name: n - before[name] for name, n in counts.items()},
            "seconds": seconds,
            "expected_freshness": share,
            "freshness_error": error,
            "wanted": float(rows.size * every),
        }
        store = refresher.collection.store
        refresher.collection.aside.run("the sample", lambda: put_sample(store, now, figures))
