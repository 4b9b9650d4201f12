"""Requests that are no pages: the fallback scheduler has them."""

from __future__ import annotations

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.statscollectors import StatsCollector

from crawlsched.crawl.refresher import Refresher

__all__ = ["OWN_META", "UntrackedRequests", "pass_filter"]

#: Keys of meta that another request made of one must not have.
OWN_META = ("crawlsched_visit", "crawlsched_source", "crawlsched_changed", "crawlsched_named_by_site")
# Of one that Scrapy's filter passes only since it has been let through already.
_FILTERED_META = "crawlsched_filtered"


def pass_filter(request: Request) -> None:
    """Let Scrapy's filter pass a request."""
    request.dont_filter = request.meta[_FILTERED_META] = True


class UntrackedRequests:
    """The requests of a crawl that are crawled once.

    Parameters
    ----------
    fallback : scrapy.core.scheduler.BaseScheduler
        Keeps them.
    refresher : Refresher
        Hears what waits for them.
    stats : scrapy.statscollectors.StatsCollector
    """

    def __init__(self, fallback: BaseScheduler, refresher: Refresher, stats: StatsCollector) -> None:
        self._fallback, self._refresher, self._stats = fallback, refresher, stats

    def enqueue(self, request: Request) -> bool:
        """Leave it to the fallback scheduler. Return whether it was taken."""
        self._stats.inc_value("crawlsched/untracked")
        if request.meta.get("is_start_request"):
            self._refresher.starts.asked()
        return self._fallback.enqueue_request(request)

    def next_request(self, now: float) -> Request | None:
        """Return the next one, as a visit that begins, if there is one."""
        request = self._fallback.next_request()
        if request is None:
            return None
        if request.meta.pop(_FILTERED_META, False):
            request.dont_filter = False  # where it leads, other components are to look at
        token = request.meta["crawlsched_visit"] = self._refresher.visits.open(url=request.url, now=now).token
        self._refresher.book.untracked_sent(token, now)
        return request

    def keep(self, request: Request) -> None:
        """Give a request that was not sent when the crawl ends back to the fallback scheduler, which may keep it."""
        kept = request.replace(errback=request.errback.spiders_own)  # type: ignore[union-attr]
        for name in OWN_META:
            kept.meta.pop(name, None)
        if not kept.dont_filter:
            pass_filter(kept)
        self._fallback.enqueue_request(kept)
