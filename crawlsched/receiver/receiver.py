"""The receiver: an HTTP server inside the crawl for pings (IndexNow, WebSub). It only runs if an address is set.

A flood of pings is refused early, since the numbers of requests, URLs and connections are limited. Accepted pings wait
until no slot is due.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from crawlsched.change_signals.collected import Limits
from crawlsched.change_signals.problems import MAX_EXAMPLE
from crawlsched.crawl.side_thread import STEP
from crawlsched.crawl.sources import POLLED_KINDS
from crawlsched.exceptions import CrawlschedError, require_aiohttp
from crawlsched.receiver.pings import (
    MOST_URLS,
    WRONG_SIGNATURE,
    PingRefused,
    begun_signature,
    callback_token,
    is_equal,
    read_indexnow,
)

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.web_protocol import RequestHandler

    from crawlsched.crawl.refresher import Refresher
    from crawlsched.store import Source

__all__ = ["MOST_CONNECTIONS", "Connections", "Receiver"]

logger = logging.getLogger(__name__)
_http_logger = logging.getLogger(f"{__name__}.http")

_MOST_BYTES = 2 * 1024 * 1024
# At most this many requests a second are served, valid or not. Further requests wait for a second and then get 429.
_REQUESTS_PER_SECOND = 50.0
# At most this many URLs a second are accepted.
_URLS_PER_SECOND = 10.0
# At most this many URLs wait for the crawl at the same time: those of two pings of the largest size.
_MOST_WAITING = 2 * MOST_URLS
# A request has to be complete within this many seconds.
_SLOWEST = 10.0


class Receiver:
    """The HTTP server for pings."""

    def __init__(self, refresher: Refresher) -> None:
        settings, now = refresher.settings, refresher.clock()
        assert settings.receiver is not None
        self.address: tuple[str, int] | None = None
        self._refresher = refresher
        self._key = settings.receiver.key
        self._takes_urls = allowance(_URLS_PER_SECOND, float(MOST_URLS), now)
        self._takes_request = allowance(_REQUESTS_PER_SECOND, float(MOST_CONNECTIONS), now)
        self._waiting = 0
        self._runner: web.AppRunner | None = None
        self._connections: Connections | None = None

    async def start(self) -> None:
        """Start to listen. If this fails, the log says why, and the crawl goes on without a receiver."""
        try:
            require_aiohttp("The receiver of pings")
        except CrawlschedError as error:
            logger.error("Pings are not received: %s", error)
            return
        from aiohttp import web

        assert self._refresher.settings.receiver is not None
        host, port, *_ = self._refresher.settings.receiver

        app = web.Application(client_max_size=_MOST_BYTES, middlewares=[web.middleware(partial(self._guard))])
        # Some clients write the path in capitals, or with a slash at its end.
        indexnow, websub = "/{name:(?i:indexnow)/?}", "/{name:(?i:websub)}/{source:[0-9]{1,9}}/{token}"
        app.router.add_get(indexnow, self._indexnow)
        app.router.add_post(indexnow, self._indexnow)
        app.router.add_get(websub, self._verify_intent)
        app.router.add_post(websub, self._notified)
        _http_logger.addFilter(_is_ours)
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=_http_logger,
            handle_signals=False,
            keepalive_timeout=5.0,
            shutdown_timeout=1.0,
        )
        await runner.setup()
        assert runner.server is not None
        self._connections = Connections(runner.server, lambda: self._refresher.count("crawlsched/pings/hung_up"))
        try:
            self.address = await self._connections.listen(host, port)
        except OSError as error:
            await runner.cleanup()
            logger.error("Pings are not received: %s:%d cannot be listened on (%s).", host, port, error)
            return
        self._runner = runner
        logger.info("Pings are received at http://%s:%d/indexnow and /websub.", *self.address)

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            assert self._connections is not None
            self._connections.close()
            runner, self._runner, self.address = self._runner, None, None
            await runner.cleanup()

    # -- access

    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        from aiohttp import web

        assert self._connections is not None
        try:
            async with asyncio.timeout(_SLOWEST):
                # A request counts when it is complete. An incomplete request occupies a connection, and the oldest
                # connection is closed for a new one. The handler of a hub's notice reads the body after it has checked
                # the secret address.
                if request.can_read_body and "token" not in request.match_info:
                    await request.read()
            with self._connections.busy(request.protocol):
                if not self._takes_request(1, self._refresher.clock()):
                    return await self._later()
                async with asyncio.timeout(_SLOWEST):
                    return await handler(request)
        except PingRefused as refused:
            self._refresher.count("crawlsched/pings/refused")
            return web.json_response({"error": str(refused)}, status=refused.status)
        except (TimeoutError, ConnectionError):
            return web.Response(status=408)

    async def _later(self, seconds: float = 1.0) -> web.Response:
        """Wait for a second, and return an answer that says when the sender may try again."""
        from aiohttp import web

        self._refresher.count("crawlsched/pings/limited")
        await asyncio.sleep(1.0)
        again = {"Retry-After": str(max(1, math.ceil(seconds))), "Connection": "close"}
        return web.json_response({"error": "Too many pings."}, status=429, headers=again)

    # -- IndexNow

    async def _indexnow(self, request: web.Request) -> web.Response:
        from aiohttp import web

        body = await request.read() if request.method == "POST" else None
        # Ten thousand URLs take some tens of milliseconds. In a thread, they do not delay slots.
        host, urls = await asyncio.to_thread(read_indexnow, dict(request.query), body, self._key)
        n, now = len(urls), self._refresher.clock()
        if self._waiting + n > _MOST_WAITING:
            return await self._later()
        if not self._takes_urls(n, now):
            return await self._later(n / _URLS_PER_SECOND)
        self._refresher.count("crawlsched/pings/urls", n)
        self._waiting += n
        self._refresher.long_work.add(self._taken_over(urls, f"indexnow {host}"))
        return web.Response(status=202)

    def _taken_over(self, urls: tuple[str, ...], sender: str) -> Iterator[None]:
        """Take a ping over, some URLs at a time."""
        refresher, polls = self._refresher, self._refresher.polls
        for start in range(0, len(urls), STEP):
            pages, unknown = polls.known_pages(urls[start : start + STEP])
            refresher.count("crawlsched/change_signals/unknown_url", len(unknown))
            polls.announce(pages, sender, refresher.clock())
            yield
        self._waiting -= len(urls)

    # -- WebSub

    def _topic(self, request: web.Request) -> tuple[Source, str]:
        """Return the source of a callback, and the name by which the crawl subscribed to the source.

        The name is the feed's own (rel="self"), which can differ from the feed's address (WebSub, section 5.1). The
        token proves that the crawl made the callback for this name.
        """
        number = int(request.match_info["source"])
        sources = self._refresher.collection.sources
        if number in sources and sources[number].kind in POLLED_KINDS:
            source = sources[number]
            for topic in (source.url, source.quality.get("hub", {}).get("topic"), request.query.get("hub.topic")):
                if topic and is_equal(request.match_info["token"], callback_token(topic, self._key)):
                    return source, topic
        raise PingRefused(404, "There is no such callback.")

    async def _verify_intent(self, request: web.Request) -> web.Response:
        """Confirm a subscription to a hub if the crawl requested it (WebSub, section 5.3)."""
        from aiohttp import web

        source, topic = self._topic(request)
        mode, challenge = request.query.get("hub.mode", ""), request.query.get("hub.challenge")
        if mode == "denied":
            reason = request.query.get("hub.reason", "?")[:MAX_EXAMPLE]
            logger.warning("The hub of %s denies the subscription: %r", topic, reason)
            return web.Response(status=200)
        # The token proves that the crawl requested the subscription. The crawl never requests to end a subscription.
        if mode != "subscribe" or request.query.get("hub.topic") not in (topic, source.url) or not challenge:
            raise PingRefused(404, "This was not asked for.")
        self._refresher.count("crawlsched/websub/subscribed")
        return web.Response(text=challenge)

    async def _notified(self, request: web.Request) -> web.Response:
        """Take a hub's notice of a change: the topic is polled in the next slot."""
        from aiohttp import web

        source, topic = self._topic(request)
        digits, right = begun_signature(request.headers.get("X-Hub-Signature"), topic, self._key)
        length, most = 0, Limits().max_bytes
        try:
            async with asyncio.timeout(_SLOWEST):
                # A notice can be as long as the feed, so its body is not stored.
                async for part in request.content.iter_any():
                    length += len(part)
                    if length > most:
                        raise web.HTTPRequestEntityTooLarge(max_size=most, actual_size=length)
                    right.update(part)
        except TimeoutError:
            raise web.HTTPRequestTimeout from None
        if not is_equal(digits, right.hexdigest()):
            raise PingRefused(403, WRONG_SIGNATURE)
        self._refresher.polls.poll_soon(source.source, self._refresher.clock())
        return web.Response(status=202)


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a log record is about an error of this server: senders of invalid HTTP must not fill the log."""
    from aiohttp.http_exceptions import HttpProcessingError

    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, HttpProcessingError | ConnectionError)


def allowance(rate: float, reserve: float, now: float) -> Callable[[float, float], bool]:
    """Return a function that takes units from a token bucket, which gets `rate` units a second and holds `reserve`.

    The function takes the given number of units. If the bucket has fewer units, the function takes none and returns
    False.

    Examples
    --------
    >>> takes = allowance(rate=1.0, reserve=2.0, now=0.0)
    >>> [takes(1, now) for now in (0.0, 0.0, 0.0, 1.0)]
    [True, True, False, True]
    """
    left, at = reserve, now

    def takes(n: float, now: float) -> bool:
        nonlocal left, at
        left, at = min(reserve, left + rate * max(now - at, 0.0)), max(now, at)
        if n > left:
            return False
        left -= n
        return True

    return takes


#: At most this many connections stay open. The system may accept the same number of further connections, which are
#: closed immediately.
MOST_CONNECTIONS = 128


class Connections:
    """Accepts connections for a server of aiohttp and limits their number, which aiohttp does not.

    Notes
    -----
    A new connection is always accepted, and if there are too many, the oldest quiet connection is closed. A connection
    is quiet unless its request is being answered. So a client that opens many connections, or sends requests slowly,
    loses its own connections. Complete requests are served.
    """

    def __init__(self, server: web.Server, hung_up: Callable[[], None]) -> None:
        self._server = server
        self._hung_up = hung_up
        self._loop = asyncio.get_running_loop()
        self._listening: asyncio.Server | None = None
        self._busy: set[RequestHandler] = set()

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Start to accept connections; return the address."""
        self._listening = await self._loop.create_server(self._accepted, host, port, backlog=MOST_CONNECTIONS)
        address: tuple[Any, ...] = self._listening.sockets[0].getsockname()
        return address[0], address[1]

    def close(self) -> None:
        """Accept no more connections; the server itself closes the open ones."""
        if self._listening is not None:
            self._listening.close()

    @contextmanager
    def busy(self, connection: RequestHandler) -> Iterator[None]:
        """Keep a connection open while its request is being answered."""
        self._busy.add(connection)
        try:
            yield
        finally:
            self._busy.discard(connection)

    def _accepted(self) -> RequestHandler:
        # The connection's transport is made in this turn of the event loop. The server gets it in the next turn.
        self._loop.call_soon(self._loop.call_soon, self._make_room)
        return self._server()

    def _make_room(self) -> None:
        # The connections in the order of their arrival, without those that are closing already.
        there = [c for c in self._server.connections if c.transport is not None and not c.transport.is_closing()]
        quiet = (connection for connection in there if connection not in self._busy)
        for connection, _ in zip(quiet, range(len(there) - MOST_CONNECTIONS), strict=False):
            assert connection.transport is not None
            connection.transport.abort()
            self._hung_up()
