"""The second gate: a slot has chosen a request, which waits here until it may be sent.

Between the slot and this gate, names are looked up, robots.txt files are read, and other components act. They may delay
several requests and then release all of them together. Here the requests leave one by one. This wait is not part of the
host's latency, nor of DOWNLOAD_TIMEOUT.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from types import SimpleNamespace
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.datatypes import LocalCache
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import Deferred, DeferredLock

from crawlsched import scrapy_versions
from crawlsched.addon.lifetime import wait
from crawlsched.crawl.private_addresses import is_private
from crawlsched.crawl.rate import CrawlRate
from crawlsched.crawl.refresher import Refresher

__all__ = ["LOOK_AGAIN", "PORTS", "DownloaderSlots", "Gate", "NotSent", "PacedHandlers", "PrivateAddress"]

#: The default port of each scheme that uses the network.
PORTS = {"http": 80, "https": 443, "ftp": 21, "s3": 443}
#: Seconds between two checks of a waiting request: whether its host is busy, the crawl ends, or the rate has changed.
LOOK_AGAIN = 0.5


class PrivateAddress(IgnoreRequest):
    """A site named an address that is not of the public internet."""


class NotSent(Exception):
    """The crawl ends before a request's turn has come."""


@dataclass(eq=False)
class Gate:
    """Lets requests pass one after the other, at the pace of the crawl."""

    rate: CrawlRate
    clock: Callable[[], float]
    is_shut: Callable[[], bool]
    ends: Callable[[], bool]

    def __post_init__(self) -> None:
        self._next = DeferredLock()  # the request that has this lock is next
        self._of_host: dict[str, DeferredLock] = {}
        self._passed_at: LocalCache[str, float] = LocalCache(10_000)  # by host

    async def passes(self, host: str, distance: float) -> None:
        """Wait for a turn, and until `distance` seconds have passed since the last request to the host.

        Raise `NotSent` if the crawl ends first.
        """
        is_first = not self._next.locked and host not in self._of_host
        free_at = max(self._free_at(host, distance), self.rate.pace.next_time(self.clock()))
        if is_first and not self._seconds_to(free_at):
            self._sent(host)  # the usual case needs no lock
        elif distance:
            # The requests to a host wait in their order, while requests to other hosts pass.
            lock = self._of_host.setdefault(host, DeferredLock())
            async with _held(lock):
                while seconds := self._seconds_to(self._free_at(host, distance)):
                    await wait(seconds)
                await self._passes(host)
            if not lock.locked:
                del self._of_host[host]
        else:
            await self._passes(host)

    async def _passes(self, host: str) -> None:
        self.rate.n_waiting += 1
        try:
            async with _held(self._next):
                while seconds := self._seconds_to(self.rate.pace.next_time(self.clock())):
                    await wait(seconds)
                self._sent(host)
        finally:
            self.rate.n_waiting -= 1

    def _sent(self, host: str) -> None:
        # The time is noted even if no distance is kept yet: the first request is for a robots.txt, which may state a
        # Crawl-delay.
        now = self._passed_at[host] = self.clock()
        self.rate.pace.sent(now)

    def _free_at(self, host: str, distance: float) -> float:
        return self._passed_at.get(host, -inf) + distance

    def _seconds_to(self, time: float) -> float:
        """Return the seconds to wait before the next check; 0: the time has come."""
        if self.ends():
            raise NotSent("The crawl ends before its turn has come.")
        return LOOK_AGAIN if self.is_shut() else min(max(time - self.clock(), 0.0), LOOK_AGAIN)


@asynccontextmanager
async def _held(lock: DeferredLock) -> AsyncIterator[None]:
    await maybe_deferred_to_future(lock.acquire())
    try:
        yield
    finally:
        lock.release()


class PacedHandlers:
    """Wraps Scrapy's download handlers, so that requests are sent at the pace of the crawl."""

    def __init__(self, crawler: Crawler, handlers: Any, refresher: Refresher) -> None:
        self._crawler = crawler
        self._handlers = handlers
        self._refresher = refresher
        # Only Scrapy's own handlers connect to the URL's host; in an s3 URL the host is a bucket.
        configured = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
        paths = {scheme: path for scheme in PORTS if scheme != "s3" and (path := configured.get(scheme))}
        self._looked_up = {name for name, path in paths.items() if load_object(path).__module__.startswith("scrapy.")}
        # While the crawl has no grant of the rate, requests wait. If they were given up, requests that are no pages
        # would be lost.
        self._gate = Gate(
            refresher.rate, refresher.clock, lambda: refresher.rate.rests or not refresher.may_send(), self._ends
        )

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handlers, name)

    def download_request(self, request: Request, spider: Spider | None = None) -> Deferred[Response]:
        """Do the same as `download_request_async`, for Scrapy 2.13."""
        return deferred_from_coro(self.download_request_async(request))

    async def download_request_async(self, request: Request) -> Response:
        """Wait for a request's turn, and hand the request to the handler of its scheme."""
        url = urlparse_cached(request)
        if url.scheme not in PORTS:  # the request does not use the network
            return await scrapy_versions.download_by(self._handlers, request, self._crawler)
        try:
            return await self._download(request)
        except Exception as error:
            if (visit := self._refresher.visits.get(request.meta.get("crawlsched_visit"))) is not None:
                # If a component of this crawl cut the answer off, the host did answer.
                visit.unanswered = not scrapy_versions.was_cut_off_here(error)
            raise

    async def _download(self, request: Request) -> Response:
        await self._turn(request, await self.judged_host(request))
        now = self._refresher.clock()
        self._refresher.rate.sent(now)
        if self._refresher.visits.get(request.meta.get("crawlsched_visit")) is None:
            self._refresher.rate.pay(now)  # robots.txt, media and inline requests go out without a slot
        # Twisted's own retries would be sent without waiting for a turn. Scrapy's retries wait for their turn.
        scrapy_versions.switch_off_retries(self._handlers, urlparse_cached(request).scheme)
        response = await scrapy_versions.download_by(self._handlers, request, self._crawler)
        if response.status in (429, 503) and (value := response.headers.get("Retry-After")):
            host = str(request.meta.get("download_slot"))
            self._refresher.host_rests(host, value.decode("latin-1"), self._refresher.clock())
        return response

    async def judged_host(self, request: Request) -> str:
        """Wait for the address to which the request connects, and refuse a private address that a site has named.

        An unknown name is left to the handler, which reports it.
        """
        url = urlparse_cached(request)
        host, port, proxy = url.hostname or "", url.port or PORTS[url.scheme], request.meta.get("proxy")
        if proxy is not None:
            self._refuse_private(request, [host])  # the proxy looks the name up
            through = urlparse_cached(Request(proxy if "://" in proxy else f"http://{proxy}"))
            host, port = through.hostname or "", through.port or 80
        # A name in Scrapy's cache costs no time later, so it is looked up only if its address has to be judged.
        is_known = scrapy_versions.is_cached(host) and not request.meta.get("crawlsched_named_by_site")
        is_left_out = is_known or url.scheme not in self._looked_up
        addresses = [host] if is_left_out else await _addresses_of(host, port)
        if proxy is None:
            self._refuse_private(request, addresses)
        return host

    def _refuse_private(self, request: Request, addresses: list[str]) -> None:
        if not request.meta.get("crawlsched_named_by_site"):
            return
        if not addresses:  # there is no address to judge
            said = f"Couldn't find the hostname of {request.url}, which a site has named."
            raise scrapy_versions.CannotResolveHostError(said)
        for address in addresses:
            if is_private(address, self._refresher.settings.private_addresses):
                raise PrivateAddress(
                    f"{request.url} was named by a site and leads to the private address {address}; "
                    "allow its range with CRAWLSCHED_PRIVATE_ADDRESSES if it is meant."
                )

    async def _turn(self, request: Request, host: str) -> None:
        slot = scrapy_versions.download_slot(self._crawler, str(request.meta.get("download_slot")))
        # Scrapy has kept this distance between the host's requests. The wait for a turn must not shorten the distance.
        distance = 0.0 if slot is None else slot.least_delay
        hosts = self._refresher.hosts
        if hosts.crawl_delay:
            distance = max(distance, hosts.crawl_delay.get(hosts.number(host), 0.0))
        await self._gate.passes(host, distance)
        # This check comes right before the request is sent, since the process may have been suspended until now.
        if not self._refresher.may_send(request.meta.get("crawlsched_visit")):
            raise NotSent("Another process has its host by now.")

    def _ends(self) -> bool:
        # Scrapy closes a spider only when no request is under way. At a low rate, a turn may be minutes away. So a
        # request stops waiting when the crawl ends.
        return not self._crawler.engine.running or scrapy_versions.is_closing(self._crawler)


async def _addresses_of(host: str, port: int) -> list[str]:
    """Return the addresses of a host; an empty list if it has no address.

    The reactor's resolver is asked. Its cache (Scrapy's ``DNSCACHE_ENABLED``) gives the connection the same addresses.
    """
    if not is_reactor_installed():
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            return []
        return [str(address[4][0]) for address in found]
    from twisted.internet import reactor

    there: Any = reactor
    addresses: list[Any] = []
    done: Deferred[None] = Deferred()
    receiver = SimpleNamespace(
        resolutionBegan=lambda resolution: None,
        addressResolved=addresses.append,
        resolutionComplete=lambda: done.callback(None),
    )
    there.nameResolver.resolveHostName(receiver, host, 0)
    if not done.called:  # cached addresses are there at once
        await maybe_deferred_to_future(done)
    return [address.host for address in addresses]


class DownloaderSlots:
    """Finds when a host may be asked, from Scrapy's download slots, our open visits and the limits of the host."""

    def __init__(self, crawler: Crawler, refresher: Refresher) -> None:
        self._crawler = crawler
        self._refresher = refresher
        self._hosts = refresher.hosts
        self._concurrency = crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self.turned_away = False

    def free_at(self, host: int, now: float, own: bool = False) -> float:
        """Return the earliest time at which the host may be asked: `now` if it may be asked now.

        `own` says that the request belongs to one of the open visits to the host (a redirect or retry).
        """
        free = self._hosts.free_at(host, now, has_begun=own)
        if free <= now:
            free = self._downloader_free_at(self._hosts.names[host], self._refresher.visits.open_on(host) - own, now)
        if free > now:
            self.turned_away = True
        return free

    def _downloader_free_at(self, name: str, open_visits: int, now: float) -> float:
        slot = scrapy_versions.download_slot(self._crawler, name)
        concurrency = self._concurrency if slot is None else slot.concurrency
        if 0 < concurrency <= open_visits:
            return now + LOOK_AGAIN  # the end of a visit to the host is announced at once
        if slot is None:
            return now
        # If a host will be free before the next slot, its request goes out at the present slot, and Scrapy waits for
        # the rest of the delay.
        seconds_left = slot.seconds_left - max(LOOK_AGAIN, 1.0 / self._refresher.rate.slots.rate)
        if seconds_left > 0:
            return now + seconds_left
        return now + LOOK_AGAIN if slot.is_full else now
