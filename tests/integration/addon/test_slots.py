"""One fixed rate for everything: pages, redirects, robots.txt, POST requests; never a burst, hosts left in peace."""

import asyncio
import json
import time
from itertools import pairwise
from math import e
from statistics import mean, median

import numpy as np
import pytest
from aiohttp import web

from tests.crawling import Project, spider
from tests.site import Site, most_in_a_second

POSTS = """
async def start(self):
    async for request in super().start():
        yield request
    for number in range(30):
        yield scrapy.FormRequest({post!r} + str(number), formdata={{"n": str(number)}}, callback=self.posted)

def posted(self, response):
    yield {{"posted": response.url}}
"""


def are_apart(times: list[float], delay: float) -> bool:
    """Tell whether requests came so many seconds apart: on average, and any four of them, though a site was late."""
    at = np.array(times)
    return bool(np.diff(at).mean() > 0.95 * delay and (at[3:] - at[:-3]).min() > 2.0 * delay)


def test_no_second_has_more_than_its_share(site, tmp_path):
    """Redirects and robots.txt are paid for: what the server sees never exceeds 1.25 R + 1 in any second."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(40)]
    urls += [site.page(f"/r{number}", "", status=302, Location=f"/{number}") for number in range(20)]
    site.page("/robots.txt", "User-agent: *\n")
    project = Project(tmp_path, urls, bandwidth="20/s", find_sources=True, ROBOTSTXT_OBEY=True)
    crawl = project.run_until(lambda: len(site.requests) > 120)
    assert most_in_a_second(site.times) <= site.most_at(20)
    assert crawl.stats["crawlsched/slots/paid"] >= 1
    spent = crawl.stats["crawlsched/slots/used"] + crawl.stats["crawlsched/slots/paid"]
    assert len(site.requests) == pytest.approx(spent, abs=2)
    assert len(site.requests) / (site.times[-1] - site.times[0]) < 1.1 * 20


WATCHES = """
async def start(self):
    self.task = asyncio.ensure_future(self.watch())
    async for request in super().start():
        yield request

async def watch(self):
    refresher = Refresher.of(self.crawler)
    with open("watched.txt", "w") as file:
        while True:
            print(json.dumps([refresher.rate.n_waiting, refresher.visits.dispatched]), file=file, flush=True)
            await asyncio.sleep(0.02)
"""


def test_nothing_is_chosen_while_much_of_what_was_chosen_waits_for_its_turn(tmp_path):
    """It would go seconds later, by what is known now.

    Eight robots.txt files come after two seconds, and let go at once all pages that were chosen meanwhile.
    """
    with Site(tuple(f"127.0.0.{number}" for number in range(1, 9))) as site:

        async def late(request):
            await asyncio.sleep(2.0)
            return web.Response(text="User-agent: *\n")

        site.page("/robots.txt", late)
        pages = [site.page(f"/{number}", "<p>x</p>") for number in range(200)]
        urls = [url.replace("127.0.0.1", f"127.0.0.{1 + n % 8}") for n, url in enumerate(pages)]
        imports = "import asyncio, json\nfrom crawlsched.crawl.refresher import Refresher"
        watched = spider(urls, before=imports, also=WATCHES)
        project = Project(tmp_path, watched, bandwidth="20/s", ROBOTSTXT_OBEY=True)
        project.run_until(lambda: len(site.requests) > 120)
    seen = [json.loads(line) for line in project.lines("watched.txt")]
    behind = [(before[1], after[1]) for before, after in pairwise(seen) if min(before[0], after[0]) > 5]
    assert len(behind) > 20
    assert all(before == after for before, after in behind)
    assert seen[-1][0] <= 5
    assert most_in_a_second(site.times) <= site.most_at(20)


def test_other_requests_share_the_rate_and_starve_nothing(site, tmp_path):
    """POST requests go through the fallback scheduler, in turn with pages, under the same rate."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(5)]
    site.default = lambda request: "<p>posted</p>"
    posting = spider(urls, also=POSTS.format(post=site.url("/post/")))
    crawl = Project(tmp_path, posting, bandwidth="20/s").run_until(lambda: len(site.requests) > 90)
    assert len([path for path, _ in site.requests if path.startswith("/post/")]) == len(crawl.items) == 30
    first = [path for path, _ in site.requests[:40]]
    assert 10 <= sum(not path.startswith("/post/") for path in first) <= 30
    assert most_in_a_second(site.times) <= site.most_at(20)
    assert set(crawl.outcomes()) == set(urls)


def test_a_slow_host_steps_aside(site, tmp_path):
    """While every connection to one host is busy the slots go to the other, and none waits in a queue."""

    async def slow(request):
        await asyncio.sleep(2.0)
        return web.Response(text="<p>slow</p>")

    urls = []
    for number in range(30):
        urls.append(site.page(f"/slow/{number}", slow))
        site.page(f"/fast/{number}", "<p>fast</p>")
        urls.append(site.url(f"/fast/{number}", "127.0.0.2"))
    # With CRAWLSCHED_STARTS_FIRST the others would wait for start pages that are slow.
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": 3, "starts_first": 0}
    crawl = Project(tmp_path, urls, bandwidth="30/s", **settings).run_until(lambda: len(site.requests) > 120)
    n_slow = sum(path.startswith("/slow") for path, _ in site.requests)
    assert 3 <= n_slow <= 3 * (1 + (site.times[-1] - site.times[0]) / 2.0)
    assert crawl.stats.get("crawlsched/slots/idle", 0) <= 5


def test_when_every_host_is_busy_the_slot_says_so(site, tmp_path):
    """One host with a DOWNLOAD_DELAY cannot use the rate; those slots are counted as without a free host."""
    urls = [site.page(f"/{number}", "<p>x</p>") for number in range(20)]
    settings = {"DOWNLOAD_DELAY": 0.5, "DOWNLOAD_DELAY_JITTER": 0}
    crawl = Project(tmp_path, urls, bandwidth="20/s", **settings).run_until(lambda: len(site.requests) > 7)
    assert are_apart(site.times, 0.5)
    assert crawl.stats["crawlsched/slots/no_free_host"] >= 5 * len(site.requests)
    assert crawl.stats.get("crawlsched/slots/idle", 0) <= 5


def test_retry_after_lets_the_host_rest(site, tmp_path):
    """After 429 with Retry-After: 3 nothing goes to that host for three seconds, and the others go on."""
    urls = [site.page("/too-many", "", status=429, Retry_After="3")]
    for number in range(10):
        urls += [site.page(f"/{number}", "<p>x</p>"), site.url(f"/{number}", "127.0.0.2")]
    project = Project(tmp_path, urls, bandwidth="20/s", RETRY_TIMES=5, starts_first=0)
    project.run_until(lambda: len(site.requests) > 90)
    asked = [(at, path, headers["host"]) for at, (path, headers) in zip(site.times, site.requests, strict=True)]
    refused_at = next(at for at, path, _ in asked if path == "/too-many")
    on_first = [at for at, _, host in asked if host.startswith("127.0.0.1")]
    assert not [at for at in on_first if refused_at + 0.3 < at < refused_at + 2.8]
    assert asked[-1][0] > refused_at + 2.8


# The mean distance, in delays, that Scrapy's downloader keeps: each time that it looks it draws again, 0.5 to 1.5.
SCRAPYS_MEAN = e - 1.5
RANDOM, FIXED, DELAY = tuple(f"127.0.0.{number}" for number in range(1, 5)), "127.0.0.5", 0.3


def test_a_random_delay_is_a_draw(tmp_path):
    """With one request at a time, as `scrapy startproject` has it, each host is asked as often as by plain Scrapy."""
    asked = {}

    def note(request):
        asked.setdefault(request.host.split(":")[0], []).append(time.monotonic())
        return "<p>x</p>"

    with Site((*RANDOM, FIXED)) as site:
        site.default = note
        urls = [site.url(f"/{number}", host) for number in range(60) for host in (*RANDOM, FIXED)]
        slots = {FIXED: {"concurrency": 1, "delay": DELAY, "jitter": 0.0, "randomize_delay": False}}
        settings = {"DOWNLOAD_DELAY": DELAY, "DOWNLOAD_SLOTS": slots, "CONCURRENT_REQUESTS_PER_DOMAIN": 1}
        Project(tmp_path, urls, bandwidth="20/s", starts_first=0, **settings).run_until(
            lambda: len(site.requests) > 200
        )
    distances = {host: [b - a for a, b in pairwise(times)] for host, times in asked.items()}
    drawn = sorted(distance for host in RANDOM for distance in distances[host])
    assert drawn[len(drawn) // 20] > 0.4 * DELAY  # what the site saw late is followed sooner
    assert median(distances[FIXED]) > 0.98 * DELAY
    # By how much a busy machine is late both show: the fixed delay says how long the others had to be.
    assert median(distances[FIXED]) < 0.95 * median(drawn)
    assert mean(drawn) < 1.08 * SCRAPYS_MEAN * mean(distances[FIXED])


@pytest.mark.parametrize("one_pass", [True, False])
def test_a_slow_host_is_asked_for_all_its_pages_before_it_is_asked_for_one_twice(site, tmp_path, one_pass):
    """It wants a second between two requests, and we could ask ten times; in one pass it is asked for each once."""
    site.page("/robots.txt", "User-agent: *\nCrawl-delay: 1\n")
    site.default = lambda request: f"<h1>Shelf {request.path}</h1><p>10 in stock</p>"
    paths = [f"/shelf/{number}" for number in range(7)]
    settings = {"ROBOTSTXT_OBEY": True, "probes": True, "one_pass": one_pass, "find_sources": True}
    urls = [site.url(path) for path in paths]
    crawl = Project(tmp_path, urls, bandwidth="10/s", visits=7, seconds=30, **settings).run()
    asked = [path for path, _ in site.requests if path != "/robots.txt"]
    assert sorted(asked[:7]) == paths
    if one_pass:
        assert "crawlsched/dispatched/probe" not in crawl.stats
