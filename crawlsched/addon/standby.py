"""A standby: a crawl that waits until another process leaves the collection to it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from scrapy.crawler import Crawler
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from crawlsched.exceptions import CollectionInUse, CrawlschedError, StoreError
from crawlsched.scrapy_versions import call_later

__all__ = ["Standby", "wait"]

logger = logging.getLogger(__name__)

# It looks this often whether the collection is free, and whether it is to end, seconds.
_LOOKS, _STEP = 2.0, 0.25


class Standby:
    """Knows what a crawl waits for before it begins; None: nothing."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self.waits_for: str | None = None

    def may_wait(self, error: CrawlschedError) -> bool:
        """Say whether what keeps a standby out passes: a process that ends, and then also a database that is away."""
        if isinstance(error, CollectionInUse):
            waits_for = error.owner and f"another process crawls this collection: {error.owner}."
        else:
            waits_for = str(error) if self.waits_for and type(error) is StoreError else None
        if waits_for and waits_for != self.waits_for:
            logger.info("This crawl stands by and waits: %s", waits_for)
        self.waits_for = waits_for
        return waits_for is not None

    async def until(self, opens: Callable[[], bool]) -> None:
        """Wait until the collection is free; whoever ends the crawl meanwhile ends it at once."""
        looked_at = monotonic()
        # Scrapy has no engine to stop yet, and only notes that the crawl is to end.
        while self._crawler.crawling:
            await wait(_STEP)
            if monotonic() - looked_at >= _LOOKS:
                if opens():
                    break
                looked_at = monotonic()


async def wait(seconds: float) -> None:
    """Let others go on for so long; with 0, whatever waits for the event loop goes before this goes on."""
    gone: Deferred[None] = Deferred()
    call_later(seconds, gone.callback, None)
    await maybe_deferred_to_future(gone)
