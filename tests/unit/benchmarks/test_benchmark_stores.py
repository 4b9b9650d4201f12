"""The store that benchmarks crawl and measure can be written and loaded by this version."""

from contextlib import closing
from pathlib import Path

from crawlsched.store import Store
from tests.benchmarks import bench_crawl


def test_pages_that_a_benchmark_writes_are_loaded(tmp_path: Path) -> None:
    """Whatever columns came since the benchmark was written."""
    bench_crawl.fill_file(tmp_path, 300, 8000)
    with closing(Store.open(f"sqlite:///{tmp_path / 'bench.db'}", "bench")) as store:
        assert sum(block["page"].size for block in store.load()) == 300
