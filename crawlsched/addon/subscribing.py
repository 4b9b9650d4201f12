"""Subscribing: hubs that feeds name are asked for notices, each day again (WebSub, section 5)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from scrapy import Request
from scrapy.utils.defer import deferred_from_coro

from crawlsched.crawl.sources import POLLED_KINDS
from crawlsched.crawl.subscriptions import EACH, kept, subscription_of
from crawlsched.receiver.pings import subscription_form
from crawlsched.scrapy_versions import download
from crawlsched.store import host_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from crawlsched.crawl.refresher import Refresher

__all__ = ["HubSubscriber"]

logger = logging.getLogger(__name__)

# Sources looked at between two looks at the clock, and hubs asked in one round.
_AT_ONCE = 500
_MOST_ASKED = 10


class HubSubscriber:
    """Asks hubs for notices of the feeds that name them."""

    #: Seconds between two looks.
    INTERVAL = 5.0

    def __init__(self, crawler: Crawler, refresher: Refresher) -> None:
        self._crawler = crawler
        self._refresher = refresher
        self._is_looking = False

    def look(self) -> None:
        """Ask for what is due, in moments that the slots leave."""
        if not self._is_looking:
            self._is_looking = True
            self._refresher.long_work.add(self._asked())

    def _asked(self) -> Iterator[None]:
        n_asked = 0
        for position, source in enumerate(list(self._refresher.sources)):
            if position % _AT_ONCE == _AT_ONCE - 1:
                yield
            if source.kind not in POLLED_KINDS or "websub" not in source.quality:
                continue
            asked = subscription_of(source)
            if n_asked < _MOST_ASKED and asked.hub is not None and asked.asked_at + EACH <= self._refresher.clock():
                n_asked += 1
                self._ask(source.source, asked.hub)
        self._is_looking = False
        yield

    def _ask(self, number: int, hub: str) -> None:
        receiver, source = self._refresher.settings.receiver, self._refresher.sources[number]
        if receiver is None or receiver.url is None:
            return
        # Before the hub is asked: whatever comes of it, it is asked again tomorrow.
        before, now = subscription_of(source), self._refresher.clock()
        asked = self._refresher.sources.describe(number, quality=kept(source.quality, replace(before, asked_at=now)))
        self._refresher.collection.unsaved.source(asked, now)
        self._refresher.count("crawlsched/websub/asked")
        form = subscription_form(receiver.url, number, before.topic or source.url, receiver.key)
        deferred_from_coro(self._send(source.url, hub, form))

    async def _send(self, feed: str, hub: str, form: dict[str, str]) -> None:
        """Post the form; what the hub thinks of it shows when it makes sure."""
        try:
            response = await self._post(hub, feed, form)
            answer = "" if response.status < 300 else f"it answered {response.status}"
        except Exception as error:  # whatever a downloader raises
            answer = str(error) or type(error).__name__
        if answer and self._refresher.is_open:
            logger.warning("The hub %s was asked for notices of %s in vain: %s", hub, feed, answer)
            self._refresher.count("crawlsched/websub/refused")

    async def _post(self, hub: str, feed: str, form: dict[str, str]) -> Response:
        request = Request(
            hub,
            method="POST",
            body=urlencode(form),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            # A feed's own machine is the project's business; any other is judged by where its name leads.
            meta={"dont_obey_robotstxt": True, "crawlsched_named_by_site": host_of(hub) != host_of(feed)},
            dont_filter=True,
        )
        return await download(self._crawler.engine, request)
