"""How fast the store is: loading a collection and writing batches; on SQLite and PostgreSQL.

Each figure stands beside an alternative measured in the same run: SQLAlchemy's own rows for loading, and for writing
statements that are compiled once, with tuples for the driver. Run it with::

    python tests/benchmarks/bench_store.py [--pages 1000000] [--postgresql]
"""

import argparse
import hashlib
import resource
import statistics
import tempfile
import time

import numpy as np
from sqlalchemy import bindparam, insert, select, update

from crawlsched.store import Batch, NewPage, ObservationRow, Store, models
from crawlsched.store.models import STATE_COLUMNS
from tests.benchmarks.ratios import keep
from tests.databases import postgresql_of_its_own

RATES = 28
GRID = "bench"


def columns(pages: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Make the columns of pages that have been crawled a few times."""
    n = len(pages)
    made: dict[str, np.ndarray] = {name: rng.integers(0, 50, n).astype(np.uint32) for name in STATE_COLUMNS}
    made |= {name: rng.uniform(1.7e9, 1.8e9, n) for name in ("crawled_at", "first_seen", "changed_at")}
    made |= {"page": pages, "state": np.full(n, 2, np.uint8), "importance": np.ones(n, np.float32)}
    made |= {"not_before": np.zeros(n), "signalled_since": np.full(n, np.nan), "source": np.full(n, -1, np.int32)}
    made["log_likelihood"] = rng.integers(0, 2**16, (n, RATES), dtype=np.uint16)
    return made


def fill(store: Store, n: int, rng: np.random.Generator) -> float:
    """Write n pages in batches of 20,000, and say how many seconds it took."""
    started = time.perf_counter()
    for start in range(0, n, 20_000):
        pages = np.arange(start, min(n, start + 20_000))
        batch = Batch(columns=columns(pages, rng), grid=GRID)
        for page in pages.tolist():
            url = f"https://host{page % 1000}.example/section/{page % 37}/article-{page}.html"
            digest = hashlib.sha1(url.encode()).digest()
            batch.new_pages[page] = NewPage(page, url, f"host{page % 1000}.example", digest, 1.7e9, b"template-of-16-b")
            batch.contents[page] = {"fingerprint": digest, "recipe": "text-1", "etag": f'"{page:x}-5f3a"'}
        batch.templates[b"template-of-16-b"] = {"callback": "parse"}
        store.save(batch)
    return time.perf_counter() - started


def one_batch(pages: np.ndarray, first: int, rng: np.random.Generator) -> Batch:
    """Make what 500 visits leave behind."""
    batch = Batch(columns=columns(pages, rng), grid=GRID)
    for offset, page in enumerate(pages.tolist()):
        batch.observations.append(
            ObservationRow(first + offset, page, 1.8e9 + first, 3600.0, 0, -1, offset % 5 == 0, "changed", 200, 50_000)
        )
        if offset % 5 == 0:
            batch.contents[page] = {"fingerprint": b"f" * 20, "pending_fingerprint": None, "etag": f'"{first:x}"'}
    return batch


def by_driver(store: Store, batch: Batch) -> None:
    """Write the same rows past SQLAlchemy: statements that are compiled once, and tuples for the driver."""
    page, table, dialect = models.pages, models.observations, store.database.engine.dialect
    own = [page.c[name] == bindparam(f"own_{name}") for name in ("shard", "collection", "page")]
    values = {name: batch.columns[name].tolist() for name in STATE_COLUMNS}
    values["log_likelihood"] = [row.tobytes() for row in batch.columns["log_likelihood"]]
    rows = [
        {"own_page": number, **{name: column[at] for name, column in values.items()}}
        for at, number in enumerate(batch.columns["page"].tolist())
    ]
    contents = [{"own_page": number, **changes} for number, changes in batch.contents.items()]
    visits = [{**row._asdict(), "changed": int(bool(row.changed)), "further": None} for row in batch.observations]
    key = {"shard": store.key[0], "collection": store.key[1]}
    own_key = {f"own_{name}": value for name, value in key.items()}
    with store.database.writing() as connection:
        for statement, of, some in (
            (update(page).where(*own), own_key, rows),
            (update(page).where(*own), own_key, contents),
            (insert(table), key, visits),
        ):
            names = [name for name in some[0] if not name.startswith("own_")]
            compiled = statement.compile(dialect=dialect, column_keys=[*names, *(of if of is key else ())])
            order = compiled.positiontup
            connection.exec_driver_sql(str(compiled), [tuple({**of, **row}[name] for name in order) for row in some])


def writing(store: Store, n: int, rng: np.random.Generator, repetitions: int = 40) -> list[tuple[str, float, float]]:
    """Time batches of 500 pages and 500 observations, ours and the driver's in turn."""
    ours, theirs = [], []
    first = store.reader.next_observation()
    for _ in range(repetitions):
        for times, write in ((ours, store.save), (theirs, lambda batch: by_driver(store, batch))):
            batch = one_batch(rng.choice(n, 500, replace=False), first, rng)
            first += 500
            started = time.perf_counter()
            write(batch)
            times.append(1000 * (time.perf_counter() - started))
    return [
        ("500 pages + 500 observations, median (ms)", statistics.median(ours), statistics.median(theirs)),
        ("the same, 95th percentile (ms)", sorted(ours)[int(0.95 * len(ours))], sorted(theirs)[int(0.95 * len(ours))]),
    ]


def loading(store: Store) -> list[tuple[str, float, float]]:
    """Time the loading of all pages, ours and by SQLAlchemy's rows (of a tenth, scaled up)."""
    started = time.perf_counter()
    numbers: dict[str, int] = {}
    n = sum(
        len(block["page"])
        for block in store.load(
            host_number=lambda name: numbers.setdefault(name, len(numbers)), grid=GRID, n_rates=RATES
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
    return [(f"load {n:,} pages (s)", ours, theirs)]


def run(url: str, n: int) -> None:
    """Print the table of one database."""
    rng = np.random.default_rng(1)
    store = Store.open(url, "bench", upgrade=True)
    print(f"\n{store.database.url.get_backend_name()}, {n:,} pages; filled at {n / fill(store, n, rng):,.0f} pages/s")
    print(f"{'':50} {'ours':>10} {'other':>10} {'ratio':>7}")
    for measure in (loading, writing):
        for name, ours, theirs in measure(store, n, rng) if measure is not loading else loading(store):
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
