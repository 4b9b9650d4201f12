"""What several sources say of one page is kept, comes back, and is forgotten with the page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sqlalchemy import text

from crawlsched.store import Batch, NewPage, ObservationRow, Store


def _store(database_url: str) -> Store:
    store = Store.open(database_url, "test", upgrade=True)
    new = {page: NewPage(page, f"http://a/{page}", "a", bytes([page]) * 20, 0.0) for page in range(2)}
    store.save(Batch(new_pages=new))
    return store


def test_counts_of_all_sources_come_back_and_go_with_their_page(database_url: str) -> None:
    """A row for each source, the newest numbers; none is left when the page is forgotten."""
    store = _store(database_url)
    none = 0.0, 0.0
    rows = {
        (0, 3): (0, 0, 10.0, 4, 50.0, *none),
        (0, 5): (2, 7, 10.0, 9, None, *none),
        (1, 3): (1, 1, 0.0, 1, 2.0, *none),
    }
    store.save(Batch(further_sources=rows))
    store.save(Batch(further_sources={(0, 5): (0, 7, 10.0, 9, 60.0, 1.5, 7.25)}))
    assert sorted(store.reader.further_sources()) == [
        (0, 3, 0, 0, 10.0, 4, 50.0, *none),
        (0, 5, 0, 7, 10.0, 9, 60.0, 1.5, 7.25),
        (1, 3, 1, 1, 0.0, 1, 2.0, *none),
    ]
    store.forgetting.forget("url", "http://a/0", 100.0)
    assert [row[0] for row in store.reader.further_sources()] == [1]
    store.close()


def test_a_visit_tells_of_the_sources_that_were_heard_alone(database_url: str) -> None:
    """Of all if none announced anything, of the only one that did, and of none if several did."""
    store = _store(database_url)
    heard = [(0, ((5, 0),)), (2, ((5, 0),)), (0, ((5, 1),)), (1, ((5, 1),)), (3, ())]
    store.save(
        Batch(
            observations=[
                ObservationRow(number, 0, float(number), 10.0, n, 3, True, "changed", further=further)
                for number, (n, further) in enumerate(heard)
            ]
        )
    )
    told = store.reader.signal_observations(0.0)
    assert sorted(zip(told["source"].tolist(), told["n_signals"].tolist(), strict=True)) == [
        *((3, 0), (3, 2), (3, 3)),
        *((5, 0), (5, 1)),
    ]
    assert told["elapsed"].dtype == np.float64
    assert [row.further for row in store.reader.observations_of(0)][::-1] == [further for _, further in heard]
    store.close()


@pytest.mark.parametrize(
    "damage",
    ["page = 'x'", "elapsed = 'long'", "elapsed = 9e999", "source = 5000000", "n_signals = x'00'", "changed = 'y'"],
)
def test_a_damaged_visit_tells_nothing_and_the_others_do(tmp_path: Path, damage: str) -> None:
    """Whatever stands in one of its columns; where all are damaged nothing is told."""
    store = _store(f"sqlite:///{tmp_path / 'crawl.db'}")
    visits = [ObservationRow(n, n, float(n), 10.0 + n, n, 3, True, "changed", further=((5, 0),)) for n in range(3)]
    store.save(Batch(observations=visits))
    with store.database.writing() as connection:
        connection.execute(text(f"UPDATE observations SET {damage} WHERE id = 1"))
    told = store.reader.signal_observations(0.0)
    assert {name: column.tolist() for name, column in told.items()} == {
        "page": [2, 0, 0],
        "elapsed": [12.0, 10.0, 10.0],
        "n_signals": [2, 0, 0],
        "source": [3, 3, 5],
        "changed": [True, True, True],
    }
    with store.database.writing() as connection:
        connection.execute(text(f"UPDATE observations SET {damage}"))
    assert all(column.size == 0 for column in store.reader.signal_observations(0.0).values())
    store.close()
