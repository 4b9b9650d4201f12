"""A collection in memory: its pages and their planner, with the store that they come from and go to."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import part_number
from crawlsched.crawl.guard import Guard
from crawlsched.crawl.hosts import Hosts
from crawlsched.crawl.learned import Learned
from crawlsched.crawl.page_numbers import PageNumbers
from crawlsched.crawl.page_rules import PageRules
from crawlsched.crawl.request_templates import RequestTemplate, request_digest
from crawlsched.crawl.shard import Shards
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
from crawlsched.planner import readable
from crawlsched.planner.from_settings import planner_for
from crawlsched.settings import Settings
from crawlsched.store import Batch, Host, KeptText, Lease, NewPage, PageFacts, Store, WriteBehind
from crawlsched.store.models import TRACE_COLUMNS
from crawlsched.store.rows import url_digest

__all__ = ["FLUSH_INTERVAL", "Collection", "FactsCache", "FoundPage"]

logger = logging.getLogger(__name__)


# Dispatching stops while a change has waited this long for the store; the slot clock pays back up to a second.
_LONGEST_UNSAVED = 2.0
#: Seconds between two writes; a crash forgets at most this and 0.2 s of what happened.
FLUSH_INTERVAL = 0.3
# Seconds between two readings ahead, each of the facts of pages that are likely to be picked in twice this time.
_READ_AHEAD = 0.7
# This number of pages is read together if one was not foreseen; reading ahead takes more than this number.
_READ_TOGETHER = 32
# Seconds for what is left to write at the end; work in the other thread, and each answer of the database, have a third.
_LAST_WRITES = 15.0


# What visits teach of a page's content, beside its traces.
_OF_CONTENT = ("fingerprint", "pending_fingerprint", "recipe", "etag", "last_modified", "moved_to")


def _priority(template: RequestTemplate | None) -> int:
    return 0 if template is None else int(template.data.get("priority", 0))


class FoundPage(NamedTuple):
    """A URL that is to become a page."""

    url: str
    request_fingerprint: bytes
    host: str
    importance: float | None = None  # as somebody has stated it
    template: RequestTemplate | None = None
    depth: int = 0


class Collection:
    """Opens a collection, keeps it, writes it down.

    What is known in memory is changed by the crawling thread only. `rng` chooses which visits put validators on trial.
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
        self.planner = planner_for(settings)
        self.numbers = PageNumbers()
        self.shards = Shards(n_shards, self.planner.pages, self.hosts, self.numbers)
        self.unsaved = Unsaved(self.shards, self.numbers, self.sources, self.planner.grid, self.planner.estimator)
        self.learned = Learned(self._read_learned)
        is_sure = settings.conditional_requests == "always"
        self.validators = ValidatorTrials(rng, 0.0) if is_sure else ValidatorTrials(rng)
        self.wrong_pages = WrongPages(rng, enabled="wrong_page" in settings.withhold)
        self.withheld = Withheld(settings.withhold)
        #: Pages that this run's requests have made, and whose requests have not ended.
        self.n_awaited = 0
        #: By host, where most of its pages fail: since when, and how they fail.
        self.failing_hosts: dict[int, dict[str, Any]] = {}
        self.lease: Lease
        #: What acts between the last write and the end of the lease.
        self.before_release: list[Callable[[], object]] = []
        self.count = count
        self.request_fingerprint = request_fingerprint
        self.spider = spider
        self.fingerprinter = fingerprinter
        self._read_ahead_at = -np.inf
        # A page's turn has come, but the store could not be asked for the parts of its request.
        self._unread: int | None = None
        self._not_submitted: list[tuple[Store, Batch]] = []
        self._n_written = 0
        #: What was left unwritten of shards that another process has now.
        self.left_out: deque[Batch] = deque()

    # -- opening and closing

    def begin_writing(self) -> None:
        """Begin the thread that writes."""
        self.write_behind = WriteBehind(on_left_out=self.left_out.append)

    @property
    def store(self) -> Store:
        """The store of a collection without shards."""
        return self.shards.only.store

    def close(self, now: float) -> None:
        """Write everything down and give the lease back; in half a minute at most, whatever the database does."""
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
        """Write down what is left, and nothing more after that."""
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
        """Take pages in, all at once, and return them. `worth` has the importance of each; None: 1 each."""
        hosts = np.array([self.hosts.number(page.host) for page in found], np.intp)
        importance = np.ones(len(found)) if worth is None else np.array(worth)
        parts = np.array([part_number(page.url) for page in found], np.intp)
        rules = self.rules.numbers([page.url for page in found])
        priority = [_priority(page.template) for page in found]
        added = self.planner.add(hosts, now, importance, part=parts, interval_rules=rules, priority=priority)
        rows: list[int] = added.tolist()
        self.numbers.put(added, self._new_numbers(added))
        for row, number, page in zip(rows, self.numbers.of(added).tolist(), found, strict=True):
            name = page.request_fingerprint
            self.index.add(name, row)
            digest = page.template.digest if page.template else None
            data = page.template.data if page.template else None
            self.planner.pages.request_digest[row] = request_digest(data)
            new = NewPage(number, page.url, page.host, name, now, digest, page.depth, self.fingerprinter)
            self.unsaved.new_page(row, new, data, now)
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
            numbers[mine] = shard.give(n_pages)
            shard.n_pages += n_pages
        return numbers

    def kept_out(self, found: Sequence[FoundPage], now: float) -> list[str | None]:
        """Return for each page why it is not taken in, a key of `REASONS`; None: it is taken in, and counted."""
        reasons: list[str | None] = []
        for page in found:
            shard = self.shards.of_name(page.host)
            is_forgotten = shard is not None and shard.store.tombstones.cover([page.url])[0]
            has_room = not is_forgotten and self.rules.takes(self.rules.number(page.url))
            reasons.append("forgotten" if is_forgotten else None if has_room else "max_pages")
            if reasons[-1] == "max_pages":
                self.withheld.note(page.host, "max_pages", page.url, now)
        return reasons

    def knows(self, page: int) -> bool:
        """Whether this is a page of ours, and has not been forgotten."""
        return self.shards.of_page(page) is not None

    def facts_of(self, page: int) -> PageFacts:
        """Return what is needed to make a page's request and to judge its response."""
        facts = self.facts.get(page)
        if facts is None:
            # Reading ahead did not foresee this page. The likely next ones come with it: a row takes a tenth of a
            # statement's time.
            likely = self.planner.peek(self.planner.now, _READ_TOGETHER).tolist()
            others = [other for other in likely if other != page and other not in self.facts]
            shard = self.shards.of_page(page)
            others = [other for other in others if self.shards.of_page(other) is shard]
            facts, *read = self._reading([page, *others])()
            if facts is None:  # the planner knows only pages that are in the store or on their way to it
                raise DamagedRow(
                    f"The page number {self.numbers.item(page)} is not in the database any more, or its row is damaged."
                )
            self.facts.add([facts, *read])
        return facts

    def _reading(self, pages: Sequence[int]) -> Callable[[], list[PageFacts | None]]:
        """Return a function that reads the facts of pages, in any thread."""
        rows = np.array(pages, np.intp)
        shards, numbers = self.shards.numbers_of(rows), self.numbers.of(rows)
        parts = [
            (shard.store, rows[shards == shard.number].tolist(), numbers[shards == shard.number].tolist())
            for shard in self.shards
            if (shards == shard.number).any()
        ]

        def read() -> list[PageFacts | None]:
            found: dict[int, PageFacts | None] = {}
            for store, some, their_numbers in parts:
                for page, facts in zip(some, store.reader.facts(their_numbers), strict=True):
                    found[page] = facts and facts._replace(page=page)
            return [found.get(page) for page in pages]

        return read

    def announced_before(
        self, pages: NDArray[np.integer], source: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Read what a source of a site last announced of its pages (`Reader.announcements_for`); any thread may."""
        shard = self.shards.of_name(self.sources[source].host)
        if shard is None:
            raise StoreError("The shard of a sitemap that is being read is another process's by now.")
        return shard.store.reader.announcements_for(self.numbers.of(pages), shard.source_numbers.get(source, -1))

    @property
    def is_readable(self) -> bool:
        """Whether the store may be asked by the crawling thread: it answered the last time."""
        return self._unread is None and self.write_behind.failure is None

    def wait_to_read(self, page: int) -> None:
        """Dispatch nothing before the other thread has read what the request of this page is made of."""
        self._unread = page

    def _read_again(self, facts: Sequence[PageFacts | None]) -> None:
        self._unread = None
        self.facts.add(facts)

    def put_facts(self, facts: PageFacts, now: float) -> None:
        """Take over what a visit taught about a page's content."""
        known = self.facts.get(facts.page)
        if known == facts:
            return
        self.facts.put(facts, self.unsaved.number)
        self.unsaved.content(facts.page, now, **{name: getattr(facts, name) for name in _OF_CONTENT})
        if known is None or any(getattr(known, name) != getattr(facts, name) for name in TRACE_COLUMNS):
            batch, number = self.unsaved.of_page(facts.page, now)
            batch.traces[number] = {name: getattr(facts, name) for name in TRACE_COLUMNS}

    def put_template(self, page: int, template: RequestTemplate | None, digest: int, now: float) -> None:
        """Visit a page by another request from now on."""
        name, data = (None, None) if template is None else (template.digest, template.data)
        self.facts.put(self.facts_of(page)._replace(template=name, template_data=data), self.unsaved.number)
        self.planner.pages.request_digest[page] = digest
        if self.planner.pages.state.item(page) == NEW:
            self.planner.set_priority(page, _priority(template), now)
        self.unsaved.template(page, name, data, now)
        self.unsaved.page(page, now)

    def put_url(self, page: int, url: str, now: float) -> None:
        """Ask for a page by another URL from now on, which differs in ignored parameters only."""
        known = self.facts.get(page)
        if known is None or known.url != url:
            self.unsaved.content(page, now, url=url, url_digest=url_digest(url))
        if known is not None:
            self.facts.put(known._replace(url=url), self.unsaved.number)

    def mark(self, page: int, marks: int, now: float) -> None:
        """Set some of a page's marks."""
        self.set_marks(page, self.planner.pages.marks.item(page) | marks, now)

    def set_marks(self, page: int, marks: int, now: float) -> None:
        """Give a page other marks; those that outlive the run are written down."""
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

    def read_ahead(self, now: float) -> None:
        """Fetch the facts of the pages that are likely to be picked soon."""
        wanted = _READ_TOGETHER + int(2 * _READ_AHEAD * self.planner.bandwidth)
        if self._unread is not None:
            self.aside.run("reading what the next visit needs", self._reading([self._unread]), self._read_again)
            return
        if now - self._read_ahead_at < _READ_AHEAD or len(self.facts) >= self.planner.pages.n:
            return  # this choice takes longer than the rest of a flush, so it is rare; or all facts are here
        self._read_ahead_at = now
        pages = [page for page in self.planner.peek(now, wanted).tolist() if page not in self.facts]
        if pages:
            self.aside.run("reading ahead", self._reading(pages), self.facts.add)

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

    # -- writing down

    def flush(self, now: float) -> None:
        """Hand what is not yet written to the writing thread."""
        if self._not_submitted:
            self.write_behind.submit(*self._not_submitted)
            self._not_submitted = []
        for host in self.withheld.take_unwritten():
            self.save_host(self.hosts.number(host), now)
        self.facts.written(self.n_written)
        taken = self.unsaved.take(lambda pages: self._stored_columns(pages, now), self.planner.further.stored)
        if taken:
            # Whatever happens now, it is handed over at the next flush.
            self._not_submitted = taken
            self.write_behind.submit(*taken)
            self._not_submitted = []

    @property
    def n_written(self) -> int:
        """How many batches are known to be written; the one being collected (`unsaved`) does not count."""
        if not self._not_submitted and not self.write_behind.in_flight:
            self._n_written = self.unsaved.number - 1
        return self._n_written

    def _stored_columns(self, pages: NDArray[np.intp], now: float) -> dict[str, Any]:
        return {**self.planner.columns(pages), **readable(self.planner, pages, now)}

    def must_wait(self, now: float) -> bool:
        """Whether the store is so far behind that no more may be crawled until it has caught up."""
        return self._unread is not None or self.unsaved_for(now) > _LONGEST_UNSAVED + FLUSH_INTERVAL

    def unsaved_for(self, now: float) -> float:
        """For how many seconds the oldest unwritten change has waited; 0: all is written."""
        # Changes that are not handed over count, too: a crawl that cannot hand over learns nothing that stays.
        waiting = (
            *(self.unsaved.since, self.write_behind.oldest_unsaved_at),
            *(batch.since for _, batch in self._not_submitted),
        )
        return max((now - since for since in waiting if since is not None), default=0.0)

    def save_host(self, host: int, now: float) -> None:
        """Write down what a host asked for, and what was learned of it."""
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


class FactsCache:
    """Facts of at most `limit` pages, and of every page whose facts are not yet written; all methods are O(1).

    A page that is newer than the store is pinned until its batch has been written. The others are dropped oldest first.
    """

    def __init__(self, limit: int = 20_000) -> None:
        self._limit = limit
        # Facts, and the number of the batch that carries them to the store; 0: they are from there.
        self._facts: dict[int, tuple[PageFacts, int]] = {}
        self._written = 0

    def __contains__(self, page: int) -> bool:
        return page in self._facts

    def __len__(self) -> int:
        return len(self._facts)

    def get(self, page: int) -> PageFacts | None:
        """Return a page's facts if they are here."""
        found = self._facts.get(page)
        return None if found is None else found[0]

    def put(self, facts: PageFacts, batch: int) -> None:
        """Keep facts which are newer than the store, until that batch is written."""
        # Taken out first, so that the page becomes the youngest.
        self._facts.pop(facts.page, None)
        self._facts[facts.page] = facts, batch

    def add(self, facts: Iterable[PageFacts | None]) -> None:
        """Keep facts as the store has them; what is here already is newer or the same."""
        for fact in facts:
            if fact is not None:
                self._facts.setdefault(fact.page, (fact, 0))
        self._shrink()

    def discard(self, page: int) -> None:
        """Forget a page's facts."""
        self._facts.pop(page, None)

    def written(self, batch: int) -> None:
        """All batches up to this one are in the store."""
        self._written = batch
        self._shrink()

    def _shrink(self) -> None:
        excess = len(self._facts) - self._limit
        if excess > 0:
            oldest = (page for page, (_, batch) in self._facts.items() if batch <= self._written)
            for page in list(islice(oldest, excess)):
                del self._facts[page]
