"""The end of a crawl: all that is under way is written down, and the event loop goes on meanwhile."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from tests.crawling import Project
from tests.site import Site

ENTRIES = 4_000
SPIDER = """
import json
import scrapy
from scrapy.utils.asyncio import call_later

ticks = 0

def tick():
    global ticks
    ticks += 1
    call_later(0.001, tick)

class Pipeline:
    def open_spider(self):
        tick()

    def close_spider(self):  # the last that Scrapy does before the scheduler is closed
        Pipeline.ticks = ticks

class Spider(scrapy.Spider):
    name = "test"
    start_urls = [{url!r}]

    def parse(self, response):
        pass

    def closed(self, reason):  # the first that it does afterwards
        with open("ticks.json", "w") as file:
            json.dump(ticks - Pipeline.ticks, file)
"""


def test_a_sitemap_that_is_being_taken_over_is_finished_in_steps(tmp_path: Path) -> None:
    """The crawl is closed as soon as its 4,000 entries have begun to be taken in: all are; other callbacks run, too."""
    with Site() as site:
        entries = "".join(f"<url><loc>{site.url(f'/e/{number}')}</loc></url>" for number in range(ENTRIES))

        def sitemap(request: web.Request) -> web.Response:
            return web.Response(text=f"<urlset>{entries}</urlset>", content_type="application/xml")

        site.default = lambda request: web.Response(text="x", content_type="text/html")
        project = Project(
            tmp_path,
            SPIDER.replace("{url!r}", repr(site.url("/"))),
            CRAWLSCHED_SOURCE_URLS=site.page("/sitemap.xml", sitemap),
            ITEM_PIPELINES='{"spider_under_test.Pipeline": 1}',
            TEST_CLOSE_AFTER_RESOLVED="2",
        )
        crawl = project.run()
        assert crawl.returncode == 0
        store = crawl.store()
        assert store.reader.next_page() == ENTRIES + 1
        store.close()
    assert int((tmp_path / "ticks.json").read_text()) >= 20
