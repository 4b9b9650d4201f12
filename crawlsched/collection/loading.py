"""Loading: a planner as the settings ask for it, and a store's pages in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from numpy.typing import NDArray

from crawlsched.collection.hosts import Hosts
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
    store: Store, planner: Planner, hosts: Hosts, now: float, fingerprinter: str | None = None
) -> Iterator[dict[str, NDArray[Any]]]:
    """Load a store's pages into a planner, in blocks; yield each block."""
    # Room for all at once, and blocks that are small beside it: else growing takes as much memory again for a moment.
    planner.reserve(store.reader.next_page())
    blocks = store.load(
        _LOADED_AT_ONCE,
        host_number=hosts.number,
        grid=planner.grid,
        n_rates=len(planner.posterior.rates),
        fingerprinter=fingerprinter,
    )
    end, n_sources = store.reader.next_page(), store.reader.end_of_sources()
    for found in blocks:
        block = sound_pages(found, end, n_sources)
        if not block["page"].size:
            continue
        planner.load(block, block["log_likelihood"], now)
        yield block
    if planner.learned is not None:
        _load_learned(store, planner, now)
    planner.load_further(store.reader.further_sources(), now)


def _load_learned(store: Store, planner: Planner, now: float) -> None:
    """Load the rows of the estimator; of pages that have one of another, it learns from the visits that are kept."""
    assert planner.learned is not None
    for pages, rows in store.reader.estimator_states(planner.learned.key):
        planner.load_learned(pages, rows, now)
    visits = store.reader.visits_without_state(planner.learned.key)
    if visits["page"].size:
        known = visits["page"] < planner.pages.n
        planner.relearn({name: column[known] for name, column in visits.items()}, now)
        logger.info("%d kept visits were learned from once more, for the estimator is another one.", known.sum())
