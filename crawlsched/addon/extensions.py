"""The Scrapy extension: passes on signals of Scrapy that reach neither the scheduler nor a middleware."""

from __future__ import annotations

import gc
import logging
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from functools import partial
from importlib import import_module
from typing import Any, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.reactor import is_reactor_installed

from crawlsched.addon.downloadermiddlewares import RefreshMiddleware
from crawlsched.addon.lifetime import end_loudly
from crawlsched.addon.scheduler import LOOK_INTERVAL
from crawlsched.addon.spidermiddlewares import token_of
from crawlsched.addon.subscribing import HubSubscriber
from crawlsched.addon.web_process import serve_page
from crawlsched.crawl.collection import FLUSH_INTERVAL
from crawlsched.crawl.figures import Figures
from crawlsched.crawl.first_minute import FIRST_MINUTE, minute
from crawlsched.crawl.guard import PATIENCE, SLOTS_OF_PATIENCE
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.shared.shared_crawl import refresher_of
from crawlsched.feed.webhook import Webhook
from crawlsched.jobs.commands import obey_pending
from crawlsched.jobs.crawl_jobs import CrawlJobs
from crawlsched.receiver.receiver import Receiver
from crawlsched.scrapy_versions import call_later, create_looping_call, is_asyncio_available
from crawlsched.showing import escape_logs

__all__ = ["INTERPRETER", "Refresh", "clear_cancelled_timers"]


def clear_cancelled_timers() -> None:
    """Let the reactor throw away timers that were cancelled.

    The reactor does so by itself only when one of its own timers is due, which is rare with asyncio. Without this, the
    time-outs of the requests of the last three minutes would stay in memory: 70 MB at 500 requests a second.
    """
    if is_reactor_installed():
        reactor: Any = import_module("twisted.internet.reactor")
        reactor.callLater(0.0, bool)


class _Interpreter:
    """Changes the interpreter's settings while a crawl of this process runs, and restores them afterwards."""

    _n = 0  # running crawls of this process

    def begin(self, switch_interval: float = 0.0005, young_objects: int = 10_000) -> None:
        """Change the interpreter's settings, if this is the first running crawl.

        A thread that reads a sitemap or makes a plan releases Python's global lock after `switch_interval` seconds.
        Each request has to wait for the lock about ten times (send, receive, poll). With Python's default of 5 ms,
        slots came a second late. The garbage collector runs after `young_objects` new objects. Visits that begin
        together make some thousand objects, and few of these are garbage. With Python's threshold of 700 the collector
        ran at every fourth visit, and took a tenth of a fast crawl's time.
        """
        if not self._n:
            self._interval, self._thresholds = sys.getswitchinterval(), gc.get_threshold()
            sys.setswitchinterval(min(switch_interval, self._interval))
            if self._thresholds[0]:  # 0: somebody has turned garbage collection off
                gc.set_threshold(max(young_objects, self._thresholds[0]), *self._thresholds[1:])
            # Loaded objects are frozen: a garbage collection that visits all of them would stop the slot clock.
            gc.collect()
            gc.freeze()
        self._n += 1

    def end(self) -> None:
        """Restore the earlier settings, if this was the last running crawl."""
        self._n -= 1
        if not self._n:
            sys.setswitchinterval(self._interval)
            gc.set_threshold(*self._thresholds)
            gc.unfreeze()


INTERPRETER = _Interpreter()


logger = logging.getLogger(__name__)

# Seconds between two checks of the other processes of a collection.
_OTHERS_INTERVAL = 0.1
# Pages are counted in parts of this size, each within a millisecond.
_COUNTED_AT_ONCE = 65_536
# Seconds between two slices of long work, such as 50,000 entries of a sitemap.
_WORK_INTERVAL = 0.006


class Refresh:
    """Connect Scrapy's signals, the timers and the jobs to the refresher."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._started = AsyncExitStack()  # how to stop each part that was started
        self._was_stuck = False  # whether the last heartbeat found that no slot was used

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the extension for a crawler."""
        escape_logs()
        extension = cls(crawler)
        for handler, signal in (
            (extension.spider_opened, signals.spider_opened),
            (extension.spider_closed, signals.spider_closed),
            (extension.item_finished, signals.item_scraped),
            (extension.item_finished, signals.item_dropped),
            (extension.delivery_failed, signals.item_error),
            (extension.delivery_failed, signals.spider_error),
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
        refresher, sharing = self._refresher, self._refresher.sharing
        refresher.guard.give_up = lambda reason, sentence: end_loudly(self._crawler, reason, sentence)
        work = self._every(_WORK_INTERVAL, "long work", lambda: refresher.long_work.go_on() or work.stop())
        refresher.long_work.begin = lambda: work.running or work.start(_WORK_INTERVAL, now=False)
        self._every(FLUSH_INTERVAL, "the timer of the flush", lambda: refresher.flush(refresher.clock()))
        self._every(LOOK_INTERVAL, "ending old visits", lambda: refresher.sweep(refresher.clock()))
        self._every(LOOK_INTERVAL, "the heartbeat", self._heartbeat)
        self._every(LOOK_INTERVAL, "clearing timers", clear_cancelled_timers)
        if (middleware := self._crawler.get_downloader_middleware(RefreshMiddleware)) is not None:
            self._every(LOOK_INTERVAL, "reading robots.txt again", middleware.robots.look)
        # Where several processes crawl a collection, no process has the figures of the others.
        figures = None if sharing is not None else Figures(refresher, self._crawler.stats)
        jobs = CrawlJobs(refresher, figures)
        jobs.start()
        self._started.callback(jobs.stop)
        self._once(FIRST_MINUTE, self._say_first_minute)
        if sharing is None:
            self._every(FLUSH_INTERVAL, "obeying commands", self._obey_commands)
            self._start_what_one_process_has()
        else:
            refresher.on_shard, refresher.on_commands = jobs.shard_came, partial(obey_pending, refresher)
            self._every(_OTHERS_INTERVAL, "following the others", lambda: sharing.look(refresher.clock()))
        if figures is not None:
            self._once(LOOK_INTERVAL, figures.sample)  # soon, since people look most at a crawl that has just begun
        INTERPRETER.begin()
        self._started.callback(INTERPRETER.end)

    def _every(self, interval: float, what: str, function: Callable[[], object]) -> Any:
        def guarded() -> None:
            if self._refresher.is_open:  # the scheduler closes the store before this extension stops its timers
                self._refresher.guard.run(what, function)

        timer = create_looping_call(guarded)
        timer.start(interval, now=False)
        self._started.callback(lambda: timer.running and timer.stop())
        return timer

    def _once(self, seconds: float, function: Callable[[], None]) -> None:
        self._started.callback(call_later(seconds, function).cancel)

    def _start_what_one_process_has(self) -> None:
        refresher = self._refresher
        if refresher.settings.web is not None:
            # The web page's process ends before the store is closed: the last process that closes a SQLite database
            # deletes its extra files only if it may write.
            stop = serve_page(refresher.settings, refresher.collection.store.name)
            refresher.collection.before_release.append(stop)
        if refresher.settings.webhook is not None:
            # The webhook posts in a thread of its own, and only the crawling thread may change the crawl's stats.
            counted = deque[tuple[Any, ...]]()

            def count() -> None:
                while counted:
                    refresher.count(*counted.popleft())

            store, clock = refresher.collection.store, refresher.clock
            webhook = Webhook(store, *refresher.settings.webhook, clock, lambda *named: counted.append(named))
            webhook.start()
            self._every(FLUSH_INTERVAL, "counting posts", count)
            refresher.collection.before_release += [webhook.stop, count]
        if refresher.settings.receiver is None:
            return
        if not is_asyncio_available():
            logger.error(
                "Pings are not received: CRAWLSCHED_RECEIVER needs Scrapy's asyncio reactor, which is "
                "TWISTED_REACTOR = 'twisted.internet.asyncioreactor.AsyncioSelectorReactor'."
            )
            return
        receiver = Receiver(refresher)
        deferred_from_coro(receiver.start())
        self._started.push_async_callback(receiver.stop)
        if refresher.settings.receiver.url is not None:
            self._every(LOOK_INTERVAL, "asking hubs", HubSubscriber(self._crawler, refresher).look)

    async def spider_closed(self, spider: Spider, reason: str) -> None:
        """Stop what was started."""
        await self._started.aclose()

    # -- Scrapy's signals

    def item_finished(self, response: Any) -> None:
        """An item has gone through the pipelines."""
        self._refresher.book.output_ended(token_of(response), self._refresher.clock())

    def delivery_failed(self, response: Any) -> None:
        """A callback or a pipeline raised an exception, so the page's change was not delivered."""
        self._refresher.book.failed(token_of(response), self._refresher.clock())

    # -- timers

    def _heartbeat(self) -> None:
        refresher, engine = self._refresher, self._crawler.engine
        now = refresher.clock()
        refresher.heartbeat(now)
        if refresher.lost is not None:
            end_loudly(self._crawler, *refresher.lost)
        silence = 0.0 if engine.paused or engine.needs_backout() else refresher.silence(now)
        is_stuck = silence > max(PATIENCE, SLOTS_OF_PATIENCE / refresher.rate.slots.rate)
        if is_stuck and self._was_stuck:  # twice, since the whole machine may have slept
            sentence = f"No slot has been used for {silence:.0f} s, so this crawl ends; start it again."
            end_loudly(self._crawler, "crawlsched_stuck", sentence)
        self._was_stuck = is_stuck

    def _obey_commands(self) -> None:
        refresher = self._refresher
        refresher.rate.follow_hours(refresher.clock())
        obey_pending(refresher, refresher.collection.shards.only)

    def _say_first_minute(self) -> None:
        if self._refresher.is_open:
            # Other long work may come first, and the line is about what the first minute brought.
            self._refresher.long_work.add(self._first_minute(dict(self._crawler.stats.get_stats())))

    def _first_minute(self, stats: dict[str, Any]) -> Iterator[None]:
        """Count the copies of all pages, part by part, and log how the first minute went."""
        refresher, planner = self._refresher, self._refresher.planner
        n_copies, n_missing = 0, -planner.bandwidth
        for start in range(0, planner.pages.n, _COUNTED_AT_ONCE):
            part = slice(start, start + _COUNTED_AT_ONCE)
            n_copies += refresher.n_copies(part)
            n_missing += planner.overdue_demand(part)
            yield
        if refresher.sharing is not None:  # no process knows all pages
            n_missing = 0.0
        n_pages, n_withheld = len(refresher.collection.index), refresher.collection.withheld.n_noted
        said = minute(stats, n_pages, n_copies, n_withheld, n_missing)
        logger.log(logging.WARNING if not n_pages or n_missing > 0.0 else logging.INFO, "%s", said)
