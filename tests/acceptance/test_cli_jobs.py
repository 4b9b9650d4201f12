"""`crawlsched jobs`: the same jobs as a process of their own, over a store that a crawl left or is filling."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crawlsched.store import Store
from tests import children
from tests.simulated import crawl


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 30.0
    while not is_so():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until, "it never came to be so"
        time.sleep(0.05)


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_jobs_make_plans_and_prune_until_they_are_ended(tmp_path: Path, end: signal.Signals) -> None:
    """A plan newer than the crawl's is in the store, old visits are gone, and either signal is an orderly end."""
    url = f"sqlite:///{tmp_path}/crawl.db"
    store = Store.open(url, "news")
    crawl(store, time.time(), n_pages=20, days=1.0)
    before = store.plans.newest()
    assert before is not None
    command = [sys.executable, "-W", "error", "-m", "crawlsched.cli", "jobs", "--database", url]
    pipe = subprocess.PIPE
    process = children.start(*command, "-s", "CRAWLSCHED_OBSERVATION_RETENTION=12h", stdout=pipe, stderr=pipe)
    try:
        wait_until(lambda: store.plans.newest(after=before.id) is not None, process)
        half_a_day_ago = time.time() - 12 * 3600.0
        wait_until(lambda: all(v.time > half_a_day_ago - 60.0 for v in store.reader.observations_of(3, 1000)), process)
    finally:
        process.send_signal(end)
        _, log = process.communicate(timeout=20.0)
        store.close()
    assert process.returncode == 0, log
    assert "A plan over 20 pages was made." in log
    assert "Traceback" not in log
    assert "alembic" not in log  # nor what any other library does
