"""Forgetting really deletes, leaves a tombstone, and what is forgotten does not come back by itself."""

import pytest
from sqlalchemy import select, text

from crawlsched.store import Batch, Source, models
from crawlsched.store.records import save_plan
from tests.rows import NOW, new_page, observation


def fill(store, urls, template=None):
    batch = Batch()
    for page, url in enumerate(urls):
        batch.new_pages[page] = new_page(page, url, template)
        batch.observations.append(observation(page, page, source=0))
        batch.announcements[page, 0] = (NOW, 1)
    store.save(batch)


def rows(store, table):
    with store.database.reading() as connection:
        return len(connection.execute(select(table.c.shard)).all())


@pytest.mark.parametrize(
    ("kind", "value", "forgotten"),
    [
        ("url", "http://a.example/old/1?id=1", [0]),
        ("pattern", "http://a.example/old/*", [0, 1]),
        ("pattern", "*?id=*", [0, 2]),
        ("pattern", "http://a.example/old", []),
        ("pattern", "http://[abc].example/*", []),
        ("host", "b.example", [2]),
        ("host", "B.Example", [2]),
    ],
)
def test_forgetting_deletes_the_page_and_all_that_is_known_of_it(store, kind, value, forgotten):
    """Pages, observations and announcements go; in a pattern only ``*`` has a meaning; nothing else is touched."""
    urls = ["http://a.example/old/1?id=1", "http://a.example/old/2", "http://b.example/x?id=2", "http://c.example/old"]
    fill(store, urls)
    assert store.forgetting.matching(kind, value).tolist() == forgotten
    assert store.forgetting.forget(kind, value, NOW).tolist() == forgotten
    for table in (models.pages, models.observations, models.announcements):
        assert rows(store, table) == 4 - len(forgotten)
    assert store.tombstones.cover(urls) == [page in forgotten for page in range(4)]


def test_tombstones_survive_a_restart(store, beside):
    """They are read when the store is opened, whoever left them."""
    store.forgetting.forget("host", "a.example", NOW)
    store.forgetting.forget("host", "a.example", NOW)
    again = beside()
    assert again.tombstones.cover(["https://A.example:8080/x", "https://b.example/"]) == [True, False]
    assert rows(store, models.tombstones) == 1


def test_a_template_goes_with_the_last_page_that_names_it(store):
    """It may hold cookies. A page that came to another request leaves its old one behind, unless others have it."""
    pages = {page: new_page(page, template=template) for page, template in enumerate((b"old", b"shared", b"shared"))}
    store.save(Batch(new_pages=pages, templates={b"old": {"priority": 1}, b"shared": {"priority": 2}}))
    assert store.forgetting.prune_templates() == 0
    moved = {page: {"template": b"new"} for page in (0, 1)}
    store.save(Batch(contents=moved, templates={b"new": {"priority": 3}}))
    assert store.forgetting.prune_templates() == 1
    assert [facts.template_data["priority"] for facts in store.reader.facts([0, 1, 2])] == [3, 3, 2]
    store.forgetting.forget("url", pages[2].url, NOW)
    with store.database.reading() as connection:
        assert connection.execute(text("SELECT data FROM request_templates")).scalars().all() == ['{"priority":3}']


def test_what_comes_late_of_a_forgotten_page_is_left_out(store):
    """A visit that was on its way when the page was forgotten leaves no trace."""
    fill(store, ["http://a.example/", "http://b.example/"])
    store.forgetting.forget("host", "a.example", NOW)
    late = Batch(observations=[observation(i, i - 10) for i in (10, 11)])
    late.announcements = {(0, 3): (NOW, 1)}
    late.contents = {0: {"etag": "x"}}
    late.new_pages = {0: new_page(0, "http://a.example/")}
    store.save(late)
    assert store.reader.facts([0]) == [None]
    assert store.reader.observations_of(0) == []
    assert store.reader.announcements_of(0) == []
    assert len(store.reader.observations_of(1)) == 2


def test_what_is_taken_back_may_come_again(store):
    """The tombstone goes from memory and from the database; what was none is said."""
    store.forgetting.forget("host", "A.Example", NOW)
    store.forgetting.forget("pattern", "*/old", NOW + 1.0)
    assert [tuple(stone) for stone in store.tombstones] == [("host", "a.example", NOW), ("pattern", "*/old", NOW + 1.0)]
    assert store.forgetting.take_back("host", "a.example")
    assert not store.forgetting.take_back("host", "a.example")
    assert store.tombstones.cover(["http://a.example/", "http://a.example/old"]) == [False, True]
    assert rows(store, models.tombstones) == 1


def test_only_the_open_collection_can_be_emptied(store):
    """A slip in the name must not empty another collection, and an unknown kind is refused."""
    with pytest.raises(ValueError, match="value is 'other'; it has to be 'spider', the collection that is open"):
        store.forgetting.forget("collection", "other", NOW)
    with pytest.raises(ValueError, match="kind is 'domain'; it has to be one of url, pattern, host"):
        store.forgetting.forget("domain", "a.example", NOW)
    with pytest.raises(ValueError, match="kind is 'domain'; it has to be one of url, pattern, host, collection"):
        store.forgetting.matching("domain", "a.example")


def test_emptying_a_collection_leaves_nothing_of_it(store):
    """Pages, sources, hosts, plans, tombstones and templates go; the collection may begin anew."""
    fill(store, ["http://a.example/"], template=b"a")
    store.save(Batch(sources={0: Source(0, "sitemap", "http://a.example/s.xml", "a.example")}))
    save_plan(store, {}, NOW)
    store.forgetting.forget("collection", "spider", NOW)
    for table in (models.pages, models.observations, models.announcements, models.sources, models.plans):
        assert rows(store, table) == 0
    assert store.tombstones.cover(["http://a.example/"]) == [False]
