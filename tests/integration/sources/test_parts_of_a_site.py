"""A real crawl of a site whose one sitemap is honest for /news/ and lies for /shop/ learns which to believe."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests import children
from tests.crawling import Project
from tests.site import Site

# Edits so far apart that visits come between them which find nothing: without these nobody could tell announced changes
# from pages that change all the time.
N_PAGES, EDIT_INTERVAL, SECONDS = 40, 16.0, 45
SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = []

    def parse(self, response):
        pass
"""


def _edited_at(number: int, now: float) -> float:
    """Return when a news page was last edited: each in its turn, every few seconds."""
    offset = number * EDIT_INTERVAL / N_PAGES
    return (now - offset) // EDIT_INTERVAL * EDIT_INTERVAL + offset


def _told(*arguments: str) -> Any:
    return json.loads(children.output_of(sys.executable, "-m", "crawlsched", *arguments, "--json"))


@pytest.mark.statistics
def test_a_crawl_tells_the_honest_part_of_a_sitemap_from_the_other(tmp_path: Path) -> None:
    """`sources` says how far each part can be trusted; a page is judged by its own announcements, which `why` says."""
    with Site() as site:

        def sitemap(request: web.Request) -> web.Response:
            now = time.time()
            entries = [(f"/news/{n}", _edited_at(n, now)) for n in range(N_PAGES)]
            entries += [(f"/shop/{n}", now) for n in range(N_PAGES)]
            stated = [(site.url(path), datetime.fromtimestamp(at, UTC).isoformat()) for path, at in entries]
            text = "".join(f"<url><loc>{url}</loc><lastmod>{at}</lastmod></url>" for url, at in stated)
            return web.Response(text=f"<urlset>{text}</urlset>", content_type="application/xml")

        def news(number: int) -> Any:
            return lambda request: web.Response(
                text=f"<p>edited at {_edited_at(number, time.time())}</p>", content_type="text/html"
            )

        for number in range(N_PAGES):
            site.page(f"/news/{number}", news(number))
            site.page(f"/shop/{number}", f"<p>Product {number}</p>")
        site.page("/sitemap.xml", sitemap)
        crawl = Project(
            tmp_path,
            SPIDER,
            CRAWLSCHED_SOURCE_URLS=site.url("/sitemap.xml"),
            CRAWLSCHED_SOURCE_INTERVAL="1",
            CRAWLSCHED_BANDWIDTH="12/s",
            CLOSESPIDER_TIMEOUT=str(SECONDS),
        ).run(timeout=SECONDS + 60)
        database = "--database", crawl.database_url
        parts = {part["part"]: part for part in _told("sources", *database)["parts"]}
        why = {part: _told("why", site.url(f"/{part}/3"), *database) for part in ("news", "shop")}
    news_part, shop_part = parts["/news/"], parts["/shop/"]
    assert news_part["precision_interval"][0] > shop_part["precision_interval"][1]
    assert why["news"]["precision"] > why["shop"]["precision"]
