"""What is kept of pages beside their columns: noise masks, traces, texts, what several sources say of them."""

import numpy as np
import pytest

from crawlsched.store import Batch, KeptText, WriteBehind
from crawlsched.store.kept_texts import packed, unpacked
from tests.databases import rows
from tests.rows import NOW, new_pages, observation


@pytest.fixture
def store(store):
    store.save(Batch(new_pages=new_pages(range(20))))
    return store


def trace(letter):
    return {"history": letter * 8, "text_sketch": letter * 256, "block_sketch": letter * 4}


def test_traces_come_with_the_facts_and_a_page_without_has_none(store):
    """The newest counts."""
    store.save(Batch(traces={1: trace(b"a")}))
    store.save(Batch(traces={1: trace(b"b")}))
    first, second = store.reader.facts([0, 1])
    assert (first.history, first.text_sketch, first.block_sketch) == (b"", b"", b"")
    assert (second.history, second.text_sketch, second.block_sketch) == (b"b" * 8, b"b" * 256, b"b" * 4)


def test_the_text_before_is_kept_with_the_text(store):
    """Written one by one, in one transaction or twice: always the last two."""
    one, two, three = (KeptText(NOW + n, packed(f"text {n}", 100)) for n in range(3))
    for batch in (Batch(texts={1: one}), Batch(texts={1: two}), Batch(texts={1: two})):
        store.save(batch)
    kept = store.reader.text_of(1)
    assert (unpacked(kept.text), unpacked(kept.before), kept.before_seen_at) == ("text 1", "text 0", NOW)
    behind = WriteBehind()
    with store.turn:
        for text in (one, two, three):
            behind.submit((store, Batch(texts={2: text})))
    assert behind.close()
    kept = store.reader.text_of(2)
    assert (unpacked(kept.text), unpacked(kept.before)) == ("text 2", "text 1")
    assert store.reader.text_of(3) is None


def test_old_texts_go_until_the_others_have_room(store):
    """Those that were seen longest ago, and no more than needed by a tenth or so."""
    assert store.reader.bytes_of_texts() == 0
    store.save(Batch(texts={n: KeptText(NOW + n, b"x" * 100) for n in range(20)}))
    assert store.reader.bytes_of_texts() == 2_000
    left = store.forgetting.prune_texts(1_000)
    assert 600 <= left <= 1_000
    assert store.reader.bytes_of_texts() == left
    assert store.reader.text_of(19) is not None
    assert store.reader.text_of(0) is None


def test_of_the_newest_visits_those_are_counted_that_an_announcement_came_before(store):
    """By its first source or by a further one; a further one that has said nothing since does not count."""
    assert store.reader.announced_visits() == (0, 0)
    told = [(0, None), (2, None), (0, ((4, 1),)), (0, ((4, 0),)), (1, None)]
    rows = [
        observation(number, 1, NOW - number, n_signals=n, source=0, further=further or ())
        for number, (n, further) in enumerate(told)
    ]
    store.save(Batch(observations=rows))
    assert store.reader.announced_visits() == (5, 3)
    assert store.reader.announced_visits(limit=2) == (2, 1)


def test_counts_of_all_sources_come_back_and_go_with_their_page(store):
    """A row for each source, the newest numbers; none is left when the page is forgotten."""
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
    store.forgetting.forget("url", "http://host0.example/0", 100.0)
    assert [row[0] for row in store.reader.further_sources()] == [1]


def test_a_visit_tells_of_the_sources_that_were_heard_alone(store):
    """Of all if none announced anything, of the only one that did, and of none if several did."""
    heard = [(0, ((5, 0),)), (2, ((5, 0),)), (0, ((5, 1),)), (1, ((5, 1),)), (3, ())]
    store.save(
        Batch(
            observations=[
                observation(number, elapsed=10.0, n_signals=n, source=3, further=further)
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


@pytest.mark.parametrize(
    "damage",
    ["page = 'x'", "elapsed = 'long'", "elapsed = 9e999", "source = 5000000", "n_signals = x'00'", "changed = 'y'"],
)
def test_a_damaged_visit_tells_nothing_and_the_others_do(sqlite_store, damage):
    """Whatever stands in one of its columns; where all are damaged nothing is told."""
    store = sqlite_store
    visits = [observation(n, n, elapsed=10.0 + n, n_signals=n, source=3, further=((5, 0),)) for n in range(3)]
    store.save(Batch(observations=visits))
    rows(store.database.text, f"UPDATE observations SET {damage} WHERE id = 1")
    told = store.reader.signal_observations(0.0)
    assert {name: column.tolist() for name, column in told.items()} == {
        "page": [2, 0, 0],
        "elapsed": [12.0, 10.0, 10.0],
        "n_signals": [2, 0, 0],
        "source": [3, 3, 5],
        "changed": [True, True, True],
    }
    rows(store.database.text, f"UPDATE observations SET {damage}")
    assert all(column.size == 0 for column in store.reader.signal_observations(0.0).values())
