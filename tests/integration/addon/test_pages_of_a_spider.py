"""What a spider's requests become: pages with importance, kept apart by collection, on any database and event loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawling import Project
from tests.site import Site

SPIDER = """
import scrapy

def importance(url, meta):
    return 5.0 if url.endswith("important") else 1.0

class Spider(scrapy.Spider):
    name = "test"
    start_urls = [{url!r}]

    async def start(self):
        async for request in super().start():
            yield request
        yield scrapy.Request({url!r} + "untracked", self.once, meta={{"crawlsched_track": False}})
        yield scrapy.Request({url!r} + "not-data", lambda response: None)
        yield scrapy.Request({url!r} + "by-meta", meta={{"crawlsched_importance": 7}})

    def parse(self, response):
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, self.parse_linked)

    def parse_linked(self, response):
        yield {{"url": response.url}}

    def once(self, response):
        pass
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        site.page("/", '<a href="/linked">one</a> <a href="/important">two</a> <a href="/linked">again</a>')
        for path in ("linked", "important", "untracked", "not-data", "by-meta"):
            site.page(f"/{path}", f"<p>{path}</p>")
        yield site


def test_links_become_pages_and_the_rest_is_crawled_once(site: Site, tmp_path: Path) -> None:
    """Links are refreshed; what opted out or cannot be written down is crawled once, by the fallback scheduler."""
    crawl = Project(tmp_path, SPIDER.format(url=site.url("/")), TEST_CLOSE_AFTER_RESOLVED="20").run()
    assert set(crawl.outcomes()) == {site.url(path) for path in ("/", "/linked", "/important", "/by-meta")}
    assert len(site.visits("/linked")) >= 3
    assert len(site.visits("/untracked")) == 1
    assert len(site.visits("/not-data")) == 1
    assert crawl.log.count("is crawled once and not kept fresh (this is said once of each callback)") == 1
    # The second link to /linked is known already.
    assert crawl.stats["crawlsched/known"] == 1


def test_a_floor_that_asks_for_more_than_the_rate_is_said_at_the_start(site: Site, tmp_path: Path) -> None:
    """The second start knows the pages, and says that they cannot all be kept to the interval."""
    project = Project(tmp_path, SPIDER.format(url=site.url("/")), TEST_CLOSE_AFTER_RESOLVED="8")
    project.run()
    crawl = project.run(
        CRAWLSCHED_PAGES='[["*", {"max_interval": 1}]]', CRAWLSCHED_BANDWIDTH="2/s", CLOSESPIDER_TIMEOUT="5"
    )
    assert "CRAWLSCHED_PAGES asks for 4 crawls a second of these 4 pages" in crawl.log
    assert crawl.stats["crawlsched/dispatched/overdue"] >= 4


def test_a_restart_goes_on_where_it_stopped(site: Site, tmp_path: Path) -> None:
    """start() names its page again: no new page, but visited first and delivered; the others are left in peace."""
    project = Project(
        tmp_path,
        SPIDER.format(url=site.url("/")),
        CRAWLSCHED_PAGES='[["*", {"min_interval": 1000}]]',
        TEST_CLOSE_AFTER_RESOLVED="4",
    )
    project.run()
    before = len(site.visits("/linked"))
    crawl = project.run(CLOSESPIDER_TIMEOUT="3", TEST_CLOSE_AFTER_RESOLVED="0")
    assert len(site.visits("/linked")) == before == 1
    assert len(site.visits("/")) == 2
    assert crawl.stats["crawlsched/dispatched/start"] == 2
    assert "crawlsched/pages/found" not in crawl.stats


@pytest.mark.parametrize(
    "settings",
    [
        {"TWISTED_REACTOR_ENABLED": "False"},
        {"TWISTED_REACTOR": "twisted.internet.epollreactor.EPollReactor"},
    ],
    ids=["no reactor", "not asyncio"],
)
def test_other_event_loops_do_as_well(site: Site, tmp_path: Path, settings: dict[str, str]) -> None:
    """Without a Twisted reactor, and with one that is not asyncio's."""
    crawl = Project(tmp_path, SPIDER.format(url=site.url("/")), TEST_CLOSE_AFTER_RESOLVED="20", **settings).run()
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"] >= 20
    assert len(crawl.outcomes()) == 4
