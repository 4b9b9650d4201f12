"""The errback of every request that is sent: the end of a visit that no downloader middleware sees."""

from __future__ import annotations

from collections.abc import Callable
from traceback import clear_frames
from typing import Any

from scrapy import Request
from twisted.python.failure import Failure

from crawlsched.addon.sending import NotSent
from crawlsched.crawl.refresher import NotForTheSpider, Refresher
from crawlsched.store import Outcome

__all__ = ["VisitErrback"]


class VisitErrback:
    """Resolve a visit whose end no downloader middleware of ours was told of, then let the spider's errback have it."""

    __slots__ = ("_is_ours", "_not_sent", "_refresher", "spiders_own", "token")

    def __init__(
        self,
        refresher: Refresher,
        token: int,
        spiders_own: Any,
        is_ours: bool,
        not_sent: Callable[[Request], None] | None,
    ) -> None:
        self._is_ours = is_ours
        self._not_sent = not_sent
        self._refresher = refresher
        self.token = token
        self.spiders_own = spiders_own

    def __call__(self, failure: Failure) -> Any:
        """End the visit, and give the spider what is its own."""
        if isinstance(failure.value, NotForTheSpider | NotSent):
            # Twisted's frames hold the failure that holds them: 90 objects a visit for the garbage collector to find.
            if isinstance(failure.value, NotSent) and self._not_sent is not None:
                self._not_sent(failure.request)  # type: ignore[attr-defined]
            clear_frames(failure.tb)
            failure.tb = failure.value.__traceback__ = None
            return None
        visit = self._refresher.visits.get(self.token)
        if visit is not None:
            # What was refused before it went out came by the middleware; only what went wrong with a response (endless
            # redirects, a decompression bomb, another middleware's exception) is first heard of here.
            self._refresher.visit_ends.resolve(visit, Outcome.ERROR, self._refresher.clock())
        self._refresher.deliveries.failed(self.token, self._refresher.clock())
        if self._is_ours:  # no failure of anything that the spider has asked for
            return None
        return failure if self.spiders_own is None else self.spiders_own(failure)
