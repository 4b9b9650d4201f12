"""Noise is learned by second fetches, edits of templates by other pages, once for all, and both survive a restart."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiohttp import web

from crawlsched.change_detection import page_blocks
from tests.crawling import Crawl, Project
from tests.site import Site

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}

    def parse(self, response):
        with open("seen.txt", "a") as file:
            print(response.url, response.meta["crawlsched_changed"], file=file)
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


def noisy(text: Callable[[int], str]) -> Callable[[web.Request], web.Response]:
    """Answer with a text that may change with the number of the fetch, a clock and a counter around it."""
    count = itertools.count()

    def answer(request: web.Request) -> web.Response:
        n = next(count)
        page = f"<h1>Tea</h1><p>{text(n)}</p><p class=clock>12:{n % 60:02} and {n} s</p><b class=views>{n} views</b>"
        return web.Response(text=page, content_type="text/html")

    return answer


def project(site: Site, folder: Path, urls: list[str], **settings: str) -> Project:
    wanted = {"CRAWLSCHED_PROBES": "True", "CRAWLSCHED_BANDWIDTH": "30/s", "TEST_CLOSE_AFTER_RESOLVED": "120"}
    return Project(folder, SPIDER.format(urls=urls), **{**wanted, **settings})


def false_changes(crawl: Crawl) -> int:
    store = crawl.store()
    rows = [row for page in range(store.next_page()) for row in store.observations_of(page, 1000)]
    store.close()
    return sum(row.changed is True for row in rows)


def test_a_clock_and_a_counter_are_learned_once_for_all_pages_of_a_template(site: Site, tmp_path: Path) -> None:
    """Eight pages of one template: a few probes, each resolved once, and from then on nothing ever changes."""
    urls = [site.page(f"/news/{n}", noisy(lambda _: "leaves and water")) for n in range(8)]
    crawl = project(site, tmp_path, urls).run()
    probes = crawl.stats["crawlsched/dispatched/probe"]
    assert 1 <= probes <= 15
    assert crawl.stats["crawlsched/resolved/probed"] == crawl.stats["crawlsched/probes/made"] == probes
    assert crawl.stats["crawlsched/probes/noise_found"] >= 1
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]
    assert crawl.stats["crawlsched/slots/used"] >= crawl.stats["crawlsched/dispatched"]
    assert crawl.stats["crawlsched/resolved/unchanged"] > 60
    assert false_changes(crawl) <= 3  # before the noise was known, visits that were not probed
    store = crawl.store()
    assert store.masked_templates() == ["127.0.0.1/news/#"]
    assert store.noise_mask("127.0.0.1/news/#")["n_probes"] == probes
    assert store.facts([0])[0].recipe.startswith("blocks/3/")
    store.close()


def test_what_was_learned_survives_a_restart(site: Site, tmp_path: Path) -> None:
    """The second crawl begins with the mask of the first: not one false change."""
    urls = [site.page(f"/news/{n}", noisy(lambda _: "leaves and water")) for n in range(4)]
    first = project(site, tmp_path, urls)
    before = false_changes(first.run())
    again = first.run(TEST_CLOSE_AFTER_RESOLVED="60")
    assert false_changes(again) == before
    assert "crawlsched/resolved/changed" not in again.stats
    # What looks changed no more is not probed; only what might have returned to the living is.
    assert again.stats.get("crawlsched/dispatched/probe", 0) <= 5


def test_a_change_of_one_word_is_found_beside_the_noise(site: Site, tmp_path: Path) -> None:
    """After every 40 fetches a word is another one: each of these edits is found, and hardly anything else."""
    url = site.page("/news/1", noisy(lambda n: f"leaves and water, edition {'abcdefghijklmnop'[n // 40 % 16]}"))
    crawl = project(site, tmp_path, [url], TEST_CLOSE_AFTER_RESOLVED="150").run()
    store = crawl.store()
    rows = store.observations_of(0, 1000)[::-1]
    store.close()
    late = [row for n, row in enumerate(rows) if n >= 20]  # by then the noise is known
    assert sum(row.changed is True for row in late) == pytest.approx(len(late) / 40, abs=1.01)


def test_of_a_release_no_page_has_changed(site: Site, tmp_path: Path) -> None:
    """Eight pages name a release, another one after each 25 fetches; the first page of each waits for a sibling.

    The second crawl knows from the store what the pages share, and knows the next release by it.
    """
    count = itertools.count()

    def answer(request: web.Request) -> web.Response:
        n = 3 + next(count) // 25
        page = f"<title>Page {request.path} - Tea 1.{n}</title><h1>Tea 1.{n} guide: {request.path}</h1><p>Cup"
        return web.Response(text=page, content_type="text/html")

    urls = [site.page(f"/guide/{n}", answer) for n in range(8)]
    first = project(site, tmp_path, urls, CRAWLSCHED_BANDWIDTH="60/s")
    crawl = first.run(TEST_CLOSE_AFTER_RESOLVED="70")
    # A release that comes between the fetches of one judgement, or before all pages have been seen, may still do.
    assert false_changes(crawl) <= 1
    assert crawl.stats["crawlsched/template_edits"] >= 10
    assert 1 <= crawl.stats["crawlsched/probes/siblings"] <= 4
    again = first.run(TEST_CLOSE_AFTER_RESOLVED="35")
    assert false_changes(again) <= 2
    assert again.stats["crawlsched/template_edits"] >= 5
    store = again.store()
    (name,) = store.learned_sites()
    assert name == "//127.0.0.1 blocks/3"
    assert len(store.noise_mask(name)["edits"]) >= 4
    store.close()


@pytest.mark.parametrize("first", ["has no such words", "has an edit of its own"])
def test_where_the_first_sibling_tells_nothing_another_one_is_asked(site: Site, tmp_path: Path, first: str) -> None:
    """A release comes before the visit of the page after which */guide/7* was visited last, which so is asked first."""
    paths: list[str] = []
    released_at: list[int] = []

    def answer(request: web.Request) -> web.Response:
        is_odd = request.path == "/guide/7"
        before_it = [one for one, following in itertools.pairwise(paths) if following == "/guide/7"]
        if not released_at and len(paths) >= 24 and request.path == before_it[-1]:
            released_at.append(len(paths))
        paths.append(request.path)
        heading = "" if is_odd and first == "has no such words" else f"<h1>Tea 1.{3 + len(released_at)} guide</h1>"
        edited = " of its own" * (is_odd and first == "has an edit of its own") * len(released_at)
        return web.Response(text=f"{heading}<p>Cup {request.path}{edited}</p>", content_type="text/html")

    urls = [site.page(f"/guide/{n}", answer) for n in range(8)]
    settings = {"CONCURRENT_REQUESTS_PER_DOMAIN": "1", "TEST_CLOSE_AFTER_RESOLVED": "48"}
    crawl = project(site, tmp_path, urls, **settings).run()
    edited, asked, *then = paths[released_at[0] :]
    assert asked == "/guide/7"
    assert {"/guide/7", edited} < {asked, *then[:3]}  # the page itself is judged again, and yet another page was asked
    assert crawl.stats["crawlsched/probes/siblings"] >= 2
    delivered = (tmp_path / "seen.txt").read_text().splitlines()
    own_edits = 1 if first == "has an edit of its own" else 0
    assert [line.split()[0] for line in delivered[8:]] == [urls[7]] * own_edits
    assert false_changes(crawl) == own_edits


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
def test_a_change_that_waits_for_a_sibling_is_not_lost_with_the_crawl(site: Site, tmp_path: Path, end: int) -> None:
    """*In stock*, which all pages say, becomes *Sold out* on one; the crawl ends while it looks at another page.

    The next crawl finds the page changed, and delivers it once.
    """
    sold, told = threading.Event(), threading.Event()

    async def answer(request: web.Request) -> web.Response:
        is_sold = sold.is_set() and request.path == "/tea/5"
        if sold.is_set() and not is_sold and not told.is_set() and (site.visits("/tea/5") or [{}])[-1].get("seen"):
            waiting.set()
            while not told.is_set():
                await asyncio.sleep(0.01)
        if is_sold:
            site.visits("/tea/5")[-1]["seen"] = "sold out"
        page = f"<h1>Tea {request.path}</h1><p class=stock>{'Sold out' if is_sold else 'In stock'}</p><p>Cup"
        return web.Response(text=page, content_type="text/html")

    waiting = threading.Event()
    urls = [site.page(f"/tea/{n}", answer) for n in range(8)]
    first = project(site, tmp_path, urls, TEST_CLOSE_AFTER_RESOLVED="0", CONCURRENT_REQUESTS_PER_DOMAIN="1")
    process = first.start()
    until = time.monotonic() + 20
    while len(site.requests) < 20 and time.monotonic() < until:
        time.sleep(0.02)
    sold.set()
    assert waiting.wait(20)
    time.sleep(2.0)  # what was known when the sibling was asked is in the store by now
    process.send_signal(end)
    if end == signal.SIGTERM:
        time.sleep(0.3)
    told.set()
    first.finish(process)
    before = (tmp_path / "seen.txt").read_text().splitlines()
    assert sorted(before) == sorted(f"{url} True" for url in urls)
    first.run(TEST_CLOSE_AFTER_RESOLVED="24")
    assert (tmp_path / "seen.txt").read_text().splitlines()[len(before) :] == [f"{urls[5]} True"]


def test_what_stops_flickering_counts_again(site: Site, tmp_path: Path) -> None:
    """A site's clock is replaced by a word that stays: a page that says another word there later has changed.

    Meanwhile all pages are edited at each visit, so that visits are probed: the second fetch of one comes before
    eight others have been made, and brings the same text.
    """
    order = itertools.count()
    last_fetch: dict[int, int] = {}
    editions: dict[int, int] = {}
    opened_at: list[float] = []

    def page(number: int) -> Callable[[web.Request], web.Response]:
        def answer(request: web.Request) -> web.Response:
            n = next(order)
            if n - last_fetch.get(number, -100) > 8 and n < 150:
                editions[number] = n
            last_fetch[number] = n
            word = f"12:{n % 60:02} and {n} s" if n < 12 else "we are closed"
            if n >= 200 and number == 0:
                opened_at.append(time.time())
                word = "come in"
            text = f"<h1>Tea {number}</h1><p>leaves, edition {editions[number] * 977 % 10_007} of {number}</p>"
            page = f"{text}<p class=clock>{word}</p><b class=views>{n if n >= 12 else 0} views</b>"
            return web.Response(text=page, content_type="text/html")

        return answer

    urls = [site.page(f"/news/{number}", page(number)) for number in range(12)]
    crawl = project(
        site, tmp_path, urls, CRAWLSCHED_BANDWIDTH="60/s", TEST_CLOSE_AFTER_RESOLVED="260", CLOSESPIDER_TIMEOUT="60"
    ).run(timeout=90)
    assert opened_at
    store = crawl.store()
    mask = store.noise_mask("127.0.0.1/news/#")
    (first,) = [page for page in range(12) if store.facts([page])[0].url == urls[0]]
    since = [row for row in store.observations_of(first, 1000) if row.time > opened_at[0] - 0.001]
    store.close()
    blocks = page_blocks("<h1></h1><p></p><p class=clock>we are closed</p><b class=views>1 views</b>")
    closed, views = blocks.texts
    assert f"{views:x}" in mask["blocks"]
    assert f"{closed:x}" not in mask["blocks"], mask
    assert not mask["paths"]
    assert not mask["names"]
    assert [row.changed for row in since].count(True) == 1
