"""Validators go out, 304s and times come in as observations, and redirects never carry another page's validators."""

import itertools
import time
from email.utils import formatdate
from itertools import count

import pytest
from aiohttp import web

from tests.crawling import Project, spider
from tests.site import Answer, Site, html

SEEN = """
path = response.request.url.rpartition("/")[2]
yield {"path": path, "is_changed": response.meta["crawlsched_changed"], "flags": response.flags}
"""
CHANGED = {"is_changed": True, "flags": ["crawlsched-changed"]}
UNCHANGED = {"is_changed": False, "flags": ["crawlsched-unchanged"]}
STAMP = "Sat, 21 Nov 2026 01:02:03 GMT"


@pytest.fixture(scope="module")
def crawled(tmp_path_factory):
    """Pages with an ETag, with Last-Modified, and one that begins to redirect: eight visits to each."""
    visits = count()

    def versions(request):
        etag = '"one"' if next(visits) < 3 else '"two"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        return html(f"<p>{etag}</p>", headers={"ETag": etag})

    def redirects(request):
        if len(site.visits("/redirects")) == 1:
            return html("<p>a</p>", headers={"ETag": '"a"'})
        return web.Response(status=302, headers={"Location": "/target"})

    with Site() as site:
        site.page("/target", "<p>target</p>")
        urls = [
            site.page("/etag", versions),
            site.page("/dated", "<p>hello</p>", Last_Modified=STAMP),
            site.page("/redirects", redirects),
        ]
        # Slow enough that a change is delivered before the next visit, on a busy machine and with Scrapy 2.13 too.
        settings = {"bandwidth": "6/s", "crawl_value": "round_robin", "visits": 24}
        yield site, Project(tmp_path_factory.mktemp("crawl"), spider(urls, SEEN), **settings).run()


def test_the_etag_of_the_last_visit_is_sent_and_a_304_is_an_observation(crawled):
    """One change among not-modified answers is found, and each 304 taught that nothing had changed."""
    site, crawl = crawled
    sent = [headers.get("if-none-match") for headers in site.visits("/etag")]
    assert sent[:5] == [None, '"one"', '"one"', '"one"', '"two"']
    outcomes = crawl.outcomes()[site.url("/etag")][:6]
    assert outcomes == ["changed", "not_modified", "not_modified", "changed", "not_modified", "not_modified"]
    page = crawl.pages()[site.url("/etag")].page
    assert [row.changed for row in crawl.visits(page)][:6] == [None, False, False, True, False, False]
    assert [item for item in crawl.items if item["path"] == "etag"] == [{"path": "etag", **CHANGED}] * 2


def test_last_modified_is_sent_back(crawled):
    """If-Modified-Since carries the very text of Last-Modified."""
    site, _ = crawled
    assert [headers.get("if-modified-since") for headers in site.visits("/dated")][:2] == [None, STAMP]


def test_a_redirect_does_not_carry_the_validators_of_the_page_it_came_from(crawled):
    """A page that begins to redirect must not earn a false 304 from its target."""
    site, _ = crawled
    assert site.visits("/redirects")[1]["if-none-match"] == '"a"'
    assert site.visits("/target")
    assert all("if-none-match" not in headers for headers in site.visits("/target"))


def test_conditional_requests_can_be_switched_off_and_the_callback_called_each_time(site, tmp_path):
    """Then every visit fetches the content, and the callback sees in meta and flags which is which."""
    url = site.page("/page", "<p>hello</p>", ETag='"a"')
    settings = {"conditional_requests": False, "callback_on_unchanged": True}
    crawl = Project(tmp_path, spider([url], SEEN), bandwidth="5/s", visits=3, **settings).run()
    assert all("if-none-match" not in headers for headers in site.visits("/page"))
    assert crawl.outcomes()[url][:3] == ["changed", "unchanged", "unchanged"]
    assert crawl.items[:3] == [{"path": "page", **seen} for seen in (CHANGED, UNCHANGED, UNCHANGED)]


CONDITIONAL = """
async def start(self):
    yield scrapy.Request(self.start_urls[0], headers={"If-None-Match": '"v1"'}, errback=self.failed)

def failed(self, failure):
    yield {"failed": failure.value.response.status}
"""


def test_a_304_to_a_request_that_the_spider_made_conditional_reaches_its_errback(site, tmp_path):
    """Whoever sends If-None-Match himself hears the answer, as from plain Scrapy."""
    url = site.page("/", "", status=304, ETag='"v1"')
    project = Project(tmp_path, spider([url], also=CONDITIONAL), one_pass=True)
    assert project.run().items == [{"failed": 304}]


HONEST, RESTLESS = "127.0.0.31", "127.0.0.32"
CHANGING, CALM = range(4), range(4, 8)
#: Seconds between two visits of a page, and before the visit that a changing page changed, by Date and Last-Modified.
INTERVAL, SINCE = 4.5, 4.0


def _answer(page: int) -> Answer:
    """Serve a page that changes before every visit, or never, with the time of that, or with the time of the answer."""
    visits = {host: itertools.count() for host in (HONEST, RESTLESS)}
    born = int(time.time()) - 100.0

    def answer(request):
        host, now = request.host.split(":")[0], int(time.time())
        number = next(visits[host]) if page in CHANGING else 0
        modified = now if host == RESTLESS else now - SINCE if page in CHANGING else born
        headers = {"Date": formatdate(now, usegmt=True), "Last-Modified": formatdate(modified, usegmt=True)}
        # Pages that all changed in the same words would be taken for the site's template.
        return html(f"<p>{page}: version {page}.{number}</p>", headers=headers)

    return answer


def test_a_change_counts_as_of_when_an_honest_last_modified_says(tmp_path):
    """Three changes and three rests prove a host's header; from then on each change is one of `SINCE` seconds ago."""
    with Site((HONEST, RESTLESS)) as site:
        paths = [f"/{page}" for page in (*CHANGING, *CALM)]
        for page, path in enumerate(paths):
            site.page(path, _answer(page))
        urls = [site.url(path, host) for path in paths for host in (HONEST, RESTLESS)]
        # Not conditional, so that each visit puts the header to the test.
        settings = {"pages": [["*", {"min_interval": INTERVAL, "max_interval": INTERVAL + 0.1}]]}
        project = Project(tmp_path, urls, conditional_requests=False, bandwidth="40/s", seconds=60, **settings)
        crawl = project.run(timeout=80, visits=5 * len(urls))
    visits = sorted((row.time, url, row) for url, page in crawl.pages().items() for row in crawl.visits(page.page))
    n_dated = 0
    for host in (HONEST, RESTLESS):
        moved = rested = 0
        for row in (row for _, url, row in visits if host in url and row.changed is not None):
            moved, rested = moved + row.changed, rested + (not row.changed)
            is_dated = host == HONEST and row.changed and min(moved, rested) >= 3
            assert row.time_since_modified == (pytest.approx(SINCE, abs=1.0) if is_dated else None)
            n_dated += is_dated
    assert n_dated >= 2 * len(CHANGING)
