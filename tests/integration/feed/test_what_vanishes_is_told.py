"""The feed tells what vanishes, moves, fails and comes back: once each, over a kill and restarts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aiohttp import web

from crawlsched.feed import Cursor, Feed
from crawlsched.feed.feed import atom
from tests import children
from tests.crawling import YIELDS, Project, spider
from tests.site import Site
from tests.waiting import wait_until

ERRBACK = """
async def start(self):
    for url in self.start_urls:
        yield scrapy.Request(url, errback=self.failed)

def failed(self, failure):
    with open("errback.txt", "a") as file:
        print(failure.value.response.url, failure.value.response.status, file=file)
"""


def test_each_transition_is_told_once_with_its_status_and_since_when(tmp_path: Path) -> None:
    """Pages are gone, fail, move and return while the crawl is killed and started again; each is told once."""
    answers: dict[str, tuple[int, str]] = {}
    posts: list[dict[str, Any]] = []

    def answer(request: web.Request) -> web.Response:
        status, to = answers.get(request.path, (200, ""))
        return web.Response(
            status=status,
            text=f"<p>{request.path}</p>",
            content_type="text/html",
            headers={"Location": to} if to else {},
        )

    async def hook(request: web.Request) -> web.Response:
        posts.append(json.loads(await request.read()))
        return web.Response(status=204)

    def told() -> list[Any]:
        return project.so_far().read(lambda store: Feed(store).after(Cursor({}), 1000))

    def kinds(path: str) -> list[str]:
        return [change.kind for change in told() if change.url == site.url(path)]

    def until(condition: Callable[[], object]) -> None:
        wait_until(condition, say=lambda: [(change.url, change.kind) for change in told()])

    with children.all_ended(), Site() as site:
        site.default = answer
        site.page("/hook", hook)
        paths = ("/stays", "/gone", "/fails", "/moves", "/flaps")
        project = Project(
            tmp_path,
            spider([site.url(path) for path in paths], YIELDS, also=ERRBACK),
            bandwidth="20/s",
            error_interval=0.2,
            pages=[["*", {"max_interval": 1}]],
            webhook=site.url("/hook"),
            RETRY_ENABLED=False,
            seconds=120,
        )
        crawl = project.start()
        project.wait_for_log("Collection 'test' in")
        until(lambda: len(told()) == len(paths))
        answers |= {"/gone": (404, ""), "/fails": (503, ""), "/moves": (301, site.url("/new")), "/flaps": (410, "")}
        until(lambda: {"gone", "failing", "moved"} <= {change.kind for change in told()} and kinds("/flaps")[1:])
        crawl.kill()
        project.finish(crawl)
        crawl = project.start()
        until(lambda: len(site.visits("/gone")) > 6 and len(site.visits("/fails")) > 6)
        answers.pop("/flaps")
        until(lambda: kinds("/flaps")[-1] == "back")
        crawl.terminate()
        project.finish(crawl)
        answers.pop("/gone"), answers.pop("/fails")
        answers["/flaps"] = (404, "")
        crawl = project.start()
        until(lambda: kinds("/gone")[-1] == "back" and kinds("/fails")[-1] == "recovered")
        until(lambda: kinds("/flaps")[-1] == "gone")
        until(lambda: bool(posts) and posts[-1]["changes"][-1]["id"] == told()[-1].id)
        crawl.terminate()
        project.finish(crawl)
        found = told()
    for path, expected in (
        ("/stays", ["new"]),
        ("/gone", ["new", "gone", "back"]),
        ("/fails", ["new", "failing", "recovered"]),
        ("/moves", ["new", "moved"]),
        ("/new", ["new"]),
        ("/flaps", ["new", "gone", "back", "gone"]),
    ):
        assert [change.kind for change in found if change.url == site.url(path)] == expected, path
    by_kind = {change.kind: change for change in found}
    assert [by_kind[kind].status for kind in ("failing", "recovered", "back")] == [503, 200, 200]
    assert {change.status for change in found if change.kind == "gone"} == {404, 410}
    assert by_kind["moved"].target == site.url("/new")
    failing, recovered = by_kind["failing"], by_kind["recovered"]
    assert failing.found_at is not None and failing.since == recovered.since < failing.found_at  # noqa: PT018
    assert "fails (503), since" in failing.sentence
    assert f"Failing: {site.url('/fails')}".encode() in atom(found, "test", "http://x/", now=0.0)
    posted = [change for post in posts for change in post["changes"]]
    assert sorted(change["id"] for change in posted) == [change.id for change in found]
    assert {change["kind"] for change in posted} == {change.kind for change in found}
    errbacks = project.lines("errback.txt")
    assert f"{site.url('/gone')} 404" in errbacks
    assert f"{site.url('/fails')} 503" in errbacks
