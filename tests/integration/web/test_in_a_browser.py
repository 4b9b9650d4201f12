"""The page in a real browser: narrow and wide, light and dark, with a page whose name and text would be a script."""

import asyncio
from urllib.parse import quote, urlsplit

import pytest

from crawlsched.store import Store
from tests.browser import CHROMIUM, browser
from tests.integration.web.conftest import EVIL, TOKEN, Served, fill, serve

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="There is no chromium here (apt-get install chromium).")

THE_PAGE = f"page?url={quote(EVIL, safe='')}"
VIEWS = ("", "pages", "pages?q=p/1", "changes", "hosts", "sources", "whatif", THE_PAGE)


def test_every_view_fits_and_runs_nothing_that_a_site_chose(served: Served, tmp_path):
    """No view is wider than its window, asks another origin for anything, or makes the browser complain.

    The pictures are left in the folder of the test, for whoever wants to look at them.
    """

    async def look():
        async with browser() as tab:
            await tab.open(f"{served.address}?token={TOKEN}", 1400)
            grounds = set()
            for width, dark in ((1400, False), (400, True), (400, False), (1400, True)):
                for number, path in enumerate(VIEWS):
                    await tab.open(f"{served.address}{path}", width, dark=dark)
                    await tab.wait_for("document.querySelector('main') && !document.querySelector('.waiting')")
                    assert await tab.value("document.documentElement.scrollWidth") <= width, (path, width)
                    assert "crawlsched" in await tab.value("document.title")
                    if (width, dark) in ((1400, False), (400, True)):
                        await tab.picture(tmp_path / f"{number}-{width}.png")
                grounds.add(await tab.value("getComputedStyle(document.body).backgroundColor"))
            assert len(grounds) == 2
            await tab.open(f"{served.address}sources", 1400)
            await tab.wait_for("!document.querySelector('.waiting')")
            assert "javascript:alert(4)" in await tab.value("document.querySelector('main').textContent")
            await tab.open(f"{served.address}?span=24h", 1400)
            assert "%" in await tab.value("document.querySelector('main').textContent")
            assert await tab.value("document.querySelectorAll('.chart path.line').length") >= 5
            assert await tab.value("getComputedStyle(document.querySelector('.area')).stroke") == "none"
            await tab.value(
                "document.querySelector('.chart').dispatchEvent(new PointerEvent('pointermove', {clientX: 300}))"
            )
            assert "expected freshness" in await tab.value("document.querySelector('.frame output').textContent")
            await tab.open(f"{served.address}{THE_PAGE}", 1400)
            assert await tab.value("document.querySelector('h1').textContent") == EVIL
            assert "+<script>alert(3)</script> 2" in await tab.value("document.querySelector('.diff').textContent")
            # What is shown becomes new by itself.
            await tab.open(served.address, 1400)
            await tab.value("document.querySelector('main').dataset.old = '1'; document.body.dataset.refresh = '1'")
            await tab.wait_for("document.querySelector('main').dataset.old === undefined")
            assert tab.complaints == []
            assert {urlsplit(url).netloc for url in tab.requests} == {urlsplit(served.address).netloc}

    asyncio.run(look())


def test_the_lines_of_all_collections_fit_and_lead_to_their_views(tmp_path):
    """At both widths; a link goes to the collection, whose own links go on from there, and one goes back."""
    database = f"sqlite:///{tmp_path}/crawl.db"
    fill(database)
    Store.open(database, "<script>alert(7)</script> with a long name").close()

    async def look(served: Served):
        async with browser() as tab:
            for width, dark in ((1400, False), (400, True)):
                await tab.open(f"{served.address}?token={TOKEN}", width, dark=dark)
                await tab.wait_for("document.querySelectorAll('main tbody a').length == 2")
                assert await tab.value("document.documentElement.scrollWidth") <= width
                await tab.picture(tmp_path / f"collections-{width}.png")
            await tab.value("[...document.querySelectorAll('main a')].find((a) => a.textContent == 'shop').click()")
            await tab.wait_for("document.querySelector('.bar .name').textContent == 'shop'")
            await tab.value("[...document.querySelectorAll('.bar a')].find((a) => a.textContent == 'Pages').click()")
            await tab.wait_for("document.querySelector('input[name=q]') !== null")
            await tab.value("[...document.querySelectorAll('.bar a')].find((a) => a.textContent == 'All').click()")
            await tab.wait_for("document.querySelectorAll('main tbody a').length == 2")
            assert tab.complaints == []

    for served in serve(tmp_path, database):
        asyncio.run(look(served))
