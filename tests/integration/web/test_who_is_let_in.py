"""Who sees the page, who may do something, and what machines are told."""

from __future__ import annotations

import http.client
import json
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, urlsplit

import feedparser
import pytest

from crawlsched.store import Store
from tests.commands import run_here
from tests.integration.web.conftest import EVIL, TOKEN, Served, serve
from tests.waiting import wait_until

COOKIE = {"Cookie": f"crawlsched_token={TOKEN}"}


class Answer:
    def __init__(self, served: Served, path: str, method: str = "GET", body: str | None = None, **headers: str) -> None:
        where = urlsplit(served.address)
        with closing(http.client.HTTPConnection(where.hostname or "", where.port, timeout=60)) as connection:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            self.status, self.headers, self.text = answer.status, answer.headers, answer.read().decode()


def settled(served: Served, path: str) -> Answer:
    """Return what is answered once nothing has to be computed any more."""
    wait_until(lambda: "being computed" not in Answer(served, f"/{path}", **COOKIE).text, 60.0)
    return Answer(served, f"/{path}", **COOKIE)


def test_the_page_wants_its_token_and_hands_it_over_as_a_cookie(served: Served) -> None:
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


def test_names_of_elsewhere_do_not_lead_here(served: Served) -> None:
    """A page whose name was made to point to this machine gets nothing, token or not (DNS rebinding)."""
    for path in ("/", "/healthz", "/metrics"):
        assert Answer(served, path, Host="evil.example", **COOKIE).status == 421
    assert Answer(served, "/pages", Host="localhost:1", **COOKIE).status == 200


def test_nothing_can_be_done_from_the_page(served: Served) -> None:
    """It is there to be looked at; `crawlsched` steers."""
    origin = served.address.rstrip("/")
    for path in ("/act/pause", "/pages", "/"):
        assert Answer(served, path, "POST", "", Origin=origin, **COOKIE).status in (404, 405)


@pytest.mark.parametrize("path", ["", "pages", "pages?q=script", "changes", "hosts", "sources", "page?url="])
def test_everything_that_a_site_chose_is_text(served: Served, path: str) -> None:
    """Its URLs, texts and names of sources make no element, no attribute, and no link that runs something."""
    path = f"{path}{quote(EVIL, safe='')}" if path.endswith("=") else path
    shown = settled(served, path)
    assert shown.status == 200, shown.text
    assert "alert(" in shown.text
    for markup in ("<script>alert", "<img", "onerror=alert(2)>", 'href="javascript'):
        assert markup not in shown.text
    assert "default-src 'none'" in shown.headers["Content-Security-Policy"]
    assert shown.headers["X-Content-Type-Options"] == "nosniff"


def test_strange_questions_are_answered_with_a_sentence(served: Served) -> None:
    """A page that is none, a search in vain, numbers that are none; no traceback, no 500."""
    for path, status in (
        ("page?url=http://nowhere.example/", 404),
        ("page", 404),
        ("nothing", 404),
        ("static/..%2fserver.py", 404),
        ("static/server.py", 404),
        ("pages?from=-1&order=%00", 200),
        ("pages?q=%25%27%22_", 200),
        ("pages?q=p&after=999999999999999", 200),
        ("?span=1y", 200),
        ("changes.jsonl?since=yesterday", 400),
        ("changes.jsonl?since=0:99", 400),
        ("changes.jsonl?limit=0", 400),
    ):
        answer = settled(served, path)
        assert answer.status == status, (path, answer.text)
    found = Answer(served, "/pages?q=/p/7", **COOKIE).text
    assert "http://a.example/p/7" in found
    assert "http://a.example/p/8" not in found


def test_changes_are_given_to_programs(served: Served) -> None:
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


def test_metrics_and_health_say_what_check_says(served: Served) -> None:
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


def test_views_of_what_is_not_there(tmp_path: Path) -> None:
    """A collection that holds nothing yet has every view, too."""
    database = f"sqlite:///{tmp_path}/crawl.db"
    Store.open(database, "shop").close()
    for empty in serve(tmp_path, database, 'WEB={"address": 0, "token": false}'):
        views = ("", "pages", "pages?order=undelivered", "changes", "hosts", "changes.jsonl", "changes.atom", "metrics")
        for path in views:
            assert Answer(empty, f"/{path}").status == 200
