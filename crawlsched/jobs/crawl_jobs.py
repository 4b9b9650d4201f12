"""The jobs: what is done over and over beside crawling, by APScheduler.

* *re-plan*: population prior, signal quality, threshold
* *poll sitemaps*: put those whose time has come in line for a slot
* *prune*: delete old observations
* *check the store*: is the database sound?
* *sample*: the figures of each minute, for curves and alerts

They run inside the crawl, or as a process of their own (``crawlsched jobs``). They coalesce, never overlap, and an
exception in one is logged and ends nothing. What takes long runs in a thread; the slot clock never waits for a job.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from apscheduler.schedulers.base import BaseScheduler
from apscheduler.schedulers.blocking import BlockingScheduler
from numpy.typing import NDArray

from crawlsched.change_signals import newest_of_each
from crawlsched.collection.heap import give_memory_back
from crawlsched.collection.hosts import Hosts
from crawlsched.collection.loading import load_pages, planner_for
from crawlsched.exceptions import CrawlschedError
from crawlsched.pages.counts import PageCounts, counted, counted_in_parts
from crawlsched.planner import Plan, Planner, Snapshot, plan
from crawlsched.refresh.figures import Figures
from crawlsched.refresh.refresher import Refresher
from crawlsched.scrapy_versions import is_asyncio_available, run_in_thread
from crawlsched.settings import Settings
from crawlsched.store import Store

__all__ = ["CrawlJobs", "JobsProcess", "check_store", "make_plan", "placed", "prune", "visits_of_sources"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_EXECUTOR_LOGGER = logging.getLogger("apscheduler.executors.default")

_PRUNE_INTERVAL = 3600.0
_CHECK_INTERVAL = 86_400.0
_SAMPLE_INTERVAL = 60.0
_LONGEST_POLL_INTERVAL = 10.0
# In the crawl's own process looking costs nothing, and sources of a small one are read every few seconds.
_OFTEN = 1.0
_ADOPT_INTERVAL = 5.0
# The first plans come soon, since a new crawl learns most in its first minutes; then ever later, up to the interval.
_FIRST_REPLAN = 5.0
# Seconds between two parts of a snapshot.
_REST = 0.002
_SIGNAL_OBSERVATIONS = 200_000
# A source is judged by so many of its newest visits with an announcement: when it changes its ways, as many wipe out
# all that was seen before.
_REMEMBERED = 1_000
# As if one such announcement in twenty were true, nats.
_WEIGHT_OF_A_DOUBT = 0.05
_PRUNED_AT_ONCE = 5_000
# One job at a time of each kind; what was missed is done once, whenever there is time again.
_JOB_DEFAULTS = {"coalesce": True, "max_instances": 1, "misfire_grace_time": None}


def visits_of_sources(store: Store) -> dict[str, NDArray[Any]]:
    """Read the visits from which the sources' quality is learned; takes long."""
    return newest_of_each(store.signal_observations(0.0, _SIGNAL_OBSERVATIONS), _REMEMBERED)


def make_plan(
    store: Store,
    snapshot: Snapshot,
    visits: Mapping[str, NDArray[Any]],
    hosts: Sequence[str],
    bandwidth: float,
    now: float,
    previous: Plan | None = None,
    counts: PageCounts | None = None,
) -> Plan:
    """Make a plan and keep it in the store; takes long, changes nothing in memory.

    Parameters
    ----------
    store : Store
    snapshot : Snapshot
        Copies of what the planner knows.
    visits : mapping
        What `visits_of_sources` read, with the ``host`` and ``part`` of their pages.
    hosts : sequence of str
        The hosts' names by number: in the store a plan speaks of names, since every process numbers hosts anew.
    bandwidth : float
        Crawls per second.
    now : float
        POSIX seconds.
    previous : Plan, optional
        The plan in force.
    counts : PageCounts, optional
        Of all pages; they are kept with the plan, for `crawlsched status`.
    """
    made = _with_doubts(plan(snapshot, bandwidth, visits, previous), store)
    data = made.to_dict(hosts)
    if counts is not None:
        data["page_counts"] = {**counts._asdict(), "sources": list(counts.sources.items())}
    store.save_plan(data, now)
    return made


def placed(visits: Mapping[str, NDArray[Any]], planner: Planner) -> dict[str, NDArray[Any]]:
    """Return visits with the host of each page; those of pages not known are left out."""
    known = visits["page"] < planner.pages.n
    kept = {name: column[known] for name, column in visits.items()}
    kept["host"] = planner.hosts(kept["page"])
    return kept


def _with_doubts(made: Plan, store: Store) -> Plan:
    """Give little weight to doubtful dates, until visits have shown what they are worth."""
    weights = made.signal_weights.copy()
    for source in store.sources():
        if source.kind == "backwards" and source.source < weights.size - 1:
            low, high = made.precision_intervals[source.source]
            if low <= 0.0 and high >= 1.0:
                weights[source.source] = min(weights[source.source], _WEIGHT_OF_A_DOUBT)
    return replace(made, signal_weights=weights)


def prune(store: Store, before: float) -> int:
    """Delete the observations made before this time, some at once; return how many."""
    deleted = 0
    while n := store.prune(before, _PRUNED_AT_ONCE):
        deleted += n
    if deleted:
        logger.info("%d old observations were deleted.", deleted)
    return deleted


def check_store(store: Store) -> list[str]:
    """Return what is wrong with the database, as sentences; log them, too."""
    problems = store.quick_check()
    for problem in problems:
        logger.error("The database is damaged: %s", problem)
    return problems


class CrawlJobs:
    """The jobs inside a crawl.

    With ``CRAWLSCHED_JOBS = False`` two are left: adopting the plans that ``crawlsched jobs`` makes, and sampling.
    """

    def __init__(self, refresher: Refresher, figures: Figures | None) -> None:
        self._refresher = refresher
        self._figures = figures
        self._settings = refresher.settings
        self._scheduler: BaseScheduler | None = None
        self._replanned = 0
        self._plan: Plan | None = None
        self._newest_plan = -1

    def start(self) -> None:
        """Start them, once the store is open."""
        self._scheduler = _scheduler()
        _EXECUTOR_LOGGER.disabled = False
        if self._settings.jobs:
            self._every(min(_poll_interval(self._settings), _OFTEN), self.poll_sitemaps)
            self._every(_PRUNE_INTERVAL, self.prune)
            self._every(_CHECK_INTERVAL, self.check_store)
            self._refresher.poll_sources(self._refresher.clock())
        else:
            self._every(_ADOPT_INTERVAL, self.adopt_newest)
        if self._figures is not None:
            self._every(_SAMPLE_INTERVAL, self.sample)
        self._scheduler.start()
        if self._settings.jobs:
            self._replan_later()

    def stop(self) -> None:
        """Stop them; what is under way in a thread ends by itself."""
        if self._scheduler is not None and self._scheduler.running:
            # Ending cancels the job that happens to run, which APScheduler would log as an error of that job.
            _EXECUTOR_LOGGER.disabled = True
            self._scheduler.shutdown(wait=False)

    async def replan(self) -> None:
        """Make a plan in a thread, and adopt it."""
        refresher = self._refresher
        if self._is_too_soon():
            self._replan_later()
            return
        store, bandwidth = refresher.collection.store, refresher.planner.bandwidth
        try:
            visits = placed(await run_in_thread(visits_of_sources, store), refresher.planner)
            snapshot, names = await _between_slots(refresher.snapshot_in_parts()), refresher.hosts.names
            counts = await _between_slots(counted_in_parts(refresher.planner.pages))
            made = await run_in_thread(
                make_plan, store, snapshot, visits, names, bandwidth, refresher.clock(), self._plan, counts
            )
            self._plan = made
            await self._adopt(made)
            del visits, snapshot
            await run_in_thread(give_memory_back)
        except CrawlschedError as error:
            logger.error("No plan could be made, so the last one stands: %s", error)
        finally:
            self._replanned += 1
            self._replan_later()

    async def adopt_newest(self) -> None:
        """Adopt the plan that another process made, if there is a newer one."""
        if self._is_too_soon():
            return
        newest = await run_in_thread(self._refresher.collection.store.newest_plan, self._newest_plan)
        if newest is not None:
            self._newest_plan = newest.id
            await self._adopt(Plan.from_dict(newest.data, self._refresher.hosts.number))

    def _is_too_soon(self) -> bool:
        """Whether putting the last plan in force goes on, or took so long that it is not to be done again yet."""
        return self._refresher.clock() < self._refresher.planner.in_force.rests_until

    async def _adopt(self, plan: Plan) -> None:
        """Decide by a plan from now on."""
        self._refresher.adopt(plan, self._refresher.clock())
        if self._figures is not None:
            self._figures.rank()

    async def poll_sitemaps(self) -> None:
        """Put the sitemaps whose time has come in line for a slot."""
        self._refresher.poll_sources(self._refresher.clock())

    async def sample(self) -> None:
        """Take the figures of this minute."""
        if self._figures is not None:
            self._figures.sample()

    async def prune(self) -> None:
        """Delete observations that are older than CRAWLSCHED_OBSERVATION_RETENTION, and unused request templates."""
        before = self._refresher.clock() - self._settings.observation_retention
        store = self._refresher.collection.store
        await run_in_thread(prune, store, before)
        await run_in_thread(store.prune_templates)
        await run_in_thread(store.thin_samples, self._refresher.clock())

    async def check_store(self) -> None:
        """Look whether the database is sound."""
        await run_in_thread(check_store, self._refresher.collection.store)

    def _every(self, seconds: float, job: Callable[[], Any]) -> None:
        assert self._scheduler is not None
        self._scheduler.add_job(job, "interval", seconds=seconds, id=job.__name__)

    def _replan_later(self) -> None:
        # By date and not by interval: the next one is set when this one has ended, so they cannot overlap.
        if self._scheduler is None or not self._scheduler.running:
            return
        wait = min(_FIRST_REPLAN * 2.0 ** min(self._replanned, 60), self._settings.replan_interval)
        at = datetime.now(UTC) + timedelta(seconds=wait)
        self._scheduler.add_job(self.replan, "date", run_date=at, id="replan", replace_existing=True)


class JobsProcess:
    """The same jobs as a process of their own, over one collection (``crawlsched jobs``).

    The crawl runs with ``CRAWLSCHED_JOBS = False``; it adopts the plans made here within seconds, and polls the
    sitemaps that it is told to, in its own slots.

    Parameters
    ----------
    store : Store
        The collection.
    settings : Settings
        Of the project; the bandwidth is the crawl's if one runs.
    clock : callable
        Gives POSIX seconds.
    """

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._plan: Plan | None = None

    def run(self) -> None:
        """Run the jobs until the process is interrupted."""
        _quiet_apscheduler()
        scheduler = BlockingScheduler(job_defaults=_JOB_DEFAULTS, timezone=UTC)
        settings = self._settings
        now = datetime.now(UTC)
        for job, seconds in (
            (self.replan, settings.replan_interval),
            (self.poll_sitemaps, _poll_interval(settings)),
            (self.prune, _PRUNE_INTERVAL),
            (self.check_store, _CHECK_INTERVAL),
        ):
            scheduler.add_job(job, "interval", seconds=seconds, id=job.__name__, next_run_time=now)
        scheduler.start()

    def replan(self) -> None:
        """Load the collection, make a plan, and leave it where the crawl finds it."""
        now = self._clock()
        planner, hosts = planner_for(self._settings, picks=False), Hosts()
        for _ in load_pages(self._store, planner, hosts, now):
            pass
        owner = self._store.owner()
        bandwidth = owner.status.get("bandwidth", planner.bandwidth) if owner is not None else planner.bandwidth
        visits = placed(visits_of_sources(self._store), planner)
        known = visits, hosts.names, bandwidth, now, self._plan, counted(planner.pages)
        self._plan = make_plan(self._store, planner.snapshot(), *known)
        logger.info("A plan over %d pages was made.", len(planner.pages))

    def poll_sitemaps(self) -> None:
        """Tell the crawl which sitemaps' time has come, unless it has been told and has not come to it yet."""
        now = self._clock()
        told = {command.arguments.get("url") for command in self._store.pending_commands() if command.name == "poll"}
        for source in self._store.sources():
            due = source.next_poll_at is not None and source.next_poll_at <= now
            if due and source.url not in told:
                self._store.send("poll", {"url": source.url}, now)

    def prune(self) -> None:
        """Delete observations that are older than CRAWLSCHED_OBSERVATION_RETENTION."""
        prune(self._store, self._clock() - self._settings.observation_retention)

    def check_store(self) -> None:
        """Look whether the database is sound."""
        check_store(self._store)


async def _between_slots(parts: Generator[None, None, T]) -> T:
    """Take a snapshot, or count, part by part, so that slots in between are not late."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            taken: T = end.value
            return taken
        # Waiting in a thread gives the event loop back with every reactor.
        await run_in_thread(time.sleep, _REST)


def _poll_interval(settings: Settings) -> float:
    # Often enough that a sitemap is at most a tenth of its interval late.
    return min(settings.source_interval / 10, _LONGEST_POLL_INTERVAL)


def _quiet_apscheduler() -> None:
    # It says at INFO when each job begins and ends, which would fill a crawl's log; unless somebody wants just that.
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
