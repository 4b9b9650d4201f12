"""Delivering: a response goes to the spider, and what is known of its page when that has ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from crawlsched.collection.collection import Collection
from crawlsched.content.verdict import Circumstances
from crawlsched.pages.marks import AWAITED, START
from crawlsched.refresh.owing import Owing
from crawlsched.store import Outcome, PageFacts, host_of
from crawlsched.visits.deliveries import Deliveries, Delivery

__all__ = ["Before", "Delivering"]

logger = logging.getLogger(__name__)


class Before(NamedTuple):
    """What was known of a page before a visit whose response goes to the spider.

    Attributes
    ----------
    facts : PageFacts
    columns : dict of ndarray
        As `Planner.columns` gives them.
    observation : int or None
        Under which number the visit is kept.
    """

    facts: PageFacts
    columns: dict[str, Any]
    observation: int | None = None


class Delivering:
    """How responses get to the spider.

    Parameters
    ----------
    collection : Collection
        The pages.
    owing : Owing
        Says which visits are delivered whatever they found.
    count : callable
        ``count(name, n=1)`` adds to a statistic.
    tell_parent : callable, optional
        See `Deliveries`.

    Attributes
    ----------
    ended_pages : list of int
        Pages whose visit or delivery may have been the last that somebody waits for.
    """

    def __init__(
        self,
        collection: Collection,
        owing: Owing,
        count: Callable[..., None],
        *,
        tell_parent: Callable[[int, float], None] | None = None,
    ) -> None:
        self.deliveries = Deliveries(
            delivered=self._delivered, failed=self._failed, given_up=self._given_up, tell_parent=tell_parent
        )
        self.ended_pages: list[int] = []
        self._collection = collection
        self._owing = owing
        self._count = count
        settings = collection.settings
        self._circumstances = Circumstances(
            min_change=settings.min_change,
            withhold=settings.withhold,
            delivers_unchanged=settings.callback_on_unchanged,
        )
        self._said_led_to_nothing = False
        owing.deliveries = self.deliveries

    def circumstances(self, page: int, now: float) -> Circumstances:
        """Return what a verdict on a page has to know of its deliveries, and of what the settings say of them."""
        under_way, owed_under_way = self.deliveries.under_way(page)
        return self._circumstances._replace(
            owed=self._owing.of(page, now), under_way=under_way, owed_under_way=owed_under_way
        )

    def moved(self, old: int, new: int, now: float) -> None:
        """See `Owing.moved`."""
        self._owing.moved(old, new, now)

    def begin(self, token: int, before: Before, owed: int, now: float) -> None:
        """A response goes to the spider, which these marks ask for."""
        facts = self._collection.facts_of(before.facts.page)
        digest = facts.pending_fingerprint or facts.fingerprint
        delivery = self.deliveries.begin(token, facts.page, now, digest=digest, owed=owed, before=before)
        self._owing.begun(delivery, now)

    # -- a delivery ends

    def _delivered(self, delivery: Delivery, now: float) -> None:
        page = delivery.page
        self.ended_pages.append(page)
        if not self._collection.knows(page):  # forgotten meanwhile
            return
        facts = self._collection.facts_of(page)
        if delivery.digest is not None and delivery.digest != facts.fingerprint:
            kind = "new" if facts.fingerprint is None else "changed"
            self._collection.unsaved.told(page, now, kind, delivery.before.observation)
        # What was seen since is another delivery's.
        if facts.pending_fingerprint is not None and facts.pending_fingerprint == delivery.digest:
            self._collection.put_facts(facts._replace(fingerprint=delivery.digest, pending_fingerprint=None), now)
        if delivery.owed & START and facts.fingerprint is not None and 0 < delivery.n_yielded == delivery.n_known:
            self._say_led_to_nothing(facts.url)
        self._owing.delivered(delivery, now)
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
        # The pending fingerprint stays, so the next visit brings the content again, whether it changed or not.
        self.ended_pages.append(delivery.page)
        self._count("crawlsched/undelivered")
        if self._collection.knows(delivery.page):
            data = self._collection.facts_of(delivery.page).template_data or {}
            self._owing.failed(delivery, str(data.get("callback") or "parse"), now)

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
            self._collection.unsaved.retract(before.observation, str(Outcome.WRONG), now)
        self._collection.unsaved.page(page, now)

    def look_at_ended(self) -> None:
        """Note which pages that a request of this run made have had their first visit and its delivery."""
        marks, still = self._collection.planner.pages.marks, []
        for page in self.ended_pages:
            if not marks.item(page) & AWAITED:
                continue
            if self.deliveries.is_open(page):
                still.append(page)
            else:
                marks[page] &= ~AWAITED & 0xFFFF
                self._collection.n_awaited -= 1
        self.ended_pages = still
