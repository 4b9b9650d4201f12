"""A page keeps its number in the database, in whatever row of memory it comes to stand."""

import numpy as np
import pytest

from crawlsched.store import Store
from tests import parts
from tests.rows import name_of

NOW = 1_000_000.0
URLS = [f"http://a.example/{number}" for number in range(6)]


@pytest.fixture
def six_pages(tmp_path):
    """The settings of a collection of six pages, of which the second and the last were forgotten."""
    settings = parts.settings(f"sqlite:///{tmp_path / 'crawl.db'}")
    collection = parts.collection(settings, NOW)
    collection.add_pages(parts.found(URLS), NOW)
    collection.close(NOW)
    store = Store.open(settings.database_url, "test")
    for url in (URLS[1], URLS[5]):
        store.forgetting.forget("url", url, NOW)
    store.close()
    return settings


def test_rows_are_dense_and_numbers_stay(six_pages):
    """After a restart nothing is left of forgotten pages in memory, and the others have the numbers that they had."""
    collection = parts.collection(six_pages, NOW)
    assert collection.planner.pages.n == 4
    kept = {url: collection.index.page(name_of(url)) for url in URLS}
    assert list(kept.values()) == [0, -1, 1, 2, 3, -1]
    assert collection.numbers.of([0, 1, 2, 3]).tolist() == [0, 2, 3, 4]
    assert collection.shards.rows_of(collection.shards.only, [4, 1, 0, 9]).tolist() == [3, -1, 0, -1]
    assert collection.facts_of(2).url == URLS[3]
    assert collection.facts_of(2).page == 2
    collection.close(NOW)


def test_a_number_is_not_given_again(six_pages):
    """Not even that of the newest page, which was forgotten: whoever remembers it would take another page for it."""
    collection = parts.collection(six_pages, NOW)
    (row,) = collection.add_pages(parts.found(["http://a.example/new"]), NOW)
    assert (row, collection.numbers.item(row)) == (4, 6)
    collection.close(NOW)


def test_what_is_learned_of_a_row_is_written_under_the_number(six_pages):
    """Columns, contents, visits and changes are those of the page, and come back to it."""
    collection = parts.collection(six_pages, NOW)
    page = collection.index.page(name_of(URLS[3]))
    assert page != 3
    collection.planner.crawled(page, NOW + 5.0, None)
    collection.put_facts(collection.facts_of(page)._replace(etag="it", pending_fingerprint=b"new"), NOW + 5.0)
    collection.unsaved.page(page, NOW + 5.0)
    visit = {"elapsed": None, "n_signals": 0, "source": -1, "changed": None, "outcome": "changed"}
    collection.unsaved.observation(NOW + 5.0, page, **visit)
    collection.unsaved.feed(page, NOW + 5.0, "new", 0)
    collection.close(NOW + 5.0)
    store = Store.open(six_pages.database_url, "test")
    (facts,) = store.reader.facts([3])
    assert (facts.url, facts.etag) == (URLS[3], "it")
    assert [row.time for row in store.reader.observations_of(3)] == [NOW + 5.0]
    assert store.reader.undelivered() == [3]
    store.close()
    collection = parts.collection(six_pages, NOW + 6.0)
    page = collection.index.page(name_of(URLS[3]))
    assert np.flatnonzero(collection.planner.pages.crawled_at[:4] == NOW + 5.0).tolist() == [page]
    assert collection.planner.pick(NOW + 7.0, parts.any_host).page == page  # it was not delivered
    collection.close(NOW)


def test_what_is_forgotten_meanwhile_is_not_written(six_pages):
    """What waits of a forgotten page goes; that of the page whose row has its number stays."""
    collection = parts.collection(six_pages, NOW)
    source = collection.sources.add("sitemap", "http://a.example/sitemap.xml", "a.example", NOW)
    for page in (2, 3):
        collection.unsaved.page(page, NOW)
        collection.unsaved.announcement(page, source.source, 7.0, 1, NOW)
        collection.unsaved.feed(page, NOW, "new", None)
    collection.forget(np.array([2]))
    reader = collection.store.reader
    collection.store.forgetting.forget("url", URLS[3], NOW)
    collection.flush(NOW)
    assert collection.write_behind.drain()

    assert [len(reader.announcements_of(number)) for number in (3, 4)] == [0, 1]
    assert [facts and facts.url for facts in reader.facts([3, 4])] == [None, URLS[4]]
    assert reader.next_change() == 3
    collection.close(NOW)
