"""What a page is worth follows whoever says so: a request, CRAWLSCHED_IMPORTANCE, a file; stated ones stay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from crawlsched.cli import main
from tests.crawling import Crawl, Project
from tests.site import Site

SPIDER = """
import scrapy

def first(url, meta):
    return 2.0 if url.endswith("/a") else 1.0

def second(url, meta):
    return 3.0 if url.endswith("/a") else meta.get("weight", 1.5)

class Spider(scrapy.Spider):
    name = "test"

    async def start(self):
        for name in "abcd":
            yield scrapy.Request({url!r} + name, meta={{"weight": 6.0}} if name == "b" else {{}})
        yield scrapy.Request({url!r} + "stated", meta={{"crawlsched_importance": 7}})
        for name, importance in self.settings.getdict("SAID").items():
            yield scrapy.Request({url!r} + name, meta={{"crawlsched_importance": importance}})

    def parse(self, response):
        pass
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        for name in ("a", "b", "c", "d", "stated"):
            site.page(f"/{name}", f"<p>{name}</p>")
        yield site


def importance_of(crawl: Crawl) -> dict[str, float]:
    store = crawl.store()
    try:
        found: dict[str, float] = {}
        for block in store.load():
            facts = store.reader.facts(block["page"])
            for fact, weight in zip(facts, block["importance"].tolist(), strict=True):
                assert fact is not None
                found[fact.url.rsplit("/", 1)[1]] = weight
        return found
    finally:
        store.close()


def test_importance_follows_whoever_says_so(site: Site, tmp_path: Path) -> None:
    """A changed function weighs all stored pages at the next start, but not those that somebody stated."""
    project = Project(tmp_path, SPIDER.format(url=site.url("/")), TEST_CLOSE_AFTER_RESOLVED="10")
    crawl = project.run(CRAWLSCHED_IMPORTANCE="spider_under_test.first")
    assert importance_of(crawl) == {"a": 2, "b": 1, "c": 1, "d": 1, "stated": 7}

    # Another function, and a request that names a known page with another importance.
    more = {"SAID": json.dumps({"d": 9}), "TEST_CLOSE_AFTER_RESOLVED": "60"}
    crawl = project.run(CRAWLSCHED_IMPORTANCE="spider_under_test.second", **more)
    assert importance_of(crawl) == {"a": 3, "b": 6, "c": 1.5, "d": 9, "stated": 7}
    assert crawl.stats["crawlsched/pages/importance_changed"] in (4, 5)  # d by the function first, if that was quicker

    # Once more the same function: nothing is touched.
    crawl = project.run(CRAWLSCHED_IMPORTANCE="spider_under_test.second", TEST_CLOSE_AFTER_RESOLVED="60")
    assert (
        "crawlsched/pages/importance_changed" not in crawl.stats
        or not crawl.stats["crawlsched/pages/importance_changed"]
    )

    # What a file states is not asked of the function any more.
    table = tmp_path / "weights.csv"
    table.write_text(f"url,importance\n{site.url('/a')},0.25\n")
    with redirect_stdout(StringIO()):
        assert main(["import", str(table), "--database", project.database_url]) == 0
    crawl = project.run(CRAWLSCHED_IMPORTANCE="spider_under_test.first", TEST_CLOSE_AFTER_RESOLVED="100")
    assert importance_of(crawl) == {"a": 0.25, "b": 1, "c": 1, "d": 9, "stated": 7}
