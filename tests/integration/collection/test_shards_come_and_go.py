"""Shards of one collection in the memory of one process: each keeps its own numbers, and what leaves leaves nothing."""

from random import Random
from typing import Any

import numpy as np
import pytest

from crawlsched.crawl.collection import Collection, FoundPage
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.shard_pages import ShardPages
from crawlsched.pages import FREE, NEW
from crawlsched.sharing import shard_of
from crawlsched.store import Store
from crawlsched.store.members import SharedCollection
from tests import parts
from tests.planners import check_places
from tests.rows import name_of

NOW, N_SHARDS = 1_000_000.0, 4
HOSTS = [next(h for i in range(100) if shard_of(h := f"h{i}.example", N_SHARDS) == shard) for shard in range(N_SHARDS)]


def pages_of(shard: int, n: int) -> list[FoundPage]:
    return parts.found(f"http://{HOSTS[shard]}/{number}" for number in range(n))


class Process:
    """A collection without Scrapy and without others; nobody else claims anything."""

    def __init__(self, shared: SharedCollection, **settings: Any) -> None:
        given = parts.settings(shared.database.text, **settings)
        self.shared = shared
        self.collection = Collection(given, "test", name_of, "none", Random(1), parts.guard(), N_SHARDS)
        self.shard_pages = ShardPages(self.collection)

    def store(self, shard: int) -> Store:
        return self.shared.store(shard)

    def take(self, *shards: int, now: float = NOW) -> None:
        for shard in shards:
            stored = self.shard_pages.read(Shard(self.store(shard)), at_once=7)
            for _ in self.shard_pages.take_in(stored, now):
                pass

    def write(self) -> None:
        self.collection.flush(NOW)
        assert self.collection.write_behind.drain(30.0)

    def leave(self, shard: int) -> None:
        self.write()
        for _ in self.shard_pages.leave(shard):
            pass

    def urls(self) -> set[str]:
        planner = self.collection.planner
        rows = np.flatnonzero(planner.pages.state[: planner.pages.n] != FREE).tolist()
        return {self.collection.facts_of(row).url for row in rows}


@pytest.fixture
def process(database, request) -> Process:
    return Process(SharedCollection.open(database, request.node.name[:60], N_SHARDS, 10.0))


def test_each_shard_gives_its_own_numbers(process: Process):
    """The first page of each is number 0 there, and all are found again under these by the next owner."""
    process.take(0, 1, 2, 3)
    pages = parts.found(f"http://{host}/{number}" for number in range(5) for host in HOSTS)
    rows = process.collection.add_pages(pages, NOW)
    assert process.collection.numbers.of(rows).tolist() == [number for number in range(5) for _ in HOSTS]
    process.write()
    again = Process(process.shared)
    again.take(3, 1)
    assert again.urls() == {page.url for page in pages if page.host in (HOSTS[1], HOSTS[3])}
    for shard in (1, 3):
        rows = again.collection.shards.rows_of(again.collection.shards.here[shard], [4, 0, 9])
        urls = [again.collection.facts_of(row).url for row in rows[:2].tolist()]
        assert urls == [f"http://{HOSTS[shard]}/4", f"http://{HOSTS[shard]}/0"]
        assert rows[2] == -1


def test_of_a_shard_that_left_nothing_is_picked_known_or_written(process: Process):
    """The others are crawled on."""
    process.take(0, 1)
    collection = process.collection
    here, gone = collection.add_pages(parts.found(f"http://{host}/0" for host in HOSTS[:2]), NOW)
    process.leave(1)
    assert (collection.knows(here), collection.knows(gone)) == (True, False)
    assert collection.index.page(name_of(f"http://{HOSTS[1]}/0")) == -1
    assert process.urls() == {f"http://{HOSTS[0]}/0"}
    assert len(collection.index) == 1
    picks = [collection.planner.pick(NOW + n, parts.any_host) for n in range(3)]
    assert [pick and pick.page for pick in picks] == [here, None, None]
    check_places(collection.planner.frontier, NOW + 3)
    collection.unsaved.page(gone, NOW)
    collection.unsaved.feed(gone, NOW, "new", None)
    process.write()
    assert process.store(1).reader.next_change() == 1
    for shard in (0, 1):
        (columns,) = process.store(shard).load()
        assert columns["state"].tolist() == [NEW]


def test_a_shard_that_comes_back_is_what_it_was(process: Process):
    """What was learned meanwhile in another process is there; announcements count for the source that they had."""
    process.take(0, 1)
    collection = process.collection
    rows = collection.add_pages(pages_of(1, 20), NOW)
    source = collection.sources.add("sitemap", f"http://{HOSTS[1]}/sitemap.xml", HOSTS[1], NOW)
    ping = collection.sources.add("ping", "desk", "", NOW)
    collection.planner.covered(np.array(rows), source.source, NOW)
    collection.planner.covered(np.array(rows[:3]), ping.source, NOW)
    collection.planner.signalled(np.array(rows[:5]), source.source, NOW + 1.0)
    for row in rows[:10]:
        collection.planner.crawled(row, NOW + 2.0, None)
    collection.unsaved.pages(np.array(rows), NOW)
    collection.unsaved.announcement(rows[0], source.source, 7.0, 1, NOW)
    before = collection.planner.columns(rows)
    further = collection.planner.further.stored(np.array(rows))
    process.leave(1)
    assert source.source not in collection.sources
    other = Process(process.shared)
    other.take(1)
    (row,) = other.collection.shards.rows_of(other.collection.shards.here[1], [0])
    assert other.collection.sources[other.collection.planner.pages.source.item(row)].url == source.url
    process.take(1)
    again = collection.shards.rows_of(collection.shards.here[1], list(range(20)))
    assert not set(again.tolist()) & set(rows)  # who still speaks of a row means the page that left
    after = collection.planner.columns(again)
    for name in ("state", "crawled_at", "n_crawls", "source", "n_signals", "n_signals_total", "log_likelihood"):
        np.testing.assert_array_equal(after[name], before[name], name)
    place = dict(zip(again.tolist(), rows, strict=True))
    kept = collection.planner.further.stored(again)
    assert {(place[page], number): told for (page, number), told in kept.items()} == further
    shard = collection.shards.here[1]
    numbers = collection.numbers.of(again[:1]), shard.source_numbers[source.source]
    assert shard.store.reader.announcements_for(*numbers)[1].tolist() == [7.0]


def test_rows_are_given_again_after_a_while(process: Process):
    """A shard that goes to and fro for ever takes no more memory than once; nothing of the page before is left."""
    process.take(0, 1)
    collection = process.collection
    rows = collection.add_pages(pages_of(1, 300), NOW)
    for row in rows[:100]:
        collection.planner.crawled(row, NOW + 1.0, None)
    collection.unsaved.pages(np.array(rows), NOW)
    process.leave(1)
    n_rows = collection.planner.pages.n
    now = NOW
    for _ in range(3):
        now += 1_000.0
        process.take(1, now=now)
        assert collection.planner.pages.n == n_rows
        here = collection.shards.pages_of(1)
        assert here.size == len(collection.index) == 300
        assert int(np.count_nonzero(collection.planner.pages.crawled_at[here] > 0)) == 100
        urls = {collection.facts_of(row).url for row in here[:50].tolist()}
        assert urls <= {f"http://{HOSTS[1]}/{number}" for number in range(300)}
        process.leave(1)
