"""A collection in memory: its pages, their planner, and the store that pages are read from and written to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import part_number
from crawlsched.crawl.guard import Guard
from crawlsched.crawl.hosts import Hosts
from crawlsched.crawl.learned import Learned
from crawlsched.crawl.page_facts import FactsCache, FactsReader
from crawlsched.crawl.page_rules import PageRules
from crawlsched.crawl.request_templates import RequestTemplate, request_digest
from crawlsched.crawl.shard import PageNumbers, Shards
from crawlsched.crawl.side_thread import Aside
from crawlsched.crawl.sources import Sources
from crawlsched.crawl.unsaved import Unsaved
from crawlsched.crawl.validators import ValidatorTrials
from crawlsched.crawl.withheld import Withheld
from crawlsched.crawl.wrong_pages import WrongPages
from crawlsched.exceptions import DamagedRow, StoreError
from crawlsched.pages import FREE, NEW
from crawlsched.pages.marks import AWAITED, RUN_ONLY
from crawlsched.pages.page_index import PageIndex
from crawlsched.planner.from_settings import planner_for
from crawlsched.settings import Settings
from crawlsched.store import Host, KeptText, Lease, NewPage, PageFacts, Store, WriteBehind
from crawlsched.store.models import TRACE_COLUMNS
from crawlsched.store.rows import url_digest

__all__ = ["FLUSH_INTERVAL", "Collection", "FoundPage"]

logger = logging.getLogger(__name__)


# No request is sent while a change has waited longer than this for the store (seconds). The slot clock makes up for at
# most one second of lost slots.
_LONGEST_UNSAVED = 2.0
#: Seconds between two writes. A crash loses at most the changes of this time and 0.2 s more.
FLUSH_INTERVAL = 0.3
# The last writes of a crawl may take this time (seconds). A third of this time is the limit for the work of the other
# thread, and for the database's answer to each statement.
_LAST_WRITES = 15.0


# The stored facts about a page's content, except its traces.
_OF_CONTENT = ("fingerprint", "pending_fingerprint", "recipe", "etag", "last_modified", "moved_to")


class FoundPage(NamedTuple):
    """A URL that is to become a page."""

    url: str
    request_fingerprint: bytes
    host: str
    importance: float | None = None  # the stated importance
    template: RequestTemplate | None = None
    depth: int = 0


class Collection:
    """Keeps a collection in memory, from its opening to the last write.

    Only the crawling thread changes the data in memory. `rng` chooses which visits put validators on trial.
    """

    def __init__(
        self,
        settings: Settings,
        spider: str,
        request_fingerprint: Callable[[str], bytes],
        fingerprinter: str,
        rng: Random,
        guard: Guard,
        n_shards: int | None = None,
        count: Callable[..., None] = lambda name, n=1: None,
    ) -> None:
        self.settings = settings
        self.hosts = Hosts(shares=dict(settings.host_shares))
        self.rules = PageRules(settings.pages, settings.max_pages)
        self.sources = Sources(settings.source_interval, once=bool(settings.one_pass))
        self.index = PageIndex()
        self.facts = FactsCache()
        self.aside = Aside(guard)
        self.write_behind = WriteBehind()
        self.planner = planner_for(settings)
        self.reader = FactsReader(self.facts, self.planner, guard, self._reading)
        self.numbers = PageNumbers()
        self.shards = Shards(n_shards, self.planner.pages, self.hosts, self.numbers)
        self.unsaved = Unsaved(self.shards, self.numbers, self.sources, self.planner)
        self.learned = Learned(self._read_learned)
        is_sure = settings.conditional_requests == "always"
        self.validators = ValidatorTrials(rng, 0.0) if is_sure else ValidatorTrials(rng)
        self.wrong_pages = WrongPages(rng, enabled="wrong_page" in settings.withhold)
        self.withheld = Withheld(settings.withhold)
        #: The number of pages that requests of this run have added, and whose requests have not ended.
        self.n_awaited = 0
        #: By host: since when, and how, most of its pages fail.
        self.failing_hosts: dict[int, dict[str, Any]] = {}
        self.lease: Lease
        #: Functions that are called between the last write and the end of the lease.
        self.before_release: list[Callable[[], object]] = []
        self.count = count
        self.request_fingerprint = request_fingerprint
        self.spider = spider
        self.fingerprinter = fingerprinter

    # -- opening and closing

    @property
    def store(self) -> Store:
        """The store of a collection without shards."""
        return self.shards.only.store

    def close(self, now: float) -> None:
        """Write everything down and give the lease back, within half a minute even if the database does not answer."""
        self.store.database.answer_within = _LAST_WRITES / 3
        try:
            self.write_last(now)
            for last_word in self.before_release:
                last_word()
            self.lease.release()
        except StoreError as error:
            logger.error("The lease is not given back, so the next start may have to wait for half a minute: %s", error)
        finally:
            self.store.close()

    def write_last(self, now: float) -> None:
        """Make the last write; nothing is written after that."""
        self.reader.close()
        self.aside.close(_LAST_WRITES / 3)
        self.flush(now)
        writer = self.write_behind
        if not writer.close(_LAST_WRITES) and writer.lost is None:
            raise StoreError(writer.failure or "the database does not answer.")

    def _read_learned(self, name: str) -> Any:
        shard = next((shard for shard in self.shards if name in shard.learned), None)
        return None if shard is None else shard.store.reader.noise_mask(name)

    # -- pages

    def add_pages(self, found: Sequence[FoundPage], now: float, worth: Sequence[float] | None = None) -> list[int]:
        """Take in several pages, and return their row numbers. `worth` has the importance of each (None: 1)."""
        hosts = np.array([self.hosts.number(page.host) for page in found], np.intp)
        importance = np.ones(len(found)) if worth is None else np.array(worth)
        parts = np.array([part_number(page.url) for page in found], np.intp)
        rules = self.rules.numbers([page.url for page in found])
        priority = [int(page.template.data.get("priority", 0)) if page.template else 0 for page in found]
        added = self.planner.add(hosts, now, importance, part=parts, interval_rules=rules, priority=priority)
        rows: list[int] = added.tolist()
        self.numbers.put(added, self._new_numbers(added))
        for row, number, page in zip(rows, self.numbers.of(added).tolist(), found, strict=True):
            name = page.request_fingerprint
            self.index.add(name, row)
            digest, data = (page.template.digest, page.template.data) if page.template else (None, None)
            self.planner.pages.request_digest[row] = request_digest(data)
            batch, _ = self.unsaved.of_page(row, now)
            batch.new_pages[number] = NewPage(
                number, page.url, page.host, name, now, digest, page.depth, self.fingerprinter
            )
            if digest is not None and data is not None:
                batch.templates[digest] = data
            self.unsaved.page(row, now)
            if page.importance is not None:
                self.unsaved.content(row, now, importance_stated=1)
            facts = PageFacts(row, page.url, digest, data, None, None, None, None, None, page.depth, None, NEW)
            self.facts.put(facts, self.unsaved.number)
        return rows

    def _new_numbers(self, pages: NDArray[np.intp]) -> NDArray[np.int64]:
        """Give numbers to new pages, each in the store of its shard."""
        shards, numbers = self.shards.numbers_of(pages), np.empty(pages.size, np.int64)
        for number in np.unique(shards).tolist():
            mine = shards == number
            shard, n_pages = self.shards.here[number], int(np.count_nonzero(mine))
            numbers[mine] = shard.next_page + np.arange(n_pages)
            shard.next_page += n_pages
            shard.n_pages += n_pages
        return numbers

    def knows(self, page: int) -> bool:
        """Whether this is a page of ours, and has not been forgotten."""
        return self.shards.of_page(page) is not None

    def facts_of(self, page: int) -> PageFacts:
        """Return what is needed to make a page's request and to judge its response."""
        facts = self.facts.get(page)
        if facts is None:
            self.facts.add(self._reading([page])())
            facts = self.facts.get(page)
            if facts is None:  # the planner knows only pages that are in the store or on their way to it
                raise DamagedRow(
                    f"The page number {self.numbers.item(page)} is not in the database any more, or its row is damaged."
                )
        return facts

    def _reading(self, pages: Sequence[int]) -> Callable[[], list[PageFacts | None]]:
        """Return a function that reads the facts of pages, in any thread."""
        rows = np.array(pages, np.intp)
        shards, numbers = self.shards.numbers_of(rows), self.numbers.of(rows)
        parts = [(shard.store, shards == shard.number) for shard in self.shards]
        return lambda: [
            facts if facts is None or facts.page == page else facts._replace(page=page)
            for store, mine in parts
            if mine.any()
            for page, facts in zip(rows[mine].tolist(), store.reader.facts(numbers[mine]), strict=True)
        ]

    def put_facts(self, facts: PageFacts, now: float) -> None:
        """Keep the facts that a visit has found about a page's content."""
        known = self.facts.get(facts.page)
        if known == facts:
            return
        self.facts.put(facts, self.unsaved.number)
        self.unsaved.content(facts.page, now, **{name: getattr(facts, name) for name in _OF_CONTENT})
        if known is None or any(getattr(known, name) != getattr(facts, name) for name in TRACE_COLUMNS):
            batch, number = self.unsaved.of_page(facts.page, now)
            batch.traces[number] = {name: getattr(facts, name) for name in TRACE_COLUMNS}

    def put_template(self, page: int, template: RequestTemplate | None, digest: int, now: float) -> None:
        """From now on, visit a page with another request."""
        name, data = (None, None) if template is None else (template.digest, template.data)
        self.facts.put(self.facts_of(page)._replace(template=name, template_data=data), self.unsaved.number)
        self.planner.pages.request_digest[page] = digest
        if self.planner.pages.state.item(page) == NEW:
            self.planner.set_priority(page, int((data or {}).get("priority", 0)), now)
        self.unsaved.content(page, now, template=name)
        if name is not None and data is not None:
            self.unsaved.of_page(page, now)[0].templates[name] = data
        self.unsaved.page(page, now)

    def put_url(self, page: int, url: str, now: float) -> None:
        """From now on, ask for a page by another URL; the two URLs differ only in ignored parameters."""
        known = self.facts.get(page)
        if known is None or known.url != url:
            self.unsaved.content(page, now, url=url, url_digest=url_digest(url))
        if known is not None:
            self.facts.put(known._replace(url=url), self.unsaved.number)

    def mark(self, page: int, marks: int, now: float) -> None:
        """Set some of a page's marks."""
        self.set_marks(page, self.planner.pages.marks.item(page) | marks, now)

    def set_marks(self, page: int, marks: int, now: float) -> None:
        """Replace a page's marks; marks that outlive the run are written down."""
        before = self.planner.pages.marks.item(page)
        if before != marks:
            self.planner.pages.marks[page] = marks
            if (before ^ marks) & ~RUN_ONLY:
                self.unsaved.page(page, now)

    def keep_learned(self, page: int, url: str, recipe: str, now: float) -> None:
        """Write down what was learned of a page's template and site, if it has grown much since the last write."""
        shard = self.shards.of_page(page)
        for name, data in self.learned.to_write(url, recipe):
            if shard is not None:
                shard.learned.add(name)
            self.unsaved.of_page(page, now)[0].masks[name] = data

    def keep_text(self, page: int, packed_text: bytes, now: float) -> None:
        """Keep the present text of a page."""
        batch, number = self.unsaved.of_page(page, now)
        batch.texts[number] = KeptText(now, packed_text).after(batch.texts.get(number))

    def forget(self, pages: NDArray[np.integer]) -> None:
        """Take pages out of memory; the store has deleted them already."""
        pages = pages[self.planner.pages.state[pages] != FREE]
        self.unsaved.forget(pages)
        self.take_out(pages)
        self.index.discard(pages)

    def take_out(self, pages: NDArray[np.integer]) -> None:
        """Take pages out of memory; the index keeps them until they are discarded there."""
        self.n_awaited -= int(np.count_nonzero(self.planner.pages.marks[pages] & AWAITED))
        self.rules.gave_up(self.planner.pages.rule[pages])
        for number, n_pages in zip(*np.unique(self.shards.numbers_of(pages), return_counts=True), strict=True):
            if (shard := self.shards.here.get(int(number))) is not None:
                shard.n_pages -= int(n_pages)
        self.planner.remove(pages)
        for page in pages.tolist():
            self.facts.discard(page)
        self.reader.drop(pages.tolist())

    # -- writing down

    def flush(self, now: float) -> None:
        """Hand all unwritten changes to the writing thread."""
        for host in self.withheld.take_unwritten():
            self.save_host(self.hosts.number(host), now)
        self.facts.written(self.write_behind.n_written)
        self.unsaved.hand_over(self.write_behind.submit, now)

    def must_wait(self, now: float) -> bool:
        """Whether crawling must wait until the store has caught up."""
        self.reader.collect()
        return self.reader.is_full or self.unsaved_for(now) > _LONGEST_UNSAVED + FLUSH_INTERVAL

    def unsaved_for(self, now: float) -> float:
        """Return for how many seconds the oldest unwritten change has waited; 0 if all changes are written."""
        # Changes that were not handed to the writing thread count, too.
        waiting = self.unsaved.since, self.write_behind.oldest_unsaved_at
        return max((now - since for since in waiting if since is not None), default=0.0)

    def save_host(self, host: int, now: float) -> None:
        """Write down what a host asked for, and what was learned about the host."""
        name = self.hosts.names[host]
        counts: dict[str, Any] = {
            "validators": self.validators.to_dict(host),
            "wrong_pages": self.wrong_pages.to_list(host),
            "withheld": self.withheld.of(name),
        }
        if host in self.failing_hosts:
            counts["failing"] = self.failing_hosts[host]
        row = Host(name, self.hosts.rest_until(host), self.hosts.crawl_delay.get(host), now, counts)
        self.unsaved.of_shard(self.shards.number_of(name), now).hosts[name] = row
