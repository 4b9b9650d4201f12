"""Names: a host's addresses, asked for before its request waits for a turn, and the same when it is connected to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Any

from scrapy.utils.defer import maybe_deferred_to_future
from scrapy.utils.reactor import is_reactor_installed
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IHostnameResolver, IHostResolution, IResolutionReceiver
from zope.interface import implementer  # type: ignore[import-untyped]

__all__ = ["Names"]


class Names:
    """Asks for addresses, and keeps each answer until its connection is made.

    So a request waits for a name server before it gets its turn, and connects to the address that was judged. Without a
    Twisted reactor the answers are judged, and not kept.
    """

    def __init__(self) -> None:
        self._reactor: Any = None
        if is_reactor_installed():
            from twisted.internet import reactor

            self._reactor = reactor
            self._kept = _KeptAnswers.of(reactor)

    async def hold(self, host: str, port: int) -> list[str]:
        """Return the addresses of a host, which it keeps until `let_go`; none if it has none."""
        if self._reactor is None:
            return await _system_addresses(host, port)
        addresses = self._kept.held(host) or await self._kept.ask(host)
        if addresses:
            self._kept.keep(host, addresses)
        return [address.host for address in addresses]

    def let_go(self, host: str) -> None:
        """Whoever held a host's addresses needs them no more."""
        if self._reactor is not None:
            self._kept.let_go(host)


@implementer(IHostnameResolver)
class _KeptAnswers:
    """Stands before the resolver of the reactor, and gives the answers that are kept."""

    def __init__(self, resolver: Any) -> None:
        self.inner = resolver
        self._answers: dict[str, tuple[list[Any], int]] = {}

    @classmethod
    def of(cls, reactor: Any) -> _KeptAnswers:
        """Return the one of this reactor, putting it there if it is the first to be asked for."""
        resolver = reactor.nameResolver
        if isinstance(resolver, cls):
            return resolver
        kept = cls(resolver)
        reactor.installNameResolver(kept)
        return kept

    def held(self, host: str) -> list[Any] | None:
        """Return the addresses that somebody keeps of a host."""
        kept = self._answers.get(host)
        return None if kept is None else kept[0]

    async def ask(self, host: str) -> list[Any]:
        """Ask for the addresses of a host; none if it is not known."""
        receiver = _Receiver()
        self.inner.resolveHostName(receiver, host, 0)
        return await maybe_deferred_to_future(receiver.done)

    def keep(self, host: str, addresses: list[Any]) -> None:
        """Give these addresses, or those that are kept already, to whoever asks."""
        kept, n = self._answers.get(host, (addresses, 0))
        self._answers[host] = kept, n + 1

    def let_go(self, host: str) -> None:
        """One user less."""
        addresses, n = self._answers[host]
        if n > 1:
            self._answers[host] = addresses, n - 1
        else:
            del self._answers[host]

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
            return self.inner.resolveHostName(
                resolutionReceiver, hostName, portNumber, addressTypes, transportSemantics
            )
        resolution = _Resolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        for address in kept[0]:
            if addressTypes is None or isinstance(address, tuple(addressTypes)):
                resolutionReceiver.addressResolved(_with_port(address, portNumber))
        resolutionReceiver.resolutionComplete()
        return resolution


@implementer(IHostResolution)
class _Resolution:
    def __init__(self, name: str) -> None:
        self.name = name

    def cancel(self) -> None:
        """Nothing is under way."""


@implementer(IResolutionReceiver)
class _Receiver:
    """Collects the addresses that a resolver finds."""

    def __init__(self) -> None:
        self.done: Deferred[list[Any]] = Deferred()
        self._addresses: list[Any] = []

    def resolutionBegan(self, resolution: Any) -> None:  # noqa: N802
        """Nothing is needed of it."""

    def addressResolved(self, address: Any) -> None:  # noqa: N802
        """One more."""
        self._addresses.append(address)

    def resolutionComplete(self) -> None:  # noqa: N802
        """That were all."""
        self.done.callback(self._addresses)


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
