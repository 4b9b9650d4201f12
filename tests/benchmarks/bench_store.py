"""How fast a collection is loaded, beside SQLAlchemy's own rows in the same run; on SQLite and PostgreSQL.

What writing costs stands in what a crawl costs: the ceiling of `bench_crawl`, the database's part of `bench_shards`.
Run it with::

    python tests/benchmarks/bench_store.py [--pages 1000000] [--postgresql]
"""

import argparse
import resource
import tempfile
import time

import numpy as np
from sqlalchemy import select

from crawlsched.estimators import grid_id
from crawlsched.planner import DEFAULT_GRID
from crawlsched.store import Store, models
from crawlsched.store.models import STATE_COLUMNS
from tests.benchmarks.bench_crawl import fill
from tests.benchmarks.ratios import keep
from tests.databases import postgresql_of_its_own


def loading(store: Store) -> tuple[str, float, float]:
    """Time the loading of all pages, ours and by SQLAlchemy's rows (of a tenth, scaled up)."""
    started = time.perf_counter()
    numbers: dict[str, int] = {}
    n = sum(
        len(block["page"])
        for block in store.load(
            host_number=lambda name: numbers.setdefault(name, len(numbers)),
            grid=grid_id(DEFAULT_GRID),
            n_rates=DEFAULT_GRID.size,
        )
    )
    ours = time.perf_counter() - started
    page = models.pages
    wanted = [page.c[name] for name in ("page", *STATE_COLUMNS, "host", "request_fingerprint", "log_likelihood")]
    started = time.perf_counter()
    with store.database.reading() as connection:
        rows = connection.execute(select(*wanted).order_by(page.c.page).limit(n // 10)).all()
        listed = [np.array([getattr(row, column.name) for row in rows], dtype=object) for column in wanted]
    theirs = 10 * (time.perf_counter() - started)
    assert len(listed[0]) == n // 10
    return f"load {n:,} pages (s)", ours, theirs


def run(url: str, n: int) -> None:
    """Print the table of one database."""
    store = Store.open(url, "bench", upgrade=True)
    fill(store, n, 8000)
    print(f"\n{store.database.url.get_backend_name()}, {n:,} pages")
    print(f"{'':50} {'ours':>10} {'other':>10} {'ratio':>7}")
    name, ours, theirs = loading(store)
    print(f"{name:50} {ours:10.2f} {theirs:10.2f} {theirs / ours:7.2f}")
    keep(f"store, {store.database.url.get_backend_name()}: {name}", theirs / ours)
    store.close()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    parser.add_argument("--postgresql", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        run(f"sqlite:///{directory}/bench.db", options.pages)
    if options.postgresql:
        with postgresql_of_its_own() as server:
            run(server.get_uri(), options.pages)
    print(f"\nlargest memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main()
