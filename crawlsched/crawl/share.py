"""Share: what a crawl asks of what stands between it and the other processes that crawl the same collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from crawlsched.crawl.handing_over import Handover
from crawlsched.crawl.page_requests import AdmissionResult, PageRequest

__all__ = ["Share"]


class Share(Protocol):
    """The share of one process in a collection: `SharedCrawl` as `Refresher` knows it, which it knows in turn."""

    handing_over: Handover

    def open(self) -> None:
        """Join those who share the collection."""

    def ends(self) -> None:
        """Claim nothing any more."""

    def close(self, now: float) -> None:
        """Leave the others."""

    def look(self, now: float) -> None:
        """Look what the others do."""

    def heartbeat(self) -> None:
        """Say how the shards fare."""

    @property
    def rate(self) -> float:
        """What was granted, requests per second."""

    @property
    def rests(self) -> bool:
        """Whether nothing may go out."""

    @property
    def is_full(self) -> bool:
        """Whether those to whom things were handed over have to catch up."""

    @property
    def pass_is_over(self) -> bool:
        """Whether the pass of all processes is over."""

    @property
    def pass_since(self) -> float | None:
        """When the pass of all processes began."""

    def may_send(self, shard: int | None) -> bool:
        """Whether a request may be written now."""

    def set_bandwidth(self, bandwidth: float) -> None:
        """Let all processes crawl at another rate."""

    def hand_over(self, asked: PageRequest, now: float) -> AdmissionResult:
        """The spider asks for a page of a shard that is not here."""

    def signal(self, urls: Sequence[str], source: str, now: float) -> int:
        """Announce that pages may have changed; return how many of this process's were taken."""
