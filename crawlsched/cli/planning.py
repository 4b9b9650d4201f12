"""Planning: the stored pages in the planner that a crawl decides with, so that the same code decides and explains."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from crawlsched.cli.target import Target
from crawlsched.columns.array_types import IndexArray
from crawlsched.planner.reports.freshness_now import wanted
from crawlsched.settings import Settings
from crawlsched.settings.page_rules import read_host_shares, read_page_rules

if TYPE_CHECKING:
    from crawlsched.planner import Plan, Planner
    from crawlsched.store import Store

__all__ = ["Totals", "add_up", "newest_plan", "planner_of_page", "planners", "settings_of", "wanted"]

# Pages in memory at once: a quarter of a gigabyte with all that is computed of them.
_BLOCK = 100_000


def planner_of_page(store: "Store", target: Target, page: int, now: float) -> "Planner":
    """Return a planner that knows a single page (its number is 0), its rule, and the newest plan."""
    planner, _ = next(planners(store, target, now, pages=[page]))
    return planner


def settings_of(store: "Store", target: Target) -> Settings:
    """Return the settings that count: the project's, or outside of it those that the crawl has left."""
    owner = store.owner()
    known = {} if owner is None or target.is_project else dict(owner.status.get("planner", {}))
    for name, read in (("pages", read_page_rules), ("host_shares", read_host_shares)):
        if name in known:
            known[name] = read(known[name])
    return replace(target.settings, **known)


def newest_plan(store: "Store", host_number: Callable[[str], int] | None = None) -> "Plan | None":
    """Return the plan that was made last; None if there is none yet."""
    from crawlsched.planner import Plan

    stored = store.newest_plan()
    return None if stored is None else Plan.from_dict(stored.data, host_number)


class Totals:
    """What comes out when all pages of a collection are looked at.

    Attributes
    ----------
    importance : float
        Sum over the pages of which a fresh copy is wanted.
    fresh : float
        The same times the probability that the copy is fresh (0 without one).
    pages_of_source : ndarray, shape (S,)
        By source: the pages it covers.
    """

    def __init__(self, n_sources: int) -> None:
        self.importance = 0.0
        self.fresh = 0.0
        self.pages_of_source = np.zeros(n_sources, np.int64)

    @property
    def expected_freshness(self) -> float | None:
        """The share of the importance that is expected to be fresh; None without pages."""
        return self.fresh / self.importance if self.importance else None


def add_up(store: "Store", target: Target, n_sources: int, now: float) -> Totals:
    """Look at every stored page as the planner sees it."""
    totals = Totals(n_sources)
    for planner, numbers in planners(store, target, now):
        _add(totals, planner, np.arange(numbers.size), now)
    return totals


def _add(totals: Totals, planner: "Planner", rows: Any, now: float) -> None:
    columns = planner.pages
    rows = wanted(planner, rows)
    importance = columns.importance[rows].astype(np.float64)
    totals.importance += float(importance.sum())
    totals.fresh += float(np.vecdot(importance, planner.values.fresh(rows, now)))
    covered = columns.source[rows] >= 0
    source, n = columns.source[rows][covered], totals.pages_of_source.size
    totals.pages_of_source += np.bincount(source, minlength=n)[:n]


def planners(
    store: "Store", target: Target, now: float, pages: list[int] | None = None
) -> "Iterator[tuple[Planner, IndexArray]]":
    """Give a planner for each block of pages, in which they are numbered from 0, and their numbers in the store."""
    from crawlsched.collection.loading import planner_for
    from crawlsched.collection.page_rules import PageRules

    hosts: dict[str, int] = {}
    host_number = lambda name: hosts.setdefault(name, len(hosts))  # noqa: E731
    plan = newest_plan(store, host_number)
    owner = store.owner()
    status = owner.status if owner is not None else {}
    settings = settings_of(store, target)
    of_crawl = status.get("planner", {}).get("objective", "freshness")
    first, rules = planner_for(settings), PageRules(settings.pages)
    grid, n_rates = first.grid, first.posterior.rates.size
    several = store.further_sources()
    for block in store.load(_BLOCK, host_number=host_number, grid=grid, n_rates=n_rates, pages=pages):
        planner = planner_for(settings)
        n_pages = len(block["page"])
        planner.load({**block, "page": np.arange(n_pages)}, block["log_likelihood"], now)
        numbers = dict(zip(block["page"].tolist(), range(n_pages), strict=True)) if several else {}
        planner.load_further([(numbers[page], *rest) for page, *rest in several if page in numbers], now)
        if planner.learned is not None:
            for known, states in store.estimator_states(planner.learned.key, *block["page"][[0, -1]].tolist()):
                chosen = np.isin(known, block["page"])
                rows = np.searchsorted(block["page"], known[chosen])
                planner.load_learned(rows, [states[at] for at in np.flatnonzero(chosen)], now)
        if plan is not None:
            planner.adopt(plan, now)
            while planner.work(now):
                pass
        if rules:
            urls = store.urls(block["page"])
            found = [rules.number(urls.get(number, "")) for number in block["page"].tolist()]
            planner.set_intervals(np.arange(n_pages), found, now)
        # What the running crawl picks at now; or what the plan says that its bandwidth reaches.
        threshold = status.get("threshold") if of_crawl == planner.objective else None
        of_plan = plan.threshold if plan is not None and plan.objective == planner.objective else 0.0
        planner.threshold = threshold or of_plan
        yield planner, np.asarray(block["page"], np.intp)
