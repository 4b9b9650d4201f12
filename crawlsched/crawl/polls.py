"""ChangeSignals arrive: sitemaps are polled, read in a thread, and taken over in slices between the slots."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress, takewhile

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import Problem, absolute_sitemaps
from crawlsched.content.verdict import judge_status
from crawlsched.crawl.admission import Admission
from crawlsched.crawl.collection import Collection
from crawlsched.crawl.side_thread import STEP, LongWork
from crawlsched.crawl.source_quality import tallied
from crawlsched.crawl.source_reading import SourceRead, linked_sources
from crawlsched.crawl.subscriptions import Subscription
from crawlsched.crawl.visits import ResponseFacts, Visit, VisitEnds
from crawlsched.store import Outcome, host_of

__all__ = ["Polls"]

logger = logging.getLogger(__name__)

# Of the sources that pages name, at most this number on one host are polled.
_MOST_OF_A_HOST = 5
# A source is polled after a notice at most once in this share of the interval between polls.
_BETWEEN_NOTICES = 1 / 64


@dataclass(eq=False)
class Polls:
    """Takes what sources announce, from the end of their visits to the planner."""

    collection: Collection
    admission: Admission
    long_work: LongWork
    ends: VisitEnds
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._planner, self._sources = self.collection.planner, self.collection.sources
        self._settings, self._count = self.collection.settings, self.collection.count
        # Sources that have brought announcements or new pages worth a slot since their last poll.
        self._with_news: set[int] = set()
        # The sitemaps that each robots.txt named when it was read last.
        self._named_by: dict[str, list[str]] = {}

    def poll_soon(self, number: int, now: float) -> None:
        """Poll a source in the next slot, since a notice says that it has news; not if it was polled just now."""
        polled_at = self._sources[number].polled_at
        if polled_at is None or now - polled_at >= self._sources.interval * _BETWEEN_NOTICES:
            self._count("crawlsched/pings/notices")
            self._sources.poll(number)

    def _polled(self, number: int, now: float, **changes: object) -> None:
        """Note that a source was read; its next poll comes sooner if it had news, and later if it had none."""
        changes["read_lastmod"] = self._sources[number].listed_lastmod
        self.ends.source_polled(number, now, has_news=number in self._with_news, **changes)
        self._with_news.discard(number)

    def _has_news(self, number: int) -> None:
        """Note that a poll was worth its slot; if a date in an index caused the poll, credit the index instead."""
        source = self._sources[number]
        by_index = source.parent is not None and source.listed_lastmod not in (None, source.read_lastmod)
        self._with_news.add(source.parent if by_index and source.parent is not None else number)

    def source_fetched(
        self, visit: Visit, status: int, now: float, read: SourceRead | None = None, **validators: str | None
    ) -> None:
        """A source answered. If it was read, its announcements become ChangeSignals, in slices between the slots."""
        if visit.outcome is not None:  # the visit has ended meanwhile, with its shard
            return
        number = visit.source
        with self.ends.caught(visit, now):
            is_same = status == 304 if read is None else read.digest == self._sources[number].fingerprint
            outcome = Outcome.UNCHANGED if is_same else Outcome.CHANGED
            self.ends.end(visit, outcome if read else judge_status(status).outcome, now, ResponseFacts(status))
            if is_same:
                self._count("crawlsched/sources/unchanged")
                self._polled(number, now, **validators)
            elif read is None:
                self.ends.source_polled(number, now)
            else:
                steps = self._take_over(number, read, validators, now)
                self.long_work.add(takewhile(lambda _: number in self._sources, steps))

    def robots_seen(self, url: str, host: str, sitemaps: list[str], crawl_delay: float | None, now: float) -> None:
        """A robots.txt was read."""
        number = self.collection.hosts.number(host)
        if self.collection.hosts.set_crawl_delay(number, crawl_delay):
            self.collection.save_host(number, now)
        if self._settings.find_sources:
            named = absolute_sitemaps(sitemaps, url)
            for problem in named.problems:
                self._report(url, problem)
            for sitemap in named.children.url:
                self.admission.add_source("sitemap", sitemap, now, named_by=host)
            before, self._named_by[url] = self._named_by.get(url, []), named.children.url
            for gone in set(before).difference(self._settings.source_urls, *self._named_by.values()):
                self.admission.leave_source("sitemap", gone, now)

    def page_names(self, visit: Visit, url: str, body: bytes, now: float) -> None:
        """Add to the sources the feeds and sitemaps that a new or changed page names."""
        if visit.page < 0 or not self._settings.find_sources:
            return
        for named in linked_sources(body, url):
            is_known = self._sources.number("sitemap", named) is not None
            if is_known or self._sources.n_named_by_pages[host_of(named)] >= _MOST_OF_A_HOST:
                continue
            self.admission.add_source("sitemap", named, now, named_by=host_of(url))
            number = self._sources.number("sitemap", named)
            if number is not None:  # None: the source belongs to another shard
                self.collection.unsaved.source(self._sources.named_by_page(number), now)

    def _report(self, url: str, problem: Problem) -> None:
        """Log what was wrong with a source, and count the problem."""
        logger.warning("%s: %s", url, problem)
        self._count(f"crawlsched/sources/problems/{problem.kind}", problem.count)

    def _list(self, number: int, read: SourceRead, now: float) -> Iterator[None]:
        """Take in the sitemaps that an index or a robots.txt names, some at a time; poll sitemaps with a new date."""
        source, children = self._sources[number], read.document.children
        named_by = source.host if source.kind == "robots" else None
        refused: list[str] = []
        for position, (url, lastmod) in enumerate(zip(children.url, children.lastmod, strict=True)):
            if position % STEP == STEP - 1:
                yield
            known = self._sources.number("sitemap", url)
            if not self.admission.add_source("sitemap", url, now, parent=number, named_by=named_by):
                continue
            child_number = self._sources.number("sitemap", url)
            if child_number is None:
                refused.append(url)
                continue
            if self._sources[child_number].parent != number:
                continue  # two indexes name the sitemap, and the dates of the first index count
            child = self._sources.describe(child_number, listed_lastmod=lastmod)
            self.collection.unsaved.source(child, now)
            if known is not None and lastmod not in (None, child.read_lastmod):
                self._sources.poll(known)
        if refused:
            problem = Problem("too-many-children", len(refused), refused[0])
            self._report(source.url, problem)
            read.document.problems.append(problem)

    def _take_over(
        self, number: int, read: SourceRead, validators: dict[str, str | None], now: float
    ) -> Iterator[None]:
        """Take a sitemap's children and entries over, some at a time."""
        yield  # the shard may belong to another process by the next step
        document = read.document
        self._count("crawlsched/sources/read")
        for problem in document.problems:
            self._report(self._sources[number].url, problem)
        yield from self._list(number, read, now)
        for start in range(0, len(read.pages), STEP):
            self._signalled(number, read, slice(start, start + STEP))
            yield
        if not self._settings.sitemap_discovery:
            self._count("crawlsched/change_signals/unknown_url", len(read.unknown))
        else:
            for start in range(0, len(read.unknown), STEP):
                self._discovered(number, read, slice(start, start + STEP))
                yield
        problems = {problem.kind: problem.count for problem in document.problems}
        self._sources.describe(number, n_entries=len(read.pages) + len(read.unknown), problems=problems)
        if document.kind == "unknown":
            self.ends.source_polled(number, self.clock())
            return
        # This is written last. After an earlier crash the whole sitemap is read again, so no announcement is missed.
        quality = tallied(self._sources[number].quality, read, self.clock())
        before = Subscription.of(quality)
        if (found := before.after(document.hubs, self._sources[number].url)) != before:
            quality = found.kept(quality)
        self._sources.describe(number, quality=quality)
        self._polled(number, self.clock(), fingerprint=read.digest, **validators)

    def _signalled(self, number: int, read: SourceRead, part: slice) -> None:
        """Take over announcements of known pages."""
        now = self.clock()
        pages, announced = read.pages[part], read.announced[part]
        if not self._planner.pages.state[pages].all():  # a page was forgotten since the source was read
            return
        self._planner.covered(pages, number, now)
        if announced.any():
            some = pages[announced]
            was_due = self._is_due(some, now)
            # The poll under way is noted at its end, so `polled_at` is still the time of the previous poll.
            taken = self._planner.signalled(some, number, now, self._sources[number].polled_at)
            if (self._is_due(some, now) & ~was_due).any():
                self._has_news(number)
            self._count("crawlsched/change_signals/received", int(announced.sum()))
            self._count("crawlsched/change_signals/taken", taken)
        for page, lastmod, n in zip(pages.tolist(), read.lastmod[part], read.n_announced[part], strict=True):
            self.collection.unsaved.announcement(page, number, lastmod, n, now)
        self.collection.unsaved.pages(pages, now)

    def _is_due(self, pages: NDArray[np.intp], now: float) -> NDArray[np.bool_]:
        """Whether each page is worth a slot."""
        is_due: NDArray[np.bool_] = self._planner.crawl_values.value_at(pages, now) >= self._planner.threshold
        return is_due

    def _discovered(self, number: int, read: SourceRead, part: slice) -> None:
        """Turn entries of unknown URLs into pages, unless they were forgotten on purpose."""
        now, host = self.clock(), self._sources[number].host
        found = []
        for page, lastmod in read.unknown[part]:
            is_known = self.collection.index.page(page.request_fingerprint) >= 0
            if not is_known and not self.admission.is_elsewhere(page, host, now):
                found.append((page, lastmod))
        reasons = self.collection.kept_out([page for page, _ in found], now)
        found = [one for one, reason in zip(found, reasons, strict=True) if reason is None]
        if not found:
            return
        pages = np.array(self.admission.add([page for page, _ in found], now))
        for page, _ in found:
            self.admission.growth.found(page.url)
        shards = self.collection.shards
        # Only pages of the source's own shard take announcements from it.
        mine = np.array([shards.of_page(page) is shards.of_name(host) for page in pages.tolist()])
        for page, (_, lastmod) in zip(pages[mine].tolist(), compress(found, mine), strict=True):
            self.collection.unsaved.announcement(page, number, lastmod, 0, now)
        self._planner.covered(pages[mine], number, now)
        if mine.any():
            self._has_news(number)
