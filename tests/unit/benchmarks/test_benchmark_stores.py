"""The stores that benchmarks crawl and measure can be written and loaded by this version."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from crawlsched.feed import Feed
from crawlsched.store import Store
from tests.benchmarks import bench_crawl, bench_store, bench_web


def test_pages_that_a_benchmark_writes_are_loaded(tmp_path: Path) -> None:
    """Whatever columns came since the benchmark was written."""
    bench_crawl.fill(tmp_path, 300, 8000)
    store = Store.open(f"sqlite:///{tmp_path / 'bench.db'}", "bench")
    assert sum(block["page"].size for block in store.load()) == 300
    bench_web.add_history(tmp_path / "bench.db", 300, 600)
    assert len(store.reader.signal_observations(0.0)["page"]) == 600
    assert (store.reader.count_hosts(), len(store.reader.hosts(notable_at=0.0))) == (60, 6)
    assert len(Feed(store).newest(100)) == 60
    store.close()
    store = Store.open(f"sqlite:///{tmp_path / 'other.db'}", "bench", upgrade=True)
    bench_store.fill(store, 200, np.random.default_rng(1))
    assert sum(block["page"].size for block in store.load()) == 200
    store.close()
