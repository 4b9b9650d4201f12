"""Validators go out, 304s come in as observations, and redirects never carry another page's validators."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from tests.crawling import Project
from tests.site import Site

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}

    def parse(self, response):
        with open("seen.txt", "a") as file:
            print(response.url, response.status, response.meta["crawlsched_changed"], *response.flags, file=file)
"""


def _project(folder: Path, site: Site, **settings: str) -> Project:
    # Slow enough that a change has been delivered before the next visit, on a busy machine and with Scrapy 2.13 too.
    wanted = {"CRAWLSCHED_BANDWIDTH": "5/s", **settings}
    return Project(folder, SPIDER.format(urls=[site.url("/")]), **wanted)


def _versions(site: Site, path: str, texts: list[str]) -> None:
    """Answer with one text after the other, the last one for ever, with ETag and 304."""
    given = iter(range(10**6))

    def answer(request: web.Request) -> web.Response:
        text = texts[min(next(given), len(texts) - 1)]
        etag = f'"{text}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={"ETag": etag})
        return web.Response(text=f"<p>{text}</p>", headers={"ETag": etag}, content_type="text/html")

    site.page(path, answer)


def test_the_etag_of_the_last_visit_is_sent_and_a_304_is_an_observation(site: Site, tmp_path: Path) -> None:
    """One change among not-modified answers is found, and each 304 taught that nothing had changed."""
    _versions(site, "/", ["one", "one", "one", "two"])
    crawl = _project(tmp_path, site, TEST_CLOSE_AFTER_RESOLVED="7").run()  # robots.txt is one of them
    assert [headers.get("if-none-match") for headers in site.visits("/")][:5] == [
        None,
        '"one"',
        '"one"',
        '"one"',
        '"two"',
    ]
    outcomes = crawl.outcomes()[site.url("/")][:6]
    assert outcomes == ["changed", "not_modified", "not_modified", "changed", "not_modified", "not_modified"]
    store = crawl.store()
    rows = store.reader.observations_of(0, limit=100)[::-1]
    store.close()
    assert [row.changed for row in rows][:6] == [None, False, False, True, False, False]
    seen = (tmp_path / "seen.txt").read_text().splitlines()
    assert seen == [f"{site.url('/')} 200 True crawlsched-changed"] * 2


def test_last_modified_is_sent_back(site: Site, tmp_path: Path) -> None:
    """If-Modified-Since carries the very text of Last-Modified."""
    stamp = "Sat, 21 Nov 2026 01:02:03 GMT"
    site.page("/", "<p>hello</p>", Last_Modified=stamp)
    _project(tmp_path, site, TEST_CLOSE_AFTER_RESOLVED="2").run()
    assert [headers.get("if-modified-since") for headers in site.visits("/")][:2] == [None, stamp]


def test_a_redirect_does_not_carry_the_validators_of_the_page_it_came_from(site: Site, tmp_path: Path) -> None:
    """A page that begins to redirect must not earn a false 304 from its target."""
    asked = []

    def first_content_then_redirect(request: web.Request) -> web.Response:
        asked.append(request)
        if len(asked) == 1:
            return web.Response(text="<p>a</p>", headers={"ETag": '"a"'}, content_type="text/html")
        return web.Response(status=302, headers={"Location": "/target"})

    site.page("/", first_content_then_redirect)
    site.page("/target", "<p>target</p>")
    _project(tmp_path, site, TEST_CLOSE_AFTER_RESOLVED="3").run()
    assert site.visits("/")[1]["if-none-match"] == '"a"'
    assert all("if-none-match" not in headers for headers in site.visits("/target"))


def test_conditional_requests_can_be_switched_off(site: Site, tmp_path: Path) -> None:
    """Then every visit fetches the content."""
    site.page("/", "<p>hello</p>", ETag='"a"')
    project = _project(
        tmp_path,
        site,
        CRAWLSCHED_CONDITIONAL_REQUESTS="False",
        TEST_CLOSE_AFTER_RESOLVED="3",
    )
    crawl = project.run()
    assert all("if-none-match" not in headers for headers in site.visits("/"))
    assert crawl.outcomes()[site.url("/")][:3] == ["changed", "unchanged", "unchanged"]


def test_unchanged_pages_reach_the_callback_when_asked_for(site: Site, tmp_path: Path) -> None:
    """With CRAWLSCHED_CALLBACK_ON_UNCHANGED the callback sees in meta and flags which is which."""
    site.page("/", "<p>hello</p>")
    _project(
        tmp_path,
        site,
        CRAWLSCHED_CALLBACK_ON_UNCHANGED="True",
        TEST_CLOSE_AFTER_RESOLVED="3",
    ).run()
    seen = (tmp_path / "seen.txt").read_text().splitlines()[:3]
    url = site.url("/")
    changed, unchanged = f"{url} 200 True crawlsched-changed", f"{url} 200 False crawlsched-unchanged"
    assert seen == [changed, unchanged, unchanged]


def test_a_304_to_a_request_that_the_spider_made_conditional_reaches_its_errback(site: Site, tmp_path: Path) -> None:
    """Whoever sends If-None-Match himself hears the answer, as from plain Scrapy."""
    url = site.page("/", lambda request: web.Response(status=304, headers={"ETag": '"v1"'}))
    spider = f"""
import scrapy

class Spider(scrapy.Spider):
    name = "test"

    async def start(self):
        yield scrapy.Request({url!r}, self.parse, headers={{"If-None-Match": '"v1"'}}, errback=self.failed)

    def parse(self, response):
        pass

    def failed(self, failure):
        with open("failed.txt", "a") as file:
            print(failure.value.response.status, file=file)
"""
    Project(tmp_path, spider, CRAWLSCHED_ONE_PASS="True").run()
    assert (tmp_path / "failed.txt").read_text().split() == ["304"]
