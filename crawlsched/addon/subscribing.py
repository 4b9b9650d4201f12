"""Subscribing: hubs that feeds name are asked for notices, and asked again before they end (WebSub, section 5)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from scrapy import Request
from scrapy.utils.defer import deferred_from_coro

from crawlsched.crawl.pings import note_subscription
from crawlsched.crawl.sources import POLLED_KINDS
from crawlsched.crawl.subscriptions import subscription_of
from crawlsched.receiver.pings import subscription_form
from crawlsched.scrapy_versions import download

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlsched.crawl.refresher import Refresher

__all__ = ["HubSubscriber"]

logger = logging.getLogger(__name__)

# Hubs asked in one round.
_MOST_ASKED = 10


class HubSubscriber:
    """Asks hubs for notices of the feeds that name them."""

    #: Seconds between two looks.
    INTERVAL = 5.0

    def __init__(self, crawler: Crawler, refresher: Refresher) -> None:
        self._crawler = crawler
        self._refresher = refresher

    def look(self) -> None:
        """Ask for what is due."""
        now = self._refresher.clock()
        named = [
            source for source in self._refresher.sources if source.kind in POLLED_KINDS and "websub" in source.quality
        ]
        for source in [source for source in named if subscription_of(source).is_due(now)][:_MOST_ASKED]:
            self._ask(source.source)

    def _ask(self, number: int) -> None:
        settings = self._refresher.settings
        source = self._refresher.sources[number]
        before = subscription_of(source)
        # Written before the hub is asked: it may verify the callback before it answers.
        note_subscription(self._refresher, number, before.ask(self._refresher.clock()))
        if settings.receiver is None or settings.receiver.url is None or before.hub is None:
            return
        form = subscription_form(settings.receiver.url, number, before.topic or source.url, settings.receiver.key)
        self._refresher.count("crawlsched/websub/asked")
        deferred_from_coro(self._send(number, before.hub, form))

    async def _send(self, number: int, hub: str, form: dict[str, str]) -> None:
        """Post the form; the hub shows its answer when it verifies."""
        feed = self._refresher.sources[number].url
        try:
            response = await self._post(hub, form)
            answer = "" if response.status < 300 else f"it answered {response.status}"
        except Exception as error:  # whatever a downloader raises
            answer = str(error) or type(error).__name__
        if answer and self._refresher.is_open:
            logger.warning("The hub %s was asked for notices of %s in vain: %s", hub, feed, answer)
            self._refresher.count("crawlsched/websub/refused")
            now = self._refresher.clock()
            note_subscription(self._refresher, number, subscription_of(self._refresher.sources[number]).refuse(now))

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
