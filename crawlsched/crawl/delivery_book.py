"""The book of deliveries: what a page's visits owe the spider, what goes to it, and how that ends."""

from __future__ import annotations

import logging
from math import floor
from typing import Any, NamedTuple

from crawlsched.content.verdict import Circumstances
from crawlsched.crawl.collection import Collection
from crawlsched.crawl.deliveries import Deliveries, Delivery
from crawlsched.crawl.one_pass import OnePass
from crawlsched.pages.marks import ATTEMPTS, AWAITED, FAILURES, OWED, START, TRIED, UNTRACKED
from crawlsched.store import Outcome, PageFacts, host_of

__all__ = ["Before", "DeliveryBook"]

logger = logging.getLogger(__name__)

# How often a page is delivered behind which there are requests that are no pages, seconds; and once in each run.
_UNTRACKED_INTERVAL = 86_400.0
# After this number of deliveries that never ended, the next one does not wait for requests that are no pages.
_PATIENCE = 3
_LONGEST_WAIT = 86_400.0


class Before(NamedTuple):
    """What was known of a page before a visit whose response goes to the spider."""

    facts: PageFacts
    columns: dict[str, Any]  # as `Planner.columns` gives them
    observation: int | None = None  # under which number the visit is kept


class DeliveryBook:
    """What the spider is to get, and what it has got."""

    def __init__(self, collection: Collection, now: float, one_pass: OnePass | None) -> None:
        self.deliveries = Deliveries(delivered=self._delivered, failed=self._failed, given_up=self._given_up)
        self.failing: dict[str, int] = {}
        self.ended_pages: list[int] = []
        self._collection = collection
        self._began_at = now
        self._count = collection.count
        self._one_pass = one_pass
        self._started: set[int] = set()  # to which start requests of this run have led
        self._again: dict[int, int] = {}  # what was asked for while a delivery was under way
        self._said_led_to_nothing = False
        settings = collection.settings
        self._circumstances = Circumstances(
            min_change=settings.min_change,
            withhold=settings.withhold,
            delivers_unchanged=settings.callback_on_unchanged,
        )

    @property
    def _marks(self) -> Any:
        return self._collection.planner.pages.marks  # another array whenever there are more pages

    # -- what is owed

    def ask(self, page: int, marks: int, now: float) -> None:
        """A page is to be delivered at its next visit."""
        if self.deliveries.is_open(page):
            self._again[page] = self._again.get(page, 0) | marks
        known = self._marks.item(page)
        self._collection.set_marks(page, (known | marks) & ~TRIED, now)
        if known & TRIED and self._one_pass is not None:
            self._one_pass.released(page, now)

    def moved(self, old: int, new: int, now: float) -> None:
        """An old address leads to a page: what was asked for there is given by that page, for start() once a run."""
        marks = self._marks.item(old)
        owed = marks & OWED
        if new in self._started:
            owed &= ~START
        elif owed & START:
            self._started.add(new)
        self._collection.set_marks(old, marks & ~OWED, now)
        if owed:
            self.ask(new, owed, now)

    def owed(self, page: int, now: float) -> int:
        """Return the marks that ask for a delivery at a visit now; 0: it is delivered only if it is new."""
        marks = self._marks.item(page)
        owed: int = marks & OWED
        if marks & UNTRACKED and self._window(self._collection.planner.pages.crawled_at.item(page)) < self._window(now):
            owed |= UNTRACKED
        return owed

    def _window(self, time: float) -> float:
        # Windows of the interval, counted from the start of the run; what was before it is one of its own.
        return -1.0 if time < self._began_at else floor((time - self._began_at) / _UNTRACKED_INTERVAL)

    def wants_content(self, page: int, now: float) -> bool:
        """Whether a visit has to bring content, changed or not: a 304 has nothing for a callback."""
        return self._circumstances.delivers_unchanged or bool(self.owed(page, now))

    def circumstances(self, page: int, now: float) -> Circumstances:
        """Return what a verdict on a page has to know of its deliveries, and of what the settings say of them."""
        under_way, owed_under_way = self.deliveries.under_way(page)
        return self._circumstances._replace(
            owed=self.owed(page, now), under_way=under_way, owed_under_way=owed_under_way
        )

    # -- a delivery begins

    def begin(self, token: int, before: Before, owed: int, now: float) -> None:
        """A response goes to the spider, which these marks ask for."""
        facts = self._collection.facts_of(before.facts.page)
        digest = facts.pending_fingerprint or facts.fingerprint
        delivery = self.deliveries.begin(token, facts.page, now, digest=digest, owed=owed, before=before)
        marks = self._marks.item(facts.page)
        attempts = ATTEMPTS.of(marks)
        if attempts >= _PATIENCE:
            delivery.is_patient = False
            self._count("crawlsched/deliveries/given_up")
        self._collection.set_marks(facts.page, ATTEMPTS.put(marks, attempts + 1), now)

    # -- a delivery ends

    def _delivered(self, delivery: Delivery, now: float) -> None:
        page = delivery.page
        self.ended_pages.append(page)
        if not self._collection.knows(page):  # forgotten meanwhile
            return
        facts = self._collection.facts_of(page)
        if delivery.digest is not None and delivery.digest != facts.fingerprint:
            kind = "new" if facts.fingerprint is None else "changed"
            self._collection.unsaved.feed(page, now, kind, delivery.before.observation)
        # What was seen since is another delivery's.
        if facts.pending_fingerprint is not None and facts.pending_fingerprint == delivery.digest:
            self._collection.put_facts(facts._replace(fingerprint=delivery.digest, pending_fingerprint=None), now)
        if delivery.owed & START and facts.fingerprint is not None and 0 < delivery.n_yielded == delivery.n_known:
            self._say_led_to_nothing(facts.url)
        marks = ATTEMPTS.put(FAILURES.put(self._marks.item(page), 0), 0) & ~(delivery.owed & OWED | UNTRACKED)
        if delivery.n_untracked:
            marks |= UNTRACKED
        self._collection.set_marks(page, marks | self._again.pop(page, 0), now)
        self._count("crawlsched/delivered")

    def _say_led_to_nothing(self, url: str) -> None:
        if not self._circumstances.delivers_unchanged and not self._said_led_to_nothing:
            self._said_led_to_nothing = True
            logger.info(
                "The callback of the start page %s asked for nothing but known pages, whose callbacks run when they "
                "have changed (this is said once). A spider that counts in itself (self.page += 1) would stop here; "
                "CRAWLSCHED_CALLBACK_ON_UNCHANGED = True lets all callbacks run.",
                url,
            )

    def _failed(self, delivery: Delivery, now: float) -> None:
        """Try a page again whose callback or pipeline raised, ever more rarely.

        The pending fingerprint stays, so the next visit brings the content again, changed or not.
        """
        page, planner = delivery.page, self._collection.planner
        self._given_up(delivery, now)
        if not self._collection.knows(page):
            return
        data = self._collection.facts_of(page).template_data or {}
        callback = str(data.get("callback") or "parse")
        self.failing[callback] = self.failing.get(callback, 0) + 1
        marks = self._marks.item(page)
        n = FAILURES.of(marks) + 1
        self._collection.set_marks(page, ATTEMPTS.put(FAILURES.put(marks, n), 0), now)
        if n > 1:
            planner.put_off(page, now + min(planner.error_interval * 2.0 ** (n - 2), _LONGEST_WAIT), now)
            self._collection.unsaved.page(page, now)

    def _given_up(self, delivery: Delivery, now: float) -> None:
        self.ended_pages.append(delivery.page)
        self._count("crawlsched/undelivered")

    def not_the_page(self, token: object, url: str, now: float) -> None:
        """The callback says that a response is not the page it should be: nothing of it counts."""
        self._count("crawlsched/not_the_page")
        self._collection.withheld.note(host_of(url), "not_the_page", url, now)
        delivery = self.deliveries.revoked(token, now)
        if delivery is None or delivery.page < 0 or not self._collection.knows(delivery.page):
            return
        page, before = delivery.page, delivery.before
        self.ended_pages.append(page)
        # What requests have said of it since stays.
        kept = self._collection.facts_of(page)
        facts = before.facts._replace(template=kept.template, template_data=kept.template_data)
        self._collection.put_facts(facts, now)
        self._collection.planner.take_back(before.columns, now)
        if before.observation is not None:
            self._collection.unsaved.retract(page, before.observation, str(Outcome.WRONG), now)
        self._collection.unsaved.page(page, now)

    def look_at_ended(self) -> None:
        """Look which new pages of this run have been visited and delivered."""
        still = []
        for page in self.ended_pages:
            if not self._marks.item(page) & AWAITED:
                continue
            if self.deliveries.is_open(page):
                still.append(page)
            else:
                self._collection.first_visit_ended(page)
        self.ended_pages = still
