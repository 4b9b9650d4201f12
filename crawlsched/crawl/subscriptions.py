"""Subscriptions: which feeds have a hub, and when it was asked for notices (WebSub)."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

from crawlsched.change_signals import Hubs, is_web_url
from crawlsched.slot_clock import DAY

__all__ = ["Subscription"]


class Subscription(NamedTuple):
    """The hub and the name that a feed states, and when the hub was asked for notices; kept with a source's facts.

    Examples
    --------
    >>> subscription = Subscription("https://hub.example/", "https://a.example/feed", asked_at=1000.0)
    >>> subscription.is_due(2000.0), subscription.is_due(1000.0 + DAY)
    (False, True)
    >>> Subscription.of(subscription.kept({"announced": 5})) == subscription
    True
    """

    hub: str | None = None  # the hub that the feed names; None if it names none
    topic: str | None = None  # what the feed calls itself
    asked_at: float = 0.0  # when the hub was asked last, POSIX seconds

    @classmethod
    def of(cls, quality: dict[str, Any]) -> Self:
        """Return the subscription among the stored facts of a source."""
        return cls(**quality.get("hub", {}))

    def kept(self, quality: dict[str, Any]) -> dict[str, Any]:
        """Return the facts of a source with the subscription among them."""
        return {**quality, "hub": self._asdict()}

    def is_due(self, now: float) -> bool:
        """Whether to ask the hub now: once a day, which renews the subscription."""
        return self.hub is not None and now >= self.asked_at + DAY

    def after(self, hubs: Hubs, url: str) -> Self:
        """Return the subscription after its feed was read; if the hub or the name differs, a new subscription begins.

        A private address of a hub is noticed only when the hub is asked.

        >>> Subscription().after(Hubs(["ftp://hub.example/", "https://hub.example/"], None), "https://a.example/feed")
        Subscription(hub='https://hub.example/', topic='https://a.example/feed', asked_at=0.0)
        """
        hub = next(filter(is_web_url, hubs.url), None)
        topic = hubs.topic or url
        is_same = (self.hub, self.topic) == (hub, topic) or (hub is None and self.hub is None)
        return self if is_same else type(self)(hub, topic)
