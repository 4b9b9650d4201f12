"""A crawl by any estimator of the papers: its state is kept for each URL, as if the process had never ended."""

import os
import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from crawlsched.crawl.collection import Collection
from crawlsched.estimators import LearnedRates
from crawlsched.estimators.learned_rates import POINT_ESTIMATORS
from tests import children, parts
from tests.databases import rows
from tests.integration.collection.test_readable_state import HOUR, START, opened

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


def test_another_estimator_learns_from_the_visits_that_are_kept(database_url):
    """Nothing is lost by a change of CRAWLSCHED_ESTIMATOR but what is older than the observations."""
    visits = history()
    collection = opened(database_url, START)
    collection.add_pages(PAGES, START)
    go_on(collection, visits)
    now = visits[-1][0]
    collection.close(now)
    assert rows(database_url, "SELECT count(*) AS n FROM pages WHERE estimator_state IS NOT NULL")[0]["n"] == 0
    for name in POINT_ESTIMATORS:
        alone = alone_with(visits, name)
        collection = opened(database_url, now, estimator=name)
        assert states(collection) == alone.packed(np.arange(N_PAGES))
        collection.close(now)


def test_by_default_no_estimator_costs_anything(sqlite_url):
    """The posterior has no second state, in memory or in the database."""
    collection = opened(sqlite_url, START)
    assert collection.planner.learned is None
    assert "estimator_state" not in collection.planner.columns([])
    collection.close(START)
