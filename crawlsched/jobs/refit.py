"""Refit: what is known of each page's change rate, learned again from the visits that are kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import closing
from dataclasses import replace
from itertools import islice
from math import isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.hosts import Hosts
from crawlsched.crawl.loading import planner_for
from crawlsched.estimators import Posterior
from crawlsched.exceptions import StoreError
from crawlsched.planner import Plan, Planner, readable
from crawlsched.planner.knowledge import RENEWAL
from crawlsched.settings import Settings
from crawlsched.store import Batch, Outcome, Store
from crawlsched.store.records import last_plan

__all__ = ["Part", "PartResult", "learn", "refit"]

# Pages of one part, and parts that are under way at once: what each has learned waits to be written.
_PAGES = 5_000
_UNDER_WAY = 32
# Visits that count as crawls of their page: content came, and was judged.
_CRAWLS = (Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED, Outcome.FLAPPING)


class Part(NamedTuple):
    """Some pages of a store, and how to learn about them; it is sent to a worker."""

    database: str
    collection: str
    shard: int
    first: int
    last: int
    settings: Settings
    now: float


class PartResult(NamedTuple):
    """What was learned from the visits of some pages."""

    # Pages whose visits are all kept, or that nothing is known about by this grid and estimator; shape (n,)
    pages: NDArray[np.intp]
    log_likelihood: NDArray[np.uint16]  # their compact rows; shape (n, K)
    states: list[bytes] | None  # their rows of the estimator, where there is one
    n_visits: int  # the number of visits learned from
    n_left: int  # pages that keep what is known of them: their first visits were pruned


def learn(part: Part) -> PartResult:
    """Learn from the kept visits of some pages as a crawl learns from each.

    It reads the database and changes nothing, so it may run anywhere, and twice. The newest plan stands for that of
    each time; doubts about unchanged pages are not kept.
    """
    with closing(Store.open(part.database, part.collection, part.shard, read_only=True)) as store:
        hosts, planner = Hosts(), planner_for(part.settings, picks=False)
        newest = last_plan(store)
        plan = None if newest is None else Plan.from_dict(newest.data, hosts.number)
        n_rates = planner.posterior.rates.size
        blocks = _blocks(store, planner, hosts, range(part.first, part.last + 1))
        if not blocks:
            return PartResult(np.empty(0, np.intp), np.empty((0, n_rates), np.uint16), None, 0, 0)
        (block,) = blocks
        pages = np.asarray(block["page"], np.intp)
        planner.load({**block, "page": np.arange(pages.size)}, None, part.now)
        if plan is not None:
            planner.adopt(plan, part.now)
            while planner.work(part.now):
                pass
        # Rows by the pages' own numbers, on which the rounding depends; those below the first one take no memory.
        posterior = Posterior(
            part.last + 1, planner.posterior.rates, dtype=np.uint8, renewal=RENEWAL, counts_updates=False
        )
        n_crawls, n_visits = _replayed(store, part, pages, planner, posterior)
        is_known = np.asarray(block["has_log_likelihood"], bool)
        if planner.learned is not None:
            states = store.reader.estimator_states(planner.learned.key, part.first, part.last)
            known = np.concatenate([np.empty(0, np.intp), *(of for of, _ in states)])
            is_known = is_known & np.isin(pages, known)
    is_whole = n_crawls == block["n_crawls"]
    chosen = np.flatnonzero(is_whole | ~is_known)
    states_of = None if planner.learned is None else planner.learned.packed(chosen)
    n_left = int(np.count_nonzero(~is_whole & is_known))
    return PartResult(pages[chosen], posterior.packed(pages[chosen]), states_of, n_visits, n_left)


def _blocks(store: Store, planner: Planner, hosts: Hosts, pages: Sequence[int]) -> list[dict[str, NDArray[Any]]]:
    """Read pages of one part as a planner loads them: one block, or none if none of them is there."""
    n_rates = planner.posterior.rates.size
    return list(store.load(_PAGES, host_number=hosts.number, grid=planner.grid, n_rates=n_rates, pages=pages))


def _replayed(
    store: Store, part: Part, pages: NDArray[np.intp], planner: Planner, posterior: Posterior
) -> tuple[NDArray[np.int64], int]:
    """Let a posterior, and the planner's estimator, learn from visits; return how many crawls each page has had."""
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
    """Learn again of all pages, part by part on any executor, and yield what each part has learned, once it is written.

    The lease of `stores` keeps crawls out. The executor's workers reach the database, and it repeats a part whose
    worker died: the result depends on the database alone.
    """
    # Functions of the settings do not travel, and nothing here asks what a page is worth.
    plain = replace(settings, importance=None)
    parts = (
        (store, Part(store.database.text, store.name, store.key[0], first, first + _PAGES - 1, plain, now))
        for store in stores
        for first in range(0, store.reader.next_page(), _PAGES)
    )
    under_way: dict[Future[PartResult], tuple[Store, Part]] = {}
    while True:
        for store, part in islice(parts, _UNDER_WAY - len(under_way)):
            under_way[executor.submit(learn, part)] = store, part
        if not under_way:
            return
        done, _ = wait(under_way, return_when=FIRST_COMPLETED)
        for future in done:
            store, part = under_way.pop(future)
            learned = future.result()
            _write(store, part, learned)
            yield learned


def _write(store: Store, part: Part, learned: PartResult) -> None:
    """Write the rows, and the readable columns."""
    if not learned.pages.size:
        return
    planner, hosts = planner_for(part.settings, picks=False), Hosts()
    newest = last_plan(store)
    plan = None if newest is None else Plan.from_dict(newest.data, hosts.number)
    (block,) = _blocks(store, planner, hosts, learned.pages.tolist())
    if not np.array_equal(block["page"], learned.pages):
        raise StoreError(f"The pages of {store.name!r} have changed meanwhile; run the command again.")
    rows = np.arange(learned.pages.size)
    planner.load({**block, "page": rows, "has_log_likelihood": rows >= 0}, learned.log_likelihood, part.now)
    if learned.states is not None:
        planner.load_learned(rows, learned.states, part.now)
    if plan is not None:
        planner.adopt(plan, part.now)
        while planner.work(part.now):
            pass
    columns = {**planner.columns(rows), **readable(planner, rows, part.now), "page": learned.pages}
    key = None if planner.learned is None else planner.learned.key
    store.save(Batch(columns=columns, grid=planner.grid, estimator=key or ""))
