"""Delivering: a response goes to the spider, and what is known of its page when that has ended."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from crawlsched.collection.collection import Collection
from crawlsched.pages.marks import AWAITED, SHOWN, START
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
    owed : int
        The marks that ask for the delivery.
    observation : int
        Under which number the visit is kept.
    """

    facts: PageFacts
    columns: dict[str, Any]
    owed: int
    observation: int = -1


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
    delivers_unchanged : bool, default False
        Whether the spider gets what did not change, too.
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
        delivers_unchanged: bool = False,
    ) -> None:
        self.deliveries = Deliveries(delivered=self._delivered, failed=self._failed, given_up=self._given_up)
        self.ended_pages: list[int] = []
        self._collection = collection
        self._owing = owing
        self._count = count
        self._delivers_unchanged = delivers_unchanged
        self._said_led_to_nothing = False
        owing.deliveries = self.deliveries

    def before(self, facts: PageFacts, *, is_new: bool, reason: str | None, now: float) -> Before | None:
        """Return what is known of a page before its visit counts, if the response goes to the spider.

        Parameters
        ----------
        facts : PageFacts
            What was kept of the content seen last.
        is_new : bool
            Whether the content is new to the spider.
        reason : str or None
            Why other content is not; what is held back so is noted (`Withheld`), or delivered where CRAWLSCHED_WITHHOLD
            says so.
        now : float
        """
        owed = self._owing.of(facts.page, now)
        if not is_new and not owed and reason is not None:
            if self._collection.withheld.may(reason):
                self._collection.withheld.note(host_of(facts.url), reason, facts.url, now)
            else:
                owed = SHOWN
        if not (is_new or owed or self._delivers_unchanged):
            return None
        return Before(facts, self._collection.planner.columns([facts.page]), owed)

    def moved(self, old: int, new: int, now: float) -> None:
        """See `Owing.moved`."""
        self._owing.moved(old, new, now)

    def begin(self, token: int, before: Before, *, is_new: bool, changed: bool | None, now: float) -> bool | None:
        """The response goes to the spider; return whether it is other content than before, None if it does not go."""
        page = before.facts.page
        facts = self._collection.facts_of(page)
        digest = facts.pending_fingerprint or facts.fingerprint
        if self.deliveries.is_open(page, digest) and not before.owed & ~self.deliveries.owed_of(page):
            self._count("crawlsched/deliveries/under_way")
            return None
        delivery = self.deliveries.begin(token, page, now, digest=digest, owed=before.owed, before=before)
        self._owing.begun(delivery, now)
        return bool(changed or before.facts.fingerprint is None or (is_new and digest != before.facts.fingerprint))

    # -- a delivery ends

    def _delivered(self, delivery: Delivery, now: float) -> None:
        page = delivery.page
        self.ended_pages.append(page)
        if not self._collection.knows(page):  # forgotten meanwhile
            return
        facts = self._collection.facts_of(page)
        if delivery.digest is not None and delivery.digest != facts.fingerprint:
            seen = getattr(delivery.before, "observation", -1)
            kind = "new" if facts.fingerprint is None else "changed"
            self._collection.unsaved.told(page, now, kind, seen if seen >= 0 else None)
        # What was seen since is another delivery's.
        if facts.pending_fingerprint is not None and facts.pending_fingerprint == delivery.digest:
            self._collection.put_facts(facts._replace(fingerprint=delivery.digest, pending_fingerprint=None), now)
        if delivery.owed & START and facts.fingerprint is not None and 0 < delivery.n_yielded == delivery.n_known:
            self._say_led_to_nothing(facts.url)
        self._owing.delivered(delivery, now)
        self._count("crawlsched/delivered")

    def _say_led_to_nothing(self, url: str) -> None:
        if not self._delivers_unchanged and not self._said_led_to_nothing:
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
        self._collection.unsaved.retract(page, before.observation, str(Outcome.WRONG), now)
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
