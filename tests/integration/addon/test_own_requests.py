"""What the add-on asks for by itself takes nothing from the spider: no failure is its own, and no first copy waits."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from aiohttp import web

from tests.crawling import Project
from tests.site import Site


def test_requests_of_our_own_fail_in_silence(site: Site, tmp_path: Path) -> None:
    """A site closes the connection for what it does not know: robots.txt, a sitemap, pages that cannot exist."""
    began = time.monotonic()

    def answer(request: web.Request) -> web.StreamResponse:
        if not request.path.startswith("/p/"):
            request.transport.close()
        words = f"<p>{request.path} {int(time.monotonic() - began) // 3}</p>" * 3
        return web.Response(text=f"<title>{request.path}</title>{words}", content_type="text/html")

    site.default = answer
    urls = [site.url(f"/p/{number}") for number in range(20)]
    settings = {"find_sources": True, "probes": True, "withhold": True, "source_urls": site.url("/sitemap.xml")}
    crawl = Project(tmp_path, urls, bandwidth="30/s", seconds=12, **settings).run()
    asked = [path for path, _ in site.requests]
    for path in ("/robots.txt", "/sitemap.xml"):  # twice where the connection had been kept, as any other
        assert 1 <= asked.count(path) <= 2
    assert " ERROR: " not in crawl.log
    for name in ("log_count/ERROR", "retry/count", "retry/max_reached", "downloader/exception_count"):
        assert crawl.stats.get(name, 0) == 0


@pytest.mark.parametrize("one_pass", [True, False])
def test_a_slow_host_is_asked_for_all_its_pages_before_it_is_asked_for_one_twice(
    site: Site, tmp_path: Path, one_pass: bool
) -> None:
    """It wants a second between two requests, and we could ask ten times; in one pass it is asked for each once."""
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 1\n")
    site.default = lambda request: web.Response(
        text=f"<h1>Shelf {request.path}</h1><p>10 in stock</p>", content_type="text/html"
    )
    paths = [f"/shelf/{number}" for number in range(7)]
    settings = {"ROBOTSTXT_OBEY": True, "probes": True, "one_pass": one_pass, "find_sources": True}
    urls = [site.url(path) for path in paths]
    crawl = Project(tmp_path, urls, bandwidth="10/s", visits=7, seconds=30, **settings).run()
    asked = [path for path, _ in site.requests if path != "/robots.txt"]
    assert sorted(asked[:7]) == paths
    if one_pass:
        assert "crawlsched/dispatched/probe" not in crawl.stats
