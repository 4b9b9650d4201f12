"""The Scrapy extension: passes on signals of Scrapy that reach neither the scheduler nor a middleware."""

from __future__ import annotations

import gc
import logging
import sys
from functools import partial
from importlib import import_module
from typing import Any, Self

from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.reactor import is_reactor_installed

from crawlsched.addon.lifetime import end_loudly
from crawlsched.addon.subscribing import HubSubscriber
from crawlsched.addon.web_process import WebProcess
from crawlsched.crawl.collection import FLUSH_INTERVAL
from crawlsched.crawl.commands import obey_pending
from crawlsched.crawl.figures import Figures
from crawlsched.crawl.first_minute import FIRST_MINUTE, minute
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.shared.shared_crawl import refresher_of
from crawlsched.feed.webhook import Webhook
from crawlsched.jobs.crawl_jobs import CrawlJobs
from crawlsched.receiver.receiver import Receiver
from crawlsched.scrapy_versions import (
    call_later,
    create_looping_call,
    is_asyncio_available,
    run_in_thread,
)
from crawlsched.showing import escape_logs

__all__ = ["INTERPRETER", "Refresh", "clear_cancelled_timers"]


def clear_cancelled_timers() -> None:
    """Let the reactor throw away timers that were cancelled.

    It does so when one of its own timers is due, and with asyncio Scrapy makes hardly any of those: the time-outs of
    all requests of three minutes would lie in memory, 70 MB of them at 500 requests a second.
    """
    if is_reactor_installed():
        reactor: Any = import_module("twisted.internet.reactor")
        reactor.callLater(0.0, bool)


# Seconds. A request gives the interpreter's lock away about ten times (send, receive, poll), and waits this long for it
# each time while a sitemap is read or a plan made in a thread: with Python's 5 ms slots came a second late.
_SWITCH_INTERVAL = 0.0005
# Objects. Slots that come together make some thousand objects at once, nearly none of them garbage for the collector;
# with Python's 700 it searched at every fourth visit, a tenth of a fast crawl's time.
_YOUNG_OBJECTS = 10_000


class _Interpreter:
    """What is set while any crawl of this process runs, and what it was before then."""

    def __init__(self) -> None:
        self._n = 0
        self._interval = 0.0
        self._thresholds = (0, 0, 0)

    def begin(self) -> None:
        """Set what a crawl wants, if it is the first that runs."""
        if not self._n:
            self._interval, self._thresholds = sys.getswitchinterval(), gc.get_threshold()
            sys.setswitchinterval(min(_SWITCH_INTERVAL, self._interval))
            if self._thresholds[0]:  # 0: somebody wants no collection at all
                gc.set_threshold(max(_YOUNG_OBJECTS, self._thresholds[0]), *self._thresholds[1:])
            # What was loaded stays; going through it again at each full collection would stop the slot clock.
            gc.collect()
            gc.freeze()
        self._n += 1

    def end(self) -> None:
        """Put back what was set before, if it is the last that runs."""
        self._n -= 1
        if not self._n:
            sys.setswitchinterval(self._interval)
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()


INTERPRETER = _Interpreter()


logger = logging.getLogger(__name__)

_HEARTBEAT_INTERVAL = 5.0
_FIRST_SAMPLE = 3.0
_STATS = "crawlsched"
_COMMANDS_INTERVAL = 0.5
_CLEARING_INTERVAL = 5.0
_LOOK_INTERVAL = 0.1
_WATCH_INTERVAL = 2.0
# Long work (50,000 entries of a sitemap) is done in slices this far apart, each short enough for the slot clock.
_WORK_INTERVAL = 0.004
_WORK_SLICE = 0.002


class Refresh:
    """Connect Scrapy's signals, the timers and the jobs to the refresher."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._timers: list[Any] = []
        self._work: Any = None
        self._minute: Any = None
        self._first_sample: Any = None
        self._jobs: CrawlJobs | None = None
        self._receiver: Receiver | None = None
        self._webhook: Webhook | None = None
        self._web: WebProcess | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the extension for a crawler."""
        escape_logs()
        extension = cls(crawler)
        for handler, signal in (
            (extension.spider_opened, signals.spider_opened),
            (extension.spider_closed, signals.spider_closed),
            (extension.request_reached_downloader, signals.request_reached_downloader),
            (extension.response_downloaded, signals.response_downloaded),
            (extension.item_finished, signals.item_scraped),
            (extension.item_finished, signals.item_dropped),
            (extension.item_failed, signals.item_error),
            (extension.callback_failed, signals.spider_error),
        ):
            crawler.signals.connect(handler, signal)
        return extension

    @property
    def _refresher(self) -> Refresher:
        # Not in from_crawler: Scrapy's test helpers make extensions before there is a spider.
        return refresher_of(self._crawler)

    # -- the life of a crawl

    def spider_opened(self, spider: Spider) -> None:
        """Start the timers and the jobs, once the store is open."""
        if not self._refresher.is_open:
            return
        INTERPRETER.begin()
        refresher = self._refresher
        refresher.guard.give_up = lambda reason, sentence: end_loudly(self._crawler, reason, sentence)
        for name, function, interval in (
            ("the timer of the flush", self._flush, FLUSH_INTERVAL),
            ("the heartbeat", self._heartbeat, _HEARTBEAT_INTERVAL),
            ("obeying commands", self._obey_commands, _COMMANDS_INTERVAL),
            ("the watchdog", self._watch, _WATCH_INTERVAL),
            ("clearing timers", clear_cancelled_timers, _CLEARING_INTERVAL),
        ):
            timer = create_looping_call(partial(refresher.guard.run, name, function))
            timer.start(interval, now=False)
            self._timers.append(timer)
        self._minute = call_later(FIRST_MINUTE, self._say_first_minute)
        refresher.long_work.on_work = self._start_working
        if refresher.long_work.has_work:
            self._start_working()
        figures = None
        if refresher.sharing is None:  # of what several processes crawl none has the figures
            figures = Figures(refresher, self._stat)
            # The first soon: a crawl that has just begun is looked at most.
            self._first_sample = call_later(_FIRST_SAMPLE, figures.sample)
        self._jobs = CrawlJobs(refresher, figures)
        self._jobs.start()
        if refresher.sharing is not None:
            refresher.on_shard = self._jobs.shard_came
            look = create_looping_call(partial(refresher.guard.run, "following the others", self._look))
            look.start(_LOOK_INTERVAL, now=False)
            self._timers.append(look)
            return  # its settings ask for nothing of what follows
        if refresher.settings.web is not None:
            self._web = WebProcess(refresher.settings, refresher.collection.store.name)
            self._web.start()
        if refresher.settings.webhook is not None:
            self._webhook = Webhook(refresher.collection.store, *refresher.settings.webhook, refresher.clock)
            self._webhook.start()
            refresher.collection.before_release.append(self._webhook.stop)
        if refresher.settings.receiver is not None:
            if is_asyncio_available():
                self._receiver = Receiver(refresher)
                deferred_from_coro(self._receiver.start())
                if refresher.settings.receiver.url is not None:
                    timer = create_looping_call(HubSubscriber(self._crawler, refresher).look)
                    timer.start(HubSubscriber.INTERVAL, now=False)
                    self._timers.append(timer)
            else:
                logger.error(
                    "Pings are not received: CRAWLSCHED_RECEIVER needs Scrapy's asyncio reactor, which is "
                    "TWISTED_REACTOR = 'twisted.internet.asyncioreactor.AsyncioSelectorReactor'."
                )

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """Stop what was started."""
        if not self._timers:
            return
        self._count_posts()
        INTERPRETER.end()
        if self._web is not None:
            await run_in_thread(self._web.stop)
        for once in (self._minute, self._first_sample):
            if once is not None:
                once.cancel()
        if self._receiver is not None:
            await self._receiver.stop()
        if self._jobs is not None:
            self._jobs.stop()
        for timer in self._timers:
            if timer.running:
                timer.stop()
        if self._work is not None:
            self._work.cancel()
        self._refresher.long_work.on_work = None

    # -- Scrapy's signals

    def request_reached_downloader(self, request: Request) -> None:
        """Pay for a request that did not come from a slot: robots.txt, media, inline requests."""
        if self._refresher.visits.get(request.meta.get("crawlsched_visit")) is None:
            self._refresher.rate.pay(self._refresher.clock())

    def response_downloaded(self, request: Request, response: Response) -> None:
        """Note a host that asks for rest, also where a retry keeps the response from the middleware."""
        if response.status in (429, 503) and (value := response.headers.get("Retry-After")):
            host = request.meta.get("download_slot") or urlparse_cached(request).hostname or ""
            self._refresher.host_rests(host, value.decode("latin-1"), self._refresher.clock())

    def item_finished(self, item: Any, response: Response | None) -> None:
        """An item has gone through the pipelines."""
        if isinstance(response, Response):
            self._refresher.deliveries.output_ended(_token(response), self._refresher.clock())

    def item_failed(self, item: Any, response: Response | None) -> None:
        """A pipeline raised: the page's change was not delivered."""
        if isinstance(response, Response):
            self._refresher.deliveries.failed(_token(response), self._refresher.clock())

    def callback_failed(self, response: Any) -> None:
        """A callback raised: the page's change was not delivered."""
        if isinstance(response, Response):
            self._refresher.deliveries.failed(_token(response), self._refresher.clock())

    # -- timers

    # The scheduler closes the store before this extension, so a timer may come once more after that.

    def _flush(self) -> None:
        self._count_posts()
        if self._refresher.is_open:
            self._refresher.flush(self._refresher.clock())

    def _count_posts(self) -> None:
        if self._webhook is not None:
            for name, n in self._webhook.take_counts().items():
                self._refresher.count(f"crawlsched/webhook/{name}", n)

    def _heartbeat(self) -> None:
        if self._refresher.is_open and not self._refresher.heartbeat(self._refresher.clock()):
            end_loudly(self._crawler, "crawlsched_lease_lost")
        if self._refresher.lost_database is not None:
            end_loudly(self._crawler, "crawlsched_database_replaced", self._refresher.lost_database)

    def _obey_commands(self) -> None:
        refresher = self._refresher
        if refresher.is_open and refresher.sharing is None:  # where shards are, they are looked for together
            refresher.rate.follow_hours(refresher.clock())
            obey_pending(refresher, refresher.collection.shards.only)

    def _look(self) -> None:
        if self._refresher.is_open and self._refresher.sharing is not None:
            self._refresher.sharing.look(self._refresher.clock())

    def _say_first_minute(self) -> None:
        self._minute = None
        refresher, stats = self._refresher, self._crawler.stats.get_stats()
        if refresher.is_open:
            logger.info("%s", minute(stats, *refresher.known_pages(), refresher.collection.withheld.n_noted))

    def _stat(self, name: str) -> float:
        assert self._crawler.stats is not None
        return float(self._crawler.stats.get_value(f"{_STATS}/{name}", 0))

    def _start_working(self) -> None:
        if self._work is None:
            self._work = call_later(_WORK_INTERVAL, self._work_on)

    def _work_on(self) -> None:
        self._work = None
        self._refresher.guard.run("long work", lambda: self._refresher.long_work.go_on(_WORK_SLICE))
        if self._refresher.long_work.has_work:
            self._start_working()

    def _watch(self) -> None:
        """End a crawl in which nothing goes out although something could: silence is worse than an end."""
        engine = self._crawler.engine
        may_send = self._refresher.is_open and engine is not None and not engine.paused and not engine.needs_backout()
        sentence = self._refresher.stuck(self._refresher.clock(), may_send=may_send)
        if sentence is not None:
            end_loudly(self._crawler, "crawlsched_stuck", sentence)


def _token(response: Response) -> object:
    return response.request.meta.get("crawlsched_visit") if response.request is not None else None
