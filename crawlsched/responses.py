"""A response arrives: what a visit found becomes an observation, and a change goes to the spider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from scrapy import Request

from crawlsched.change_detection import Fingerprint, compare
from crawlsched.collection import Collection, FoundPage
from crawlsched.deliveries import Deliveries
from crawlsched.request_templates import RequestTemplate
from crawlsched.retry_after import retry_after
from crawlsched.store import PageFacts, host_of
from crawlsched.visits import Outcome, Visit, Visits

__all__ = ["Fetched", "Responses"]

_GONE = frozenset({404, 410})
_REFUSED = frozenset({401, 403, 407, 451})
_MOVED_FOR_GOOD = frozenset({301, 308})


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


class Responses:
    """How visits end.

    changed? → observation → posterior → crawl value → wake time → frontier; the page is marked for the next write.

    Parameters
    ----------
    collection : Collection
        The pages.
    visits : Visits
        The open visits.
    count : callable
        ``count(name, n=1)`` adds to a statistic.
    request_fingerprint : callable
        Gives the 20-byte request fingerprint of a URL.
    source_ended : callable
        Told of a source whose visit brought nothing: its number, the time.
    """

    def __init__(
        self,
        collection: Collection,
        visits: Visits,
        count: Callable[..., None],
        request_fingerprint: Callable[[str], bytes],
        source_ended: Callable[[int, float], None],
    ) -> None:
        self.deliveries = Deliveries(delivered=self._delivered, failed=self._delivery_failed)
        self._collection = collection
        self._planner = collection.planner
        self._visits = visits
        self._count = count
        self._request_fingerprint = request_fingerprint
        self._source_ended = source_ended

    def crawled(self, visit: Visit, fetched: Fetched, now: float) -> bool | None:
        """A visit got a response.

        Returns
        -------
        bool or None
            Whether the content is new to the spider; None if there was no content.
        """
        if self._was_forgotten(visit, now):
            return None
        status = fetched.status
        if status == 304:
            return self._not_modified(visit, fetched, now)
        if fetched.fingerprint is not None:
            if fetched.moved_to is not None:
                return self._moved(visit, fetched.moved_to, fetched, fetched.fingerprint, now)
            return self._seen(visit, visit.page, fetched, fetched.fingerprint, now)
        if status in _GONE:
            self.end(visit, Outcome.GONE, now, fetched)
            self._planner.gone(visit.page, now)
        elif status in _REFUSED:
            self.end(visit, Outcome.REFUSED, now, fetched)
            self._planner.refused(visit.page, now)
        elif status in _MOVED_FOR_GOOD:  # redirects are not followed in this project
            self.end(visit, Outcome.MOVED, now, fetched)
            self._planner.moved(visit.page, now)
        else:
            self.failed(visit, now, retry_at=retry_after(fetched.retry_after, now), fetched=fetched)
        return None

    def _was_forgotten(self, visit: Visit, now: float) -> bool:
        # `crawlsched forget` may take a page away while it is being visited; then there is nothing left to learn.
        if visit.page < 0 or self._collection.knows(visit.page):
            return False
        self.end(visit, Outcome.DROPPED, now)
        return True

    def _not_modified(self, visit: Visit, fetched: Fetched, now: float) -> bool:
        known = self._collection.facts_of(visit.page).fingerprint is not None
        self._observe(visit, Outcome.NOT_MODIFIED, visit.page, False if known else None, fetched, now)
        return False

    def _seen(self, visit: Visit, page: int, fetched: Fetched, fingerprint: Fingerprint, now: float) -> bool:
        """Content was seen at a page: did it change since it was last seen, and is it new to the spider?"""
        facts = self._collection.facts_of(page)
        last_seen = facts.pending_fingerprint or facts.fingerprint
        previous = Fingerprint(facts.recipe, last_seen) if last_seen and facts.recipe else None
        changed = compare(previous, fingerprint)
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
            self._collection.put_facts(facts, now)
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
            self._collection.put_facts(kept, now)

    def _moved(self, visit: Visit, to: Request, fetched: Fetched, fingerprint: Fingerprint, now: float) -> bool:
        """Every redirect was permanent: the page lives elsewhere now, and what came is that page's content."""
        old = self._collection.facts_of(visit.page)
        name = self._request_fingerprint(to.url)
        page = self._collection.index.page(name)
        if page == visit.page:  # an address that this project's fingerprinter takes for the same
            return self._seen(visit, page, fetched, fingerprint, now)
        self._planner.moved(visit.page, now)
        self._collection.put_facts(old._replace(moved_to=to.url), now)
        if page < 0:
            importance = float(self._planner.pages.importance[visit.page])
            template = RequestTemplate(old.template_data) if old.template_data else None
            found = FoundPage(to.url, name, host_of(to.url), importance, template, old.depth)
            page = self._collection.add_pages([found], now)[0]
            self._count("crawlsched/pages/found")
        elif self._planner.in_flight(page):
            # The page itself is being visited at this moment; that visit will tell.
            self.end(visit, Outcome.MOVED, now, fetched)
            return False
        return self._seen(visit, page, fetched, fingerprint, now)

    def _observe(
        self, visit: Visit, outcome: Outcome, page: int, changed: bool | None, fetched: Fetched, now: float
    ) -> None:
        """Learn from a visit that reached content."""
        observation = self._planner.crawled(page, now, changed)
        self._collection.unsaved.page(page, now)
        if observation is None:
            self.end(visit, outcome, now, fetched)
            return
        if changed:
            self._count("crawlsched/changes_found")
        self.end(visit, outcome, now, fetched, observation=observation)

    def failed(
        self, visit: Visit, now: float, *, retry_at: float | None = None, fetched: Fetched | None = None
    ) -> None:
        """A visit ended with an error: the page is tried again later, ever more rarely."""
        if self._was_forgotten(visit, now):
            return
        self.end(visit, Outcome.ERROR, now, fetched)
        if visit.source >= 0:
            self._source_ended(visit.source, now)
        elif visit.page >= 0:
            rest = self._collection.hosts.rest_until(visit.host)
            self._planner.failed(visit.page, now, max(retry_at or 0.0, rest) or None)
            self._collection.unsaved.page(visit.page, now)

    def resolve(self, visit: Visit, outcome: Outcome, now: float) -> None:
        """A visit ended without a response."""
        if self._was_forgotten(visit, now):
            return
        if outcome is Outcome.ERROR:
            self.failed(visit, now)
            return
        self.end(visit, outcome, now)
        if visit.source >= 0:
            self._source_ended(visit.source, now)
        elif visit.page >= 0:
            if outcome is Outcome.REFUSED:
                self._planner.refused(visit.page, now)
            else:
                # Dropped by some other component. It would be picked again at once, so it backs off like an error.
                self._planner.failed(visit.page, now)
            self._collection.unsaved.page(visit.page, now)

    def end(
        self,
        visit: Visit,
        outcome: Outcome,
        now: float,
        fetched: Fetched | None = None,
        *,
        observation: Any = None,
    ) -> None:
        """Resolve a visit: the one place where it is counted and written down."""
        if self._visits.resolve(visit.token, outcome) is None or not visit.tracked:
            return
        self._count("crawlsched/resolved")
        self._count(f"crawlsched/resolved/{outcome}")
        self._planner.release_host(visit.host)
        if visit.page < 0 or not self._collection.knows(visit.page):
            return
        self._collection.unsaved.observation(
            now,
            visit.page if observation is None else observation.page,
            elapsed=None if observation is None else observation.elapsed,
            n_signals=0 if observation is None else observation.n_signals,
            source=-1 if observation is None else observation.source,
            further=() if observation is None else observation.further,
            changed=None if observation is None else observation.changed,
            outcome=str(outcome),
            status=None if fetched is None else fetched.status,
            size=None if fetched is None else fetched.size,
        )
        self._collection.unsaved.page(visit.page, now)

    def _delivered(self, page: int, now: float) -> None:
        if not self._collection.knows(page):  # forgotten meanwhile
            return
        facts = self._collection.facts_of(page)
        self._collection.put_facts(
            facts._replace(fingerprint=facts.pending_fingerprint or facts.fingerprint, pending_fingerprint=None), now
        )
        self._count("crawlsched/delivered")

    def _delivery_failed(self, page: int) -> None:
        # The pending fingerprint stays, so the next visit brings the content again, whether it changed or not.
        self._count("crawlsched/undelivered")
