"""Who goes first in a run, what a page waits for, and how a run ends: by real crawls that end by themselves."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from aiohttp import web

from crawlsched.cli import main
from tests.crawling import Project
from tests.integration.addon.test_newest_request import Runs
from tests.site import Site

LOGIN = """
import scrapy
import crawlsched

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/login"]

    def parse(self, response):
        return scrapy.Request(response.url, self.after_login, method="POST", body="user=john", dont_filter=True)

    def after_login(self, response):
        yield from response.follow_all(css="a", callback=self.article)

    def article(self, response):
        if response.css("form"):
            yield scrapy.Request("{site}/login", self.after_login, method="POST", body="user=john", dont_filter=True)
            raise crawlsched.NotThePage("the session has ended")
        yield {{"url": response.url, "text": response.css("p::text").get()}}
"""


def test_a_start_request_logs_in_before_any_page_is_asked_for(site: Site, tmp_path: Path) -> None:
    """Known pages wait for the log-in at every start; a page that the callback refuses counts for nothing."""
    texts = {"/a": "one", "/b": "two"}
    is_open = {"door": True}

    def login(request: web.Request) -> web.Response:
        if request.method == "POST":
            answer = web.Response(text="".join(f'<a href="{path}">x</a>' for path in texts), content_type="text/html")
            answer.set_cookie("sid", "1")
            return answer
        form = '<form method="post" action="/login"><input name="user"></form>'
        return web.Response(text=f"<p>Log in</p>{form}", content_type="text/html")

    def article(request: web.Request) -> web.Response:
        if "sid" not in request.cookies or (request.path == "/b" and not is_open["door"]):
            return web.Response(text="<p>Please log in</p><form></form>", content_type="text/html")
        return web.Response(text=f"<p>{texts[request.path]}</p>", content_type="text/html")

    site.page("/login", login)
    for path in texts:
        site.page(path, article)
    runs = Runs(tmp_path)
    items, _ = runs.run(LOGIN.format(site=site.url("")))
    assert sorted(item["text"] for item in items) == ["one", "two"]
    texts.update({"/a": "three", "/b": "four"})
    is_open["door"] = False
    before = len(site.requests)
    items, crawl = runs.run(LOGIN.format(site=site.url("")))
    assert [path for path, _ in site.requests[before:]][:2] == ["/login", "/login"]
    assert all("sid" in headers.get("cookie", "") for path, headers in site.requests[before:] if path != "/login")
    assert [item["text"] for item in items] == ["three"]
    assert crawl.stats["crawlsched/not_the_page"] == 1
    assert crawl.outcomes()[site.url("/b")][-1] == "wrong"
    is_open["door"] = True
    items, _ = runs.run(LOGIN.format(site=site.url("")))
    assert [item["text"] for item in items] == ["four"]


DETAILS = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/"]
    custom_settings = {{"CRAWLSCHED_BANDWIDTH": "10/s"}}

    def parse(self, response):
        for number in range(8):
            yield scrapy.Request(
                f"{site}/detail?{{number}}", self.parse_detail, method="POST", cb_kwargs={{"number": number}}
            )

    def parse_detail(self, response, number):
        yield {{"number": number}}
"""


def test_requests_that_are_no_pages_survive_a_stop(site: Site, tmp_path: Path) -> None:
    """A list counts as delivered when its details are; stopped before, it is delivered again, and once in each run."""
    site.page("/", "<p>list</p>")
    site.page("/detail", "<p>detail</p>")
    feed = tmp_path / "items.jl"
    spider = DETAILS.format(site=site.url(""))
    project = Project(tmp_path, spider, FEEDS=json.dumps({str(feed): {"format": "jsonlines"}}))
    process = project.start()
    until = time.monotonic() + 20
    while len([path for path, _ in site.requests if path.startswith("/detail")]) < 3:
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    project.finish(process)
    first = {json.loads(line)["number"] for line in feed.read_text().splitlines()}
    assert 0 < len(first) < 8
    runs = Runs(tmp_path)
    for _ in range(2):
        items, crawl = runs.run(spider)
        assert sorted(item["number"] for item in items) == list(range(8))
        assert crawl.stats["crawlsched/delivered"] == 1


BEHIND = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/"]
    allowed_domains = ["127.0.0.1"]

    def parse(self, response):
        for number in (1, 1, 2):
            yield scrapy.http.JsonRequest("{site}/api", self.answered, data={{"number": number}})
        yield scrapy.http.JsonRequest("{elsewhere}/api", self.answered, data={{}})

    def answered(self, response):
        yield scrapy.http.JsonRequest("{site}/more", self.more, data=response.json())

    def more(self, response):
        yield response.json()
        yield response.request  # again and again, which Scrapy's filter refuses
"""


def test_what_comes_by_post_behind_a_page_is_asked_for_again(site: Site, tmp_path: Path) -> None:
    """A GET page that stays the same leads to a price that does not: once in each run all behind it is new."""
    state = {"price": 1}

    async def api(request: web.Request) -> web.Response:
        number = (await request.json())["number"]
        return web.json_response({"number": number, "price": state["price"]})

    def more(request: web.Request) -> web.Response:
        state["price"] += len(site.visits("/more")) == 2  # after the first two
        return web.json_response({"price": state["price"]})

    site.page("/", "<p>stays the same</p>")
    site.page("/api", api)
    site.page("/more", more)
    feed = tmp_path / "items.jl"
    spider = BEHIND.format(site=site.url(""), elsewhere=site.url("", "localhost"))
    settings = {"CLOSESPIDER_ITEMCOUNT": "2", "CLOSESPIDER_TIMEOUT": "20"}
    project = Project(tmp_path, spider, FEEDS=json.dumps({str(feed): {"format": "jsonlines"}}), **settings)
    for _ in range(2):
        assert project.run().stats["finish_reason"] == "closespider_itemcount"
    prices = [json.loads(line)["price"] for line in feed.read_text().splitlines()]
    assert (min(prices), max(prices)) == (1, 2)
    # Two of each kind in each run, and none elsewhere.
    assert len(site.visits("/api")) == 4
    assert len(site.visits("/more")) == 4
    assert all(headers["host"].startswith("127.0.0.1") for _, headers in site.requests)


SLOW = """
import asyncio
import scrapy

class Slow:
    async def process_item(self, item, spider=None):
        await asyncio.sleep(2.5)
        return item

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/fine", "{site}/broken"]
    custom_settings = {{"ITEM_PIPELINES": {{Slow: 1}}, "CRAWLSCHED_ERROR_INTERVAL": 1000}}

    def parse(self, response):
        if "broken" in response.url:
            raise ValueError("always")
        yield {{"url": response.url}}
"""


def test_what_is_on_its_way_is_not_sent_again_and_what_always_fails_ever_more_rarely(
    site: Site, tmp_path: Path
) -> None:
    """A pipeline slower than the next visit gets an item once; a callback that raises is named by the status."""
    site.page("/fine", "<p>fine</p>")
    site.page("/broken", "<p>broken</p>")
    crawl = Project(
        tmp_path, SLOW.format(site=site.url("")), CRAWLSCHED_BANDWIDTH="20/s", CLOSESPIDER_TIMEOUT="5"
    ).run()
    assert crawl.stats["item_scraped_count"] == 1
    assert crawl.stats["crawlsched/deliveries/under_way"] >= 2
    n_failures = crawl.stats["spider_exceptions/ValueError"]
    assert len(site.visits("/broken")) == n_failures <= 3  # of fifty visits that there would be
    store = crawl.store()
    owner = store.owner()
    assert owner is not None
    assert owner.status["failing_callbacks"] == {"parse": n_failures}
    store.close()


MANY = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/1", "{site}/2", "{site}/3", "{site}/gone"]

    def parse(self, response):
        yield {{"url": response.url[-1]}}
"""


def test_one_pass_tries_every_page_once_and_recrawl_delivers_what_has_not_changed(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Gone pages count after one try; a number ends the run after so many visits; recrawl takes a pattern."""
    for number in (1, 2, 3):
        site.page(f"/{number}", f"<p>{number}</p>", etag=f'"{number}"')
    spider = MANY.format(site=site.url(""))
    runs = Runs(tmp_path)
    items, crawl = runs.run(spider)
    assert (len(items), crawl.stats["finish_reason"], crawl.stats["crawlsched/resolved"]) == (3, "finished", 4)
    silent = spider.replace("start_urls", "not_start_urls")
    items, crawl = runs.run(silent)
    assert (items, crawl.stats["crawlsched/resolved"], len(site.visits("/gone"))) == ([], 4, 2)
    items, crawl = runs.run(silent, CRAWLSCHED_ONE_PASS="2")
    assert (items, crawl.stats["crawlsched/resolved"]) == ([], 2)
    options = ["--database", crawl.database_url, "--collection", "test"]
    assert main(["recrawl", "--pattern", "*/1", *options]) == 0
    assert "1 page will be crawled and delivered first when a crawl starts" in capsys.readouterr().out
    assert main(["recrawl", site.url("/2"), *options]) == 0
    items, _ = runs.run(silent)
    assert sorted(item["url"] for item in items) == ["1", "2"]
    items, _ = runs.run(silent)
    assert items == []
    assert main(["recrawl", "--all", *options]) == 0
    items, _ = runs.run(silent)
    assert sorted(item["url"] for item in items) == ["1", "2", "3"]
    items, _ = runs.run(spider)
    assert sorted(item["url"] for item in items) == ["1", "2", "3"]  # start requests are called back at every start
    capsys.readouterr()
    assert main(["status", *options]) == 0
    assert main(["why", site.url("/1"), *options]) == 0
    assert main(["withheld", "--reason", "known", *options]) == 0
    assert "127.0.0.1  known  4 times" in capsys.readouterr().out


def test_a_callback_that_closes_the_spider_has_finished_with_its_page(site: Site, tmp_path: Path) -> None:
    """CloseSpider is the spider's word: the next run goes on behind that page, and does not begin with it again."""
    urls = [site.page(f"/{number}", f"<a href='/{number + 1}'>{number}</a>" * (number < 5)) for number in range(6)]
    spider = f"""
import scrapy
from scrapy.exceptions import CloseSpider

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls[:1]!r}

    def parse(self, response):
        with open("seen.txt", "a") as file:
            print(response.url, file=file)
        yield from response.follow_all(css="a")
        if response.url == {urls[2]!r}:
            raise CloseSpider("enough")
"""
    project = Project(tmp_path, spider, CRAWLSCHED_ONE_PASS="True", CONCURRENT_REQUESTS="1")
    for _ in range(3):
        project.run()
    seen = (tmp_path / "seen.txt").read_text().split()
    assert set(seen) == set(urls)
    assert seen.count(urls[2]) == 1, seen


COUNTS = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}
    page = 0

    def parse(self, response):
        yield {{"url": response.url}} if response.url.endswith("item") else None
        self.page += 1
        if self.page < 5:
            yield response.follow(f"/list/{{self.page}}")
"""


def test_a_start_page_that_leads_to_nothing_is_named_once(site: Site, tmp_path: Path) -> None:
    """A counter in the spider stands still where known pages call nothing back; the first run has nothing to say."""
    site.default = lambda request: web.Response(text=f"<p>{request.path}</p>", content_type="text/html")
    project = Project(
        tmp_path,
        COUNTS.format(urls=[site.url("/list/0")]),
        CRAWLSCHED_ONE_PASS="True",
        CRAWLSCHED_FIND_SOURCES="False",
    )
    logs = [project.run().log, project.run().log, project.run(CRAWLSCHED_CALLBACK_ON_UNCHANGED="True").log]
    assert [log.count("asked for nothing but known pages") for log in logs] == [0, 1, 0]


FORMS = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/"]

    def parse(self, response):
        for number in range(9):
            yield scrapy.FormRequest(f"{site}/form/{{number}}", self.answered, formdata={{"number": str(number)}})

    def answered(self, response):
        yield {{"url": response.url}}
"""


def test_a_crawl_by_post_that_is_stopped_again_and_again_goes_on(site: Site, tmp_path: Path) -> None:
    """What JOBDIR has kept goes before what the start page makes again, and what was not sent is kept."""
    site.default = lambda request: web.Response(text=f"<p>{request.path}</p>", content_type="text/html")
    feed = tmp_path / "items.jl"
    project = Project(
        tmp_path,
        FORMS.format(site=site.url("")),
        JOBDIR=str(tmp_path / "job"),
        FEEDS=json.dumps({str(feed): {"format": "jsonlines", "overwrite": False}}),
        CONCURRENT_REQUESTS="1",
        CLOSESPIDER_ITEMCOUNT="3",
        CRAWLSCHED_BANDWIDTH="20/s",
        CRAWLSCHED_FIND_SOURCES="False",
        CRAWLSCHED_ONE_PASS="True",
    )
    found = []
    for _ in range(3):
        project.run()
        found.append(len({json.loads(line)["url"] for line in feed.read_text().splitlines()}))
    assert found == [3, 6, 9]
