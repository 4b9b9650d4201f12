"""Processes that share a collection, without Scrapy: what its timers and callbacks do is done by the test."""

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from scrapy import Request
from scrapy.utils.request import fingerprint
from sqlalchemy import text

from crawlsched.crawl.handing_over import PAGE
from crawlsched.crawl.page_requests import PageRequest
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.request_templates import RequestTemplate
from crawlsched.crawl.shared.shared_crawl import SharedCrawl
from crawlsched.crawl.visits import Call
from crawlsched.settings import Settings
from crawlsched.sharing import shard_of
from crawlsched.store import Outgoing, host_of
from crawlsched.store.members import SharedCollection

N_SHARDS = 4
# The first host of each shard.
HOSTS = [next(h for i in range(100) if shard_of(h := f"h{i}.example", N_SHARDS) == shard) for shard in range(N_SHARDS)]


@contextmanager
def process(shared: SharedCollection, **given) -> Iterator[Refresher]:
    """A process that crawls a shared collection, without Scrapy; it ends as one that is told to."""
    stats = Counter[str]()
    settings = Settings(
        database_url=shared.database.text, collection=shared.name, shards=N_SHARDS, bandwidth=1000.0, **given
    )
    refresher = Refresher(
        settings,
        "spider",
        clock=time.time,
        count=lambda name, n=1: stats.update({name: n}),
        request_fingerprint=lambda url: fingerprint(Request(url)),
        rng=Random(0),
        share=SharedCrawl,
    )
    refresher.open()
    refresher.stats = stats
    try:
        yield refresher
    finally:
        for step in refresher.closing():
            if step is not None:
                step()


def asked(url: str, call: Call | None = None, **request) -> PageRequest:
    template = RequestTemplate(request) if request else None
    return PageRequest(url, fingerprint(Request(url)), host_of(url), template, None, {}, False, call)


def row(url: str, number: int, kind: str = PAGE, data=None) -> Outgoing:
    data = asked(url).to_dict() if data is None else data
    return Outgoing(shard_of(host_of(url), N_SHARDS), "sender", number, kind, data, float(number))


def pages(shared: SharedCollection) -> list[tuple[int, str]]:
    with shared.database.reading() as connection:
        found = text("SELECT shard, url FROM pages WHERE collection = :number ORDER BY url")
        return [tuple(row) for row in connection.execute(found, {"number": shared.number})]


def inbox(shared: SharedCollection) -> list[tuple[int, int]]:
    with shared.database.reading() as connection:
        found = text("SELECT shard, number FROM inbox WHERE collection = :number ORDER BY 1, 2")
        return [tuple(row) for row in connection.execute(found, {"number": shared.number})]


def look_until(refresher: Refresher, what, seconds: float = 10.0) -> None:
    """Do what the timers of a crawl do."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        refresher.sharing.look(refresher.clock())
        refresher.long_work.go_on(0.01)
        refresher.flush(refresher.clock())
        time.sleep(0.02)


def visit(refresher: Refresher, url: str) -> Call:
    """Begin a visit, and the call of its callback."""
    refresher.admission.requested(asked(url), refresher.clock())
    begun, _ = refresher.dispatcher.next_page(refresher.clock(), lambda host, now: now)
    assert begun.url == url
    return Call(begun.token, begun.page)


@contextmanager
def renamed(shared: SharedCollection, table: str) -> Iterator[None]:
    """A database that lacks a table for a while: what needs it fails, and all else goes on."""

    def rename(before: str, after: str) -> None:
        with shared.database.writing() as connection:
            connection.execute(text(f"ALTER TABLE {before} RENAME TO {after}"))

    rename(table, "away")
    try:
        yield
    finally:
        rename("away", table)
