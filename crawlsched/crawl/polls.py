"""ChangeSignals arrive: sitemaps are polled, read in a thread, and taken over in slices between the slots.

How long a source can be left alone follows from what its polls have brought: see `poll_interval`.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from crawlsched.change_signals import Problem, absolute_sitemaps
from crawlsched.content.verdict import judge_status
from crawlsched.crawl.admission import Admission
from crawlsched.crawl.collection import Collection, FoundPage
from crawlsched.crawl.private_addresses import is_private
from crawlsched.crawl.side_thread import LongWork
from crawlsched.crawl.source_quality import tallied
from crawlsched.crawl.source_reading import SourceRead, linked_sources, read_source
from crawlsched.crawl.sources import SKIPPED_FOR
from crawlsched.crawl.subscriptions import discovered
from crawlsched.crawl.visits import ResponseFacts, Visit, VisitEnds
from crawlsched.crawl_value import elapsed_at_value, greedy
from crawlsched.planner import prospects
from crawlsched.store import Outcome, Source, host_of

__all__ = [
    "Brought",
    "Polls",
    "first_interval",
    "poll_interval",
]

logger = logging.getLogger(__name__)

# The largest number of sources of a host that pages have named.
_MOST_OF_A_HOST = 5
# Entries of a sitemap taken over between two looks at the clock.
_ENTRIES_AT_ONCE = 16
_DEEPEST_INDEX = 16
# Notices of a source's news are heeded once in this share of the interval between polls.
_BETWEEN_NOTICES = 1 / 64


class Polls:
    """What sources announce, from the end of their visits to the planner."""

    def __init__(
        self,
        collection: Collection,
        admission: Admission,
        long_work: LongWork,
        ends: VisitEnds,
        clock: Callable[[], float],
    ) -> None:
        self._collection = collection
        self._planner = collection.planner
        self._sources = collection.sources
        # What has been brought since the last poll of a source.
        self._brought: dict[int, tuple[float, float]] = {}
        self._admission = admission
        self._long_work = long_work
        self._ends = ends
        # The sitemaps that each robots.txt named when it was read last.
        self._named_by: dict[str, list[str]] = {}
        self._settings = collection.settings
        self._count = collection.count
        self._clock = clock
        self._allowed = collection.settings.private_addresses

    def read_source(self, visit: Visit, url: str, body: bytes) -> SourceRead:
        """Read a sitemap or robots.txt; runs in a thread, and changes nothing."""
        source, above = self._sources[visit.source], self._above(visit.source)
        return read_source(
            source,
            url,
            body,
            known_as=partial(self._known_as, source.host),
            announced_before=self._collection.announced_before,
            ancestors=[index.url for index in above],
            # Hosts whose robots.txt let it speak of their pages; its own host is always among them.
            hosts={host for one in (source, *above) for host in (one.host, *one.hosts)},
        )

    def _known_as(self, host: str, url: str) -> tuple[bytes, list[int]]:
        """Return a URL's fingerprint and its pages that are of one shard with a host: a sitemap announces no others."""
        name, shards = self._collection.request_fingerprint(url), self._collection.shards
        pages = self._collection.variants.pages(name)
        if shards.n is not None:
            pages = [page for page in pages if shards.of_page(page) is shards.of_name(host)]
        return name, pages

    def _above(self, number: int) -> list[Source]:
        above: list[Source] = []
        parent = self._sources[number].parent
        # A cyclic chain in the store ends at the limit of the reader.
        while parent is not None and len(above) <= _DEEPEST_INDEX:
            above.append(self._sources[parent])
            parent = above[-1].parent
        return above

    def poll_soon(self, number: int, now: float) -> None:
        """A notice says that a source has something new: poll it in the next slot, unless that has just been done."""
        polled_at = self._sources[number].polled_at
        if polled_at is None or now - polled_at >= self._sources.interval * _BETWEEN_NOTICES:
            self._count("crawlsched/pings/notices")
            self._sources.poll(number)

    def _unchanged(self, number: int, now: float) -> None:
        """A source was read, and says nothing new."""
        self._count("crawlsched/sources/unchanged")
        self._sources.read(number, brought=False)
        self._polled(number, now, ok=True)

    def _polled(self, number: int, now: float, *, ok: bool, **changes: object) -> None:
        """A poll has ended: note what it has brought, and how long the source can be left alone."""
        wait, source, planner = None, self._sources[number], self._planner
        if ok:
            gain, loss = self._brought.pop(number, (0.0, 0.0))
            brought = Brought(**source.quality.get("brought", {}))
            if source.polled_at is not None:  # what the first one brings has been there for ever
                brought = brought.polled(now - source.polled_at, gain, loss)
            self._sources.describe(number, quality={**source.quality, "brought": brought._asdict()})
            first = first_interval(self._sources.interval, planner.pages.n, self._sources.n_polled, planner.bandwidth)
            wait = poll_interval(brought, planner.threshold, first)
            wait *= SKIPPED_FOR if self._sources.may_skip(number) else 1.0
        self._collection.unsaved.source(self._sources.polled(number, now, ok=ok, wait=wait, **changes), now)

    def _gained(self, number: int, gain: float, loss: float) -> None:
        """Note what a poll brings; it counts for an index, too, whose new date has led to the poll."""
        source = self._sources[number]
        is_told = source.polled_at is not None and source.listed_lastmod not in (None, source.read_lastmod)
        for of in (number, source.parent) if is_told else (number,):
            if of is not None:
                before = self._brought.get(of, (0.0, 0.0))
                self._brought[of] = before[0] + gain, before[1] + loss

    def source_read(
        self, visit: Visit, read: SourceRead, etag: str | None, last_modified: str | None, now: float
    ) -> None:
        """A source was read: its announcements become ChangeSignals, in slices between the slots."""
        if visit.outcome is not None:  # ended meanwhile, with its shard
            return
        with self._ends.caught(visit, now):
            number, validators = visit.source, {"etag": etag, "last_modified": last_modified}
            known = read.digest == self._sources[number].fingerprint
            self._ends.end(visit, Outcome.UNCHANGED if known else Outcome.CHANGED, now)
            if known:
                self._sources.describe(number, **validators)
                self._unchanged(number, now)
            else:
                self._long_work.add(self._as_long_as_here(number, self._take_over(number, read, validators, now)))

    def _as_long_as_here(self, number: int, steps: Iterator[None]) -> Iterator[None]:
        """Do the steps as long as the source is this process's."""
        while number in self._sources:
            try:
                next(steps)
            except StopIteration:
                return
            yield

    def source_answered(self, visit: Visit, status: int, now: float) -> None:
        """A source gave no new content: not modified, gone, or an error."""
        if visit.outcome is not None:
            return
        with self._ends.caught(visit, now):
            self._ends.end(visit, judge_status(status).outcome, now, ResponseFacts(status))
            if status == 304:
                self._unchanged(visit.source, now)
            else:
                self._ends.source_failed(visit.source, now)

    def robots_seen(self, url: str, host: str, sitemaps: list[str], crawl_delay: float | None, now: float) -> None:
        """A robots.txt was read."""
        number = self._collection.hosts.number(host)
        if self._collection.hosts.set_crawl_delay(number, crawl_delay):
            self._collection.save_host(number, now)
        if self._settings.find_sources:
            named = absolute_sitemaps(sitemaps, url)
            for problem in named.problems:
                self._report(url, problem)
            for sitemap in named.children.url:
                self._admission.add_source("sitemap", sitemap, now, named_by=host)
            before, self._named_by[url] = self._named_by.get(url, []), named.children.url
            for gone in set(before).difference(self._settings.source_urls, *self._named_by.values()):
                self._admission.leave_source("sitemap", gone, now)

    def page_names(self, visit: Visit, url: str, body: bytes, now: float) -> None:
        """A page that is new or has changed may name feeds and sitemaps, which become sources."""
        if visit.page < 0 or not self._settings.find_sources:
            return
        for named in linked_sources(body, url):
            is_known = self._sources.number("sitemap", named) is not None
            if is_known or self._sources.n_named_by_pages(host_of(named)) >= _MOST_OF_A_HOST:
                continue
            self._admission.add_source("sitemap", named, now, named_by=host_of(url))
            number = self._sources.number("sitemap", named)
            if number is not None:  # another shard's otherwise
                self._collection.unsaved.source(self._sources.named_by_page(number), now)

    def _report(self, url: str, problem: Problem) -> None:
        """Say what was wrong with a source, and count it."""
        logger.warning("%s: %s", url, problem)
        self._count(f"crawlsched/sources/problems/{problem.kind}", problem.count)

    def _list(self, number: int, read: SourceRead, now: float) -> Iterator[None]:
        """Take in the sitemaps that an index or a robots.txt names, some at a time; read those whose date is new."""
        source = self._sources[number]
        named_by = source.host if source.kind == "robots" else None
        refused: list[str] = []
        for position, (url, lastmod) in enumerate(read.children):
            if position % _ENTRIES_AT_ONCE == _ENTRIES_AT_ONCE - 1:
                yield
            known = self._sources.number("sitemap", url)
            if not self._admission.add_source("sitemap", url, now, parent=number, named_by=named_by):
                continue
            child_number = self._sources.number("sitemap", url)
            if child_number is None:
                refused.append(url)
                continue
            if self._sources[child_number].parent != number:
                continue  # two indexes name it, and the first one's dates count
            child = self._sources.describe(child_number, listed_lastmod=lastmod)
            self._collection.unsaved.source(child, now)
            if known is not None and lastmod not in (None, child.read_lastmod):
                self._sources.poll(known)
        if refused:
            problem = Problem("too-many-children", len(refused), refused[0])
            self._report(source.url, problem)
            read.problems = [*read.problems, problem]

    def _take_over(
        self, number: int, read: SourceRead, validators: dict[str, str | None], now: float
    ) -> Iterator[None]:
        """Take a sitemap's children and entries over, some at a time."""
        self._count("crawlsched/sources/read")
        for problem in read.problems:
            self._report(self._sources[number].url, problem)
        if read.usable:
            yield from self._list(number, read, now)
        for start in range(0, len(read.pages), _ENTRIES_AT_ONCE):
            self._signalled(number, read, slice(start, start + _ENTRIES_AT_ONCE))
            yield
        if not self._settings.sitemap_discovery:
            self._count("crawlsched/change_signals/unknown_url", len(read.unknown))
        else:
            for start in range(0, len(read.unknown), _ENTRIES_AT_ONCE):
                self._discovered(number, read, slice(start, start + _ENTRIES_AT_ONCE))
                yield
        # Only now: after a crash in between the whole sitemap is read again, and no announcement is missed.
        if read.usable:
            self._sources.read(number, brought=bool(read.announced.any() or read.unknown))
            quality = tallied(self._sources[number].quality, read, self._clock())
            self._sources.describe(number, quality=discovered(quality, read.hubs, self._sources[number].url))
            self._sources.describe(number, fingerprint=read.digest, **validators)
        self._polled(
            number,
            self._clock(),
            ok=read.usable,
            n_entries=len(read.pages) + len(read.unknown),
            problems={problem.kind: problem.count for problem in read.problems},
        )

    def _signalled(self, number: int, read: SourceRead, part: slice) -> None:
        """Announcements of known pages."""
        now = self._clock()
        pages, announced = read.pages[part], read.announced[part]
        if not self._planner.pages.state[pages].all():  # forgotten since it was read
            return
        self._planner.covered(pages, number, now)
        if announced.any():
            some = pages[announced]
            surplus, fresh = prospects(self._planner, some, now)
            # The poll under way is noted at its end, so this is when the source was read before.
            taken = self._planner.signalled(some, number, now, self._sources[number].polled_at)
            later, still_fresh = prospects(self._planner, some, now)
            # Announcements that lift no page above the threshold gain nothing, and lose nothing by being read later.
            lifted = later > surplus
            self._gained(number, float((later - surplus)[lifted].sum()), float((fresh - still_fresh)[lifted].sum()))
            self._count("crawlsched/change_signals/received", int(announced.sum()))
            self._count("crawlsched/change_signals/taken", taken)
        for page, lastmod, n in zip(pages.tolist(), read.lastmod[part], read.n_announced[part], strict=True):
            self._collection.unsaved.announcement(page, number, lastmod, n, now)
        self._collection.unsaved.pages(pages, now)

    def _discovered(self, number: int, read: SourceRead, part: slice) -> None:
        """Entries of unknown URLs: they become pages, unless they were forgotten on purpose."""
        now, host = self._clock(), self._sources[number].host
        found = []
        for page, lastmod in self._public(number, read.unknown[part]):
            is_known = self._collection.variants.pages(page.request_fingerprint)
            if not is_known and not self._admission.is_elsewhere(page, host, now):
                found.append((page, lastmod))
        reasons = self._collection.kept_out([page for page, _ in found], now)
        found = [one for one, reason in zip(found, reasons, strict=True) if reason is None]
        if not found:
            return
        pages = np.array(self._admission.add([page for page, _ in found], now))
        for page, _ in found:
            self._admission.growth.found(page.url)
        shards = self._collection.shards
        # What it says of other shards' pages is not theirs.
        mine = np.array([shards.of_page(page) is shards.of_name(host) for page in pages.tolist()])
        for page, (_, lastmod) in zip(pages[mine].tolist(), itertools.compress(found, mine), strict=True):
            self._collection.unsaved.announcement(page, number, lastmod, 0, now)
        self._planner.covered(pages[mine], number, now)
        surplus, _ = prospects(self._planner, pages[mine], now)
        # Every second without a copy loses the whole importance of a page.
        lost = self._planner.pages.importance[pages[mine]][surplus > 0].sum()
        self._gained(number, float(surplus.sum()), float(lost))

    def _public(self, number: int, named: list[tuple[FoundPage, float | None]]) -> list[tuple[FoundPage, float | None]]:
        """Leave out what leads to a private address, unless the sitemap is one that the project has named itself."""
        private = [page for page, _ in named if is_private(page.host, self._allowed)]
        own = self._settings.source_urls
        if not private or any(source.url in own for source in (self._sources[number], *self._above(number))):
            return named
        self._report(self._sources[number].url, Problem("private-address", len(private), private[0].url))
        return [one for one in named if one[0] not in private]


# Until it has shown its worth, a source is read once in this number of rounds of the crawl. All sources together take
# at most this share of the bandwidth.
_ROUNDS = 3.0
# However small the crawl is, a site is asked for its sitemap no sooner, seconds.
_SHORTEST_AT_FIRST = 10.0
_SHARE_OF_THE_BANDWIDTH = 1 / 20

# The prior of a source, before its first announcements, counts for this number of intervals set for sitemaps.
_INTERVALS_AT_FIRST = 8.0
# The pages of an unknown source would be crawled anyway within about this number of intervals.
_CRAWLED_ANYWAY = 4.0
# Polls that are remembered.
_REMEMBERED = 100.0
# The largest factors by which a source is polled more often than is set, and more rarely.
_MOST_OFTEN, _LEAST_OFTEN = 16.0, 64.0
_LONGEST = 30 * 86_400.0


class Brought(NamedTuple):
    """What the polls of a source have brought.

    Examples
    --------
    >>> brought = Brought().polled(3600.0, gain=900.0, loss=0.5)
    >>> brought.seconds, brought._asdict()["gain"]
    (3600.0, 900.0)
    """

    # By how much announcements and new pages raised crawl values above the threshold, importance times seconds.
    gain: float = 0.0
    loss: float = 0.0  # what they would have cost for each second that they had been read later, importance
    seconds: float = 0.0  # time in which they came

    def polled(self, seconds: float, gain: float, loss: float) -> Brought:
        """Return the same with one more poll, some seconds after the last; older ones count less."""
        fading = 1.0 - 1.0 / _REMEMBERED
        return Brought(self.gain * fading + gain, self.loss * fading + loss, self.seconds * fading + seconds)


def first_interval(longest: float, n_pages: int, n_sources: int, bandwidth: float) -> float:
    """Return the seconds between polls of a new source; `longest` is what the settings say.

    Examples
    --------
    A crawl that comes to each of its 120 pages in twelve seconds, and one that takes weeks:

    >>> first_interval(3600.0, 120, 1, 10.0), first_interval(3600.0, 10**7, 1, 10.0)
    (36.0, 3600.0)
    """
    if bandwidth <= 0:
        return longest
    rounds, share = _ROUNDS * n_pages / bandwidth, n_sources / _SHARE_OF_THE_BANDWIDTH / bandwidth
    return min(longest, max(rounds, share, _SHORTEST_AT_FIRST))


def poll_interval(brought: Brought, threshold: float, interval: float) -> float:
    """Return after how many seconds a poll is worth as much as the crawl of a page.

    It lies between a sixteenth of `interval` and 64 times it (30 days at most); an unknown source has `interval`.

    Notes
    -----
    Let the announcements of a source gain G a second (importance times seconds). An announcement read later loses its
    gain at the rate ρ, because its page is crawled anyway some time: exp(-ρ u) of it is left after u seconds. Compared
    with waiting on, reading what has gathered in τ seconds is then worth V(τ) = G/ρ (1 - (1 + ρτ) exp(-ρτ)): the crawl
    value GREEDY of a page of importance G and change rate ρ. The poll is due when that reaches the threshold, as any
    page is. See ``docs/explanation/change_signals.md``.

    Examples
    --------
    An unknown source is polled at the interval; one that never announced anything ever more rarely:

    >>> round(poll_interval(Brought(), 10.0, 3600.0))
    3600
    >>> round(poll_interval(Brought(seconds=30 * 86400.0), 10.0, 3600.0) / 3600)
    64
    """
    shortest = interval / _MOST_OFTEN
    longest = max(interval, min(interval * _LEAST_OFTEN, _LONGEST))
    if threshold <= 0:
        return interval
    # While nothing is known, a poll after one interval counts as worth the threshold.
    fading = 1.0 / (_CRAWLED_ANYWAY * interval)
    seconds = _INTERVALS_AT_FIRST * interval
    gain = threshold / float(greedy(interval, fading)) * seconds
    gains, losses = gain + brought.gain, gain * fading + brought.loss
    rate = gains / (seconds + brought.seconds)
    wanted = float(elapsed_at_value(threshold, losses / gains, importance=rate))
    return min(max(wanted, shortest), longest)
