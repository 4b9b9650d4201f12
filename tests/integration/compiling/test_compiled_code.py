"""Where numba is installed, a crawl of a large collection uses compiled code, from its start or its next plan on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crawling import Project
from tests.site import Site

# From five pages on, so that the crawl is a short one.
SPIDER = """
import scrapy
from crawlsched.collection import collection
from crawlsched.frontier.buckets.entries import LOOPS

collection._WORTH_COMPILING = 5

class Spider(scrapy.Spider):
    name = "test"

    async def start(self):
        for number in range(20):
            yield scrapy.Request(f"{self.site}/{number}")

    def parse(self, response):
        pass

    def closed(self, reason):
        self.logger.info("at the end the code was %s", "compiled" if LOOPS.compiled else "plain")
"""


def test_compiled_code_comes_with_the_plan_after_a_collection_has_grown_and_then_from_the_start(tmp_path: Path) -> None:
    """Nothing else differs: all pages are crawled and all visits resolved."""
    pytest.importorskip("numba")
    with Site() as site:
        for number in range(20):
            site.page(f"/{number}", f"<p>Page {number}</p>")
        project = Project(tmp_path, SPIDER.replace("{self.site}", site.url("")), CRAWLSCHED_REPLAN_INTERVAL="1")
        said = "Pages are picked by compiled code from now on."
        for has_begun in (True, False):
            # Six seconds: to load compiled code takes a slow machine three.
            crawl = project.run(TEST_CLOSE_AFTER_RESOLVED=300)
            assert crawl.returncode == 0
            assert crawl.log.count(said) == 1
            assert ("Crawled 0 pages" in crawl.log[: crawl.log.index(said)]) == has_begun
            assert "at the end the code was compiled" in crawl.log
            assert crawl.stats["crawlsched/resolved"] == crawl.stats["crawlsched/dispatched"]
