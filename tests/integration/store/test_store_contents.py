"""What is left of pages' contents in the store: noise masks, traces, texts; on SQLite and PostgreSQL alike."""

import pytest

from crawlsched.content.kept_texts import packed, unpacked
from crawlsched.store import Batch, KeptText, NewPage, ObservationRow, Store, WriteBehind

NOW = 1.7e9


@pytest.fixture
def store(database_url):
    opened = Store.open(database_url, "spider", upgrade=True)
    pages = {n: NewPage(n, f"http://a/{n}", "a", n.to_bytes(20, "big"), NOW) for n in range(20)}
    opened.save(Batch(new_pages=pages))
    yield opened
    opened.close()


def trace(letter):
    return {"history": letter * 8, "text_sketch": letter * 256, "block_sketch": letter * 4}


def test_traces_come_with_the_facts_and_a_page_without_has_none(store):
    """The newest counts, and what is not written yet counts more."""
    store.save(Batch(traces={1: trace(b"a")}))
    store.save(Batch(traces={1: trace(b"b")}))
    first, second = store.reader.facts([0, 1])
    assert (first.history, first.text_sketch, first.block_sketch) == (b"", b"", b"")
    assert (second.history, second.text_sketch, second.block_sketch) == (b"b" * 8, b"b" * 256, b"b" * 4)
    behind = WriteBehind()
    behind.submit((store, Batch(traces={0: trace(b"c")})))
    assert behind.facts(store, [0])[0].history == b"c" * 8
    behind.close()


def test_a_mask_is_kept_by_its_template(store):
    """One that comes later takes its place."""
    assert store.reader.noise_mask("a/news/#") is None
    store.save(Batch(masks={"a/news/#": {"n_probes": 1}, "a/*": {"n_probes": 7}}))
    store.save(Batch(masks={"a/news/#": {"n_probes": 2}}))
    assert store.reader.noise_mask("a/news/#") == {"n_probes": 2}
    store.save(Batch(masks={"//a blocks/3": {"edits": []}}))
    assert sorted(store.reader.learned()) == ["//a blocks/3", "a/*", "a/news/#"]


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
    rows = [ObservationRow(number, 1, NOW - number, 60.0, n, 0, True, "changed", further=further or ())
            for number, (n, further) in enumerate(told)]  # fmt: skip
    store.save(Batch(observations=rows))
    assert store.reader.announced_visits() == (5, 3)
    assert store.reader.announced_visits(limit=2) == (2, 1)
