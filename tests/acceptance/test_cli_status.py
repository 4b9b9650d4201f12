"""`crawlsched status` and `crawlsched why`: what they say is what the planner decides by, over a real store."""

import argparse
import json
import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawlsched.cli import add_commands, main
from crawlsched.cli import status as status_command
from crawlsched.cli.target import find_target
from crawlsched.jobs.crawl_jobs import plan_store
from crawlsched.jobs.stored_planners import planners
from crawlsched.planner import explain
from crawlsched.settings import Settings
from crawlsched.store import Batch, Host, NewPage, Store
from tests.benchmarks.bench_store import GRID, columns, fill
from tests.simulated import HOSTS, Simulated, crawl


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('status')}/crawl.db"


@pytest.fixture(scope="module")
def simulated(database: str) -> Iterator[Simulated]:
    """A collection that was crawled for three simulated days which end now."""
    store = Store.open(database, "news")
    yield crawl(store, time.time())
    store.close()


def run(*arguments: str) -> str:
    """Run a command in this process (test_cli.py runs them in their own)."""
    said = StringIO()
    with redirect_stdout(said):
        assert main(arguments) == 0
    return said.getvalue()


def report(*arguments: str) -> Any:
    return json.loads(run(*arguments, "--json"))


# -- status


def test_status_knows_the_pages_and_how_the_budget_was_used(simulated: Simulated, database: str) -> None:
    """Pages by state, the last crawl's bandwidth, and the visits of the last hour and day are those of the crawl."""
    status = report("status", "--database", database)
    assert status["pages"] == {
        "total": 120,
        "hosts": 2,
        "states": {"new": 0, "live": 120, "gone": 0, "moved": 0, "error": 0, "refused": 0},
    }
    assert status["budget"]["bandwidth"] == simulated.planner.bandwidth
    for name, seconds in (("last_hour", 3600.0), ("last_day", 86_400.0)):
        recent = [visit for visit in simulated.visits if visit.time >= status["time"] - seconds]
        assert status[name]["visits"] == len(recent)
        assert status[name]["changes"] == sum(bool(visit.changed) for visit in recent)
        assert sum(status[name]["outcomes"].values()) == len(recent)


def test_expected_freshness_is_near_the_truth(simulated: Simulated, database: str) -> None:
    """What is expected from what was learned is, within its chance error, what is true of the simulated pages."""
    expected = report("status", "--database", database)["expected_freshness"]
    standard_error = np.sqrt(expected * (1 - expected) / 120)
    assert abs(expected - simulated.freshness) < 3.5 * standard_error


def test_expected_freshness_is_that_of_the_pages_one_by_one(simulated: Simulated, database: str) -> None:
    """The sum over blocks equals the mean of what the planner says of each page."""
    status = report("status", "--database", database)
    planner, now = simulated.planner, status["time"]
    each = [planner.values.fresh(np.array([page]), now).item() for page in range(120)]
    assert status["expected_freshness"] == pytest.approx(np.mean(each), rel=1e-6)
    explained = [explain(planner, page, now).expected_freshness for page in range(0, 120, 11)]
    assert explained == pytest.approx(each[::11], rel=1e-6)
    assert status["freshness_error"] == 0.0


def test_of_very_many_pages_some_are_looked_at_and_the_error_is_said(tmp_path: Path) -> None:
    """What comes out is that of all pages, within four of its standard errors."""
    url = f"sqlite:///{tmp_path / 'large.db'}"
    store = Store.open(url, "bench", upgrade=True)
    fill(store, 15_000, np.random.default_rng(1))
    parser = argparse.ArgumentParser()
    add_commands(parser)
    arguments = parser.parse_args(["status", "--database", url])
    arguments.project_settings = None
    target, now = find_target(arguments), time.time()
    loaded = [(planner, np.arange(rows.size)) for planner, rows in planners(store, target.settings, now)]
    likely = np.concatenate([planner.values.fresh(rows, now) for planner, rows in loaded])
    values = np.concatenate([planner.crawl_values.value_at(rows, now) for planner, rows in loaded])
    median = store.reader.urls([page := int(np.argsort(values)[values.size // 2])])[page]
    store.close()
    status = report("status", "--database", url)
    assert 0.0 < status["freshness_error"] < 0.01
    assert abs(status["expected_freshness"] - likely.mean()) < 4 * status["freshness_error"]
    assert "(of a sample)" in run("status", "--database", url)
    why = report("why", median, "--database", url)
    assert why["n_before"] == pytest.approx(7_500, rel=0.1)
    assert f"after {why['n_before']:,} pages that are worth more" in run("why", median, "--database", url)


def test_of_very_many_pages_the_counts_are_those_of_the_newest_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new plan counts what the database would; pages that came later are in the next one."""
    url = f"sqlite:///{tmp_path / 'large.db'}"
    store = Store.open(url, "bench", upgrade=True)
    fill(store, 3_000, np.random.default_rng(1))
    before = time.time()
    plan_store(store, Settings(), time.time())
    counted = report("status", "--database", url)
    monkeypatch.setattr(status_command, "_ALL_COUNTED", 2_000)
    planned = report("status", "--database", url)
    assert before <= planned["pages_counted_at"] <= planned["time"]
    assert planned["replanned_at"] == counted["replanned_at"] >= before
    assert counted["pages_counted_at"] is None
    for name in ("pages", "sources"):
        assert planned[name] == counted[name]
    assert planned["pages"]["total"] == 3_000
    assert "3,000 pages on 1,000 hosts, counted " in run("status", "--database", url)
    address = "https://another.example/"
    batch = Batch(columns=columns(np.array([3_000]), np.random.default_rng(2)), grid=GRID)
    batch.new_pages[3_000] = NewPage(3_000, address, "another.example", b"d" * 20, 1.7e9)
    store.save(batch)
    assert report("status", "--database", url)["pages"] == planned["pages"]
    plan_store(store, Settings(), time.time())
    assert report("status", "--database", url)["pages"]["hosts"] == 1_001
    store.close()


def test_status_tells_an_honest_source_from_a_babbling_one(simulated: Simulated, database: str) -> None:
    """The sitemap that announces only real changes comes first; the one that announces anything is worth little."""
    honest, babbling = report("status", "--database", database)["sources"]
    assert (honest["source"], babbling["source"]) == (0, 1)
    assert (honest["pages"], babbling["pages"]) == (60, 60)
    assert honest["precision"] > 0.8 > 0.3 > babbling["precision"]
    low, high = honest["precision_interval"]
    assert low <= honest["precision"] <= high
    assert 0.4 < honest["recall"] < 0.95  # 0.7 in truth


def test_status_fits_on_a_screen(simulated: Simulated, database: str) -> None:
    """For a person there are a few lines, with nothing of the machine in them."""
    said = run("status", "--database", database)
    assert len(said.splitlines()) < 24
    assert "120 pages on 2 hosts" in said
    assert "bandwidth 20/h" in said
    assert "not crawling; the last crawl ended" in said
    assert not any(word in said for word in ("nan", "None", "inf", "{"))


def test_status_shows_what_a_running_crawl_says_of_itself(tmp_path: Path) -> None:
    """Slots used, idle, without a free host and missed come from the heartbeat of the running crawl."""
    url = f"sqlite:///{tmp_path}/crawl.db"
    store = Store.open(url, "news")
    lease = store.take_lease("news", time.time() - 90.0)
    slots = {"used": 90, "idle": 6, "no_free_host": 3, "missed": 1, "paid": 7}
    lease.heartbeat(time.time(), {"bandwidth": 50.0, "threshold": 12.5, "slots": slots})
    status = report("status", "--database", url)
    assert status["owner"]["running"] is True
    assert status["owner"]["pid"] == os.getpid()
    assert status["budget"]["slots"] == slots
    said = run("status", "--database", url)
    assert re.search(r"  crawling for 9\d(\.\d)? s \(spider 'news', pid \d+ on \S+; last sign of life", said)
    assert "slots of this crawl: used 90 %, idle 6 %, no free host 3 %, missed 1 %" in said
    lease.release(time.time())
    store.close()


def test_status_of_an_empty_collection(tmp_path: Path) -> None:
    """Where nothing was crawled yet, that is what it says."""
    url = f"sqlite:///{tmp_path}/crawl.db"
    Store.open(url, "news").close()
    status = report("status", "--database", url)
    assert status["pages"]["total"] == 0
    assert status["expected_freshness"] is None
    said = run("status", "--database", url)
    assert "never crawled" in said
    assert "expected to be fresh, by importance: not known" in said


def test_the_trust_in_a_source_is_not_known_yet_before_it_was_heard(
    simulated: Simulated, database: str, tmp_path: Path
) -> None:
    """The same collection without what its visits told of sources: no command shows what is only assumed."""
    heard = run("status", "--database", database)
    assert re.search(r"[0-9.]+ % \([0-9.]+ % to [0-9.]+ %\) +[0-9.]+ % \([0-9.]+ % to [0-9.]+ %\) +60 ", heard)
    with sqlite3.connect(database.removeprefix("sqlite:///")) as source, sqlite3.connect(tmp_path / "c.db") as copy:
        source.backup(copy)
        copy.execute("DELETE FROM observations")
        copy.execute("DELETE FROM plans")
        copy.commit()
    url = f"sqlite:///{tmp_path}/c.db"
    for name in ("status", "sources"):
        told = report(name, "--database", url)["sources"]
        assert {source["precision"] for source in told} == {source["recall"] for source in told} == {None}
        assert run(name, "--database", url).count("not known yet") >= 4
    why = run("why", simulated.url(0), "--database", url)
    assert "how far its announcements can be trusted is not known yet" in why
    assert "of its announcements" not in why


# -- why


@pytest.mark.parametrize("page", [0, 5, 40, 61, 119])
def test_why_says_what_the_planner_decides_by(simulated: Simulated, database: str, page: int) -> None:
    """Every estimate is the production planner's own explanation of the page at that time."""
    why = report("why", simulated.url(page), "--database", database)
    explained = explain(simulated.planner, page, why["time"]).to_dict()
    for name, value in explained.items():
        if value == np.inf:
            assert why[name] is None
        elif isinstance(value, str):
            assert why[name] == value
        else:
            # The store keeps the likelihood in steps, and no count of how it was rounded.
            assert why[name] == pytest.approx(value, rel=1e-3), name
    assert why["next_crawl_at"] >= why["time"]


def test_why_shows_the_last_visits_newest_first(simulated: Simulated, database: str) -> None:
    """The visits are those of the page, as many as asked for, and the counts agree with them."""
    why = report("why", simulated.url(4), "--visits", "3", "--database", database)
    own = [visit for visit in simulated.visits if visit.page == 4]
    assert [visit["time"] for visit in why["visits"]] == [visit.time for visit in own[::-1][:3]]
    assert why["n_crawls"] == len(own)
    assert why["n_changes"] == sum(bool(visit.changed) for visit in own)
    (by,) = why["announced_by"]
    assert (by["kind"], by["url"], by["n_announced"]) == ("sitemap", f"http://{HOSTS[0]}/sitemap.xml", 3)


def test_why_is_said_in_words(simulated: Simulated, database: str) -> None:
    """For a person there is the page, its changes, its worth, when it is crawled and what decides that."""
    said = run("why", simulated.url(4), "--database", database)
    for words in (
        "changes",
        "if it changes at random, between",
        "announced",
        "copy",
        "worth now",
        "next crawl",
        "decided by",
    ):
        assert words in said
    assert "(no crawl is running now)" in said
    assert not any(word in said for word in ("nan", "None", " inf", "{"))


def test_an_announcement_is_said_to_be_likely_where_one_in_three_comes_by_then(
    simulated: Simulated, database: str
) -> None:
    """Others can go before their value reaches the threshold, too: slots differ in what waits for them."""
    n_said = n_unsaid = 0
    for page in range(0, 120, 7):
        why = report("why", simulated.url(page), "--database", database)
        said = "when an announcement is likely" in run("why", simulated.url(page), "--database", database)
        is_sooner = why["next_crawl_at"] < why["wake_time"]
        comes = -np.expm1(-why["signal_rate"] * (why["next_crawl_at"] - why["time"]))
        assert not said or (is_sooner and comes > 1 / 3)
        n_said += said
        n_unsaid += is_sooner and not said
    assert n_said > 0
    assert n_unsaid > 0


def test_why_finds_a_page_by_another_spelling(simulated: Simulated, database: str) -> None:
    """A fragment or another order of the query is the same page, as for the crawl itself."""
    with_fragment = report("why", simulated.url(4) + "#top", "--database", database)
    assert (with_fragment["page"], with_fragment["url"]) == (4, simulated.url(4))


def test_why_names_a_floor_that_binds(simulated: Simulated, database: str) -> None:
    """With an interval in the settings, what decides is that interval."""
    newest = simulated.visits[-1].page
    shortest = ("-s", 'CRAWLSCHED_PAGES=[["*", {"min_interval": "10d"}]]')
    why = report("why", simulated.url(newest), *shortest, "--database", database)
    assert why["binds"] == "min_interval"
    assert why["next_crawl_at"] >= simulated.visits[-1].time + 10 * 86_400.0
    longest = ("-s", 'CRAWLSCHED_PAGES=[["*", {"max_interval": "1s"}]]')
    why = report("why", simulated.url(newest), *longest, "--database", database)
    assert why["binds"] == "overdue"
    assert why["next_crawl_at"] == why["time"]
    assert "the max_interval of CRAWLSCHED_PAGES" in run("why", simulated.url(newest), *longest, "--database", database)


def test_why_knows_of_a_host_that_rests_and_of_the_crawls_own_settings(tmp_path: Path) -> None:
    """A host that asked to be left alone is what its pages wait for, or an interval that the crawl was started with."""
    url = f"sqlite:///{tmp_path}/crawl.db"
    store = Store.open(url, "news")
    simulated = crawl(store, time.time(), n_pages=10, days=0.5)
    lease = store.take_lease("news", time.time())
    lease.heartbeat(
        time.time(), {"bandwidth": 1.0, "threshold": 1.0, "planner": {"pages": [["*", {"min_interval": "30d"}]]}}
    )
    assert report("why", simulated.url(5), "--database", url)["binds"] == "min_interval"
    lease.heartbeat(time.time(), {"bandwidth": 1.0, "threshold": 1.0})
    lease.release(time.time())
    rest_until = time.time() + 1000.0
    store.save(Batch(hosts={HOSTS[0]: Host(HOSTS[0], rest_until=rest_until)}))
    store.close()
    resting = report("why", simulated.url(4), "--database", url)
    assert resting["binds"] == "host"
    assert resting["host_rests_until"] == rest_until
    assert resting["next_crawl_at"] >= rest_until
    assert report("why", simulated.url(5), "--database", url)["binds"] == "value"


def test_why_counts_those_that_have_waited_for_too_many_rounds_too(tmp_path: Path) -> None:
    """They share one slot in sixteen: of forty half go before a page, where nothing is worth its crawl."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    store = Store.open(url, "news")
    simulated = crawl(store, time.time())
    oldest = np.argsort(simulated.planner.pages.crawled_at[:120], kind="stable")
    patience = time.time() - simulated.planner.pages.crawled_at[oldest[40]] + 5.0
    lease = store.take_lease("news", time.time())
    status = {"bandwidth": 480.0 / patience, "pages": 120, "threshold": 1e9}  # four rounds
    lease.heartbeat(time.time(), status)
    wait = 0.5 * 40 * 16 * patience / 480
    waits, next_one = (report("why", simulated.url(int(page)), "--database", url) for page in oldest[[20, 60]])
    assert waits["round_ends"] < waits["time"]
    assert waits["next_crawl_at"] == pytest.approx(waits["time"] + wait, abs=60.0)
    assert next_one["next_crawl_at"] == pytest.approx(next_one["round_ends"] + wait, abs=60.0)
    lease.release(time.time())
    store.close()


def test_a_page_waits_for_those_that_are_worth_more_than_the_threshold(tmp_path: Path) -> None:
    """After a slow first crawl there are many of them, and one that would go by itself sooner goes after them."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    store = Store.open(url, "news")
    simulated = crawl(store, time.time())
    values = simulated.planner.crawl_values.value_at(np.arange(120), time.time())
    plan = simulated.planner.plan
    threshold = max(float(np.median(values)), 0.0 if plan is None else plan.threshold)
    page = int(np.flatnonzero(values == values[values < threshold].max())[0])
    n_above = int(np.count_nonzero(values > threshold))
    lease = store.take_lease("news", time.time())
    lease.heartbeat(time.time(), {"bandwidth": 1e-6, "pages": 120, "threshold": threshold})
    why = report("why", simulated.url(page), "--database", url)
    lease.release(time.time())
    store.close()
    assert why["wake_time"] - why["time"] < 1e6 * n_above
    assert n_above > 4
    assert why["n_before"] == pytest.approx(n_above, abs=2)
    assert why["next_crawl_at"] == pytest.approx(why["time"] + 1e6 * why["n_before"], abs=60.0)


def test_why_of_an_unknown_page_is_a_sentence(simulated: Simulated, database: str) -> None:
    """A URL that is no page is said to be none, with exit code 1."""
    said = StringIO()
    with redirect_stderr(said):
        assert main(["why", "http://127.0.0.9/", "--database", database]) == 1
    assert said.getvalue() == (
        "No page with the URL 'http://127.0.0.9/' is in the collection 'news'; "
        "check its spelling, or name another collection with --collection.\n"
    )
