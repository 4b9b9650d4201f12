"""What goes wrong outside is counted or said in a sentence, and the crawl goes on where it can."""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from aiohttp import web

from crawlsched.store import Store
from tests.crawling import Project
from tests.site import Site

SPIDER = """
import os, resource, scrapy
from scrapy.utils.asyncio import call_later
from crawlsched.crawl import collection

collection._LAST_WRITES = 2.0

class FullDisk:
    # While there is a file "full" the database's log may not grow any more: for SQLite that is a full disk.
    @classmethod
    def from_crawler(cls, crawler):
        self = cls()
        self.limit = resource.RLIM_INFINITY
        self.look()
        return self

    def look(self):
        limit = resource.RLIM_INFINITY
        if os.path.exists("full"):
            limit = os.path.getsize("crawl.db-wal") if self.limit == limit else self.limit
        if limit != self.limit:
            self.limit = limit
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        call_later(0.05, self.look)

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}

    def parse(self, response):
        pass
"""


def test_a_full_disk_stops_dispatching_and_loses_nothing(tmp_path: Path) -> None:
    """One line says so; the crawl waits and goes on when there is room. What is not written at the end is said."""
    with Site() as site:
        urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
        site.page("/robots.txt", "")
        project = Project(
            tmp_path,
            SPIDER.format(urls=urls),
            CRAWLSCHED_BANDWIDTH="20/s",
            EXTENSIONS=json.dumps({"spider_under_test.FullDisk": 0, "spider_under_test._Closer": 1}),
        )
        process = project.start()
        _wait_for(lambda: len(site.times) > 30)
        (tmp_path / "full").touch()
        project.wait_for_log("Nothing can be written: ")
        _wait_for(lambda: time.monotonic() - site.times[-1] > 0.7)
        (tmp_path / "full").unlink()
        project.wait_for_log("nothing is lost.")
        n_before = len(site.times)
        _wait_for(lambda: len(site.times) > n_before + 20)
        (tmp_path / "full").touch()
        time.sleep(1.0)
        process.terminate()
        crawl = project.finish(process)
        assert crawl.log.count("Nothing can be written: ") == 2
        assert crawl.log.count("The database can be written again after") == 1
        assert re.search(r"\d+ rows could not be written within 2 s of the end and are lost: ", crawl.log)
        # Nothing but what the last moments have brought, in which nothing could be written; robots.txt is no page.
        in_store = sum(len(ends) for ends in crawl.outcomes().values())
        assert n_before - 1 <= in_store < crawl.stats["crawlsched/resolved"]
        assert crawl.stats["crawlsched/resolved"] == crawl.stats["crawlsched/dispatched"]


def _wait_for(is_so: Callable[[], bool], timeout: float = 20.0) -> None:
    until = time.monotonic() + timeout
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_crawl_whose_database_is_another_ones_ends_and_says_why(tmp_path: Path) -> None:
    """Deleted under it, or taken over by force: the next heartbeat notices, and the exit code is 1."""
    with Site() as site:
        urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
        projects = {}
        for name in ("deleted", "taken"):
            folder = tmp_path / name
            folder.mkdir()
            projects[name] = Project(
                folder, SPIDER.format(urls=urls), CRAWLSCHED_FIND_SOURCES="False", CLOSESPIDER_TIMEOUT="60"
            )
        processes = {name: project.start() for name, project in projects.items()}
        for project in projects.values():
            project.wait_for_log("Spider opened")
        _wait_for(lambda: len(site.requests) > 60)
        for file in (tmp_path / "deleted").glob("crawl.db*"):
            file.unlink()
        with closing(Store.open(projects["taken"].database_url, "test")) as other:
            other.take_lease("another", force=True)
        crawls = {name: projects[name].finish(process) for name, process in processes.items()}
    for name, reason, sentence in (
        ("deleted", "crawlsched_database_replaced", "was deleted"),
        ("taken", "crawlsched_lease_lost", "taken over by another process"),
    ):
        crawl = crawls[name]
        assert crawl.returncode == 1
        assert crawl.stats["finish_reason"] == reason
        assert sentence in crawl.log
        assert not re.search("Traceback|no such table|nothing is lost", crawl.log)
    assert not (tmp_path / "deleted" / "crawl.db").exists()  # nor is an empty one made in its place


def test_a_huge_body_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """A page of 100 MB is fetched and judged while the slots go on."""
    body = b"<html><body>" + b"<p>some text &amp; more</p>" * 4_000_000 + b"</body></html>"
    with Site(("127.0.0.1", "127.0.0.2")) as site:
        site.page("/huge", lambda request: web.Response(body=body, content_type="text/html"))
        for number in range(20):
            site.page(f"/{number}", "<p>x</p>")
        urls = [site.url(f"/{number}", "127.0.0.2") for number in range(20)] + [site.url("/huge")]
        project = Project(
            tmp_path,
            SPIDER.format(urls=urls),
            CRAWLSCHED_BANDWIDTH="20/s",
            CRAWLSCHED_FIND_SOURCES="False",
            CRAWLSCHED_STARTS_FIRST="0",
            CLOSESPIDER_TIMEOUT="10",
            LOG_LEVEL="ERROR",
        )
        crawl = project.run()
        assert crawl.outcomes()[site.url("/huge")][0] == "changed"
        # While the huge page was on its way and being read, the others were visited again and again.
        assert len([path for path, _ in site.requests if path != "/huge"]) > 60


BOMBS = """
import resource
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}
    custom_settings = {{"RETRY_ENABLED": False}}

    def parse(self, response):
        self.crawler.stats.set_value("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def test_bodies_that_unfold_to_a_hundredfold_cost_little_more_than_without_us(tmp_path: Path) -> None:
    """Pages of 66 MB that come as 128 KB, several at once: one is read at a time, up to a limit."""
    body = gzip.compress(b"<p>bomb</p>" * 6_000_000, 9)
    peaks = []
    with Site() as site:
        site.default = lambda request: web.Response(
            body=body, headers={"Content-Encoding": "gzip"}, content_type="text/html"
        )
        urls = [site.url(f"/{number}") for number in range(2)]
        for addons in ({"crawlsched.Addon": 500}, {}):
            folder = tmp_path / str(len(addons))
            folder.mkdir()
            crawl = Project(
                folder,
                BOMBS.format(urls=urls),
                ADDONS=json.dumps(addons),
                CRAWLSCHED_ONE_PASS="True",
                CRAWLSCHED_FIND_SOURCES="False",
            ).run()
            assert crawl.stats["response_received_count"] == 2
            peaks.append(crawl.stats["peak"])
    assert peaks[0] - peaks[1] < 300.0
