"""Second fetches take nothing from pages that wait for their first copy at a slow host."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from tests.crawling import VISITING_SPIDER, Project
from tests.site import Site


@pytest.mark.parametrize("one_pass", ["True", "False"])
def test_a_slow_host_is_asked_for_all_its_pages_before_it_is_asked_for_one_twice(tmp_path: Path, one_pass: str) -> None:
    """It wants a second between two requests, and we could ask ten times; in one pass it is asked for each once."""
    with Site() as site:
        site.page("/robots.txt", "User-agent: *\nCrawl-delay: 1\n")
        site.default = lambda request: web.Response(
            text=f"<h1>Shelf {request.path}</h1><p>10 in stock</p>", content_type="text/html"
        )
        paths = [f"/shelf/{number}" for number in range(7)]
        crawl = Project(
            tmp_path,
            VISITING_SPIDER.format(urls=[site.url(path) for path in paths]),
            ROBOTSTXT_OBEY="True",
            CRAWLSCHED_PROBES="True",
            CRAWLSCHED_BANDWIDTH="10/s",
            CRAWLSCHED_ONE_PASS=one_pass,
            TEST_CLOSE_AFTER_RESOLVED="7",
            CLOSESPIDER_TIMEOUT="30",
        ).run()
        asked = [path for path, _ in site.requests if path != "/robots.txt"]
    assert sorted(asked[:7]) == paths
    if one_pass == "True":
        assert "crawlsched/dispatched/probe" not in crawl.stats
