"""Names: a request waits for the addresses of its host before its turn, so that a slow name server makes no burst."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.defer import Deferred

__all__ = ["addresses_of"]


async def addresses_of(host: str, port: int) -> list[str]:
    """Return the addresses of a host; none if it has none.

    It asks the reactor's resolver. Its cache (Scrapy's ``DNSCACHE_ENABLED``) gives the connection the same addresses.
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
    if not done.called:  # a cached name is there at once
        await maybe_deferred_to_future(done)
    return [address.host for address in addresses]
