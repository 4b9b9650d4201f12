"""Requests that are no pages: the fallback scheduler has them, and what they belong to waits for their end."""

from __future__ import annotations

from random import getrandbits

from scrapy import Request
from scrapy.core.scheduler import BaseScheduler
from scrapy.statscollectors import StatsCollector

from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.visits import Call

__all__ = ["OWN_META", "UntrackedRequests", "pass_filter"]

_OF_A_VISIT = ("crawlsched_visit", "crawlsched_source", "crawlsched_changed", "crawlsched_named_by_site")
# Of a request that is no page, while it waits for its slot: which delivery waits for it, and whether known pages do.
_PARENT_META, _FIRST_META = "crawlsched_parent", "crawlsched_first"
#: Keys of meta that another request made of one must not have.
OWN_META = (*_OF_A_VISIT, _PARENT_META, _FIRST_META)
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
        self._run = getrandbits(48)  # tokens of another run, kept on disk by the fallback scheduler, are none of ours

    def enqueue(self, request: Request, call: Call | None) -> bool:
        """Leave it to the fallback scheduler; what led to it waits for its end. Return whether it was taken."""
        self._stats.inc_value("crawlsched/untracked")
        starts, deliveries = self._refresher.starts, self._refresher.deliveries
        is_first = not starts.is_over and (
            starts.asked() if request.meta.get("is_start_request") else call is not None and call.from_start
        )
        if call is not None and call.token >= 0:
            request.meta[_PARENT_META] = [self._run, call.token]
            deliveries.untracked_waits(call.token)
        if is_first:
            request.meta[_FIRST_META] = self._run
            starts.untracked_waits()
        taken = False
        try:
            taken = self._fallback.enqueue_request(request)
        finally:  # also where the project's filter raises
            if not taken:
                if call is not None and call.token >= 0:
                    deliveries.untracked_ended(call.token, self._refresher.clock())
                if is_first:
                    starts.untracked_refused()
        return taken

    def next_request(self, now: float) -> Request | None:
        """Return the next one, as a visit that begins, if there is one."""
        request = self._fallback.next_request()
        if request is None:
            return None
        if request.meta.pop(_FILTERED_META, False):
            request.dont_filter = False  # where it leads, other components are to look at
        token = request.meta["crawlsched_visit"] = self._refresher.visits.follow(request.url, now).token
        run, parent = request.meta.pop(_PARENT_META, None) or (None, None)
        self._refresher.deliveries.untracked_sent(token, parent if run == self._run else None, now)
        if request.meta.pop(_FIRST_META, None) == self._run:
            self._refresher.starts.untracked_sent(token)
        return request

    def keep(self, request: Request) -> None:
        """Give a request that was not sent when the crawl ends back to the fallback scheduler, which may keep it."""
        kept = request.replace(errback=request.errback.spiders_own)  # type: ignore[union-attr]
        for name in _OF_A_VISIT:
            kept.meta.pop(name, None)
        if not kept.dont_filter:
            pass_filter(kept)
        self._fallback.enqueue_request(kept)
