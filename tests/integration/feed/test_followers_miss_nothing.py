"""Whoever follows the changes of a crawl misses none: by the command line, by a webhook, whichever side is killed."""

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

from crawlsched.feed import Cursor, Feed
from crawlsched.feed.feed import atom
from crawlsched.feed.webhook import SIGNATURE, signature
from tests import children
from tests.crawling import Project
from tests.site import Site, html
from tests.waiting import wait_until

KEY = "0123456789abcdef"
N_PAGES = 40


def _lines(file: Path) -> list[dict[str, Any]]:
    # What a killed writer has begun is no line.
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_each_delivered_change_arrives_although_crawl_and_follower_are_killed(tmp_path):
    """Feed, follower and webhook name each page as new and as changed; both sides were killed while it was told."""
    version, posts, refuses = [1], [], [True]
    followed = tmp_path / "followed.jsonl"
    followed.touch()

    async def hook(request):
        body = await request.read()
        if refuses[0]:
            return web.Response(status=503)
        assert request.headers[SIGNATURE] == signature(body, KEY)
        posts.append(json.loads(body))
        return web.Response(status=204)

    def follow(since):
        command = (sys.executable, "-m", "crawlsched", "changes", "--database", project.database_url)
        with followed.open("a") as file:
            return children.start(*command, "--since", since, "--follow", "--json", stdout=file)

    def told(kind):
        return {line["url"] for line in _lines(followed) if line["kind"] == kind}

    with children.all_ended(), Site() as site, Site() as hooks:
        urls = [site.page(f"/{n}", lambda request: f"<p>{version[0]}</p>") for n in range(N_PAGES)]
        project = Project(
            tmp_path,
            urls,
            webhook={"url": hooks.url("/hook?token=hidden-token"), "key": KEY},
            bandwidth="30/s",
            seconds=120,
        )
        hooks.page("/hook", hook)
        crawl = project.start()
        project.wait_for_log("Collection 'test' in")
        follower = follow("0:0")
        wait_until(lambda: len(told("new")) == N_PAGES)
        project.wait_for_log("The webhook does not take the changes")
        version[0], refuses[0] = 2, False
        wait_until(lambda: len(told("changed")) > 5)
        follower.kill()
        crawl.kill()
        follower.wait()
        first_log = project.finish(crawl).log
        crawl = project.start()
        lines = _lines(followed)
        text = followed.read_text()
        followed.write_text(text[: text.rfind("\n") + 1])
        follow(lines[-1]["cursor"])
        wait_until(lambda: len(told("changed")) == N_PAGES)
        wait_until(lambda: {c["url"] for post in posts for c in post["changes"] if c["kind"] == "changed"} == set(urls))
        stats = project.end(crawl).stats
    with sqlite3.connect(tmp_path / "crawl.db") as database:
        kept = database.execute("SELECT id, kind FROM changes ORDER BY id").fetchall()
    ids = [number for number, _ in kept]
    assert ids == list(range(1, len(ids) + 1))
    assert [number for number, kind in kept if kind == 1] == list(range(1, N_PAGES + 1))
    assert [line["id"] for line in _lines(followed)] == ids
    posted = [change["id"] for post in posts for change in post["changes"]]
    assert sorted(set(posted)) == ids
    assert posts[-1]["cursor"] == f"0:{ids[-1]}"
    assert stats["crawlsched/webhook/changes"] > 0
    assert "hidden-token" not in first_log + project.log()


def test_each_transition_is_told_once_with_its_status_and_since_when(tmp_path):
    """Pages are gone, fail, move and return while the crawl is killed and started again; each is told once."""
    answers = {}
    posts = []

    def answer(request):
        status, to = answers.get(request.path, (200, ""))
        return html(f"<p>{request.path}</p>", status=status, headers={"Location": to} if to else {})

    async def hook(request):
        posts.append(json.loads(await request.read()))
        return web.Response(status=204)

    def told():
        return project.so_far().read(lambda store: Feed(store).after(Cursor({}), 1000))

    def kinds(path):
        return [change.kind for change in told() if change.url == site.url(path)]

    def until(condition):
        wait_until(condition, say=lambda: [(change.url, change.kind) for change in told()])

    with children.all_ended(), Site() as site:
        site.default = answer
        site.page("/hook", hook)
        paths = ("/stays", "/gone", "/fails", "/moves")
        project = Project(
            tmp_path,
            [site.url(path) for path in paths],
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
        answers |= {"/gone": (410, ""), "/fails": (503, ""), "/moves": (301, site.url("/new"))}
        until(lambda: {"gone", "failing", "moved"} <= {change.kind for change in told()})
        project.kill(crawl)
        crawl = project.start()
        until(lambda: len(site.visits("/gone")) > 6 and len(site.visits("/fails")) > 6)
        answers.pop("/gone"), answers.pop("/fails")
        until(lambda: kinds("/gone")[-1] == "back" and kinds("/fails")[-1] == "recovered")
        project.end(crawl)
        answers["/gone"] = (404, "")
        crawl = project.start()
        until(lambda: kinds("/gone")[-1] == "gone")
        until(lambda: bool(posts) and posts[-1]["changes"][-1]["id"] == told()[-1].id)
        project.end(crawl)
        found = told()
    for path, expected in (
        ("/stays", ["new"]),
        ("/gone", ["new", "gone", "back", "gone"]),
        ("/fails", ["new", "failing", "recovered"]),
        ("/moves", ["new", "moved"]),
        ("/new", ["new"]),
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
