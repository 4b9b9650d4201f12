"""Loading: a planner as the settings ask for it, and the pages that a store keeps in it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import FurtherRow
from crawlsched.crawl.page_numbers import PageNumbers
from crawlsched.crawl.page_rules import limits
from crawlsched.estimators import LearnedRates
from crawlsched.frontier.new_pages import DiscoveryShare
from crawlsched.planner import Planner
from crawlsched.planner.knowledge import DAY
from crawlsched.planner.starvation import MAX_CRAWL_ROUNDS
from crawlsched.settings import Settings
from crawlsched.settings.page_rules import PageRule
from crawlsched.store import Store
from crawlsched.store.loading import sound_pages

__all__ = ["Block", "StoredPages", "load_pages", "planner_for", "stored_pages"]

logger = logging.getLogger(__name__)

Block = dict[str, NDArray[Any]]

_LOADED_AT_ONCE = 5_000
# A collection without a copy has nothing to keep fresh: all slots of these seconds may go to first copies.
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
    # At once for all pages; the rule of a loaded page is known only when its URL has been read.
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
    planner.frontier.share = DiscoveryShare(settings.share_of_first_copies, _BEGINNING * settings.bandwidth)
    return planner


@dataclass
class StoredPages:
    """What a store keeps of its pages, as it is taken into a planner.

    Attributes
    ----------
    n_pages : int
    blocks : iterable of Block
        The pages, as `Store.load` gives them.
    states : iterable of (ndarray, list of bytes)
        Numbers of pages, and what the estimator knew of them.
    visits : Block
        Visits of pages that it does not know yet.
    further : list
        What several sources say of the same pages, beginning with page and source.
    """

    n_pages: int
    blocks: Iterable[Block]
    states: Iterable[tuple[NDArray[Any], list[bytes]]]
    visits: Block
    further: list[tuple[int, int, *FurtherRow]]

    def at_once(self) -> StoredPages:
        """Return the same with all of it read, which another thread may do."""
        self.blocks, self.states = list(self.blocks), list(self.states)
        return self


def stored_pages(
    store: Store,
    planner: Planner,
    host_number: Callable[[str], int],
    fingerprinter: str | None = None,
    block: int = _LOADED_AT_ONCE,
) -> StoredPages:
    """Begin to read a store's pages, block by block."""
    reader = store.reader
    found = store.load(
        block,
        host_number=host_number,
        grid=planner.grid,
        n_rates=len(planner.posterior.rates),
        fingerprinter=fingerprinter,
    )
    key = None if planner.learned is None else planner.learned.key
    return StoredPages(
        reader.count_pages(),
        map(sound_pages, found),
        [] if key is None else reader.estimator_states(key),
        {} if key is None else reader.visits_without_state(key),
        reader.further_sources(),
    )


def load_pages(
    stored: StoredPages,
    planner: Planner,
    now: float,
    *,
    numbers: PageNumbers,
    sources: Mapping[int, int] | None = None,
    rows_for: Callable[[int], NDArray[np.intp]] | None = None,
) -> Iterator[Block]:
    """Load a store's pages into a planner, in blocks; yield each, with the ``row`` of each page in memory.

    Parameters
    ----------
    stored : StoredPages
    planner : Planner
    now : float
        POSIX seconds.
    numbers : PageNumbers
        Hears under which numbers the store has the pages.
    sources : mapping of int to int, optional
        The sources' numbers in memory by those in the store; None: the same.
    rows_for : callable, optional
        ``rows_for(n)`` gives rows for n pages; None: those behind all others.
    """
    # Room for all at once, and blocks that are small beside it: else growing takes as much memory again for a moment.
    n_pages = planner.pages.n + stored.n_pages
    planner.reserve(n_pages)
    numbers.reserve(n_pages)
    parts: list[NDArray[np.intp]] = []
    for block in stored.blocks:
        n = block["page"].size
        if not n:
            continue
        rows = planner.pages.n + np.arange(n) if rows_for is None else rows_for(n)
        block["row"] = rows
        if sources is not None:
            block["source"] = _here(block["source"], sources)
        planner.load({**block, "page": rows}, block["log_likelihood"], now)
        numbers.put(rows, block["page"])
        parts.append(rows)
        yield block
    mine = None if rows_for is None else np.concatenate([np.empty(0, np.intp), *parts])
    if planner.learned is not None:
        _load_learned(stored, planner, now, numbers, mine)
    rows = numbers.rows(np.array([page for page, *_ in stored.further], np.int64), mine)
    known = ((row, *columns) for row, (_, *columns) in zip(rows.tolist(), stored.further, strict=True) if row >= 0)
    if sources is not None:
        known = ((row, sources[source], *columns) for row, source, *columns in known if source in sources)
    planner.load_further(list(known), now)


def _here(found: NDArray[Any], sources: Mapping[int, int]) -> NDArray[np.int32]:
    """Return the numbers in memory of sources that a store numbers otherwise; -1: there is no such source."""
    named, place = np.unique(found, return_inverse=True)
    here: NDArray[np.int32] = np.array([sources.get(source, -1) for source in named.tolist()], np.int32)[place]
    return here


def _load_learned(
    stored: StoredPages, planner: Planner, now: float, numbers: PageNumbers, mine: NDArray[np.intp] | None
) -> None:
    """Load the rows of the estimator. For pages with a row of another estimator, it learns from the stored visits."""
    for pages, states in stored.states:
        rows = numbers.rows(pages, mine)
        planner.load_learned(rows[rows >= 0], [states[at] for at in np.flatnonzero(rows >= 0)], now)
    visits = stored.visits
    if visits["page"].size:
        visits["page"] = numbers.rows(visits["page"], mine)
        known = visits["page"] >= 0
        planner.relearn({name: column[known] for name, column in visits.items()}, now)
        logger.info("%d kept visits were learned from once more, for the estimator is another one.", known.sum())
