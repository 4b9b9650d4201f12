"""What stands in the database: plain columns and queries that run, and the state of each estimator of the papers."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawlsched.crawl.collection import Collection
from crawlsched.estimators import LearnedRates
from crawlsched.estimators.learned_rates import POINT_ESTIMATORS
from crawlsched.planner import explain
from crawlsched.store import schema
from tests import children, parts
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
    visits = rows(url, "SELECT page, changed, time_since_modified FROM observations")
    assert all(row["time_since_modified"] == (60.0 if row["page"] == 0 and row["changed"] else None) for row in visits)


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


N_PAGES = 4
PAGES = parts.found(f"https://example.com/{page}" for page in range(N_PAGES))
WITH_PARAMETERS: dict[str, Any] = {
    "momentum": {"name": "momentum", "beta": 0.75, "initial_change_rate": 1e-5},
    "gamma_posterior": {"name": "gamma_posterior", "prior_shape": 1.0},
    "law_of_large_numbers": '{"name": "law_of_large_numbers", "alpha": 2.0}',
}


def history() -> list[tuple[float, int, bool | None, float | None]]:
    """Give visits: time, page, what was found."""
    rng = np.random.default_rng(7)
    found, at = [], START
    for number in range(60):
        at += float(rng.exponential(600.0))
        page = int(rng.integers(N_PAGES)) if number >= N_PAGES else number
        changed = None if number < N_PAGES else bool(rng.random() < (page + 1) / (N_PAGES + 1))
        found.append((at, page, changed, float(rng.exponential(900.0)) if changed and page % 2 else None))
    return found


def go_on(collection: Collection, visits: list[tuple[float, int, bool | None, float | None]]) -> None:
    for at, page, changed, since in visits:
        collection.planner.hold(page)
        parts.visit(collection, page, at, changed, since)


def alone_with(
    visits: list[tuple[float, int, bool | None, float | None]], name: str, parameters: dict[str, Any] | None = None
) -> LearnedRates:
    """Return an estimator by itself that has seen all visits."""
    alone = LearnedRates(name, N_PAGES, 1 / 86400, parameters or {})
    crawled_at: dict[int, float] = {}
    for at, page, changed, since in visits:
        if changed is not None:
            alone.observe(page, at - crawled_at[page], changed, 0, since)
        crawled_at[page] = at
    return alone


def states(collection: Collection) -> list[bytes]:
    return collection.planner.learned.packed(np.arange(N_PAGES))


def begun(url: str, name: str) -> Collection:
    """Make the first thirty visits, and have them written."""
    visits = history()
    collection = opened(url, START, estimator=WITH_PARAMETERS.get(name, name))
    collection.add_pages(PAGES, START)
    go_on(collection, visits[:30])
    collection.flush(visits[29][0])
    assert collection.write_behind.drain(30.0)
    return collection


def begin_and_be_killed(folder: str) -> None:
    """Crawl by each estimator, with visits that were not written yet, and be killed as by ``kill -9``."""
    for name in POINT_ESTIMATORS:
        go_on(begun(f"sqlite:///{folder}/{name}.db", name), history()[30:35])
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Give the folder with the databases of crawls that were killed, one for each estimator."""
    folder = tmp_path_factory.mktemp("killed")
    code = f"from {__name__} import *; begin_and_be_killed({str(folder)!r})"
    ended = children.start(sys.executable, "-c", code, stderr=subprocess.PIPE)
    _, said = ended.communicate(timeout=60)
    assert ended.returncode == -signal.SIGKILL, said
    return folder


@pytest.mark.parametrize("how", ["closed", "killed"])
@pytest.mark.parametrize("name", POINT_ESTIMATORS)
def test_a_crawl_goes_on_as_if_it_had_never_ended(sqlite_url, killed, name, how):
    """Visits, the end of the process, further visits: state and values are those of the estimator that saw them all."""
    chosen = {"estimator": WITH_PARAMETERS.get(name, name)}
    visits = history()
    if how == "killed":
        sqlite_url = f"sqlite:///{killed / name}.db"
    else:
        begun(sqlite_url, name).close(visits[29][0])

    collection = opened(sqlite_url, visits[29][0], **chosen)
    go_on(collection, visits[30:])
    learned = collection.planner.learned

    alone = alone_with(visits, name, dict(collection.settings.estimator[1]))
    assert states(collection) == alone.packed(np.arange(N_PAGES))
    assert learned.key == alone.key
    end = visits[-1][0] + HOUR
    collection.close(end)
    kept = rows(sqlite_url, "SELECT change_rate, estimator, estimator_state FROM pages ORDER BY page")
    assert [bytes(row["estimator_state"]) for row in kept] == alone.packed(np.arange(N_PAGES))
    assert {row["estimator"] for row in kept} == {alone.key}
    assert [row["change_rate"] for row in kept] == alone.change_rate(np.arange(N_PAGES)).tolist()


def test_another_estimator_begins_anew_and_says_so(sqlite_url, caplog):
    """By default no estimator costs anything; one that finds pages without its rows names `crawlsched db refit`."""
    collection = opened(sqlite_url, START)
    collection.add_pages(PAGES, START)
    go_on(collection, history())
    now = history()[-1][0]
    collection.close(now)
    assert rows(sqlite_url, "SELECT count(*) AS n FROM pages WHERE estimator_state IS NOT NULL")[0]["n"] == 0
    opened(sqlite_url, now, estimator="naive").close(now)
    assert "4 pages are new to this CRAWLSCHED_ESTIMATOR; `crawlsched db refit`" in caplog.text
