"""The addresses of the receiver of pings, of the web page about the crawl, and of the webhook."""

import json
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from crawlsched.settings.values import read_truth

__all__ = [
    "ReceiverAddress",
    "WebAddress",
    "is_loopback",
    "read_address",
    "read_receiver",
    "read_web",
    "read_webhook",
]

_ADDRESS_ALLOWED = "a port such as 8025 (of 127.0.0.1), or host:port such as 0.0.0.0:8025; port 0 is any free one"
_KEY_ALLOWED = "8 to 128 letters, digits and dashes"


class ReceiverAddress(NamedTuple):
    """The address at which pings are received, the key that pings must have, and the address's public URL."""

    host: str
    port: int
    key: str
    url: str | None = None


class WebAddress(NamedTuple):
    """The address of the web page, and the token that visitors need: a text, True (a new token) or False (no token)."""

    host: str
    port: int
    token: str | bool = True

    def written(self) -> str:
        """Return the value in the form of the setting."""
        address = f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
        return json.dumps({"address": address, "token": self.token})


def read_receiver(value: object) -> ReceiverAddress:
    """Read the address of the receiver of pings from a dictionary, also as JSON."""
    allowed = "a dictionary such as {'address': 8025, 'key': '4f8c1d20'}, perhaps with 'url': 'https://...'"
    given = _dictionary(value, {"address", "key", "url"})
    if given is None or not {"address", "key"} <= given.keys():
        raise ValueError(allowed)
    public = given.get("url")
    url = None if public is None else _url(public, "an http or https URL such as https://crawler.example.com/", False)
    return ReceiverAddress(*read_address(given["address"]), _key(given["key"]), url)


def read_web(value: object) -> WebAddress:
    """Read the address of the web page, or a dictionary with the address and the token."""
    given = _dictionary(value, {"address", "token"})
    if given is None:
        return WebAddress(*read_address(value))
    token = given.get("token", True)
    if not isinstance(token, str) or re.fullmatch(r"[A-Za-z0-9-]{16,128}", token) is None:
        try:
            token = read_truth(token)
        except ValueError:
            allowed = "True, False, or 16 to 128 letters, digits and dashes"
            raise ValueError(f"an address, with a token that is {allowed}") from None
    return WebAddress(*read_address(given.get("address")), token)


def read_webhook(value: object) -> tuple[str, str | None]:
    """Read the URL to which changes are posted, or a dictionary with the URL and the key for the signatures."""
    given = _dictionary(value, {"url", "key"})
    allowed = "an http or https URL such as https://hooks.example.com/changes?token=1234"
    if given is None:
        return _url(value, allowed, True), None
    return _url(given.get("url"), allowed, True), _key(given["key"]) if given.get("key") is not None else None


def read_address(value: object) -> tuple[str, int]:
    """Read an address to listen at: host:port, or only a port (then only this machine can connect)."""
    match = re.fullmatch(r"(?:(?:\[([0-9A-Fa-f:]+)\]|([^:\s]+)):)?([0-9]{1,5})", str(value).strip())
    if match is None or isinstance(value, bool) or int(match[3]) > 65_535:
        raise ValueError(_ADDRESS_ALLOWED)
    return match[1] or match[2] or "127.0.0.1", int(match[3])


def is_loopback(host: str) -> bool:
    """Whether an address is a loopback address, which no other machine can reach.

    >>> is_loopback("127.0.0.2"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _dictionary(value: object, names: set[str]) -> Mapping[str, Any] | None:
    """Return a dictionary, also from JSON; None for other values. Keys that are not in `names` are an error."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            return None
    if not isinstance(value, Mapping):
        return None
    if unknown := sorted(map(str, set(value) - names)):
        raise ValueError(f"a dictionary with {', '.join(sorted(names))}, not {unknown[0]}")
    return value


def _key(value: object) -> str:
    # IndexNow requires this form of a key.
    if not isinstance(value, str) or re.fullmatch(r"[A-Za-z0-9-]{8,128}", value) is None:
        raise ValueError(f"one with a key of {_KEY_ALLOWED}")
    return value


def _url(value: object, allowed: str, may_have_query: bool) -> str:
    try:
        parts = urlsplit(value.strip() if isinstance(value, str) else "")
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is impossible
        raise ValueError(allowed) from None
    if not is_url or re.search(r"\s", parts.geturl()) or (not may_have_query and (parts.query or parts.fragment)):
        raise ValueError(allowed if may_have_query else f"{allowed}, without a query")
    return parts.geturl()
