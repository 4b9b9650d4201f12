"""robots.txt is read again while a crawl goes on, and what it says takes effect at once."""

import time
from itertools import pairwise
from math import inf
from typing import NamedTuple

import pytest
from aiohttp import web

from tests.crawling import Crawl, Project, spider
from tests.site import Site

OPEN = "User-agent: *\nAllow: /\nSitemap: {site}/one.xml\n"
CLOSED = "User-agent: *\nDisallow: /shelf/\nSitemap: {site}/two.xml\n"
# What it answers to one reading after the other, and the last for ever; None: it cannot be read.
ANSWERS = [OPEN, CLOSED, None, OPEN]
# Three seconds instead of ten for which it is kept at least.
KEPT = 3.0
SHORTER = f"from crawlsched.addon import robots\nrobots._SHORTEST = {KEPT}"


class Told(NamedTuple):
    """What a crawl has asked for, and when."""

    crawl: Crawl
    asked: list[tuple[float, str]]

    def reads(self) -> list[float]:
        """Return when robots.txt was read."""
        return [at for at, path in self.asked if path == "/robots.txt"]

    def between(self, first: int, last: int, path: str) -> int:
        """Count the requests for what begins with a path, from a moment after one reading to another."""
        reads = [-inf, *self.reads(), inf]
        return sum(reads[first] + 1.0 < at < reads[last] and asked.startswith(path) for at, asked in self.asked)


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> Told:
    """A crawl that goes on until a sixth reading."""
    with Site() as site:

        def robots(request):
            text = ANSWERS[min(len(site.visits("/robots.txt")), len(ANSWERS)) - 1]
            if text is None:
                return web.Response(status=503)
            return web.Response(text=text.format(site=site.url("")), headers={"Cache-Control": "public, max-age=1"})

        site.page("/robots.txt", robots)
        for name in ("one", "two"):
            site.page(f"/{name}.xml", f"<urlset><url><loc>{site.url(f'/{name}')}</loc></url></urlset>")
        site.default = lambda request: f"<p>{request.path} {int(time.monotonic())}</p>"
        urls = [site.url(f"/{kind}/{number}") for kind in ("shelf", "free") for number in range(10)]
        settings = {"ROBOTSTXT_OBEY": True, "find_sources": True, "source_interval": 1}
        project = Project(tmp_path_factory.mktemp("robots"), spider(urls, before=SHORTER), bandwidth="40/s", **settings)
        crawl = project.run_until(lambda: len(site.visits("/robots.txt")) > 5)
        return Told(crawl, [(at, path) for at, (path, _) in zip(site.times, site.requests, strict=True)])


def test_it_is_read_again_in_time_and_seldom(told: Told):
    """Not before its shortest time has passed, whatever max-age says; once in a hundred requests."""
    assert len(told.reads()) <= 2 + len(told.asked) / 100
    assert all(later - earlier > 0.95 * KEPT for earlier, later in pairwise(told.reads()))
    assert "ERROR" not in told.crawl.log


def test_what_it_forbids_is_asked_no_more_until_it_is_allowed(told: Told):
    """Also while it cannot be read: what it said last stays in force."""
    assert told.between(1, 2, "/shelf/") > 10
    assert told.between(2, 4, "/shelf/") == 0
    assert told.between(2, 4, "/free/") > 50
    assert told.between(4, -1, "/shelf/") > 10


def test_what_it_forbids_is_listed(told: Told):
    """`withheld` has the pages, and the log says it once."""
    assert told.crawl.log.count("forbidden by the robots.txt of their host") == 1
    assert "/shelf/" in told.crawl.said("withheld", "--reason", "robots")


def test_its_sitemaps_come_and_go(told: Told):
    """A line that is new is read, and one that is gone is read no more until it is there again."""
    assert told.between(1, 2, "/one.xml")
    assert not told.between(1, 2, "/two.xml")
    assert told.between(2, 4, "/two.xml")
    assert not told.between(2, 4, "/one.xml")
    assert told.between(4, -1, "/one.xml")
