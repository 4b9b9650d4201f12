"""Sending: the second gate. A slot decides which request goes; here it gets its turn to be written.

In between, names are looked up, robots.txt files are read, and other components act. Requests that these hold up and
release together leave one by one. Waiting here counts neither as the host's latency nor towards DOWNLOAD_TIMEOUT.
"""

from __future__ import annotations

from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import load_object
from twisted.internet.defer import Deferred

from crawlsched.addon.names import addresses_of
from crawlsched.crawl.pacing import Line
from crawlsched.crawl.private_addresses import is_private
from crawlsched.crawl.refresher import Refresher
from crawlsched.scrapy_versions import (
    CannotResolveHostError,
    call_later,
    download_by,
    download_slot,
    is_closing,
    switch_off_retries,
    was_cut_off_here,
)

__all__ = ["PORTS", "DownloaderSlots", "NotSent", "PacedHandlers", "PrivateAddress"]

#: By scheme of what goes over the network, the port where a URL names none.
PORTS = {"http": 80, "https": 443, "ftp": 21, "s3": 443}
# Seconds within which a waiting request notices the end of the crawl.
_LONGEST_WAIT = 0.5


class PrivateAddress(IgnoreRequest):
    """A site named an address that is not of the public internet."""


class NotSent(Exception):
    """The crawl ends before a request's turn has come."""


class PacedHandlers:
    """Stands before Scrapy's download handlers, and lets requests pass at the pace of the crawl."""

    def __init__(self, crawler: Crawler, handlers: Any, refresher: Refresher) -> None:
        self._crawler = crawler
        self._handlers = handlers
        self._refresher = refresher
        self._line: Line[Deferred[None]] = refresher.rate.line
        self._clock = refresher.clock
        self._allowed = refresher.settings.private_addresses
        # Only Scrapy's own handlers connect to the URL's host; in an s3 URL the host is a bucket.
        configured = crawler.settings.getwithbase("DOWNLOAD_HANDLERS")
        paths = {scheme: path for scheme in PORTS if scheme != "s3" and (path := configured.get(scheme))}
        self._looked_up = {name for name, path in paths.items() if load_object(path).__module__.startswith("scrapy.")}
        self._timer: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._handlers, name)

    def download_request(self, request: Request, spider: Spider | None = None) -> Deferred[Response]:
        """As `download_request_async`; Scrapy 2.13 asks so."""
        return deferred_from_coro(self.download_request_async(request))

    async def download_request_async(self, request: Request) -> Response:
        """Give a request its turn, and hand it to the handler of its scheme."""
        url = urlparse_cached(request)
        if url.scheme not in PORTS:  # nothing of it goes over the network
            return await download_by(self._handlers, request, self._crawler)
        try:
            return await self._download(request)
        except Exception as error:
            if (visit := self._refresher.visits.get(request.meta.get("crawlsched_visit"))) is not None:
                # An answer that a component has cut off is an answer, too.
                visit.unanswered = not was_cut_off_here(error)
            raise

    async def _download(self, request: Request) -> Response:
        await self._turn(request, await self.judged_host(request))
        self._refresher.rate.sent(self._clock(), False)
        # Twisted's own retries would go without a turn; Scrapy's have one.
        switch_off_retries(self._handlers, urlparse_cached(request).scheme)
        return await download_by(self._handlers, request, self._crawler)

    async def judged_host(self, request: Request) -> str:
        """Wait for the address of the host that is connected to, and refuse a private one that a site has named.

        An unknown name is for the handler to report.
        """
        url = urlparse_cached(request)
        host, port, proxy = url.hostname or "", url.port or PORTS[url.scheme], request.meta.get("proxy")
        if proxy is not None:
            self._refuse_private(request, [host])  # the proxy asks for the name
            through = urlparse_cached(Request(proxy if "://" in proxy else f"http://{proxy}"))
            host, port = through.hostname or "", through.port or 80
        addresses = await addresses_of(host, port) if url.scheme in self._looked_up else [host]
        if proxy is None:
            self._refuse_private(request, addresses)
        return host

    def _refuse_private(self, request: Request, addresses: list[str]) -> None:
        if not request.meta.get("crawlsched_named_by_site"):
            return
        if not addresses:  # and so none that could be judged
            raise CannotResolveHostError(f"Couldn't find the hostname of {request.url}, which a site has named.")
        for address in addresses:
            if is_private(address, self._allowed):
                raise PrivateAddress(
                    f"{request.url} was named by a site and leads to the private address {address}; "
                    "allow its range with CRAWLSCHED_PRIVATE_ADDRESSES if it is meant."
                )

    async def _turn(self, request: Request, host: str) -> None:
        slot = download_slot(self._crawler, str(request.meta.get("download_slot")))
        # Scrapy has kept this distance when it let the request go; waiting here must not shorten it.
        distance = 0.0 if slot is None else slot.least_delay
        hosts = self._refresher.hosts
        if hosts.crawl_delay:
            distance = max(distance, hosts.crawl_delay.get(hosts.number(host), 0.0))
        # Without a grant a request waits; a request that is no page would be lost if it were given up.
        if self._ends() or not self._refresher.may_send() or not self._line.passes(self._clock(), host, distance):
            turn: Deferred[None] = Deferred()
            self._line.join(turn, host, distance)
            self.let_go()
            try:
                await maybe_deferred_to_future(turn)
            except BaseException:  # the crawl ends while it waits
                self._line.remove(turn)
                raise
        # Asked for each request: a process that was stopped for a while goes on with the one it was sending.
        if not self._refresher.may_send(request.meta.get("crawlsched_visit")):
            raise NotSent("Another process has its host by now.")

    def let_go(self) -> None:
        """Send the requests whose turn has come, and come back for the next one; a new rate changes that time."""
        if self._ends():
            for given_up in self._line.leave_all():
                given_up.errback(NotSent("The crawl ends before its turn has come."))
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._refresher.may_send():
            if len(self._line):
                self._timer = call_later(_LONGEST_WAIT, self.let_go)
            return
        while (turn := self._line.leave(self._clock())) is not None:
            turn.callback(None)
        if len(self._line) and self._timer is None:
            now = self._clock()
            wait = min(max(0.0, self._line.next_time(now) - now), _LONGEST_WAIT)
            self._timer = call_later(wait, self.let_go)

    def _ends(self) -> bool:
        # Scrapy closes a spider when nothing is under way any more, and at a low rate a turn may be minutes away.
        return not self._crawler.engine.running or is_closing(self._crawler)


# A busy host is asked again after this many seconds at the latest; the end of a visit to it is announced at once.
_BUSY_HOST_WAIT = 0.25
# A request may go to Scrapy this long before a delay is over; Scrapy sends it at the end, whatever slots come.
_WAITS_FOR_A_DELAY = 0.5


class DownloaderSlots:
    """May this host be asked now? By Scrapy's per-host download slots, our own count of visits, and what hosts said."""

    def __init__(self, crawler: Crawler, refresher: Refresher) -> None:
        self._crawler = crawler
        self._refresher = refresher
        self._hosts = refresher.hosts
        self._visits = refresher.visits
        self._concurrency = crawler.settings.getint("CONCURRENT_REQUESTS_PER_DOMAIN")
        self.turned_away = False

    def free_at(self, host: int, now: float, own: bool = False) -> float:
        """Return the earliest time at which the host may be asked: `now` if it may be asked now.

        `own` says that one of the open visits to the host is the asker itself (a redirect or retry).
        """
        free = self._hosts.free_at(host, now, has_begun=own)
        if free <= now:
            free = self._downloader_free_at(self._hosts.names[host], self._visits.open_on(host) - own, now)
        if free > now:
            self.turned_away = True
        return free

    def _downloader_free_at(self, name: str, open_visits: int, now: float) -> float:
        slot = download_slot(self._crawler, name)
        concurrency = self._concurrency if slot is None else slot.concurrency
        if 0 < concurrency <= open_visits:
            return now + _BUSY_HOST_WAIT
        if slot is None:
            return now
        # A host that will be free before the next slot is asked at this one, and Scrapy keeps the rest of the delay.
        seconds_left = slot.seconds_left - max(_WAITS_FOR_A_DELAY, 1.0 / self._refresher.rate.slots.rate)
        if seconds_left > 0:
            return now + seconds_left
        return now + _BUSY_HOST_WAIT if slot.is_full else now
