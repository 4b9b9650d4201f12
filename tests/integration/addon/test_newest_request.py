"""The newest request counts: what plain Scrapy would have delivered is delivered, by real crawls."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from crawlsched.cli import main
from tests.crawling import Crawl, Project
from tests.site import Site


class Runs:
    """A spider that is run again and again over one collection, each time until every page was tried."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self._folder = folder
        self._settings = settings

    def run(self, spider: str, **settings: Any) -> tuple[list[dict[str, Any]], Crawl]:
        """Run it; return its items and what is left of the crawl."""
        feed = self._folder / "items.jl"
        feed.unlink(missing_ok=True)
        project = Project(
            self._folder,
            spider,
            **{
                "FEEDS": json.dumps({str(feed): {"format": "jsonlines"}}),
                "CRAWLSCHED_ONE_PASS": "True",
                "CRAWLSCHED_FIND_SOURCES": "False",
                **self._settings,
                **settings,
            },
        )
        crawl = project.run()
        assert "Traceback" not in crawl.log, crawl.log[-3000:]
        return [json.loads(line) for line in feed.read_text().splitlines()], crawl


SEVERAL = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"

    async def start(self):
        for number, city in enumerate(["berlin", "paris", "rome"]):
            yield scrapy.Request(
                "{site}/prices", self.parse_city, cookies={{"city": city}}, meta={{"cookiejar": number}},
                dont_filter=True, cb_kwargs={{"city": city}},
            )
        for language in ("de", "fr"):
            yield scrapy.Request(
                "{site}/lang", self.parse_language, headers={{"Accept-Language": language}}, dont_filter=True,
            )

    def parse_city(self, response, city):
        yield {{"what": city, "text": response.text}}

    def parse_language(self, response):
        yield {{"what": "language", "text": response.text}}

"""


def test_sessions_of_one_url_are_pages_of_their_own(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five requests for two URLs give five items; each session is kept fresh by itself; commands reach all."""
    state = {"rome": "one"}

    def prices(request: web.Request) -> web.Response:
        city = request.cookies.get("city", "nobody")
        return web.Response(text=f"<p>{city} {state.get(city, '')}</p>", content_type="text/html")

    def language(request: web.Request) -> web.Response:
        return web.Response(text=f"<p>{request.headers['Accept-Language']}</p>", content_type="text/html")

    site.page("/prices", prices)
    site.page("/lang", language)
    runs = Runs(tmp_path, CRAWLSCHED_STARTS_FIRST="0")
    items, crawl = runs.run(SEVERAL.format(site=site.url("")))
    assert Counter(item["what"] for item in items) == Counter({"berlin": 1, "paris": 1, "rome": 1, "language": 2})
    assert crawl.stats["crawlsched/variants"] == 3
    state["rome"] = "two"
    # Without start(), to see that each is visited by what is kept of its own request.
    items, crawl = runs.run(SEVERAL.format(site=site.url("")).replace("async def start", "async def not_start"))
    assert [(item["what"], item["text"]) for item in items] == [("rome", "<p>rome two</p>")]
    assert len(site.visits("/prices")) == 6
    options = ["--database", crawl.database_url, "--collection", "test"]
    for command in ("recrawl", "signal"):
        assert main([command, site.url("/prices"), *options]) == 0
    silent = SEVERAL.format(site=site.url("")).replace("async def start", "async def not_start")
    items, crawl = runs.run(silent)
    assert sorted(item["what"] for item in items) == ["berlin", "paris", "rome"]
    assert crawl.stats["crawlsched/change_signals/received"] == 3
    capsys.readouterr()
    assert main(["why", site.url("/prices"), *options]) == 0
    assert capsys.readouterr().out.count("variant 'cookiejar") == 3
    # A redirect takes each of them along; the pages of another address are new ones.
    site.page("/moved", prices)
    site.page("/prices", lambda request: web.Response(status=301, headers={"Location": "/moved"}))
    assert sorted(item["what"] for item in runs.run(silent)[0]) == ["berlin", "paris", "rome"]
    assert main(["why", site.url("/moved"), *options]) == 0
    assert capsys.readouterr().out.count("variant 'cookiejar") == 3
    assert main(["forget", site.url("/prices"), "--yes", *options]) == 0
    assert "3 pages deleted" in capsys.readouterr().out


LIST = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/"]

    def parse(self, response):
        for link in response.css("a"):
            yield response.follow(link, self.CALLBACK, meta={{"price": link.attrib["data-price"]}})

    def CALLBACK(self, response):
        yield {{"url": response.url[-2:], "price": response.meta["price"], "by": "CALLBACK",
               "changed": response.meta["crawlsched_changed"]}}
"""


def test_a_renamed_callback_and_other_link_data_count_at_once(site: Site, tmp_path: Path) -> None:
    """What a list hands to its details is news of them: delivered with the same content, by the new name."""
    prices = {"/a": "10", "/b": "20"}

    def listed(request: web.Request) -> web.Response:
        links = "".join(f'<a href="{path}" data-price="{price}">{path}</a>' for path, price in prices.items())
        return web.Response(text=f"<p>list {sorted(prices.values())}</p>{links}", content_type="text/html")

    site.page("/", listed)
    for path in prices:
        site.page(path, f"<p>the article {path}</p>", etag=f'"{path}"')
    runs = Runs(tmp_path)
    items, _ = runs.run(LIST.replace("CALLBACK", "parse_item").format(site=site.url("")))
    assert sorted((item["url"], item["price"], item["changed"]) for item in items) == [
        ("/a", "10", True),
        ("/b", "20", True),
    ]
    prices["/a"] = "12"
    items, crawl = runs.run(LIST.replace("CALLBACK", "parse_product").format(site=site.url("")))
    # The content is the same, and a 304 would have had nothing for the callback.
    assert items == [{"url": "/a", "price": "12", "by": "parse_product", "changed": False}]
    assert crawl.stats["crawlsched/requests/replaced"] == 2
    assert crawl.stats["crawlsched/links/news"] == 1
    items, _ = runs.run(LIST.replace("CALLBACK", "parse_product").format(site=site.url("")))
    assert items == []


OWN_FILTER = """
import scrapy
from scrapy.dupefilters import BaseDupeFilter

class Filter(BaseDupeFilter):
    def __init__(self):
        self.seen = set()

    @classmethod
    def from_crawler(cls, crawler):
        return cls()

    def request_seen(self, request):
        name = request.url.partition("&session")[0], request.meta.get("key")
        known = name in self.seen
        self.seen.add(name)
        return known

    def log(self, request, spider):
        spider.crawler.stats.inc_value("filtered")

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/"]

    def parse(self, response):
        for path in ("/a?x=1&y=2", "/a?y=2&x=1", "/b#one", "/b#two", "/b#two", "/c?x=1", "/c?x=1&session=2"):
            yield response.follow(path, self.parse_item)
        for key in "klk":
            yield response.follow("/d", self.parse_item, meta={{"key": key}})

    def parse_item(self, response):
        yield {{"url": response.request.url.rpartition("/")[2], "key": response.meta.get("key")}}
"""


def test_the_projects_own_filter_is_asked(site: Site, tmp_path: Path) -> None:
    """What it lets pass is delivered, though Scrapy's fingerprint knows the page; what it refuses makes no page."""
    site.default = lambda request: web.Response(text=f"<p>{request.path}</p>", content_type="text/html")
    runs = Runs(tmp_path, DUPEFILTER_CLASS="spider_under_test.Filter")
    items, crawl = runs.run(OWN_FILTER.format(site=site.url("")))
    named = ["a?x=1&y=2", "a?y=2&x=1", "b#one", "b#two", "c?x=1", "d", "d"]
    assert sorted(item["url"] for item in items) == named
    assert sorted(item["key"] for item in items if item["key"]) == ["k", "l"]
    assert crawl.stats["filtered"] == 1
    # In the next run the pages are kept fresh as any others, and what was only let pass goes again.
    items, _ = runs.run(OWN_FILTER.format(site=site.url("")))
    assert sorted(item["url"] for item in items) == ["a?y=2&x=1", "b#two", "d"]


ITEMS = """
import dataclasses
import scrapy

@dataclasses.dataclass
class Shop:
    name: str

class Article(scrapy.Item):
    name = scrapy.Field()
    text = scrapy.Field()
    shop = scrapy.Field()

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/"]

    def parse(self, response):
        for link in response.css("a"):
            item = Article(name=link.css("::text").get(), shop=Shop("one"))
            yield response.follow(link, self.parse_item, meta={{"item": item}})
        yield response.follow("/lambda", lambda response: None)

    def parse_item(self, response):
        item = response.meta["item"]
        item["text"] = response.css("p::text").get()
        item["shop"] = item["shop"].name
        yield item
"""


def test_items_in_meta_are_kept_and_what_cannot_be_is_named_once(site: Site, tmp_path: Path) -> None:
    """The details of a list are pages like any other, at the next run too; a lambda is counted and named."""
    texts = {"/1": "one", "/2": "two"}
    site.page("/", '<a href="/1">first</a><a href="/2">second</a>')
    for path in texts:
        site.page(path, lambda request: web.Response(text=f"<p>{texts[request.path]}</p>", content_type="text/html"))
    site.page("/lambda", "<p>x</p>")
    runs = Runs(tmp_path)
    items, crawl = runs.run(ITEMS.format(site=site.url("")))
    assert sorted(items, key=str) == [
        {"name": "first", "shop": "one", "text": "one"},
        {"name": "second", "shop": "one", "text": "two"},
    ]
    assert crawl.log.count("is crawled once and not kept fresh (this is said once of each callback)") == 1
    store = crawl.store()
    owner = store.owner()
    assert owner is not None
    assert owner.status["not_data"] == {"Spider.parse.<locals>.<lambda>": 1}
    store.close()
    texts["/2"] = "three"
    items, _ = runs.run(ITEMS.format(site=site.url("")))
    assert items == [{"name": "second", "shop": "one", "text": "three"}]
