"""The Scrapy scheduler: slots come at a fixed rate, and each slot sends one request.

A slot sends the first of these: a redirect or retry of a request already under way; a second fetch of a page that was
fetched a moment ago; a page of the first start requests. Otherwise three kinds take turns: due sitemaps, requests of
the fallback scheduler, and pages (best crawl value first).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, Literal, Self

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.dupefilters import BaseDupeFilter, RFPDupeFilter
from scrapy.exceptions import CloseSpider, DontCloseSpider
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from crawlsched import scrapy_versions
from crawlsched.addon.downloadermiddlewares import VisitErrback
from crawlsched.addon.lifetime import exit_with_1, wait
from crawlsched.addon.sending import LOOK_AGAIN, DownloaderSlots, PacedHandlers
from crawlsched.change_signals.collected import Limits
from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.deliveries import Delivery
from crawlsched.crawl.fingerprints import fingerprints
from crawlsched.crawl.guard import PATIENCE
from crawlsched.crawl.page_requests import AdmissionResult, PageRequest
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.request_templates import RequestTemplate, build_request, template_of
from crawlsched.crawl.shared.shared_crawl import refresher_of
from crawlsched.crawl.visits import CALL_META, NOT_RETRIED, Visit
from crawlsched.exceptions import CollectionInUse, CrawlschedError, StoreError
from crawlsched.jobs.commands import obey_waiting
from crawlsched.settings import parse_bandwidth
from crawlsched.showing import in_words
from crawlsched.store import Outcome, PageFacts

__all__ = ["FALLBACK_SCHEDULER", "LOOK_INTERVAL", "Scheduler"]

logger = logging.getLogger(__name__)

#: The setting for the project's own SCHEDULER, which gets the requests that are not for pages.
FALLBACK_SCHEDULER = "SCHEDULER_BEFORE_CRAWLSCHED"
#: Seconds between two checks of work that is not urgent. If a handler of spider_idle raises DontCloseSpider, the signal
#: is sent again after this time, as in Scrapy.
LOOK_INTERVAL = 5.0
# If no request can be made before the other thread has read what it needs, the slot waits, and checks at this interval.
_FACTS_COME = 0.001
# A request that is made of another request must not take over these keys of meta.
_OWN_META = ("crawlsched_visit", "crawlsched_source", "crawlsched_changed", "crawlsched_named_by_site")
# Marks a request for which `_pass_filter` has set dont_filter.
_FILTERED_META = "crawlsched_filtered"


class Scheduler(BaseScheduler):
    """Give the engine one request at each slot."""

    def __init__(self, crawler: Crawler, refresher: Refresher, fallback: BaseScheduler) -> None:
        self._crawler = crawler
        self._refresher = refresher
        self._visits = refresher.visits
        self._fallback = fallback
        self._hosts = DownloaderSlots(crawler, refresher)
        self._continuations: deque[Request] = deque()
        self._offered: Request | None = None  # the request that engine.crawl() has now
        self._handed_over: deque[Request] = deque()  # requests for the next calls of next_request()
        self._givers = deque([self._give_source, self._give_fallback, self._give_page])  # in the order of their turns
        self._closed = False
        self._was_stopped = False  # whether this standby was stopped before its crawl began
        self._look_whether_quiet_at = 0.0
        self._timer: Any = None
        _, self._fingerprint = fingerprints(crawler.request_fingerprinter, refresher.settings.ignore_parameters)
        filter_class = load_object(crawler.settings["DUPEFILTER_CLASS"])
        self._filters = getattr(filter_class, "request_seen", None) is not BaseDupeFilter.request_seen
        # The project's own filter, and the requests that it has let through in this run. Scrapy's own filter is not
        # asked: it would add nothing to the known pages.
        is_own = self._filters and filter_class is not RFPDupeFilter
        self._own_filter: Any = scrapy_versions.dupefilter_of(fallback) if is_own else None
        self._passed: set[bytes] = set()
        # A sitemap is read up to a limit, so a much larger body is not unpacked.
        self._longest_source = min(filter(None, (2 * Limits().max_bytes, crawler.settings.getint("DOWNLOAD_MAXSIZE"))))

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the scheduler for a crawler, and the fallback scheduler that the project configures."""
        refresher = refresher_of(crawler)
        path = crawler.settings[FALLBACK_SCHEDULER]
        fallback: BaseScheduler = build_from_crawler(load_object(path), crawler)
        scheduler = cls(crawler, refresher, fallback)
        crawler.signals.connect(scheduler._start, signals.spider_opened)
        crawler.signals.connect(scheduler._announced, signals.request_scheduled)
        return scheduler

    # -- what the engine calls

    def open(self, spider: Spider) -> Deferred[None]:
        """Open the store, load the pages, and open the fallback scheduler; a standby waits for its turn first."""
        self._spider = spider
        return deferred_from_coro(self._open())

    async def _open(self) -> None:
        waits_for = ""
        while not self._closed:
            try:
                self._refresher.open()
            except CrawlschedError as error:
                # A standby waits until another process ends. If the database does not answer then, the standby waits
                # for it, too.
                owner = error.owner if isinstance(error, CollectionInUse) else None
                waits_on = owner or (waits_for and type(error) is StoreError)
                if not self._refresher.settings.standby or not waits_on:
                    # The spider is closed as soon as all components are open (`_start`). If it were closed before,
                    # other components of Scrapy would fail, and their tracebacks would hide this sentence.
                    logger.error("crawlsched cannot start: %s", error)
                    self._closed = True
                    break
                said = f"another process crawls this collection: {owner}." if owner else str(error)
                if said != waits_for:
                    logger.info("This crawl stands by and waits: %s", said)
                waits_for = said
            else:
                self._pace_requests()
                break
            await wait(LOOK_AGAIN)
            # Scrapy has no engine to stop yet, and only notes that it was asked to stop.
            self._closed = self._was_stopped = not self._crawler.crawling
        opened = self._fallback.open(self._spider)
        if opened is not None:
            await maybe_deferred_to_future(opened)

    def _pace_requests(self) -> None:
        """Put the second gate before Scrapy's download handlers."""
        crawler, refresher = self._crawler, self._refresher
        scrapy_versions.stand_before_handlers(crawler, lambda handlers: PacedHandlers(crawler, handlers, refresher))
        refresher.rate.on_rate = partial(self._arm, 0.0)
        refresher.has_requests = self._has_requests
        refresher.is_ending = partial(scrapy_versions.is_closing, crawler)

    def close(self, reason: str) -> Deferred[None] | None:
        """Write everything down; nothing is lost. Meanwhile the event loop goes on."""
        self._closed = True
        self._arm(0.0)  # ends the timer
        for request in (*self._handed_over, *self._continuations):
            visit = self._visits.get(request.meta.get("crawlsched_visit"))
            if visit is not None and not visit.tracked:
                self._keep(request)
        return deferred_from_coro(self._write_down(reason))

    async def _write_down(self, reason: str) -> None:
        for waits in self._refresher.closing():
            await (wait(0.0) if waits is None else scrapy_versions.run_in_thread(waits))
        closed = self._fallback.close(reason)
        if closed is not None:
            await maybe_deferred_to_future(closed)

    def has_pending_requests(self) -> bool:
        """Return True while the crawl goes on: until it is closed or, in a run of one pass, until the pass is over."""
        if self._closed or self._refresher.one_pass is None or not self._refresher.is_open:
            return not self._closed
        return self._has_requests() or not self._refresher.pass_is_over(self._refresher.clock())

    def _has_requests(self) -> bool:
        return bool(self._handed_over or self._continuations or self._fallback.has_pending_requests())

    def enqueue_request(self, request: Request) -> bool:
        """Take a request from the engine; return False if it is for a page that is known or was forgotten on purpose.

        The request is the one that this scheduler has just offered, a redirect or retry of a visit, a request for a
        page, or any other request, which the fallback scheduler gets.
        """
        yielded_by = request.meta.pop(CALL_META, None)
        if request is self._offered:
            self._handed_over.append(request)
            return True
        # The errback has the token even if a middleware has replaced the meta of a sent request.
        token = request.errback.token if isinstance(request.errback, VisitErrback) else None
        token = request.meta.get("crawlsched_visit", token)
        if token is not None:
            visit = self._visits.get(token)
            if visit is not None:
                request.meta["crawlsched_visit"] = token
                visit.is_waiting = True
                self._continuations.append(request)
                return True
            # The visit has ended: the spider yields the sent request again, or a request made of it. The sent request
            # must stay as it is, since it shows when the visit's items end. So a copy is made.
            request = _without_visit(request)
        template = self._kept_as(request, was_sent=token is not None)
        delivery = self._refresher.book.get(yielded_by)
        try:
            if template is False:
                return self._add_untracked(request, delivery)
            return self._add_page(request, delivery, template)
        finally:  # also where the project's filter raises
            self._refresher.book.output_ended(yielded_by, self._refresher.clock())

    def _add_untracked(self, request: Request, delivery: Delivery | None) -> bool:
        if delivery is not None:
            delivery.has_untracked = True
        self._refresher.count("crawlsched/untracked")
        if request.meta.get("is_start_request"):
            self._refresher.starts.asked()
        self._look_whether_quiet_at = 0.0
        return self._fallback.enqueue_request(request)

    def next_request(self) -> Request | None:
        """Return a request if a slot has just come, or None."""
        return self._handed_over.popleft() if self._handed_over else None

    # -- what programs call

    def set_bandwidth(self, bandwidth: str | float) -> None:
        """Crawl at another rate from now on: ``crawler.engine.scheduler.set_bandwidth("10/s")``."""
        self._refresher.rate.set_bandwidth(parse_bandwidth(bandwidth), self._refresher.clock())

    def signal(self, urls: Sequence[str], source: str = "spider") -> int:
        """Announce that pages may have changed: ``crawler.engine.scheduler.signal(["https://example.com/a"])``.

        It returns the number of announcements that count. URLs that are no pages of the collection are ignored. The
        quality of the announcements is learned for each `source`.
        """
        announcing = self._refresher.sharing or self._refresher.polls
        return announcing.signal(urls, source, self._refresher.clock())

    # -- pages from requests

    def _kept_as(self, request: Request, *, was_sent: bool) -> RequestTemplate | Literal[False] | None:
        """Return the template of a page's request (None for a plain request), or False if the request is no page."""
        if request.method != "GET" or request.body or not request.meta.get("crawlsched_track", True):
            return False
        try:
            template = template_of(request, self._spider, was_sent=was_sent)
            if template is not None:
                self._refresher.admission.may_write(template)
            return template
        except ValueError as error:
            callback = getattr(request.callback, "__qualname__", None) or "parse"
            self._refresher.admission.refuse(request.url, callback, str(error), self._refresher.clock())
            return False

    def _add_page(self, request: Request, delivery: Delivery | None, template: RequestTemplate | None) -> bool:
        meta = request.meta
        host = meta.get("download_slot") or urlparse_cached(request).hostname or ""
        importance, depth = meta.get("crawlsched_importance"), int(meta.get("depth", 0))
        page = FoundPage(request.url, self._fingerprint(request), host, importance, template, depth)
        again, is_start = request.dont_filter or not self._filters, bool(meta.get("is_start_request"))
        asked = PageRequest(page, again, is_start, -1 if delivery is None else delivery.page)
        if self._own_filter is not None and not asked.again:
            if not self._own_filter.request_seen(request):
                if page.request_fingerprint in self._passed:
                    _pass_filter(request)
                    return self._add_untracked(request, delivery)
                self._passed.add(page.request_fingerprint)
            elif not self._refresher.admission.knows(asked):
                self._own_filter.log(request, self._spider)
                return False
        admitted = self._refresher.admission.requested(asked, self._refresher.clock())
        if admitted is AdmissionResult.ONCE:
            return self._add_untracked(request, delivery)
        if admitted is AdmissionResult.NEW:
            self._look_whether_quiet_at = 0.0
        return admitted in (AdmissionResult.NEW, AdmissionResult.ELSEWHERE)

    # -- slots

    def _start(self) -> None:
        if self._was_stopped:
            raise CloseSpider("shutdown")
        if self._closed:
            exit_with_1(self._crawler)
            raise CloseSpider("crawlsched_cannot_start")
        self._refresher.guard.run("obeying commands", partial(obey_waiting, self._refresher))
        self._refresher.start_slots()
        self._arm(0.0)

    def _arm(self, delay: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if self._closed else scrapy_versions.call_later(max(delay, 0.0), self._tick)

    def _tick(self) -> None:
        self._timer = None
        if not self._refresher.guard.run("choosing what goes out", self._use_slots) and not self._closed:
            self._arm(LOOK_AGAIN)

    def _use_slots(self) -> None:
        now = self._refresher.clock()
        slots = self._refresher.rate.slots
        if self._refresher.rate.rests:
            self._refresher.rate.count_slots("paused", slots.skip(now))
            self._arm(max(slots.next_time(now) - now, LOOK_AGAIN))
            return
        if not slots.is_due(now):
            self._arm(slots.next_time(now) - now)
            return
        self._look_whether_quiet(now)
        engine = self._crawler.engine
        is_held_up = self._refresher.rate.is_behind or self._refresher.must_wait(now)
        if self._handed_over or engine.paused or engine.needs_backout() or is_held_up:
            # The slot is not lost: the slot clock makes up for it later, up to the longest debt of the clock.
            self._arm(min(1.0 / slots.rate, LOOK_AGAIN))
            return
        # At hundreds of slots a second, several slots may have become due since the last tick.
        while slots.is_due(now):
            if self._give(now):
                slots.take(now)
                self._refresher.rate.count_slots("used")
            elif self._refresher.collection.reader.has_picked:
                self._arm(min(1.0 / slots.rate, _FACTS_COME))
                return  # this slot is not lost either
            else:
                waits = self._hosts.turned_away or self._refresher.planner.frontier.waits_for_host()
                self._refresher.rate.count_slots("no_free_host" if waits else "idle", slots.skip(now))
        self._crawler.stats.set_value("crawlsched/slots/missed", slots.missed)
        self._arm(slots.next_time(now) - self._refresher.clock())

    def _look_whether_quiet(self, now: float) -> None:
        """Send spider_idle when start(), and all pages and requests of this run, have ended."""
        if self._handed_over or now < self._look_whether_quiet_at:
            return
        self._look_whether_quiet_at = now + LOOK_AGAIN
        if self._refresher.one_pass is not None:
            # A run of one pass ends when it has no requests; the engine notices this once it is woken.
            if not self.has_pending_requests():
                scrapy_versions.wake(self._crawler)
            return
        if not self._refresher.is_quiet() or self._continuations or self._fallback.has_pending_requests():
            return
        self._look_whether_quiet_at = inf  # spider_idle is not sent again unless a handler makes requests
        results = self._crawler.signals.send_catch_log(
            signals.spider_idle, spider=self._spider, dont_log=(DontCloseSpider, CloseSpider)
        )
        raised = [result.value for _, result in results if isinstance(result, Failure)]
        if any(isinstance(error, DontCloseSpider) for error in raised):
            self._look_whether_quiet_at = min(self._look_whether_quiet_at, now + LOOK_INTERVAL)
        if closes := [error for error in raised if isinstance(error, CloseSpider)]:
            scrapy_versions.close_spider(self._crawler.engine, closes[0].reason)

    def _give(self, now: float) -> bool:
        """Hand one request to the engine; return whether there was one."""
        self._hosts.turned_away = False
        if (request := self._next_continuation(now)) is not None:
            self._hand_over(request)
            return True
        dispatcher = self._refresher.dispatcher
        if self._send_page(dispatcher.next_probe(now, self._hosts.free_at)):
            return True
        if not self._refresher.others_may_go(now):
            start = dispatcher.next_start(now, self._hosts.free_at)
            return self._send_page(start) or self._give_fallback(now) or self._give_source(now)
        giver = next((give for give in self._givers if give(now)), None)
        if giver is not None:
            self._givers.remove(giver)
            self._givers.append(giver)
        return giver is not None

    def _next_continuation(self, now: float) -> Request | None:
        for _ in range(len(self._continuations)):
            request = self._continuations.popleft()
            visit = self._visits.get(request.meta.get("crawlsched_visit"))
            if visit is None:  # the visit ended while it waited
                continue
            host = self._refresher.hosts.number(scrapy_versions.slot_name(self._crawler, request))
            free_at = self._hosts.free_at(host, now, own=visit.host == host)
            if free_at <= now:
                visit.is_waiting = False
                self._refresher.hosts.asked(host, now)
                return request
            # The host rests for longer than a request may wait. Its page is picked again after the rest.
            if free_at > now + PATIENCE:
                self._refresher.visit_ends.resolve(visit, Outcome.ERROR, now)
                continue
            self._continuations.append(request)
        return None

    def _give_source(self, now: float) -> bool:
        if (due := self._refresher.dispatcher.next_source(now, self._hosts.free_at)) is None:
            return False
        visit, source = due
        is_own = source.url in self._refresher.settings.source_urls
        meta = {
            "crawlsched_source": visit.source,
            "crawlsched_named_by_site": not is_own and source.kind != "robots",
            "download_maxsize": self._longest_source,
        }
        # Other components may filter out a sitemap that a site names, like any page.
        return self._send(visit, lambda: Request(source.url, NO_CALLBACK, dont_filter=is_own, meta=meta))

    def _give_fallback(self, now: float) -> bool:
        if (request := self._fallback.next_request()) is None:
            return False
        if request.meta.pop(_FILTERED_META, False):
            request.dont_filter = False  # other components check where the request leads
        token = request.meta["crawlsched_visit"] = self._visits.open(url=request.url, now=now).token
        self._refresher.book.untracked_sent(token, now)
        request.errback = VisitErrback(self._refresher, token, request.errback, not_sent=self._keep)
        self._hand_over(request)
        return True

    def _keep(self, request: Request) -> None:
        """Return a request that was not sent by the end of the crawl to the fallback scheduler, which may keep it."""
        kept = _without_visit(request)
        if not kept.dont_filter:
            _pass_filter(kept)
        self._fallback.enqueue_request(kept)

    def _give_page(self, now: float) -> bool:
        # A page whose request another component refuses (offsite) costs no slot.
        return any(map(self._send_page, self._refresher.dispatcher.next_pages(now, self._hosts.free_at)))

    def _send_page(self, due: tuple[Visit, PageFacts] | None) -> bool:
        if due is None:
            return False
        visit, facts = due
        return self._send(visit, lambda: build_request(facts.url, facts.template_data, self._spider))

    def _send(self, visit: Visit, make: Callable[[], Request]) -> bool:
        """Make a request and offer it to the engine; return False if a component refused it."""
        outcome, n_before = Outcome.REFUSED, len(self._handed_over)
        try:
            request = self._offered = make()
            request.meta["crawlsched_visit"] = visit.token
            if visit.is_ours:
                request.meta.setdefault("dont_retry", NOT_RETRIED)
            request.errback = VisitErrback(self._refresher, visit.token, request.errback, is_ours=visit.is_ours)
            # engine.crawl() is the public way to wake the engine. It calls `enqueue_request` now; `next_request`
            # follows soon.
            self._crawler.engine.crawl(request)
        except Exception as error:  # an error in the spider's classes, in a handler of signals, or a lack of memory
            logger.error("The request for %s cannot be made, so it waits: %s", visit.url, in_words(error))
            outcome = Outcome.ERROR
            if len(self._handed_over) > n_before:
                self._handed_over.pop()
        finally:
            self._offered = None
        if len(self._handed_over) > n_before:
            self._refresher.hosts.asked(visit.host, visit.opened_at)
            return True
        self._refresher.visit_ends.resolve(visit, outcome, self._refresher.clock())
        return False

    def _hand_over(self, request: Request) -> None:
        # engine.crawl() would announce this request a second time, and all statistics would count it twice. So the
        # engine is woken without engine.crawl().
        self._handed_over.append(request)
        scrapy_versions.wake(self._crawler)

    def _announced(self, request: Request) -> None:
        """Notice the end of a callback's request that another component refuses before `enqueue_request`."""
        if self._refresher.book.get(request.meta.get(CALL_META)) is not None:
            scrapy_versions.call_later(0, self._end_unless_taken, request)

    def _end_unless_taken(self, request: Request) -> None:
        self._refresher.book.output_ended(request.meta.pop(CALL_META, None), self._refresher.clock())


def _without_visit(request: Request) -> Request:
    """Return a copy of a request without the errback and the meta that the add-on has set."""
    own = request.errback
    made = request.replace(errback=own.spiders_own if isinstance(own, VisitErrback) else own)
    for name in _OWN_META:
        made.meta.pop(name, None)
    return made


def _pass_filter(request: Request) -> None:
    """Make Scrapy's filter let a request through."""
    request.dont_filter = request.meta[_FILTERED_META] = True
