"""Processes that share a collection, without Scrapy: what its timers and callbacks do is done by the test."""

from collections.abc import Iterator
from contextlib import contextmanager

from crawlsched.crawl.page_requests import PAGE
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.shared.shared_crawl import SharedCrawl
from crawlsched.crawl.visits import Visit
from crawlsched.settings import Settings
from crawlsched.sharing import shard_of
from crawlsched.store import Outgoing, host_of
from crawlsched.store.members import SharedCollection
from tests import parts
from tests.databases import rows
from tests.parts import any_host, ask, asked
from tests.waiting import wait_until

N_SHARDS = 4
# The first host of each shard.
HOSTS = [next(h for i in range(100) if shard_of(h := f"h{i}.example", N_SHARDS) == shard) for shard in range(N_SHARDS)]


@contextmanager
def process(shared: SharedCollection, **given) -> Iterator[Refresher]:
    """A process that crawls a shared collection, without Scrapy; it ends as one that is told to."""
    settings = Settings(
        database_url=shared.database.text, collection=shared.name, shards=N_SHARDS, bandwidth=1000.0, **given
    )
    refresher = parts.refresher(settings, share=SharedCrawl)
    try:
        yield refresher
    finally:
        parts.close(refresher)


def row(url: str, number: int, kind: str = PAGE, data=None) -> Outgoing:
    data = asked(url).to_dict() if data is None else data
    return Outgoing(shard_of(host_of(url), N_SHARDS), "sender", number, kind, data, float(number))


def asked_of(shared: SharedCollection, statement: str, **values) -> list[tuple]:
    """Return the rows that a statement gives; in it `:n` is the number of the collection."""
    found = rows(shared.database.text, statement, **({"n": shared.number} if ":n" in statement else {}), **values)
    return [tuple(row.values()) for row in found]


def pages(shared: SharedCollection) -> list[tuple[int, str]]:
    return asked_of(shared, "SELECT shard, url FROM pages WHERE collection = :n ORDER BY url")


def inbox(shared: SharedCollection) -> list[tuple[int, int]]:
    return asked_of(shared, "SELECT shard, number FROM inbox WHERE collection = :n ORDER BY 1, 2")


def take_away(shared: SharedCollection, shard: int) -> None:
    """Let another process have claimed a shard, as if its owner had been silent for too long."""
    given = "member = NULL, token = '', epoch = epoch + 1"
    asked_of(shared, f"UPDATE leases SET {given} WHERE collection = :n AND shard = :shard", shard=shard)


def look_until(refresher: Refresher, what, *others: Refresher) -> None:
    """Do what the timers of a crawl do, and of others beside it."""

    def is_so() -> bool:
        for each in (refresher, *others):
            each.sharing.heartbeat()
            each.sharing.look(each.clock())
            each.long_work.go_on(0.01)
            each.flush(each.clock())
        return bool(what())

    if not what():
        wait_until(is_so, 60.0)


def visit(refresher: Refresher, url: str) -> Visit:
    """Begin a visit."""
    ask(refresher, url)
    begun, _ = next(refresher.dispatcher.next_pages(refresher.clock(), any_host), None)
    assert begun.url == url
    return begun


@contextmanager
def renamed(shared: SharedCollection, table: str) -> Iterator[None]:
    """A database that lacks a table for a while: what needs it fails, and all else goes on."""
    asked_of(shared, f"ALTER TABLE {table} RENAME TO away")
    try:
        yield
    finally:
        asked_of(shared, f"ALTER TABLE away RENAME TO {table}")
