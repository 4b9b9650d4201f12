"""Subscribing: once a day, the hub of each feed is asked for notices (WebSub, section 5)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scrapy import FormRequest
from scrapy.utils.defer import deferred_from_coro

from crawlsched.receiver.pings import subscription_form
from crawlsched.scrapy_versions import download
from crawlsched.slot_clock import DAY

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from crawlsched.crawl.refresher import Refresher
    from crawlsched.store import Source

__all__ = ["HubSubscriber"]

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class HubSubscriber:
    """Asks the hub that a feed names to send notices of this feed."""

    crawler: Crawler
    refresher: Refresher
    at_once: int = 10

    def look(self) -> None:
        """Ask the hubs of some of the feeds that are due."""
        now, sources = self.refresher.clock(), self.refresher.collection.sources
        due = [one for one in sources if (hub := one.quality.get("hub")) and now >= hub.get("asked_at", 0.0) + DAY]
        for source in due[: self.at_once]:
            # Whether this succeeds or fails, the hub is asked again tomorrow, which renews the subscription.
            hub = {**source.quality["hub"], "asked_at": now}
            asked = sources.describe(source.source, quality={**source.quality, "hub": hub})
            self.refresher.collection.unsaved.source(asked, now)
            self.refresher.count("crawlsched/websub/asked")
            deferred_from_coro(self._ask(asked, hub["url"], hub["topic"]))

    async def _ask(self, source: Source, hub: str, topic: str) -> None:
        """Post the form; the hub answers later, with a request for verification."""
        receiver = self.refresher.settings.receiver
        assert receiver is not None
        assert receiver.url is not None
        form = subscription_form(receiver.url, source.source, topic, receiver.key)
        meta = {"dont_obey_robotstxt": True, "crawlsched_named_by_site": True}
        request = FormRequest(hub, formdata=form, meta=meta, dont_filter=True)
        try:
            response = await download(self.crawler.engine, request)
            answer = "" if response.status < 300 else f"it answered {response.status}"
        except Exception as error:  # a downloader may raise anything
            answer = str(error) or type(error).__name__
        if answer and self.refresher.is_open:
            logger.warning("The hub %s was asked for notices of %s in vain: %s", hub, source.url, answer)
            self.refresher.count("crawlsched/websub/refused")
