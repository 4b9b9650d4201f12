"""The spider middleware: a change is delivered when the spider's callback and pipelines have finished with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from crawlsched.refresh.refresher import Refresher

__all__ = ["DeliveryMiddleware"]


class DeliveryMiddleware:
    """Count what a callback yields for the pipelines, so that the end of a delivery is seen.

    It stands nearest to the engine, so it counts what really goes to the pipelines, after every other spider
    middleware. The extension counts what comes out of them.
    """

    def __init__(self, refresher: Refresher) -> None:
        self._deliveries = refresher.deliveries
        self._clock = refresher.clock

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware for a crawler."""
        return cls(Refresher.of(crawler))

    async def process_spider_output(self, response: Response, result: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass everything on, and note how many items there were and how the callback ended."""
        token = response.meta.get("crawlsched_visit")
        if not isinstance(token, int) or token not in self._deliveries:
            async for output in result:
                yield output
            return
        items = 0
        try:
            async for output in result:
                if output is not None and not isinstance(output, Request):
                    items += 1
                yield output
        except BaseException:
            # Also GeneratorExit, when the engine throws the rest of the output away at shutdown: not delivered.
            self._deliveries.failed(token)
            raise
        self._deliveries.called_back(token, items, self._clock())
