"""robots.txt is read again while a crawl goes on, and what it says takes effect at once."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import NamedTuple

import pytest
from aiohttp import web

from tests.crawling import Crawl, Project, spider
from tests.site import Site

OPEN = "User-agent: *\nAllow: /\nSitemap: {site}/one.xml\n"
CLOSED = "User-agent: *\nDisallow: /shelf/\nSitemap: {site}/two.xml\n"
# Three seconds instead of ten for which it is kept at least, and seconds at which the site says something else.
KEPT = 3.0
SHORTER = f"from crawlsched.addon import robots\nrobots._SHORTEST = {KEPT}"
CLOSES, BREAKS, OPENS, ENDS = 2.0, 6.0, 10.0, 17
# A moment later the crawl knows.
KNOWN = KEPT + 0.7


class Told(NamedTuple):
    """What a crawl has asked for, and when, in seconds since the first request."""

    crawl: Crawl
    asked: list[tuple[float, str]]

    def between(self, begin: float, end: float, path: str) -> int:
        """Count the requests for what begins with a path."""
        return sum(begin < at < end and asked.startswith(path) for at, asked in self.asked)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    folder = tmp_path_factory.mktemp("robots")
    with Site() as site:
        began: list[float] = []

        def age() -> float:
            began.append(time.monotonic())
            return began[-1] - began[0]

        def robots(request: web.Request) -> web.Response:
            now = age()
            if BREAKS <= now < OPENS:
                return web.Response(status=503)
            text = CLOSED if CLOSES <= now < BREAKS else OPEN
            return web.Response(text=text.format(site=site.url("")), headers={"Cache-Control": "public, max-age=1"})

        def page(request: web.Request) -> web.Response:
            return web.Response(text=f"<p>{request.path} {int(age())}</p>", content_type="text/html")

        site.page("/robots.txt", robots)
        for name in ("one", "two"):
            site.page(f"/{name}.xml", f"<urlset><url><loc>{site.url(f'/{name}')}</loc></url></urlset>")
        site.default = page
        urls = [site.url(f"/{kind}/{number}") for kind in ("shelf", "free") for number in range(10)]
        settings = {"ROBOTSTXT_OBEY": True, "find_sources": True, "source_interval": 1}
        project = Project(folder, spider(urls, before=SHORTER), bandwidth="40/s", seconds=ENDS, **settings)
        crawl = project.run(timeout=80)
        first = site.times[0]
        asked = [(at - first, path) for at, (path, _) in zip(site.times, site.requests, strict=True)]
    return Told(crawl, asked)


def test_it_is_read_again_in_time_and_seldom(told: Told) -> None:
    """Not before its shortest time has passed, whatever max-age says; once in a hundred requests."""
    reads = [at for at, path in told.asked if path == "/robots.txt"]
    assert 4 <= len(reads) <= 1 + len(told.asked) / 100
    assert all(later - earlier > 0.95 * KEPT for earlier, later in pairwise(reads))
    assert "ERROR" not in told.crawl.log


def test_what_it_forbids_is_asked_no_more_until_it_is_allowed(told: Told) -> None:
    """Also while it cannot be read: what it said last stays in force."""
    assert told.between(0.0, CLOSES, "/shelf/") > 10
    assert told.between(CLOSES + KNOWN, OPENS, "/shelf/") == 0
    assert told.between(CLOSES + KNOWN, OPENS, "/free/") > 50
    assert told.between(OPENS, ENDS, "/shelf/") > 10


def test_what_it_forbids_is_listed(told: Told) -> None:
    """`withheld` has the pages, and the log says it once."""
    assert told.crawl.log.count("forbidden by the robots.txt of their host") == 1
    assert "/shelf/" in told.crawl.said("withheld", "--reason", "robots")


def test_its_sitemaps_come_and_go(told: Told) -> None:
    """A line that is new is read, and one that is gone is read no more until it is there again."""
    assert told.between(0.0, CLOSES, "/one.xml")
    assert not told.between(0.0, CLOSES, "/two.xml")
    assert told.between(CLOSES, OPENS, "/two.xml")
    assert not told.between(CLOSES + KNOWN, OPENS, "/one.xml")
    assert told.between(OPENS, ENDS, "/one.xml")
