"""ChangeSignals arrive: from sitemaps that are polled and read in a thread, and from senders of pings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import Problem, absolute_sitemaps
from crawlsched.change_signals.problems import ProblemCounter
from crawlsched.content.verdict import judge_status
from crawlsched.crawl.admission import Admission
from crawlsched.crawl.collection import Collection, FoundPage
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.side_thread import STEP, LongWork
from crawlsched.crawl.source_quality import tallied
from crawlsched.crawl.source_reading import SourceRead, linked_sources
from crawlsched.crawl.visits import ResponseFacts, Visit, VisitEnds
from crawlsched.store import Outcome, host_of

__all__ = ["Polls"]

logger = logging.getLogger(__name__)

# On each host, at most this number of the sources that pages name are polled.
_MOST_OF_A_HOST = 5
# After a poll of a source, notices are ignored for this share of the interval between polls.
_BETWEEN_NOTICES = 1 / 64


@dataclass(eq=False)
class Polls:
    """Passes announcements from sources and senders of pings to the planner, in slices between the slots."""

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
                if (left := self._sources.number("sitemap", gone)) is not None:
                    for source in self._sources.leave(left):
                        self.collection.unsaved.source(source, now)

    def page_names(self, visit: Visit, url: str, body: bytes, now: float) -> None:
        """Add the feeds and sitemaps that a new or changed page names."""
        if visit.page < 0 or not self._settings.find_sources:
            return
        for named in linked_sources(body, url):
            is_known = self._sources.number("sitemap", named) is not None
            if is_known or self._sources.n_named_by_pages[host_of(named)] >= _MOST_OF_A_HOST:
                continue
            if (number := self.admission.add_source("sitemap", named, now, named_by=host_of(url))) is not None:
                quality = {**self._sources[number].quality, "named_by": "page"}
                self.collection.unsaved.source(self._sources.describe(number, quality=quality), now)

    def _report(self, url: str, problem: Problem) -> None:
        """Log what was wrong with a source, and count the problem."""
        logger.warning("%s: %s", url, problem)
        self._count(f"crawlsched/sources/problems/{problem.kind}", problem.count)

    def _list(self, number: int, read: SourceRead, now: float) -> Iterator[None]:
        """Take in the sitemaps that an index or a robots.txt names, some at a time; poll sitemaps with a new date."""
        source, children, refused = self._sources[number], read.document.children, ProblemCounter()
        named_by = source.host if source.kind == "robots" else None
        for position, (url, lastmod) in enumerate(zip(children.url, children.lastmod, strict=True)):
            if position % STEP == STEP - 1:
                yield
            listed = self.admission.add_source("sitemap", url, now, parent=number, named_by=named_by)
            if listed is None and self.collection.shards.of_name(host_of(url)) is not None:
                refused.add("too-many-children", url)
            if listed is None or self._sources[listed].parent != number:
                continue  # if two indexes name a sitemap, only the dates in the first index count
            child = self._sources.describe(listed, listed_lastmod=lastmod)
            self.collection.unsaved.source(child, now)
            if lastmod not in (None, child.read_lastmod):
                self._sources.poll(listed)
        read.document.problems.extend(refused.problems())

    def _take_over(
        self, number: int, read: SourceRead, validators: dict[str, str | None], now: float
    ) -> Iterator[None]:
        """Take a sitemap's children and entries over, some at a time."""
        yield  # the shard may belong to another process by the next step
        document = read.document
        self._count("crawlsched/sources/read")
        yield from self._list(number, read, now)
        for problem in document.problems:
            self._report(self._sources[number].url, problem)
        for start in range(0, len(read.pages), STEP):
            self._signalled(number, read, slice(start, start + STEP))
            yield
        unknown = read.unknown if self._settings.sitemap_discovery else []
        self._count("crawlsched/change_signals/unknown_url", len(read.unknown) - len(unknown))
        for start in range(0, len(unknown), STEP):
            self._discovered(number, unknown[start : start + STEP])
            yield
        problems = {problem.kind: problem.count for problem in document.problems}
        self._sources.describe(number, n_entries=len(read.pages) + len(read.unknown), problems=problems)
        if document.kind == "unknown":
            self.ends.source_polled(number, self.clock())
            return
        # This is written last. After an earlier crash the whole sitemap is read again, so no announcement is missed.
        self._sources.describe(number, quality=tallied(self._sources[number], read))
        self._polled(number, self.clock(), fingerprint=read.digest, **validators)

    def _signalled(self, number: int, read: SourceRead, part: slice) -> None:
        """Take over announcements of known pages."""
        now = self.clock()
        pages, announced = read.pages[part], read.announced[part]
        self._planner.covered(pages, number, now)
        if announced.any():
            some, value_at = pages[announced], self._planner.crawl_values.value_at
            was_due = value_at(some, now) >= self._planner.threshold
            # The poll under way is noted at its end, so `polled_at` is still the time of the previous poll.
            self._announced(some, number, now, self._sources[number].polled_at)
            if (~was_due & (value_at(some, now) >= self._planner.threshold)).any():  # a page is worth a slot now
                self._has_news(number)
        for page, lastmod, n in zip(pages.tolist(), read.lastmod[part], read.n_announced[part], strict=True):
            self.collection.unsaved.announcement(page, number, lastmod, n, now)
        self.collection.unsaved.pages(pages, now)

    def _announced(self, pages: NDArray[np.intp], source: int, now: float, since: float | None = None) -> int:
        """Pass announcements on to the planner; return how many count."""
        taken = self._planner.signalled(pages, source, now, since)
        self._count("crawlsched/change_signals/received", int(pages.size))
        self._count("crawlsched/change_signals/taken", taken)
        return taken

    def _discovered(self, number: int, entries: list[tuple[FoundPage, float | None]]) -> None:
        """Turn entries of unknown URLs into pages, unless they were forgotten on purpose."""
        now, host = self.clock(), self._sources[number].host
        index, shards, unsaved = self.collection.index, self.collection.shards, self.collection.unsaved
        found = [
            (page, lastmod)
            for page, lastmod in entries
            if index.page(page.request_fingerprint) < 0 and not self.admission.is_elsewhere(page, host, now)
        ]
        self.admission.add([page for page, _ in found], now)
        mine: list[int] = []
        for page, lastmod in found:
            row = index.page(page.request_fingerprint)
            if row >= 0:
                self.admission.growth.found(page.url)
            # Only pages of the source's own shard take announcements from it.
            if row >= 0 and shards.of_page(row) is shards.of_name(host):
                unsaved.announcement(row, number, lastmod, 0, now)
                mine.append(row)
        if mine:
            self._planner.covered(np.array(mine), number, now)
            self._has_news(number)

    # -- pings

    def known_pages(self, urls: Iterable[str], shard: Shard | None = None) -> tuple[NDArray[np.intp], list[str]]:
        """Return the pages with these URLs (if `shard` is given, only its pages), and the URLs without such a page."""
        pages, unknown = set[int](), list[str]()
        for url in dict.fromkeys(urls):
            try:
                page = self.collection.index.page(self.collection.request_fingerprint(url))
            except ValueError:  # no request can be made of the URL, so it is no page
                page = -1
            if page >= 0 and shard in (None, self.collection.shards.of_page(page)):
                pages.add(page)
            else:
                unknown.append(url)
        return np.array(sorted(pages), np.intp), unknown

    def announce(self, pages: NDArray[np.intp], sender: str, now: float) -> int:
        """Announce that pages may have changed; return how many announcements count.

        If a sender announces a page again before the page is crawled, this is no new evidence, and does not count.
        """
        source = self.admission.add_source("ping", sender, now) if pages.size else None
        if source is None:
            return 0
        self._planner.covered(pages, source, now)
        is_new = [not self._planner.announced_by(page, source) for page in pages.tolist()]
        for name in ("received", "repeated"):
            self._count(f"crawlsched/change_signals/{name}", is_new.count(False))
        self.collection.unsaved.pages(pages[is_new], now)
        return self._announced(pages[is_new], source, now)

    def signal(self, urls: Sequence[str], sender: str, now: float) -> int:
        """Announce that pages of this process may have changed; return how many announcements count."""
        return self.announce(self.known_pages(urls)[0], sender, now)
