"""The stores that benchmarks crawl and measure can be written and loaded by this version."""

from pathlib import Path

import numpy as np

from crawlsched.store import Store
from tests.benchmarks import bench_crawl, bench_store


def test_pages_that_a_benchmark_writes_are_loaded(tmp_path: Path) -> None:
    """Whatever columns came since the benchmark was written."""
    bench_crawl.fill(tmp_path, 300, 8000)
    store = Store.open(f"sqlite:///{tmp_path / 'bench.db'}", "bench")
    assert sum(block["page"].size for block in store.load()) == 300
    store.close()
    store = Store.open(f"sqlite:///{tmp_path / 'other.db'}", "bench", upgrade=True)
    bench_store.fill(store, 200, np.random.default_rng(1))
    assert sum(block["page"].size for block in store.load()) == 200
    store.close()
