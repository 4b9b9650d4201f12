"""Refit: learn each page's change rate again, from the stored visits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing
from dataclasses import replace
from itertools import islice
from math import isnan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.hosts import Hosts
from crawlsched.estimators import Posterior
from crawlsched.jobs.stored_planners import newest_plan
from crawlsched.planner import Planner, readable
from crawlsched.planner.from_settings import planner_for
from crawlsched.planner.knowledge import RENEWAL
from crawlsched.settings import Settings
from crawlsched.store import Batch, Outcome, Store
from crawlsched.store.rows import ROWS_AT_ONCE

__all__ = ["PartResult", "RefitPart", "learn", "refit"]

# At most this number of parts is computed or waits to be written at the same time, since results take memory.
_UNDER_WAY = 32
# Outcomes of visits that count as crawls: they brought content, or the answer that the content is unchanged.
_CRAWLS = (Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED, Outcome.FLAPPING)


class RefitPart(NamedTuple):
    """Some pages of a store, and the settings for learning about them, which can be sent to a worker."""

    database: str
    collection: str
    shard: int
    first: int
    last: int
    settings: Settings
    now: float


class PartResult(NamedTuple):
    """The result of learning from the visits of some pages."""

    # The columns to write: for pages whose visits are all stored, and for pages without rows of this grid and
    # estimator. None if there are no such pages.
    batch: Batch | None
    n_pages: int  # the number of these pages
    n_visits: int  # the number of visits learned from
    n_left: int  # the number of pages that keep their estimates, since their first visits were deleted


def learn(part: RefitPart) -> PartResult:
    """Learn from the stored visits of some pages, as a crawl learns from each visit.

    This reads the database and changes nothing, so it can run on any machine, and be repeated. The newest plan is used
    for all visits, however old. Every unchanged visit counts in full, since doubts about some of them are not stored.
    """
    with closing(Store.open(part.database, part.collection, part.shard, read_only=True)) as store:
        hosts, planner = Hosts(), planner_for(part.settings, picks=False)
        numbers, n_rates = range(part.first, part.last + 1), planner.posterior.rates.size
        kept = store.load(
            host_number=hosts.number, grid=planner.grid, n_rates=n_rates, estimator=planner.estimator, pages=numbers
        )
        block = next(kept, None)
        if block is None:
            return PartResult(None, 0, 0, 0)
        block.pop("estimator_state", None)  # learned anew
        pages = np.asarray(block["page"], np.intp)
        planner.load({**block, "page": np.arange(pages.size)}, None, part.now)
        if (plan := newest_plan(store, hosts.number)) is not None:
            planner.adopt(plan, part.now)
            while planner.work(part.now):
                pass
        # A page's row is its number, since the rounding depends on the row. Rows that are not used take no memory.
        posterior = Posterior(part.last + 1, planner.posterior.rates, dtype=np.uint8, renewal=RENEWAL)
        n_crawls, n_visits = _replayed(store, part, pages, planner, posterior)
        is_known = np.asarray(block["has_log_likelihood"], bool)
        if planner.learned is not None:
            is_known = is_known & block["has_estimator_state"]
    is_whole = n_crawls == block["n_crawls"]
    rows, n_left = np.flatnonzero(is_whole | ~is_known), int(np.count_nonzero(~is_whole & is_known))
    if not rows.size:
        return PartResult(None, 0, n_visits, n_left)
    planner.pages.n_signals[: pages.size] = block["n_signals"]  # replaying the visits has overwritten these counts
    planner.posterior.unpack(rows, posterior.packed(pages[rows]))
    columns = {**planner.columns(rows), **readable(planner, rows, part.now), "page": pages[rows]}
    batch = Batch(columns=columns, grid=planner.grid, estimator=planner.estimator)
    return PartResult(batch, rows.size, n_visits, n_left)


def _replayed(
    store: Store, part: RefitPart, pages: NDArray[np.intp], planner: Planner, posterior: Posterior
) -> tuple[NDArray[np.int64], int]:
    """Let a posterior, and the planner's estimator, learn from visits; return the number of crawls of each page."""
    row_of = dict(zip(pages.tolist(), range(pages.size), strict=True))
    n_crawls, n_visits = np.zeros(pages.size, np.int64), 0
    for page, elapsed, changed, n_signals, modified, outcome in store.reader.visits(part.first, part.last):
        row = row_of.get(page)
        if row is None:
            continue
        if changed is not None and elapsed is not None and elapsed > 0.0:
            evidence = 0.0
            if n_signals:
                planner.pages.n_signals[row] = n_signals
                evidence = float(planner.announcements.evidence(np.array([row]))[0])
            parameters = planner.in_force.parameters
            prior = parameters.priors[parameters.group(planner.pages.host.item(row))]
            since = None if modified is None or isnan(modified) else modified
            posterior.update_one(
                page,
                elapsed,
                bool(changed),
                evidence,
                time_since_modified=since,
                prior=prior,
                n_updates=int(n_crawls[row]),
            )
            if planner.learned is not None:
                planner.learned.observe(row, elapsed, bool(changed), n_signals, since)
            n_visits += 1
        n_crawls[row] += outcome in _CRAWLS
    return n_crawls, n_visits


def refit(stores: Sequence[Store], settings: Settings, executor: Executor, now: float) -> Iterator[PartResult]:
    """Learn about all pages again, part by part on any executor; yield each part's result after it is written.

    The lease of `stores` keeps crawls out. The executor's workers must reach the database. If a worker dies, the
    executor may repeat its part, since the result depends on the database alone.
    """
    # Functions in the settings cannot be sent to workers, and learning does not need the importance of pages.
    plain = replace(settings, importance=None)
    parts = (
        (store, RefitPart(store.database.text, store.name, store.key[0], first, first + ROWS_AT_ONCE - 1, plain, now))
        for store in stores
        for first in range(0, store.reader.next_page(), ROWS_AT_ONCE)
    )
    under_way: dict[Future[PartResult], Store] = {}
    while True:
        for store, part in islice(parts, _UNDER_WAY - len(under_way)):
            under_way[executor.submit(learn, part)] = store
        if not under_way:
            return
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            store, learned = under_way.pop(future), future.result()
            if learned.batch is not None:
                store.save(learned.batch)
            yield learned
