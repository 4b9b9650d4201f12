"""Subscribing: hubs that feeds name are asked for notices, once a day (WebSub, section 5)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from scrapy import Request
from scrapy.utils.defer import deferred_from_coro

from crawlsched.crawl.sources import POLLED_KINDS
from crawlsched.crawl.subscriptions import kept, subscription_of
from crawlsched.receiver.pings import subscription_form
from crawlsched.scrapy_versions import download

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlsched.crawl.refresher import Refresher
    from crawlsched.crawl.subscriptions import Subscription
    from crawlsched.store import Source

__all__ = ["HubSubscriber"]

logger = logging.getLogger(__name__)


class HubSubscriber:
    """Asks hubs for notices of the feeds that name them."""

    def __init__(self, crawler: Crawler, refresher: Refresher, at_once: int = 10) -> None:
        self._crawler = crawler
        self._refresher = refresher
        self._at_once = at_once

    def look(self) -> None:
        """Ask the hubs of feeds that are due, of some feeds at once."""
        now = self._refresher.clock()
        named = [
            (subscription_of(source), source)
            for source in self._refresher.sources
            if source.kind in POLLED_KINDS and "hub" in source.quality
        ]
        for subscription, source in [each for each in named if each[0].is_due(now)][: self._at_once]:
            self._ask(subscription, source, now)

    def _ask(self, subscription: Subscription, source: Source, now: float) -> None:
        receiver = self._refresher.settings.receiver
        if receiver is None or receiver.url is None or subscription.hub is None:
            return
        # Whatever comes of it, the hub is asked again tomorrow.
        quality = kept(source.quality, replace(subscription, asked_at=now))
        asked = self._refresher.sources.describe(source.source, quality=quality)
        self._refresher.collection.unsaved.source(asked, now)
        self._refresher.count("crawlsched/websub/asked")
        form = subscription_form(receiver.url, source.source, subscription.topic or source.url, receiver.key)
        deferred_from_coro(self._send(source.url, subscription.hub, form))

    async def _send(self, feed: str, hub: str, form: dict[str, str]) -> None:
        """Post the form; the hub shows its answer when it verifies."""
        try:
            response = await self._post(hub, form)
            answer = "" if response.status < 300 else f"it answered {response.status}"
        except Exception as error:  # whatever a downloader raises
            answer = str(error) or type(error).__name__
        if answer and self._refresher.is_open:
            logger.warning("The hub %s was asked for notices of %s in vain: %s", hub, feed, answer)
            self._refresher.count("crawlsched/websub/refused")

    async def _post(self, hub: str, form: dict[str, str]) -> Response:
        request = Request(
            hub,
            method="POST",
            body=urlencode(form),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            meta={"dont_obey_robotstxt": True, "crawlsched_named_by_site": True},
            dont_filter=True,
        )
        return await download(self._crawler.engine, request)
