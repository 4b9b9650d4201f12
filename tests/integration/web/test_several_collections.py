"""One page for all collections of a database, and for all shards of one: a line for each, which leads to its views."""

from __future__ import annotations

import json
import re
from pathlib import Path

from crawlsched.store import Batch, ChangeRow, NewPage, Store
from crawlsched.store.members import SharedCollection
from crawlsched.store.records import put_sample
from tests.integration.web.conftest import TOKEN, serve
from tests.integration.web.test_who_is_let_in import COOKIE, Answer
from tests.rows import name_of

STRANGE = "a/b <i>ü"


def fill(store: Store, now: float) -> None:
    """Put a page with one change into it."""
    url = f"http://{store.key[0]}.example/{store.name.encode().hex()}"
    batch = Batch(new_pages={0: NewPage(0, url, url[7:16], name_of(url), now)})
    batch.changes.append(ChangeRow(1, 0, now, "new", None))
    store.save(batch)
    put_sample(store, now, {"seconds": 60.0, "expected_freshness": 0.75, "used": 30.0, "idle": 30.0, "changes": 4.0})


def test_each_collection_of_a_database_has_a_line_and_views_of_its_own(tmp_path: Path) -> None:
    """Names are text, whatever they are; metrics and health are of all; each has its feed, and its way back."""
    database = f"sqlite:///{tmp_path}/crawl.db"
    for name in ("news", STRANGE):
        store = Store.open(database, name)
        fill(store, store.clock())
        store.close()
    for served in serve(tmp_path, database):
        assert Answer(served, "/").status == 401
        shown = Answer(served, "/", Accept="text/html", **COOKIE)
        assert "<i>" not in shown.text
        assert shown.text.count("75 %") == 2
        assert shown.text.count("50 %") == 2
        assert "it was never crawled" in shown.text
        paths = re.findall(r'<a href="(c/[^"]+)"', shown.text)
        assert paths == ["c/~2/", "c/news/"]
        for path, name in (("/c/~2/", STRANGE), ("/c/news/", "news")):
            assert Answer(served, path).status == 401
            given = Answer(served, f"{path}?token={TOKEN}")
            assert given.headers["Location"] == path
            view = Answer(served, path, **COOKIE).text
            assert 'href="../../"' in view
            assert (
                Answer(served, re.findall(r'href="../../(static/style.css)"', view)[0].join("/ ").strip()).status == 200
            )
            url = f"http://0.example/{name.encode().hex()}"
            assert url in Answer(served, f"{path}pages?q=example", **COOKIE).text
            (line,) = Answer(served, f"{path}changes.jsonl?token={TOKEN}").text.splitlines()
            assert json.loads(line)["url"] == url
            assert Answer(served, f"{path}pages?q=example").status == 401
        assert Answer(served, "/c/nothing/", **COOKIE).status == 404
        assert Answer(served, "/pages", **COOKIE).status == 404
        metrics = Answer(served, "/metrics").text
        assert metrics.count("# HELP crawlsched_up ") == 1
        assert 'crawlsched_up{collection="news"} 0.0' in metrics
        assert f'crawlsched_expected_freshness_ratio{{collection="{STRANGE}"}} 0.75' in metrics
        health = Answer(served, "/healthz")
        assert health.status == 503
        assert set(json.loads(health.text)["collections"]) == {"news", STRANGE}
        assert set(json.loads(Answer(served, "/healthz?collection=news").text)["collections"]) == {"news"}
        assert Answer(served, "/healthz?collection=x").status == 400


def test_each_shard_of_a_shared_collection_has_a_line(tmp_path: Path, postgresql_url: str) -> None:
    """Its views are its own; the feed is that of all shards."""
    Store.open(postgresql_url, "alone", upgrade=True).close()
    shared = SharedCollection.open(Store.open(postgresql_url, "alone").database, "news", 4, 1000.0)
    for shard in range(4):
        fill(Store(shared.database, "news", (shard, shared.number)), 1e9)
    for served in serve(tmp_path, postgresql_url):
        paths = re.findall(r'<a href="(c/[^"]+)"', Answer(served, "/", Accept="text/html", **COOKIE).text)
        assert paths == ["c/alone/", *(f"c/news/{shard}/" for shard in range(4))]
        assert "http://2.example/" in Answer(served, "/c/news/2/pages?q=example", **COOKIE).text
        assert "http://1.example/" not in Answer(served, "/c/news/2/pages?q=example", **COOKIE).text
        assert len(Answer(served, f"/c/news/2/changes.jsonl?token={TOKEN}").text.splitlines()) == 4
        assert 'crawlsched_delivered_changes_total{collection="news/3"} 1.0' in Answer(served, "/metrics").text
