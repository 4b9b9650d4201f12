"""Subscriptions: which feeds have a hub, and when it was asked for notices (WebSub)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from crawlsched.change_signals import Hubs, is_web_url
from crawlsched.crawl.private_addresses import is_private
from crawlsched.slot_clock import DAY
from crawlsched.store import Source

__all__ = ["Subscription", "discovered", "is_reachable_hub", "kept", "subscription_of"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a feed says of its notices, and when its hub was asked for them.

    Examples
    --------
    >>> subscription = Subscription("https://hub.example/", "https://a.example/feed", asked_at=1000.0)
    >>> subscription.is_due(2000.0), subscription.is_due(1000.0 + DAY)
    (False, True)
    """

    hub: str | None = None  # the hub that the feed names; None if it names none
    topic: str | None = None  # what the feed calls itself
    asked_at: float = 0.0  # when the hub was asked last, POSIX seconds

    def is_due(self, now: float) -> bool:
        """Whether to ask the hub now: once a day, which renews what it has granted."""
        return self.hub is not None and now >= self.asked_at + DAY


def subscription_of(source: Source) -> Subscription:
    """Return the subscription to a source; it is kept with what is known of the source."""
    return Subscription(**source.quality.get("hub", {}))


def kept(quality: dict[str, Any], subscription: Subscription) -> dict[str, Any]:
    """Return the stored facts of a source, with its subscription."""
    return {**quality, "hub": asdict(subscription)}


def discovered(quality: dict[str, Any], hubs: Hubs, url: str) -> dict[str, Any]:
    """Return the stored facts of a source after it was read, with its hub, if it names one.

    >>> hubs = Hubs(["http://127.0.0.1/hub", "https://hub.example/"], None)
    >>> discovered({}, hubs, "https://a.example/feed")["hub"]["hub"]
    'https://hub.example/'
    """
    before = Subscription(**quality.get("hub", {}))
    hub = next((hub for hub in hubs.url if is_reachable_hub(hub, url)), None)
    topic = hubs.topic or url
    if (before.hub, before.topic) == (hub, topic) or (hub is None and before.hub is None):
        return quality
    # Another hub or another name is another subscription; the old one ends with its lease.
    return kept(quality, Subscription(hub, topic))


def is_reachable_hub(hub: str, feed: str) -> bool:
    """Return whether a hub may be asked: a feed's author cannot send the crawl into its own network.

    A hub on a private machine is accepted only for a feed on one, too.
    """
    return is_web_url(hub) and (not _is_private(hub) or _is_private(feed))


def _is_private(url: str) -> bool:
    host = (urlsplit(url).hostname or "").rstrip(".")
    return is_private(host) or host.endswith((".local", ".internal")) or not set(".:") & set(host)
