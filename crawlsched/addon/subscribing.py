"""Subscribing: asks the hubs that feeds name for notices, once a day (WebSub, section 5)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from scrapy import Request
from scrapy.utils.defer import deferred_from_coro

from crawlsched.crawl.sources import POLLED_KINDS
from crawlsched.crawl.subscriptions import Subscription
from crawlsched.receiver.pings import subscription_form
from crawlsched.scrapy_versions import download

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlsched.crawl.refresher import Refresher
    from crawlsched.store import Source

__all__ = ["HubSubscriber"]

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class HubSubscriber:
    """Asks hubs for notices of the feeds that name them."""

    crawler: Crawler
    refresher: Refresher
    at_once: int = 10

    def look(self) -> None:
        """Ask the hubs of some of the feeds that are due."""
        now, sources = self.refresher.clock(), self.refresher.collection.sources
        polled = [source for source in sources if source.kind in POLLED_KINDS]
        for source in [one for one in polled if Subscription.of(one.quality).is_due(now)][: self.at_once]:
            # Whether this succeeds or fails, the hub is asked again tomorrow.
            subscription = Subscription.of(source.quality)._replace(asked_at=now)
            asked = sources.describe(source.source, quality=subscription.kept(source.quality))
            self.refresher.collection.unsaved.source(asked, now)
            self.refresher.count("crawlsched/websub/asked")
            deferred_from_coro(self._ask(source, subscription))

    async def _ask(self, source: Source, subscription: Subscription) -> None:
        """Post the form; the hub answers later, with a request for verification."""
        receiver = self.refresher.settings.receiver
        assert receiver is not None
        assert receiver.url is not None
        assert subscription.hub is not None
        form = subscription_form(receiver.url, source.source, subscription.topic or source.url, receiver.key)
        request = Request(
            subscription.hub,
            method="POST",
            body=urlencode(form),
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            meta={"dont_obey_robotstxt": True, "crawlsched_named_by_site": True},
            dont_filter=True,
        )
        try:
            response = await download(self.crawler.engine, request)
            answer = "" if response.status < 300 else f"it answered {response.status}"
        except Exception as error:  # a downloader may raise anything
            answer = str(error) or type(error).__name__
        if answer and self.refresher.is_open:
            logger.warning("The hub %s was asked for notices of %s in vain: %s", subscription.hub, source.url, answer)
            self.refresher.count("crawlsched/websub/refused")
