"""The refresher of a crawl: the one place where its parts are made and wired, with the functions that timers call.

* *a request is made* by the spider: `admission`
* *a slot ticks*: `rate` has the slots, and `dispatcher` says which visit begins
* *a response arrives*: `dispatcher` says how it is read, `responses` judges it (`verdict`) and acts on the verdict,
  `book` has the deliveries, and `probes` has the second fetches
* *ChangeSignals arrive*: `polls`
* *re-planning*: `planner`, by `jobs`
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from scrapy import Request
from scrapy.exceptions import IgnoreRequest

from crawlsched.crawl.admission import Admission
from crawlsched.crawl.collection import Collection
from crawlsched.crawl.deliveries import DeliveryBook
from crawlsched.crawl.dispatcher import Dispatcher
from crawlsched.crawl.failing_hosts import FailingHosts
from crawlsched.crawl.fingerprints import fingerprints
from crawlsched.crawl.first_minute import beginning
from crawlsched.crawl.growth import Growth
from crawlsched.crawl.guard import PATIENCE, SLOTS_OF_PATIENCE, Guard
from crawlsched.crawl.hosts import retry_after
from crawlsched.crawl.page_requests import Share
from crawlsched.crawl.polls import Polls
from crawlsched.crawl.probes import Probes
from crawlsched.crawl.project import anchored, named_collection
from crawlsched.crawl.rate import CrawlRate
from crawlsched.crawl.responses import Responses
from crawlsched.crawl.run import OnePass, Starts
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.shard_pages import ShardPages
from crawlsched.crawl.side_thread import LongWork
from crawlsched.crawl.visits import VisitEnds, Visits
from crawlsched.exceptions import DatabaseReplaced
from crawlsched.pages import REFUSED
from crawlsched.scrapy_versions import counter
from crawlsched.settings import Settings
from crawlsched.store import Outcome, host_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

__all__ = ["NotForTheSpider", "Refresher"]

logger = logging.getLogger(__name__)

# Long work rests while this number of rows waits for the next flush. Handing the rows over takes some milliseconds of
# the crawling thread. Writing them takes about a tenth of a second of the other thread.
_MOST_ROWS_PER_FLUSH = 1_200
_HEARTBEAT = "the heartbeat"


class NotForTheSpider(IgnoreRequest):
    """The response answers the question of the visit, and has nothing new for the spider."""


class Refresher:
    """Keeps a collection fresh. The scheduler, the middlewares and the extension of a crawler share one refresher.

    `clock` is the only clock that it reads. `sharing` is None where the collection has no shards.
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
        share: Callable[[Refresher, str], Share] | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.count = count
        self.request_fingerprint = request_fingerprint
        self.guard = Guard(count, clock)
        # Failures in other threads are logged and do not end the crawl, since this guard has no way to give up.
        self.guard_beside = Guard(count, clock)
        self.collection = Collection(
            settings, spider, request_fingerprint, fingerprinter, rng, self.guard_beside, settings.shards, count
        )
        self.shard_pages = ShardPages(self.collection)
        self.planner = self.collection.planner
        self.hosts = self.collection.hosts
        self.planner.frontier.new.limit = self.hosts.limit
        self.hosts.least_delay = least_delay
        self.is_open = False
        self.has_read_commands = False
        #: Whether Scrapy has requests in line; the scheduler replaces this function.
        self.has_requests: Callable[[], bool] = lambda: True
        #: Whether Scrapy is closing the spider and sends no more requests; open requests may still take minutes.
        self.is_ending: Callable[[], bool] = lambda: False
        #: Called when this process has got a shard.
        self.on_shard: Callable[[], None] | None = None
        #: Called with a shard of this process for which commands wait.
        self.on_commands: Callable[[Shard], None] = lambda shard: None
        #: The ``finish_reason`` and a sentence for the log, once this crawl has lost its lease or its database.
        self.lost: tuple[str, str | None] | None = None
        #: This process's part where several processes crawl the collection; None: this is the only process.
        self.sharing: Share | None = None
        if settings.shards is not None:
            assert share is not None
            self.sharing = share(self, spider)
        self.rate = CrawlRate(settings, self.planner, self.hosts, count, self._note, clock(), self.sharing)
        self.growth = Growth(
            lambda: len(self.collection.index) - len(self.planner.frontier.new), lambda: self.planner.bandwidth, clock()
        )
        self.long_work = LongWork(clock, lambda: len(self.collection.unsaved) <= _MOST_ROWS_PER_FLUSH)
        self.visits = Visits()
        self.probes = Probes(
            rng, lambda: bool(self.planner.frontier.new), enabled=settings.probes, has_room=self._has_room_for_probes
        )
        self.starts = Starts(settings.starts_first)
        one_pass = settings.one_pass
        self.one_pass = OnePass(self.planner, one_pass, self.hosts.failing_since) if one_pass else None
        self.book = DeliveryBook(self.collection, clock(), self.one_pass)
        self.admission = Admission(
            collection=self.collection,
            owe=self.book.ask,
            starts=self.starts,
            asks_robots=not obeys_robots,
            growth=self.growth,
            sharing=self.sharing,
        )
        self._failing_hosts = FailingHosts(self.collection)
        self.visit_ends = VisitEnds(
            self.collection, self.visits, self.probes, self.book, self._failing_hosts, self.one_pass
        )
        self.dispatcher = Dispatcher(
            self.collection, self.visits, self.probes, self.visit_ends, self.book, self.starts, self.one_pass
        )
        self.responses = Responses(
            self.collection, self.probes, self.book, self._failing_hosts, self.admission, self.visit_ends
        )
        self.polls = Polls(self.collection, self.admission, self.long_work, self.visit_ends, clock)

    @classmethod
    def of(cls, crawler: Crawler, share: Callable[[Refresher, str], Share] | None = None) -> Refresher:
        """Return the refresher of a crawler, which is made at the first call."""
        if (known := cls._of.get(crawler)) is not None:
            return known
        # The wall clock is read once, then only the monotonic clock, so setting the machine's clock moves no slot.
        offset = time.time() - time.monotonic()
        # Tests of other components make middlewares without a crawl and without a spider.
        spider = crawler.spider
        name, arguments = ("", {}) if spider is None else (spider.name, vars(spider))
        settings = Settings.from_scrapy(crawler.settings, name)
        settings = replace(settings, database_url=anchored(settings.database_url, Path.cwd()))
        if spider is not None and settings.collection is not None:
            settings = replace(settings, collection=named_collection(settings.collection, name, arguments))
        fingerprinter, fingerprint = fingerprints(crawler.request_fingerprinter, settings.ignore_parameters)
        made = cls._of[crawler] = cls(
            settings,
            name,
            share=share,
            count=counter(crawler.stats),
            request_fingerprint=lambda url: fingerprint(Request(url)),
            clock=lambda: offset + time.monotonic(),
            rng=Random(),
            fingerprinter=fingerprinter,
            obeys_robots=crawler.settings.getbool("ROBOTSTXT_OBEY"),
            least_delay=crawler.settings.getfloat("DOWNLOAD_DELAY"),
        )
        return made

    # -- opening and closing

    def open(self) -> None:
        """Open the store and load the collection, or join those who share it."""
        if self.sharing is not None:
            self.sharing.open()
            self.is_open = True
            return
        self.shard_pages.open(self.clock())
        self.is_open = True
        now = self.clock()
        self.rate.take_over(self.collection.lease.notes, now)
        where = self.collection.store.name, self.collection.store.database.name
        said = beginning(
            *where, len(self.collection.index), self.n_copies(), self.planner.bandwidth, self.settings.one_pass
        )
        logger.info("%s", said)
        self.came(self.collection.shards.only)

    def came(self, shard: Shard) -> None:
        """A shard, or a whole collection without shards, is in memory from now on."""
        self.admission.weigh_all(shard, self.clock, self.long_work.add)
        for url in self.settings.source_urls:
            if self.collection.shards.of_name(host_of(url)) is shard:
                self.admission.add_source("sitemap", url, self.clock())
        if self.sharing is None:
            return
        if self.one_pass is not None and self.sharing.pass_since is not None:
            self.one_pass.tried_since(self.sharing.pass_since)
        # Rows that were found while the shard was here before may be lost. They are handed over again when they are
        # found again.
        self.sharing.handing_over.forget(shard.number)
        if self.on_shard is not None:
            self.on_shard()

    def is_busy_with(self, shard: int) -> bool:
        """Whether a visit or a delivery of a shard is under way."""
        hosts, host_of_page = set(self.collection.shards.hosts_of(shard)), self.planner.pages.host.item
        return any(visit.host in hosts for visit in self.visits) or any(
            host_of_page(page) in hosts for page in self.book.pages()
        )

    def ends(self, shard: int | None = None) -> None:
        """End the visits and deliveries of a shard; None: of all shards."""
        now, host_of_page = self.clock(), self.planner.pages.host.item
        hosts = range(len(self.hosts)) if shard is None else set(self.collection.shards.hosts_of(shard))
        for visit in [visit for visit in self.visits if shard is None or visit.host in hosts]:
            self.visit_ends.end(visit, Outcome.DROPPED, now)
            if visit.page >= 0:
                self.planner.release(visit.page, now)
        # The content of these pages was not kept; the next crawl finds it again.
        for probe in self.probes.leave(lambda probe: probe.host in hosts):
            if self.collection.knows(probe.page):
                self.planner.release(probe.page, now)
        if shard is not None:
            self.book.leave(lambda page: host_of_page(page) in hosts)

    def n_copies(self, part: slice = slice(None)) -> int:
        """Return how many pages of a part were crawled; O(pages)."""
        pages = self.planner.pages
        return int(np.count_nonzero(pages.crawled_at[: pages.n][part] > -np.inf))

    def start_slots(self) -> None:
        """Begin the grid of slots now; slots that passed during loading are lost."""
        # Work that has become due meanwhile is done before the first slot, not in it.
        self.planner.frontier.advance(self.clock())
        self.rate.begin(self.clock())
        self.starts.begin(self.clock(), self.planner.bandwidth)

    def closing(self) -> Iterator[Callable[[], None] | None]:
        """End the open visits and deliveries, write everything down, and close the store, step by step.

        A step that waits for the disk is yielded as a function. The caller runs it in a thread before the next step.
        """
        if not self.is_open:
            return
        now = self.clock()
        if self.sharing is not None:
            self.sharing.ends()
        self.ends()
        while self.long_work.has_work:
            self.long_work.go_on()
            yield None
            if len(self.collection.unsaved) > _MOST_ROWS_PER_FLUSH:
                self.collection.flush(self.clock())
                yield None
        self.is_open = False
        self.collection.flush(now)
        if self.sharing is not None:
            yield partial(self.sharing.close, now)
            return
        # The last heartbeat comes after all other writes. So if the database hardly answers, the last seconds are used
        # for what was learned.
        self.collection.before_release.append(
            lambda: self.guard.run("the last heartbeat", lambda: self._beat(self.status(now)))
        )
        yield lambda: self.collection.close(now)

    # -- what the slots ask for

    def must_wait(self, now: float) -> bool:
        """Whether nothing may be dispatched until the store, or the receivers of handed-over rows, have caught up."""
        return self.collection.must_wait(now) or (self.sharing is not None and self.sharing.is_full)

    def silence(self, now: float) -> float:
        """Return for how many seconds a due slot was neither used nor given up; 0 while all requests have to wait."""
        has_to_wait = self.must_wait(now) or self.collection.reader.is_waiting
        return 0.0 if has_to_wait else self.rate.slots.lateness(now)

    def may_send(self, token: object = None) -> bool:
        """Return whether a request may be sent now: the last check, right before it is sent."""
        if self.sharing is None:
            return True
        visit, shard = self.visits.get(token), None
        if visit is not None and visit.tracked:
            shard = self.collection.shards.number_of(self.hosts.names[visit.host])
        elif token is not None and visit is None:
            return False  # the visit has ended, since its shard belongs to another process
        if self.sharing.may_send(shard):
            return True
        if visit is not None and visit.tracked:
            self.visit_ends.not_sent(visit, self.clock())
        return False

    def others_may_go(self, now: float) -> bool:
        """Whether known pages need no longer wait for the first start requests."""
        if self.starts.is_over:
            return True
        is_under_way = self.book.is_calling_back or self.collection.reader.has_picked
        is_busy = is_under_way or any(visit.page >= 0 for visit in self.visits)
        return self.starts.look(now, is_busy or bool(self.book.n_untracked) or self.has_requests())

    def is_quiet(self) -> bool:
        """Whether start(), and all pages and requests that this run has asked for, have ended."""
        self.book.look_at_ended()
        return self.starts.has_ended and not self.collection.n_awaited and not self.book.n_untracked

    def pass_is_over(self, now: float) -> bool:
        """Whether a run of one pass waits only for callbacks and items; Scrapy knows when these end."""
        return self.nothing_is_left(now) if self.sharing is None else self.sharing.pass_is_over

    def nothing_is_left(self, now: float) -> bool:
        """Whether a run of one pass has nothing left to do for the pages in memory."""
        if self.one_pass is None or not self.starts.has_ended or self.visits or self.probes:
            return False
        if self.long_work.has_work or not self.has_read_commands or self.collection.sources.n_due(now):
            return False
        if any(shard.commands_under_way for shard in self.collection.shards):
            return False
        return self.one_pass.is_over(now)

    def _has_room_for_probes(self, host: int) -> bool:
        """Whether second fetches at a host take no slot from first copies or, in one pass, from any page."""
        is_slow = self.hosts.limit(host) < self.rate.slots.rate
        if self.one_pass is not None:
            return not is_slow and self.one_pass.is_drained
        return not is_slow or not self.planner.frontier.new.of_host[host]

    # -- what hosts ask for

    def host_rests(self, host: str, value: str, now: float) -> None:
        """A host sent Retry-After."""
        if (until := retry_after(value, now)) is not None and self.hosts.rest(self.hosts.number(host), until):
            self.count("crawlsched/hosts/rested")
            self.collection.save_host(self.hosts.number(host), now)

    def ask_again(self, host: str, now: float, most: int | None = None) -> None:
        """Make the pages due that a host's robots.txt had forbidden, or `most` of these pages."""
        pages, number = self.planner.pages, self.hosts.number(host)
        refused = np.flatnonzero((pages.state[: pages.n] == REFUSED) & (pages.host[: pages.n] == number))
        self.planner.ask_soon(refused[:most], now)

    # -- what timers call

    def flush(self, now: float) -> None:
        """Hand unwritten changes to the store, and read ahead the facts of pages that are likely to be needed."""
        for name, step in (
            ("the flush", lambda: self.collection.flush(now)),
            ("what follows on work in the other thread", self.collection.aside.collect),
            ("which first visits have ended", self.book.look_at_ended),
            ("reading ahead", lambda: self.collection.reader.read_ahead(now)),
            ("what grows without end", lambda: self.growth.look(now)),
        ):
            self.guard.run(name, step)

    def sweep(self, now: float) -> None:
        """End the visits and deliveries whose end was not announced, and look which hosts fail."""
        if now >= self._failing_hosts.next_look:
            self.long_work.add(self._failing_hosts.look(now))
        self.visit_ends.end_lost(now)
        if self.rate.rests:
            self.rate.rested_at = now
        patience = max(self.settings.visit_timeout, SLOTS_OF_PATIENCE / self.rate.slots.rate)
        if now - self.rate.rested_at > patience:
            for visit in self.visits.older_than(now - patience):
                self.visit_ends.resolve(visit, Outcome.DROPPED, now)
            self.book.give_up(now - patience)
        # A second fetch that has waited for so long would come too late: the page itself may have changed by then.
        for probe in self.probes.give_up(now - max(PATIENCE, SLOTS_OF_PATIENCE / self.planner.bandwidth)):
            self.collection.wrong_pages.answered(probe.host, probe.first.likeness)
            if self.collection.knows(probe.page):
                self.planner.release(probe.page, now)

    def heartbeat(self, now: float) -> None:
        """Tell the store that this process lives."""
        if self.sharing is not None:
            self.sharing.heartbeat()
        elif not self.collection.aside.is_busy_with(_HEARTBEAT):
            self._note(now)

    def _note(self, now: float) -> None:
        """Write down the state of the crawl: at each heartbeat, and when the crawl pauses."""
        status = self.status(now)
        self.collection.aside.run(_HEARTBEAT, lambda: self._beat(status))

    def _beat(self, status: dict[str, Any]) -> None:
        try:
            if not self.collection.lease.heartbeat(None, status):
                self.lost = "crawlsched_lease_lost", None
        except DatabaseReplaced as error:
            self.lost = "crawlsched_database_replaced", str(error)

    def status(self, now: float) -> dict[str, Any]:
        """The status of a running crawl, for `crawlsched status`."""
        return {
            "bandwidth": self.planner.bandwidth,
            "dispatched": self.visits.dispatched,
            "resolved": {str(outcome): n for outcome, n in self.visits.counts.items()},
            "not_data": self.admission.not_data,
            "growth": self.growth.warning,
            "first_copies": {
                "made": self.growth.n_first_copies,
                "waiting": len(self.planner.frontier.new),
                "per_second": self.growth.pace(now),
            },
            **self.status_of_shard(),
            "failing_callbacks": self.book.failing,
            "slots": {**self.rate.slot_counts, "missed": self.rate.slots.missed},
            "time": now,
            "last_sent_at": self.rate.last_sent_at,
            "paused_since": self.rate.paused_since,
            "rests": self.rate.rests,
            "silence": self.silence(now),
            "unsaved_for": self.collection.unsaved_for(now),
            "pages": len(self.collection.index),
            "states": self._failing_hosts.states,
        }

    def status_of_shard(self) -> dict[str, Any]:
        """Return what the owner of a shard writes about the shard, for the next owner and for commands."""
        return {
            "threshold": self.planner.threshold,
            "planner": {
                "crawl_value": self.settings.crawl_value,
                "estimator": self.settings.estimator,
                "discovery_share": self.planner.frontier.share.share,
                "error_interval": self.settings.error_interval,
                "pages": [rule.said() for rule in self.settings.pages],
                "host_shares": dict(self.settings.host_shares),
            },
        }
