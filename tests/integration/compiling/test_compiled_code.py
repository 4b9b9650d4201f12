"""Where numba is installed, a large or fast crawl uses compiled code, from its start or its next plan on."""

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


def test_a_fast_crawl_of_few_pages_uses_compiled_code_from_its_first_plan_on(tmp_path: Path) -> None:
    """A slow one of as many pages does not: it would load it for nothing."""
    pytest.importorskip("numba")
    with Site() as site:
        for number in range(20):
            site.page(f"/{number}", f"<p>Page {number}</p>")
        spider = SPIDER.replace("{self.site}", site.url("")).replace("_WORTH_COMPILING = 5", "_FAST = 40.0")
        for bandwidth, code in (("50/s", "compiled"), ("30/s", "plain")):
            (tmp_path / code).mkdir()
            project = Project(tmp_path / code, spider, CRAWLSCHED_REPLAN_INTERVAL="1", CRAWLSCHED_BANDWIDTH=bandwidth)
            crawl = project.run(TEST_CLOSE_AFTER_RESOLVED=250)
            assert crawl.returncode == 0
            assert f"at the end the code was {code}" in crawl.log
            assert crawl.stats["crawlsched/resolved"] == crawl.stats["crawlsched/dispatched"]
