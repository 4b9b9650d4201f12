"""Old addresses that lead to one page for good are one page, delivered once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from aiohttp import web

from tests.crawling import Project
from tests.site import Site

SPIDER = """
import scrapy

class Spider(scrapy.Spider):
    name = "test"
    start_urls = [{urls}]

    def parse(self, response):
        for link in response.css("a"):
            yield response.follow(link, self.item)
        if not response.css("a"):
            yield {{"by": "start", "path": response.url[-6:]}}

    def item(self, response):
        yield {{"by": "link", "path": response.url[-6:]}}
"""


@pytest.mark.parametrize("status", [301, 302])
def test_a_permanent_redirect_makes_its_target_the_page(tmp_path: Path, status: int) -> None:
    """Four start requests and six links lead to five pages; a temporary redirect stays a page of its own."""
    said = {"word": "one"}

    def answer(request: web.Request) -> web.Response:
        name, _, number = request.path[1:].partition("/")
        if name.startswith("old"):
            return web.Response(status=status, headers={"Location": f"/new-{name[-1]}/{int(number) % 3}"})
        links = "".join(f'<a href="/old-l/{number}">x</a>' for number in range(6)) if name == "list" else ""
        # Each page in words of its own: what all say alike would be the site's.
        return web.Response(
            text=f"<p>{request.path} {'abc'[int(number or 0) % 3]}{name[-1]}{said['word']}</p>{links}",
            content_type="text/html",
        )

    with Site() as site:
        site.default = answer
        paths = ["/list", "/old-s/0", "/old-s/3", "/old-s/1", "/old-s/4"]
        feed = tmp_path / "items.jl"
        project = Project(
            tmp_path,
            SPIDER.format(urls=", ".join(repr(site.url(path)) for path in paths)),
            CRAWLSCHED_ONE_PASS="True",
            CRAWLSCHED_FIND_SOURCES="False",
            FEEDS=json.dumps({str(feed): {"format": "jsonlines", "overwrite": True}}),
        )
        runs = []
        for word in ("one", "one", "two"):
            said["word"] = word
            project.run()
            found = [json.loads(line) for line in feed.read_text().splitlines()]
            runs.append(Counter(f"{item['by']} {item['path'][-3:]}" for item in found))
    each = 1 if status != 302 else 2
    by_start = {f"start s/{number}": each for number in range(2)}
    by_link = {f"link l/{number}": each for number in range(3)}
    # Start pages are delivered in each run, and the others when they have changed.
    assert runs == [by_start | by_link, by_start, by_start | by_link]
