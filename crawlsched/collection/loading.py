"""Loading: a planner as the settings ask for it, and a store's pages in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.collection.hosts import Hosts
from crawlsched.collection.page_numbers import PageNumbers
from crawlsched.collection.page_rules import limits
from crawlsched.estimators import LearnedRates
from crawlsched.frontier.new_pages import DiscoveryShare
from crawlsched.planner import Planner
from crawlsched.planner.knowledge import DAY
from crawlsched.planner.options import MAX_CRAWL_ROUNDS
from crawlsched.settings import Settings
from crawlsched.settings.page_rules import PageRule
from crawlsched.store import Store, sound_pages

__all__ = ["load_pages", "planner_for"]

logger = logging.getLogger(__name__)

_LOADED_AT_ONCE = 5_000
# A collection without a copy has nothing to keep fresh: so many seconds' slots may all go to first copies.
_BEGINNING = 15.0


def planner_for(
    settings: Settings, *, picks: bool = True, max_crawl_rounds: float | None = MAX_CRAWL_ROUNDS
) -> Planner:
    """Return the planner that these settings ask for, without pages; one that `picks` or is only asked."""
    name, parameters = settings.estimator
    learned = None
    if name != "posterior":
        # How often pages change is not known before the first plan: once in a day is a guess.
        learned = LearnedRates(name, 0, 1.0 / DAY, dict(parameters))
    # At once for all pages; which rule is that of a page that is loaded is known when its URL has been read.
    for_all = next((rule for rule in settings.pages if rule.where == "*"), PageRule("*"))
    planner = Planner(
        settings.bandwidth,
        crawl_value=settings.crawl_value,
        min_crawl_interval=for_all.min_interval or 0.0,
        max_crawl_interval=for_all.max_interval,
        interval_rules=limits(settings),
        max_crawl_rounds=max_crawl_rounds,
        error_interval=settings.error_interval,
        learned=learned,
        picks=picks,
    )
    planner.share = DiscoveryShare(settings.share_of_first_copies, _BEGINNING * settings.bandwidth)
    return planner


def load_pages(
    store: Store,
    planner: Planner,
    hosts: Hosts,
    now: float,
    fingerprinter: str | None = None,
    numbers: PageNumbers | None = None,
) -> Iterator[dict[str, NDArray[Any]]]:
    """Load a store's pages into a planner, in blocks; yield each, with the ``row`` of each page in memory.

    `numbers` hears under which numbers the store has them.
    """
    # Room for all at once, and blocks that are small beside it: else growing takes as much memory again for a moment.
    numbers, n_pages = numbers or PageNumbers(), planner.pages.n + store.reader.count_pages()
    planner.reserve(n_pages)
    numbers.reserve(n_pages)
    blocks = store.load(
        _LOADED_AT_ONCE,
        host_number=hosts.number,
        grid=planner.grid,
        n_rates=len(planner.posterior.rates),
        fingerprinter=fingerprinter,
    )
    n_sources = store.reader.end_of_sources()
    for found in blocks:
        block = sound_pages(found, n_sources)
        if not block["page"].size:
            continue
        rows = block["row"] = planner.pages.n + np.arange(block["page"].size)
        planner.load({**block, "page": rows}, block["log_likelihood"], now)
        numbers.put(rows, block["page"])
        yield block
    if planner.learned is not None:
        _load_learned(store, planner, numbers, now)
    further = store.reader.further_sources()
    rows = numbers.rows(np.array([page for page, *_ in further], np.int64))
    planner.load_further(
        [(row, *told) for row, (_, *told) in zip(rows.tolist(), further, strict=True) if row >= 0], now
    )


def _load_learned(store: Store, planner: Planner, numbers: PageNumbers, now: float) -> None:
    """Load the rows of the estimator; of pages that have one of another, it learns from the visits that are kept."""
    assert planner.learned is not None
    for pages, states in store.reader.estimator_states(planner.learned.key):
        rows = numbers.rows(pages)
        planner.load_learned(rows[rows >= 0], [states[at] for at in np.flatnonzero(rows >= 0)], now)
    visits = store.reader.visits_without_state(planner.learned.key)
    if visits["page"].size:
        visits["page"] = numbers.rows(visits["page"])
        known = visits["page"] >= 0
        planner.relearn({name: column[known] for name, column in visits.items()}, now)
        logger.info("%d kept visits were learned from once more, for the estimator is another one.", known.sum())
