"""What a spider's requests become: pages with importance, kept apart by collection, on any database and event loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawling import Project, spider
from tests.site import Site

FOLLOWS = """
for link in response.css("a::attr(href)").getall():
    yield response.follow(link, self.parse_linked)
"""
MORE = """
async def start(self):
    async for request in super().start():
        yield request
    url = self.start_urls[0]
    yield scrapy.Request(url + "untracked", self.once, meta={"crawlsched_track": False})
    yield scrapy.Request(url + "not-data", lambda response: None)
    yield scrapy.Request(url + "by-meta", meta={"crawlsched_importance": 7})

def parse_linked(self, response):
    yield {"url": response.url}

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


@pytest.fixture
def project(site: Site, tmp_path: Path) -> Project:
    return Project(tmp_path, spider([site.url("/")], FOLLOWS, also=MORE))


def test_links_become_pages_and_the_rest_is_crawled_once(site: Site, project: Project) -> None:
    """Links are refreshed; what opted out or cannot be written down is crawled once, by the fallback scheduler."""
    crawl = project.run(visits=20)
    assert set(crawl.outcomes()) == {site.url(path) for path in ("/", "/linked", "/important", "/by-meta")}
    assert len(site.visits("/linked")) >= 3
    assert len(site.visits("/untracked")) == len(site.visits("/not-data")) == 1
    assert crawl.log.count("is crawled once and not kept fresh (this is said once of each callback)") == 1
    # The second link to /linked is known already.
    assert crawl.stats["crawlsched/known"] == 1


def test_a_floor_that_asks_for_more_than_the_rate_is_said_at_the_start(project: Project) -> None:
    """The second start knows the pages, and says that they cannot all be kept to the interval."""
    project.run(visits=8)
    crawl = project.run(pages=[["*", {"max_interval": 1}]], bandwidth="2/s", seconds=5)
    assert "CRAWLSCHED_PAGES asks for 4 crawls a second of these 4 pages" in crawl.log
    assert crawl.stats["crawlsched/dispatched/overdue"] >= 4


def test_a_restart_goes_on_where_it_stopped(site: Site, project: Project) -> None:
    """start() names its page again: no new page, but visited first and delivered; the others are left in peace."""
    seldom = [["*", {"min_interval": 1000}]]
    project.run(pages=seldom, visits=4)
    before = len(site.visits("/linked"))
    crawl = project.run(pages=seldom, seconds=3)
    assert len(site.visits("/linked")) == before == 1
    assert len(site.visits("/")) == 2
    assert crawl.stats["crawlsched/dispatched/start"] == 2
    assert "crawlsched/pages/found" not in crawl.stats


@pytest.mark.parametrize(
    ("setting", "value"),
    [("TWISTED_REACTOR_ENABLED", False), ("TWISTED_REACTOR", "twisted.internet.epollreactor.EPollReactor")],
    ids=["no reactor", "not asyncio"],
)
def test_other_event_loops_do_as_well(project: Project, setting: str, value: object) -> None:
    """Without a Twisted reactor, and with one that is not asyncio's."""
    crawl = project.run(visits=20, **{setting: value})
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"] >= 20
    assert len(crawl.outcomes()) == 4
