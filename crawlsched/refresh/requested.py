"""A request is made: it names a new page, or says something new of one that is known already."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from crawlsched.collection.collection import Collection, FoundPage
from crawlsched.collection.request_templates import PLACE_META, RequestDigest, RequestTemplate
from crawlsched.pages import NEW
from crawlsched.pages.marks import AWAITED, BY_START, NEWS, SIGHTS, START
from crawlsched.pages.variants import MOST_OF_A_URL, asked_variant, variant_fingerprint
from crawlsched.refresh.growth import Growth
from crawlsched.refresh.handing_over import Elsewhere
from crawlsched.refresh.weighing import Weighing
from crawlsched.settings import Settings
from crawlsched.sources.sources import POLLED_KINDS
from crawlsched.store import Outgoing, host_of
from crawlsched.visits.calls import Call

__all__ = ["Admission", "Admitted", "Asked"]

logger = logging.getLogger(__name__)

# A page whose links brought other data at so many sights running makes no news by that, until they stand still.
_RESTLESS = 4
_LINKS = "links"
# Meta of one dispatch of a request, which say nothing of its page.
_OF_ONE_DISPATCH = ("crawlsched_", "is_start_request", "_")


class Admitted(StrEnum):
    """What became of a request."""

    #: There is a page now.
    NEW = "new"
    #: The page is known; what the request carries has been taken over where it was other.
    KNOWN = "known"
    #: The page is known, and the request goes out once, as it stands.
    ONCE = "once"
    #: It is for a shard that another process owns, and was handed over.
    ELSEWHERE = "elsewhere"
    #: It was told to be forgotten.
    FORGOTTEN = "forgotten"
    #: There are as many pages as there may be.
    TOO_MANY = "too_many"


class Asked(NamedTuple):
    """What a spider's request says.

    Attributes
    ----------
    url : str
    request_fingerprint : bytes
        Of the URL.
    host : str
    template : RequestTemplate or None
        What has to be kept of it.
    importance : float or None
        As it states it.
    meta : mapping
    again : bool
        ``dont_filter``.
    call : Call or None
        Which yielded it; None: nobody knows.
    first : int or None
        Of a request that another process has handed over: what the first request for this page in the same call has
        that others do not (`RequestDigest.naming`).
    """

    url: str
    request_fingerprint: bytes
    host: str
    template: RequestTemplate | None
    importance: float | None
    meta: Mapping[str, Any]
    again: bool
    call: Call | None = None
    first: int | None = None

    @property
    def is_start(self) -> bool:
        """Whether start() made it."""
        return bool(self.meta.get("is_start_request"))

    def to_dict(self) -> dict[str, Any]:
        """Return what the owner of another shard needs, as JSON."""
        return {
            "url": self.url,
            "fingerprint": self.request_fingerprint.hex(),
            "host": self.host,
            "template": None if self.template is None else self.template.data,
            "importance": self.importance,
            "meta": _plain(self.meta),
            # start() yields the same requests in every process, and the owner of the shard has its own.
            "again": self.again and not self.is_start,
            "first": self.first,
        }

    def says(self) -> list[Any]:
        """Return what tells this request from others, wherever the link to it stands, as JSON."""
        meta = {name: value for name, value in _plain(self.meta).items() if name not in PLACE_META}
        digest = RequestDigest.of(self.template.data if self.template else None)
        return [self.request_fingerprint.hex(), int(digest), self.importance, meta, self.first]

    def of_another_shard(self) -> Asked:
        """Return the request as the owner of another shard gets it, where the call's page has no number."""
        if self.call is None:
            return self
        naming = RequestDigest.of(self.template.data if self.template else None).naming
        variant, _ = asked_variant(self.meta)
        first = self.call.claims.setdefault(variant_fingerprint(self.request_fingerprint, variant), naming)
        return self._replace(call=None, first=first)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Asked:
        """Return the request that another process has handed over."""
        return cls(
            str(data["url"]),
            bytes.fromhex(data["fingerprint"]),
            str(data["host"]),
            RequestTemplate(dict(data["template"])) if data["template"] else None,
            data["importance"],
            dict(data["meta"]),
            bool(data["again"]),
            first=data["first"],
        )


def _plain(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Keep of a request's meta what can be written down; the template has the rest, as it is kept of any page."""
    kept: dict[str, Any] = {}
    for name, value in meta.items():
        if name == "crawlsched_page" or not str(name).startswith(_OF_ONE_DISPATCH):
            try:
                kept[str(name)] = json.loads(json.dumps(value))
            except (TypeError, ValueError):
                continue
    return kept


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
    owe : callable
        ``owe(page, marks, now)`` asks for a delivery at the next visit.
    withhold : callable
        ``withhold(host, reason, url, now)`` notes that something does not reach the spider.
    asks_robots : bool
        Whether robots.txt has to be asked for here: with ROBOTSTXT_OBEY Scrapy reads it, and tells us what it says.
    elsewhere : Elsewhere, optional
        Takes what is of other shards; None: there are none.
    growth : Growth, optional
        Hears of what links and sitemaps lead to.
    """

    def __init__(
        self,
        collection: Collection,
        settings: Settings,
        count: Callable[..., None],
        *,
        owe: Callable[[int, int, float], None],
        withhold: Callable[[str, str, str, float], None],
        asks_robots: bool,
        elsewhere: Elsewhere | None = None,
        growth: Growth | None = None,
    ) -> None:
        self._collection = collection
        self.growth = growth
        self._settings = settings
        self._count = count
        self._owe = owe
        self._withhold = withhold
        self._asks_robots = asks_robots and settings.find_sources
        self._elsewhere = elsewhere
        self.weighing = Weighing(collection, settings, count)
        self._said_too_many = False
        # By fingerprint of the URL, what is taken in together at the end; None: each page by itself.
        self._together: dict[bytes, tuple[FoundPage, int]] | None = None

    # -- a request is made

    def requested(self, asked: Asked, now: float) -> tuple[Admitted, int]:
        """The spider asks for a page; return what became of that, and the page (-1: there is none)."""
        self._add_before(asked.request_fingerprint, now)
        digest = RequestDigest.of(asked.template.data if asked.template else None)
        variant, page = self._place(asked, digest)
        if page < 0:
            return self._found(asked, variant, digest, now)
        if self._settings.ignore_parameters:
            self._collection.put_url(page, asked.url, now)
        if asked.template is not None and self._collection.credentials_came(page, asked.template, now):
            self._owe(page, 0, now)
        pages = self._collection.planner.pages
        was_by_start = bool(pages.marks.item(page) & BY_START)
        if asked.call is not None and page == asked.call.page and not asked.again and not was_by_start:
            # A page that links to itself: Scrapy's filter, which knows it, would have refused the request.
            return self._known(asked, now), page
        # A site has named it, or an earlier run: nobody has visited it, and this is the first request of this run.
        is_first = pages.state.item(page) == NEW and not pages.marks.item(page) & AWAITED
        goes_itself = asked.again and not is_first and (was_by_start or not asked.is_start)
        self._take_over(page, asked, digest, now, is_first=is_first, goes_itself=goes_itself)
        if asked.is_start:
            self._owe(page, START, now)
            self._collection.mark(page, BY_START, now)
        if is_first:
            self._collection.mark(page, AWAITED, now)
            return Admitted.NEW, page
        if goes_itself:
            self._count("crawlsched/requests/once")
            return Admitted.ONCE, page
        return self._known(asked, now), page

    def knows(self, asked: Asked) -> bool:
        """Whether a request would make nothing new, neither a page nor a visit."""
        digest = RequestDigest.of(asked.template.data if asked.template else None)
        return not asked.again and self._place(asked, digest)[1] >= 0

    def _known(self, asked: Asked, now: float) -> Admitted:
        self._count("crawlsched/known")
        self._withhold(asked.host, "known", asked.url, now)
        return Admitted.KNOWN

    def _place(self, asked: Asked, digest: RequestDigest) -> tuple[str | None, int]:
        """Return the variant and the page (-1: it is new) that a request is for."""
        base, index, call = asked.request_fingerprint, self._collection.index, asked.call
        variant, is_spiders_own = asked_variant(asked.meta)
        name = variant_fingerprint(base, variant)
        first = asked.first
        if first is None:
            first = digest.naming if call is None else call.claims.setdefault(name, digest.naming)
        page = index.page(name)
        if page < 0 or is_spiders_own or self._collection.request_digest(page).naming == digest.naming:
            return variant, page
        own = f"{variant or ''}#{digest.naming:06x}"
        if (known := index.page(variant_fingerprint(base, own))) >= 0:
            return own, known
        is_its_own = call is not None and page == call.page and asked.again
        marks = self._collection.planner.pages.marks.item(page)
        if first != digest.naming or is_its_own or marks & BY_START or (asked.is_start and marks & AWAITED):
            return own, -1
        return variant, page

    def _found(self, asked: Asked, variant: str | None, digest: RequestDigest, now: float) -> tuple[Admitted, int]:
        if variant is not None and self._collection.variants.n(asked.request_fingerprint) >= MOST_OF_A_URL:
            self._say_too_many(asked.url)
            return Admitted.ONCE, -1
        found = FoundPage(
            asked.url,
            asked.request_fingerprint,
            asked.host,
            self.weighing.importance(asked.url, asked.meta, asked.importance),
            asked.template,
            int(asked.meta.get("depth", 0)),
            variant,
            asked.importance is not None,
        )
        if (reason := self._collection.kept_out([found], now)[0]) == "forgotten":
            self._count("crawlsched/forgotten")
            self._withhold(asked.host, "forgotten", asked.url, now)
            return Admitted.FORGOTTEN, -1
        if reason is not None:
            self._count("crawlsched/withheld/max_pages")
            return Admitted.TOO_MANY, -1
        if self.growth is not None and not asked.is_start:
            self.growth.found(asked.url)
        if variant is not None:
            self._count("crawlsched/variants")
        marks = AWAITED | (START | BY_START if asked.is_start else 0)
        if self._together is not None:
            self._together[asked.request_fingerprint] = found, marks
            return Admitted.NEW, -1
        (page,) = self.add([found], now)
        self._collection.mark(page, marks, now)
        return Admitted.NEW, page

    @contextmanager
    def together(self, now: float) -> Iterator[None]:
        """Take in what is new at the end, in one go: of many pages that costs a fraction. Their numbers are -1 here."""
        self._together = {}
        try:
            yield
            self.add_together(now)
        finally:
            self._together = None

    def _add_before(self, request_fingerprint: bytes, now: float) -> None:
        """Take in what waits, if something of the same URL is among it."""
        if self._together and request_fingerprint in self._together:
            self.add_together(now)

    def add_together(self, now: float) -> None:
        """Take in what waits for the end of `together`."""
        if self._together:
            several, self._together = list(self._together.values()), {}
            for page, (_, marks) in zip(self.add([found for found, _ in several], now), several, strict=True):
                self._collection.mark(page, marks, now)

    def _say_too_many(self, url: str) -> None:
        self._count("crawlsched/variants/too_many")
        if not self._said_too_many:
            self._said_too_many = True
            logger.warning(
                "%s has %d variants, and no more are kept fresh; further ones are crawled once (this is said once). "
                "Name those that matter by meta['crawlsched_page'].",
                url,
                MOST_OF_A_URL,
            )

    def _take_over(
        self, page: int, asked: Asked, digest: RequestDigest, now: float, *, is_first: bool, goes_itself: bool
    ) -> None:
        """The newest request counts: its template is the page's from now on, and other data are news of the page.

        Of a page that nobody has visited the first request of the run counts, as Scrapy's filter lets the first pass.
        What goes itself brings its data to the callback, and at the page's next visit they are news no more.
        """
        pages = self._collection.planner.pages
        known = self._collection.request_digest(page)
        if not is_first and pages.state.item(page) == NEW:
            digest = known
        sights = SIGHTS.of(pages.marks.item(page))
        if known == digest:
            if sights:
                self._collection.set_marks(page, SIGHTS.put(pages.marks.item(page), 0), now)
                if sights >= _RESTLESS and not goes_itself:  # they stand still, with data that nobody has been told of
                    self._news(page, now)
        else:
            self._collection.put_template(page, asked.template, digest, now)
            self._count("crawlsched/requests/replaced")
            if known.handed != digest.handed and not is_first:
                self._collection.set_marks(page, SIGHTS.put(pages.marks.item(page), sights + 1), now)
                if sights + 1 < _RESTLESS and not goes_itself:
                    self._news(page, now)
        if asked.importance is not None or (self._settings.importance and known != digest):
            importance = self.weighing.importance(asked.url, asked.meta, asked.importance)
            self.weighing.weigh([page], [importance], now, stated=asked.importance is not None)

    def _news(self, page: int, now: float) -> None:
        """A link says that the page's next item is another one: it is announced, and delivered at its next visit."""
        self._count("crawlsched/links/news")
        self._owe(page, NEWS, now)
        self.add_source(_LINKS, _LINKS, now)
        source = self._collection.sources.number(_LINKS, _LINKS)
        assert source is not None
        planner, pages = self._collection.planner, np.array([page])
        planner.covered(pages, source, now)
        if not planner.announced_by(page, source):
            self._count("crawlsched/change_signals/received")
            self._count("crawlsched/change_signals/taken", planner.signalled(pages, source, now))
        self._collection.unsaved.page(page, now)

    # -- pages and sources come in

    def add(self, found: Sequence[FoundPage], now: float) -> list[int]:
        """Take pages in; return their numbers."""
        n_hosts = len(self._collection.hosts)
        numbers = self._collection.add_pages(found, now)
        self._count("crawlsched/pages/found", len(found))
        if self._asks_robots and len(self._collection.hosts) > n_hosts:
            for page in found:
                self.add_source("robots", "/".join(page.url.split("/", 3)[:3]) + "/robots.txt", now)
        return numbers

    def named(
        self, importance: Mapping[str, float | None], request_fingerprint: Callable[[str], bytes], now: float
    ) -> dict[str, int]:
        """Somebody names pages, and says what some of them are worth.

        Returns
        -------
        dict of str to int
            How many are ``new``, are ``weighed`` otherwise than before, were ``forgotten`` and stay so, and are
            ``too_many``.
        """
        names = {url: request_fingerprint(url) for url in importance}
        known = {url: page for url, name in names.items() if (page := self._collection.index.page(name)) >= 0}
        stated = {page: weight for url, page in known.items() if (weight := importance[url]) is not None}
        weighed = self.weighing.weigh(list(stated), list(stated.values()), now) if stated else 0
        unknown = [
            FoundPage(
                url,
                names[url],
                host_of(url),
                self.weighing.importance(url, {}, importance[url]),
                importance_stated=importance[url] is not None,
            )
            for url in names
            if url not in known
        ]
        reasons = self._collection.kept_out(unknown, now)
        if found := [page for page, reason in zip(unknown, reasons, strict=True) if reason is None]:
            self.add(found, now)
        return {
            "new": len(found),
            "weighed": weighed,
            "forgotten": reasons.count("forgotten"),
            "too_many": reasons.count("max_pages"),
        }

    def found(self, found: FoundPage, now: float) -> None:
        """Take in a page that another process's site has named, unless it is known or was told to be forgotten."""
        self._add_before(found.request_fingerprint, now)
        if self._collection.variants.pages(found.request_fingerprint):
            return
        if self._collection.kept_out([found], now)[0] is None:
            self.add([found], now)

    def is_elsewhere(self, found: FoundPage, found_on: str, now: float) -> bool:
        """Hand a page that was found on a host over if its shard is not here; return whether it was."""
        if self._elsewhere is None or self._elsewhere.is_here(found.host):
            return False
        of = self._collection.shards.number_of(found_on)
        self._send(of, self._elsewhere.found(found, of, now), now)
        return True

    def _send(self, of: int, row: Outgoing | None, now: float) -> None:
        if row is not None:
            self._collection.unsaved.outgoing(of, row, now)
            self._count("crawlsched/handed_over")

    def add_source(
        self, kind: str, url: str, now: float, parent: int | None = None, named_by: str | None = None
    ) -> bool:
        """Take a source of ChangeSignals in, unless it is known; return False if another shard gets it.

        `named_by` is the host whose robots.txt names it.
        """
        if self._elsewhere is not None and kind in POLLED_KINDS and not self._elsewhere.is_here(host := host_of(url)):
            found_on = named_by or (host if parent is None else self._collection.sources[parent].host)
            of = self._collection.shards.number_of(found_on)
            self._send(of, self._elsewhere.source(kind, url, host, named_by, of, now), now)
            return False
        is_new = self._collection.sources.number(kind, url) is None
        source = self._collection.sources.add(kind, url, host_of(url), now, parent, named_by)
        if source is not None:
            self._collection.unsaved.source(source, now)
            if is_new:
                self._count(f"crawlsched/sources/{kind}")
        return True

    def leave_source(self, kind: str, url: str, now: float) -> None:
        """Nobody names a source any more: it is not asked for, and nor is what it lists, until somebody does again."""
        number = self._collection.sources.number(kind, url)
        if number is not None:
            for source in self._collection.sources.leave(number):
                self._collection.unsaved.source(source, now)
