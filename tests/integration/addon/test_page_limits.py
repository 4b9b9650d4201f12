"""What ends a growth without end: how many URLs are pages, parameters that do not count, and Scrapy's DEPTH_LIMIT."""

from __future__ import annotations

from pathlib import Path

from tests.crawling import Crawl, Project
from tests.site import Site

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = [{url!r}]

    def parse(self, response):
        yield from response.follow_all(css="a")
"""


def links(*paths: str) -> str:
    return "".join(f'<a href="{path}">{path}</a>' for path in paths)


def crawl(folder: Path, site: Site, resolved: int, **settings: object) -> Crawl:
    spider = SPIDER.format(url=site.url("/"))
    close = str(resolved)
    return Project(folder, spider, CRAWLSCHED_BANDWIDTH="40/s", TEST_CLOSE_AFTER_RESOLVED=close, **settings).run(
        timeout=90.0
    )


def withheld(run: Crawl) -> int:
    store = run.store()
    try:
        (host,) = store.reader.hosts()
        return int(host.counts["withheld"]["max_pages"]["n"])
    finally:
        store.close()


def test_of_a_pattern_at_most_so_many_are_pages_also_after_a_restart(tmp_path: Path) -> None:
    """What is not taken is counted, and said once."""
    rule = '[["*/calendar/*", {"max_pages": 5}]]'
    with Site() as site:
        site.page("/", links("/news/1", "/calendar/0"))
        site.page("/news/1", "<p>news</p>")
        for day in range(30):
            site.page(f"/calendar/{day}", links(f"/calendar/{day + 1}", f"/calendar/{day + 2}"))
        crawl(tmp_path, site, 40, CRAWLSCHED_PAGES=rule)
        site.page("/", links("/calendar/20", "/calendar/21"))
        again = crawl(tmp_path, site, 40, CRAWLSCHED_PAGES=rule)
        asked = sum(len(site.visits(f"/calendar/{day}")) > 0 for day in range(32))
        assert len(site.visits("/news/1")) > 0
    assert asked == 5
    assert withheld(again) > 2
    assert again.log.count("are more than CRAWLSCHED_PAGES or CRAWLSCHED_MAX_PAGES lets in") == 1
    assert again.stats["crawlsched/withheld/max_pages"] >= 1


def test_a_collection_has_no_more_pages_than_it_may_have(tmp_path: Path) -> None:
    with Site() as site:
        site.page("/", links(*(f"/{number}" for number in range(20))))
        for number in range(20):
            site.page(f"/{number}", f"<p>{number}</p>")
        run = crawl(tmp_path, site, 30, CRAWLSCHED_MAX_PAGES="8")
        asked = sum(len(site.visits(f"/{number}")) > 0 for number in range(20))
    assert asked == 7
    assert withheld(run) >= 13


def test_urls_that_differ_in_ignored_parameters_are_one_page_asked_for_by_the_url_found_last(tmp_path: Path) -> None:
    """Also those that were found before the setting was made: the first of them stays."""
    with Site() as site:
        site.page("/", links(*(f"/shelf?sid={number}" for number in range(10))))
        site.page("/shelf", "<p>shelf</p>")
        crawl(tmp_path, site, 15)
        site.page("/", links("/shelf?sid=11"))
        run = crawl(tmp_path, site, 15, CRAWLSCHED_IGNORE_PARAMETERS="sid")
        urls = set(run.outcomes())
        n_old = [len(site.visits(f"/shelf?sid={number}")) for number in range(10)]
        again = crawl(tmp_path, site, 10, CRAWLSCHED_IGNORE_PARAMETERS="sid")
        assert [len(site.visits(f"/shelf?sid={number}")) for number in range(10)] == n_old
        assert len(site.visits("/shelf?sid=11")) > 2
    assert urls == set(again.outcomes()) == {site.url("/"), site.url("/shelf?sid=11")}
    assert "9 pages differ from others by CRAWLSCHED_IGNORE_PARAMETERS only" in run.log
    assert "by CRAWLSCHED_IGNORE_PARAMETERS only" not in again.log


def test_depth_limit_holds_over_restarts(tmp_path: Path) -> None:
    with Site() as site:
        site.page("/", links("/level/1"))
        for level in range(1, 9):
            site.page(f"/level/{level}", links(f"/level/{level + 1}"))
        for _ in range(3):
            crawl(tmp_path, site, 12, DEPTH_LIMIT="2")
        assert [len(site.visits(f"/level/{level}")) > 0 for level in range(1, 6)] == [True, True, False, False, False]
