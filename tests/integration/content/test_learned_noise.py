"""Noise is learned by second fetches and visits, edits of templates by other pages, and both survive a restart."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from tests.crawling import YIELDS, Crawl, Project, spider
from tests.site import Site


def noisy() -> Callable[[web.Request], web.Response]:
    """Answer with a text, and around it a clock and a counter of fetches."""
    count = itertools.count()

    def answer(request: web.Request) -> web.Response:
        n = next(count)
        clock = f"<p class=clock>12:{n % 60:02} and {n} s</p><b class=views>{n} views</b>"
        return web.Response(text=f"<h1>Tea</h1><p>leaves and water</p>{clock}", content_type="text/html")

    return answer


def project(folder: Path, urls: list[str], **settings: object) -> Project:
    given = {"probes": True, "bandwidth": "30/s", "visits": 120, **settings}
    return Project(folder, spider(urls, YIELDS), **given)


def false_changes(crawl: Crawl) -> int:
    return sum(row.changed is True for page in crawl.pages().values() for row in crawl.visits(page.page))


def learned(crawl: Crawl, *, of_site: bool) -> tuple[str, dict[str, Any]]:
    """Return the name of what was learned of a template, or of a site, and what it is."""
    names = crawl.read(lambda store: list(store.reader.learned()))
    (name,) = (name for name in names if name.startswith("//") == of_site)
    return name, crawl.read(lambda store: store.reader.noise_mask(name)) or {}


def test_a_clock_and_a_counter_are_learned_once_for_all_pages_of_a_template(site: Site, tmp_path: Path) -> None:
    """Eight pages of one template: a few probes, each resolved once, and from then on nothing ever changes.

    Nor after a restart: the second crawl begins with the mask of the first.
    """
    urls = [site.page(f"/news/{n}", noisy()) for n in range(8)]
    first = project(tmp_path, urls)
    crawl = first.run()
    probes = crawl.stats["crawlsched/dispatched/probe"]
    assert 1 <= probes <= 15
    for name in ("resolved/probed", "probes/made"):  # the crawl may end while one is under way
        assert probes - 1 <= crawl.stats[f"crawlsched/{name}"] <= probes
    assert crawl.stats["crawlsched/probes/noise_found"] >= 1
    assert crawl.stats["crawlsched/dispatched"] == crawl.stats["crawlsched/resolved"]
    assert crawl.stats["crawlsched/slots/used"] >= crawl.stats["crawlsched/dispatched"]
    assert crawl.stats["crawlsched/resolved/unchanged"] > 60
    assert false_changes(crawl) <= 10  # told until it was known
    template, mask = learned(crawl, of_site=False)
    assert template.startswith("127.0.0.1/http:")
    assert template.endswith("/news/*")
    assert mask["places"]
    assert {page.recipe for page in crawl.pages().values()} == {"blocks/7"}
    before = false_changes(crawl)
    again = first.run(visits=60)
    assert false_changes(again) == before
    assert "crawlsched/resolved/changed" not in again.stats
    # What looks changed no more is not probed; only what might have returned to the living is.
    assert again.stats.get("crawlsched/dispatched/probe", 0) < probes


def test_a_release_in_the_header_is_told_once_and_is_no_change_of_any_page(site: Site, tmp_path: Path) -> None:
    """Eight pages name a release beside their article, another one when all have been fetched three times.

    The last that names the one before is answered when others have named the next. The second crawl knows from the
    store what the pages share. No page misses a release, however slow the machine: that would contradict it.
    """
    release, fetched = 0, Counter[str]()

    async def answer(request: web.Request) -> web.Response:
        nonlocal release
        said = release
        fetched[request.path] += 1
        if len(fetched) == 8 and min(fetched.values()) >= 3:
            release += 1
            fetched.clear()
            await asyncio.sleep(0.1)
        cup = f"<main><h1>Cup {request.path}</h1><p>Of {request.path} and more</p></main>"
        return web.Response(
            text=f"<title>Tea</title><header>Tea 1.{said} guide</header>{cup}", content_type="text/html"
        )

    urls = [site.page(f"/guide/{n}", answer) for n in range(8)]
    first = project(tmp_path, urls, bandwidth="60/s")
    crawl = first.run(visits=220)
    assert false_changes(crawl) <= 2  # of so few words as "1.1" the first two pages tell
    assert crawl.stats["crawlsched/template_edits"] >= 12
    assert 8 + 2 <= len(crawl.items) <= 8 + 8
    again = first.run(visits=60)
    assert false_changes(again) <= 2
    assert again.stats["crawlsched/template_edits"] >= 5
    name, shared = learned(again, of_site=True)
    assert name.startswith("//127.0.0.1 http:")
    assert name.endswith(" blocks/7")
    assert shared["edits"]
