"""What the add-on asks for by itself is no failure of the spider's, whatever becomes of it."""

from __future__ import annotations

import time
from pathlib import Path

from aiohttp import web

from tests.crawling import VISITING_SPIDER, Project
from tests.site import Site


def test_requests_of_our_own_fail_in_silence(tmp_path: Path) -> None:
    """A site closes the connection for what it does not know: robots.txt, a sitemap, pages that cannot exist."""
    began = time.monotonic()

    def answer(request: web.Request) -> web.StreamResponse:
        if not request.path.startswith("/p/"):
            assert request.transport is not None
            request.transport.close()
        words = f"<p>{request.path} {int(time.monotonic() - began) // 3}</p>" * 3
        return web.Response(text=f"<title>{request.path}</title>{words}", content_type="text/html")

    with Site() as site:
        site.default = answer
        urls = [site.url(f"/p/{number}") for number in range(20)]
        crawl = Project(
            tmp_path,
            VISITING_SPIDER.format(urls=urls),
            CRAWLSCHED_PROBES="True",
            CRAWLSCHED_WITHHOLD="True",
            CRAWLSCHED_BANDWIDTH="30/s",
            CRAWLSCHED_SOURCE_URLS=site.url("/sitemap.xml"),
            CLOSESPIDER_TIMEOUT="12",
        ).run()
        asked = [path for path, _ in site.requests]
    for path in ("/robots.txt", "/sitemap.xml"):  # twice where the connection had been kept, as any other
        assert 1 <= asked.count(path) <= 2
    assert " ERROR: " not in crawl.log
    for name in ("log_count/ERROR", "retry/count", "retry/max_reached", "downloader/exception_count"):
        assert crawl.stats.get(name, 0) == 0
