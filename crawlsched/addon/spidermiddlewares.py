"""The spider middleware: a change is delivered when the spider's callback and pipelines have finished with it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider
from scrapy.http import Response

from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.shared.shared_crawl import refresher_of
from crawlsched.crawl.visits import CALL_META, Call
from crawlsched.exceptions import NotThePage

__all__ = ["DeliveryMiddleware"]


class DeliveryMiddleware:
    """See what a callback yields, so that the end of a delivery is seen, and what two of its requests have in common.

    It stands nearest to the engine, so it counts what really goes on, after every other spider middleware. The
    extension counts what comes out of the pipelines, and the scheduler takes the requests. Scrapy 2.13 gives
    each method the spider, which none needs.
    """

    def __init__(self, refresher: Refresher) -> None:
        self._refresher = refresher
        self._deliveries = refresher.deliveries
        self._clock = refresher.clock

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Make the middleware for a crawler."""
        return cls(refresher_of(crawler))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        """Pass everything on, and note when start() has ended."""
        try:
            async for output in start:
                yield output
        finally:
            self._refresher.starts.has_ended = True

    def process_spider_output(
        self, response: Response, result: Iterable[Any], spider: Spider | None = None
    ) -> Iterator[Any]:
        """Pass everything on, and note what there was and how the callback ended."""
        with self._noted_call(response) as call:
            for output in result:
                yield self._noted(output, call)

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """As `process_spider_output`; Scrapy to 2.15 cannot recover from errors where one middleware has only this."""
        with self._noted_call(response) as call:
            async for output in result:
                yield self._noted(output, call)

    @contextmanager
    def _noted_call(self, response: Response) -> Iterator[Call]:
        token = _token(response)
        delivery = self._deliveries.get(token)
        if delivery is None:
            call = Call()
        else:
            call = Call(token, delivery.page, from_start=self._refresher.starts.leads(delivery.page, token))
        try:
            yield call
        except CloseSpider:  # the spider's word, and no failure
            self._deliveries.called_back(call.token, self._clock())
            raise
        except BaseException:
            # Also GeneratorExit, when the engine throws the rest of the output away at shutdown: not delivered.
            self._deliveries.failed(call.token, self._clock())
            raise
        self._deliveries.called_back(call.token, self._clock())

    def _noted(self, output: Any, call: Call) -> Any:
        if isinstance(output, Request):
            output.meta[CALL_META] = call
        if output is not None:
            self._deliveries.yielded(call.token)
        return output

    def process_spider_exception(
        self, response: Response, exception: Exception, spider: Spider | None = None
    ) -> list[Any] | None:
        """Take what a callback raises to say that the response is not its page, or that the crawl has to end."""
        if isinstance(exception, CloseSpider):  # of a callback that raised before it had yielded anything
            self._deliveries.called_back(_token(response), self._clock())
        if not isinstance(exception, NotThePage):
            return None
        self._refresher.not_the_page(_token(response), response.url, self._clock())
        return []


def _token(response: Response) -> int:
    token = response.request.meta.get("crawlsched_visit") if response.request is not None else None
    return token if isinstance(token, int) else -1
