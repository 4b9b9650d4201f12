"""`crawlsched status` and `crawlsched why`: what they say is what the planner decides by, over a real store."""

import argparse
import os
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crawlsched.cli import add_commands
from crawlsched.cli.target import find_target
from crawlsched.jobs.stored_planners import planners
from crawlsched.planner import explain
from crawlsched.store import Batch, Host, Store
from tests.benchmarks.bench_store import fill
from tests.commands import report, said
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


@contextmanager
def running(store: Store, seconds: float = 0.0, **status: Any) -> Iterator[None]:
    """Let a crawl run which began some seconds ago, and says this of itself."""
    lease = store.take_lease("news", time.time() - seconds)
    lease.heartbeat(time.time(), status)
    yield
    lease.release(time.time())


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
    assert "(of a sample)" in said("status", "--database", url)
    why = report("why", median, "--database", url)
    assert why["n_before"] == pytest.approx(7_500, rel=0.1)
    assert f"after {why['n_before']:,} pages that are worth more" in said("why", median, "--database", url)


def test_status_fits_on_a_screen(simulated: Simulated, database: str) -> None:
    """For a person there are a few lines, with nothing of the machine in them."""
    shown = said("status", "--database", database)
    assert len(shown.splitlines()) < 24
    assert "120 pages on 2 hosts" in shown
    assert "bandwidth 20/h" in shown
    assert "not crawling; the last crawl ended" in shown
    assert not any(word in shown for word in ("nan", "None", "inf", "{"))


def test_status_shows_what_a_running_crawl_says_of_itself(tmp_path: Path) -> None:
    """Slots used, idle, without a free host and missed come from the heartbeat of the running crawl."""
    url = f"sqlite:///{tmp_path}/crawl.db"
    slots = {"used": 90, "idle": 6, "no_free_host": 3, "missed": 1, "paid": 7}
    with closing(Store.open(url, "news")) as store, running(store, 90.0, bandwidth=50.0, threshold=12.5, slots=slots):
        status, shown = report("status", "--database", url), said("status", "--database", url)
    assert status["owner"]["running"] is True
    assert status["owner"]["pid"] == os.getpid()
    assert status["budget"]["slots"] == slots
    assert re.search(r"  crawling for 9\d(\.\d)? s \(spider 'news', pid \d+ on \S+; last sign of life", shown)
    assert "slots of this crawl: used 90 %, idle 6 %, no free host 3 %, missed 1 %" in shown


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
    shown = said("why", simulated.url(4), "--database", database)
    at_random = "if it changes at random, between"
    for words in ("changes", at_random, "announced", "copy", "worth now", "next crawl", "decided by"):
        assert words in shown
    assert "(no crawl is running now)" in shown
    assert not any(word in shown for word in ("nan", "None", " inf", "{"))


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
    assert "the max_interval of CRAWLSCHED_PAGES" in said(
        "why", simulated.url(newest), *longest, "--database", database
    )


def test_why_knows_of_a_host_that_rests_and_of_the_crawls_own_settings(tmp_path: Path) -> None:
    """A host that asked to be left alone is what its pages wait for, or an interval that the crawl was started with."""
    url, rest_until = f"sqlite:///{tmp_path}/crawl.db", time.time() + 1000.0
    with closing(Store.open(url, "news")) as store:
        simulated = crawl(store, time.time(), n_pages=10, days=0.5)
        set_to = {"pages": [["*", {"min_interval": "30d"}]]}
        with running(store, bandwidth=1.0, threshold=1.0, planner=set_to):
            assert report("why", simulated.url(5), "--database", url)["binds"] == "min_interval"
        with running(store, bandwidth=1.0, threshold=1.0):
            pass
        store.save(Batch(hosts={HOSTS[0]: Host(HOSTS[0], rest_until=rest_until)}))
    resting = report("why", simulated.url(4), "--database", url)
    assert resting["binds"] == "host"
    assert resting["host_rests_until"] == rest_until
    assert resting["next_crawl_at"] >= rest_until
    assert report("why", simulated.url(5), "--database", url)["binds"] == "value"


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
    with running(store, bandwidth=1e-6, pages=120, threshold=threshold):
        why = report("why", simulated.url(page), "--database", url)
    store.close()
    assert why["wake_time"] - why["time"] < 1e6 * n_above
    assert n_above > 4
    assert why["n_before"] == pytest.approx(n_above, abs=2)
    assert why["next_crawl_at"] == pytest.approx(why["time"] + 1e6 * why["n_before"], abs=60.0)
