"""The store on real databases: what is written is read again, on SQLite and PostgreSQL alike."""

import re

import numpy as np
import pytest
from sqlalchemy import event

from crawlsched.feed import Feed
from crawlsched.store import Batch, ChangeRow, Host, commands
from crawlsched.store.models import STATE_COLUMNS
from crawlsched.store.records import last_plan, save_plan
from tests.databases import rows
from tests.rows import NOW, name_of, new_page, new_pages, observation

RATES = 4


def columns(pages, **changed):
    n = len(pages)
    made = {name: np.zeros(n, np.uint32) for name in STATE_COLUMNS}
    made |= {name: np.full(n, np.nan) for name in ("signalled_since",)}
    made |= {"page": np.array(pages), "state": np.full(n, 2, np.uint8), "source": np.full(n, -1, np.int32)}
    made |= {"importance": np.ones(n, np.float32), "crawled_at": np.full(n, -np.inf)}
    return made | {name: np.asarray(value) for name, value in changed.items()}


def batch_of(n, **more):
    return Batch(new_pages=new_pages(range(n)), **more)


def loaded(store, **arguments):
    blocks = list(store.load(**arguments))
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]} if blocks else {}


def test_pages_come_back_as_they_were_saved(store):
    """Every column, the log-likelihoods, the fingerprints and the host survive, in the order of page numbers."""
    rng = np.random.default_rng(1)
    pages = rng.permutation(50)
    likelihoods = rng.integers(0, 2**16, (50, RATES), dtype=np.uint16)
    given = columns(
        pages,
        crawled_at=np.where(pages % 2, NOW + pages, -np.inf),
        n_crawls=np.full(50, 2**32 - 1, np.uint32),
        n_signals=np.full(50, 2**16 - 1, np.uint16),
        n_errors=np.full(50, 255, np.uint8),
        log_likelihood=likelihoods,
    )
    store.save(batch_of(50, columns=given, grid="g"))
    numbers = {}
    found = loaded(
        store, block=7, grid="g", n_rates=RATES, host_number=lambda name: numbers.setdefault(name, len(numbers))
    )
    order = np.argsort(pages)
    for name in ("page", *STATE_COLUMNS):
        np.testing.assert_array_equal(found[name], given[name][order], err_msg=name)
    np.testing.assert_array_equal(found["log_likelihood"], likelihoods[order])
    assert found["has_log_likelihood"].all()
    assert [list(numbers)[number] for number in found["host"]] == [f"host{page % 3}.example" for page in range(50)]
    assert bytes(found["request_fingerprint"][7]) == new_page(7).request_fingerprint


def test_when_a_page_was_first_seen_and_found_changed_is_kept_beside_its_columns(store):
    """The first comes with the page and stays; the second comes with what is known of its content.

    The row says which fingerprinter made its fingerprint.
    """
    made = {page: new_page(page, request_fingerprinter=by) for page, by in enumerate("ab")}
    store.save(Batch(new_pages=made, columns=columns([0])))
    store.save(Batch(columns=columns([0]), contents={0: {"changed_at": NOW + 5, "etag": "a"}}))
    store.save(Batch(columns=columns([0, 1]), contents={0: {"etag": "b"}}))
    found = loaded(store, fingerprinter="a")
    assert found["first_seen"].tolist() == [NOW, NOW]
    np.testing.assert_array_equal(found["changed_at"], [NOW + 5, np.nan])
    assert found["other_fingerprinter"].tolist() == [False, True]
    assert store.reader.facts([0])[0].etag == "b"


def test_a_batch_written_twice_counts_once(store):
    """After a lost answer the same batch comes again: no observation or change is doubled, no newer value undone."""
    batch = batch_of(
        3,
        columns=columns([0, 1], n_crawls=[1, 1]),
        contents={0: {"etag": '"a"'}},
        observations=[observation(0), observation(1, page=1)],
        changes=[ChangeRow(n, 0, NOW + n, "changed", None) for n in (1, 2)],
        announcements={(0, 0): (5.0, 1)},
        templates={b"t": {"callback": "parse"}},
        hosts={"h": Host("h", 5.0)},
    )
    for _ in range(2):
        assert store.save(batch) == {}
    assert len(store.reader.observations_of(0)) == 1
    assert loaded(store)["n_crawls"].tolist() == [1, 1, 0]
    assert (store.reader.next_observation(), store.reader.next_change()) == (2, 3)
    assert len(Feed(store).newest(9)) == 2


def test_facts_come_in_the_order_asked(store):
    """Facts carry the template's data, and None stands for a page that is not there."""
    batch = batch_of(3, templates={b"t" * 16: {"callback": "parse", "headers": {"A": ["b"]}}})
    batch.new_pages[2] = new_page(2, template=b"t" * 16, depth=4)
    batch.contents = {
        2: {"fingerprint": b"f", "recipe": "text", "moved_to": "http://x/"},
        0: {"pending_fingerprint": b"p"},
    }
    store.save(batch)
    second, missing, first = store.reader.facts([2, 99, 0])
    assert missing is None
    assert second.template_data == {"callback": "parse", "headers": {"A": ["b"]}}
    assert (second.fingerprint, second.recipe, second.moved_to, second.depth) == (b"f", "text", "http://x/", 4)
    assert (first.page, first.url, first.pending_fingerprint) == (0, "http://host0.example/0", b"p")
    assert store.reader.facts([]) == []


def test_pages_are_found_by_url_and_by_fingerprint(store):
    """A URL of 9,000 bytes and one outside ASCII are found like any other; what is not there is None."""
    long, foreign = "http://a.example/" + "x" * 9000, "http://a.example/страница?ü=日本"
    store.save(Batch(new_pages={0: new_page(0, long), 1: new_page(1, foreign), 2: new_page(2)}))
    assert store.reader.find(long) == 0
    assert store.reader.find(foreign) == 1
    assert store.reader.find(new_page(2).request_fingerprint) == 2
    assert store.reader.find("http://a.example/") is None
    assert store.reader.facts([1])[0].url == foreign


def test_what_no_database_can_hold_as_text_is_cleaned_or_kept_as_json(store):
    """A NUL in an ETag (PostgreSQL refuses it) or a lone surrogate does not break the batch.

    They come back in plans and commands, as do numpy's numbers and infinities; only the last plan is kept.
    """
    saved = store.save(
        batch_of(3, contents={0: {"etag": 'W/"a\0b"'}, 1: {"last_modified": "x\udcff"}, 2: {"etag": "ü"}})
    )
    assert saved == {}
    zero, one, two = store.reader.facts([0, 1, 2])
    assert (zero.etag, one.last_modified, two.etag) == ('W/"ab"', "x?", "ü")
    assert last_plan(store) is None
    for n in range(3):
        save_plan(store, {"a\0": "\udcff", "n": np.float64(n), "m": np.arange(3), "inf": float("inf")}, NOW + n)
    assert last_plan(store) == {"a\0": "\udcff", "n": 2.0, "m": [0, 1, 2], "inf": float("inf")}
    assert rows(store.database.text, "SELECT count(*) AS n FROM plans") == [{"n": 1}]


def test_a_visit_that_is_taken_back_stays_and_teaches_nothing(store):
    """What it found turned out to be another page's: of the others nothing changes."""
    store.save(Batch(observations=[observation(0), observation(1)]))
    assert store.save(Batch(retracted={0: "wrong"})) == {}
    visits = [(row.id, row.changed, row.outcome) for row in store.reader.observations_of(0)]
    assert visits == [(1, True, "changed"), (0, None, "wrong")]


@pytest.mark.parametrize(
    ("table", "poison"),
    [
        pytest.param("observations", {"observations": [observation(7, page=2**70)]}, id="too large"),
        pytest.param("observations", {"observations": [observation(7, size="much")]}, id="a text for a number"),
        pytest.param("observations", {"observations": [observation(70 + n, page=2**70) for n in range(5)]}, id="many"),
        pytest.param("pages", {"new_pages": {5: new_page(5)._replace(request_fingerprint=b"cut")}}, id="cut short"),
        pytest.param("pages", {"contents": {0: {"colour": "red"}}}, id="an unknown column"),
        pytest.param("request_templates", {"templates": {b"x": {"callback": object()}}}, id="not JSON"),
        pytest.param("commands", {"finished": {0: (NOW, object())}}, id="result not JSON"),
    ],
)
def test_a_poisoned_row_is_refused_alone(store, caplog, table, poison):
    """A row that can never be written is counted, and every other row of the batch is kept; a few are logged."""
    store.save(batch_of(1))
    poisoned = poison.get("observations", [])
    saved = store.save(Batch(**{**poison, "observations": [*poisoned, observation(8)]}))
    if store.database.is_sqlite and any(row.size == "much" for row in poisoned):
        assert saved == {}  # SQLite keeps any value in any column
        return
    assert saved == {table: max(len(poisoned), 1)}
    assert [row.id for row in store.reader.observations_of(0)] == [8]
    said = [text for text in caplog.messages if f"A row of the table {table}" in text]
    assert len(said) == min(saved[table], 3)
    assert not poisoned or f"(numbers {poisoned[0].id}, " in said[0]


def test_a_key_too_long_for_an_index_is_refused_alone(store):
    """PostgreSQL calls an index key of 9,000 bytes an operational error; it must not be tried again for ever."""
    store.save(Batch(templates={bytes(np.random.default_rng(1).bytes(9000)): {}, b"t": {"a": 1}}))
    store.save(Batch(new_pages={0: new_page(0, template=b"t")}))
    assert store.reader.facts([0])[0].template_data == {"a": 1}


def test_announcements_come_in_the_order_of_the_pages(store):
    """Known or not, with a date or without, per source; of more pages than a statement may have parameters."""
    told = {(3, 0): (5.5, 2), (4, 0): (None, 0), (5, 0): (float("nan"), 1), (3, 1): (9.0, 1)}
    store.save(Batch(announcements=told | {(page, 2): (float(page), 1) for page in range(50_000)}))
    known, lastmod, n = store.reader.announcements_for([4, 9, 3, 5], 0)
    assert known.tolist() == [True, False, True, True]
    np.testing.assert_array_equal(lastmod, [np.nan, np.nan, 5.5, np.nan])
    assert n.tolist() == [0, 0, 2, 1]
    assert store.reader.announcements_of(3) == [(0, 5.5, 2), (1, 9.0, 1), (2, 3.0, 1)]
    known, lastmod, _ = store.reader.announcements_for(np.arange(50_001), 2)
    assert known.sum() == 50_000
    np.testing.assert_array_equal(lastmod[:-1], np.arange(50_000.0))


def test_signal_observations_are_the_newest_with_a_source(store):
    """First crawls, re-baselined ones and pages without a source teach nothing about signals."""
    visits = [observation(i, source=i % 2, n_signals=i, changed=bool(i % 3)) for i in range(10)]
    visits += [observation(10), observation(11, source=0, changed=None), observation(12, source=0, elapsed=None)]
    store.save(Batch(observations=visits))
    found = store.reader.signal_observations(NOW + 2, limit=5)
    assert found["n_signals"].tolist() == [9, 8, 7, 6, 5]
    assert found["changed"].tolist() == [False, True, True, False, True]
    assert all(len(column) == 0 for column in store.reader.signal_observations(NOW + 100).values())


def test_pruning_goes_in_slices_and_keeps_the_rest(store, beside):
    """At most `limit` at once, the oldest first; nothing of another collection."""
    other = beside("other")
    for one in (store, other):
        one.save(Batch(observations=[observation(i) for i in range(100)]))
    assert [store.forgetting.prune(NOW + 70, limit=30) for _ in range(4)] == [30, 30, 10, 0]
    assert len(store.reader.observations_of(0, limit=200)) == 30
    assert len(other.reader.observations_of(0, limit=200)) == 100


def test_collections_and_shards_do_not_see_each_other(store, beside):
    """The same page number, URL and observation id live three times in one database."""
    others = [beside("other"), beside(shard=1)]
    for importance, one in enumerate([store, *others], start=1):
        batch = batch_of(2, columns=columns([0, 1], importance=[importance] * 2), observations=[observation(0)])
        assert one.save(batch) == {}
    for importance, one in enumerate([store, *others], start=1):
        assert loaded(one)["importance"].tolist() == [importance] * 2
    others[0].forgetting.forget("collection", "other", NOW)
    assert loaded(others[0]) == {}
    assert len(loaded(others[1])["page"]) == len(loaded(store)["page"]) == 2


def test_a_command_is_answered_through_the_database(store, beside):
    """Sent by one process, seen by the other, answered alone or with a batch; waiting ends by itself."""
    other = beside()
    first, second = commands.send(other, "bandwidth", {"bandwidth": "5/s"}, NOW), commands.send(other, "poll", {}, NOW)
    assert [(command.id, command.name, command.arguments) for command in commands.pending(store)] == [
        (first, "bandwidth", {"bandwidth": "5/s"}),
        (second, "poll", {}),
    ]
    assert commands.wait_for(other, first, timeout=0.1) is None
    commands.finish(store, first, {"bandwidth": 5.0}, NOW + 1)
    store.save(Batch(finished={second: (NOW + 2, {"sources": 3})}))
    assert commands.wait_for(other, first, timeout=5).result == {"bandwidth": 5.0}
    assert commands.wait_for(other, second, timeout=5).result == {"sources": 3}
    assert commands.pending(store) == []


def test_a_store_that_is_read_only_reads_and_does_not_write(store, beside):
    """A second process may look at a running crawl's collection without changing anything."""
    store.save(batch_of(2))
    reader = beside(read_only=True)
    assert len(loaded(reader)["page"]) == 2
    with pytest.raises(Exception, match="read-only"):
        reader.save(batch_of(3))


def test_pages_are_found_through_an_index(sqlite_store):
    """By URL, by fingerprint, all of a URL, by numbers: no statement of a visit goes through all pages."""
    store = sqlite_store
    store.save(batch_of(3))
    asked = []
    event.listen(store.database.engine, "before_cursor_execute", lambda *told: asked.append(told[2:4]))
    assert store.reader.find("http://host1.example/1") == 1
    assert store.reader.find("http://host1.example/7") is None
    assert store.reader.find(name_of("http://host2.example/2")) == 2
    assert store.reader.pages_of("http://host1.example/1") == [1]
    assert [facts.page for facts in store.reader.facts([0, 2])] == [0, 2]
    questions = [(sql, given) for sql, given in asked if "FROM pages" in sql]
    assert len(questions) == 5
    with store.database.reading() as connection:
        for sql, given in questions:
            plan = " ".join(row.detail for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", given))
            assert re.search(r"SEARCH pages USING .*\((url_digest|request_fingerprint|.*page)=\?", plan), plan
            assert "SCAN pages" not in plan
