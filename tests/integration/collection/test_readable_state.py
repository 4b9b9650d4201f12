"""Whoever opens the database sees what is known: plain columns, the grid of rates, and queries that run."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawlsched.crawl.collection import Collection
from crawlsched.planner import explain
from crawlsched.store import schema
from tests import parts
from tests.databases import rows

QUERIES = Path(__file__).parents[3] / "docs" / "reference" / "queries.md"
START = 1_700_000_000.0
HOUR = 3600.0
URLS = ["https://example.com/news", "https://example.com/about", "https://other.example/", "https://other.example/new"]


def opened(url: str, now: float, **settings: Any) -> Collection:
    schema.upgrade(url)
    return parts.collection(parts.settings(url, **settings), now)


@pytest.fixture
def crawled(database_url):
    """Three pages that were visited every hour for a day, and one that never was."""
    collection = opened(database_url, START)
    pages = collection.add_pages(parts.found(URLS), START)
    for hour in range(25):
        for page in pages[:3]:
            assert collection.planner.pick(START + hour * HOUR + page, parts.any_host)
            changed = None if hour == 0 else page == 0 or (page == 2 and hour % 8 == 0)
            parts.visit(collection, page, START + hour * HOUR + page, changed, 60.0 if changed and page == 0 else None)
        if hour == 12:
            source = collection.sources.add("sitemap", "https://example.com/sitemap.xml", "example.com", START)
            collection.unsaved.source(source, START)
            collection.planner.covered([0, 1], source.source, START + hour * HOUR + 10)
            collection.planner.signalled([1], source.source, START + hour * HOUR + 1000)
    collection.flush(START + 24 * HOUR + 10)
    collection.write_behind.drain(10.0)
    collection.lease.heartbeat(START + 24 * HOUR + 10, {})
    yield collection, database_url
    collection.close(START + 24 * HOUR + 20)


def test_the_columns_say_what_the_crawl_knows(crawled):
    """Rate, interval, freshness, precision and recall are those that `crawlsched why` gives."""
    collection, url = crawled
    for row in rows(url, "SELECT * FROM pages WHERE crawled_at IS NOT NULL ORDER BY page"):
        known = explain(collection.planner, row["page"], START + 24 * HOUR + 10)
        assert row["change_rate"] == pytest.approx(known["change_rate"], rel=1e-9)
        assert (row["change_rate_low"], row["change_rate_high"]) == pytest.approx(
            known["change_rate_interval"], rel=1e-9
        )
        assert row["expected_freshness"] == pytest.approx(known["expected_freshness"], rel=1e-9)
        assert 0 < row["change_rate_low"] < min(row["change_rate"], row["change_rate_high"])
        if row["n_signals_total"]:
            assert (row["precision"], row["recall"]) == pytest.approx((known["precision"], known["recall"]), rel=1e-9)
        else:
            assert row["precision"] is row["recall"] is None
    news, about, _, new = rows(url, "SELECT * FROM pages ORDER BY page")
    assert news["change_rate"] > 1 / HOUR / 3 > about["change_rate"]
    assert (news["n_crawls"], news["n_changes"]) == (25, 24)
    assert about["precision"] is not None
    assert new["change_rate"] is new["expected_freshness"] is None


def test_visits_keep_when_the_page_was_modified(crawled):
    """Where it was told; otherwise it is NULL."""
    _, url = crawled
    found = rows(url, "SELECT page, changed, time_since_modified FROM observations")
    assert {(row["page"] == 0 and row["changed"] == 1, row["time_since_modified"]) for row in found} == {
        (True, 60.0),
        (False, None),
    }


def queries() -> list[Any]:
    found = re.findall(r"^## (.+?)\n.*?```sql\n(.+?)```", QUERIES.read_text(), re.DOTALL | re.MULTILINE)
    return [pytest.param(query, id=title) for title, query in found]


def test_the_queries_of_the_documentation_give_something(crawled):
    """Each of the ten runs as it stands, and finds what is there."""
    _, url = crawled
    answers = {param.id: rows(url, param.values[0]) for param in queries()}
    assert len(answers) == 10
    assert all(answers.values())
    assert answers["Which copies are most likely out of date?"][0]["url"] == URLS[0]
    assert answers["Which hosts change most?"][0]["host"] == "example.com"
    assert answers["What has changed in the last day?"][0]["url"] in (URLS[0], URLS[2])
    assert len(answers["What did the visits of one page find?"]) == 25
    sources = answers["How far can each source of announcements be trusted?"]
    assert sources[0]["pages"] == 2
    assert 0 < sources[0]["mean_precision"] < 1
    visits = answers["How did visits end, and how many changes did they find, hour by hour?"]
    assert sum(row["visits"] for row in visits) == 75
    assert np.isclose(sum(row["changes"] or 0 for row in visits), 27)
