"""Dispatch: which visit begins at a slot, with which validators, and how its response will be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf

from crawlsched.content.reading import MOST_TEXT_BYTES, Body, Content, is_current, is_quick, read_content
from crawlsched.crawl.collection import Collection
from crawlsched.crawl.deliveries import DeliveryBook
from crawlsched.crawl.probes import Probe, Probes
from crawlsched.crawl.recipe_choice import Recipes, meant_for
from crawlsched.crawl.request_templates import LEFT_OUT
from crawlsched.crawl.run import OnePass, Starts
from crawlsched.crawl.visits import Visit, VisitEnds, Visits
from crawlsched.pages.marks import START, TRIED
from crawlsched.slot_clock import DAY
from crawlsched.store import PageFacts, Source, host_of

__all__ = ["Dispatcher"]

# A slot gives up after this number of pages whose requests cannot be made or are refused.
_TRIES = 20


@dataclass(eq=False)
class Dispatcher:
    """How visits begin."""

    collection: Collection
    visits: Visits
    probes: Probes
    ends: VisitEnds
    book: DeliveryBook
    starts: Starts
    one_pass: OnePass | None

    def __post_init__(self) -> None:
        self._recipes = Recipes(self.collection.settings)
        self._planner, self._count = self.collection.planner, self.collection.count
        self._pick = self._planner.pick if self.one_pass is None else self.one_pass.pick

    def next_pages(self, now: float, host_free_at: Callable[[int, float], float]) -> Iterator[tuple[Visit, PageFacts]]:
        """Yield visits of the most valuable pages whose hosts may be asked now; a visit begins when it is yielded."""
        for _ in range(_TRIES):
            if (begun := self._begin_read(now, host_free_at)) is None:
                if (pick := self._pick(now, host_free_at)) is None:
                    return
                begun = self._begin(pick.page, pick.reason, now)
            if begun is not None:
                yield begun
            elif self.collection.reader.has_picked:
                return  # a slot makes one page wait, no more

    def next_start(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Begin the visit of the next page in line among the first start requests, and return it."""
        line, planner = self.starts.line, self._planner
        planner.frontier.advance(now)  # as `pick` does: probes need the number of new pages
        if (begun := self._begin_read(now, host_free_at)) is not None:
            return begun
        for _ in range(len(line)):
            page = line.popleft()
            if not self.collection.knows(page) or planner.in_flight(page):
                continue
            if host_free_at(planner.pages.host.item(page), now) > now:
                line.append(page)
                continue
            planner.hold(page)
            if (begun := self._begin(page, "start", now)) is not None or self.collection.reader.has_picked:
                return begun
        return None

    def _begin_read(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Begin the visit of a page that was picked before its facts were read."""
        while (read := self.collection.reader.take()) is not None:
            page, reason = read
            if not self._planner.in_flight(page):  # an error has ended its turn
                continue
            is_full = self.one_pass is not None and self.one_pass.is_full
            if is_full or host_free_at(self._planner.pages.host.item(page), now) > now:
                self._put_back(page, reason, now)
            elif (begun := self._begin(page, reason, now, is_read=True)) is not None:
                return begun
        return None

    def _put_back(self, page: int, reason: str, now: float) -> None:
        self._planner.release(page, now)
        if reason == "start":
            self.starts.line.append(page)
        elif reason == "forced":
            self._planner.force([page], now)

    def _begin(
        self, page: int, reason: str, now: float, probe: Probe | None = None, *, is_read: bool = False
    ) -> tuple[Visit, PageFacts] | None:
        try:
            # Pages of second fetches were fetched a moment ago, so their facts are here.
            if not is_read and probe is None and page not in self.collection.facts:
                self.collection.reader.wait_for(page, reason)
                return None
            facts = self.collection.facts_of(page)
            if not self._has_credentials(facts, now):
                return None
            if probe is not None and probe.impossible_url is not None:
                facts = facts._replace(url=probe.impossible_url)
            host = self._planner.pages.host.item(page)
            visit = self.visits.open(page=page, host=host, url=facts.url, now=now)
        except Exception as error:
            self.ends.failed(f"The page number {page} cannot be visited", error, now, page=page)
            return None
        visit.probe = probe
        if self.one_pass is not None and probe is None:
            self.one_pass.tried(page)
        self._count("crawlsched/dispatched")
        self.collection.reader.n_dispatched += 1
        if reason != "value":
            self._count(f"crawlsched/dispatched/{reason}")
        return visit, facts

    def _has_credentials(self, facts: PageFacts, now: float) -> bool:
        """Whether no credentials of a page's request were struck out of the database."""
        if not facts.template_data or LEFT_OUT not in facts.template_data:
            return True
        self._planner.release(facts.page, now)
        self._planner.put_off(facts.page, now + DAY, now)
        self.collection.withheld.note(host_of(facts.url), "credentials", facts.url, now)
        self._count("crawlsched/withheld/credentials")
        self.collection.mark(facts.page, TRIED, now)  # in one pass, the page has had its turn
        return False

    def next_source(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, Source] | None:
        """Return a sitemap that is due, and begin its visit."""
        sources, shards, hosts = self.collection.sources, self.collection.shards, self.collection.hosts

        def may_go(source: Source) -> bool:
            return shards.of_name(source.host) is not None and host_free_at(hosts.number(source.host), now) <= now

        if (number := sources.next_due(now, may_go)) is None:
            return None
        try:
            source = sources[number]
            visit = self.visits.open(source=number, host=hosts.number(source.host), url=source.url, now=now)
        except Exception as error:
            self.ends.failed(f"The source number {number} cannot be polled", error, now, source=number)
            return None
        self._count("crawlsched/dispatched")
        return visit, source

    def next_probe(self, now: float, host_free_at: Callable[[int, float], float]) -> tuple[Visit, PageFacts] | None:
        """Begin the oldest second fetch that may go out now, and return it."""
        while (probe := self.probes.next_due(now, lambda host: host_free_at(host, now) <= now)) is not None:
            if not self.collection.knows(probe.page):  # forgotten meanwhile
                continue
            if (begun := self._begin(probe.page, "probe", now, probe)) is not None:
                return begun
        return None

    def validators(self, visit: Visit) -> tuple[str | None, str | None]:
        """Return the ETag and Last-Modified with which a visit may be made conditional."""
        if visit.source >= 0:
            source = self.collection.sources[visit.source]
            return source.etag, source.last_modified
        facts = self.collection.facts_of(visit.page)
        recipe = self._recipes.of(facts.url, meant_for(facts.template_data))
        # A 304 is no use for an undelivered change, for a second fetch, or for a page that has another recipe now.
        if facts.pending_fingerprint is not None or facts.fingerprint is None or visit.probe is not None:
            return None, None
        if self.book.wants_content(visit.page) or not is_current(facts.recipe, recipe):
            return None, None
        return self.collection.validators.to_send(visit.host, facts.etag, facts.last_modified)

    def is_asked_for(self, visit: Visit) -> bool:
        """Whether the spider itself asked for this visit in this run; False for later visits of the page."""
        pages = self._planner.pages
        return pages.crawled_at.item(visit.page) == -inf or bool(pages.marks.item(visit.page) & START)

    def reading(self, visit: Visit, body: Body, meant: object) -> tuple[Callable[[], Content], bool]:
        """Return a function that reads a response, and whether it is quick enough to be called in this thread."""
        recipe = self._recipes.of(body.url, meant)
        if body.encoding is not None and recipe.method != "raw_bytes":
            body = body._replace(body=body.body[:MOST_TEXT_BYTES])
        facts = self.collection.facts_of(visit.page) if self.collection.knows(visit.page) else None
        before, given = None, b""
        if facts is not None and is_current(facts.recipe, recipe):
            before, given = facts.pending_fingerprint or facts.fingerprint, facts.block_sketch
        address = None
        if visit.probe is not None and visit.probe.impossible_url is not None:
            address = body.url
            # The body is read under the URL of the suspect page, so that the two contents can be compared.
            body, recipe = body._replace(url=visit.probe.first.url), self._recipes.of(visit.probe.first.url, meant)
            before, given = None, b""
        text_bytes = self.collection.settings.kept_text_bytes
        first = None if visit.probe is None else visit.probe.first
        read = partial(
            read_content, body, recipe, before=before, text_bytes=text_bytes, address=address, given=given, first=first
        )
        return read, is_quick(body, recipe)
