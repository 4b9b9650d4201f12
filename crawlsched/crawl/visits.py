"""Visits: every dispatched request, from the moment it leaves until it is resolved, exactly once."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from scrapy import Request

from crawlsched.content.reading import Content
from crawlsched.crawl.probes import Probe
from crawlsched.showing import shown, without_secrets
from crawlsched.store import Outcome

__all__ = ["AGAIN_META", "CALL_META", "NOT_RETRIED", "Call", "ResponseFacts", "Visit", "Visits"]

#: Under this key a request carries its call from the spider middleware to the scheduler, which takes it out.
CALL_META = "crawlsched_call"
#: Under this key a request that is no page carries which re-delivery it belongs to.
AGAIN_META = "crawlsched_again"


class Call:
    """One call of a callback.

    Attributes
    ----------
    again : int or None
        Token of the visit whose page was delivered once more, so that requests behind it are made once more, too; this
        call is of that visit or descends from it over untracked requests. None: it is of no such visit.
    """

    __slots__ = ("again", "from_start", "page", "token")

    def __init__(self, token: int = -1, page: int = -1, *, from_start: bool = False, again: int | None = None) -> None:
        self.again = again
        self.token = token  # of the visit whose response it was called with; -1: none that is known
        self.page = page  # the page that was visited; -1: none
        self.from_start = from_start  # whether a start request led to it over untracked requests only


#: What ``meta["dont_retry"]`` says of a request that the spider has not asked for.
NOT_RETRIED = "crawlsched"


class Visit:
    """One dispatched request."""

    __slots__ = (
        *("host", "is_waiting", "n_continued", "opened_at", "outcome", "page", "probe", "sent", "source", "token"),
        *("unanswered", "url", "validated"),
    )

    def __init__(self, token: int, *, page: int, source: int, host: int, url: str, opened_at: float) -> None:
        self.token = token  # travels in ``request.meta["crawlsched_visit"]``, also through redirects and retries
        self.page = page  # the page's row number; -1 when a source (a sitemap) is visited
        self.source = source  # the source's id; -1 when a page is visited
        self.host = host  # the host's row number
        self.url = url  # the URL that was dispatched, before any redirect
        self.opened_at = opened_at  # when it was dispatched, POSIX seconds
        self.outcome: Outcome | None = None  # None while the visit is open
        self.n_continued = 0  # its redirects and retries
        self.is_waiting = False  # the last of them waits for a slot of its own
        self.unanswered = False  # its host could not be reached, or did not answer
        self.validated = False  # the request carries our If-None-Match or If-Modified-Since
        self.sent: tuple[str | None, str | None] = (None, None)  # the ETag and Last-Modified that it carries
        self.probe: Probe | None = None  # what this visit is the second fetch of

    @property
    def tracked(self) -> bool:
        """Whether this is a visit to a page or a source, and not a request of the fallback scheduler."""
        return self.page >= 0 or self.source >= 0

    @property
    def is_lesson(self) -> bool:
        """Whether it is a second fetch that only teaches: its page was judged by the first."""
        return self.probe is not None and not self.probe.is_held

    @property
    def is_ours(self) -> bool:
        """Whether the spider has asked for nothing of it: a source, or a page's second fetch."""
        return self.source >= 0 or self.probe is not None

    def __repr__(self) -> str:
        what = f"page={self.page}" if self.page >= 0 else f"source={self.source}"
        return f"<Visit {self.token} {what} {without_secrets(shown(self.url))} {self.outcome or 'open'}>"


class ResponseFacts(NamedTuple):
    """What a response said, as far as the refresher cares.

    `moved_to` is the final request if every redirect was permanent, `location` the URL of one that was not followed.
    """

    status: int
    content: Content | None = None
    etag: str | None = None
    last_modified: str | None = None
    size: int = 0
    moved_to: Request | None = None
    retry_after: str | None = None
    date: str | None = None
    location: str | None = None
    is_cut_short: bool = False

    @property
    def validators(self) -> tuple[str | None, str | None]:
        """ETag and Last-Modified."""
        return self.etag, self.last_modified


class Visits:
    """The open visits, and how many ended in which way.

    Several of Scrapy's paths can announce the end of one request (a middleware, the errback, a signal, a time-out). The
    first one counts.

    Examples
    --------
    >>> visits = Visits()
    >>> visit = visits.open(page=7, host=0, url="https://example.com/", now=100.0)
    >>> visits.resolve(visit.token, Outcome.CHANGED) is visit
    True
    >>> visits.resolve(visit.token, Outcome.DROPPED) is None
    True
    >>> visits.dispatched, visits.resolved
    (1, 1)
    """

    def __init__(self) -> None:
        self.dispatched = 0
        self.counts: dict[Outcome, int] = dict.fromkeys(Outcome, 0)
        self._open: dict[int, Visit] = {}
        self._open_per_host: dict[int, int] = {}
        self._tokens = itertools.count(1)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Visit]:
        return iter(list(self._open.values()))

    @property
    def resolved(self) -> int:
        """How many visits have ended."""
        return sum(self.counts.values())

    def open(self, *, host: int, url: str, now: float, page: int = -1, source: int = -1) -> Visit:
        """Begin a visit of a page or a source."""
        visit = Visit(next(self._tokens), page=page, source=source, host=host, url=url, opened_at=now)
        self._open[visit.token] = visit
        self._open_per_host[host] = self._open_per_host.get(host, 0) + 1
        self.dispatched += 1
        return visit

    def follow(self, url: str, now: float) -> Visit:
        """Follow a request of the fallback scheduler, so that its redirects and retries are recognised.

        It is not counted, neither as dispatched nor as resolved.
        """
        visit = Visit(next(self._tokens), page=-1, source=-1, host=-1, url=url, opened_at=now)
        self._open[visit.token] = visit
        return visit

    def get(self, token: object) -> Visit | None:
        """Return the open visit with this token; None if it has ended or never was."""
        return self._open.get(token) if isinstance(token, int) else None

    def open_on(self, host: int) -> int:
        """How many visits to this host are open."""
        return self._open_per_host.get(host, 0)

    def resolve(self, token: object, outcome: Outcome) -> Visit | None:
        """End a visit; return it, or None if it had ended already."""
        visit = self._open.pop(token, None) if isinstance(token, int) else None
        if visit is None:
            return None
        visit.outcome = outcome
        if not visit.tracked:
            return visit
        self.counts[outcome] += 1
        left = self._open_per_host[visit.host] - 1
        if left:
            self._open_per_host[visit.host] = left
        else:
            del self._open_per_host[visit.host]
        return visit

    def older_than(self, opened_before: float) -> list[Visit]:
        """Return the open visits that began before this time and do not wait for a slot, oldest first."""
        # Dictionaries keep their order, so the oldest visits stand first.
        old = itertools.takewhile(lambda visit: visit.opened_at < opened_before, self._open.values())
        return [visit for visit in old if not visit.is_waiting]
