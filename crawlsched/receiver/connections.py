"""Connections of a small HTTP server, up to a limit: the oldest one without a request makes room."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aiohttp import web
    from aiohttp.web_protocol import RequestHandler

__all__ = ["MOST_CONNECTIONS", "Connections"]

#: Connections that are kept; those that the system has accepted at once, up to as many again, go in the same moment.
MOST_CONNECTIONS = 128


class Connections:
    """Accepts connections for a server of aiohttp's, which by itself takes any number.

    Notes
    -----
    The newest always gets in, and the oldest quiet one goes: whoever opens many connections, or
    sends a request letter by letter, loses his own, and a sender that says what it has to say is served. A connection
    on which a request is being answered is never quiet.
    """

    def __init__(self, server: web.Server, hung_up: Callable[[], None]) -> None:
        self._server = server
        self._hung_up = hung_up
        self._loop = asyncio.get_running_loop()
        self._listening: asyncio.Server | None = None
        self._busy: set[RequestHandler] = set()

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Begin to accept; return where."""
        self._listening = await self._loop.create_server(self._accepted, host, port, backlog=MOST_CONNECTIONS)
        address: tuple[Any, ...] = self._listening.sockets[0].getsockname()
        return address[0], address[1]

    def close(self) -> None:
        """Accept no more; the server itself ends those that are open."""
        if self._listening is not None:
            self._listening.close()

    @contextmanager
    def busy(self, connection: RequestHandler) -> Iterator[None]:
        """While a request is being answered its connection is not quiet."""
        self._busy.add(connection)
        try:
            yield
        finally:
            self._busy.discard(connection)

    def _accepted(self) -> RequestHandler:
        # Its transport is made in this turn of the loop, and the server hears of it in the next.
        self._loop.call_soon(self._loop.call_soon, self._make_room)
        return self._server()

    def _make_room(self) -> None:
        # In the order in which they came; of a connection that is closing the server hears later.
        there = [c for c in self._server.connections if c.transport is not None and not c.transport.is_closing()]
        quiet = (connection for connection in there if connection not in self._busy)
        for connection, _ in zip(quiet, range(len(there) - MOST_CONNECTIONS), strict=False):
            assert connection.transport is not None
            connection.transport.abort()
            self._hung_up()
