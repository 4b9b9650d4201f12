"""Feeds and lists of URLs as sources, polled conditionally; and programs that announce changes themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from aiohttp import web

from tests.crawling import Project, spider
from tests.site import Answer, Site

TELLS = """
if not self.told and response.url.endswith("/last"):
    self.told = True
    urls = [self.start_urls[0], "http://unknown.example/"]
    self.crawler.stats.set_value("taken", self.crawler.engine.scheduler.signal(urls, source="shop system"))
"""


def test_feeds_and_texts_lead_to_pages_and_a_program_can_announce(site: Site, tmp_path: Path) -> None:
    """RSS, Atom and text each bring their page; what did not change is answered 304; a call is one ChangeSignal."""
    pages = {name: site.page(f"/{name}", f"<p>{name}</p>") for name in ("first", "last", "rss", "atom", "text")}
    bodies = {
        "rss.xml": f"<rss><channel><item><link>{pages['rss']}</link></item></channel></rss>",
        "feed.atom": "<feed xmlns='http://www.w3.org/2005/Atom'><entry>"
        f"<link href='{pages['atom']}'/><updated>2026-11-01T00:00:00Z</updated></entry></feed>",
        "urls.txt": f"{pages['text']}\n",
    }

    def answer(name: str) -> Answer:
        def of(request: web.Request) -> web.Response:
            if request.headers.get("If-None-Match") == f'"{name}"':
                return web.Response(status=304)
            return web.Response(text=bodies[name], headers={"ETag": f'"{name}"'})

        return of

    sources = [site.page(f"/{name}", answer(name)) for name in bodies]
    tells = spider([pages["first"], pages["last"]], TELLS, also="told = False")
    settings = {"source_urls": ",".join(sources), "source_interval": 1}
    crawl = Project(tmp_path, tells, bandwidth="10/s", seconds=5, **settings).run()
    assert set(pages.values()) <= set(crawl.outcomes())
    for name in bodies:
        _, *again = site.visits(f"/{name}")
        assert again
        assert {headers.get("if-none-match") for headers in again} == {f'"{name}"'}
    assert crawl.stats["taken"] == 1
    told = {source.url: source.kind for source in crawl.read(lambda store: store.reader.sources())}
    assert told["shop system"] == "ping"


@pytest.mark.parametrize("is_wanted", [True, False])
def test_feeds_and_sitemaps_that_pages_name_become_sources(site: Site, tmp_path: Path, is_wanted: bool) -> None:
    """The first feed of a page on its own site, and what `rel=sitemap` names; none with FIND_SOURCES = False."""
    news = site.page("/news/1", "<p>news</p>")
    old = site.page("/old/1", "<p>old</p>")
    site.page("/feed", f"<rss><channel><item><link>{news}?utm_source=rss</link></item></channel></rss>")
    site.page("/comments", "<rss><channel></channel></rss>")
    site.page("/map.xml", f"<urlset><url><loc>{old}</loc></url></urlset>")
    head = (
        "<link rel='alternate' type='application/rss+xml' href='http://other.example/feed'>"
        "<link rel=alternate type=application/rss+xml href=/feed>"
        "<link rel=alternate type=application/rss+xml href=/comments>"
        "<link rel='sitemap' href='/map.xml'><link rel='alternate' type='application/json' href='/wp-json/1'>"
    )
    starts = [site.page(f"/{n}", f"<html><head>{head}</head><body>{n}</body></html>") for n in range(3)]
    crawl = Project(tmp_path, starts, bandwidth="10/s", find_sources=is_wanted, seconds=4).run()
    sources = crawl.read(lambda store: store.reader.sources())
    read = {source.url: source for source in sources if source.polled_at and source.kind != "robots"}
    assert set(read) == ({site.url("/feed"), site.url("/map.xml")} if is_wanted else set())
    assert ({news, old} <= set(crawl.outcomes())) == is_wanted
    if is_wanted:
        assert {source.quality["document"] for source in read.values()} == {"rss", "urlset"}
