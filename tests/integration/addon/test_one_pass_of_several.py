"""One pass of a collection that several processes share: they end together, when each page was tried once."""

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from socket import socket

import pytest

from crawlsched.store import schema
from tests import children
from tests.crawling import Project
from tests.many_hosts import HOSTS, PAGES_PER_HOST

ALL = {(host, page) for host in HOSTS for page in range(PAGES_PER_HOST)}
SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["http://{host}:{port}/0"]

    def parse(self, response):
        for link in response.css("a"):
            yield response.follow(link)
"""


@pytest.fixture
def crawls(tmp_path, postgresql_url):
    """Two processes of one crawl; their site writes down what it is asked."""
    schema.upgrade(postgresql_url)
    with socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    site = children.start(sys.executable, "-m", "tests.many_hosts", port, tmp_path / "site.log", stdout=subprocess.PIPE)
    assert site.stdout.readline() == "serving\n"
    settings = {
        "CRAWLSCHED_DATABASE_URL": postgresql_url,
        "CRAWLSCHED_SHARDS": 4,
        "CRAWLSCHED_BANDWIDTH": "60/s",
        "CRAWLSCHED_ONE_PASS": True,
        "CLOSESPIDER_TIMEOUT": 0,
        "ROBOTSTXT_OBEY": False,
    }
    projects = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        projects.append(Project(tmp_path / name, SPIDER.format(host=HOSTS[0], port=port), USER_AGENT=name, **settings))
    return projects


def asked(folder: Path) -> list[tuple[str, int, str]]:
    lines = (line.split() for line in (folder / "site.log").read_text().splitlines())
    return [(host, int(page), name) for _, host, page, name in lines]


def test_processes_end_when_each_page_of_all_was_tried_once(crawls, tmp_path) -> None:
    """Also where one of them is killed on the way. The pages are found by links from one shard to another."""
    first, second = (crawl.start() for crawl in crawls)
    until = time.monotonic() + 30
    while len({name for *_, name in asked(tmp_path)}) < 2:
        assert time.monotonic() < until
        time.sleep(0.05)
    first.kill()
    crawls[0].finish(first)
    done = crawls[1].finish(second)
    assert (done.returncode, done.stats["finish_reason"]) == (0, "finished"), done.log[-3000:]
    found = asked(tmp_path)
    assert {(host, page) for host, page, _ in found} == ALL
    # What the killed one had not written down is tried again: half a second of visits, and a little more.
    assert len(found) - len(ALL) < 60
    # The next pass: each page once, by one of the two; the page of a start request at the start of each.
    for crawl, process in zip(crawls, [crawl.start() for crawl in crawls], strict=True):
        done = crawl.finish(process)
        assert (done.returncode, done.stats["finish_reason"]) == (0, "finished"), done.log[-3000:]
    again = asked(tmp_path)[len(found) :]
    times = Counter((host, page) for host, page, _ in again)
    assert times.pop((HOSTS[0], 0)) <= 2
    assert times == dict.fromkeys(ALL - {(HOSTS[0], 0)}, 1)
    assert {name for *_, name in again} == {"first", "second"}
