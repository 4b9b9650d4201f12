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
        yield from response.follow_all(css="a")
"""


def _links(place: str, n: int) -> str:
    return "".join(f'<a href="/{place}/{number}">x</a>' for number in range(n))


def test_an_archive_leaves_known_pages_their_share(tmp_path: Path) -> None:
    with Site() as site:
        for path in (*(f"/shelf/{n}" for n in range(10)), *(f"/archive/{n}" for n in range(300))):
            site.page(path, f"<p>{path}</p>")
        site.page("/", _links("shelf", 10))
        project = Project(tmp_path, SPIDER.format(url=site.url("/")), CRAWLSCHED_BANDWIDTH="20/s")
        project.run(TEST_CLOSE_AFTER_RESOLVED="20")
        site.page("/", _links("shelf", 10) + _links("archive", 300))
        before = sum(len(site.visits(f"/shelf/{n}")) for n in range(10))
        project.run(TEST_CLOSE_AFTER_RESOLVED="150", timeout=90.0)
        again = sum(len(site.visits(f"/shelf/{n}")) for n in range(10)) - before
        n_new = sum(len(site.visits(f"/archive/{n}")) > 0 for n in range(300))
    assert n_new >= 25  # a busy machine takes its time to take 310 links in
    assert again >= 10
