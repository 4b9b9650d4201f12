"""The refresher: what happens when a request is made, a slot ticks, a response arrives, a sitemap is read.

This is the table of contents of the system. Each flow is one method here; what it needs stands in the modules below.

* *a request is made* by the spider: `requested`
* *a slot ticks*: `next_page`, `next_source`
* *a response arrives*: `crawled`; without one: `failed`, `resolve`; through the spider: `deliveries`
* *ChangeSignals arrive*: `read_source` (in a thread), then `source_read`
* *re-planning*: `snapshot`, then `planner.plan` (in a thread), then `adopt`
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self
from weakref import WeakKeyDictionary

import numpy as np
from scrapy import Request
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.python import global_object_name

from crawlsched import change_detection
from crawlsched.change_detection import Fingerprint
from crawlsched.collection import Collection, host_of
from crawlsched.commands import obey
from crawlsched.deliveries import Deliveries
from crawlsched.planner import Plan, Snapshot
from crawlsched.request_templates import RequestTemplate
from crawlsched.retry_after import retry_after
from crawlsched.settings import Settings
from crawlsched.slot_clock import SlotClock
from crawlsched.source_reading import SourceRead, read_source
from crawlsched.store import PageFacts, Source
from crawlsched.visits import Outcome, Visit, Visits

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

__all__ = ["Fetched", "NotForTheSpider", "Refresher"]

logger = logging.getLogger(__name__)

_GONE = frozenset({404, 410})
_REFUSED = frozenset({401, 403, 407, 451})
_MOVED_FOR_GOOD = frozenset({301, 308})
# Entries of a sitemap taken over between two looks at the clock.
_ENTRIES_AT_ONCE = 50
# A visit whose end nobody announced is looked for this often.
_SWEEP_INTERVAL = 5.0


class NotForTheSpider(IgnoreRequest):
    """The response told us what we wanted to know, and there is nothing new in it for the spider."""


class Fetched(NamedTuple):
    """What a response said, as far as the refresher cares.

    `fingerprint` is None where there was no content; `moved_to` is the final request if every redirect on the way was
    permanent.
    """

    status: int
    fingerprint: Fingerprint | None
    etag: str | None
    last_modified: str | None
    size: int
    moved_to: Request | None
    retry_after: str | None


class Refresher:
    """Keep a collection fresh: the flows between Scrapy, the planner and the store.

    There is one for each crawler, shared by the scheduler, the middlewares and the extension (`Refresher.of`). It reads
    no clock but the one it is given.

    Parameters
    ----------
    settings : Settings
        Checked settings.
    spider : str
        The spider's name.
    count : callable
        ``count(name, n=1)`` adds to a statistic.
    request_fingerprint : callable
        Gives the 20-byte request fingerprint of a URL.
    clock : callable
        Gives POSIX seconds and never goes back.
    """

    _of: ClassVar[WeakKeyDictionary[Any, Refresher]] = WeakKeyDictionary()

    def __init__(
        self,
        settings: Settings,
        spider: str,
        *,
        count: Callable[..., None],
        request_fingerprint: Callable[[str], bytes],
        clock: Callable[[], float],
        fingerprinter: str = "",
        obeys_robots: bool = True,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.count = count
        self.request_fingerprint = request_fingerprint
        self.collection = Collection(settings, spider, request_fingerprint, fingerprinter)
        self.planner = self.collection.planner
        self.hosts = self.collection.hosts
        self.sources = self.collection.sources
        self.visits = Visits()
        self.deliveries = Deliveries(delivered=self._delivered, failed=self._delivery_failed)
        self.recipe = change_detection.recipe(
            settings.fingerprint, keep=settings.fingerprint_keep, drop=settings.fingerprint_drop
        )
        self.slots = SlotClock(settings.bandwidth, clock())
        self.is_open = False
        self.on_work: Callable[[], None] | None = None
        self._work: deque[Iterator[None]] = deque()
        self._obeys_robots = obeys_robots
        self._swept_at = 0.0
        self._slot_counts = dict.fromkeys(("used", "idle", "no_free_host", "paid"), 0)
        self._owned = True

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        """Return the refresher of a crawler, making it if it is the first to be asked for."""
        refresher = cls._of.get(crawler)
        if refresher is None:
            refresher = cls._of[crawler] = cls._for(crawler)
        return refresher  # type: ignore[return-value]

    @classmethod
    def _for(cls, crawler: Crawler) -> Self:
        assert crawler.spider is not None
        # Wall-clock time once, the monotonic clock from then on: a clock that is set back or forward moves no slot.
        offset = time.time() - time.monotonic()
        return cls(
            Settings.from_scrapy(crawler.settings, crawler.spider.name),
            crawler.spider.name,
            count=lambda name, n=1: crawler.stats.inc_value(name, n),
            request_fingerprint=lambda url: crawler.request_fingerprinter.fingerprint(Request(url)),
            clock=lambda: offset + time.monotonic(),
            fingerprinter=global_object_name(type(crawler.request_fingerprinter)),
            obeys_robots=crawler.settings.getbool("ROBOTSTXT_OBEY"),
        )

    # -- opening and closing

    def open(self) -> None:
        """Open the store and load the collection."""
        now = self.clock()
        self.collection.open(now)
        self.is_open = True
        for url in self.settings.sitemap_urls:
            self._add_source("sitemap", url, now)
        demand = self.planner.overdue_demand()
        if demand > self.planner.bandwidth:
            logger.warning(
                "CRAWLSCHED_MAX_CRAWL_INTERVAL = %g s asks for %.3g crawls a second of these %d pages, more than the "
                "%.3g of CRAWLSCHED_BANDWIDTH: pages will be overdue, the oldest go first.",
                self.settings.max_crawl_interval,
                demand,
                len(self.collection.index),
                self.planner.bandwidth,
            )

    def start_slots(self) -> None:
        """Let the grid of slots begin now: the time that loading took is not paid back."""
        self.slots = SlotClock(self.planner.bandwidth, self.clock())

    def close(self) -> None:
        """Resolve what is still open, write everything down, close the store."""
        if not self.is_open:
            return
        now = self.clock()
        for visit in self.visits:
            self._end(visit, Outcome.DROPPED, now)
            if visit.page >= 0:
                self.planner.release(visit.page, now)
        while self._work:
            self.work(1.0)
        self.is_open = False
        self._heartbeat_now(now)
        self.collection.close(now)

    # -- a request is made

    def requested(
        self,
        url: str,
        request_fingerprint: bytes,
        now: float,
        *,
        host: str,
        template: RequestTemplate | None,
        importance: float | None,
        meta: Mapping[str, Any],
        again: bool,
    ) -> bool:
        """The spider asks for a page: take it in, or visit it again if it says so; return False if it is known."""
        page = self.collection.index.page(request_fingerprint)
        if page >= 0:
            # start() names the same pages at every restart, and has dont_filter set by default; they are kept fresh
            # as they are. Elsewhere dont_filter says: now, even if it is known.
            if again and not meta.get("is_start_request"):
                self.planner.force(np.array([page]), now)
                return True
            self.count("crawlsched/known")
            return False
        if self.collection.store.tombstones.cover([url])[0]:
            self.count("crawlsched/forgotten")
            return False
        self._add_page(url, request_fingerprint, host, now, template, importance, meta)
        return True

    def _add_page(
        self,
        url: str,
        request_fingerprint: bytes,
        host: str,
        now: float,
        template: RequestTemplate | None = None,
        importance: float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> int:
        is_new_host = len(self.hosts)
        page = self.collection.add_page(
            url,
            request_fingerprint,
            host,
            now,
            importance=self._importance(url, meta or {}, importance),
            template=template.digest if template else None,
            template_data=template.data if template else None,
            depth=int((meta or {}).get("depth", 0)),
        )
        self.count("crawlsched/pages/found")
        if len(self.hosts) > is_new_host and self.settings.sitemaps_from_robots and not self._obeys_robots:
            # With ROBOTSTXT_OBEY Scrapy reads robots.txt and tells us what it says; else we have to ask.
            origin = url.split("/", 3)[:3]
            self._add_source("robots", "/".join(origin) + "/robots.txt", now)
        return page

    def _importance(self, url: str, meta: Mapping[str, Any], importance: float | None) -> float:
        if importance is None:
            importance = self.settings.importance(url, meta) if self.settings.importance else 1.0
        importance = float(importance)
        if not 0.0 <= importance < float("inf"):
            logger.error("The importance of %s is %r; it has to be 0 or more, so it is taken as 1.", url, importance)
            return 1.0
        return importance

    # -- a slot ticks

    def next_page(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Return the page that is worth most among those whose host may be asked now, and begin its visit."""
        pick = self.planner.pick(now, host_free_at)
        if pick is None:
            return None
        facts = self.collection.facts_of(pick.page)
        visit = self.visits.open(page=pick.page, host=int(self.planner.pages.host[pick.page]), url=facts.url, now=now)
        self.count("crawlsched/dispatched")
        if pick.reason != "value":
            self.count(f"crawlsched/dispatched/{pick.reason}")
        return visit, facts

    def next_source(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, str] | None:
        """Return the URL of a sitemap that is due, and begin its visit."""
        number = self.sources.next_due(lambda source: host_free_at(self.hosts.number(source.host), now) <= now)
        if number is None:
            return None
        source = self.sources[number]
        visit = self.visits.open(source=number, host=self.hosts.number(source.host), url=source.url, now=now)
        self.count("crawlsched/dispatched")
        return visit, source.url

    def validators(self, visit: Visit) -> tuple[str | None, str | None]:
        """Return the ETag and Last-Modified with which a visit may be made conditional."""
        if visit.source >= 0:
            source = self.sources[visit.source]
            return source.etag, source.last_modified
        facts = self.collection.facts_of(visit.page)
        # A change that has not been delivered must come back as content, and another recipe has to see it, too.
        if facts.pending_fingerprint is not None or facts.fingerprint is None or facts.recipe != self.recipe.id:
            return None, None
        return facts.etag, facts.last_modified

    def must_wait(self, now: float) -> bool:
        """Whether nothing may be dispatched until the store has caught up."""
        return self.collection.must_wait(now)

    # -- a response arrives

    def crawled(self, visit: Visit, fetched: Fetched, now: float) -> bool | None:
        """A visit got a response.

        Returns
        -------
        bool or None
            Whether the content is new to the spider; None if there was no content.
        """
        status = fetched.status
        if status == 304:
            return self._not_modified(visit, fetched, now)
        if fetched.fingerprint is not None:
            if fetched.moved_to is not None:
                return self._moved(visit, fetched.moved_to, fetched, fetched.fingerprint, now)
            return self._seen(visit, visit.page, fetched, fetched.fingerprint, now)
        if status in _GONE:
            self._end(visit, Outcome.GONE, now, fetched)
            self.planner.gone(visit.page, now)
        elif status in _REFUSED:
            self._end(visit, Outcome.REFUSED, now, fetched)
            self.planner.refused(visit.page, now)
        elif status in _MOVED_FOR_GOOD:  # redirects are not followed in this project
            self._end(visit, Outcome.MOVED, now, fetched)
            self.planner.moved(visit.page, now)
        else:
            self.failed(visit, now, retry_at=retry_after(fetched.retry_after, now), fetched=fetched)
        return None

    def _not_modified(self, visit: Visit, fetched: Fetched, now: float) -> bool:
        known = self.collection.facts_of(visit.page).fingerprint is not None
        self._observe(visit, Outcome.NOT_MODIFIED, visit.page, False if known else None, fetched, now)
        return False

    def _seen(self, visit: Visit, page: int, fetched: Fetched, fingerprint: Fingerprint, now: float) -> bool:
        """Content was seen at a page: did it change since it was last seen, and is it new to the spider?"""
        facts = self.collection.facts_of(page)
        last_seen = facts.pending_fingerprint or facts.fingerprint
        previous = Fingerprint(facts.recipe, last_seen) if last_seen and facts.recipe else None
        changed = change_detection.compare(previous, fingerprint)
        # Another recipe says nothing about the page: its new fingerprint is kept, and the spider is left alone.
        new_to_spider = bool(changed) or facts.pending_fingerprint is not None or previous is None
        outcome = Outcome.CHANGED if new_to_spider else Outcome.UNCHANGED
        if page != visit.page:
            outcome = Outcome.MOVED
        self._observe(visit, outcome, page, changed, fetched, now)
        if new_to_spider:
            # Not delivered yet: the fingerprint that counts is written when callback and pipelines have finished.
            facts = facts._replace(
                pending_fingerprint=fingerprint.digest,
                recipe=fingerprint.recipe,
                etag=fetched.etag,
                last_modified=fetched.last_modified,
            )
            self.collection.put_facts(facts, now)
            self.deliveries.begin(visit.token, page, now)
        else:
            self._keep_content(facts, fetched, fingerprint, now)
        return new_to_spider

    def _keep_content(self, facts: PageFacts, fetched: Fetched, fingerprint: Fingerprint, now: float) -> None:
        kept = facts._replace(
            fingerprint=fingerprint.digest,
            recipe=fingerprint.recipe,
            etag=fetched.etag,
            last_modified=fetched.last_modified,
        )
        if kept != facts:
            self.collection.put_facts(kept, now)

    def _moved(self, visit: Visit, to: Request, fetched: Fetched, fingerprint: Fingerprint, now: float) -> bool:
        """Every redirect was permanent: the page lives elsewhere now, and what came is that page's content."""
        old = self.collection.facts_of(visit.page)
        name = self.request_fingerprint(to.url)
        page = self.collection.index.page(name)
        if page == visit.page:  # an address that this project's fingerprinter takes for the same
            return self._seen(visit, page, fetched, fingerprint, now)
        self.planner.moved(visit.page, now)
        self.collection.put_facts(old._replace(moved_to=to.url), now)
        if page < 0:
            importance = float(self.planner.pages.importance[visit.page])
            page = self.collection.add_page(
                to.url,
                name,
                host_of(to.url),
                now,
                importance=importance,
                template=old.template,
                template_data=old.template_data,
                depth=old.depth,
            )
            self.count("crawlsched/pages/found")
        elif self.planner.in_flight(page):
            # The page itself is being visited at this moment; that visit will tell.
            self._end(visit, Outcome.MOVED, now, fetched)
            return False
        return self._seen(visit, page, fetched, fingerprint, now)

    def _observe(
        self, visit: Visit, outcome: Outcome, page: int, changed: bool | None, fetched: Fetched, now: float
    ) -> None:
        """Learn from a visit that reached content."""
        observation = self.planner.crawled(page, now, changed)
        self.collection.unsaved.page(page, now)
        if observation is None:
            self._end(visit, outcome, now, fetched)
            return
        if changed:
            self.count("crawlsched/changes_found")
        self._end(visit, outcome, now, fetched, observation=observation)

    def failed(
        self, visit: Visit, now: float, *, retry_at: float | None = None, fetched: Fetched | None = None
    ) -> None:
        """A visit ended with an error: the page is tried again later, ever more rarely."""
        self._end(visit, Outcome.ERROR, now, fetched)
        if visit.source >= 0:
            self._source_polled(visit.source, now, ok=False)
        elif visit.page >= 0:
            rest = self.hosts.rest_until(visit.host)
            self.planner.failed(visit.page, now, max(retry_at or 0.0, rest) or None)
            self.collection.unsaved.page(visit.page, now)

    def resolve(self, visit: Visit, outcome: Outcome, now: float) -> None:
        """A visit ended without a response."""
        if outcome is Outcome.ERROR or visit.page < 0:
            self.failed(visit, now) if outcome is Outcome.ERROR else self._end_other(visit, outcome, now)
            return
        self._end(visit, outcome, now)
        if outcome is Outcome.REFUSED:
            self.planner.refused(visit.page, now)
        else:
            # Dropped by some other component. It would be picked again at once, so it backs off like an error.
            self.planner.failed(visit.page, now)
        self.collection.unsaved.page(visit.page, now)

    def _end_other(self, visit: Visit, outcome: Outcome, now: float) -> None:
        self._end(visit, outcome, now)
        if visit.source >= 0:
            self._source_polled(visit.source, now, ok=False)

    def _end(
        self,
        visit: Visit,
        outcome: Outcome,
        now: float,
        fetched: Fetched | None = None,
        *,
        observation: Any = None,
    ) -> None:
        """Resolve a visit: the one place where it is counted and written down."""
        if self.visits.resolve(visit.token, outcome) is None or not visit.tracked:
            return
        self.count("crawlsched/resolved")
        self.count(f"crawlsched/resolved/{outcome}")
        self.planner.release_host(visit.host)
        if visit.page < 0:
            return
        self.collection.unsaved.observation(
            now,
            visit.page if observation is None else observation.page,
            elapsed=None if observation is None else observation.elapsed,
            n_signals=0 if observation is None else observation.n_signals,
            source=-1 if observation is None else observation.source,
            changed=None if observation is None else observation.changed,
            outcome=str(outcome),
            status=None if fetched is None else fetched.status,
            size=None if fetched is None else fetched.size,
        )
        self.collection.unsaved.page(visit.page, now)

    def _delivered(self, page: int, now: float) -> None:
        facts = self.collection.facts_of(page)
        self.collection.put_facts(
            facts._replace(fingerprint=facts.pending_fingerprint or facts.fingerprint, pending_fingerprint=None), now
        )
        self.count("crawlsched/delivered")

    def _delivery_failed(self, page: int) -> None:
        # The pending fingerprint stays, so the next visit brings the content again, whether it changed or not.
        self.count("crawlsched/undelivered")

    # -- what hosts ask for

    def host_rests(self, host: str, value: str, now: float) -> None:
        """A host sent Retry-After."""
        until = retry_after(value, now)
        if until is not None and self.hosts.rest(self.hosts.number(host), until):
            self.count("crawlsched/hosts/rested")
            self.collection.save_host(self.hosts.number(host), now)

    def robots_seen(self, url: str, host: str, sitemaps: list[str], crawl_delay: float | None, now: float) -> None:
        """A robots.txt was read."""
        if not self.is_open:
            return
        number = self.hosts.number(host)
        if self.hosts.set_crawl_delay(number, crawl_delay):
            self.collection.save_host(number, now)
        if self.settings.sitemaps_from_robots:
            for sitemap in sitemaps:
                self._add_source("sitemap", sitemap, now)

    # -- ChangeSignals arrive

    def _add_source(self, kind: str, url: str, now: float, parent: int | None = None) -> None:
        source = self.sources.add(kind, url, host_of(url), now, parent)
        if source is not None:
            self.collection.unsaved.source(source, now)
            self.count(f"crawlsched/sources/{kind}")

    def poll_sources(self, now: float) -> int:
        """Put the sources whose time has come in line for a slot (a job calls this)."""
        return self.sources.mark_due(now)

    def read_source(self, number: int, url: str, body: bytes) -> SourceRead:
        """Read a sitemap or robots.txt; runs in a thread, and changes nothing."""
        return read_source(
            self.sources[number],
            url,
            body,
            request_fingerprint=self.request_fingerprint,
            index=self.collection.index,
            store=self.collection.store,
            max_bytes=self.settings.sitemap_max_bytes,
            max_entries=self.settings.sitemap_max_entries,
        )

    def source_answered(self, visit: Visit, status: int, now: float) -> None:
        """A source gave no new content: not modified, gone, or an error."""
        unchanged = status == 304
        self._end(visit, Outcome.NOT_MODIFIED if unchanged else Outcome.GONE if status in _GONE else Outcome.ERROR, now)
        self._source_polled(visit.source, now, ok=unchanged)

    def source_read(
        self, visit: Visit, read: SourceRead, etag: str | None, last_modified: str | None, now: float
    ) -> None:
        """A source was read: its announcements become ChangeSignals, in slices between the slots."""
        source = self.sources[visit.source]
        if read.digest == source.fingerprint:
            self._end(visit, Outcome.UNCHANGED, now)
            self._source_polled(visit.source, now, ok=True, etag=etag, last_modified=last_modified)
            return
        self._end(visit, Outcome.CHANGED, now)
        for problem in read.problems:
            logger.warning("%s: %s", source.url, problem)
            self.count(f"crawlsched/sources/problems/{problem.kind}", problem.count)
        self._source_polled(
            visit.source,
            now,
            ok=read.usable,
            etag=etag,
            last_modified=last_modified,
            fingerprint=read.digest,
            n_entries=len(read.pages) + len(read.unknown),
            problems={problem.kind: problem.count for problem in read.problems},
        )
        for child in read.children:
            self._add_source("sitemap", child, now, parent=visit.source)
        self._add_work(self._take_over(visit.source, read))

    def _source_polled(self, number: int, now: float, *, ok: bool, **changes: Any) -> None:
        self.collection.unsaved.source(self.sources.polled(number, now, ok=ok, **changes), now)

    def _take_over(self, number: int, read: SourceRead) -> Iterator[None]:
        """Take a sitemap's entries over, some at a time."""
        for start in range(0, len(read.pages), _ENTRIES_AT_ONCE):
            self._signalled(number, read, slice(start, start + _ENTRIES_AT_ONCE))
            yield
        if not self.settings.sitemap_discovery:
            self.count("crawlsched/change_signals/unknown_url", len(read.unknown))
            return
        for start in range(0, len(read.unknown), _ENTRIES_AT_ONCE):
            self._discovered(number, read, slice(start, start + _ENTRIES_AT_ONCE))
            yield

    def _signalled(self, number: int, read: SourceRead, part: slice) -> None:
        """Announcements of known pages."""
        now = self.clock()
        pages, announced = read.pages[part], read.announced[part]
        self.planner.covered(pages, number, now)
        if announced.any():
            taken = self.planner.signalled(pages[announced], number, now)
            self.count("crawlsched/change_signals/received", int(announced.sum()))
            self.count("crawlsched/change_signals/taken", taken)
        for page, lastmod, n in zip(pages.tolist(), read.lastmod[part], read.n_announced[part], strict=True):
            self.collection.unsaved.announcement(page, number, lastmod, n, now)
        if self.settings.sitemap_priority:
            stated = [(page, p) for page, p in zip(pages.tolist(), read.priority[part], strict=True) if p is not None]
            if stated:
                numbers, priorities = zip(*stated, strict=True)
                self.planner.set_importance(np.array(numbers), np.array(priorities), now)
        self.collection.unsaved.pages(pages, now)

    def _discovered(self, number: int, read: SourceRead, part: slice) -> None:
        """Entries of unknown URLs: they become pages, unless they were told to be forgotten."""
        now = self.clock()
        entries = read.unknown[part]
        forgotten = self.collection.store.tombstones.cover([entry.url for entry in entries])
        pages = []
        for entry, is_forgotten in zip(entries, forgotten, strict=True):
            if is_forgotten or self.collection.index.page(entry.request_fingerprint) >= 0:
                continue
            importance = entry.priority if self.settings.sitemap_priority else None
            page = self._add_page(entry.url, entry.request_fingerprint, host_of(entry.url), now, importance=importance)
            self.collection.unsaved.announcement(page, number, entry.lastmod, 0, now)
            pages.append(page)
        if pages:
            self.planner.covered(np.array(pages), number, now)

    # -- re-planning

    def snapshot(self) -> Snapshot:
        """Copy what a plan needs."""
        return self.planner.snapshot()

    def adopt(self, plan: Plan, now: float) -> None:
        """Decide by a new plan from the next slots on."""
        self.planner.adopt(plan, now)
        self.count("crawlsched/replanned")

    def set_bandwidth(self, bandwidth: float, now: float) -> None:
        """Crawl at another rate from now on."""
        self.slots.set_rate(bandwidth, now)
        self.planner.set_bandwidth(bandwidth, now)
        logger.info("The bandwidth is %g crawls a second from now on.", bandwidth)

    # -- what timers call

    def count_slots(self, kind: str, n: int = 1) -> None:
        """Count what became of slots: used, idle, no_free_host, or paid for a request that came from none."""
        self._slot_counts[kind] += n
        self.count(f"crawlsched/slots/{kind}", n)

    def flush(self, now: float) -> None:
        """Hand what is not written yet to the store, and fetch what will be needed."""
        self.collection.aside.collect()
        self.collection.flush(now)
        self.collection.read_ahead(now)
        if now - self._swept_at > _SWEEP_INTERVAL:
            self._sweep(now)

    def _sweep(self, now: float) -> None:
        """End the visits and deliveries whose end nobody announced."""
        self._swept_at = now
        for visit in self.visits.older_than(now - self.settings.visit_timeout):
            self.resolve(visit, Outcome.DROPPED, now)
        self.deliveries.give_up(now - self.settings.visit_timeout)

    def heartbeat(self, now: float) -> bool:
        """Tell the store that this process lives; return False once another has taken its place."""
        status = self.status(now)
        self.collection.aside.run("the heartbeat", lambda: self._beat(now, status))
        return self._owned

    def _beat(self, now: float, status: dict[str, Any]) -> None:
        self._owned = self.collection.lease.heartbeat(now, status)

    def _heartbeat_now(self, now: float) -> None:
        try:
            self._beat(now, self.status(now))
        except Exception as error:  # the crawl ends anyway, and nothing depends on this
            logger.warning("The last heartbeat could not be written: %s", error)

    def status(self, now: float) -> dict[str, Any]:
        """What a running crawl says of itself, for `crawlsched status`."""
        return {
            "bandwidth": self.planner.bandwidth,
            "threshold": self.planner.threshold,
            "dispatched": self.visits.dispatched,
            "resolved": {str(outcome): n for outcome, n in self.visits.counts.items()},
            "open": len(self.visits),
            "slots": {**self._slot_counts, "missed": self.slots.missed},
            "planner": {
                "crawl_value": self.settings.crawl_value,
                "min_crawl_interval": self.settings.min_crawl_interval,
                "max_crawl_interval": self.settings.max_crawl_interval,
                "discovery_horizon": self.settings.discovery_horizon,
                "signal_delay": self.settings.signal_delay,
                "error_interval": self.settings.error_interval,
                "gone_interval": self.settings.gone_interval,
            },
            "time": now,
        }

    def obey_commands(self, now: float) -> None:
        """Do what the command line has asked for."""
        store = self.collection.store
        self.collection.aside.collect()
        self.collection.aside.run("reading commands", store.pending_commands, lambda found: obey(self, found))

    # -- long work in slices

    @property
    def has_work(self) -> bool:
        """Whether long work waits for `work`."""
        return bool(self._work)

    def _add_work(self, steps: Iterator[None]) -> None:
        self._work.append(steps)
        if self.on_work is not None:
            self.on_work()

    def work(self, seconds: float) -> bool:
        """Go on with long work for about so long; return whether there is more."""
        until = self.clock() + seconds
        while self._work:
            try:
                next(self._work[0])
            except StopIteration:
                self._work.popleft()
            if self.clock() >= until:
                break
        return bool(self._work)

    def source_of(self, kind: str, url: str, now: float) -> Source:
        """Return the source of this kind and URL, adding it if it is new."""
        self._add_source(kind, url, now)
        number = self.sources.number(kind, url)
        assert number is not None
        return self.sources[number]
