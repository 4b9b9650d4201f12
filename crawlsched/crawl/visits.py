"""Visits: every dispatched request, from its dispatch until the visit is resolved, exactly once."""

from __future__ import annotations

import itertools
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

from scrapy import Request

from crawlsched.content.reading import Content
from crawlsched.content.verdict import Size
from crawlsched.crawl.collection import Collection
from crawlsched.crawl.deliveries import DeliveryBook
from crawlsched.crawl.failing_hosts import FailingHosts
from crawlsched.crawl.hosts import header_time
from crawlsched.crawl.probes import Probe, Probes
from crawlsched.crawl.run import OnePass
from crawlsched.exceptions import CrawlschedError
from crawlsched.pages import LIVE
from crawlsched.planner import Observation
from crawlsched.showing import in_words, without_secrets
from crawlsched.store import Outcome

__all__ = ["CALL_META", "NOT_RETRIED", "ResponseFacts", "Visit", "VisitEnds", "Visits"]

logger = logging.getLogger(__name__)

#: The meta key for the visit whose callback yielded a request. The spider middleware sets it for the scheduler.
CALL_META = "crawlsched_call"


#: The value of ``meta["dont_retry"]`` in a request that the spider has not asked for.
NOT_RETRIED = "crawlsched"


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Visit:
    """One dispatched request."""

    token: int  # travels in ``request.meta["crawlsched_visit"]``, also through redirects and retries
    page: int  # the page's row number; -1 when a source (a sitemap) is visited
    source: int  # the source's id; -1 when a page is visited
    host: int  # the host's row number
    url: str  # the URL that was dispatched, before any redirect
    opened_at: float  # when it was dispatched, POSIX seconds
    outcome: Outcome | None = None  # None while the visit is open
    is_waiting: bool = False  # its redirect or retry waits for a slot of its own
    unanswered: bool = False  # its host could not be reached, or did not answer
    validated: bool = False  # the request carries our If-None-Match or If-Modified-Since
    sent: tuple[str | None, str | None] = (None, None)  # the ETag and Last-Modified that it carries
    probe: Probe | None = None  # the probe, if this visit is a second fetch

    @property
    def tracked(self) -> bool:
        """Whether this is a visit to a page or a source, and not a request of the fallback scheduler."""
        return self.page >= 0 or self.source >= 0

    @property
    def is_lesson(self) -> bool:
        """Whether this is a second fetch that only teaches, since its page was judged at the first fetch."""
        return self.probe is not None and not self.probe.is_held

    @property
    def is_ours(self) -> bool:
        """Whether the add-on made the request by itself: for a source, or for a page's second fetch."""
        return self.source >= 0 or self.probe is not None


class ResponseFacts(NamedTuple):
    """The facts of a response that the refresher needs.

    `moved_to` is the final request if every redirect was permanent, `location` the target of a redirect that was not
    followed.
    """

    status: int
    content: Content | None = None
    etag: str | None = None
    last_modified: str | None = None
    size: int = 0
    moved_to: Request | None = None
    date: str | None = None
    location: str | None = None
    is_cut_short: bool = False

    @property
    def validators(self) -> tuple[str | None, str | None]:
        """ETag and Last-Modified."""
        return self.etag, self.last_modified

    def since_modified(self, now: float) -> float | None:
        """Return how many seconds ago the page was modified, by its server's Date or else by `now`; None: not known.

        >>> modified, answered = "Sat, 21 Nov 2026 01:02:03 GMT", "Sat, 21 Nov 2026 01:03:03 GMT"
        >>> ResponseFacts(200, last_modified=modified, date=answered).since_modified(now=0.0)
        60.0
        >>> ResponseFacts(200, last_modified=modified).since_modified(now=1795223000.0)
        77.0
        >>> ResponseFacts(200, last_modified="yesterday").since_modified(now=0.0) is None
        True
        """
        modified, answered = header_time(self.last_modified), header_time(self.date)
        since = (now if answered is None else answered) - (inf if modified is None else modified)
        return since if since >= 0 else None


class Visits:
    """The open visits, and how many ended in which way.

    Several of Scrapy's paths can announce the end of one request (a middleware, the errback, a signal, a time-out).
    Only the first announcement counts.

    Examples
    --------
    >>> visits = Visits()
    >>> visit = visits.open(page=7, host=0, url="https://example.com/", now=100.0)
    >>> visits.resolve(visit.token, Outcome.CHANGED) is visit
    True
    >>> visits.resolve(visit.token, Outcome.DROPPED) is None
    True
    >>> visits.dispatched, visits.counts[Outcome.CHANGED], visits.counts[Outcome.DROPPED]
    (1, 1, 0)
    """

    def __init__(self) -> None:
        self.dispatched = 0
        self.counts: dict[Outcome, int] = dict.fromkeys(Outcome, 0)
        self._open: dict[int, Visit] = {}
        self._open_per_host = Counter[int]()
        self._tokens = itertools.count(1)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Visit]:
        return iter(list(self._open.values()))

    def open(self, *, url: str, now: float, host: int = -1, page: int = -1, source: int = -1) -> Visit:
        """Begin a visit of a page or a source.

        A request of the fallback scheduler is for no page and no source. Its visit serves only to recognise its
        redirects and retries, and is not counted.
        """
        visit = Visit(token=next(self._tokens), page=page, source=source, host=host, url=url, opened_at=now)
        self._open[visit.token] = visit
        if visit.tracked:
            self._open_per_host[host] += 1
            self.dispatched += 1
        return visit

    def get(self, token: object) -> Visit | None:
        """Return the open visit with this token; None if there is no such open visit."""
        return self._open.get(token) if isinstance(token, int) else None

    def open_on(self, host: int) -> int:
        """How many visits to this host are open."""
        return self._open_per_host[host]

    def resolve(self, token: object, outcome: Outcome) -> Visit | None:
        """End a visit; return it, or None if it had ended already."""
        visit = self._open.pop(token, None) if isinstance(token, int) else None
        if visit is None:
            return None
        visit.outcome = outcome
        if visit.tracked:
            self.counts[outcome] += 1
            self._open_per_host[visit.host] -= 1
        return visit

    def older_than(self, opened_before: float) -> list[Visit]:
        """Return the open visits that began before this time and do not wait for a slot, oldest first."""
        # Dictionaries keep their order, so the oldest visits are first.
        old = itertools.takewhile(lambda visit: visit.opened_at < opened_before, self._open.values())
        return [visit for visit in old if not visit.is_waiting]


_REACHED = frozenset({Outcome.CHANGED, Outcome.UNCHANGED, Outcome.NOT_MODIFIED, Outcome.FLAPPING, Outcome.MOVED})

# The columns of a planner's observation that are stored.
_TAUGHT = ("page", "elapsed", "n_signals", "source", "further", "changed", "time_since_modified")


@dataclass(eq=False)
class VisitEnds:
    """Ends visits, with or without a response; every error about one page or source is handled here, too."""

    collection: Collection
    visits: Visits
    probes: Probes
    book: DeliveryBook
    failing_hosts: FailingHosts
    one_pass: OnePass | None

    def __post_init__(self) -> None:
        #: Visits whose requests no longer exist, such as a redirect that another component has refused.
        self.lost = deque[int]()
        self._planner, self._count = self.collection.planner, self.collection.count
        planner = self._planner
        self._leave = {Outcome.GONE: planner.gone, Outcome.REFUSED: planner.refused, Outcome.MOVED: planner.moved}

    # -- visits without a response

    def end_lost(self, now: float) -> None:
        """End the visits whose requests are gone."""
        while self.lost:
            if (visit := self.visits.get(token := self.lost.popleft())) is not None:
                self.resolve(visit, Outcome.DROPPED, now)
                self.book.failed(token, now)

    def resolve(self, visit: Visit, outcome: Outcome, now: float) -> None:
        """A visit ended without a response: the page is tried again later, ever more rarely."""
        with self.caught(visit, now):
            if self.was_forgotten(visit, now):
                return
            if visit.probe is not None and visit.probe.impossible_url is not None:
                self.question_open(visit, visit.probe, now)
                return
            # A page dropped by another component would be picked again at once, so it backs off as after an error.
            leave = self._planner.not_allowed if outcome is Outcome.REFUSED else self._planner.failed
            self.back_off(visit, outcome, now, leave=leave)

    def not_sent(self, visit: Visit, now: float) -> None:
        """A visit was taken back before its request was sent, so its page goes out next."""
        with self.caught(visit, now):
            if self.was_forgotten(visit, now):
                return
            self.end(visit, Outcome.DROPPED, now)
            if visit.source >= 0:
                self.source_polled(visit.source, now)
            elif visit.page >= 0:
                self._planner.release(visit.page, now)
                if not visit.is_lesson:
                    self._planner.force([visit.page], now)
                    if self.one_pass is not None:
                        self.one_pass.taken_back(visit.page)

    def was_forgotten(self, visit: Visit, now: float) -> bool:
        """Whether `crawlsched forget` took the page away during its visit; then nothing is left to learn."""
        if visit.page < 0 or self.collection.knows(visit.page):
            return False
        self.end(visit, Outcome.DROPPED, now)
        return True

    def question_open(self, visit: Visit, probe: Probe, now: float, fetched: ResponseFacts | None = None) -> None:
        """Fetch a page once more, since the request for an impossible page has decided nothing."""
        self.collection.wrong_pages.answered(visit.host, probe.first.likeness)
        self.end(visit, Outcome.PROBED, now, fetched)
        self.probes.ask(replace(probe, impossible_url=None, asked_at=now))

    # -- any visit

    def end(
        self,
        visit: Visit,
        outcome: Outcome,
        now: float,
        fetched: ResponseFacts | None = None,
        *,
        learned: Observation | None = None,
        size: Size = (None, None),
    ) -> int | None:
        """Resolve a visit, count it and write it down; return the number under which it is kept."""
        if not self._close(visit, outcome):
            return None
        self._hear_of_host(visit, outcome, fetched, now)
        if visit.page < 0 or not self.collection.knows(visit.page):
            return None
        if outcome is not Outcome.PROBED:
            self.book.ended_pages.append(visit.page)
        nothing: dict[str, Any] = {"page": visit.page, "elapsed": None, "n_signals": 0, "source": -1, "changed": None}
        taught = nothing if learned is None else {name: getattr(learned, name) for name in _TAUGHT}
        observation = self.collection.unsaved.observation(
            now,
            **taught,
            outcome=str(outcome),
            status=None if fetched is None else fetched.status,
            size=None if fetched is None else fetched.size,
            changed_share=size[0],
            similarity=size[1],
        )
        self.collection.unsaved.page(visit.page, now)
        return observation

    def _close(self, visit: Visit, outcome: Outcome) -> bool:
        """Count a visit of ours that ends now; False: it had ended before, or follows a request that is no page."""
        if self.visits.resolve(visit.token, outcome) is None or not visit.tracked:
            return False
        self._count("crawlsched/resolved")
        self._count(f"crawlsched/resolved/{outcome}")
        self._planner.frontier.release_host(visit.host)
        return True

    def back_off(
        self,
        visit: Visit,
        outcome: Outcome,
        now: float,
        fetched: ResponseFacts | None = None,
        *,
        leave: Callable[..., None] | None = None,
    ) -> int | None:
        """Let a page back off after a visit without content; the feed gets its new state. Return what `end` returns."""
        observation = self.end(visit, outcome, now, fetched)
        page, hosts = visit.page, self.collection.hosts
        if visit.source >= 0:
            self.source_polled(visit.source, now)
        if page < 0:
            return None
        before = self._planner.standing(page)
        free_at = hosts.free_at(visit.host, now)
        leave = leave or self._leave.get(outcome, self._planner.failed)
        leave(page, now, free_at if free_at > now else None, of_host=hosts.fails(visit.host))
        self.collection.unsaved.page(page, now)
        self.tell(page, before, observation, now)
        return observation

    def source_polled(self, number: int, now: float, *, has_news: bool | None = None, **changes: object) -> None:
        """A poll of a source has ended; without `has_news` the poll has failed, and the next polls come ever later."""
        if has_news is None:
            self._count("crawlsched/sources/failed")
        n_pages, bandwidth = self._planner.pages.n, self._planner.bandwidth
        polled = self.collection.sources.polled(number, now, n_pages, bandwidth, has_news=has_news, **changes)
        self.collection.unsaved.source(polled, now)

    def tell(self, page: int, before: str, observation: int | None, now: float) -> None:
        """Put a page's new state into the feed, if it differs from the last state; one batch writes both."""
        standing = self._planner.standing(page)
        if standing == before:
            return
        back = "recovered" if before == "failing" else "back"
        self.collection.unsaved.feed(page, now, back if standing == "live" else standing, observation)

    def _hear_of_host(self, visit: Visit, outcome: Outcome, fetched: ResponseFacts | None, now: float) -> None:
        """Count a server's error, refusal or wrong page for its host, so that not all pages of the host are tried."""
        hosts, host = self.collection.hosts, visit.host
        status = 0 if fetched is None else fetched.status
        is_whole = host in self.collection.failing_hosts
        if outcome in _REACHED:
            if visit.page >= 0 or not is_whole:  # a sitemap says nothing about the pages
                hosts.answered(host)
            return
        is_of_host = outcome is Outcome.ERROR and (visit.unanswered or status >= 500 or status == 429)
        if fetched is not None and visit.page >= 0 and outcome in (Outcome.REFUSED, Outcome.WRONG, Outcome.GONE):
            # Pages that are known to be forbidden or gone say nothing new about their host.
            is_news = self._planner.pages.state.item(visit.page) == LIVE or hosts.fails(host)
            is_of_host = is_news and (outcome is not Outcome.GONE or is_whole)
        if is_of_host:
            hosts.failed(host, visit.opened_at, now, self.collection.settings.error_interval)
        if visit.page >= 0 and outcome not in (Outcome.PROBED, Outcome.DROPPED):
            said = "another page in their place" if outcome is Outcome.WRONG else str(status or "no answer")
            self.failing_hosts.answers[host] = said

    # -- errors of ours

    @contextmanager
    def caught(self, visit: Visit, now: float) -> Iterator[None]:
        """An internal error ends the visit as an error, and goes no further."""
        try:
            yield
        except Exception as error:
            self.visit_error(visit, error, now)

    def visit_error(self, visit: Visit, error: Exception, now: float) -> None:
        """The result of a visit could not be judged, so the visit counts as an error, and the page backs off."""
        try:
            self._close(visit, Outcome.ERROR)
        finally:  # nothing else releases the page or the source
            what = f"What came of {without_secrets(visit.url)} cannot be judged"
            self.failed(what, error, now, page=visit.page, source=visit.source)

    def failed(self, what: str, error: Exception, now: float, *, page: int = -1, source: int = -1) -> None:
        """An error of ours: the page or the source is asked for again later, ever more rarely."""
        self._count("crawlsched/failures")
        # A known kind of error is logged in one line, an unforeseen error with its traceback.
        expected = isinstance(error, CrawlschedError)
        logger.error("%s, so it waits: %s", what, in_words(error), exc_info=None if expected else error)
        if source >= 0:
            self.source_polled(source, now)
        elif page >= 0 and self.collection.knows(page) and self._planner.in_flight(page):
            try:
                self._planner.failed(page, now)
            finally:  # a page that stayed in flight would never be visited again
                if self._planner.in_flight(page):
                    self._planner.release(page, now)
            self.collection.unsaved.page(page, now)
