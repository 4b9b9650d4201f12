"""The jobs: regular work during a crawl, started by APScheduler.

They run inside the crawl. If several runs of a job are late, the job runs once. Runs of a job never overlap. An
exception in a job is only logged. Long work runs in a thread, so the slot clock never waits for a job.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import numpy as np
from apscheduler.schedulers.base import BaseScheduler
from numpy.typing import NDArray

from crawlsched.change_signals import newest_of_each
from crawlsched.crawl.figures import Figures
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.shard import Shard, Shards
from crawlsched.crawl.side_thread import SLICE, give_memory_back
from crawlsched.exceptions import CollectionInUse, CrawlschedError
from crawlsched.pages.pages import counted, counted_in_parts
from crawlsched.planner import Plan, Planner, Snapshot, plan
from crawlsched.planner.sampling import snapshot_in_parts
from crawlsched.scrapy_versions import is_asyncio_available, run_in_thread
from crawlsched.store import Store
from crawlsched.store.records import save_plan, thin_samples
from crawlsched.store.rows import ROWS_AT_ONCE

__all__ = ["CrawlJobs", "plan_now"]

logger = logging.getLogger(__name__)

T = TypeVar("T")
Visits = Mapping[str, NDArray[Any]]

_EXECUTOR_LOGGER = logging.getLogger("apscheduler.executors.default")

# The wait for the next plan is a fifth of the time since the start, but at least 3 and at most 300 seconds. So the
# first plans are made soon: a new crawl learns most in its first minutes.
_REPLAN_PART, _REPLAN_WITHIN = 0.2, (3.0, 300.0)
# All stored texts together have at most this number of bytes; the oldest texts are deleted.
_KEPT_TEXTS_BYTES = 1_000_000_000
_JOB_DEFAULTS = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}


def _visits_of_sources(store: Store) -> dict[str, NDArray[Any]]:
    """Read the visits from which the sources' quality is learned; this takes long."""
    return newest_of_each(store.reader.signal_observations(0.0))


def _make_plan(
    shards: Shards,
    snapshot: Snapshot,
    visits: Mapping[str, NDArray[Any]],
    hosts: Sequence[str],
    bandwidth: float,
    now: float,
    previous: Plan | None = None,
    counts: Mapping[str, Any] | None = None,
) -> Plan:
    """Make a plan and write it to the stores; this takes long, and changes nothing in memory.

    Each shard's store gets the plan of its hosts and sources. `visits` were read by `_visits_of_sources`, and have the
    ``host`` and ``part`` of their pages. The stores get names of `hosts`, since every process numbers hosts anew.
    Without shards the store also gets `counts`, for `crawlsched status`.
    """
    made = plan(snapshot, bandwidth, visits, previous)
    for shard in shards:
        there = {number: here for here, number in shard.source_numbers.items()}
        kept = made.for_sources([there.get(number, -1) for number in range(max(there, default=-1) + 1)])
        if shards.n is not None:
            kept = kept.of_hosts(lambda host, shard=shard: shards.of_host(host) is shard)  # type: ignore[misc]
        data = kept.to_dict(hosts)
        if counts is not None and shards.n is None:
            of_sources = [(shard.source_numbers.get(source, -1), n) for source, n in counts["sources"].items()]
            data["page_counts"] = {**counts, "sources": of_sources}
        try:
            save_plan(shard.store, data, now)
        except CollectionInUse:  # the next owner of the shard makes a plan
            if shards.n is None:
                raise
    return made


def _placed(read: Sequence[tuple[Shard, Visits]], planner: Planner, shards: Shards) -> Visits:
    """Return visits with the numbers of pages, sources and hosts in memory; visits of unknown pages are left out.

    Parameters
    ----------
    read : sequence of (Shard, mapping of str to ndarray)
        Each shard (at least one) with the visits that `_visits_of_sources` has read.
    planner : Planner
    shards : Shards
    """
    found = []
    for shard, visits in read:
        here = {there: number for number, there in shard.source_numbers.items()}
        rows = shards.rows_of(shard, visits["page"])
        sources = np.array([here.get(number, -1) for number in visits["source"].tolist()], np.int64)
        known = (rows >= 0) & (sources >= 0)
        found.append({name: column[known] for name, column in {**visits, "page": rows, "source": sources}.items()})
    kept = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    return {**kept, "host": planner.hosts(kept["page"])}


def _prune(store: Store, before: float) -> int:
    """Delete the observations before this time in several steps; return their number."""
    deleted = 0
    while n := store.forgetting.prune(before, ROWS_AT_ONCE):
        deleted += n
    if deleted:
        logger.info("%d old observations were deleted.", deleted)
    return deleted


class CrawlJobs:
    """The jobs inside a crawl."""

    def __init__(self, refresher: Refresher, figures: Figures | None) -> None:
        self._refresher = refresher
        self._figures = figures
        self._settings = refresher.settings
        self._scheduler: BaseScheduler | None = None
        self._began_at = 0.0
        self._plan: Plan | None = None

    def start(self) -> None:
        """Start the jobs; the store must be open."""
        self._began_at = self._refresher.clock()
        self._scheduler = _scheduler()
        _EXECUTOR_LOGGER.disabled = False
        # The first run comes soon, since a crawl that cron starts may end within the hour.
        self._every(timedelta(hours=1), self.prune, first=timedelta(minutes=1))
        if self._figures is not None:
            self._every(timedelta(minutes=1), self.sample)
        self._scheduler.start()
        self._replan_later()

    def shard_came(self) -> None:
        """Plan soon, since the plan in force does not cover the pages of the new shard."""
        self._began_at = self._refresher.clock()
        self._replan_later()

    def stop(self) -> None:
        """Stop the jobs; work in a thread goes on to its end."""
        if self._scheduler is not None and self._scheduler.running:
            # APScheduler cancels the running job here, and would log this as an error of the job.
            _EXECUTOR_LOGGER.disabled = True
            self._scheduler.shutdown(wait=False)

    async def replan(self) -> None:
        """Make a plan in a thread, and adopt it."""
        refresher = self._refresher
        # Wait if the last plan is still being put in force, or took so long that the next plan is not due yet.
        if refresher.clock() < refresher.planner.in_force.rests_until or not refresher.collection.shards.here:
            self._replan_later()
            return
        collection, bandwidth = refresher.collection, refresher.planner.bandwidth
        try:
            shards = collection.shards
            read = await run_in_thread(lambda: [(shard, _visits_of_sources(shard.store)) for shard in shards])
            visits = _placed(read, refresher.planner, collection.shards)
            hosts = refresher.hosts
            snapshot = await _between_slots(snapshot_in_parts(refresher.planner, hosts.limits))
            counts = await _between_slots(counted_in_parts(refresher.planner.pages))
            made = await run_in_thread(
                partial(_make_plan, collection.shards, snapshot, visits, hosts.names, bandwidth),
                refresher.clock(),
                self._plan,
                counts,
            )
            self._plan = made
            refresher.planner.adopt(made, refresher.clock())
            refresher.count("crawlsched/replanned")
            del visits, snapshot
            await run_in_thread(give_memory_back)
        except CrawlschedError as error:
            logger.error("No plan could be made, so the last plan stays in force: %s", error)
        finally:
            self._replan_later()

    async def sample(self) -> None:
        """Store the figures of this minute."""
        if self._figures is not None:
            self._figures.sample()

    async def prune(self) -> None:
        """Delete observations older than CRAWLSCHED_OBSERVATION_RETENTION, unused request templates, and old texts."""
        before = self._refresher.clock() - self._settings.observation_retention
        room = _KEPT_TEXTS_BYTES // (self._refresher.collection.shards.n or 1)
        for shard in self._refresher.collection.shards:
            try:
                await run_in_thread(_prune, shard.store, before)
                await run_in_thread(shard.store.forgetting.prune_templates)
                await run_in_thread(shard.store.forgetting.prune_texts, room)
                await run_in_thread(thin_samples, shard.store, self._refresher.clock())
            except CollectionInUse:
                continue  # another process owns the shard by now

    def _every(self, interval: timedelta, job: Callable[[], Any], first: timedelta | None = None) -> None:
        assert self._scheduler is not None
        at = datetime.now(UTC) + (first or interval)
        seconds = interval.total_seconds()
        self._scheduler.add_job(job, "interval", seconds=seconds, start_date=at, id=job.__name__)

    def _replan_later(self) -> None:
        # At its end, each run sets the time of the next run, so runs cannot overlap.
        if self._scheduler is None or not self._scheduler.running:
            return
        running = self._refresher.clock() - self._began_at
        wait = min(max(_REPLAN_PART * running, _REPLAN_WITHIN[0]), _REPLAN_WITHIN[1])
        at = datetime.now(UTC) + timedelta(seconds=wait)
        self._scheduler.add_job(self.replan, "date", run_date=at, id="replan", replace_existing=True)


def plan_now(refresher: Refresher, now: float) -> None:
    """Make a plan while nothing is sent, write it to the store, and adopt it."""
    shards, planner = refresher.collection.shards, refresher.planner
    visits = _placed([(shard, _visits_of_sources(shard.store)) for shard in shards], planner, shards)
    snapshot, counts = planner.snapshot(refresher.hosts.limits), counted(planner.pages)
    made = _make_plan(shards, snapshot, visits, refresher.hosts.names, planner.bandwidth, now, None, counts)
    planner.adopt(made, now)
    while planner.work(now):
        pass


async def _between_slots(parts: Generator[None, None, T]) -> T:
    """Run a generator part by part between slots, so that slots stay on time; return its result."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            taken: T = end.value
            return taken
        # A pause in a thread frees the event loop with every Twisted reactor.
        await run_in_thread(time.sleep, SLICE)


def _quiet_apscheduler() -> None:
    # At INFO, APScheduler logs the beginning and the end of each job, which would fill a crawl's log. A level that a
    # user has set is not changed.
    apscheduler = logging.getLogger("apscheduler")
    if apscheduler.level == logging.NOTSET:
        apscheduler.setLevel(logging.WARNING)


def _scheduler() -> BaseScheduler:
    _quiet_apscheduler()
    if is_asyncio_available():
        from apscheduler.schedulers.asyncio import AsyncIOScheduler

        return AsyncIOScheduler(job_defaults=_JOB_DEFAULTS, timezone=UTC)
    from apscheduler.schedulers.twisted import TwistedScheduler

    return TwistedScheduler(job_defaults=_JOB_DEFAULTS, timezone=UTC)
