"""One fixed rate for everything: pages, redirects, robots.txt, POST requests; never a burst, hosts left in peace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web

from tests.crawling import Project
from tests.site import Site, most_in_a_second

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"

    async def start(self):
        for url in {urls!r}:
            yield scrapy.Request(url)
        for number in range({posts}):
            yield scrapy.FormRequest({post!r} + str(number), formdata={{"n": str(number)}}, callback=self.posted)

    def parse(self, response):
        pass

    def posted(self, response):
        with open("posted.txt", "a") as file:
            print(response.url, file=file)
"""


def are_apart(times: list[float], delay: float) -> bool:
    """Tell whether requests came so many seconds apart, on average and as far as a busy site can see each time."""
    gaps = np.diff(times)
    return bool(gaps.mean() > 0.95 * delay and gaps.min() > 0.7 * delay)


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(("127.0.0.1", "127.0.0.2")) as site:
        yield site


def test_no_second_has_more_than_its_share(site: Site, tmp_path: Path) -> None:
    """Redirects and robots.txt are paid for: what the server sees never exceeds 1.25 R + 1 in any second."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(40)]
    urls += [site.page(f"/r{number}", "", status=302, Location=f"/{number}") for number in range(20)]
    site.page("/robots.txt", "User-agent: *\n")
    project = Project(
        tmp_path,
        SPIDER.format(urls=urls, posts=0, post=""),
        CRAWLSCHED_BANDWIDTH="20/s",
        ROBOTSTXT_OBEY="True",
        CLOSESPIDER_TIMEOUT="6",
    )
    crawl = project.run()
    assert most_in_a_second(site.times) <= site.most_at(20)
    assert crawl.stats["crawlsched/slots/paid"] >= 1
    spent = crawl.stats["crawlsched/slots/used"] + crawl.stats["crawlsched/slots/paid"]
    assert len(site.requests) == pytest.approx(spent, abs=2)
    assert len(site.requests) / (site.times[-1] - site.times[0]) == pytest.approx(20, rel=0.1)


WATCHED = """
import asyncio
import json

import scrapy
from crawlsched.crawl.refresher import Refresher

class Spider(scrapy.Spider):
    name = "test"

    async def start(self):
        self.task = asyncio.ensure_future(self.watch())
        for url in {urls!r}:
            yield scrapy.Request(url)

    async def watch(self):
        refresher = Refresher.of(self.crawler)
        with open("watched.txt", "w") as file:
            while True:
                print(json.dumps([len(refresher.rate.line), refresher.visits.dispatched]), file=file, flush=True)
                await asyncio.sleep(0.02)

    def parse(self, response):
        pass
"""


def test_nothing_is_chosen_while_much_of_what_was_chosen_waits_for_its_turn(tmp_path: Path) -> None:
    """It would go seconds later, by what is known now.

    Eight robots.txt files come after two seconds, and let go at once all pages that were chosen meanwhile.
    """
    with Site(tuple(f"127.0.0.{number}" for number in range(1, 9))) as site:

        async def late(request: web.Request) -> web.Response:
            await asyncio.sleep(2.0)
            return web.Response(text="User-agent: *\n")

        site.page("/robots.txt", late)
        pages = [site.page(f"/{number}", "<p>x</p>") for number in range(200)]
        urls = [url.replace("127.0.0.1", f"127.0.0.{1 + n % 8}") for n, url in enumerate(pages)]
        project = Project(
            tmp_path,
            WATCHED.format(urls=urls),
            CRAWLSCHED_BANDWIDTH="20/s",
            ROBOTSTXT_OBEY="True",
            CLOSESPIDER_TIMEOUT="8",
        )
        project.run()
    watched = [json.loads(line) for line in (tmp_path / "watched.txt").read_text().splitlines()]
    behind = [(before[1], after[1]) for before, after in pairwise(watched) if min(before[0], after[0]) > 5]
    assert len(behind) > 20
    assert all(before == after for before, after in behind)
    assert watched[-1][0] <= 5
    assert len(site.requests) > 100


def test_other_requests_share_the_rate_and_starve_nothing(site: Site, tmp_path: Path) -> None:
    """POST requests go through the fallback scheduler, in turn with pages, under the same rate."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(5)]
    for number in range(30):
        site.page(f"/post/{number}", "<p>posted</p>")
    project = Project(
        tmp_path,
        SPIDER.format(urls=urls, posts=30, post=site.url("/post/")),
        CRAWLSCHED_BANDWIDTH="20/s",
        CLOSESPIDER_TIMEOUT="5",
    )
    crawl = project.run()
    posted = [path for path, _ in site.requests if path.startswith("/post/")]
    assert len(posted) == 30
    assert len((tmp_path / "posted.txt").read_text().splitlines()) == 30
    first = [path for path, _ in site.requests[:40]]
    assert 10 <= sum(not path.startswith("/post/") for path in first) <= 30
    assert most_in_a_second(site.times) <= site.most_at(20)
    assert set(crawl.outcomes()) == set(urls)


def test_a_slow_host_steps_aside(site: Site, tmp_path: Path) -> None:
    """While every connection to one host is busy the slots go to the other, and none waits in a queue."""

    async def slow(request: web.Request) -> web.Response:
        await asyncio.sleep(2.0)
        return web.Response(text="<p>slow</p>")

    urls = []
    for number in range(30):
        site.page(f"/slow/{number}", slow)
        urls.append(site.url(f"/slow/{number}"))
        site.page(f"/fast/{number}", "<p>fast</p>")
        urls.append(site.url(f"/fast/{number}", "127.0.0.2"))
    project = Project(
        tmp_path,
        SPIDER.format(urls=urls, posts=0, post=""),
        CRAWLSCHED_BANDWIDTH="30/s",
        CONCURRENT_REQUESTS_PER_DOMAIN="3",
        # Otherwise the others wait for start pages that are slow.
        CRAWLSCHED_STARTS_FIRST="0",
        CLOSESPIDER_TIMEOUT="5",
    )
    crawl = project.run()
    fast = sum(path.startswith("/fast/") for path, _ in site.requests)
    slow_ones = sum(path.startswith("/slow/") for path, _ in site.requests)
    assert slow_ones <= 3 * 4
    assert fast >= 100
    assert crawl.stats.get("crawlsched/slots/idle", 0) <= 5


def test_when_every_host_is_busy_the_slot_says_so(site: Site, tmp_path: Path) -> None:
    """One host with a DOWNLOAD_DELAY cannot use the rate; those slots are counted as without a free host."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
    project = Project(
        tmp_path,
        SPIDER.format(urls=urls, posts=0, post=""),
        CRAWLSCHED_BANDWIDTH="20/s",
        DOWNLOAD_DELAY="0.5",
        DOWNLOAD_DELAY_JITTER="0",
        CLOSESPIDER_TIMEOUT="4",
    )
    crawl = project.run()
    assert are_apart(site.times, 0.5)
    assert crawl.stats["crawlsched/slots/no_free_host"] >= 40
    assert crawl.stats.get("crawlsched/slots/idle", 0) <= 5


def test_retry_after_lets_the_host_rest(site: Site, tmp_path: Path) -> None:
    """After 429 with Retry-After: 3 nothing goes to that host for three seconds, and the others go on."""

    def too_many(request: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": "3"})

    site.page("/too-many", too_many)
    urls = [site.url("/too-many")]
    for number in range(10):
        site.page(f"/{number}", "<p>x</p>")
        urls += [site.url(f"/{number}"), site.url(f"/{number}", "127.0.0.2")]
    Project(
        tmp_path,
        SPIDER.format(urls=urls, posts=0, post=""),
        CRAWLSCHED_BANDWIDTH="20/s",
        RETRY_TIMES="5",
        CRAWLSCHED_STARTS_FIRST="0",
        CLOSESPIDER_TIMEOUT="5",
    ).run()
    on_first = [
        time
        for time, (_, headers) in zip(site.times, site.requests, strict=True)
        if headers["host"].startswith("127.0.0.1")
    ]
    refused_at = next(time for time, (path, _) in zip(site.times, site.requests, strict=True) if path == "/too-many")
    resting = [time for time in on_first if refused_at + 0.3 < time < refused_at + 2.8]
    assert resting == []
    others = sum(headers["host"].startswith("127.0.0.2") for _, headers in site.requests)
    assert others >= 40
