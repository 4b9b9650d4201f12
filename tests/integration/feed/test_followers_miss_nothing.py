"""Whoever follows the changes of a crawl misses none: by the command line, by a webhook, whichever side is killed."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from subprocess import Popen
from typing import Any

from aiohttp import web

from crawlsched.feed.webhook import SIGNATURE, signature
from tests import children
from tests.crawling import Project, spider
from tests.site import Site
from tests.waiting import wait_until

KEY = "0123456789abcdef"
N_PAGES = 40
DELIVERED = """
with open("delivered.txt", "a") as file:
    print(response.url, file=file)
yield {"url": response.url}
"""


def _lines(file: Path) -> list[dict[str, Any]]:
    # What a killed writer has begun is no line.
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_each_delivered_change_arrives_although_crawl_and_follower_are_killed(tmp_path: Path) -> None:
    """Feed, follower and webhook name each page as new and as changed; both sides were killed while it was told."""
    version, posts, refuses = [1], [], [True]
    followed = tmp_path / "followed.jsonl"
    followed.touch()

    async def hook(request: web.Request) -> web.Response:
        body = await request.read()
        if refuses[0]:
            return web.Response(status=503)
        assert request.headers[SIGNATURE] == signature(body, KEY)
        posts.append(json.loads(body))
        return web.Response(status=204)

    def follow(since: str) -> Popen[str]:
        command = (sys.executable, "-m", "crawlsched", "changes", "--database", project.database_url)
        with followed.open("a") as file:
            return children.start(*command, "--since", since, "--follow", "--json", stdout=file)

    def told(kind: str) -> set[str]:
        return {line["url"] for line in _lines(followed) if line["kind"] == kind}

    with children.all_ended(), Site() as site, Site() as hooks:
        urls = [
            site.page(f"/{n}", lambda request: web.Response(text=f"<p>{version[0]}</p>", content_type="text/html"))
            for n in range(N_PAGES)
        ]
        project = Project(
            tmp_path,
            spider(urls, DELIVERED),
            webhook={"url": hooks.url("/hook?token=hidden-token"), "key": KEY},
            bandwidth="30/s",
            seconds=120,
        )
        hooks.page("/hook", hook)
        crawl = project.start()
        project.wait_for_log("Spider opened")
        wait_until(lambda: (tmp_path / "delivered.txt").exists())
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
        crawl.terminate()
        stats = project.finish(crawl).stats
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
