"""Differences between releases of Scrapy, and the undocumented parts of Scrapy that crawlsched uses.

Each entry names the release of Scrapy that makes it superfluous. When that is the oldest supported release, the entry
is deleted. Any feature that needs an undocumented part is optional. If the part is missing or has another shape, the
crawl goes on without the feature, and logs this once.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import scrapy.exceptions
import scrapy.resolver
from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import Response
from scrapy.statscollectors import StatsCollector
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object
from scrapy.utils.python import global_object_name
from scrapy.utils.reactor import is_asyncio_reactor_installed
from twisted.internet.defer import Deferred
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThread

logger = logging.getLogger(__name__)

_P = ParamSpec("_P")
_T = TypeVar("_T")
# A time above this value is in seconds since 1970, and a time below it in seconds since the machine was started.
_SINCE_1970 = 1e9

# -- timers and threads: superfluous from Scrapy 2.14 on, `run_in_thread` from 2.15 on

if not TYPE_CHECKING and find_spec("scrapy.utils.asyncio") is None:
    is_asyncio_available = is_asyncio_reactor_installed
    create_looping_call = LoopingCall

    def call_later(delay, function, *arguments):
        """Call a function after some seconds; return a timer with `cancel()`."""
        timer = import_module("twisted.internet.reactor").callLater(delay, function, *arguments)
        return SimpleNamespace(cancel=lambda: timer.active() and timer.cancel())
else:
    from scrapy.utils.asyncio import call_later as call_later
    from scrapy.utils.asyncio import create_looping_call as create_looping_call
    from scrapy.utils.asyncio import is_asyncio_available as is_asyncio_available


async def run_in_thread(function: Callable[_P, _T], *arguments: _P.args, **named: _P.kwargs) -> _T:
    """Call a function in a thread, and return what it returns."""
    if is_asyncio_available():
        return await asyncio.to_thread(function, *arguments, **named)
    return await maybe_deferred_to_future(deferToThread(function, *arguments, **named))


# -- errors of a download: Scrapy 2.15 has its own errors; earlier releases raise Twisted's

if not TYPE_CHECKING and not hasattr(scrapy.exceptions, "CannotResolveHostError"):
    from twisted.internet.defer import CancelledError as DownloadCancelledError
    from twisted.internet.error import DNSLookupError as CannotResolveHostError
else:
    from scrapy.exceptions import CannotResolveHostError as CannotResolveHostError
    from scrapy.exceptions import DownloadCancelledError


def was_cut_off_here(error: Exception) -> bool:
    """Whether the crawl itself stopped the download of a response."""
    return isinstance(error, DownloadCancelledError | StopDownload)


# -- coroutines of the engine and of download handlers: Scrapy 2.14 has them; earlier releases have Deferreds


def close_spider(engine: Any, reason: str) -> None:
    """Begin to close the spider."""
    if hasattr(engine, "close_spider_async"):
        deferred_from_coro(engine.close_spider_async(reason=reason))
    else:
        engine.close_spider(engine.spider, reason)


async def download(engine: Any, request: Request) -> Response:
    """Download a response through the downloader middlewares, but not for the spider."""
    if hasattr(engine, "download_async"):
        return await engine.download_async(request)  # type: ignore[no-any-return]
    return await maybe_deferred_to_future(engine.download(request))


async def download_by(handlers: Any, request: Request, crawler: Crawler) -> Response:
    """Download a response by Scrapy's handler for the request's scheme."""
    if hasattr(handlers, "download_request_async"):
        return await handlers.download_request_async(request)  # type: ignore[no-any-return]
    return await maybe_deferred_to_future(handlers.download_request(request, crawler.spider))


# -- robots.txt: Scrapy 2.18 sends a signal when it has parsed a robots.txt

ROBOTS_PARSED: object = getattr(signals, "robots_parsed", None) or object()
_SAYS_WHAT_IT_PARSED = hasattr(signals, "robots_parsed")


def robots_downloaded(crawler: Crawler, request: Request, response: Response) -> None:
    """Send `ROBOTS_PARSED` for a robots.txt that passed the middlewares, if Scrapy has no such signal."""
    if not _SAYS_WHAT_IT_PARSED:
        parser = load_object(crawler.settings["ROBOTSTXT_PARSER"]).from_crawler(crawler, response.body)
        crawler.signals.send_catch_log(ROBOTS_PARSED, robotparser=parser, request=request)


def is_forbidden_by_robots(error: Exception) -> bool:
    """Whether a request was not sent because robots.txt forbids it."""
    return isinstance(error, IgnoreRequest) and str(error) == "Forbidden by robots.txt"


def take_exception_back(crawler: Crawler, error: Exception) -> None:
    """Undo Scrapy's count of an exception that did not come from a request of the spider."""
    for name in ("exception_count", f"exception_type_count/{global_object_name(type(error))}"):
        if crawler.stats.get_value(f"downloader/{name}"):
            crawler.stats.inc_value(f"downloader/{name}", -1)


# -- undocumented parts of Scrapy


def _nicety(lost: str, without: Any = None) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]:
    said: list[str] = []

    def guard(function: Callable[_P, _T]) -> Callable[_P, _T]:
        @wraps(function)
        def guarded(*arguments: _P.args, **named: _P.kwargs) -> _T:
            try:
                return function(*arguments, **named)
            except (AttributeError, TypeError, KeyError) as error:
                if not said:
                    said.append(lost)
                    logger.warning("This release of Scrapy has changed inside (%s); %s.", error, lost)
                return without  # type: ignore[no-any-return]

        return guarded

    return guard


def counter(stats: StatsCollector) -> Callable[..., None]:
    """Return a function that does the same as ``stats.inc_value(name, n)``.

    Scrapy's own takes five microseconds in a crawl, since each attribute of the collector is searched for twice. A
    visit counts five things. A collector with a method of its own keeps it.
    """
    if getattr(type(stats), "inc_value", None) is not StatsCollector.inc_value or not hasattr(stats, "_stats"):
        return stats.inc_value

    def count(name: str, n: int = 1) -> None:
        counts: dict[str, Any] = object.__getattribute__(stats, "_stats")
        counts[name] = counts.get(name, 0) + n

    return count


class DownloadSlot(NamedTuple):
    """The state of a host in Scrapy's downloader.

    `concurrency` is the largest number of requests at the same time, including a request that waits for its delay.
    `least_delay` is the shortest time between two requests in seconds, and `seconds_left` is the rest of this time.
    If `is_full`, there is no room for another request.
    """

    concurrency: int
    least_delay: float
    seconds_left: float
    is_full: bool


@_nicety("delays are kept by Scrapy alone, after a slot has been used")
def download_slot(crawler: Crawler, name: str) -> DownloadSlot | None:
    """Return the state of a host's download slot, or None if the host has no slot."""
    slot: Any = crawler.engine.downloader.slots.get(name)
    if slot is None:
        return None
    if not slot.delay:
        return DownloadSlot(slot.concurrency, 0.0, 0.0, bool(slot.queue) or slot.free_transfer_slots() <= 0)
    # Scrapy 2.19 has `jitter`, which is a share of the delay, and uses the monotonic clock.
    jitter = slot.jitter if hasattr(slot, "jitter") else 0.5 * slot.randomize_delay
    least_delay = max(0.0, slot.delay * (1.0 - jitter))
    # Scrapy draws a new delay at each check, and only a request in the slot's queue has to wait until the end of this
    # delay.
    clock = time.time if slot.lastseen > _SINCE_1970 else time.monotonic
    left = slot.lastseen + least_delay - clock()
    return DownloadSlot(slot.concurrency + 1, least_delay, left, bool(slot.queue))


@_nicety("redirects and retries wait for their host, and not for the download slot that `meta` names")
def _slot_name(crawler: Crawler, request: Request) -> str | None:
    return crawler.engine.downloader.get_slot_key(request)


def slot_name(crawler: Crawler, request: Request) -> str:
    """Return the name of a request's download slot."""
    return _slot_name(crawler, request) or urlparse_cached(request).hostname or ""


def dupefilter_of(scheduler: Any) -> Any:
    """Return the filter of a scheduler; None if it has no filter, like some projects' own schedulers."""
    return getattr(scheduler, "df", None)


@_nicety("requests that wait when the spider closes are given up late", False)
def is_closing(crawler: Crawler) -> bool:
    """Whether the spider is being closed."""
    slot: Any = crawler.engine._slot
    return slot is not None and slot.closing is not None


@_nicety("redirects and retries wait for the engine's heartbeat")
def wake(crawler: Crawler) -> None:
    """Make the engine take requests from the scheduler; `engine.crawl` would send `request_scheduled` again."""
    slot: Any = crawler.engine._slot
    if slot is not None:
        slot.nextcall.schedule()


@_nicety("requests pass the slots, and no second gate before the network")
def download_handlers(crawler: Crawler) -> Any:
    """Return the object to which Scrapy's downloader gives its requests."""
    return crawler.engine.downloader.handlers


def stand_before_handlers(crawler: Crawler, make: Callable[[Any], _T]) -> _T | None:
    """Replace Scrapy's download handlers by ``make(handlers)``, and return the new object; None without handlers."""
    if (handlers := download_handlers(crawler)) is None:
        return None
    made = crawler.engine.downloader.handlers = make(handlers)  # type: ignore[assignment]
    return made


@_nicety("each request waits for the address of its host", False)
def is_cached(host: str) -> bool:
    """Whether Scrapy's cache of names has the addresses of a host."""
    return host in scrapy.resolver.dnscache


@_nicety("Scrapy may repeat a request by itself if the server had closed the connection")
def switch_off_retries(handlers: Any, scheme: str) -> None:
    """Stop Scrapy's connection pool from repeating requests, since the crawl would not notice the repetition."""
    pool: Any = getattr(handlers._handlers.get(scheme), "_pool", None)  # only Twisted's handlers have a pool
    if getattr(pool, "retryAutomatically", False):
        pool.retryAutomatically = False


@_nicety("Sitemap lines and Crawl-delay of robots.txt are not read", ([], None))
def robots_facts(parser: Any, user_agent: str) -> tuple[list[str], float | None]:
    """Return the Sitemap lines of a parsed robots.txt, and its Crawl-delay in seconds."""
    inner = getattr(parser, "rp", None)  # a parser of Scrapy contains the parser of a library, which has more methods
    sitemaps = getattr(inner, "sitemaps", None) or getattr(inner, "site_maps", None) or ()
    ask = getattr(parser, "crawl_delay", None) or getattr(inner, "crawl_delay", None)  # Scrapy 2.18 has `crawl_delay`
    found = sitemaps() if callable(sitemaps) else sitemaps
    return list(found or ()), ask(user_agent) if callable(ask) else None


@_nicety("each robots.txt is read once")
def forget_robots(crawler: Crawler, netloc: str) -> None:
    """Let Scrapy read the robots.txt of a host again before the next request to the host."""
    middleware: Any = crawler.get_downloader_middleware(RobotsTxtMiddleware)
    if middleware is not None and not isinstance(middleware._parsers.get(netloc), Deferred):  # not being read
        middleware._parsers.pop(netloc, None)


def running_command() -> str | None:
    """Return the module of the running Scrapy command; None in scripts. Scrapy does not pass the command to add-ons."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "scrapy.cmdline" and "cmd" in frame.f_locals:
            return type(frame.f_locals["cmd"]).__module__
        frame = frame.f_back  # type: ignore[assignment]
    return None
