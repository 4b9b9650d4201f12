"""Scrapy's delays are kept as plain Scrapy keeps them: never shorter, and no longer than its own draw."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import median

import pytest
from aiohttp import web

from tests.crawling import VISITING_SPIDER, Project
from tests.site import Site

RANDOM = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
FIXED = "127.0.0.5"
DELAY = 0.3


@pytest.fixture
def site() -> Iterator[Site]:
    with Site((*RANDOM, FIXED)) as site:
        yield site


def _scrapys_mean(n: int = 20_000) -> float:
    """Return the mean distance, in delays, that Scrapy's downloader keeps: it draws again each time that it looks."""
    rng, total = Random(0), 0.0
    for _ in range(n):
        waited, drawn = 0.0, rng.uniform(0.5, 1.5)
        while drawn > waited:
            waited, drawn = drawn, rng.uniform(0.5, 1.5)
        total += waited
    return total / n


def test_a_random_delay_is_a_draw(site: Site, tmp_path: Path) -> None:
    """With one request at a time, as `scrapy startproject` has it, each host is asked as often as by plain Scrapy."""
    asked: dict[str, list[float]] = {}

    def note(request: web.Request) -> web.Response:
        asked.setdefault(request.host.split(":")[0], []).append(time.monotonic())
        return web.Response(text="<p>x</p>", content_type="text/html")

    site.default = note
    urls = [site.url(f"/{number}", host) for number in range(60) for host in (*RANDOM, FIXED)]
    slots = {FIXED: {"concurrency": 1, "delay": DELAY, "jitter": 0.0, "randomize_delay": False}}
    Project(
        tmp_path,
        VISITING_SPIDER.format(urls=urls),
        CRAWLSCHED_BANDWIDTH="20/s",
        CRAWLSCHED_FIND_SOURCES="False",
        CRAWLSCHED_STARTS_FIRST="0",
        CLOSESPIDER_TIMEOUT="14",
        DOWNLOAD_DELAY=str(DELAY),
        DOWNLOAD_SLOTS=json.dumps(slots),
        CONCURRENT_REQUESTS_PER_DOMAIN="1",
    ).run()
    distances = {host: [b - a for a, b in pairwise(times)] for host, times in asked.items()}
    drawn = [distance / DELAY for host in RANDOM for distance in distances[host]]
    assert len(drawn) > 100
    assert min(drawn) > 0.45
    assert sum(drawn) / len(drawn) < 1.08 * _scrapys_mean()
    fixed = distances[FIXED]
    # One that the site saw late is followed sooner: the median tells, and no two come together.
    assert min(fixed) > 0.6 * DELAY
    assert 0.98 * DELAY < median(fixed) < 1.06 * DELAY
