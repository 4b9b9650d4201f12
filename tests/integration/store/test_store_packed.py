"""Packed reading: whole collections come out of SQLite as they come out row by row."""

import hashlib

import numpy as np
import pytest
from sqlalchemy import text

from crawlsched.store import Batch, NewPage, Store
from crawlsched.store.models import STATE_COLUMNS

NOW = 1.7e9
RATES = 4
N = 60


@pytest.fixture
def store(sqlite_url):
    opened = Store.open(sqlite_url, "spider", upgrade=True)
    rng = np.random.default_rng(1)
    pages = np.sort(rng.choice(10_000, N, replace=False))  # most blocks are empty
    new_pages = {
        page: NewPage(
            page,
            f"http://höst{page % 3}.example/{page}",
            f"höst{page % 3}.example",
            hashlib.sha1(str(page).encode()).digest(),
            NOW + page / 7,
            request_fingerprinter="ab"[page % 2],
            depth=page,
        )
        for page in pages.tolist()
    }
    columns = {name: rng.integers(0, 256, N).astype(np.uint32) for name in STATE_COLUMNS}
    columns |= {
        "page": pages,
        "source": rng.integers(-1, 2**31 - 2, N).astype(np.int32),
        "importance": rng.lognormal(0, 3, N).astype(np.float32),
        "crawled_at": np.where(pages % 3, NOW + rng.random(N), -np.inf),
        "not_before": np.where(pages % 5, 0.0, NOW + rng.random(N)),
        "signalled_since": np.where(pages % 4, NOW - rng.random(N), np.nan),
        "n_crawls": np.full(N, 2**32 - 1, np.uint32),
        "n_changes": rng.integers(2**31, 2**32, N, dtype=np.uint32),
        "n_signals_total": np.full(N, 2**32 - 1, np.uint32),
        "n_signals": np.full(N, 2**16 - 1, np.uint16),
        "true_signals": rng.gamma(1.0, 2.0, N).astype(np.float32),
        "false_signals": np.zeros(N, np.float32),
        "log_likelihood": rng.integers(0, 2**16, (N, RATES), dtype=np.uint16),
    }
    opened.save(Batch(new_pages=new_pages, columns=columns, grid="g"))
    half = pages[: N // 2]
    opened.save(Batch(columns={name: column[: N // 2] for name, column in columns.items()}, grid="another"))
    opened.save(Batch(contents={page: {"changed_at": NOW + page} for page in half.tolist()}))
    yield opened
    opened.close()


def loaded(store, **arguments):
    blocks = list(store.load(**{"block": 100, "grid": "g", "n_rates": RATES, "fingerprinter": "a"} | arguments))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def row_by_row(store, **arguments):
    with store.database.reading() as connection:
        pages = connection.execute(text("SELECT page FROM pages")).scalars().all()
    return loaded(store, pages=pages, **arguments)


@pytest.mark.parametrize("arguments", [{}, {"n_rates": 0}, {"fingerprinter": None}, {"host_number": len}])
def test_packed_blocks_are_what_rows_are(store, arguments):
    """Every column, to the last bit, with its type."""
    packed, rows = loaded(store, **arguments), row_by_row(store, **arguments)
    assert packed.keys() == rows.keys()
    for name, column in rows.items():
        np.testing.assert_array_equal(packed[name], column, err_msg=name)
        assert packed[name].dtype == column.dtype
        assert packed[name].shape == column.shape


@pytest.mark.parametrize(
    "change",
    ["importance = 1e30", "crawled_at = -5.5", "true_signals = 1e6", "importance = 1e-9", "not_before = 1e300"],
)
def test_a_block_that_has_no_room_for_a_number_is_read_by_rows(store, change):
    """Nothing is cut off; the blocks beside it are as they were."""
    with store.database.writing() as connection:
        connection.execute(text(f"UPDATE pages SET {change} WHERE page = (SELECT max(page) FROM pages)"))
    packed, rows = loaded(store), row_by_row(store)
    for name, column in rows.items():
        np.testing.assert_array_equal(packed[name], column, err_msg=name)
    name, _, value = change.split()
    assert packed[name][-1] == packed[name].dtype.type(float(value))


def test_what_is_written_while_a_collection_is_loaded_does_not_come_with_it(store):
    """All blocks are of the moment at which loading began."""
    blocks = store.load(block=100)
    first = next(blocks)
    with store.database.writing() as connection:
        connection.execute(text("UPDATE pages SET depth = 77"))
    assert all((block["depth"] == block["page"]).all() for block in (first, *blocks))


def test_loading_can_be_given_up_half_way(store):
    """The reading thread ends and the connection goes back."""
    blocks = store.load(block=100)
    next(blocks)
    blocks.close()
    store.save(Batch(contents={0: {"changed_at": NOW}}))
    assert store.database.engine.pool.checkedout() == 0
