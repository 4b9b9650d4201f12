"""Stored planners: a crawl's planner, filled with stored pages, so that commands explain with the crawl's own code."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.planner.reports.outlook import known_fresh, wanted
from crawlsched.settings import Settings
from crawlsched.settings.page_rules import read_host_shares, read_page_rules

if TYPE_CHECKING:
    from crawlsched.planner import Plan, Planner
    from crawlsched.store import Store

__all__ = [
    "before",
    "freshness",
    "newest_plan",
    "planner_of_page",
    "planners",
    "settings_of",
    "waiting_since",
    "wanted",
]


def planner_of_page(store: "Store", settings: Settings, page: int, now: float) -> "Planner":
    """Return a planner that has a single page (number 0), the page's rule, and the newest plan."""
    planner, _ = next(planners(store, settings, now, pages=[page], picks=True))
    return planner


def settings_of(store: "Store", settings: Settings) -> Settings:
    """Return these settings, changed to the values that the last crawl stored, for commands outside of a project."""
    owner = store.owner()
    names = {field.name for field in fields(Settings)}
    stored = {} if owner is None else owner.status.get("planner", {})
    known = {name: value for name, value in stored.items() if name in names}
    for name, read in (("pages", read_page_rules), ("host_shares", read_host_shares)):
        if name in known:
            known[name] = read(known[name])
    return replace(settings, **known)


def newest_plan(store: "Store", host_number: Callable[[str], int] | None = None) -> "Plan | None":
    """Return the plan that was made last; None if there is none yet."""
    from crawlsched.planner import Plan
    from crawlsched.store.records import last_plan

    stored = last_plan(store)
    return None if stored is None else Plan.from_dict(stored, host_number)


def freshness(store: "Store", settings: Settings, now: float) -> tuple[FloatArray, FloatArray, int, int]:
    """Compute the freshness of the pages that should be kept fresh, or of an even sample of very many pages.

    Returns
    -------
    fresh : ndarray, shape (n,)
        The probability that each page's copy is fresh; 0 without a copy, and for pages that fail.
    importance : ndarray, shape (n,)
        The weight of each page. In a sample, this is multiplied by the number of pages that the page represents.
    n_all, n_failing : int
        The number of all these pages, and the number that fail, estimated from the sample if there is one.
    """
    pages, stands_for = _drawn(store)
    fresh, importance, n_failing = [], [], 0
    for planner, numbers in planners(store, settings, now, pages=pages):
        rows = wanted(planner, np.arange(numbers.size))
        importance.append(planner.pages.importance[rows].astype(np.float64))
        fresh.append(known_fresh(planner, rows, now))
        n_failing += int(np.count_nonzero(planner.pages.failing(rows)))
    weights = np.concatenate([*importance, np.empty(0)]) * stands_for
    n_all, n_failing = round(weights.size * stands_for), round(n_failing * stands_for)
    return np.concatenate([*fresh, np.empty(0)]), weights, n_all, n_failing


def before(store: "Store", settings: Settings, crawl_value: float, now: float) -> int:
    """Count the pages that are crawled before a page with this crawl value; with very many pages, from a sample.

    Of the pages with the same value, half are counted. In a first crawl, all pages have the same value.
    """
    pages, stands_for = _drawn(store)
    n_before = 0.0
    for planner, numbers in planners(store, settings, now, pages=pages):
        rows = wanted(planner, np.arange(numbers.size))
        values = planner.crawl_values.value_at(rows, now)
        equal = np.isclose(values, crawl_value, rtol=1e-9)
        n_before += np.count_nonzero(values[~equal] > crawl_value) + np.count_nonzero(equal) / 2
    return round(n_before * stands_for)


def waiting_since(store: "Store", time: float) -> int:
    """Count the pages that were last crawled before a time, or were found before it and never crawled; see `before`."""
    pages, stands_for = _drawn(store)
    n_waiting = 0
    for block in store.load(pages=pages):
        since = np.where(np.isneginf(block["crawled_at"]), block["first_seen"], block["crawled_at"])
        n_waiting += int(np.count_nonzero((since < time) & (block["importance"] > 0)))
    return round(n_waiting * stands_for)


def _drawn(store: "Store", most: int = 10_000) -> tuple[list[int] | None, float]:
    """Draw an even sample of at most `most` pages; return the sample, and how many pages each page represents.

    The sample is None for all pages. With ten thousand pages, the freshness is off by 0.005, and a count of a tenth of
    the pages by 3 %.
    """
    n_all = store.reader.next_page()
    if n_all <= most:
        return None, 1.0
    return np.random.default_rng(0).choice(n_all, most, replace=False).tolist(), n_all / most


def planners(
    store: "Store", settings: Settings, now: float, pages: Sequence[int] | None = None, *, picks: bool = False
) -> "Iterator[tuple[Planner, IndexArray]]":
    """Yield a planner for each block of pages, with the numbers of these pages in the store.

    A planner numbers its pages from 0. Without `picks`, the planner only computes what its pages are worth.
    """
    from crawlsched.crawl.page_rules import PageRules
    from crawlsched.planner.from_settings import planner_for

    if not store.reader.next_page():
        return  # of many shards, most may have no pages
    hosts: dict[str, int] = {}
    host_number = lambda name: hosts.setdefault(name, len(hosts))  # noqa: E731
    plan = newest_plan(store, host_number)
    owner = store.owner()
    status = owner.status if owner is not None else {}
    first, rules = planner_for(settings), PageRules(settings.pages)
    several = store.reader.further_sources()
    n_rates, estimator = first.posterior.rates.size, first.estimator
    for block in store.load(
        host_number=host_number, grid=first.grid, n_rates=n_rates, estimator=estimator, pages=pages
    ):
        planner = planner_for(settings, picks=picks)
        n_pages = len(block["page"])
        if plan is not None:  # before pages are added, so that each is placed only once
            planner.adopt(plan, now)
            planner.work(now)
        planner.load({**block, "page": np.arange(n_pages)}, block["log_likelihood"], now)
        numbers = dict(zip(block["page"].tolist(), range(n_pages), strict=True)) if several else {}
        planner.load_further([(numbers[page], *rest) for page, *rest in several if page in numbers], now)
        if plan is not None and planner.planned is not None:
            planner.planned.divide(planner.bandwidth)
        if rules:
            urls = store.reader.urls(block["page"])
            found = [rules.number(urls.get(number, "")) for number in block["page"].tolist()]
            planner.set_intervals(np.arange(n_pages), found, now)
        # The threshold of the running crawl or, if no crawl runs, of the plan.
        planner.threshold = status.get("threshold") or (0.0 if plan is None else plan.threshold)
        yield planner, np.asarray(block["page"], np.intp)
