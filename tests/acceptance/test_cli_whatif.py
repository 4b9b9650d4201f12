"""`crawlsched whatif`: over a real store, the freshness of other bandwidths and the bandwidth for a freshness."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from crawlsched.planner.reports.outlook import Outlook
from crawlsched.store import Batch, Source, Store
from tests.commands import failed, report, run_here, said
from tests.simulated import Simulated, crawl

HOUR = 3600.0


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('whatif')}/crawl.db"


@pytest.fixture(scope="module")
def simulated(database: str) -> Iterator[Simulated]:
    """A collection of 30 pages that was crawled for three simulated days, 5 visits an hour, which end now."""
    store = Store.open(database, "news")
    yield crawl(store, time.time(), n_pages=30, bandwidth=5 / HOUR)
    store.close()


def test_it_is_the_outlook_of_the_planner_that_crawled(simulated: Simulated, database: str) -> None:
    """What stands in the store gives the same numbers as the crawl's own planner, with its plan, in memory."""
    found = report("whatif", "--database", database, "--bandwidths", "0.5x", "5/h", "2x")
    assert (found["pages"], found["sample"], found["bandwidth"]) == (30, 30, 5 / HOUR)
    outlook = Outlook(30 / found["bandwidth"])
    outlook.add(simulated.planner, np.arange(30))
    assert [one["bandwidth"] * HOUR for one in found["bandwidths"]] == pytest.approx([2.5, 5, 10])
    for one in found["bandwidths"]:
        assert one["freshness"] == pytest.approx(outlook.freshness(one["bandwidth"]), abs=1e-3)
        assert one["freshness"] > one["freshness_in_turn"]
    assert found["fresh_now"] == pytest.approx(simulated.freshness, abs=0.15)


def test_the_bandwidth_for_a_freshness_gives_it(simulated: Simulated, database: str) -> None:
    """Asked the other way round, the answer comes back."""
    needed = report("whatif", "--database", database, "--freshness", "0.85", "95%")["needed"]
    again = [f"{one['bandwidth']:.12f}/s" for one in needed]
    found = report("whatif", "--database", database, "--bandwidths", *again)["bandwidths"]
    assert [one["freshness"] for one in needed] == [0.85, 0.95]
    assert [one["freshness"] for one in found] == pytest.approx([0.85, 0.95], abs=1e-3)


def test_for_a_person_it_is_two_tables(simulated: Simulated, database: str) -> None:
    """Bandwidths in the unit of the present one, and nothing of the machine."""
    shown = said("whatif", "--database", database, "--bandwidths", "0.5x", "1x", "--freshness", "0.9", "0.99999999")
    lines = [line.split() for line in shown.splitlines()]
    assert "  30 pages to be kept fresh on 5/h" in shown.splitlines()
    assert ["2.5/h", "0.5x"] in [words[:2] for words in lines]
    assert ["5/h", "1x"] in [words[:2] for words in lines]
    assert "not reached with" in shown
    assert not any(word in shown for word in ("nan", "None", "inf", "{"))


def test_sitemaps_take_their_share(simulated: Simulated, database: str, tmp_path: Path) -> None:
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


def test_a_large_store_is_sampled(simulated: Simulated, database: str) -> None:
    """From every other page the numbers are near those of all, and the output says that it is a sample."""
    whole = report("whatif", "--database", database)
    sampled = report("whatif", "--database", database, "--sample", "15")
    assert (sampled["sample"], sampled["pages"]) == (15, 30)
    for one, other in zip(sampled["bandwidths"], whole["bandwidths"], strict=True):
        assert one["freshness"] == pytest.approx(other["freshness"], abs=0.1)
    assert "Computed from an even sample of 15 pages" in said("whatif", "--database", database, "--sample", "15")


def test_mistakes_are_one_sentence(database: str, tmp_path: Path) -> None:
    """The sentence says what is wrong and what is allowed."""
    for text in ("3y", "0x", "-1/h", "x"):
        assert failed(run_here(tmp_path, "whatif", "--database", database, f"--bandwidths={text}")) == (
            f"A bandwidth must be such as 5/s, 300/h or 20000/d, or 2x for twice the present one, got {text!r}."
        )
    url = f"sqlite:///{tmp_path}/empty.db"
    Store.open(url, "news").close()
    assert failed(run_here(tmp_path, "whatif", "--database", url)) == (
        "The collection 'news' holds no page yet that is to be kept fresh; crawl first."
    )
    refused = run_here(tmp_path, "whatif", "--database", database, "--freshness", "1.2")
    assert refused.returncode == 2
    assert "must be a share from 0 to 1, such as 0.9 or 90%, got '1.2'." in refused.stderr
