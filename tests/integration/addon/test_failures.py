"""What goes wrong outside is counted or said in a sentence, and the crawl goes on where it can."""

from __future__ import annotations

import json
import os
import random
from itertools import pairwise
from pathlib import Path

import pytest
from aiohttp import web

from tests.crawling import Project
from tests.site import Site

SPIDER = """
import os, resource, scrapy
from scrapy.utils.asyncio import call_later

class FullDisk:
    # For four seconds the database's log may not grow any more: for SQLite that is a full disk.
    @classmethod
    def from_crawler(cls, crawler):
        if crawler.settings.getbool("TEST_FULL_DISK"):
            call_later(2.0, cls.fill)
            call_later(6.0, cls.empty)
        return cls()

    @staticmethod
    def fill():
        size = os.path.getsize("crawl.db-wal")
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    @staticmethod
    def empty():
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}

    def parse(self, response):
        pass
"""


def test_a_full_disk_stops_dispatching_and_loses_nothing(tmp_path: Path) -> None:
    """One line says so; the crawl waits, goes on when there is room, and every visit is in the store."""
    with Site() as site:
        urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
        site.page("/robots.txt", "")
        project = Project(
            tmp_path,
            SPIDER.format(urls=urls),
            CRAWLSCHED_BANDWIDTH="20/s",
            TEST_FULL_DISK="True",
            EXTENSIONS=json.dumps({"spider_under_test.FullDisk": 0, "spider_under_test._Closer": 1}),
            CLOSESPIDER_TIMEOUT="9",
        )
        crawl = project.run()
        gaps = [after - before for before, after in pairwise(site.times)]
        assert max(gaps) > 0.5, "nothing stopped although nothing could be written"
        assert gaps[-1] < 0.5, "it did not go on"
        lines = [line for line in crawl.log.splitlines() if "crawlsched.store" in line and "full" in line]
        assert 1 <= len(lines) <= 2
        in_store = sum(len(ends) for ends in crawl.outcomes().values())
        sources = crawl.stats["crawlsched/resolved"] - in_store
        assert 0 <= sources <= 1  # robots.txt is a visit, and no page's
        assert crawl.stats["crawlsched/resolved"] == crawl.stats["crawlsched/dispatched"]


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
            CRAWLSCHED_SITEMAPS_FROM_ROBOTS="False",
            CRAWLSCHED_STARTS_FIRST="0",
            CLOSESPIDER_TIMEOUT="10",
            LOG_LEVEL="ERROR",
        )
        crawl = project.run()
        assert crawl.outcomes()[site.url("/huge")][0] == "changed"
        # While the huge page was on its way and being read, the others were visited again and again.
        assert len([path for path, _ in site.requests if path != "/huge"]) > 60


def test_garbage_is_content_like_any_other(tmp_path: Path) -> None:
    """Random bytes under any content type change or do not change, and nothing raises."""
    rng = random.Random(1)
    types = ["text/html", "application/json", "text/xml", "image/png", "", "text/html; charset=nonsense", "a/b/c"]
    with Site() as site:
        urls = []
        for number, content_type in enumerate(types):
            noise = rng.randbytes(2000)
            headers = {"Content-Type": content_type} if content_type else {}

            def answer(request: web.Request, body: bytes = noise, headers: dict[str, str] = headers) -> web.Response:
                return web.Response(body=body, headers={**headers, "ETag": "\x80\xff", "Last-Modified": "yesterday"})

            urls.append(site.page(f"/{number}", answer))
        crawl = Project(
            tmp_path,
            SPIDER.format(urls=urls),
            CRAWLSCHED_SITEMAPS_FROM_ROBOTS="False",
            TEST_CLOSE_AFTER_RESOLVED=str(3 * len(types)),
        ).run()
        assert "Traceback" not in crawl.log
        for ends in crawl.outcomes().values():
            assert ends[0] == "changed"
            assert set(ends[1:]) <= {"unchanged", "dropped"}  # what the end of the crawl cut short


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(b"this is no database at all" * 100, "is not a database"), (b"SQLite format 3\0" + bytes(5000), "")],
)
def test_a_file_that_is_no_database_of_ours_is_left_as_it_is(tmp_path: Path, content: bytes, sentence: str) -> None:
    """One sentence, nothing fetched, and not a byte changed."""
    with Site() as site:
        (tmp_path / "crawl.db").write_bytes(content)
        crawl = Project(tmp_path, SPIDER.format(urls=[site.page("/", "<p>x</p>")])).run()
        assert crawl.returncode == 1
        assert "crawlsched cannot start: " in crawl.log
        assert sentence in crawl.log
        assert len(crawl.log.split("crawlsched cannot start: ")[1].splitlines()) < 25
        assert (tmp_path / "crawl.db").read_bytes() == content
        assert site.requests == []


def test_a_database_that_cannot_be_reached_is_a_sentence(tmp_path: Path) -> None:
    """A folder that does not exist, and a server that does not answer."""
    with Site() as site:
        for url in ("sqlite:////nowhere/at/all.db", "postgresql://127.0.0.1:1/none"):
            project = Project(tmp_path, SPIDER.format(urls=[site.page("/", "<p>x</p>")]), CRAWLSCHED_DATABASE_URL=url)
            crawl = project.run()
            [line] = [line for line in crawl.log.splitlines() if "crawlsched cannot start: " in line]
            assert url.split("://")[1].split("/")[-1] in line
            assert site.requests == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user's rights to be taken away")
def test_a_read_only_database_is_a_sentence(tmp_path: Path) -> None:
    """A database that may not be written stops the start."""
    with Site() as site:
        url = site.page("/", "<p>x</p>")
        project = Project(tmp_path, SPIDER.format(urls=[url]), TEST_CLOSE_AFTER_RESOLVED="1")
        project.run()
        read_only = f"sqlite:///file:{tmp_path / 'crawl.db'}?mode=ro&uri=true"
        crawl = project.run(CRAWLSCHED_DATABASE_URL=read_only)
        assert "crawlsched cannot start: " in crawl.log
