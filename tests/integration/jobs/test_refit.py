"""`crawlsched db refit`: what is known of pages, learned again from their visits, in any processes."""

import json
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from crawlsched.jobs import refit as module
from crawlsched.jobs.refit import refit
from crawlsched.planner import Planner, plan
from crawlsched.settings import Settings
from crawlsched.store import Store, schema
from crawlsched.store.records import save_plan
from tests import parts
from tests.commands import run_here
from tests.databases import rows

START, HOUR, N = 1_700_000_000.0, 3600.0, 60


def crawled(database_url: str, **more) -> Settings:
    """A crawl of some pages, each on a host of its own, by one plan from its first second; and what it was set to."""
    settings = parts.settings(database_url, collection="news", **more)
    schema.upgrade(database_url)
    collection = parts.collection(settings, START)
    planner, rng = collection.planner, np.random.default_rng(1)
    other = Planner(1.0)
    other.add(np.arange(40), START)
    for day in range(9):
        for page in range(40):
            other.crawled(page, START + day * 24 * HOUR + 1, None if day == 0 else page % 3 == 0)
    made = plan(other.snapshot(), 1.0)
    save_plan(collection.store, made.to_dict([f"o{n}.example" for n in range(40)]), START)
    planner.adopt(made, START)
    pages = collection.add_pages(parts.found(f"http://h{number}.example/" for number in range(N)), START)
    while planner.work(START + 1.0):
        pass
    for visit in range(12):
        for page in pages:
            now = START + visit * (HOUR + 7 * page) + page + 2.0
            planner.hold(page)
            if page % 7 == 3 and visit == 4:
                planner.failed(page, now)
                collection.unsaved.page(page, now)
                row = {"elapsed": None, "changed": None, "n_signals": 0, "source": -1}
                collection.unsaved.observation(now, page, outcome="error", status=500, **row)
                continue
            changed = None if visit == 0 else bool(rng.random() < (page % 5) / 5)
            since = 40.0 + page if changed and page % 4 == 0 else None
            parts.visit(collection, page, now, changed, since)
    collection.flush(START + 1e6)
    collection.close(START + 1e6)
    return settings


_KNOWN = (
    "SELECT page, log_likelihood, grid, estimator_state, change_rate, n_crawls, crawled_at FROM pages ORDER BY page"
)


def asked(database_url: str, statement: str, **values) -> list[tuple]:
    return [tuple(row.values()) for row in rows(database_url, statement, **values)]


def forgotten(database_url: str) -> list[tuple]:
    """Return what is known of the pages, and forget what they have learned."""
    known = asked(database_url, _KNOWN)
    asked(database_url, "UPDATE pages SET log_likelihood = NULL, estimator_state = NULL, change_rate = NULL")
    return known


def close(known: list[tuple], again: list[tuple]) -> bool:
    """Whether two say the same, rows of numbers to the byte; readable rates are of another time."""
    return [row[:4] + row[5:] for row in known] == [row[:4] + row[5:] for row in again]


def learned_again(settings: Settings, executor, after_first=lambda: None) -> list[module.PartResult]:
    store = Store.open(settings.database_url, "news")
    try:
        lease = store.take_lease("refit")
        done = []
        for learned in refit([store], settings, executor, START + 2e6):
            done.append(learned)
            if len(done) == 1:
                after_first()
        lease.release()
        return done
    finally:
        store.close()


@contextmanager
def processes():
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 7)


@pytest.mark.parametrize("more", [{}, {"estimator": "last_modified"}, {"estimator": "naive"}])
def test_what_was_learned_is_learned_again_to_the_byte(database_url, small_parts, more):
    """From the visits alone, by other processes, in parts; the estimator of the papers that is set, too."""
    settings = crawled(database_url, **more)
    known = forgotten(database_url)
    assert len({row[1] for row in known}) > 20
    assert bool(more) == (known[0][3] is not None)
    with processes() as pool:
        done = learned_again(settings, pool)
    assert sum(part.n_pages for part in done) == N
    assert (
        sum(part.n_visits for part in done)
        == asked(database_url, "SELECT count(*) FROM observations WHERE changed IS NOT NULL").pop()[0]
    )
    again = asked(database_url, _KNOWN)
    assert close(known, again)
    assert all(row[4] > 0.0 for row in again)


def test_pages_keep_what_visits_taught_that_were_pruned(sqlite_url, small_parts):
    """Less would be known of them by the visits that are left; of which nothing is known, something is better."""
    settings = crawled(sqlite_url)
    asked(sqlite_url, "DELETE FROM observations WHERE page < 10 AND time < :time", time=START + 3 * HOUR)
    asked(sqlite_url, "UPDATE pages SET log_likelihood = NULL WHERE page IN (4, 5)")
    known = asked(sqlite_url, _KNOWN)
    with processes() as pool:
        done = learned_again(settings, pool)
    again = asked(sqlite_url, _KNOWN)
    assert sum(part.n_left for part in done) == 8
    assert [row[0] for row, before in zip(again, known, strict=True) if row[1] != before[1]] == [4, 5]
    assert again[4][1] is not None


def test_the_workers_of_a_dask_cluster_do_it_and_one_may_be_killed(postgresql_url, small_parts):
    """What the killed worker had under way is done by the other, and every page is known as before."""
    distributed = pytest.importorskip("distributed")
    settings = crawled(postgresql_url)
    known = forgotten(postgresql_url)
    quiet = {"processes": True, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, host="127.0.0.1", **quiet) as cluster,
        distributed.Client(cluster) as client,
        client.get_executor() as executor,
    ):
        workers = client.run(os.getpid)
        assert os.getpid() not in workers.values()
        done = learned_again(settings, executor, lambda: os.kill(min(workers.values()), signal.SIGKILL))
    assert sum(part.n_pages for part in done) == N
    assert close(known, asked(postgresql_url, _KNOWN))


def test_the_command_learns_again_by_processes_of_its_own(tmp_path, sqlite_url):
    """The report counts pages and visits."""
    crawled(sqlite_url)
    known = forgotten(sqlite_url)
    ran = run_here(tmp_path, "db", "refit", "--database", sqlite_url, "--json", "--processes", "1")
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["pages"] == N
    assert close(known, asked(sqlite_url, _KNOWN))
    for option, code, why in (
        (["--processes", "0"], 2, "1 or more"),
        (["--dask", "nonsense"], 1, "No Dask scheduler answers"),
    ):
        ran = run_here(tmp_path, "db", "refit", "--database", sqlite_url, *option)
        assert (ran.returncode, why in ran.stderr) == (code, True), ran.stderr
    store = Store.open(sqlite_url, "news")
    lease = store.take_lease("spider")
    ran = run_here(tmp_path, "db", "refit", "--database", sqlite_url)
    assert ran.returncode == 1
    assert "running process" in ran.stderr
    lease.release()
    store.close()
