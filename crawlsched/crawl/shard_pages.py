"""Takes the pages of a shard, or of a whole collection, into memory and out of it, step by step."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.collection import Collection
from crawlsched.crawl.request_templates import without_credentials
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.side_thread import give_memory_back
from crawlsched.pages.marks import RECRAWL, RUN_ONLY
from crawlsched.pages.page_index import PageIndex
from crawlsched.planner import Plan
from crawlsched.store import Host, Store
from crawlsched.store.loading import sound_pages
from crawlsched.store.records import last_plan
from crawlsched.store.rows import ROWS_AT_ONCE

__all__ = ["MOVED_AT_ONCE", "ShardPages", "StoredShard"]

logger = logging.getLogger(__name__)

Block = dict[str, NDArray[Any]]

#: A step loads this number of pages into memory, or takes them out, while the crawl goes on.
MOVED_AT_ONCE = 500
# This number of blocks is put into the index together, since the index is copied each time. After that, memory that was
# needed for reading is given back: a byte a page.
_BLOCKS_TOGETHER = 100


class StoredShard:
    """What a store contains of a shard, or of a collection without shards."""

    def __init__(self, shard: Shard, blocks: Iterable[Block]) -> None:
        reader = shard.store.reader
        self.shard, self.n_pages = shard, reader.count_pages()
        self.blocks = blocks  # as `Store.load` gives them
        self.sources, self.further = reader.sources(), reader.further_sources()
        self.hosts, self.undelivered = reader.hosts(), reader.undelivered()
        self.learned, self.plan = reader.learned(), last_plan(shard.store)


class ShardPages:
    """Takes the stored pages of a shard into a collection's memory, and out of it."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._hosts, self._index = collection.hosts, collection.index
        self._planner, self._shards = collection.planner, collection.shards
        # Rows of pages that belong to another process now, and the times at which they were given up.
        self._left_rows, self._left_at = np.empty(0, np.intp), np.empty(0)

    def open(self, now: float) -> None:
        """Open the store of a collection without shards, take the lease, load everything."""
        collection, settings = self._collection, self._collection.settings
        assert settings.collection is not None
        store = Store.open(settings.database_url, settings.collection)
        try:
            shard = Shard(store)
            collection.lease = store.take_lease(collection.spider)
            for _ in self.take_in(self.read(shard), now):
                pass
        except BaseException:
            store.close()
            raise
        give_memory_back()

    def read(self, shard: Shard, *, at_once: int | None = None) -> StoredShard:
        """Begin to read a stored shard; any thread may do so.

        If `at_once` is given, the whole shard is read now, in blocks of that number of rows.
        """
        store = shard.store
        if not self._collection.settings.keep_credentials:
            store.forgetting.rewrite_templates(without_credentials)
        found = store.load(
            at_once or ROWS_AT_ONCE,
            host_number=self._hosts.number,
            grid=self._planner.grid,
            n_rates=len(self._planner.posterior.rates),
            fingerprinter=self._collection.fingerprinter,
            estimator=self._planner.estimator,
        )
        blocks = (sound_pages(block) for block in found if block["page"].size)
        return StoredShard(shard, blocks if at_once is None else list(blocks))

    def take_in(self, stored: StoredShard, now: float) -> Iterator[None]:
        """Take a shard in, step by step; it is in memory after the last step."""
        shard, planner = stored.shard, self._planner
        here = self._collection.sources.load(stored.sources, now)
        shard.source_numbers = {number: there for there, number in reversed(here.items())}
        # The plan is read first, so it applies to each page when the page is loaded. Later it would have to be applied
        # to all pages, slice by slice.
        if planner.plan is None and (plan := self._plan_of(stored)) is not None:
            planner.adopt(plan, now)
            planner.work(now)
        yield from self._take_pages_in(stored, here, now)
        for host in stored.hosts:
            self._take_host_in(host)
        shard.learned = set(stored.learned)
        self._shards.here[shard.number] = shard
        pages = self._shards.pages_of(shard.number)
        shard.n_pages = pages.size
        planner.force(pages[planner.pages.marks[pages] & RECRAWL != 0], now)
        for number in self._shards.hosts_of(shard.number) if self._shards.n is not None else ():
            planner.frontier.release_host(number)
        undelivered = self._shards.rows_of(shard, stored.undelivered)
        if undelivered.size:
            logger.info("%d changes had not been delivered when the last crawl ended; they go first.", undelivered.size)
            planner.force(undelivered[undelivered >= 0], now)

    def _take_pages_in(self, stored: StoredShard, here: Mapping[int, int], now: float) -> Iterator[None]:
        shard, planner, numbers = stored.shard, self._planner, self._collection.numbers
        # Room is made for all pages at once, since growing an array takes its memory twice for a moment. A block is
        # small in comparison.
        n_pages = planner.pages.n + stored.n_pages
        planner.reserve(n_pages)
        numbers.reserve(n_pages)
        n_before, n_unlearned = planner.clipped, 0
        waiting: list[tuple[NDArray[np.uint64], NDArray[np.intp]]] = []
        for number, block in enumerate(stored.blocks, 1):
            rows = self._rows_for(block["page"].size, now)
            source = _here(block["source"], here)
            planner.load({**block, "page": rows, "source": source}, block["log_likelihood"], now)
            numbers.put(rows, block["page"])
            if planner.learned is not None:
                n_unlearned += int(np.count_nonzero((block["n_crawls"] > 0) & ~block["has_estimator_state"]))
            planner.pages.marks[rows] &= ~np.uint16(RUN_ONLY)
            waiting.append((PageIndex.keys(self._request_fingerprints(shard, block)), rows))
            if self._shards.n is not None:  # nothing is sent before the shard is here
                for host in np.unique(planner.pages.host[rows]).tolist():
                    planner.frontier.rest_host(host, np.inf)
            if number % _BLOCKS_TOGETHER == 0 and not self._collection.settings.ignore_parameters:
                self._put(shard, waiting)
            yield
        self._put(shard, waiting)
        pages = self._shards.rows_of(shard, [page for page, *_ in stored.further])
        known = zip(pages.tolist(), stored.further, strict=True)
        planner.load_further([(row, here[of], *rest) for row, (_, of, *rest) in known if row >= 0 and of in here], now)
        yield from self._collection.rules.count_known(shard.store)
        if n_unlearned:
            logger.warning(
                "%d pages are new to this CRAWLSCHED_ESTIMATOR; `crawlsched db refit` teaches it their stored visits.",
                n_unlearned,
            )
        if (n_clipped := planner.clipped - n_before) > 0:
            logger.warning("%d pages were last crawled in the future; their time was set to now.", n_clipped)

    def _rows_for(self, n: int, now: float) -> NDArray[np.intp]:
        """Return rows for new pages; rows that were given up long ago come first, since no visit uses them any more."""
        n_given = min(n, int(self._left_at.searchsorted(now - self._collection.settings.visit_timeout, "right")))
        given, self._left_rows = self._left_rows[:n_given], self._left_rows[n_given:]
        self._left_at = self._left_at[n_given:]
        return np.concatenate([given, self._planner.pages.n + np.arange(n - n_given)])

    def _take_host_in(self, host: Host) -> None:
        number = self._hosts.number(host.host)
        self._hosts.rest(number, host.rest_until)
        self._hosts.set_crawl_delay(number, host.crawl_delay)
        self._collection.validators.load(number, host.counts.get("validators", {}))
        self._collection.wrong_pages.load(number, host.counts.get("wrong_pages", []))
        self._collection.withheld.load(host.host, host.counts.get("withheld", {}))
        if failing := host.counts.get("failing"):
            self._collection.failing_hosts[number] = failing
            self._hosts.failed_before(number, failing["since"], self._collection.settings.error_interval)

    def leave(self, number: int) -> Iterator[None]:
        """Give up a shard, and drop its rows that are not handed over; the pages leave memory step by step."""
        shard = self._shards.here.pop(number)
        self._collection.write_behind.left_out.append(self._collection.unsaved.leave(number))
        hosts, now = self._shards.hosts_of(number), self._planner.now
        for host in hosts:
            self._planner.frontier.rest_host(host, np.inf)
            self._collection.failing_hosts.pop(host, None)
        elsewhere = {source for other in self._shards for source in other.source_numbers}
        self._collection.sources.drop(shard.source_numbers.keys() - elsewhere)
        self._collection.learned.drop(shard.learned)
        pages = self._shards.pages_of(number)
        for start in range(0, pages.size, MOVED_AT_ONCE):
            self._collection.take_out(pages[start : start + MOVED_AT_ONCE])
            yield
        self._index.discard(pages)
        yield from self._index.purged()
        for host in hosts:
            self._planner.frontier.release_host(host)
        self._left_rows = np.append(self._left_rows, pages)
        self._left_at = np.append(self._left_at, np.full(pages.size, now))

    def _put(self, shard: Shard, waiting: list[tuple[NDArray[np.uint64], NDArray[np.intp]]]) -> None:
        """Put pages into the index; pages that differ from others only in ignored parameters are deleted instead."""
        if not waiting:
            return
        keys, pages = (np.concatenate(columns) for columns in zip(*waiting, strict=True))
        waiting.clear()
        if self._collection.settings.ignore_parameters:
            _, first = np.unique(keys, return_index=True)
            same = np.delete(pages, first)
            keys, pages = keys[first], pages[first]
            if same.size:
                self._planner.remove(same)
                logger.warning("%d pages differ from others by CRAWLSCHED_IGNORE_PARAMETERS only: they go.", same.size)
                numbers, delete = self._collection.numbers.of(same), shard.store.forgetting.delete
                self._collection.aside.run("deleting what is the same page", lambda: delete(numbers))
        self._index.add_many(keys, pages)
        self._collection.rules.n += pages.size
        give_memory_back()

    def _plan_of(self, stored: StoredShard) -> Plan | None:
        if stored.plan is None:
            return None
        try:
            plan = Plan.from_dict(stored.plan, self._hosts.number)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            logger.warning("The plan in the database is damaged and not used, a new one is made soon: %s.", error)
            return None
        there = stored.shard.source_numbers
        return plan.for_sources([there.get(number, -1) for number in range(max(there, default=-1) + 1)])

    def _request_fingerprints(self, shard: Shard, block: Block) -> NDArray[np.uint8]:
        names, others = block["request_fingerprint"], block["other_fingerprinter"]
        if others.any():
            # The project has another REQUEST_FINGERPRINTER_CLASS than when these pages were found.
            names, found = names.copy(), shard.store.reader.facts(block["page"][others])
            for at, facts in zip(np.flatnonzero(others).tolist(), found, strict=True):
                if facts is not None:
                    names[at] = np.frombuffer(self._collection.request_fingerprint(facts.url), np.uint8)
        return names


def _here(found: NDArray[Any], sources: Mapping[int, int]) -> NDArray[np.int32]:
    """Translate the numbers of sources in a store to their numbers in memory; -1: there is no such source."""
    named, place = np.unique(found, return_inverse=True)
    here: NDArray[np.int32] = np.array([sources.get(source, -1) for source in named.tolist()], np.int32)[place]
    return here
