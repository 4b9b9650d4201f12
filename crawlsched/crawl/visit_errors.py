"""Errors about one page or source: each is said with its name, and the page comes again later."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from crawlsched.crawl.collection import Collection
from crawlsched.crawl.visits import Visit, Visits
from crawlsched.exceptions import CrawlschedError
from crawlsched.showing import in_words, without_secrets
from crawlsched.store import Outcome

__all__ = ["VisitErrors"]

logger = logging.getLogger(__name__)


class VisitErrors:
    """Where exceptions about one page or source end."""

    def __init__(self, collection: Collection, visits: Visits) -> None:
        self._collection = collection
        self._visits = visits
        self._count = collection.count

    def of_page(self, page: int, error: Exception, now: float) -> None:
        """A page cannot be sent for now: it backs off like one that answered with an error."""
        self._say(f"The page number {page} cannot be visited, so it waits", error)
        self._back_off(page, now)

    def of_source(self, number: int, error: Exception, now: float) -> None:
        """A sitemap cannot be sent for now: it is polled again later."""
        self._say(f"The source number {number} cannot be polled, so it waits", error)
        self._collection.sources.polled(number, now, ok=False)

    @contextmanager
    def caught(self, visit: Visit, now: float) -> Iterator[None]:
        """Whatever of ours goes wrong inside ends the visit as an error, and goes no further."""
        try:
            yield
        except Exception as error:
            self.of_visit(visit, error, now)

    def of_visit(self, visit: Visit, error: Exception, now: float) -> None:
        """What a visit brought could not be judged: it counts as an error, and the page backs off."""
        self._say(f"What came of {without_secrets(visit.url)} cannot be judged, so it is visited again later", error)
        try:
            if self._visits.resolve(visit.token, Outcome.ERROR) is not None and visit.tracked:
                self._count("crawlsched/resolved")
                self._count(f"crawlsched/resolved/{Outcome.ERROR}")
                self._collection.planner.frontier.release_host(visit.host)
        finally:  # one error may follow another, and nobody else lets the page or the source go
            if visit.page >= 0:
                self._back_off(visit.page, now)
            elif visit.source >= 0:
                self._collection.sources.polled(visit.source, now, ok=False)

    def _back_off(self, page: int, now: float) -> None:
        planner = self._collection.planner
        if self._collection.knows(page) and planner.in_flight(page):
            try:
                planner.failed(page, now)
            finally:  # a page that stayed in flight would never be visited again, and start pages would be waited for
                if planner.in_flight(page):
                    planner.release(page, now)
            self._collection.unsaved.page(page, now)

    def _say(self, sentence: str, error: Exception) -> None:
        self._count("crawlsched/failures")
        # One line of a kind that we know; what nobody thought of needs its traceback.
        expected = isinstance(error, CrawlschedError)
        logger.error("%s: %s", sentence, in_words(error), exc_info=None if expected else error)
