"""Names are the handler's business: one that fetches elsewhere is asked for hosts that this machine cannot find."""

from __future__ import annotations

import json
from pathlib import Path

from tests.crawling import Project

SPIDER = """
import scrapy

class Elsewhere:
    lazy = True

    def __init__(self, *arguments):
        pass

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    def _answer(self, request):
        return scrapy.http.HtmlResponse(request.url, body=b"<p>fetched elsewhere</p>", request=request)

    if scrapy.version_info >= (2, 14):
        async def download_request(self, request):
            return self._answer(request)

        async def close(self):
            pass
    else:
        def download_request(self, request, spider):
            from twisted.internet.defer import succeed
            return succeed(self._answer(request))

class Spider(scrapy.Spider):
    name = "test"

    async def start(self):
        for url in ("http://only-the-handler-knows.invalid/a", "s3://a-bucket-of-ours/key", "https://nobody.invalid/"):
            yield scrapy.Request(url, errback=self.failed)

    def parse(self, response):
        yield {"url": response.url}

    def failed(self, failure):
        yield {"failed": failure.request.url}
"""


def test_a_handler_is_asked_whatever_the_resolver_says(tmp_path: Path) -> None:
    """Handlers of the project deliver, and one of Scrapy's own reports by itself what it cannot find."""
    feed = tmp_path / "items.jl"
    handlers = dict.fromkeys(("http", "s3"), "spider_under_test.Elsewhere")
    crawl = Project(
        tmp_path,
        SPIDER,
        DOWNLOAD_HANDLERS=json.dumps(handlers),
        FEEDS=json.dumps({str(feed): {"format": "jsonlines"}}),
        CRAWLSCHED_ONE_PASS="True",
        RETRY_ENABLED="False",
    ).run()
    assert sorted(feed.read_text().splitlines()) == [
        '{"failed": "https://nobody.invalid/"}',
        '{"url": "http://only-the-handler-knows.invalid/a"}',
        '{"url": "s3://a-bucket-of-ours/key"}',
    ]
    assert crawl.stats["finish_reason"] == "finished"
