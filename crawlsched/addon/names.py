"""Names: a host's addresses, asked for before its request waits for a turn, and the same when it is connected to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHostnameResolver
from zope.interface import implementer  # type: ignore[import-untyped]

__all__ = ["Names"]


@implementer(IHostnameResolver)
class Names:
    """Asks for addresses, and keeps each answer until its connection is made.

    So a request waits for a name server before it gets its turn, and connects to the address that was judged: this
    stands before the resolver of the reactor, and gives the answers that are kept. Without a Twisted reactor the
    answers are judged, and not kept.
    """

    def __init__(self, resolver: Any) -> None:
        self._inner = resolver
        self._answers: dict[str, tuple[list[Any], int]] = {}

    @classmethod
    def of_reactor(cls) -> Names:
        """Return those of the reactor, putting them there if they are the first to be asked for."""
        if not is_reactor_installed():
            return cls(None)
        from twisted.internet import reactor

        there: Any = reactor
        if not isinstance(there.nameResolver, cls):
            there.installNameResolver(cls(there.nameResolver))
        names: Names = there.nameResolver
        return names

    async def hold(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, which it keeps until `let_go`; none if it has none."""
        if self._inner is None:
            return await _system_addresses(host, port)
        found = self._answers[host][0] if host in self._answers else await self._ask(host)
        if found:
            kept, n = self._answers.get(host, (found, 0))
            self._answers[host] = kept, n + 1
        return [address.host for address in found]

    def let_go(self, host: str) -> None:
        """Whoever held a host's addresses needs them no more."""
        if self._inner is not None:
            addresses, n = self._answers.pop(host)
            if n > 1:
                self._answers[host] = addresses, n - 1

    async def _ask(self, host: str) -> list[Any]:
        found: list[Any] = []
        done: Deferred[list[Any]] = Deferred()
        receiver = SimpleNamespace(
            resolutionBegan=lambda resolution: None,
            addressResolved=found.append,
            resolutionComplete=lambda: done.callback(found),
        )
        self._inner.resolveHostName(receiver, host, 0)
        return await maybe_deferred_to_future(done)

    def resolveHostName(  # noqa: N802 (Twisted's name)
        self,
        resolutionReceiver: Any,  # noqa: N803
        hostName: str,  # noqa: N803
        portNumber: int = 0,  # noqa: N803
        addressTypes: Sequence[type[Any]] | None = None,  # noqa: N803
        transportSemantics: str = "TCP",  # noqa: N803
    ) -> Any:
        """Answer from what is kept, or ask the resolver behind."""
        kept = self._answers.get(hostName)
        if kept is None:
            return self._inner.resolveHostName(
                resolutionReceiver, hostName, portNumber, addressTypes, transportSemantics
            )
        resolution = SimpleNamespace(name=hostName, cancel=lambda: None)
        resolutionReceiver.resolutionBegan(resolution)
        for address in kept[0]:
            if addressTypes is None or isinstance(address, tuple(addressTypes)):
                resolutionReceiver.addressResolved(_with_port(address, portNumber))
        resolutionReceiver.resolutionComplete()
        return resolution


def _with_port(address: Any, port: int) -> Any:
    if isinstance(address, IPv6Address):
        return IPv6Address(address.type, address.host, port, address.flowInfo, address.scopeID)
    return IPv4Address(address.type, address.host, port)


async def _system_addresses(host: str, port: int) -> list[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(address[4][0]) for address in found]
