"""The refresher: what happens when a request is made, a slot ticks, a response arrives, a sitemap is read.

This is the table of contents of the system. Each flow is one method here; how it goes on stands in the module named.

* *a request is made* by the spider: `requested` (`requested`)
* *a slot ticks*: `next_page`, `next_source` (`slots`, `planner`, `sources`)
* *a response arrives*: `reading` (`content.reading`, in a thread if it is large), then `crawled` (`responses`,
  `judging`); without one: `failed`, `resolve`; through the spider: `deliveries`
* *a visit is in doubt*: `next_probe` (`probes`), then as for any response; that teaches what is noise
  (`noise_masks`), and what is served in the place of pages (`wrong_pages`)
* *ChangeSignals arrive*: `read_source` (in a thread), then `source_read` (`source_reading`, `announcements`)
* *re-planning*: `snapshot`, then `planner.plan` (in a thread, by `jobs`), then `adopt`
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from math import inf, isfinite
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from crawlsched.change_signals import absolute_sitemaps
from crawlsched.collection.collection import Collection
from crawlsched.collection.project import anchored, argument_digests, named_collection
from crawlsched.collection.shard import Shard
from crawlsched.content.reading import Body, Content
from crawlsched.content.recipe_choice import Recipes
from crawlsched.content.ruling import Ruling
from crawlsched.exceptions import DatabaseReplaced
from crawlsched.pages import REFUSED
from crawlsched.pages.marks import RECRAWL, START
from crawlsched.planner import Plan, Snapshot
from crawlsched.planner.sampling import snapshot_in_parts
from crawlsched.refresh.announcements import Announcing
from crawlsched.refresh.delivering import Delivering
from crawlsched.refresh.failing_hosts import FailingHosts
from crawlsched.refresh.first_minute import beginning
from crawlsched.refresh.growth import Growth
from crawlsched.refresh.guard import Guard
from crawlsched.refresh.handing_over import FOUND, PAGE, SOURCE, Elsewhere, found_again
from crawlsched.refresh.mishaps import Mishaps
from crawlsched.refresh.other_recipes import OtherRecipes
from crawlsched.refresh.owing import Owing
from crawlsched.refresh.pacing import Line, Pace
from crawlsched.refresh.pings import announce, known_pages
from crawlsched.refresh.requested import Admission, Admitted, Asked
from crawlsched.refresh.responses import Fetched, ForSpider, Responses
from crawlsched.refresh.retry_after import retry_after
from crawlsched.refresh.shared.sharing import LONGEST_DEBT, Sharing
from crawlsched.refresh.slots import Outgoing
from crawlsched.refresh.watchdog import Watchdog
from crawlsched.settings import Settings
from crawlsched.slot_clock import SlotClock
from crawlsched.sources.source_reading import SourceRead
from crawlsched.store import Outcome, PageFacts, Source, host_of
from crawlsched.visits.fingerprints import fingerprints
from crawlsched.visits.one_pass import OnePass
from crawlsched.visits.probes import Probes
from crawlsched.visits.starts import Starts
from crawlsched.visits.visits import Visit, Visits

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

__all__ = ["Body", "Content", "Fetched", "ForSpider", "NotForTheSpider", "Refresher"]

logger = logging.getLogger(__name__)

_SOURCE_OUTCOMES = {304: Outcome.NOT_MODIFIED, 404: Outcome.GONE, 410: Outcome.GONE}
# Long work rests when so many rows wait for the next flush: handing them over takes some milliseconds of the crawling
# thread, writing them about a tenth of a second of the other.
_MOST_ROWS_PER_FLUSH = 1_200
_MEAN_FOR = 3600.0
# Below so many requests a second each is written down at once.
_SELDOM = 1.0
_CLOSING_STEP = 0.002
# A second fetch that found no slot for so long would come too late: by then the page itself may have changed.
_LONGEST_PROBE = 60.0
# How often a page is delivered behind which there are requests that are no pages, seconds; and once in each run.
_UNTRACKED_INTERVAL = 86_400.0
_SLOTS_PER_PROBE = 3.0  # where slots are rarer than that, it has to wait for one all the same
# A visit whose end nobody announced is looked for this often.
_SWEEP_INTERVAL = 5.0
# At a low rate a request may have to wait for so many slots: its own turn, and that of a robots.txt before it.
SLOTS_OF_PATIENCE = 4.0


class NotForTheSpider(IgnoreRequest):
    """The response told us what we wanted to know, and there is nothing new in it for the spider."""


class Refresher:
    """Keep a collection fresh: the flows between Scrapy, the planner and the store.

    There is one for each crawler, shared by the scheduler, the middlewares and the extension (`Refresher.of`). It reads
    no clock but the one it is given.

    Parameters
    ----------
    settings : Settings
        Checked settings.
    spider : str
        The spider's name.
    count : callable
        ``count(name, n=1)`` adds to a statistic.
    request_fingerprint : callable
        Gives the 20-byte request fingerprint of a URL.
    clock : callable
        Gives POSIX seconds and never goes back.
    rng : random.Random
        Chooses which visits are probed.
    arguments : mapping of str to str, optional
        Digests of the spider's arguments.
    """

    _of: ClassVar[WeakKeyDictionary[Any, Refresher]] = WeakKeyDictionary()

    def __init__(
        self,
        settings: Settings,
        spider: str,
        *,
        count: Callable[..., None],
        request_fingerprint: Callable[[str], bytes],
        clock: Callable[[], float],
        rng: Random,
        fingerprinter: str = "",
        obeys_robots: bool = True,
        least_delay: float = 0.0,
        arguments: Mapping[str, str] | None = None,
    ) -> None:
        self._arguments = dict(arguments or {})
        self.settings = settings
        self.clock = clock
        self.count = count
        self.request_fingerprint = request_fingerprint
        self.collection = Collection(settings, spider, request_fingerprint, fingerprinter, rng, settings.shards)
        self.planner = self.collection.planner
        self.hosts = self.collection.hosts
        self.planner.frontier.new.limit = self.hosts.limit
        self.sources = self.collection.sources
        self.visits = Visits()
        self.probes = Probes(
            rng,
            lambda: bool(self.planner.frontier.new),
            enabled=settings.probes,
            has_room=self._has_room_for_probes,
        )
        self.slots = self._clock_of(settings.bandwidth, clock())
        self.hosts.bandwidth = settings.bandwidth
        self.hosts.least_delay = least_delay
        self.line: Line[Any] = Line(Pace(settings.bandwidth))
        self.on_rate: Callable[[], None] | None = None
        #: What is told when a shard has come.
        self.on_shard: Callable[[], None] | None = None
        self.last_sent_at: float | None = None
        #: Since when this crawl is told to send nothing, POSIX seconds; None: it is not.
        self.paused_since: float | None = None
        self._hours = settings.hours
        self._rests_by_hours = False
        self._mean_until = -inf
        self.is_open = False
        self.on_work: Callable[[], None] | None = None
        self._work: deque[Iterator[None]] = deque()
        self._swept_at = 0.0
        # The sitemaps that each robots.txt named when it was read last.
        self._named_by: dict[str, list[str]] = {}
        #: When nothing went out last because the crawl rests: what waits at the second gate then is not lost.
        self.rested_at = -inf
        self.has_read_commands = False
        #: Whether Scrapy has requests in line; the scheduler says how to know.
        self.has_requests: Callable[[], bool] = lambda: True
        #: Whether Scrapy closes the spider, and sends nothing any more; what is under way may take minutes still.
        self.is_ending: Callable[[], bool] = lambda: False
        self._slot_counts = dict.fromkeys(("used", "idle", "no_free_host", "paid", "paused"), 0)
        #: What became of the database, in a sentence, if it is another one than that in which the crawl began.
        self.lost_database: str | None = None
        self._owned = True
        self.starts = Starts(settings.starts_first)
        self.one_pass = None
        if settings.one_pass:
            most = None if settings.one_pass is True else settings.one_pass
            self.one_pass = OnePass(self.planner, most, self.hosts.failing_since)
        self.owing = Owing(self.collection, _UNTRACKED_INTERVAL, clock(), count)
        if self.one_pass is not None:
            self.owing.released = self.one_pass.released
        #: Callbacks whose requests could not be written down, and how often.
        self.not_data: dict[str, int] = {}
        self.growth = Growth(self._n_copies, lambda: self.planner.bandwidth, clock())
        #: What there is to do besides where several processes crawl the collection; None: this is the only one.
        self.sharing = None if settings.shards is None else Sharing(self, spider)
        self._admission = Admission(
            self.collection,
            settings,
            count,
            owe=self.owing.ask,
            withhold=self.collection.withheld.note,
            asks_robots=not obeys_robots,
            elsewhere=None if self.sharing is None else Elsewhere(self.sharing, self.collection.shards),
            growth=self.growth,
        )
        self._announcing = Announcing(
            self.collection,
            self._admission,
            settings,
            count=count,
            request_fingerprint=request_fingerprint,
            clock=clock,
        )
        self._delivering = Delivering(
            self.collection,
            self.owing,
            count,
            delivers_unchanged=settings.callback_on_unchanged,
        )
        self._failing_hosts = FailingHosts(self.collection)
        self._responses = Responses(
            self.collection,
            self.visits,
            self.probes,
            count,
            request_fingerprint,
            lambda source, now: self._announcing.nothing_new(source, now, ok=False),
            self._delivering,
            self._failing_hosts,
            settings.min_change,
            self._admission.is_elsewhere,
            self.growth,
        )
        self.guard = Guard(count, clock)
        self.watchdog = Watchdog(clock())
        self.mishaps = Mishaps(self.collection, self.visits, count)
        self._recipes = Recipes(settings)
        self._other_recipes = OtherRecipes(self._recipes)
        self._outgoing = Outgoing(
            self.collection,
            self.visits,
            self.probes,
            self._recipes,
            self.mishaps,
            count,
            owing=self.owing,
            starts=self.starts,
            one_pass=self.one_pass,
            delivers_unchanged=settings.callback_on_unchanged,
        )
        self.deliveries = self._delivering.deliveries

    @property
    def on_ruling(self) -> Callable[[Visit, Content, Ruling], None]:
        """What is told of each ruling on content: the visit, the content, the ruling."""
        return self._responses.on_ruling

    @on_ruling.setter
    def on_ruling(self, listener: Callable[[Visit, Content, Ruling], None]) -> None:
        self._responses.on_ruling = listener

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """Return the refresher of a crawler, making it if it is the first to be asked for."""
        refresher = cls._of.get(crawler)
        if refresher is None:
            refresher = cls._of[crawler] = cls._for(crawler)
        return refresher  # type: ignore[return-value]

    @classmethod
    def _for(cls, crawler: Crawler) -> Self:
        assert crawler.stats is not None
        # Wall-clock time once, the monotonic clock from then on: a clock that is set back or forward moves no slot.
        offset = time.time() - time.monotonic()
        # Tests of other components make middlewares, and no crawl, without a spider.
        spider = crawler.spider
        name, arguments = ("", {}) if spider is None else (spider.name, vars(spider))
        settings = Settings.from_scrapy(crawler.settings, name)
        settings = replace(settings, database_url=anchored(settings.database_url, Path.cwd()))
        if spider is not None and settings.collection is not None:
            settings = replace(settings, collection=named_collection(settings.collection, name, arguments))
        fingerprinter, fingerprint = fingerprints(crawler.request_fingerprinter, settings.ignore_parameters)
        return cls(
            settings,
            name,
            arguments=argument_digests(arguments),
            count=crawler.stats.inc_value,
            request_fingerprint=lambda url: fingerprint(Request(url)),
            clock=lambda: offset + time.monotonic(),
            rng=Random(),
            fingerprinter=fingerprinter,
            obeys_robots=crawler.settings.getbool("ROBOTSTXT_OBEY"),
            least_delay=crawler.settings.getfloat("DOWNLOAD_DELAY"),
        )

    # -- opening and closing

    def open(self) -> None:
        """Open the store and load the collection, or join those who share it."""
        if self.sharing is not None:
            self.is_open = True
            try:
                self.sharing.open()
            except BaseException:
                self.is_open = False
                raise
            return
        self.collection.open(self.clock())
        self.is_open = True
        now = self.clock()
        self._say_other_arguments()
        self._take_over_notes(now)
        logger.info(
            "%s",
            beginning(
                self.collection.store.name,
                self.collection.store.database.name,
                *self.known_pages(),
                self.planner.bandwidth,
                self.settings.one_pass,
            ),
        )
        self.came(self.collection.shards.only)
        demand = self.planner.overdue_demand()
        if demand > self.planner.bandwidth:
            logger.warning(
                "CRAWLSCHED_PAGES asks for %.3g crawls a second of these %d pages, more than the %.3g of "
                "CRAWLSCHED_BANDWIDTH: pages will be overdue, the oldest go first.",
                demand,
                len(self.collection.index),
                self.planner.bandwidth,
            )

    def came(self, shard: Shard) -> None:
        """A shard, or the whole of a collection without any, is here from now on."""
        self._other_recipes.look_at(shard, self.collection.aside)
        self._admission.weighing.weigh_all(shard, self.clock, self.add_work)
        for url in self.settings.source_urls:
            if self.collection.shards.of_name(host_of(url)) is shard:
                self._admission.add_source("sitemap", url, self.clock())
        if self.sharing is None:
            return
        if self.one_pass is not None and self.sharing.pass_since is not None:
            self.one_pass.tried_since(self.sharing.pass_since)
        # What a former stay of the shard here has found may be lost with it, and is handed over again when it is found.
        self.sharing.handing_over.forget(shard.number)
        if self.on_shard is not None:
            self.on_shard()

    def is_busy_with(self, shard: int) -> bool:
        """Whether a visit or a delivery of a shard is under way."""
        number_of, names = self.collection.shards.number_of, self.hosts.names
        if any(number_of(names[visit.host]) == shard for visit in self.visits if visit.tracked):
            return True
        of_page = self.collection.shards.of_page
        return any((there := of_page(page)) and there.number == shard for page in self.deliveries.pages())

    def ends(self, shard: int | None = None) -> None:
        """End what is under way of a shard; None: of all."""
        now, number_of, names = self.clock(), self.collection.shards.number_of, self.hosts.names
        for visit in [visit for visit in self.visits if visit.tracked or shard is None]:
            if shard is None or number_of(names[visit.host]) == shard:
                self._responses.end(visit, Outcome.DROPPED, now)
                if visit.page >= 0:
                    self.planner.release(visit.page, now)
        # Nothing was kept of what these pages said; the next crawl finds it again.
        for probe in self.probes.leave(lambda host: shard is None or number_of(names[host]) == shard):
            if self.collection.knows(probe.page):
                self.planner.release(probe.page, now)
        if shard is not None:
            self.deliveries.leave(self.collection.shards.has(shard), now)

    def known_pages(self) -> tuple[int, int]:
        """Return how many pages are known, and how many of them were crawled; O(pages)."""
        pages = self.planner.pages
        return len(self.collection.index), int(np.count_nonzero(pages.crawled_at[: pages.n] > -np.inf))

    def _say_other_arguments(self) -> None:
        before = self.collection.shards.only.last_status.get("arguments", self._arguments)
        others = sorted(name for name in {*before, *self._arguments} if before.get(name) != self._arguments.get(name))
        if others and len(self.collection.index):
            logger.warning(
                "The collection %r was last crawled with another %s, and those pages are kept fresh, too; "
                "CRAWLSCHED_COLLECTION = '{name}-{%s}' keeps them apart.",
                self.settings.collection,
                " and ".join(repr(name) for name in others),
                others[0],
            )

    def start_slots(self) -> None:
        """Let the grid of slots begin now: the time that loading took is not paid back."""
        self._outgoing.warm_up()
        # What it has brought about meanwhile is looked at before the first slot, and not in it.
        self.planner.frontier.advance(self.clock())
        if self.paused_since is not None:
            logger.warning("The crawl is paused and sends nothing; `crawlsched bandwidth resume` lets it go on.")
        if self.sharing is None:
            self.follow_hours(self.clock())
        self._rest_or_go_on()
        now, rate = self.clock(), self.slots.rate if self.sharing is None else self.sharing.rate
        last = -inf if self.last_sent_at is None else self.last_sent_at
        # The grid goes on from the last request of the last run, so that no number of restarts sends more than one run.
        self.slots = self._clock_of(rate, max(now, last + 1.0 / rate))
        self.line.pace = Pace(rate, last)
        self.starts.begin(self.clock(), self.planner.bandwidth)

    def _clock_of(self, rate: float, begin: float) -> SlotClock:
        return SlotClock(rate, begin) if self.settings.shards is None else SlotClock(rate, begin, debt=LONGEST_DEBT)

    def _take_over_notes(self, now: float) -> None:
        """Know what the last run has left with the lease: when it sent its last request, whether it was to pause."""
        notes = self.collection.lease.notes
        last, paused_since = notes.get("last_sent_at"), notes.get("paused_since")
        self.last_sent_at = min(float(last), now) if isinstance(last, int | float) and isfinite(last) else None
        self.paused_since = float(paused_since) if isinstance(paused_since, int | float) else None

    def sent(self, now: float, unpaid: bool) -> None:
        """A request is written now; `unpaid` says that no slot was taken for it yet."""
        self.last_sent_at = now
        if unpaid:
            self.slots.pay(now)
            self.count_slots("paid")
        if self.slots.rate < _SELDOM and self.sharing is None:
            # Where slots are rare a restart has to know of each: a supervisor in a crash loop exceeds no rate.
            self.heartbeat(now)

    def closing(self) -> Iterator[Callable[[], None] | None]:
        """Resolve what is still open, write everything down, close the store, step by step.

        Yields
        ------
        callable or None
            What waits for the disk and can be run in a thread before the next step; None between steps of work.
        """
        if not self.is_open:
            return
        now = self.clock()
        if self.sharing is not None:
            self.sharing.ends()
        self.ends()
        self.collection.come_back([*self.collection.aside_pages, *self.collection.credentials.waiting], now)
        while self._work:
            self.work(_CLOSING_STEP)
            yield None
            if len(self.collection.unsaved) > _MOST_ROWS_PER_FLUSH:
                self.collection.flush(self.clock())
                yield None
        self.is_open = False
        self.collection.flush(now)
        if self.sharing is not None:
            yield partial(self.sharing.close, now)
            return
        # Last of all: where the database does not answer, the seconds that are left are for what was learned.
        self.collection.before_release.append(lambda: self._heartbeat_now(now))
        yield lambda: self.collection.close(now)

    # -- a request is made

    def requested(self, asked: Asked, now: float) -> Admitted:
        """The spider asks for a page; see `Admission.requested`."""
        if self.sharing is not None and self.collection.shards.of_name(asked.host) is None:
            return self.sharing.hand_over(asked, now)
        admitted, page = self._admission.requested(asked, now)
        if admitted is Admitted.NEW:
            self.collection.n_awaited += 1
        if asked.is_start and page >= 0 and admitted is not Admitted.ONCE:
            self.starts.asked(page)
        return admitted

    def knows(self, asked: Asked) -> bool:
        """Whether a request would make nothing new, neither a page nor a visit; see `Admission.knows`.

        Owners of other shards judge for themselves.
        """
        return self.collection.shards.of_name(asked.host) is None or self._admission.knows(asked)

    def signal(self, urls: Sequence[str], source: str, now: float) -> int:
        """Announce that pages may have changed; return how many of this process's were taken."""
        if self.sharing is not None:
            return self.sharing.signal(urls, source, now)
        pages, _ = known_pages(self, urls)
        return announce(self, pages, source, now)

    def take_in(self, named: Mapping[str, float | None], now: float) -> dict[str, int]:
        """Take in pages by their URLs and, where it is stated, their importance; return what became of them."""
        return self._admission.named(named, self.request_fingerprint, now)

    def start_ended(self) -> None:
        """start() has ended."""
        self.starts.has_ended = True

    def leads(self, page: int, token: int) -> bool:
        """Whether a response is of a start request that goes first, or of what it led to."""
        return self.starts.leads(page, token)

    def together(self, now: float) -> AbstractContextManager[None]:
        """Take in what is new of all that is taken over inside at once; see `Admission.together`."""
        return self._admission.together(now)

    def add_together(self, now: float) -> None:
        """Take in what waits for the end of `together`."""
        self._admission.add_together(now)

    def take_over(self, kind: str, data: Mapping[str, Any], now: float) -> None:
        """Take in what another process has found for this shard."""
        if kind == PAGE:
            admitted, page = self._admission.requested(Asked.from_dict(data), now)
            if admitted is Admitted.NEW:
                self.collection.n_awaited += 1
            elif admitted is Admitted.ONCE and page >= 0:
                self.owing.ask(page, RECRAWL, now)
                self.planner.force([page], now)
        elif kind == SOURCE:
            self._admission.add_source(str(data["kind"]), str(data["url"]), now, named_by=data["named_by"])
        elif kind == FOUND:
            self._admission.found(found_again(data), now)
        else:
            raise ValueError(f"{kind!r} is handed over by another version; let all processes have the same.")

    def importance(self, url: str) -> float:
        """Return what a page is worth of which only the URL is known."""
        return self._admission.weighing.importance(url, {}, None)

    def weigh(self, pages: Sequence[int], importance: Sequence[float], now: float) -> int:
        """Somebody says what these pages are worth; see `Weighing.weigh`."""
        return self._admission.weighing.weigh(pages, importance, now)

    # -- a slot ticks

    def next_page(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Return the page that is worth most among those whose host may be asked now, and begin its visit."""
        return self._outgoing.next_page(now, host_free_at)

    def next_start(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Return the page of the next start request that goes before all others, and begin its visit."""
        return self._outgoing.next_start(now, host_free_at)

    def others_may_go(self, now: float) -> bool:
        """Whether the pages that wait for the first start requests may go."""
        return self.starts.look(
            now,
            lambda page: self.planner.in_flight(page) or self.deliveries.is_called_back(page),
            self.deliveries.is_waited_for,
        )

    def is_quiet(self) -> bool:
        """Whether start(), and all pages and requests that this run has asked for, have ended."""
        self._delivering.look_at_ended()
        return self.starts.has_ended and not self.collection.n_awaited and not self.deliveries.n_untracked

    def pass_is_over(self, now: float) -> bool:
        """Whether a run of one pass has nothing left to do but what Scrapy knows of, which is callbacks and items."""
        return self.nothing_is_left(now) if self.sharing is None else self.sharing.pass_is_over

    def nothing_is_left(self, now: float) -> bool:
        """Whether one pass over the pages that are here is over."""
        if self.one_pass is None or not self.starts.has_ended or self.visits or self.probes:
            return False
        if self.has_work or not self.has_read_commands or self.sources.mark_due(now):
            return False
        if any(shard.commands_under_way for shard in self.collection.shards):
            return False
        return self.one_pass.is_over(now)

    def next_source(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, str] | None:
        """Return the URL of a sitemap that is due, and begin its visit."""
        return self._outgoing.next_source(now, host_free_at)

    def next_probe(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Return what has to be fetched before a visit can be judged, and begin its visit."""
        return self._outgoing.next_probe(now, host_free_at)

    def _has_room_for_probes(self, host: int) -> bool:
        """Whether a second fetch at a host takes nothing from first copies, or in one pass from any page."""
        is_slow = self.hosts.limit(host) < self.slots.rate
        if self.one_pass is not None:
            return not is_slow and self.one_pass.is_drained
        return not is_slow or not self.planner.frontier.new.of_host[host]

    def validators(self, visit: Visit) -> tuple[str | None, str | None]:
        """Return the ETag and Last-Modified with which a visit may be made conditional."""
        return self._outgoing.validators(visit)

    def is_asked_for(self, visit: Visit) -> bool:
        """Whether a visit is what the spider asked for itself in this run, and no later one of the same page."""
        pages = self.planner.pages
        return pages.crawled_at.item(visit.page) == -inf or bool(pages.marks.item(visit.page) & START)

    def must_wait(self, now: float) -> bool:
        """Whether nothing may be dispatched until the store has caught up, or those to whom things were handed over."""
        return self.collection.must_wait(now) or (self.sharing is not None and self.sharing.is_full)

    def may_send(self, token: object = None) -> bool:
        """Say whether a request may be written at this moment: the last look, right before it goes."""
        if self.sharing is None:
            return True
        visit, shard = self.visits.get(token), None
        if visit is not None and visit.tracked:
            shard = self.collection.shards.number_of(self.hosts.names[visit.host])
        elif token is not None and visit is None:
            return False  # it has ended: its shard is another process's
        if self.sharing.may_send(shard):
            return True
        if visit is not None and visit.tracked:
            self.not_sent(visit, self.clock())
        return False

    # -- a response arrives

    def reading(self, visit: Visit, body: Body, meant: object) -> tuple[partial[Content], bool]:
        """Return what reads a response, and whether it is quick enough for this thread; it changes nothing."""
        return self._outgoing.reading(visit, body, meant)

    def crawled(self, visit: Visit, fetched: Fetched, now: float) -> ForSpider | None:
        """A visit got a response; return what its content is to the spider, None if there was none."""
        try:
            return self._responses.crawled(visit, fetched, now)
        except Exception as error:  # of ours, and the spider gets what it would have got without us
            self.mishaps.of_visit(visit, error, now)
            return None

    def truncated(self, visit: Visit, fetched: Fetched, now: float) -> ForSpider | None:
        """A visit got a body that was cut short; return what that is to the spider."""
        try:
            return self._responses.truncated(visit, fetched, now)
        except Exception as error:
            self.mishaps.of_visit(visit, error, now)
            return None

    def failed(self, visit: Visit, now: float, *, retry_at: float | None = None) -> None:
        """A visit ended with an error."""
        try:
            self._responses.failed(visit, now, retry_at=retry_at)
        except Exception as error:
            self.mishaps.of_visit(visit, error, now)

    def resolve(self, visit: Visit, outcome: Outcome, now: float) -> None:
        """A visit ended without a response."""
        try:
            self._responses.resolve(visit, outcome, now)
        except Exception as error:
            self.mishaps.of_visit(visit, error, now)

    def not_sent(self, visit: Visit, now: float) -> None:
        """A visit was taken back before anything was sent; its page, which may have been told to go, goes next."""
        try:
            self._responses.not_sent(visit, now)
            is_lesson = visit.probe is not None and not visit.probe.is_held  # of a page that has had its visit
            if visit.page >= 0 and not is_lesson and self.collection.knows(visit.page):
                self.planner.force([visit.page], now)
                if self.one_pass is not None:
                    self.one_pass.taken_back(visit.page)
        except Exception as error:
            self.mishaps.of_visit(visit, error, now)

    def came_late(self, token: int, now: float) -> Visit | None:
        """An answer comes of a visit that was given up; return the visit, begun anew, or None: another one tells."""
        visit = self.visits.reopen(token, now)
        self.count("crawlsched/dispatched")
        if visit.probe is None and not self.planner.in_flight(visit.page):
            return visit
        self._responses.end(visit, Outcome.DROPPED, now)
        return None

    def not_the_page(self, token: object, url: str, now: float) -> None:
        """The spider's callback says that a response is not the page it should be."""
        self._failing_hosts.have_news = True
        self._delivering.not_the_page(token, url, now)

    # -- what hosts ask for

    def host_rests(self, host: str, value: str, now: float) -> None:
        """A host sent Retry-After."""
        until = retry_after(value, now)
        if until is not None and self.hosts.rest(self.hosts.number(host), until):
            self.count("crawlsched/hosts/rested")
            self.collection.save_host(self.hosts.number(host), now)

    def robots_seen(self, url: str, host: str, sitemaps: list[str], crawl_delay: float | None, now: float) -> None:
        """A robots.txt was read."""
        if not self.is_open:
            return
        number = self.hosts.number(host)
        if self.hosts.set_crawl_delay(number, crawl_delay):
            self.collection.save_host(number, now)
        if self.settings.find_sources:
            named = absolute_sitemaps(sitemaps, url)
            for problem in named.problems:
                self._announcing.report(url, problem)
            for sitemap in named.url:
                self._admission.add_source("sitemap", sitemap, now, named_by=host)
            before, self._named_by[url] = self._named_by.get(url, []), list(named.url)
            for gone in set(before).difference(self.settings.source_urls, *self._named_by.values()):
                self._admission.leave_source("sitemap", gone, now)

    def ask_again(self, host: str, now: float) -> None:
        """A host's robots.txt has changed: what it had forbidden may be asked for at once."""
        pages, number = self.planner.pages, self.hosts.number(host)
        refused = np.flatnonzero((pages.state[: pages.n] == REFUSED) & (pages.host[: pages.n] == number))

        def steps() -> Iterator[None]:
            for page in refused.tolist():
                if pages.state.item(page) == REFUSED and not self.planner.in_flight(page):
                    self.planner.put_off(page, self.clock(), self.clock())
                yield

        self.add_work(steps())

    # -- ChangeSignals arrive

    def page_names(self, visit: Visit, url: str, body: bytes, now: float) -> None:
        """A page that is new or has changed may name feeds and sitemaps."""
        if self.settings.find_sources and visit.page >= 0:
            self._announcing.page_names(visit.page, url, body, now)

    def poll_sources(self, now: float) -> int:
        """Put the sources whose time has come in line for a slot (a job calls this)."""
        return self.sources.mark_due(now)

    def visited_source(self, visit: Visit) -> Source:
        """Return the source that a visit is to."""
        return self.sources[visit.source]

    def read_source(self, visit: Visit, url: str, body: bytes) -> SourceRead:
        """Read a sitemap or robots.txt; runs in a thread, and changes nothing."""
        return self._announcing.read_source(visit.source, url, body)

    def source_read(
        self, visit: Visit, read: SourceRead, etag: str | None, last_modified: str | None, now: float
    ) -> None:
        """A source was read: its announcements become ChangeSignals, in slices between the slots."""
        if visit.outcome is not None:  # ended meanwhile, with its shard
            return
        try:
            known = read.digest == self.sources[visit.source].fingerprint
            self._responses.end(visit, Outcome.UNCHANGED if known else Outcome.CHANGED, now)
            self.add_work(
                self._of_source(visit.source, self._announcing.arrived(visit.source, read, etag, last_modified, now))
            )
        except Exception as error:
            self.mishaps.of_visit(visit, error, now)

    def _of_source(self, number: int, steps: Iterator[None]) -> Iterator[None]:
        """Do the steps as long as the source is this process's."""
        while number in self.sources:
            try:
                next(steps)
            except StopIteration:
                return
            yield

    def source_answered(self, visit: Visit, status: int, now: float) -> None:
        """A source gave no new content: not modified, gone, or an error."""
        if visit.outcome is not None:
            return
        try:
            self._responses.end(visit, _SOURCE_OUTCOMES.get(status, Outcome.ERROR), now, Fetched(status))
            self._announcing.nothing_new(visit.source, now, ok=status == 304)
        except Exception as error:
            self.mishaps.of_visit(visit, error, now)

    def poll_soon(self, number: int) -> None:
        """Somebody says that a source has something new."""
        self._announcing.poll_soon(number, self.clock())

    def source_of(self, kind: str, url: str, now: float) -> Source:
        """Return the source of this kind and URL, adding it if it is new."""
        self._admission.add_source(kind, url, now)
        number = self.sources.number(kind, url)
        assert number is not None
        return self.sources[number]

    def waits_for_host(self) -> bool:
        """Whether some page could go if its host did not rest."""
        return self.planner.frontier.waits_for_host()

    # -- re-planning

    def snapshot_in_parts(self) -> Generator[None, None, Snapshot]:
        """Copy what a plan needs."""
        return snapshot_in_parts(self.planner, self.hosts.limits)

    def adopt(self, plan: Plan, now: float) -> None:
        """Decide by a new plan from the next slots on."""
        self.planner.adopt(plan, now)
        self.count("crawlsched/replanned")

    def set_bandwidth(self, bandwidth: float, now: float) -> None:
        """Crawl at another rate from now on; where the collection is shared, all processes do within some seconds."""
        if self.sharing is not None:
            self.sharing.set_bandwidth(bandwidth)
            return
        self._set_rate(bandwidth, now)
        self.planner.set_bandwidth(bandwidth, now)
        logger.info("The bandwidth is %g crawls a second from now on.", bandwidth)
        # What is asked for by hand stands until the next start.
        self._hours, self._rests_by_hours = None, False
        self._rest_or_go_on()

    def follow_hours(self, now: float) -> None:
        """Go at the rate that CRAWLSCHED_BANDWIDTH has for this time; the planner reckons with the mean of the day."""
        if self._hours is None:
            return
        rate = self._hours.rate_at(now)
        if now >= self._mean_until:  # it is another one where the clocks are changed
            self._mean_until = now + _MEAN_FOR
            self.planner.set_bandwidth(self._hours.mean(now), now)
        rests, was = rate == 0.0, (self._rests_by_hours, self.slots.rate)
        self._rests_by_hours = rests
        if not rests and rate != self.slots.rate:
            self._set_rate(rate, now)
        if (rests, self.slots.rate) != was:
            said = "nothing goes out" if rests else f"{rate:g} crawls a second go out"
            logger.info("By the hours of CRAWLSCHED_BANDWIDTH %s from now on.", said)
            self._rest_or_go_on()

    @property
    def rests(self) -> bool:
        """Whether nothing may go out: in a pause, or by the hours of CRAWLSCHED_BANDWIDTH."""
        if self.sharing is not None:
            return self.sharing.rests
        return self.paused_since is not None or self._rests_by_hours

    def pause(self, now: float) -> None:
        """Send nothing until `resume`, also after a restart."""
        if self.paused_since is None:
            self.paused_since = now
            logger.info("The crawl pauses: nothing goes out until it is resumed.")
        self._rest_or_go_on()
        self.heartbeat(now)

    def resume(self, now: float) -> None:
        """Go on after a pause."""
        if self.paused_since is not None:
            self.paused_since = None
            logger.info("The crawl goes on.")
        self._rest_or_go_on()
        self.heartbeat(now)

    def _rest_or_go_on(self) -> None:
        # Behind the slots, too: robots.txt, media and what waited for a name are sent without a slot.
        self.line.is_held = self.rests and self.sharing is None  # what has no grant waits before it is sent
        if self.on_rate is not None:
            self.on_rate()

    def _set_rate(self, rate: float, now: float) -> None:
        self.slots.set_rate(rate, now)
        self.hosts.bandwidth = rate
        self.line.pace.set_rate(rate, now)
        if self.on_rate is not None:
            self.on_rate()

    # -- what timers call

    def stuck(self, now: float, *, may_send: bool) -> str | None:
        """Return why this crawl has to end if nothing goes out although something could; None: all is well.

        Parameters
        ----------
        now : float
            POSIX seconds.
        may_send : bool
            Whether the engine takes requests; False in a pause.
        """
        may = may_send and not self.rests and not self.must_wait(now) and not self.waits_for_host()
        return self.watchdog.look(
            now,
            dispatched=self.visits.dispatched + self.slots.taken,
            # A slot that nobody takes, or a page whose time has come and that no slot takes.
            may=may and (self.slots.is_due(now) or self.planner.frontier.next_event(now) <= now),
            distance=1.0 / self.slots.rate,
        )

    def count_slots(self, kind: str, n: int = 1) -> None:
        """Count what became of slots: used, idle, no_free_host, or paid for a request that came from none."""
        self._slot_counts[kind] += n
        self.count(f"crawlsched/slots/{kind}", n)

    def flush(self, now: float) -> None:
        """Hand what is not written yet to the store, and fetch what will be needed."""
        for name, step in (
            ("the flush", lambda: self.collection.flush(now)),
            ("what follows on work in the other thread", self.collection.aside.collect),
            ("which first visits have ended", self._delivering.look_at_ended),
            ("reading ahead", lambda: self.collection.read_ahead(now)),
            ("what grows without end", lambda: self.growth.look(now)),
        ):
            self.guard.run(name, step)
        if now - self._swept_at > _SWEEP_INTERVAL:
            self.guard.run("ending old visits", lambda: self._sweep(now))

    def _sweep(self, now: float) -> None:
        """End the visits and deliveries whose end nobody announced, and look which hosts fail."""
        self._swept_at = now
        if self._failing_hosts.is_due(now):
            self.add_work(self._failing_hosts.look(now))
        if self.rests:
            self.rested_at = now
        patience = max(self.settings.visit_timeout, SLOTS_OF_PATIENCE / self.slots.rate)
        if now - self.rested_at > patience:
            for visit in self.visits.older_than(now - patience):
                self.resolve(visit, Outcome.DROPPED, now)
                if visit.page >= 0:
                    self.visits.given_up(visit)
            self.deliveries.give_up(now - patience, now)
        for probe in self.probes.give_up(now - max(_LONGEST_PROBE, _SLOTS_PER_PROBE / self.planner.bandwidth)):
            self.collection.wrong_pages.answered(probe.host, probe.first.likeness)
            if self.collection.knows(probe.page):
                self.planner.release(probe.page, now)

    def heartbeat(self, now: float) -> bool:
        """Tell the store that this process lives; return False once another has taken its place."""
        if self.sharing is not None:
            self.sharing.heartbeat()
            return True
        status = self.status(now)
        self.collection.aside.run("the heartbeat", lambda: self._beat(status))
        return self._owned

    def _beat(self, status: dict[str, Any]) -> None:
        try:
            self._owned = self.collection.lease.heartbeat(None, status)
        except DatabaseReplaced as error:
            self.lost_database = str(error)

    def _heartbeat_now(self, now: float) -> None:
        try:
            self._beat(self.status(now))
        except Exception as error:  # the crawl ends anyway, and nothing depends on this
            logger.warning("The last heartbeat could not be written: %s", error)

    def _n_copies(self) -> int:
        return len(self.collection.index) - len(self.planner.frontier.new)

    def status(self, now: float) -> dict[str, Any]:
        """What a running crawl says of itself, for `crawlsched status`."""
        return {
            "bandwidth": self.planner.bandwidth,
            "dispatched": self.visits.dispatched,
            "resolved": {str(outcome): n for outcome, n in self.visits.counts.items()},
            "open": len(self.visits),
            "arguments": self._arguments,
            "not_data": self.not_data,
            "growth": self.growth.told,
            "first_copies": {
                "made": self.growth.n_first_copies,
                "waiting": len(self.planner.frontier.new),
                "per_second": self.growth.pace(now),
            },
            **self.status_of_shard(0),
            **self.owing.status(),
            "slots": {**self._slot_counts, "missed": self.slots.missed},
            "time": now,
            "last_sent_at": self.last_sent_at,
            "paused_since": self.paused_since,
            "rests": self.rests,
            "silence": self.watchdog.silence,
            "unsaved_for": self.collection.unsaved_for(now),
            "pages": len(self.collection.index),
            "states": self._failing_hosts.states,
        }

    def status_of_shard(self, shard: int) -> dict[str, Any]:
        """What who crawls a shard says of it, for its next owner and for commands."""
        return {
            "threshold": self.planner.threshold,
            "recipes": self._other_recipes.status(shard),
            "planner": {
                "crawl_value": self.settings.crawl_value,
                "estimator": self.settings.estimator,
                "discovery_share": self.planner.frontier.share.share,
                "error_interval": self.settings.error_interval,
                "pages": [rule.said() for rule in self.settings.pages],
                "host_shares": dict(self.settings.host_shares),
            },
        }

    # -- long work in slices

    @property
    def has_work(self) -> bool:
        """Whether long work waits for `work`."""
        return bool(self._work)

    def add_work(self, steps: Iterator[None]) -> None:
        """Do long work in the moments that the slots leave; a step takes a millisecond at most. Nothing once closed."""
        if not self.is_open:  # what was read beside while the crawl was closing
            return
        self._work.append(steps)
        if self.on_work is not None:
            self.on_work()

    def work(self, seconds: float) -> bool:
        """Go on with long work for about so long; return whether there is more.

        Not faster than the store takes it: dispatching waits for what has waited too long for the store.
        """
        if len(self.collection.unsaved) > _MOST_ROWS_PER_FLUSH:
            return bool(self._work)
        until = self.clock() + seconds
        while self._work:
            try:
                next(self._work[0])
            except StopIteration:
                self._work.popleft()
            except Exception:
                logger.exception("A piece of long work failed and is given up; the crawl goes on.")
                self._work.popleft()
            if self.clock() >= until:
                break
        return bool(self._work)
