"""Owing: at which visits a page is delivered whatever its content is."""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import Any

from crawlsched.collection.collection import Collection
from crawlsched.pages.marks import ATTEMPTS, FAILURES, OWED, START, TRIED, UNTRACKED
from crawlsched.visits.deliveries import Deliveries, Delivery

__all__ = ["Owing"]

# After so many deliveries that never ended, the next one does not wait for requests that are no pages.
_PATIENCE = 3
_LONGEST_WAIT = 86_400.0


class Owing:
    """What the spider is to get, and what it has got.

    Parameters
    ----------
    collection : Collection
        Whose marks say what was asked for.
    untracked_interval : float
        How often a page is delivered behind which there are requests that are no pages, seconds; and once in each run.
    now : float
        When the run began.
    count : callable
        ``count(name, n=1)`` adds to a statistic.

    Attributes
    ----------
    failing : dict of str to int
        Callbacks that raised, or whose items did, and how often.
    """

    def __init__(
        self, collection: Collection, untracked_interval: float, now: float, count: Callable[..., None]
    ) -> None:
        self._collection = collection
        self._interval = untracked_interval
        self._began_at = now
        self._count = count
        self._started: set[int] = set()  # to which start requests of this run have led
        self._again: dict[int, int] = {}  # what was asked for while a delivery was under way
        self.deliveries: Deliveries | None = None
        self.released: Callable[[int, float], None] = lambda page, now: None
        self.failing: dict[str, int] = {}

    def ask(self, page: int, marks: int, now: float) -> None:
        """A page is to be delivered at its next visit."""
        if self.deliveries is not None and self.deliveries.is_open(page):
            self._again[page] = self._again.get(page, 0) | marks
        known = self._collection.planner.pages.marks.item(page)
        self._collection.set_marks(page, (known | marks) & ~TRIED, now)
        if known & TRIED:
            self.released(page, now)

    def moved(self, old: int, new: int, now: float) -> None:
        """An old address leads to a page: what was asked for there is given by that page, for start() once a run."""
        marks = self._collection.planner.pages.marks.item(old)
        owed = marks & OWED
        if new in self._started:
            owed &= ~START
        elif owed & START:
            self._started.add(new)
        self._collection.set_marks(old, marks & ~OWED, now)
        if owed:
            self.ask(new, owed, now)

    def of(self, page: int, now: float) -> int:
        """Return the marks that ask for a delivery at a visit now; 0: it is delivered only if it is new."""
        marks = self._collection.planner.pages.marks.item(page)
        owed: int = marks & OWED
        if marks & UNTRACKED and self._window(self._collection.planner.pages.crawled_at.item(page)) < self._window(now):
            owed |= UNTRACKED
        return owed

    def _window(self, time: float) -> float:
        # Windows of the interval, counted from the start of the run; what was before it is one of its own.
        return -1.0 if time < self._began_at else floor((time - self._began_at) / self._interval)

    def begun(self, delivery: Delivery, now: float) -> None:
        """A delivery has begun."""
        marks = self._collection.planner.pages.marks.item(delivery.page)
        attempts = ATTEMPTS.of(marks)
        if attempts >= _PATIENCE:
            delivery.is_patient = False
            self._count("crawlsched/deliveries/given_up")
        self._collection.set_marks(delivery.page, ATTEMPTS.put(marks, attempts + 1), now)

    def delivered(self, delivery: Delivery, now: float) -> None:
        """A delivery is complete."""
        page = delivery.page
        marks = self._collection.planner.pages.marks.item(page)
        marks = ATTEMPTS.put(FAILURES.put(marks, 0), 0) & ~(delivery.owed & OWED | UNTRACKED)
        if delivery.n_untracked:
            marks |= UNTRACKED
        self._collection.set_marks(page, marks | self._again.pop(page, 0), now)

    def failed(self, delivery: Delivery, callback: str, now: float) -> None:
        """A callback or a pipeline raised: the page is tried again, ever more rarely."""
        page, planner = delivery.page, self._collection.planner
        self.failing[callback] = self.failing.get(callback, 0) + 1
        marks = planner.pages.marks.item(page)
        n = FAILURES.of(marks) + 1
        self._collection.set_marks(page, ATTEMPTS.put(FAILURES.put(marks, n), 0), now)
        if n > 1:
            planner.put_off(page, now + min(planner.error_interval * 2.0 ** (n - 2), _LONGEST_WAIT), now)
            self._collection.unsaved.page(page, now)

    def status(self) -> dict[str, Any]:
        """What `crawlsched status` says of it."""
        return {"failing_callbacks": self.failing}
