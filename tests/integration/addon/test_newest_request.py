"""The newest request counts, and each session of a URL is a page of its own: by real crawls of one pass each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from aiohttp import web

from tests.crawling import Project, spider
from tests.site import Site

START = """
async def start(self):
    for number, city in enumerate(["berlin", "paris", "rome"]):
        given = {"cookies": {"city": city}, "meta": {"cookiejar": number}, "cb_kwargs": {"what": city}}
        yield scrapy.Request("SITE/prices", self.told, dont_filter=True, **given)
    for language in ("de", "fr"):
        given = {"headers": {"Accept-Language": language}, "cb_kwargs": {"what": "language"}}
        yield scrapy.Request("SITE/lang", self.told, dont_filter=True, **given)

def told(self, response, what):
    yield {"what": what, "text": response.text}
"""


def test_sessions_of_one_url_are_pages_of_their_own(site: Site, tmp_path: Path) -> None:
    """Five requests for two URLs give five items; each session is kept fresh by itself; commands reach all."""
    state = {"rome": "one"}

    def prices(request: web.Request) -> web.Response:
        city = request.cookies.get("city", "nobody")
        return web.Response(text=f"<p>{city} {state.get(city, '')}</p>", content_type="text/html")

    def language(request: web.Request) -> web.Response:
        return web.Response(text=f"<p>{request.headers['Accept-Language']}</p>", content_type="text/html")

    site.page("/prices", prices)
    site.page("/lang", language)
    asks = spider([], also=START.replace("SITE", site.url("")))
    project = Project(tmp_path, asks, one_pass=True, starts_first=0)
    crawl = project.run()
    assert Counter(item["what"] for item in crawl.items) == {"berlin": 1, "paris": 1, "rome": 1, "language": 2}
    assert crawl.stats["crawlsched/variants"] == 3
    # Without start(), to see that each is visited by what is kept of its own request.
    project.rewrite(asks.replace("async def start", "async def not_start"))
    state["rome"] = "two"
    assert project.run().items == [{"what": "rome", "text": "<p>rome two</p>"}]
    assert len(site.visits("/prices")) == 6
    for command in ("recrawl", "signal"):
        crawl.said(command, site.url("/prices"))
    crawl = project.run()
    assert sorted(item["what"] for item in crawl.items) == ["berlin", "paris", "rome"]
    assert crawl.stats["crawlsched/change_signals/received"] == 3
    assert crawl.said("why", site.url("/prices")).count("variant 'cookiejar") == 3

    # A redirect takes each of them along; the pages of another address are new ones.
    site.page("/moved", prices)
    site.page("/prices", "", status=301, Location="/moved")
    assert sorted(item["what"] for item in project.run().items) == ["berlin", "paris", "rome"]
    assert crawl.said("why", site.url("/moved")).count("variant 'cookiejar") == 3
    assert "3 pages deleted" in crawl.said("forget", site.url("/prices"), "--yes")
