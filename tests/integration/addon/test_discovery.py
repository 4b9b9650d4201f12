"""A crawl that finds an archive goes on with the pages that it knows."""

from __future__ import annotations

from pathlib import Path

from tests.crawling import Project
from tests.site import Site

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = [{url!r}]

    def parse(self, response):
        for number in range(10):
            yield response.follow(f"/shelf/{{number}}")
        for number in range(300):
            yield response.follow(f"/archive/{{number}}")
"""


def test_an_archive_leaves_known_pages_their_share(tmp_path: Path) -> None:
    with Site() as site:
        site.page("/", "<p>all</p>")
        for path in (*(f"/shelf/{n}" for n in range(10)), *(f"/archive/{n}" for n in range(300))):
            site.page(path, f"<p>{path}</p>")
        Project(
            tmp_path, SPIDER.format(url=site.url("/")), CRAWLSCHED_BANDWIDTH="20/s", TEST_CLOSE_AFTER_RESOLVED="150"
        ).run(timeout=90.0)
        again = sum(len(site.visits(f"/shelf/{n}")) - 1 for n in range(10))
        n_new = sum(len(site.visits(f"/archive/{n}")) > 0 for n in range(300))
    assert n_new >= 25  # a busy machine takes its time to take 310 links in
    assert again >= 10
