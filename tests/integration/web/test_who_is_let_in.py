"""Who sees the page, of one collection or all, who may do something, and what machines are told."""

import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import feedparser
import pytest

from crawlsched.store import Batch, ChangeRow, NewPage, Store
from crawlsched.store.members import SharedCollection
from crawlsched.store.records import put_sample
from crawlsched.web.vitals import checks, vitals
from tests.commands import run_here
from tests.integration.web.conftest import EVIL, TOKEN, Answer, Served, serve
from tests.rows import name_of
from tests.waiting import wait_until

COOKIE = {"Cookie": f"crawlsched_token={TOKEN}"}


def settled(served: Served, path: str) -> Answer:
    """Return what is answered once nothing has to be computed any more."""
    wait_until(lambda: "being computed" not in Answer(served, f"/{path}", **COOKIE).text, 60.0)
    return Answer(served, f"/{path}", **COOKIE)


def test_the_page_wants_its_token_and_hands_it_over_as_a_cookie(served: Served):
    """Without: 401, and not a word of the collection. The token goes out of the address; a bearer's header will do."""
    without = Answer(served, "/pages", Accept="text/html")
    assert without.status == 401
    assert "a.example" not in without.text
    for wrong in ("?token=wrong", "?token=", f"?token={TOKEN[:-1]}", "?token=%C3%BC"):
        assert Answer(served, f"/{wrong}").status == 401
    given = Answer(served, f"/pages?order=oldest&token={TOKEN}")
    assert (given.status, given.headers["Location"]) == (303, "/pages?order=oldest")
    assert Answer(served, f"//evil.example/?token={TOKEN}").headers["Location"] == "/evil.example/"
    assert "HttpOnly" in given.headers["Set-Cookie"]
    assert "SameSite=Strict" in given.headers["Set-Cookie"]
    assert Answer(served, "/pages", **COOKIE).status == 200
    assert Answer(served, "/pages", Authorization=f"Bearer {TOKEN}").status == 200


def test_names_of_elsewhere_do_not_lead_here(served: Served):
    """A page whose name was made to point to this machine gets nothing, token or not (DNS rebinding)."""
    for path in ("/", "/healthz", "/metrics"):
        assert Answer(served, path, Host="evil.example", **COOKIE).status == 421
    assert Answer(served, "/pages", Host="localhost:1", **COOKIE).status == 200


def test_nothing_can_be_done_from_the_page(served: Served):
    """It is there to be looked at; `crawlsched` steers."""
    origin = served.address.rstrip("/")
    for path in ("/act/pause", "/pages", "/"):
        assert Answer(served, path, "POST", "", Origin=origin, **COOKIE).status in (404, 405)


@pytest.mark.parametrize("path", ["", "pages", "pages?q=script", "changes", "hosts", "sources", "page?url="])
def test_everything_that_a_site_chose_is_text(served: Served, path):
    """Its URLs, texts and names of sources make no element, no attribute, and no link that runs something."""
    path = f"{path}{quote(EVIL, safe='')}" if path.endswith("=") else path
    shown = settled(served, path)
    assert shown.status == 200, shown.text
    assert "alert(" in shown.text
    for markup in ("<script>alert", "<img", "onerror=alert(2)>", 'href="javascript'):
        assert markup not in shown.text
    assert "default-src 'none'" in shown.headers["Content-Security-Policy"]
    assert shown.headers["X-Content-Type-Options"] == "nosniff"


def test_strange_questions_are_answered_with_a_sentence(served: Served):
    """A page that is none, a search in vain, numbers that are none; no traceback, no 500."""
    for line in (Path(__file__).parent / "strange.txt").read_text().splitlines():
        status, path = line.split()
        answer = settled(served, path)
        assert answer.status == int(status), (path, answer.text)
    found = Answer(served, "/pages?q=/p/7", **COOKIE).text
    assert "http://a.example/p/7" in found
    assert "http://a.example/p/8" not in found


def test_changes_are_given_to_programs(served: Served):
    """A line for each, with a cursor that leads on; Atom that feedparser reads without complaint, with the lines."""
    first = Answer(served, "/changes.jsonl?since=0:0&limit=5", **COOKIE)
    lines = [json.loads(line) for line in first.text.splitlines()]
    assert [line["id"] for line in lines] == [1, 2, 3, 4, 5]
    assert first.headers["X-Crawlsched-Cursor"] == lines[-1]["cursor"] == "0:5"
    more = Answer(served, "/changes.jsonl?since=0:5&diff=1", **COOKIE)
    assert [json.loads(line)["id"] for line in more.text.splitlines()] == [6, 7, 8, 9, 10]
    assert "+<script>alert(3)</script> 2" in json.loads(more.text.splitlines()[2])["diff"]
    end = Answer(served, "/changes.jsonl?since=0:10", **COOKIE)
    assert (end.text, end.headers["X-Crawlsched-Cursor"]) == ("", "0:10")
    assert len(Answer(served, f"/changes.jsonl?since=30m&token={TOKEN}").text.splitlines()) == 2
    read = feedparser.parse(Answer(served, f"/changes.atom?token={TOKEN}").text)
    assert not read.bozo
    assert len(read.entries) == 10
    assert TOKEN not in str(read)


def test_metrics_and_health_say_what_check_says(served: Served):
    """No crawl runs: 503, `up` 0, exit code 1 and a sentence; what has a limit is named when it is passed."""
    health = Answer(served, "/healthz")
    assert health.status == 503
    (leased, answering) = json.loads(health.text)["checks"]
    assert leased == {"name": "leased", "is_well": False, "sentence": "it was never crawled"}
    assert answering == {"name": "answering", "is_well": True, "sentence": "no host fails"}
    metrics = Answer(served, "/metrics").text
    assert 'crawlsched_up{collection="shop"} 0.0' in metrics
    assert 'crawlsched_undelivered_changes{collection="shop"} 1.0' in metrics
    assert 'crawlsched_withheld_total{collection="shop",reason="wrong_page"} 7.0' in metrics
    assert 'crawlsched_delivered_changes_total{collection="shop"} 10.0' in metrics
    given = "check", "--database", served.database, "--freshness", "0.99", "--budget", "95%", "--undelivered", "0"
    done = run_here(Path.cwd(), *given, "--rest", "3600")
    assert done.returncode == 1
    budget, waiting = ("90 % of the slots", "1 change not through")
    for words in ("it was never crawled", "wanted: 99 %", budget, waiting, "than 60 min: a.example"):
        assert words in done.stderr
    asked = run_here(Path.cwd(), *given, "--json")
    assert asked.returncode == 1
    assert [check["name"] for check in json.loads(asked.stdout)["checks"] if not check["is_well"]] == [
        *("leased", "freshness", "budget", "deliveries")
    ]


def test_views_of_what_is_not_there(tmp_path):
    """A collection that holds nothing yet has every view, too."""
    database = f"sqlite:///{tmp_path}/crawl.db"
    Store.open(database, "shop").close()
    for empty in serve(tmp_path, database, 'WEB={"address": 0, "token": false}'):
        views = ("", "pages", "pages?order=undelivered", "changes", "hosts", "changes.jsonl", "changes.atom", "metrics")
        for path in views:
            assert Answer(empty, f"/{path}").status == 200


def test_a_pass_has_to_have_ended_or_begun_lately(tmp_path):
    """Between two runs of cron all is well; not if the last is too old, hangs or broke off. An import is no pass."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"

    def passed(limit="25h"):
        done = run_here(tmp_path, "check", "--database", url, "--last-pass", limit)
        return done.returncode, done.stdout + done.stderr

    def later(hours, **known):
        """Return what would be said of the last pass so many hours after it began."""
        seen = replace(vitals(store), time=began + 3600.0 * hours, **known)
        (check, *_) = checks(seen, last_pass=25 * 3600.0)
        return check.is_well, check.sentence

    store = Store.open(url, "test", upgrade=True)
    assert passed() == (1, "passed: it was never crawled\n")
    began = store.clock()
    lease = store.take_lease("news")
    lease.heartbeat(None, {"last_sent_at": began})
    assert passed()[0] == 0
    assert not later(26)[0]
    lease.release()
    assert passed()[0] == 0
    assert "passed: the last pass ended" in passed()[1]
    assert run_here(tmp_path, "check", "--database", url).returncode == 1
    for _ in range(2):
        assert later(26) == (False, "the last pass ended 26 h ago, wanted: 25 h")
        store.take_lease("crawlsched import").release()
    store.take_lease("news")
    assert "broke off" in later(0, is_running=False)[1]
    store.close()
    assert "such as 45s, 30m, 12h or 90d" in passed("soon")[1]


def test_a_pause_that_somebody_forgot_is_not_well(tmp_path):
    """A pause by hand is well for a day; whoever starts crawls again that are not well leaves it alone."""
    store = Store.open(f"sqlite:///{tmp_path / 'crawl.db'}", "test", upgrade=True)
    lease = store.take_lease("news")
    lease.heartbeat(None, {"paused_since": store.clock()})
    seen = vitals(store)
    assert all(check.is_well for check in checks(seen))
    (forgotten,) = [check for check in checks(replace(seen, time=seen.time + 90_000.0)) if not check.is_well]
    assert (forgotten.name, forgotten.sentence) == ("pause", "paused by hand for 25 h")
    assert not forgotten.is_of_process
    lease.release()
    store.close()


STRANGE = "a/b <i>ü"


def with_a_change(store: Store, now: float) -> None:
    """Put a page with one change into it."""
    url = f"http://{store.key[0]}.example/{store.name.encode().hex()}"
    batch = Batch(new_pages={0: NewPage(0, url, url[7:16], name_of(url), now)})
    batch.changes.append(ChangeRow(1, 0, now, "new", None))
    store.save(batch)
    put_sample(store, now, {"seconds": 60.0, "expected_freshness": 0.75, "used": 30.0, "idle": 30.0, "changes": 4.0})


def test_each_collection_of_a_database_has_a_line_and_views_of_its_own(tmp_path):
    """Names are text, whatever they are; metrics and health are of all; each has its feed, and its way back."""
    database = f"sqlite:///{tmp_path}/crawl.db"
    for name in ("news", STRANGE):
        store = Store.open(database, name)
        with_a_change(store, store.clock())
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
            assert 'href="../../static/style.css"' in view
            url = f"http://0.example/{name.encode().hex()}"
            assert url in Answer(served, f"{path}pages?q=example", **COOKIE).text
            (line,) = Answer(served, f"{path}changes.jsonl?token={TOKEN}").text.splitlines()
            assert json.loads(line)["url"] == url
            assert Answer(served, f"{path}pages?q=example").status == 401
        assert Answer(served, "/static/style.css").status == 200
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


def test_each_shard_of_a_shared_collection_has_a_line(tmp_path, postgresql_url):
    """Its views are its own; the feed is that of all shards."""
    Store.open(postgresql_url, "alone", upgrade=True).close()
    shared = SharedCollection.open(Store.open(postgresql_url, "alone").database, "news", 4, 1000.0)
    for shard in range(4):
        with_a_change(Store(shared.database, "news", (shard, shared.number)), 1e9)
    for served in serve(tmp_path, postgresql_url):
        paths = re.findall(r'<a href="(c/[^"]+)"', Answer(served, "/", Accept="text/html", **COOKIE).text)
        assert paths == ["c/alone/", *(f"c/news/{shard}/" for shard in range(4))]
        assert "http://2.example/" in Answer(served, "/c/news/2/pages?q=example", **COOKIE).text
        assert "http://1.example/" not in Answer(served, "/c/news/2/pages?q=example", **COOKIE).text
        assert len(Answer(served, f"/c/news/2/changes.jsonl?token={TOKEN}").text.splitlines()) == 4
        assert 'crawlsched_delivered_changes_total{collection="news/3"} 1.0' in Answer(served, "/metrics").text
