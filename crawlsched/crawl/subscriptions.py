"""Subscriptions: which feeds have a hub, and how far asking it for notices has come (WebSub)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from crawlsched.change_signals import Hubs, is_web_url
from crawlsched.crawl.private_addresses import is_private
from crawlsched.store import Source

__all__ = ["Subscription", "discovered", "is_reachable_hub", "kept", "subscription_of"]

_DAY = 86_400.0
# The lease of a hub that states none (seconds); the recommendation leaves it to the hub.
_USUAL_LEASE = 10 * _DAY
_SHORTEST_LEASE, _LONGEST_LEASE = 60.0, 365 * _DAY
# A lease is renewed when this share of it has passed.
_RENEWED_AT = 0.8
# A hub that has not confirmed in this time is asked again; one that refused, after a day.
_UNANSWERED = 3_600.0
_REFUSED = _DAY


@dataclass(frozen=True, slots=True)
class Subscription:
    """How far the subscription to one feed has come.

    Examples
    --------
    >>> subscription = Subscription("https://hub.example/", "https://a.example/feed")
    >>> subscription.is_due(0.0)
    True
    >>> confirmed = subscription.ask(0.0).confirm("https://a.example/feed", 1000.0, 5.0)
    >>> confirmed.is_due(800.0), confirmed.is_due(805.0)
    (False, True)
    """

    hub: str | None = None  # the hub that the feed names; None if it names none
    topic: str | None = None  # what the feed calls itself
    asked: str = ""  # what the hub was asked for and has not confirmed
    asked_at: float = 0.0  # when that was, POSIX seconds
    lease: float = 0.0  # seconds for which the hub sends notices, from `confirmed_at` on; 0: it does not
    confirmed_at: float = 0.0  # when the hub confirmed it last
    wait_until: float = 0.0  # when the hub is asked next at the earliest

    def is_due(self, now: float) -> bool:
        """Whether to ask the hub now to subscribe, for the first time or again."""
        return self.hub is not None and now >= max(self.wait_until, self.confirmed_at + _RENEWED_AT * self.lease)

    def ask(self, now: float) -> Subscription:
        """Note that the hub is asked."""
        return replace(self, asked="subscribe", asked_at=now, wait_until=now + _UNANSWERED)

    def confirm(self, topic: str, lease: float | None, now: float) -> Subscription:
        """The hub asked back, and got a yes."""
        lease = _USUAL_LEASE if lease is None else min(max(lease, _SHORTEST_LEASE), _LONGEST_LEASE)
        return replace(self, topic=topic, asked="", lease=lease, confirmed_at=now, wait_until=now)

    def refuse(self, now: float) -> Subscription:
        """The hub has refused."""
        return replace(self, asked="", lease=0.0, wait_until=now + _REFUSED)


def subscription_of(source: Source) -> Subscription:
    """Return how far the subscription to a source has come; it is kept with what is known of the source."""
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
