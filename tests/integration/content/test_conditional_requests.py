"""Validators go out, 304s come in as observations, and redirects never carry another page's validators."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web

from tests.crawling import Project, spider
from tests.site import Site

SEEN = 'yield {"is_changed": response.meta["crawlsched_changed"], "flags": response.flags}'
CHANGED = {"is_changed": True, "flags": ["crawlsched-changed"]}
UNCHANGED = {"is_changed": False, "flags": ["crawlsched-unchanged"]}


def _project(folder: Path, site: Site, **settings: object) -> Project:
    # Slow enough that a change has been delivered before the next visit, on a busy machine and with Scrapy 2.13 too.
    return Project(folder, spider([site.url("/")], SEEN), **{"bandwidth": "5/s", **settings})


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
    crawl = _project(tmp_path, site, visits=6).run()
    sent = [headers.get("if-none-match") for headers in site.visits("/")]
    assert sent[:5] == [None, '"one"', '"one"', '"one"', '"two"']
    outcomes = crawl.outcomes()[site.url("/")][:6]
    assert outcomes == ["changed", "not_modified", "not_modified", "changed", "not_modified", "not_modified"]
    assert [row.changed for row in crawl.visits()][:6] == [None, False, False, True, False, False]
    assert crawl.items == [CHANGED] * 2


def test_last_modified_is_sent_back(site: Site, tmp_path: Path) -> None:
    """If-Modified-Since carries the very text of Last-Modified."""
    stamp = "Sat, 21 Nov 2026 01:02:03 GMT"
    site.page("/", "<p>hello</p>", Last_Modified=stamp)
    _project(tmp_path, site, visits=2).run()
    assert [headers.get("if-modified-since") for headers in site.visits("/")][:2] == [None, stamp]


def test_a_redirect_does_not_carry_the_validators_of_the_page_it_came_from(site: Site, tmp_path: Path) -> None:
    """A page that begins to redirect must not earn a false 304 from its target."""

    def first_content_then_redirect(request: web.Request) -> web.Response:
        if len(site.visits("/")) == 1:
            return web.Response(text="<p>a</p>", headers={"ETag": '"a"'}, content_type="text/html")
        return web.Response(status=302, headers={"Location": "/target"})

    site.page("/", first_content_then_redirect)
    site.page("/target", "<p>target</p>")
    _project(tmp_path, site, visits=3).run()
    assert site.visits("/")[1]["if-none-match"] == '"a"'
    assert all("if-none-match" not in headers for headers in site.visits("/target"))


def test_conditional_requests_can_be_switched_off(site: Site, tmp_path: Path) -> None:
    """Then every visit fetches the content."""
    site.page("/", "<p>hello</p>", ETag='"a"')
    project = _project(tmp_path, site, conditional_requests=False, visits=3)
    crawl = project.run()
    assert all("if-none-match" not in headers for headers in site.visits("/"))
    assert crawl.outcomes()[site.url("/")][:3] == ["changed", "unchanged", "unchanged"]


def test_unchanged_pages_reach_the_callback_when_asked_for(site: Site, tmp_path: Path) -> None:
    """With CRAWLSCHED_CALLBACK_ON_UNCHANGED the callback sees in meta and flags which is which."""
    site.page("/", "<p>hello</p>")
    crawl = _project(tmp_path, site, callback_on_unchanged=True, visits=3).run()
    assert crawl.items[:3] == [CHANGED, UNCHANGED, UNCHANGED]


CONDITIONAL = """
async def start(self):
    yield scrapy.Request(self.start_urls[0], headers={"If-None-Match": '"v1"'}, errback=self.failed)

def failed(self, failure):
    yield {"failed": failure.value.response.status}
"""


def test_a_304_to_a_request_that_the_spider_made_conditional_reaches_its_errback(site: Site, tmp_path: Path) -> None:
    """Whoever sends If-None-Match himself hears the answer, as from plain Scrapy."""
    url = site.page("/", "", status=304, ETag='"v1"')
    project = Project(tmp_path, spider([url], also=CONDITIONAL), one_pass=True)
    assert project.run().items == [{"failed": 304}]
