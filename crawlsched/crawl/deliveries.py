"""Deliveries: which pages the spider is to get, which are on their way through it, and how a delivery ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from crawlsched.content.verdict import Circumstances
from crawlsched.crawl.collection import Collection
from crawlsched.crawl.run import OnePass
from crawlsched.pages.marks import AWAITED, OWED, START, TRIED, UNTRACKED, n_failures, with_failures
from crawlsched.slot_clock import DAY
from crawlsched.store import Outcome, PageFacts, host_of

__all__ = ["Delivery", "DeliveryBook"]


@dataclass(slots=True, eq=False)
class Delivery:
    """A response on its way through the spider."""

    page: int  # -1 for a callback's request that is no page
    started_at: float
    # The page's state before the visit (columns as `Planner.columns` gives them), and the number under which the visit
    # is stored.
    facts_before: PageFacts | None = None
    columns_before: dict[str, Any] = field(default_factory=dict)
    observation: int | None = None
    digest: bytes | None = None  # of the delivered content; None if the content was delivered before
    owed: int = 0  # the marks that asked for this delivery
    returned: bool = False  # whether the callback has ended
    n_open: int = 0  # how many of its outputs have not ended
    has_untracked: bool = False  # whether its callback yielded requests that are no pages


class DeliveryBook:
    """Records which pages the spider is to get, is getting, and has got.

    A page's new fingerprint is written as delivered only when its delivery is complete: the callback has ended without
    an exception, and all that it yielded has ended, too. An item ends when it is scraped or dropped, a request when
    the scheduler takes it in. A crash before that leaves the old fingerprint in the store, and the change is delivered
    again.
    """

    def __init__(self, collection: Collection, now: float, one_pass: OnePass | None) -> None:
        self._open: dict[int, Delivery] = {}
        self._of_page: dict[int, list[Delivery]] = {}
        self._started: set[int] = set()  # pages to which start requests of this run have led
        self.failing: dict[str, int] = {}
        self.ended_pages: list[int] = []
        self._collection = collection
        self._began_at = now
        self._count = collection.count
        self._one_pass = one_pass
        settings = collection.settings
        self._circumstances = Circumstances(
            min_change=settings.min_change,
            withhold=settings.withhold,
            delivers_unchanged=settings.callback_on_unchanged,
        )

    @property
    def _marks(self) -> Any:
        return self._collection.planner.pages.marks  # the array is replaced when pages are added

    # -- what is owed

    def ask(self, page: int, marks: int, now: float) -> None:
        """Have a page delivered at its next visit."""
        for delivery in self._of_page.get(page, ()):
            delivery.owed &= ~marks  # marks that are set during this delivery stay due
        known = self._marks.item(page)
        self._collection.set_marks(page, (known | marks) & ~TRIED, now)
        if known & TRIED and self._one_pass is not None:
            self._one_pass.released(page, now)

    def moved(self, old: int, new: int, now: float) -> None:
        """Move the deliveries that are due for an old address to its new page.

        A page is delivered for start() at most once a run.
        """
        marks = self._marks.item(old)
        owed = marks & OWED
        if new in self._started:
            owed &= ~START
        elif owed & START:
            self._started.add(new)
        self._collection.set_marks(old, marks & ~OWED, now)
        if owed:
            self.ask(new, owed, now)

    def owed(self, page: int) -> int:
        """Return the marks that ask for a delivery at a visit now; 0: the content is delivered only if it is new."""
        marks = self._marks.item(page)
        owed: int = marks & OWED
        if marks & UNTRACKED and self._collection.planner.pages.crawled_at.item(page) < self._began_at:
            # The callback has to yield these requests in each run anew: Scrapy's filter lets each through once a run.
            owed |= UNTRACKED
        return owed

    def wants_content(self, page: int) -> bool:
        """Whether a visit needs the content even if it is unchanged, since a 304 has nothing for a callback."""
        return self._circumstances.delivers_unchanged or bool(self.owed(page))

    def circumstances(self, page: int) -> Circumstances:
        """Return what a verdict needs to know of a page's deliveries, and of their settings."""
        others = self._of_page.get(page, ())
        return self._circumstances._replace(
            owed=self.owed(page),
            under_way=[delivery.digest for delivery in others],
            owed_under_way=reduce(or_, (delivery.owed for delivery in others), 0),
        )

    def __len__(self) -> int:
        return len(self._open)

    @property
    def n_untracked(self) -> int:
        """The number of requests under way that are no pages."""
        return len(self._open) - sum(map(len, self._of_page.values()))

    def get(self, token: object) -> Delivery | None:
        """Return the open delivery of this visit."""
        return self._open.get(token) if isinstance(token, int) else None

    @property
    def is_calling_back(self) -> bool:
        """Whether a callback is at work."""
        return any(not delivery.returned for delivery in self._open.values())

    # -- a delivery begins

    def begin(self, token: int, delivery: Delivery) -> None:
        """A response goes to the spider."""
        facts = self._collection.facts_of(delivery.page)
        delivery.digest = facts.pending_fingerprint or facts.fingerprint
        self._open[token] = delivery
        self._of_page.setdefault(delivery.page, []).append(delivery)

    def untracked_sent(self, token: int, now: float) -> None:
        """A request that is no page goes out; it ends with its own callback and items."""
        self._open[token] = Delivery(-1, now)

    # -- what a callback yields

    def yielded(self, token: int) -> None:
        """The callback has yielded an item or a request."""
        if (delivery := self._open.get(token)) is not None:
            delivery.n_open += 1

    def called_back(self, token: int, now: float) -> None:
        """The callback has ended."""
        if (delivery := self._open.get(token)) is not None:
            delivery.returned = True
            self._end_if_complete(token, delivery, now)

    def output_ended(self, token: object, now: float) -> None:
        """An item or a request that the callback yielded has ended."""
        if isinstance(token, int) and (delivery := self._open.get(token)) is not None:
            delivery.n_open -= 1
            self._end_if_complete(token, delivery, now)

    def failed(self, token: object, now: float) -> None:
        """The callback or a pipeline raised, or there was no response: the page is tried again, ever more rarely.

        The pending fingerprint stays, so the next visit brings the content again, changed or not.
        """
        delivery, planner = self._taken_out(token), self._collection.planner
        if delivery is None or delivery.page < 0:
            return
        page = delivery.page
        self._count("crawlsched/undelivered")
        if not self._collection.knows(page):
            return
        data = self._collection.facts_of(page).template_data or {}
        callback = str(data.get("callback") or "parse")
        self.failing[callback] = self.failing.get(callback, 0) + 1
        marks = self._marks.item(page)
        n = n_failures(marks) + 1
        self._collection.set_marks(page, with_failures(marks, n), now)
        if n > 1:
            planner.put_off(page, now + min(planner.error_interval * 2.0 ** (n - 2), DAY), now)
            self._collection.unsaved.page(page, now)

    def give_up(self, started_before: float) -> None:
        """Give up the deliveries that began before this time."""
        for token in [token for token, delivery in self._open.items() if delivery.started_at < started_before]:
            if (delivery := self._taken_out(token)) is not None and delivery.page >= 0:
                self._count("crawlsched/undelivered")

    def pages(self) -> list[int]:
        """Return the pages with open deliveries."""
        return list(self._of_page)

    def leave(self, is_meant: Callable[[int], bool]) -> None:
        """Forget the deliveries of pages that belong to another process from now on."""
        for token in [token for token, d in self._open.items() if d.page >= 0 and is_meant(d.page)]:
            self._taken_out(token)

    def _end_if_complete(self, token: int, delivery: Delivery, now: float) -> None:
        if delivery.returned and delivery.n_open <= 0:
            self._taken_out(token)
            if delivery.page >= 0:
                self._delivered(delivery, now)

    def _taken_out(self, token: object) -> Delivery | None:
        """Remove an open delivery without counting it; return it."""
        delivery = self._open.pop(token, None) if isinstance(token, int) else None
        if delivery is not None and delivery.page >= 0:
            self.ended_pages.append(delivery.page)
            others = self._of_page[delivery.page]
            others.remove(delivery)
            if not others:
                del self._of_page[delivery.page]
        return delivery

    # -- a delivery ends

    def _delivered(self, delivery: Delivery, now: float) -> None:
        page = delivery.page
        if not self._collection.knows(page):  # forgotten meanwhile
            return
        facts = self._collection.facts_of(page)
        if delivery.digest is not None and delivery.digest != facts.fingerprint:
            kind = "new" if facts.fingerprint is None else "changed"
            self._collection.unsaved.feed(page, now, kind, delivery.observation)
        # A change that was seen after this delivery began is still to be delivered.
        if facts.pending_fingerprint is not None and facts.pending_fingerprint == delivery.digest:
            self._collection.put_facts(facts._replace(fingerprint=delivery.digest, pending_fingerprint=None), now)
        marks = with_failures(self._marks.item(page), 0) & ~(delivery.owed & OWED | UNTRACKED)
        if delivery.has_untracked:
            marks |= UNTRACKED
        self._collection.set_marks(page, marks, now)
        self._count("crawlsched/delivered")

    def not_the_page(self, token: object, url: str, now: float) -> None:
        """The callback says that a response is not the page, so the response does not count."""
        self._count("crawlsched/not_the_page")
        self._collection.withheld.note(host_of(url), "not_the_page", url, now)
        delivery = self._taken_out(token)
        if delivery is None or delivery.page < 0 or not self._collection.knows(delivery.page):
            return
        page = delivery.page
        # Requests may have changed the page's template meanwhile; the new template stays.
        kept = self._collection.facts_of(page)
        assert delivery.facts_before is not None
        facts = delivery.facts_before._replace(template=kept.template, template_data=kept.template_data)
        self._collection.put_facts(facts, now)
        self._collection.planner.take_back(delivery.columns_before, now)
        if delivery.observation is not None:
            batch, _ = self._collection.unsaved.of_page(page, now)
            batch.retracted[delivery.observation] = str(Outcome.WRONG)
        self._collection.unsaved.page(page, now)

    def look_at_ended(self) -> None:
        """Find out which new pages of this run have been visited and delivered."""
        still = []
        for page in self.ended_pages:
            if not self._marks.item(page) & AWAITED:
                continue
            if page in self._of_page:
                still.append(page)
            else:
                self._marks[page] &= ~AWAITED & 0xFFFF
                self._collection.n_awaited -= 1
        self.ended_pages = still
