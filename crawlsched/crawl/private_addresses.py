"""Private addresses, to which a site must not lead any request."""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

__all__ = ["is_private"]

# An IPv4 address within IPv6: NAT64 has it in its last four bytes.
_NAT64 = ip_network("64:ff9b::/96")


def is_private(address: str, allowed: Iterable[IPv4Network | IPv6Network] = ()) -> bool:
    """Whether an address (version 4 or 6, with or without brackets) is not of the public internet.

    Such addresses are loopback, private and link-local ones. Addresses in the ranges of `allowed` count as public.

    Examples
    --------
    >>> [is_private(address) for address in ("127.0.0.1", "169.254.169.254", "::ffff:10.0.0.1", "fe80::1")]
    [True, True, True, True]
    >>> is_private("10.1.2.3", [ip_network("10.1.0.0/16")])
    False
    >>> [is_private(address) for address in ("93.184.215.14", "2606:4700::1111", "a.org")]
    [False, False, False]
    """
    if address == "localhost" or address.endswith(".localhost"):
        return is_private("127.0.0.1", allowed)
    try:
        found = ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return False
    inner = IPv4Address(int(found) & 0xFFFFFFFF) if found in _NAT64 else found
    if isinstance(inner, IPv6Address):
        inner = inner.ipv4_mapped or inner.sixtofour or inner
    return not inner.is_global and not any(
        one.version == network.version and one in network for network in allowed for one in (found, inner)
    )
