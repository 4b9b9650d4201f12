"""Pings: announcements that others send, in the formats of IndexNow and WebSub. This module only reads them."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from crawlsched.change_signals.collected import Limits
from crawlsched.change_signals.locations import ascii_host, is_web_url

__all__ = [
    "MOST_URLS",
    "WRONG_SIGNATURE",
    "PingRefused",
    "begun_signature",
    "callback_token",
    "is_equal",
    "read_indexnow",
    "subscription_form",
]

#: The most URLs of one ping; the limit is IndexNow's.
MOST_URLS = 10_000
_LIMITS = Limits()
WRONG_SIGNATURE = "The signature is wrong."
_METHODS = ("sha1", "sha256", "sha384", "sha512")
_PORT = re.compile(r":\d{1,5}\Z")


class PingRefused(ValueError):
    """The error for a ping that is refused, with an HTTP status for the sender and a sentence with the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def read_indexnow(query: Mapping[str, str], body: bytes | None, key: str) -> tuple[str, tuple[str, ...]]:
    """Return the host and the URLs of an IndexNow ping, from the query of a GET or the JSON of a POST (indexnow.org).

    `PingRefused` has status 400 (not understood), 403 (wrong key) or 422 (URLs of another host).

    Examples
    --------
    >>> read_indexnow({"url": "https://example.com/a", "key": "0123456789"}, None, "0123456789")
    ('example.com', ('https://example.com/a',))
    >>> read_indexnow({"url": "https://example.com/a", "key": "guess"}, None, "0123456789")
    Traceback (most recent call last):
    crawlsched.receiver.pings.PingRefused: The key is wrong.
    """
    if body is None:
        _check_key(query.get("key"), key)
        url = query.get("url", "")
        return _host(_checked(url)), (url,)
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise PingRefused(400, "The body is no JSON.") from None
    if not isinstance(given, dict):
        raise PingRefused(400, "The body is no JSON object.")
    _check_key(given.get("key"), key)
    urls, host = given.get("urlList"), given.get("host")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) for url in urls):
        raise PingRefused(400, "urlList must be a list of URLs.")
    if len(urls) > MOST_URLS:
        raise PingRefused(400, f"urlList has more than {MOST_URLS} URLs.")
    if not isinstance(host, str) or not host:
        raise PingRefused(400, "host must be the host of the URLs.")
    host = ascii_host(_PORT.sub("", host.strip())).removesuffix(".")
    # A URL that occurs several times counts once.
    distinct = tuple(dict.fromkeys(_checked(url) for url in urls))
    if any(_host(url) != host for url in distinct):
        raise PingRefused(422, "A URL is of another host.")
    return host, distinct


def _check_key(given: object, key: str) -> None:
    if not isinstance(given, str) or not is_equal(given, key):
        raise PingRefused(403, "The key is wrong.")


def is_equal(given: str, wanted: str) -> bool:
    r"""Compare a secret with a given text, in a time that does not depend on their content.

    >>> is_equal("0123", "0123"), is_equal("\ud800", "0123")
    (True, False)
    """
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def _checked(url: str) -> str:
    if len(url) > _LIMITS.max_text or not is_web_url(url) or any(character <= " " for character in url):
        raise PingRefused(400, "A URL is no http or https URL.")
    return url


def _host(url: str) -> str:
    return ascii_host(urlsplit(url).hostname or "").removesuffix(".")


def callback_token(topic: str, key: str) -> str:
    """Return the secret part of the address of a topic's WebSub callback."""
    return _keyed(f"callback {topic}", key)[:32]


def topic_secret(topic: str, key: str) -> str:
    """Return the secret with which a hub has to sign its notifications of a topic."""
    return _keyed(f"secret {topic}", key)


def _keyed(text: str, key: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def begun_signature(header: str | None, topic: str, key: str) -> tuple[str, hmac.HMAC]:
    """Return the digits of a notification's signature, and a hash to compute the right digits (WebSub, section 8).

    >>> form = subscription_form("https://me/", 7, "https://example.com/feed", "0123456789")
    >>> digits = hmac.new(form["hub.secret"].encode(), b"<feed/>", "sha256").hexdigest()
    >>> given, right = begun_signature(f"sha256={digits}", "https://example.com/feed", "0123456789")
    >>> right.update(b"<feed/>")
    >>> is_equal(given, right.hexdigest())
    True
    """
    method, _, digits = (header or "").strip().lower().partition("=")
    if method not in _METHODS:
        raise PingRefused(403, WRONG_SIGNATURE)
    return digits, hmac.new(topic_secret(topic, key).encode(), b"", method)


def subscription_form(address: str, source: int, topic: str, key: str) -> dict[str, str]:
    """Return the form that a subscriber posts to a topic's hub.

    `address` is the URL by which the hub reaches the receiver. `source` is the number of the sitemap or feed. `topic`
    is the feed's own name (``rel="self"``), or its URL if it states no name.

    >>> form = subscription_form("https://me/", 7, "https://example.com/feed", "0123456789")
    >>> form["hub.callback"], form["hub.mode"]
    ('https://me/websub/7/...', 'subscribe')
    """
    return {
        "hub.callback": f"{address.rstrip('/')}/websub/{source}/{callback_token(topic, key)}",
        "hub.mode": "subscribe",
        "hub.topic": topic,
        "hub.secret": topic_secret(topic, key),
    }
