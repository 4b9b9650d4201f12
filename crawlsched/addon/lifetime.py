"""The end of a crawl that cannot go on: a sentence in the log, a ``finish_reason``, and exit code 1."""

from __future__ import annotations

import logging

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.utils.defer import maybe_deferred_to_future
from twisted.internet.defer import Deferred

from crawlsched.scrapy_versions import call_later, close_spider

__all__ = ["end_loudly", "exit_with_1", "wait"]

logger = logging.getLogger(__name__)


async def wait(seconds: float) -> None:
    """Wait for this time while other tasks run; 0: until the tasks that are ready now have run."""
    gone: Deferred[None] = Deferred()
    call_later(seconds, gone.callback, None)
    await maybe_deferred_to_future(gone)


def end_loudly(crawler: Crawler, reason: str, sentence: str | None = None) -> None:
    """Close the spider, with a ``finish_reason`` for scripts and a sentence for the log; a second call does nothing."""
    engine = crawler.engine
    if engine is None or engine.spider is None or getattr(crawler, "_crawlsched_ends", False):
        return
    crawler._crawlsched_ends = True  # type: ignore[attr-defined]
    if sentence:
        logger.error(sentence)
    exit_with_1(crawler)
    close_spider(engine, reason)


def exit_with_1(crawler: Crawler) -> None:
    """Let ``scrapy crawl`` and ``scrapy runspider`` end with exit code 1, for supervisors.

    Scrapy's commands end with this code if the crawler has no spider at the end.
    """

    def forget_spider() -> None:
        crawler.spider = None

    # Scrapy keeps only weak references to handlers, so the crawler keeps this one. It is called last, when no other
    # part needs the spider.
    crawler._crawlsched_exit = forget_spider  # type: ignore[attr-defined]
    crawler.signals.connect(forget_spider, signals.spider_closed)
