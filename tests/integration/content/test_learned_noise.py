"""Noise is learned by second fetches and visits, edits of templates by other pages, and both survive a restart."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

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
    rows = [row for page in range(store.reader.next_page()) for row in store.reader.observations_of(page, 1000)]
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
    assert false_changes(crawl) <= 10  # told until it was known
    store = crawl.store()
    (template,) = (name for name in store.reader.learned() if not name.startswith("//"))
    assert template.startswith("127.0.0.1/http:")
    assert template.endswith("/news/*")
    assert store.reader.noise_mask(template)["places"]
    assert store.reader.facts([0])[0].recipe == "blocks/6"
    store.close()


def test_what_was_learned_survives_a_restart(site: Site, tmp_path: Path) -> None:
    """The second crawl begins with the mask of the first: not one false change."""
    urls = [site.page(f"/news/{n}", noisy(lambda _: "leaves and water")) for n in range(4)]
    first = project(site, tmp_path, urls)
    began = first.run()
    before = false_changes(began)
    again = first.run(TEST_CLOSE_AFTER_RESOLVED="60")
    assert false_changes(again) == before
    assert "crawlsched/resolved/changed" not in again.stats
    # What looks changed no more is not probed; only what might have returned to the living is.
    probes = "crawlsched/dispatched/probe"
    assert again.stats.get(probes, 0) < began.stats[probes]


def test_a_change_of_one_word_is_found_beside_the_noise(site: Site, tmp_path: Path) -> None:
    """After every 40 fetches a word is another one: each of these edits is found, and hardly anything else."""
    url = site.page("/news/1", noisy(lambda n: f"leaves and water, edition {'abcdefghijklmnop'[n // 40 % 16]}"))
    crawl = project(site, tmp_path, [url], TEST_CLOSE_AFTER_RESOLVED="150").run()
    store = crawl.store()
    rows = store.reader.observations_of(0, 1000)[::-1]
    store.close()
    late = [row for n, row in enumerate(rows) if n >= 20]  # by then the noise is known
    assert sum(row.changed is True for row in late) == pytest.approx(len(late) / 40, abs=1.01)


def test_a_release_in_the_header_is_told_once_and_is_no_change_of_any_page(site: Site, tmp_path: Path) -> None:
    """Eight pages name a release beside their article, another one after each 30 fetches.

    The last that names the one before is answered when others have named the next. The second crawl knows from the
    store what the pages share.
    """
    count = itertools.count()

    async def answer(request: web.Request) -> web.Response:
        n = next(count)
        await asyncio.sleep(0.1 if n % 30 == 29 else 0.0)
        cup = f"<main><h1>Cup {request.path}</h1><p>Of {request.path} and more</p></main>"
        return web.Response(
            text=f"<title>Tea</title><header>Tea 1.{n // 30} guide</header>{cup}", content_type="text/html"
        )

    urls = [site.page(f"/guide/{n}", answer) for n in range(8)]
    first = project(site, tmp_path, urls, CRAWLSCHED_BANDWIDTH="60/s")
    crawl = first.run(TEST_CLOSE_AFTER_RESOLVED="110")
    assert false_changes(crawl) <= 2  # of so few words as "1.1" the first two pages tell
    assert crawl.stats["crawlsched/template_edits"] >= 12
    delivered = (tmp_path / "seen.txt").read_text().splitlines()
    assert 8 + 2 <= len(delivered) <= 8 + 8
    again = first.run(TEST_CLOSE_AFTER_RESOLVED="60")
    assert false_changes(again) <= 2
    assert again.stats["crawlsched/template_edits"] >= 5
    store = again.store()
    (name,) = (name for name in store.reader.learned() if name.startswith("//"))
    assert name.startswith("//127.0.0.1 http:")
    assert name.endswith(" blocks/6")
    assert store.reader.noise_mask(name)["edits"]
    store.close()
