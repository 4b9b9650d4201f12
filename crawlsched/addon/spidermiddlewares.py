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
from crawlsched.crawl.visits import CALL_META
from crawlsched.exceptions import NotThePage

__all__ = ["DeliveryMiddleware", "token_of"]


class DeliveryMiddleware:
    """Watch what callbacks yield, to know when a delivery ends and from which delivery a request comes.

    It is nearest to the engine, so it counts only output that all other spider middlewares let through. The extension
    counts the items that leave the pipelines, and the scheduler takes the requests. Scrapy 2.13 passes the spider to
    each method; no method needs it.
    """

    def __init__(self, refresher: Refresher) -> None:
        self._refresher = refresher
        self._book = refresher.book
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
        """Pass everything on, and note what was yielded and how the callback ended."""
        with self._noted_call(response) as token:
            for output in result:
                yield self._noted(output, token)

    async def process_spider_output_async(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        """Do the same as `process_spider_output`. Scrapy up to 2.15 needs both methods to recover from errors."""
        with self._noted_call(response) as token:
            async for output in result:
                yield self._noted(output, token)

    @contextmanager
    def _noted_call(self, response: Response) -> Iterator[int]:
        token = token_of(response)
        try:
            yield token
        except CloseSpider:  # this is the spider's decision, not a failure
            self._book.called_back(token, self._clock())
            raise
        except BaseException:
            # At shutdown the engine discards the rest of the output (GeneratorExit), so the page was not delivered,
            # either.
            self._book.failed(token, self._clock())
            raise
        self._book.called_back(token, self._clock())

    def _noted(self, output: Any, token: int) -> Any:
        if isinstance(output, Request):
            output.meta[CALL_META] = token
        if output is not None:
            self._book.yielded(token)
        return output

    def process_spider_exception(
        self, response: Response, exception: Exception, spider: Spider | None = None
    ) -> list[Any] | None:
        """Handle an exception that says that the response is not the callback's page, or that the crawl has to end."""
        if isinstance(exception, CloseSpider):  # the callback raised it before it yielded anything
            self._book.called_back(token_of(response), self._clock())
        if not isinstance(exception, NotThePage):
            return None
        self._book.not_the_page(token_of(response), response.url, self._clock())
        return []


def token_of(response: Any) -> int:
    """Return the token of the visit that brought a response; -1 if there is no visit or no response."""
    request = response.request if isinstance(response, Response) else None
    token = None if request is None else request.meta.get("crawlsched_visit")
    return token if isinstance(token, int) else -1
