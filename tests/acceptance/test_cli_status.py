"""`crawlsched status`, `why`, `whatif` and `sources`: they say what the planner decides by, over a real store."""

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
import pytest

from crawlsched.cli.sources import newest_report
from crawlsched.jobs.stored_planners import planners
from crawlsched.planner import explain
from crawlsched.planner.reports.outlook import Outlook
from crawlsched.store import Batch, Host, NewPage, ObservationRow, Source, Store
from tests import parts
from tests.benchmarks.bench_crawl import fill
from tests.commands import report, said
from tests.simulated import HOSTS, Simulated, crawl


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('status')}/crawl.db"


@pytest.fixture(scope="module")
def simulated(database) -> Iterator[Simulated]:
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


def test_status_knows_the_pages_and_how_the_budget_was_used(simulated: Simulated, database):
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


def test_of_very_many_pages_some_are_looked_at_and_the_error_is_said(tmp_path):
    """What comes out is that of all pages, within four of its standard errors."""
    url = f"sqlite:///{tmp_path / 'large.db'}"
    store = Store.open(url, "bench", upgrade=True)
    fill(store, 15_000, 8000)
    now = time.time()
    loaded = [(planner, np.arange(rows.size)) for planner, rows in planners(store, parts.settings(url), now)]
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


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("status", ["120 pages on 2 hosts", "bandwidth 20/h", "not crawling; the last crawl ended"]),
        ("why", ["changes", "if it changes at random, between", "announced", "copy", "worth now", "next crawl"]),
        ("why", ["decided by", "(no crawl is running now)"]),
        ("whatif --bandwidths 0.5x 1x", ["120 pages to be kept fresh on 20/h", " 10/h 0.5x ", " 20/h 1x "]),
        ("whatif --freshness 0.9 0.99999999", ["not reached with"]),
    ],
)
def test_for_a_person_there_are_a_few_lines_of_words(simulated: Simulated, database, command, words):
    """They fit on a screen, and have nothing of the machine in them."""
    page = [simulated.url(4)] if command == "why" else []
    shown = said(*command.split(), *page, "--database", database)
    assert len(shown.splitlines()) < 24
    assert [text for text in words if text not in " ".join(shown.split())] == [], shown
    assert not any(word in shown for word in ("nan", "None", " inf", "{"))


def test_status_shows_what_a_running_crawl_says_of_itself(tmp_path):
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
def test_why_says_what_the_planner_decides_by(simulated: Simulated, database, page):
    """Every estimate is the production planner's own explanation of the page at that time."""
    why = report("why", simulated.url(page), "--database", database)
    explained = explain(simulated.planner, page, why["time"])
    for name, value in explained.items():
        if value == np.inf:
            assert why[name] is None
        elif isinstance(value, str):
            assert why[name] == value
        else:
            # The store keeps the likelihood in steps, and no count of how it was rounded.
            assert why[name] == pytest.approx(value, rel=1e-3), name
    assert why["next_crawl_at"] >= why["time"]


def test_why_shows_the_last_visits_newest_first(simulated: Simulated, database):
    """The visits are those of the page, as many as asked for, and the counts agree with them."""
    why = report("why", simulated.url(4), "--visits", "3", "--database", database)
    own = [visit for visit in simulated.visits if visit.page == 4]
    assert [visit["time"] for visit in why["visits"]] == [visit.time for visit in own[::-1][:3]]
    assert why["n_crawls"] == len(own)
    assert why["n_changes"] == sum(bool(visit.changed) for visit in own)
    (by,) = why["announced_by"]
    assert (by["kind"], by["url"], by["n_announced"]) == ("sitemap", f"http://{HOSTS[0]}/sitemap.xml", 3)


def test_why_names_a_floor_that_binds(simulated: Simulated, database):
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


def test_why_knows_of_a_host_that_rests_and_of_the_crawls_own_settings(tmp_path):
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


def test_a_page_waits_for_those_that_are_worth_more_than_the_threshold(tmp_path):
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


HOUR = 3600.0


# `crawlsched whatif`: the freshness of other bandwidths, and the bandwidth for a freshness.


def test_whatif_is_the_outlook_of_the_planner_that_crawled(simulated: Simulated, database):
    """What stands in the store gives the same numbers as the crawl's own planner, with its plan, in memory."""
    found = report("whatif", "--database", database, "--bandwidths", "0.5x", "20/h", "2x")
    assert (found["pages"], found["sample"], found["bandwidth"]) == (120, 120, 20 / HOUR)
    outlook = Outlook(120 / found["bandwidth"])
    outlook.add(simulated.planner, np.arange(120))
    assert [one["bandwidth"] * HOUR for one in found["bandwidths"]] == pytest.approx([10, 20, 40])
    for one in found["bandwidths"]:
        assert one["freshness"] == pytest.approx(outlook.freshness(one["bandwidth"]), abs=1e-3)
        assert one["freshness"] > one["freshness_in_turn"]
    assert found["fresh_now"] == pytest.approx(simulated.freshness, abs=0.15)
    sampled = report("whatif", "--database", database, "--bandwidths", "0.5x", "20/h", "2x", "--sample", "60")
    assert sampled["sample"] == 60
    for one, other in zip(sampled["bandwidths"], found["bandwidths"], strict=True):
        assert one["freshness"] == pytest.approx(other["freshness"], abs=0.1)
    assert "Computed from an even sample of 60 pages" in said("whatif", "--database", database, "--sample", "60")


def test_the_bandwidth_for_a_freshness_gives_it(simulated: Simulated, database):
    """Asked the other way round, the answer comes back."""
    needed = report("whatif", "--database", database, "--freshness", "0.85", "95%")["needed"]
    again = [f"{one['bandwidth']:.12f}/s" for one in needed]
    found = report("whatif", "--database", database, "--bandwidths", *again)["bandwidths"]
    assert [one["freshness"] for one in needed] == [0.85, 0.95]
    assert [one["freshness"] for one in found] == pytest.approx([0.85, 0.95], abs=1e-3)


def test_sitemaps_take_their_share(tmp_path):
    """A sitemap that is read every half hour takes 2 of the 5 requests an hour."""
    url = f"sqlite:///{tmp_path}/crawl.db"
    store = Store.open(url, "news")
    now = time.time()
    crawl(store, now, n_pages=10, days=1.0, bandwidth=5 / HOUR)
    polled = Source(0, "sitemap", "http://127.0.0.1/sitemap.xml", "127.0.0.1", polled_at=now, next_poll_at=now + 1800)
    store.save(Batch(since=now, sources={0: polled}))
    store.close()
    found = report("whatif", "--database", url, "--bandwidths", "5/h")
    assert found["polls"] * HOUR == pytest.approx(2.0)
    assert "on 5/h, 2/h of that for sitemaps" in said("whatif", "--database", url)


N_PAGES, N_VISITS = 40, 1600


@pytest.fixture(scope="module")
def announced(tmp_path_factory) -> str:
    """A sitemap that is honest about /news/ and says anything about /tags/; the URL of the database."""
    rng, url = np.random.default_rng(4), f"sqlite:///{tmp_path_factory.mktemp('sources')}/crawl.db"
    urls = [f"http://a/{'news' if page % 2 else 'tags'}/{page}" for page in range(N_PAGES)]
    pages = {page: NewPage(page, urls[page], "a", bytes([page]) * 20, 0.0) for page in range(N_PAGES)}
    sources = {0: Source(0, "sitemap", "http://a/map.xml", "a", problems={"bad-url": 2}, quality={"announced": 500})}
    rows = []
    for number in range(N_VISITS):
        page = int(rng.integers(N_PAGES))
        elapsed = float(rng.exponential(1000.0))
        n = int(rng.poisson(0.001 * elapsed))
        stale = 0.0001 * elapsed + (3.0 * n if page % 2 else 0.0)
        changed = bool(rng.random() < 1 - np.exp(-stale))
        rows.append(ObservationRow(number, page, 1000.0 + number, elapsed, n, 0, changed, "changed"))
    listed = {(page, 0): (None, 0) for page in range(N_PAGES)}
    with closing(Store.open(url, "test")) as store:
        store.save(Batch(new_pages=pages, sources=sources, observations=rows, announcements=listed))
    return url


def test_sources_are_shown_with_counts_and_intervals(announced: str):
    """By source, by site, and by part of the site, of which one is believed and the other is not."""
    told = report("sources", "--database", announced)
    [source] = told["sources"]
    low, high = source["precision_interval"]
    assert 0.0 < low < source["precision"] < high < 1.0
    assert source["recall_interval"][0] < source["recall"] < source["recall_interval"][1]
    rarest, most_often = source["false_per_day_interval"]
    assert 0.0 < rarest < source["false_per_day"] < most_often
    assert source["visits"] == N_VISITS
    assert 0 < source["true"] < source["heard"] < N_VISITS
    assert source["announced"] == 500
    assert [site["host"] for site in told["sites"]] == ["a"]
    precision = {part["part"]: part["precision_interval"] for part in told["parts"]}
    assert precision["/news/"][0] < 1 - np.exp(-3.0) < precision["/news/"][1]
    assert precision["/news/"][0] > 0.85
    assert precision["/tags/"][1] < 0.15
    text = said("sources", "--database", announced)
    assert "sitemap http://a/map.xml  (bad-url 2)" in text
    assert "/tags/ of source 0" in text
    # What the columns mean stands below them.
    assert "true: how many visits after an announcement found a change." in " ".join(text.split())
    assert "e-" not in text
    assert "e+" not in text


def test_one_figure_is_said_once(announced: str):
    """`sources`, `status` and `why` have the same precision and recall of a source, with the same bounds."""
    [source] = report("sources", "--database", announced)["sources"]
    [in_status] = report("status", "--database", announced)["sources"]
    [of_page] = report("why", "http://a/news/1", "--database", announced)["announced_by"]
    with closing(Store.open(announced, "test")) as store:
        [on_web] = newest_report(store)["sources"]
    names = ("precision", "precision_interval", "recall", "recall_interval", "true", "heard")
    for other in (in_status, of_page, on_web):
        assert [json.loads(json.dumps(other[name])) for name in names] == [source[name] for name in names]


def test_what_is_not_known_yet_is_said_so_and_why(tmp_path):
    """Of a feed whose every announcement was true, and which nobody visited without; of others that were not heard."""
    url = f"sqlite:///{tmp_path / 'crawl.db'}"
    store = Store.open(url, "test")
    read = {"polled_at": 900.0, "next_poll_at": time.time() + 60.0}
    quality = {"announced": 14, "document": "rss"}
    feed = Source(0, "sitemap", "http://a/feed", "a", quality=quality, problems={"bad-url": 1}, **read)
    others = [
        Source(1, "sitemap", "http://a/1.xml", "a"),
        Source(2, "sitemap", "http://a/2.xml", "a", **read),
        Source(3, "sitemap", "http://a/3.xml", "a", quality={"announced": 3}, **read),
    ]
    pages = {page: NewPage(page, f"http://a/{page}", "a", bytes([page]) * 20, 0.0) for page in range(14)}
    visits = [ObservationRow(n, n, 1000.0 + n, 40.0, 1, 0, True, "changed") for n in range(14)]
    store.save(Batch(new_pages=pages, sources={one.source: one for one in (feed, *others)}, observations=visits))
    store.close()
    text = said("sources", "--database", url)
    [line] = [line for line in text.splitlines() if "feed http://a/feed" in line]
    assert line.split("  ")[1] == "not known yet (14 of 14 true)"
    assert "%" not in line
    assert "e-" not in text
    assert "e+" not in text
    reasons = {line.split()[-1]: line for line in text.splitlines() if "sitemap http://a/" in line}
    assert "not known yet (not read yet)" in reasons["http://a/1.xml"]
    assert "not known yet (has announced nothing yet)" in reasons["http://a/2.xml"]
    assert "not known yet (3 announced, none visited since)" in reasons["http://a/3.xml"]
    assert "not known yet (14 of 14 true)" in said("status", "--database", url)
