"""A request is made: it names a new page, or one that is known already."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from crawlsched.collection.collection import Collection, FoundPage
from crawlsched.collection.request_templates import RequestTemplate
from crawlsched.settings import Settings
from crawlsched.store import host_of

__all__ = ["Admission"]

logger = logging.getLogger(__name__)


class Admission:
    """How pages and sources come in.

    Parameters
    ----------
    collection : Collection
        Where they come in.
    settings : Settings
        Checked settings.
    count : callable
        ``count(name, n=1)`` adds to a statistic.
    asks_robots : bool
        Whether robots.txt has to be asked for here: with ROBOTSTXT_OBEY Scrapy reads it, and tells us what it says.
    """

    def __init__(
        self, collection: Collection, settings: Settings, count: Callable[..., None], *, asks_robots: bool
    ) -> None:
        self._collection = collection
        self._settings = settings
        self._count = count
        self._asks_robots = asks_robots and settings.sitemaps_from_robots

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
        page = self._collection.index.page(request_fingerprint)
        if page >= 0:
            # start() names the same pages at every restart, and has dont_filter set by default; they are kept fresh
            # as they are. Elsewhere dont_filter says: now, even if it is known.
            if again and not meta.get("is_start_request"):
                self._collection.planner.force(np.array([page]), now)
                return True
            self._count("crawlsched/known")
            return False
        if self._collection.store.tombstones.cover([url])[0]:
            self._count("crawlsched/forgotten")
            return False
        found = FoundPage(
            url,
            request_fingerprint,
            host,
            self.importance(url, meta, importance),
            template,
            int(meta.get("depth", 0)),
        )
        self.add([found], now)
        return True

    def add(self, found: Sequence[FoundPage], now: float) -> list[int]:
        """Take pages in; return their numbers."""
        n_hosts = len(self._collection.hosts)
        numbers = self._collection.add_pages(found, now)
        self._count("crawlsched/pages/found", len(found))
        if self._asks_robots and len(self._collection.hosts) > n_hosts:
            for page in found:
                self.add_source("robots", "/".join(page.url.split("/", 3)[:3]) + "/robots.txt", now)
        return numbers

    def importance(self, url: str, meta: Mapping[str, Any], importance: float | None) -> float:
        """Return what a fresh copy of a page is worth: as stated, or by CRAWLSCHED_IMPORTANCE, or 1."""
        if importance is None:
            importance = self._settings.importance(url, meta) if self._settings.importance else 1.0
        importance = float(importance)
        if not 0.0 <= importance < float("inf"):
            logger.error("The importance of %s is %r; it has to be 0 or more, so it is taken as 1.", url, importance)
            return 1.0
        return importance

    def add_source(
        self, kind: str, url: str, now: float, parent: int | None = None, named_by: str | None = None
    ) -> None:
        """Take a source of ChangeSignals in, unless it is known; `named_by` is the host whose robots.txt names it."""
        is_new = self._collection.sources.number(kind, url) is None
        source = self._collection.sources.add(kind, url, host_of(url), now, parent, named_by)
        if source is None:
            return
        self._collection.unsaved.source(source, now)
        if is_new:
            self._count(f"crawlsched/sources/{kind}")
