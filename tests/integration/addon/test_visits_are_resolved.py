"""Every dispatched request is resolved exactly once, whatever becomes of it."""

import asyncio
import gzip
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.crawling import Crawl, Project, spider
from tests.site import Answer, Site, html

AWKWARD = """
from scrapy import signals
from scrapy.exceptions import IgnoreRequest, StopDownload
from scrapy.http import HtmlResponse


class Awkward:
    def process_request(self, request):
        path = request.url.partition("?")[0].split("/")[-1]
        if path == "ignored-by-a-middleware":
            raise IgnoreRequest("not today")
        if path == "error-in-a-middleware":
            raise RuntimeError("a middleware is broken")
        if path == "answered-by-a-middleware":
            return HtmlResponse(request.url, body=b"<p>from a middleware</p>")
        if path == "replaced-keeping-meta":
            return request.replace(url=request.url.replace("replaced-keeping-meta", "replacement"), dont_filter=True)
        if path == "replaced-without-meta":
            url = request.url.replace("replaced-without-meta", "foreign")
            return scrapy.Request(url, dont_filter=True, meta={"crawlsched_track": False})

    def process_response(self, request, response):
        path = request.url.partition("?")[0].split("/")[-1]
        if path == "response-error-in-a-middleware":
            raise RuntimeError("a middleware is broken")
        if path == "response-ignored-by-a-middleware":
            raise IgnoreRequest("not this one")
        return None if path == "response-swallowed-by-a-middleware" else response
"""
PARSE = """
yield {"parsed": response.url}
if response.url.endswith("callback-raises"):
    raise RuntimeError("a callback is broken")
"""
ALSO = """
allowed_domains = ["127.0.0.1", "host"]

@classmethod
def from_crawler(cls, crawler, *args, **kwargs):
    spider = super().from_crawler(crawler, *args, **kwargs)
    crawler.signals.connect(spider.headers_received, signals.headers_received)
    return spider

def headers_received(self, headers, body_length, request, spider):
    if "/stopped-as-a-failure" in request.url:
        raise StopDownload(fail=True)

async def start(self):
    for url in self.start_urls:
        yield scrapy.Request(url, errback=self.failed if "with-an-errback" in url else None)

def failed(self, failure):
    yield {"failed": failure.request.url}
"""

# What a page does, by the one outcome that its one visit must have.
ENDS = {
    "changed": "ok empty status/204 error-then-ok found-elsewhere moved-then-found meta-refresh callback-raises "
    "answered-by-a-middleware replaced-keeping-meta",
    "not_modified": "status/304",
    "refused": "status/401 status/403 status/451 redirect-to-denied denied ignored-by-a-middleware",
    "gone": "missing missing-with-an-errback status/410",
    "moved": "moved moved-308",
    "dropped": "redirect-to-offsite replaced-without-meta",
    "error": "status/429 status/500 status/500-with-an-errback status/418 redirect-loop bomb broken-gzip too-large "
    "never-answers reset cut-off error-in-a-middleware response-error-in-a-middleware stopped-as-a-failure "
    "response-ignored-by-a-middleware response-swallowed-by-a-middleware",
}
EXPECTED = {path: outcome for outcome, paths in ENDS.items() for path in paths.split()}


def _answers(site: Site) -> None:
    for path in ("ok", "replacement", "foreign", "stopped-as-a-failure", "callback-raises"):
        site.page(f"/{path}", "<p>as it should be</p>")
    site.page("/robots.txt", "User-agent: *\nDisallow: /denied\n")
    site.page("/empty", "")
    for path in EXPECTED:
        kind, _, status = path.partition("/")
        if kind == "status":
            site.page(f"/{path}", "", status=int(status.partition("-")[0]))
        elif path.startswith("response-"):
            site.page(f"/{path}", "<p>fine as far as the server goes</p>")
    for path, status, target in (
        ("found-elsewhere", 302, "/target-1"),
        ("moved", 301, "/target-2"),
        ("moved-308", 308, "/target-3"),
        ("moved-then-found", 301, "/found-target-4"),
        ("found-target-4", 302, "/target-4"),
        ("redirect-loop", 302, "/redirect-loop?again"),
        ("redirect-to-denied", 302, "/denied/too"),
        ("redirect-to-offsite", 302, "http://localhost:1/"),
    ):
        site.page(f"/{path}", "", status=status, Location=target)
    for number in range(1, 5):
        site.page(f"/target-{number}", "<p>the target</p>")
    site.page("/meta-refresh", '<meta http-equiv="refresh" content="0; url=/target-1">')
    site.page("/too-large", "x" * 3_000_000)

    def zipped(body: bytes) -> Answer:
        return lambda request: web.Response(body=body, headers={"Content-Encoding": "gzip"})

    async def never(request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        return web.Response()

    def reset(request: web.Request) -> web.Response:
        request.transport.abort()
        return web.Response()

    async def cut_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "text/html"})
        await response.prepare(request)
        await response.write(b"<p>only the first bytes")
        request.transport.close()
        return response

    def error_then_ok(request: web.Request) -> web.Response:
        status = 503 if len(site.visits(request.path)) == 1 else 200
        return html("<p>now</p>", status=status)

    site.page("/bomb", zipped(gzip.compress(bytes(30_000_000))))
    site.page("/broken-gzip", zipped(b"\x1f\x8b\x08garbage garbage"))
    site.page("/never-answers", never)
    site.page("/reset", reset)
    site.page("/cut-off", cut_off)
    site.page("/error-then-ok", error_then_ok)


def _project(folder: Path, urls: list[str], **settings: object) -> Project:
    """Make a crawl that visits each URL once."""
    once = {"pages": [["*", {"min_interval": 1000}]], "visits": len(urls)}
    middlewares = {"spider_under_test.Awkward": 543}
    text = spider(urls, PARSE, before=AWKWARD, also=ALSO)
    return Project(folder, text, DOWNLOAD_MAXSIZE=2000000, DOWNLOADER_MIDDLEWARES=middlewares, **once, **settings)


@pytest.fixture(scope="module")
def awkward(tmp_path_factory) -> Iterator[tuple[Site, Crawl]]:
    """A crawl of one page of each kind, each visited once."""
    folder = tmp_path_factory.mktemp("awkward")
    with Site() as site, socket.socket() as closed_port:
        _answers(site)
        closed_port.bind(("127.0.0.1", 0))
        urls = [site.url(f"/{path}") for path in EXPECTED]
        urls += [f"http://127.0.0.1:{closed_port.getsockname()[1]}/nobody-listens", "foo://host/unsupported-scheme"]
        settings = {"ROBOTSTXT_OBEY": True, "RETRY_TIMES": 1, "REDIRECT_MAX_TIMES": 3, "DOWNLOAD_TIMEOUT": 2}
        project = _project(folder, urls, CONCURRENT_REQUESTS_PER_DOMAIN=30, **settings)
        yield site, project.run()


def test_every_kind_of_end_has_its_one_outcome(awkward: tuple[Site, Crawl]):
    """Each page was visited once, and its visit has the outcome that its end should have."""
    site, crawl = awkward
    outcomes = crawl.outcomes()
    found = {url.removeprefix(site.url("/")): ends for url, ends in outcomes.items()}
    assert {path: [outcome] for path, outcome in EXPECTED.items()} == {path: found.get(path) for path in EXPECTED}
    # The target of a permanent redirect is a page of its own, that of a temporary one is not.
    assert "target-2" in found
    assert "target-1" not in found
    # A port where nobody listens, and a scheme without a handler.
    assert [ends for url, ends in outcomes.items() if url.endswith(("nobody-listens", "unsupported-scheme"))] == [
        *(["error"], ["error"]),
    ]


def test_as_many_are_resolved_as_were_dispatched(awkward: tuple[Site, Crawl]):
    """Dispatched, resolved, and the sum over the outcomes are the same number."""
    _, crawl = awkward
    by_outcome = {k: v for k, v in crawl.stats.items() if k.startswith("crawlsched/resolved/")}
    assert len(EXPECTED) + 2 == crawl.stats["crawlsched/dispatched"]
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"] == sum(by_outcome.values())


def test_the_spider_gets_what_it_would_get_without_us(awkward: tuple[Site, Crawl]):
    """Callbacks run for content, errbacks for failures, and the 304 is kept from both."""
    site, crawl = awkward
    parsed = {item.get("parsed") for item in crawl.items}
    assert site.url("/ok") in parsed
    assert site.url("/target-2") in parsed
    assert site.url("/status/304") not in parsed
    failed = {site.url("/missing-with-an-errback"), site.url("/status/500-with-an-errback")}
    assert {item["failed"] for item in crawl.items if "failed" in item} == failed


def test_a_host_that_answers_does_not_rest_for_errors_that_are_made_here(site, tmp_path):
    """Too large, stopped by the spider, broken here: one after another, and the pages after them go all the same."""
    kinds = ("too-large", "bomb", "broken-gzip", "stopped-as-a-failure", "error-in-a-middleware")
    kinds += ("response-error-in-a-middleware", "response-swallowed-by-a-middleware")
    _answers(site)
    broken = [site.url(f"/{kind}?{number}") for number in range(2) for kind in kinds]
    fine = [site.url("/ok"), site.url("/empty")]
    # Each is heard of before the next is asked for.
    project = _project(tmp_path, [*broken, *fine], RETRY_ENABLED=False, CONCURRENT_REQUESTS_PER_DOMAIN=1)
    outcomes = project.run().outcomes()
    assert [["error"]] * len(broken) == [outcomes[url] for url in broken]
    assert [outcomes[url] for url in fine] == [["changed"]] * 2


@pytest.mark.parametrize(("status", "n_asked"), [(403, 12), (503, 8)])
def test_a_host_whose_sitemaps_fail_rests_like_one_whose_pages_do(site, tmp_path, status, n_asked):
    """Of twelve sitemaps that answer 503 eight are asked for; of twelve that are forbidden all."""
    sitemaps = [site.page(f"/{number}.xml", "", status=status) for number in range(12)]
    # Each is heard of before the next is asked for.
    settings = {"RETRY_ENABLED": False, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
    Project(tmp_path, [], source_urls=",".join(sitemaps), seconds=8, **settings).run()
    assert len(site.requests) == n_asked
