"""A collection in memory: its pages and their planner, with the store that they come from and go to."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import part_number
from crawlsched.collection.credentials import Credentials, without_credentials
from crawlsched.collection.facts_cache import FactsCache
from crawlsched.collection.heap import give_memory_back
from crawlsched.collection.hosts import Hosts
from crawlsched.collection.loading import load_pages, planner_for
from crawlsched.collection.page_limits import PageLimits
from crawlsched.collection.page_numbers import PageNumbers
from crawlsched.collection.page_rules import PageRules
from crawlsched.collection.request_templates import RequestDigest, RequestTemplate
from crawlsched.collection.shard import Shard
from crawlsched.collection.side_thread import Aside
from crawlsched.collection.unsaved import Unsaved
from crawlsched.content.kept_texts import TextBudget
from crawlsched.content.learned import Learned
from crawlsched.content.validators import ValidatorTrials
from crawlsched.content.withheld import Withheld
from crawlsched.content.wrong_pages import WrongPages
from crawlsched.exceptions import DamagedRow, StoreError
from crawlsched.pages import FREE, NEW
from crawlsched.pages.marks import AWAITED, RECRAWL, RUN_ONLY
from crawlsched.pages.page_index import PageIndex
from crawlsched.pages.variants import Variants, variant_fingerprint
from crawlsched.planner import Plan, readable
from crawlsched.settings import Settings
from crawlsched.sources.sources import Sources
from crawlsched.store import (
    TRACE_COLUMNS,
    Batch,
    Host,
    KeptText,
    Lease,
    NewPage,
    PageFacts,
    Store,
    WriteBehind,
)

__all__ = ["FLUSH_INTERVAL", "Collection", "FoundPage"]

logger = logging.getLogger(__name__)

# Dispatching stops while something has waited for the store for so long; the slot clock pays back up to a second.
_LONGEST_UNSAVED = 2.0
#: How often what happened is written down, seconds; a crash forgets at most this and 0.2 s.
FLUSH_INTERVAL = 0.3
# How many bytes all kept texts may have; the oldest go.
_KEPT_TEXTS_BYTES = 1_000_000_000
# The share of visits without If-None-Match and If-Modified-Since, to see whether they move when the page does.
_VALIDATOR_TRIALS = 0.1
# The facts of the pages likely to be picked within so many seconds are read ahead.
_READ_AHEAD_SECONDS, _READ_AHEAD_EVERY = 1.5, 0.7
_READ_AHEAD_LEAST = 64
_READ_AHEAD_MOST = 1_500
# So many pages are read together where one was not foreseen.
_READ_TOGETHER = 32
# Pages that wait for a store which cannot be asked; then nothing is dispatched before it can.
_MOST_ASIDE = 200
# URLs read together to count how many pages each rule has.
_COUNTED_AT_ONCE = 4_000
# After so many of these blocks what reading them has left over is given back: a byte a page, which nobody has to spare
# when most is in memory.
_BLOCKS_LEFT_OVER = 200
# At the end: seconds for work in the other thread, for what is left to write, and for each answer of the database.
_LAST_WORK_ASIDE = 5.0
_LAST_WRITES = 15.0
_LAST_ANSWERS = 4.0
# When there is no more room for texts, the oldest go until so much of it is used.
_TEXTS_LEFT = 0.9


def _priority(template: RequestTemplate | None) -> int:
    return 0 if template is None else int(template.data.get("priority", 0))


class FoundPage(NamedTuple):
    """A URL that is to become a page."""

    url: str
    request_fingerprint: bytes
    host: str
    importance: float = 1.0
    template: RequestTemplate | None = None
    depth: int = 0
    variant: str | None = None
    importance_stated: bool = False  # and not what CRAWLSCHED_IMPORTANCE says


class Collection:
    """Open a collection, keep it, write it down.

    Parameters
    ----------
    settings : Settings
        Checked settings.
    spider : str
        The spider's name, for the lease.
    request_fingerprint : callable
        Gives the 20-byte request fingerprint of a URL.
    fingerprinter : str
        Names the class that makes them.
    rng : random.Random
        Chooses which visits put validators on trial.
    shard : Shard, optional
        What this is of a shared collection; None: it is one of its own.

    Attributes
    ----------
    planner, hosts, sources, index, facts, learned, unsaved
        What is known, in memory; only the crawling thread changes it.
    numbers : PageNumbers
        Under which the store knows the pages.
    validators, wrong_pages
        What is thought of the hosts' validators, and what they serve in the place of pages.
    store : Store
        What is on disk.
    """

    def __init__(
        self,
        settings: Settings,
        spider: str,
        request_fingerprint: Callable[[str], bytes],
        fingerprinter: str,
        rng: Random,
        shard: Shard | None = None,
    ) -> None:
        self.settings = settings
        self._shard = shard
        self.hosts = Hosts(shares=dict(settings.host_shares)) if shard is None else shard.hosts
        self.rules = PageRules(settings.pages)
        self.limits = PageLimits(settings.max_pages, [rule.max_pages for rule in settings.pages])
        self.sources = Sources(settings.source_interval)
        self.index = PageIndex()
        self.numbers = PageNumbers()
        self.variants = Variants(self.index)
        self.facts = FactsCache()
        self.aside = Aside()
        self.planner = planner_for(settings)
        self.validators = ValidatorTrials(rng, 0.0 if settings.conditional_requests == "always" else _VALIDATOR_TRIALS)
        self.wrong_pages = WrongPages(rng, enabled="wrong_page" in settings.withhold)
        self.withheld = Withheld(settings.withhold)
        self.credentials = Credentials(settings.keep_credentials)
        #: Pages that requests of this run have made, and that have not ended yet.
        self.n_awaited = 0
        #: The hosts most of whose pages fail: since when, and how.
        self.failing_hosts: dict[int, dict[str, Any]] = {}
        #: What has something to do between the last write and the end of the lease.
        self.before_release: list[Callable[[], None]] = []
        self._spider = spider
        self._request_fingerprint = request_fingerprint
        self._fingerprinter = fingerprinter
        self._read_ahead_at = -np.inf
        # Pages whose turn has come while the store could not be asked for what their requests are made of.
        self._stepped_aside: dict[int, bool] = {}
        self._read_failed = False
        self._not_submitted: Batch | None = None
        self._n_written = 0

    def open(self, now: float) -> None:
        """Open the store, take the lease, load everything.

        Raises
        ------
        StoreError
            If the database cannot be used, or another process owns the collection.
        """
        self.store = self._open_store()
        owner = self.store.owner()
        #: What the crawl before said of itself.
        self.last_status = owner.status if owner is not None else {}
        try:
            self.lease = self._take_lease()
            if not self.credentials.keep:
                self.store.forgetting.rewrite_templates(without_credentials)
            self._load(now)
        except BaseException:
            self._close_store()
            raise
        writing = None if self._shard is None else self._shard.shared.writing
        self.write_behind = WriteBehind(self.store, writing=writing)
        if self._shard is None:
            give_memory_back()

    def _open_store(self) -> Store:
        settings = self.settings
        if self._shard is not None:
            return self._shard.shared.store(self._shard.number)
        assert settings.collection is not None
        return Store.open(settings.database_url, settings.collection)

    def _take_lease(self) -> Lease:
        if self._shard is None:
            return self.store.take_lease(self._spider)
        self.store.lease = self._shard.lease  # claimed already
        return self._shard.lease

    def _close_store(self) -> None:
        if self._shard is None:  # shards have one database in common
            self.store.close()

    def abandon(self) -> None:
        """Let go of a shard that another process has claimed: what is not written yet is not ours to write."""
        self.aside.close(0.0)
        self.write_behind.close(0.0)

    def close(self, now: float) -> None:
        """Write everything down and give the lease back; in half a minute at most, whatever the database does."""
        if self._shard is None:
            self.store.database.answer_within = _LAST_ANSWERS
        self.aside.close(_LAST_WORK_ASIDE)
        self.flush(now)
        writer = self.write_behind
        drained = writer.close(_LAST_WRITES)
        try:
            if not drained and writer.lost is None:
                raise StoreError(writer.failure or "the database does not answer.")
            for last_word in self.before_release:
                last_word()
            self.lease.release()
        except StoreError as error:
            logger.error("The lease is not given back, so the next start may have to wait for half a minute: %s", error)
        finally:
            self._close_store()

    def _load(self, now: float) -> None:
        store, planner = self.store, self.planner
        self._load_pages(now)
        variants = store.reader.variants()
        rows = self.rows_of([number for number, _ in variants])
        self.variants.load(
            (row, self._request_fingerprint(url))
            for row, (_, url) in zip(rows.tolist(), variants, strict=True)
            if row >= 0
        )
        marks = planner.pages.marks[: planner.pages.n]
        if marks.any():
            marks &= ~np.uint16(RUN_ONLY)
        for host in store.reader.hosts():
            number = self.hosts.number(host.host)
            self.hosts.rest(number, host.rest_until)
            self.hosts.set_crawl_delay(number, host.crawl_delay)
            self.validators.load(number, host.counts.get("validators", {}))
            self.wrong_pages.load(number, host.counts.get("wrong_pages", []))
            self.withheld.load(host.host, host.counts.get("withheld", {}))
            if failing := host.counts.get("failing"):
                self.failing_hosts[number] = failing
                self.hosts.failed_before(number, failing["since"], self.settings.error_interval)
        self.sources.load(store.reader.sources(), now)
        self.learned = Learned(
            store.reader.noise_mask, [*store.reader.masked_templates(), *store.reader.learned_sites()]
        )
        self.texts = TextBudget(_KEPT_TEXTS_BYTES, store.reader.bytes_of_texts())
        key = "" if planner.learned is None else planner.learned.key
        self._next_page = store.reader.next_page()
        self.unsaved = Unsaved(
            self.numbers, planner.grid, store.reader.next_observation(), key, store.reader.next_change()
        )
        undelivered = self.rows_of(store.reader.undelivered())
        if undelivered.size:
            logger.info("%d changes had not been delivered when the last crawl ended; they go first.", undelivered.size)
            planner.force(undelivered[undelivered >= 0], now)
        if (asked := np.flatnonzero(marks & RECRAWL)).size:
            planner.force(asked, now)

    def _load_pages(self, now: float) -> None:
        store, planner, settings = self.store, self.planner, self.settings
        # The plan first: it is then in force for each page that comes, instead of for slice after slice of all of them.
        if (plan := self._newest_plan()) is not None:
            planner.adopt(plan, now)
            planner.work(now)
        n_others = 0

        def keys() -> Iterator[tuple[NDArray[np.uint64], NDArray[np.integer]]]:
            nonlocal n_others
            blocks = load_pages(store, planner, self.hosts, now, self._fingerprinter, self.numbers)
            for number, block in enumerate(blocks, 1):
                n_others += int(np.count_nonzero(block["other_fingerprinter"]))
                yield PageIndex.keys(self._request_fingerprints(block)), block["row"]
                if number % _BLOCKS_LEFT_OVER == 0:
                    give_memory_back()

        n_pages = store.reader.count_pages()
        self.index.load(self._without_the_same(keys()) if settings.ignore_parameters else keys(), n_pages)
        self.limits.n = len(self.index)
        after = -1 if any(rule.max_pages is not None for rule in settings.pages) else store.reader.next_page()
        while rows := store.reader.pages_to_weigh(after, _COUNTED_AT_ONCE, stated=True):
            numbers = self.rules.numbers([url for _, url, _, _ in rows])
            assert numbers is not None
            self.limits.load(numbers)
            after = rows[-1][0]
        if n_others:
            logger.warning(
                "%d pages were found with another REQUEST_FINGERPRINTER_CLASS, or other CRAWLSCHED_IGNORE_PARAMETERS; "
                "their fingerprints are computed anew.",
                n_others,
            )
        if planner.clipped:
            logger.warning("%d pages were last crawled in the future; their time was set to now.", planner.clipped)

    def _without_the_same(
        self, blocks: Iterable[tuple[NDArray[np.uint64], NDArray[np.integer]]]
    ) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.integer]]]:
        """Of pages that differ in ignored parameters only keep those that were found first, and delete the others."""
        found = list(blocks)
        if not found:
            return
        keys, pages = (np.concatenate(columns) for columns in zip(*found, strict=True))
        _, first = np.unique(keys, return_index=True)
        same = np.delete(pages, first)
        if same.size:
            self.planner.remove(same)
            logger.warning("%d pages differ from others by CRAWLSCHED_IGNORE_PARAMETERS only: they go.", same.size)
            numbers = self.numbers.of(same)
            self.aside.run("deleting what is the same page", lambda: self.store.forgetting.delete(numbers))
        yield keys[first], pages[first]

    def _newest_plan(self) -> Plan | None:
        newest = self.store.plans.newest()
        try:
            return None if newest is None else Plan.from_dict(newest.data, self.hosts.number)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            logger.warning("The plan in the database is damaged and not used, a new one is made soon: %s.", error)
            return None

    def _request_fingerprints(self, block: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
        names, others = block["request_fingerprint"], block["other_fingerprinter"]
        if others.any():
            # The project has another REQUEST_FINGERPRINTER_CLASS than when these pages were found.
            pages = block["page"][others]
            found = [
                variant_fingerprint(self._request_fingerprint(facts.url), facts.variant)
                for facts in self.store.reader.facts(pages)
                if facts is not None
            ]
            names = names.copy()
            names[others] = np.frombuffer(b"".join(found), np.uint8).reshape(-1, 20)
        return names

    # -- pages

    def add_pages(self, found: Sequence[FoundPage], now: float) -> list[int]:
        """Take pages in, in one go; return them."""
        hosts = np.array([self.hosts.number(page.host) for page in found], np.intp)
        importance = np.array([page.importance for page in found])
        parts = np.array([part_number(page.url) for page in found], np.intp)
        rules = self.rules.numbers([page.url for page in found])
        priority = [_priority(page.template) for page in found]
        added = self.planner.add(hosts, now, importance, part=parts, interval_rules=rules, priority=priority)
        rows: list[int] = added.tolist()
        numbers = range(self._next_page, self._next_page + len(found))
        self._next_page = numbers.stop
        self.numbers.put(added, np.array(numbers))
        for row, number, page in zip(rows, numbers, found, strict=True):
            name = variant_fingerprint(page.request_fingerprint, page.variant)
            self.index.add(name, row)
            if page.variant is not None:
                self.variants.add(page.request_fingerprint, row)
            digest = page.template.digest if page.template else None
            data = page.template.data if page.template else None
            to_write = self.credentials.to_write(page.template) if page.template else None
            self.planner.pages.request_digest[row] = RequestDigest.of(data)
            new = NewPage(number, page.url, page.host, name, now, digest, page.depth, self._fingerprinter, page.variant)
            self.unsaved.new_page(row, new, to_write, now)
            if page.importance_stated:
                self.unsaved.importance_stated(row, now)
            facts = PageFacts(row, page.url, digest, data, None, None, None, None, None, page.depth, None, NEW)
            facts = facts._replace(variant=page.variant)
            self.facts.put(facts, self.unsaved.number)
        return rows

    def rows_of(self, numbers: NDArray[np.integer] | Sequence[int]) -> NDArray[np.intp]:
        """Return the pages that the store has under these numbers; -1: there is none."""
        return self.numbers.rows(np.asarray(numbers, np.int64))

    def kept_out(self, found: Sequence[FoundPage], now: float) -> list[str | None]:
        """Return why each of these is not taken in, a key of `REASONS`; None: it is, and counts."""
        forgotten = self.store.tombstones.cover([page.url for page in found])
        reasons: list[str | None] = []
        for page, is_forgotten in zip(found, forgotten, strict=True):
            has_room = not is_forgotten and self.limits.takes(self.rules.number(page.url))
            reasons.append("forgotten" if is_forgotten else None if has_room else "max_pages")
            if reasons[-1] == "max_pages":
                self.withheld.note(page.host, "max_pages", page.url, now)
        return reasons

    def knows(self, page: int) -> bool:
        """Whether this is a page, and has not been forgotten."""
        return self.planner.pages.state.item(page) != FREE

    def facts_of(self, page: int) -> PageFacts:
        """Return what is needed to make a page's request and to judge its response."""
        facts = self.facts.get(page)
        if facts is None:
            # Reading ahead did not foresee this page. Those that are likely to be next come with it: a row takes a
            # tenth of what a statement does.
            likely = self.planner.peek(self.planner.now, _READ_TOGETHER).tolist()
            others = [other for other in likely if other != page and other not in self.facts]
            try:
                facts, *read = self._read([page, *others])
            except StoreError:
                self._read_failed = True
                raise
            if facts is None:  # the planner knows only pages that are in the store or on their way to it
                raise DamagedRow(
                    f"The page number {self.numbers.item(page)} is not in the database any more, or its row is damaged."
                )
            self.facts.add([facts, *read])
        return facts

    def _read(self, pages: Sequence[int]) -> list[PageFacts | None]:
        """Read the facts of pages; any thread may."""
        found = self.write_behind.facts(self.numbers.of(list(pages)).tolist())
        return [facts and facts._replace(page=page) for page, facts in zip(pages, found, strict=True)]

    def announced_before(
        self, pages: NDArray[np.integer], source: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Read what a source last announced of pages (`Reader.announcements_for`); any thread may."""
        return self.store.reader.announcements_for(self.numbers.of(pages), source)

    @property
    def is_readable(self) -> bool:
        """Whether the store may be asked by the crawling thread: it answered the last time."""
        return not self._read_failed and self.write_behind.failure is None

    def step_aside(self, page: int, *, forced: bool) -> None:
        """Keep a page that was picked from being picked again until the other thread has read what it needs."""
        self._stepped_aside[page] = forced

    @property
    def aside_pages(self) -> Iterable[int]:
        """The pages that have stepped aside."""
        return self._stepped_aside.keys()

    def come_back(self, pages: Sequence[int], now: float) -> None:
        """Let pages that have stepped aside be picked again."""
        for page in pages:
            forced = self._stepped_aside.pop(page, False)
            if self.knows(page) and self.planner.in_flight(page):
                self.planner.release(page, now)
                if forced:
                    self.planner.force([page], now)

    def _bring_back(self, facts: Sequence[PageFacts | None], asked: Sequence[int], now: float) -> None:
        self._read_failed = False
        self.facts.add(facts)
        self.come_back(asked, now)

    def put_facts(self, facts: PageFacts, now: float) -> None:
        """Take over what a visit taught about a page's content."""
        known = self.facts.get(facts.page)
        if known == facts:
            return
        self.facts.put(facts, self.unsaved.number)
        self.unsaved.content(facts, now)
        if known is None or any(getattr(known, name) != getattr(facts, name) for name in TRACE_COLUMNS):
            self.unsaved.trace(facts, now)

    def request_digest(self, page: int) -> RequestDigest:
        """Return the digest of the request by which a page is visited."""
        known = self.planner.pages.request_digest.item(page)
        if not known:  # of a version that kept none: it is asked for once
            known = RequestDigest.of(self.facts_of(page).template_data)
            self.planner.pages.request_digest[page] = known
        return RequestDigest(known)

    def put_template(self, page: int, template: RequestTemplate | None, digest: RequestDigest, now: float) -> None:
        """Visit a page by another request from now on."""
        name, data = (None, None) if template is None else (template.digest, template.data)
        self.facts.put(self.facts_of(page)._replace(template=name, template_data=data), self.unsaved.number)
        self.planner.pages.request_digest[page] = digest
        if self.planner.pages.state.item(page) == NEW:
            self.planner.set_priority(page, _priority(template), now)
        to_write = self.credentials.to_write(template) if template else None
        self.unsaved.template(page, name, to_write, now)
        self.unsaved.page(page, now)

    def put_url(self, page: int, url: str, now: float) -> None:
        """Ask for a page by another URL from now on, which differs in ignored parameters only."""
        known = self.facts.get(page)
        if known is None or known.url != url:
            self.unsaved.url(page, url, now)
        if known is not None:
            self.facts.put(known._replace(url=url), self.unsaved.number)

    def credentials_came(self, page: int, template: RequestTemplate, now: float) -> bool:
        """The spider asks for a page with this template; return whether it has waited for that, which is over."""
        self.credentials.to_write(template)
        if page not in self.credentials.waiting:
            return False
        self.credentials.waiting.discard(page)
        self.come_back([page], now)
        return True

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

    def keep_learned(self, url: str, recipe: str, now: float) -> None:
        """Write down what was learned of a page's template and site, if it is much more than was written."""
        for name, data in self.learned.to_write(url, recipe, self.unsaved.number):
            self.unsaved.mask(name, data, now)

    def keep_text(self, page: int, packed_text: bytes, now: float) -> None:
        """Keep what a page says now, if there is room."""
        if self.texts.take(len(packed_text)):
            self.unsaved.text(page, KeptText(now, packed_text), now)

    def read_ahead(self, now: float) -> None:
        """Fetch the facts of the pages that are likely to be picked soon."""
        wanted = min(_READ_AHEAD_LEAST + int(_READ_AHEAD_SECONDS * self.planner.bandwidth), _READ_AHEAD_MOST)
        if self._stepped_aside:
            asked = list(self._stepped_aside)[:_READ_AHEAD_MOST]
            self.aside.run(
                "reading what the next visits need",
                lambda: self._read(asked),
                lambda facts: self._bring_back(facts, asked, now),
            )
            return
        if now - self._read_ahead_at < _READ_AHEAD_EVERY:
            return  # which pages these are takes longer than all else of a flush
        self._read_ahead_at = now
        pages = [page for page in self.planner.peek(now, wanted).tolist() if page not in self.facts]
        if pages:
            self.aside.run("reading ahead", lambda: self._read(pages), self.facts.add)

    def set_importance(
        self, pages: NDArray[np.integer], importance: NDArray[np.float64], now: float, *, stated: bool
    ) -> int:
        """Weigh distinct pages anew, and file those whose weight is another one; return how many there are.

        Parameters
        ----------
        pages : ndarray of int, shape (n,)
        importance : ndarray, shape (n,)
            0 or more.
        now : float
            POSIX seconds.
        stated : bool
            Whether somebody said so of these very pages; CRAWLSCHED_IMPORTANCE is not asked about them any more.
        """
        differ = pages[self.planner.pages.importance[pages] != importance.astype(np.float32)]
        self.planner.set_importance(pages, importance, now)
        self.unsaved.pages(differ, now)
        if stated:
            for page in differ.tolist():
                self.unsaved.importance_stated(page, now)
        return int(differ.size)

    def forget(self, pages: NDArray[np.integer]) -> None:
        """Take pages out of memory; the store has deleted them already."""
        self.n_awaited -= int(np.count_nonzero(self.planner.pages.marks[pages] & AWAITED))
        self.limits.gave_up(self.planner.intervals.rules_of(pages))
        self.planner.remove(pages)
        self.index.discard(pages)
        self.unsaved.forget(pages)
        for page in pages.tolist():
            self.facts.discard(page)

    # -- writing down

    def flush(self, now: float) -> None:
        """Hand what is not yet written to the writing thread."""
        if self._not_submitted is not None:
            self.write_behind.submit(self._not_submitted)
            self._not_submitted = None
        for host in self.withheld.take_unwritten():
            self.save_host(self.hosts.number(host), now)
        n_written = self.n_written
        self.facts.written(n_written)
        self.learned.written(n_written)
        batch = self.unsaved.take(lambda pages: self._stored_columns(pages, now), self.planner.further.stored)
        if batch is not None:
            # Whatever happens now, it is handed over at the next flush.
            self._not_submitted = batch
            self.write_behind.submit(batch)
            self._not_submitted = None
        if self.texts.is_full:
            room = int(_TEXTS_LEFT * self.texts.limit)
            self.aside.run("deleting old texts", lambda: self.store.forgetting.prune_texts(room), self.texts.refill)

    @property
    def n_written(self) -> int:
        """How many batches are known to be written, of those before the one that is being collected (`unsaved`)."""
        if self._not_submitted is None and not self.write_behind.in_flight:
            self._n_written = self.unsaved.number - 1
        return self._n_written

    def _stored_columns(self, pages: NDArray[np.intp], now: float) -> dict[str, Any]:
        return {**self.planner.columns(pages), **readable(self.planner, pages, now)}

    def must_wait(self, now: float) -> bool:
        """Whether the store is so far behind that no more may be crawled until it has caught up."""
        if len(self._stepped_aside) >= _MOST_ASIDE:
            return True
        return self.unsaved_for(now) > _LONGEST_UNSAVED + FLUSH_INTERVAL

    def unsaved_for(self, now: float) -> float:
        """For how many seconds the oldest of what is not written yet has waited; 0: there is nothing."""
        # What is not handed over yet counts, too: a crawl that cannot hand over learns nothing that stays.
        kept = None if self._not_submitted is None else self._not_submitted.since
        waiting = (self.unsaved.since, kept, self.write_behind.oldest_unsaved_at)
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
        self.unsaved.host(row, now)
