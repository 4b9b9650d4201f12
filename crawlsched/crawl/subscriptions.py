"""Subscriptions: which feeds have a hub, and when that was asked for notices (WebSub)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from crawlsched.change_signals import Hubs
from crawlsched.store import Source

__all__ = ["Subscription", "discovered", "kept", "subscription_of"]

# A hub is asked once in this time (seconds), which renews what it has granted.
_EACH = 86_400.0


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a feed says of its notices, and when its hub was asked for them."""

    hub: str | None = None  # the hub that the feed names; None if it names none
    topic: str | None = None  # what the feed calls itself
    asked_at: float = 0.0  # POSIX seconds

    def is_due(self, now: float) -> bool:
        """Whether the hub is to be asked now."""
        return self.hub is not None and now >= self.asked_at + _EACH


def subscription_of(source: Source) -> Subscription:
    """Return the subscription to a source; it is kept with what is known of the source."""
    return Subscription(**source.quality.get("websub", {}))


def kept(quality: dict[str, Any], subscription: Subscription) -> dict[str, Any]:
    """Return the stored facts of a source, with its subscription."""
    return {**quality, "websub": asdict(subscription)}


def discovered(quality: dict[str, Any], hubs: Hubs, url: str) -> dict[str, Any]:
    """Return the stored facts of a source after it was read, with its hub, if it names one.

    >>> discovered({}, Hubs(["https://hub.example/"], None), "https://a.example/feed")["websub"]["hub"]
    'https://hub.example/'
    """
    before = Subscription(**quality.get("websub", {}))
    hub = next(iter(hubs.url), None)
    topic = hubs.topic or url
    if (before.hub, before.topic) == (hub, topic) or (hub is None and before.hub is None):
        return quality
    # Another hub or another name is another subscription; the old one ends by itself.
    return kept(quality, Subscription(hub, topic))
