"""Nothing is held back in silence: what suppresses a delivery is counted, shown, listed, and can be turned off."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import Path

import pytest
from aiohttp import web

from crawlsched.cli import main
from tests.integration.addon.test_newest_request import Runs
from tests.site import Site

N = 24
SPIDER = """
import crawlsched
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = ["{site}/"]

    def parse(self, response):
        for number in range({n}):
            yield response.follow(f"/page/{{number}}", self.parse_page)
        yield response.follow("/lambda", lambda response: None)
        yield response.follow("/captcha", self.parse_captcha)

    def parse_page(self, response):
        yield {{"url": response.url}}

    def parse_captcha(self, response):
        raise crawlsched.NotThePage("a captcha")
"""


def test_what_is_held_back_is_said_and_can_be_turned_off(
    site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An edit of the template of a whole site, a lambda, a captcha: each by host and reason, with the setting."""
    menu = {"of": "spring and what it brings"}

    def page(request: web.Request) -> web.Response:
        own = blake2b(request.path.encode(), digest_size=8).hexdigest()
        text = f"<nav>the menu of {menu['of']}</nav><p>{own} and other words of this page</p>"
        return web.Response(text=text, content_type="text/html")

    site.default = page
    runs, spider = Runs(tmp_path, CRAWLSCHED_BANDWIDTH="100/s"), SPIDER.format(site=site.url(""), n=N)
    items, _ = runs.run(spider)
    assert len(items) == N
    menu["of"] = "summer, with rain and sun"
    items, crawl = runs.run(spider)
    assert items == []
    reason = "CRAWLSCHED_WITHHOLD = {'template': False} turns that off"
    assert crawl.log.count(reason) == 1
    assert f"1 so far, such as {site.url('/page/')}" in crawl.log

    options = ["--database", crawl.database_url, "--collection", "test"]
    capsys.readouterr()
    assert main(["withheld", "--reason", "template", "--host", "127.0.0.1", "--json", *options]) == 0
    (row,) = json.loads(capsys.readouterr().out)["withheld"]
    assert (row["host"], row["reason"], row["n"]) == ("127.0.0.1", "template", N)
    assert main(["status", *options]) == 0
    said = capsys.readouterr().out
    assert f"held back {N} times (template), of 127.0.0.1" in said
    assert "(not_data), of 127.0.0.1" in said
    assert "(not_the_page), of 127.0.0.1" in said

    menu["of"] = "autumn, with wind and fog"
    items, _ = runs.run(spider, CRAWLSCHED_WITHHOLD="False")
    assert len(items) == N
    # And the pages of a host can be had again, changed or not.
    assert main(["recrawl", "--host", "127.0.0.1", *options]) == 0
    items, _ = runs.run(spider)
    assert len(items) == N
