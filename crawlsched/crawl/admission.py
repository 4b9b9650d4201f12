"""Admission of pages and sources: a request names a new page, or has news of a known page."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any

import numpy as np

from crawlsched.crawl.collection import Collection, FoundPage
from crawlsched.crawl.growth import Growth
from crawlsched.crawl.page_requests import (
    FOUND,
    PAGE,
    SOURCE,
    AdmissionResult,
    PageRequest,
    Share,
    from_data,
    to_data,
)
from crawlsched.crawl.request_templates import RequestTemplate, handed, has_credentials, meta_of
from crawlsched.crawl.run import Starts
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.side_thread import STEP
from crawlsched.crawl.sources import POLLED_KINDS
from crawlsched.pages import NEW
from crawlsched.pages.marks import AWAITED, BY_START, NEWS, RECRAWL, START, STATED
from crawlsched.store import host_of
from crawlsched.store.rows import ROWS_AT_ONCE

__all__ = ["Admission"]

logger = logging.getLogger(__name__)


@dataclass(eq=False, kw_only=True)
class Admission:
    """Takes in pages and sources.

    `sharing` takes pages and sources that belong to other shards. `asks_robots` is true if Scrapy does not read
    robots.txt files itself (ROBOTSTXT_OBEY). `not_data` counts, by callback, the requests that could not be written
    down.
    """

    collection: Collection
    owe: Callable[[int, int, float], None]
    starts: Starts
    asks_robots: bool
    growth: Growth
    sharing: Share | None = None
    not_data: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._settings, self._count = self.collection.settings, self.collection.count
        self._said_credentials = False
        self._passed: set[int] = set()  # pages of start() for which another request of this run has gone out

    # -- a request is made

    def requested(self, asked: PageRequest, now: float) -> AdmissionResult:
        """The spider asks for a page; return the result."""
        if self.sharing is not None and not self._is_here(asked.page.host):
            return self.sharing.hand_over(asked, now)
        result, page = self._requested(asked, now)
        if result is AdmissionResult.NEW:
            self.collection.n_awaited += 1
            self.collection.mark(page, AWAITED, now)
        elif result is AdmissionResult.KNOWN:
            self._count("crawlsched/known")
            self.collection.withheld.note(asked.page.host, "known", asked.page.url, now)
        if asked.is_start and page >= 0:
            self.owe(page, START, now)
            self.collection.mark(page, BY_START, now)
            if result is not AdmissionResult.ONCE:
                self.starts.asked(page)
        return result

    def take_over(self, kind: str, data: Mapping[str, Any], now: float) -> None:
        """Take in a page or a source that another process has found for this shard."""
        if kind == PAGE:
            asked = PageRequest(from_data(data["page"]), data["again"])
            result = self.requested(asked, now)
            if result is AdmissionResult.ONCE and (page := self._page_of(asked)) >= 0:
                self.owe(page, RECRAWL, now)
                self.collection.planner.force([page], now)
        elif kind == SOURCE:
            self.add_source(str(data["kind"]), str(data["url"]), now, named_by=data["named_by"])
        else:
            self.named([from_data(data)], now)

    def _requested(self, asked: PageRequest, now: float) -> tuple[AdmissionResult, int]:
        page = self._page_of(asked)
        if page < 0:
            (result,) = self.add([asked.page], now)
            if result is AdmissionResult.NEW and not asked.is_start:
                self.growth.found(asked.page.url)
            return result, self._page_of(asked)
        if self._settings.ignore_parameters:
            self.collection.put_url(page, asked.page.url, now)
        pages = self.collection.planner.pages
        marks = pages.marks.item(page)
        if page == asked.found_on and not asked.again and not marks & BY_START:
            # The page links to itself. Scrapy's filter would have refused this request as a duplicate.
            return AdmissionResult.KNOWN, page
        # Whether this run requests the page for the first time, and no run has visited it.
        is_first = pages.state.item(page) == NEW and not marks & AWAITED
        is_claimed = bool(marks & (BY_START | AWAITED))  # another request of this run asks for the page
        again = asked.again or self._is_new_to_filter(page, marks, asked)
        goes_itself = again and not is_first and (is_claimed or not asked.is_start)
        # If a page was never visited, the first request of a run counts, since Scrapy's filter would let it through.
        stays = (goes_itself and is_claimed) or (pages.state.item(page) == NEW and not is_first)
        self._take_over(page, asked, now, stays=stays, is_news=not (is_first or goes_itself))
        if goes_itself:
            self._count("crawlsched/requests/once")
            return AdmissionResult.ONCE, page
        return AdmissionResult.NEW if is_first else AdmissionResult.KNOWN, page

    def _is_new_to_filter(self, page: int, marks: int, asked: PageRequest) -> bool:
        """Whether this is the page's first request besides start requests, so that Scrapy's filter would allow it."""
        if not marks & BY_START or asked.is_start or page in self._passed:
            return False
        if asked.digest == self.collection.planner.pages.request_digest.item(page):
            return False  # the request would bring the same item once more
        self._passed.add(page)
        return True

    def knows(self, asked: PageRequest) -> bool:
        """Return True if a request would neither add a page nor cause a visit in this process."""
        return not self._is_here(asked.page.host) or (not asked.again and self._page_of(asked) >= 0)

    def _is_here(self, host: str) -> bool:
        return self.collection.shards.of_name(host) is not None

    def _page_of(self, asked: PageRequest) -> int:
        return self.collection.index.page(asked.page.request_fingerprint)

    def _take_over(self, page: int, asked: PageRequest, now: float, *, stays: bool, is_news: bool) -> None:
        """Give a page the template of its newest request; changed data in the template count as news of the page.

        A request that is itself sent brings its data to the callback. So these data are no news at the next visit.
        """
        digest, known = asked.digest, self.collection.planner.pages.request_digest.item(page)
        is_other = known != digest and not stays
        if is_other:
            self.collection.put_template(page, asked.page.template, digest, now)
            self._count("crawlsched/requests/replaced")
            if is_news and handed(known) != handed(digest):
                self._count("crawlsched/links/news")
                self.owe(page, NEWS, now)
        is_stated = asked.page.importance is not None
        if is_stated or (self._settings.importance and is_other):
            self.weigh([page], [self._worth(asked.page)], now, stated=is_stated)

    def may_write(self, template: RequestTemplate) -> None:
        """Raise ValueError if a request carries data that may not be written down."""
        if not has_credentials(template.data):
            return
        if not self._settings.keep_credentials:
            raise ValueError("CRAWLSCHED_KEEP_CREDENTIALS is False, and it carries cookies or an Authorization header.")
        if not self._said_credentials:
            self._said_credentials = True
            logger.info(
                "Requests of this spider carry cookies or Authorization headers. They are stored, since their pages "
                "need them at each visit. CRAWLSCHED_KEEP_CREDENTIALS = False leaves such pages to plain Scrapy."
            )

    def refuse(self, url: str, callback: str, fault: str, now: float) -> None:
        """Count a request whose data cannot be written down; its page is not added. Log this once for each callback."""
        self.not_data[callback] = self.not_data.get(callback, 0) + 1
        if self.not_data[callback] == 1:
            logger.warning(
                "%s, for the callback %s, is crawled once and not kept fresh (this is logged once a callback): %s",
                url,
                callback,
                fault[:500],
            )
        self._count("crawlsched/untracked/not_data")
        self.collection.withheld.note(host_of(url), "not_data", url, now)

    # -- what pages are worth

    def importance(self, url: str, meta: Mapping[str, Any], importance: float | None) -> float:
        """Return what a fresh copy of a page is worth; for an importance that is not valid, log that and return 1."""
        if importance is None:
            rule = self.collection.rules.of(url)
            if rule is not None and rule.importance is not None:
                return rule.importance
            importance = self._settings.importance(url, meta) if self._settings.importance else 1.0
        try:
            number = float(importance)
        except (TypeError, ValueError):
            number = nan
        if not 0.0 <= number < inf:
            logger.error("The importance of %s is %r; it has to be 0 or more, so it is taken as 1.", url, importance)
            return 1.0
        return number

    def _worth(self, page: FoundPage) -> float:
        return self.importance(page.url, {**meta_of(page.template), "depth": page.depth}, page.importance)

    def weigh(self, pages: Sequence[int], importance: Sequence[float], now: float, *, stated: bool = True) -> int:
        """Set the importance of several distinct pages; return how many changed."""
        rows, weights = np.array(pages, np.intp), np.array(importance, np.float64)
        collection, planner = self.collection, self.collection.planner
        if stated:
            planner.pages.marks[rows] |= np.uint16(STATED)
        differ = rows[planner.pages.importance[rows] != weights.astype(np.float32)]
        planner.set_importance(rows, weights, now)
        collection.unsaved.pages(differ, now)
        for page in differ.tolist() if stated else ():
            collection.unsaved.content(page, now, importance_stated=1)
        self._count("crawlsched/pages/importance_changed", int(differ.size))
        return int(differ.size)

    def weigh_all(self, shard: Shard, clock: Callable[[], float], add_work: Callable[[Iterator[None]], None]) -> None:
        """Ask CRAWLSCHED_IMPORTANCE about all stored pages without a stated importance, and apply CRAWLSCHED_PAGES.

        It runs at each start, since the function may have changed. Another thread reads the pages. The crawling thread
        weighs them in slices between the slots. Pages whose importance stays the same are not touched.
        """
        collection, rules = self.collection, self.collection.rules
        if self._settings.importance is None and not rules:
            return

        def read(after: int) -> None:
            collection.aside.run(
                f"reading pages for CRAWLSCHED_IMPORTANCE ({shard.number})",
                lambda: shard.store.reader.pages_to_weigh(after, ROWS_AT_ONCE, stated=bool(rules)),
                lambda found: add_work(weigh(found)),
            )

        def weigh(found: Sequence[tuple[int, str, Mapping[str, Any], bool]]) -> Iterator[None]:
            pages_of = collection.shards.rows_of(shard, [number for number, *_ in found]).tolist()
            rows = [(page, *rest) for page, (_, *rest) in zip(pages_of, found, strict=True) if page >= 0]
            for start in range(0, len(rows), STEP):
                known = [row for row in rows[start : start + STEP] if collection.knows(row[0])]
                if (numbers := rules.numbers([row[1] for row in known])) is not None and numbers.any():
                    pages = np.array([row[0] for row in known])[numbers > 0]
                    collection.planner.set_intervals(pages, numbers[numbers > 0], clock())
                # An importance may have been stated after the pages were read.
                marks = collection.planner.pages.marks
                open_ones = [row for row in known if not (row[3] or marks.item(row[0]) & STATED)]
                importance = [self.importance(url, meta, None) for _, url, meta, _ in open_ones]
                if open_ones:
                    self.weigh([row[0] for row in open_ones], importance, clock(), stated=False)
                yield
            if len(found) == ROWS_AT_ONCE:
                read(found[-1][0])

        read(-1)

    # -- pages and sources come in

    def add(self, found: Sequence[FoundPage], now: float) -> list[AdmissionResult]:
        """Take in unknown pages unless a limit or `forget` excludes them; return the result for each page."""
        results, n_hosts = [self._result_of(page, now) for page in found], len(self.collection.hosts)
        if added := [page for page, result in zip(found, results, strict=True) if result is AdmissionResult.NEW]:
            self.collection.add_pages(added, now, [self._worth(page) for page in added])
            self._count("crawlsched/pages/found", len(added))
        if self.asks_robots and self._settings.find_sources and len(self.collection.hosts) > n_hosts:
            for page in added:
                self.add_source("robots", "/".join(page.url.split("/", 3)[:3]) + "/robots.txt", now)
        return results

    def _result_of(self, page: FoundPage, now: float) -> AdmissionResult:
        """Return whether a page is taken in; if so, count it under its rule."""
        shard, rules = self.collection.shards.of_name(page.host), self.collection.rules
        if shard is not None and shard.store.tombstones.cover([page.url])[0]:
            self._count("crawlsched/forgotten")
            self.collection.withheld.note(page.host, "forgotten", page.url, now)
            return AdmissionResult.FORGOTTEN
        if not rules.takes(rules.number(page.url)):
            self._count("crawlsched/withheld/max_pages")
            self.collection.withheld.note(page.host, "max_pages", page.url, now)
            return AdmissionResult.TOO_MANY
        return AdmissionResult.NEW

    def named(self, pages: Sequence[FoundPage], now: float) -> dict[str, int]:
        """Take in pages, some with an importance; count the ``weighed`` pages, and each result of `add`."""
        stated, unknown = dict[int, float](), dict[bytes, FoundPage]()
        for page in pages:
            row = self.collection.index.page(page.request_fingerprint)
            if row < 0:
                unknown[page.request_fingerprint] = page
            elif page.importance is not None:
                stated[row] = page.importance
        results = self.add(list(unknown.values()), now)
        weighed = self.weigh(list(stated), list(stated.values()), now) if stated else 0
        return {**Counter(results), "weighed": weighed}

    def is_elsewhere(self, found: FoundPage, found_on: str, now: float) -> bool:
        """If another process has the shard of a found page, hand the page over, and return True."""
        return self.sharing is not None and self._hand_over(found.host, FOUND, to_data(found), found_on, now)

    def _hand_over(self, host: str, kind: str, data: dict[str, Any], found_on: str, now: float) -> bool:
        """If another process has the shard of a host, hand data over to that process, and return True."""
        if self.sharing is None or self._is_here(host):
            return False
        of = self.collection.shards.number_of(found_on)
        if (row := self.sharing.handing_over.row(host, kind, data, now, of=of)) is not None:
            self.collection.unsaved.of_shard(of, now).outgoing.append(row)
            self._count("crawlsched/handed_over")
        return True

    def add_source(
        self, kind: str, url: str, now: float, parent: int | None = None, named_by: str | None = None
    ) -> int | None:
        """Take in a source of ChangeSignals; return its number. None: it is of another shard, or refused."""
        sources, host = self.collection.sources, host_of(url)
        found_on = named_by or (host if parent is None else sources[parent].host)
        data = {"kind": kind, "url": url, "named_by": named_by}
        if kind in POLLED_KINDS and self._hand_over(host, SOURCE, data, found_on, now):
            return None
        known = sources.number(kind, url)
        if (changed := sources.add(kind, url, host, now, parent, named_by)) is None:
            return known
        self.collection.unsaved.source(changed, now)
        if known is None:
            self._count(f"crawlsched/sources/{kind}")
        return changed.source
