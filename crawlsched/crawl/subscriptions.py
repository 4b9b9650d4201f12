"""Subscriptions: which feeds have a hub, and when that was asked for notices (WebSub)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from crawlsched.change_signals import Hubs, is_web_url
from crawlsched.crawl.private_addresses import is_private
from crawlsched.store import Source

__all__ = ["EACH", "Subscription", "discovered", "is_reachable_hub", "kept", "subscription_of"]

#: A hub is asked once in this time (seconds), which renews what it has granted.
EACH = 86_400.0


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a feed says of its notices, and when its hub was asked for them."""

    hub: str | None = None  # the hub that the feed names; None if it names none
    topic: str | None = None  # what the feed calls itself
    asked_at: float = 0.0  # POSIX seconds


def subscription_of(source: Source) -> Subscription:
    """Return the subscription to a source; it is kept with what is known of the source."""
    return Subscription(**source.quality.get("websub", {}))


def kept(quality: dict[str, Any], subscription: Subscription) -> dict[str, Any]:
    """Return the stored facts of a source, with its subscription."""
    return {**quality, "websub": asdict(subscription)}


def discovered(quality: dict[str, Any], hubs: Hubs, url: str) -> dict[str, Any]:
    """Return the stored facts of a source after it was read, with its hub, if it names one.

    >>> hubs = Hubs(["http://127.0.0.1/hub", "https://hub.example/"], None)
    >>> discovered({}, hubs, "https://a.example/feed")["websub"]["hub"]
    'https://hub.example/'
    """
    before = Subscription(**quality.get("websub", {}))
    hub = next((hub for hub in hubs.url if is_reachable_hub(hub, url)), None)
    topic = hubs.topic or url
    if (before.hub, before.topic) == (hub, topic) or (hub is None and before.hub is None):
        return quality
    # Another hub or another name is another subscription; the old one ends by itself.
    return kept(quality, Subscription(hub, topic))


def is_reachable_hub(hub: str, feed: str) -> bool:
    """Return whether a hub may be asked: the author of a feed cannot send the crawl into its own network.

    A hub on such a machine is believed of a feed that is on one, too, and of no other.
    """
    return is_web_url(hub) and (not _is_private(hub) or _is_private(feed))


def _is_private(url: str) -> bool:
    host = (urlsplit(url).hostname or "").rstrip(".")
    return is_private(host) or host.endswith((".local", ".internal")) or not set(".:") & set(host)
