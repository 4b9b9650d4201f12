"""Deliveries: responses that the spider's callback, pipelines and further requests have not yet finished with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["Deliveries", "Delivery"]


class Delivery:
    """A response on its way through the spider.

    Attributes
    ----------
    before : object
        What was known of the page before the visit, should the callback say that it is not the page.
    n_yielded, n_known : int
        How much its callback yielded, and how much of that were requests for known pages.
    """

    __slots__ = (
        *("before", "digest", "is_patient", "n_open", "n_untracked", "n_waiting", "owed", "page", "parent"),
        *("n_known", "n_yielded", "returned", "started_at"),
    )

    def __init__(self, page: int, started_at: float, digest: bytes | None, owed: int, before: Any) -> None:
        self.page = page  # the page; -1: a request that is no page, which a callback has yielded
        self.started_at = started_at
        self.digest = digest  # of the content that is delivered; None where it was delivered before
        self.owed = owed  # the marks that asked for it
        self.before = before
        self.parent: int | None = None  # the delivery whose callback yielded this request
        self.is_patient = True
        self.returned = False  # the callback
        self.n_open = 0  # of what it yielded
        self.n_waiting = 0  # requests among them that are no pages
        self.n_untracked = 0  # how many of its callback's requests were no pages
        self.n_yielded = self.n_known = 0


class Deliveries:
    """Responses on their way through the spider.

    A page's new fingerprint is written as delivered only when its delivery is complete: the callback has ended without
    an exception, and all that it yielded has ended, too. An item ends scraped or dropped; a request for a page when the
    page knows of it; another request when its own response has been delivered, or with an error. A crash before that
    leaves the old fingerprint in the store, and the change is delivered again.

    Examples
    --------
    >>> deliveries = Deliveries(
    ...     delivered=lambda delivery, now: print("delivered", delivery.page), failed=print, given_up=print
    ... )
    >>> _ = deliveries.begin(1, page=7, now=0.0)
    >>> deliveries.yielded(1)
    >>> deliveries.called_back(1, now=0.1)
    >>> deliveries.output_ended(1, now=0.2)
    delivered 7
    """

    def __init__(
        self,
        *,
        delivered: Callable[[Delivery, float], None],
        failed: Callable[[Delivery, float], None],
        given_up: Callable[[Delivery, float], None],
    ) -> None:
        self._delivered = delivered
        self._failed = failed
        self._given_up = given_up
        self._open: dict[int, Delivery] = {}
        self._of_page: dict[int, list[Delivery]] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def n_untracked(self) -> int:
        """How many requests that are no pages are under way."""
        return len(self._open) - sum(map(len, self._of_page.values()))

    def get(self, token: object) -> Delivery | None:
        """Return the open delivery of this visit."""
        return self._open.get(token) if isinstance(token, int) else None

    def is_open(self, page: int) -> bool:
        """Whether the page is on its way through the spider."""
        return page in self._of_page

    def is_called_back(self, page: int) -> bool:
        """Whether a callback is at work on the page."""
        return any(not delivery.returned for delivery in self._of_page.get(page, ()))

    def is_waited_for(self, token: int) -> bool:
        """Whether the response of a visit, or its callback, is still to come."""
        return token in self._open and not self._open[token].returned

    def under_way(self, page: int) -> tuple[list[bytes | None], int]:
        """Return the digests of the page's open deliveries, and the marks that asked for these."""
        digests: list[bytes | None] = []
        owed = 0
        for delivery in self._of_page.get(page, ()):
            digests.append(delivery.digest)
            owed |= delivery.owed
        return digests, owed

    def begin(
        self, token: int, page: int, now: float, *, digest: bytes | None = None, owed: int = 0, before: Any = None
    ) -> Delivery:
        """A page's response goes to the spider."""
        delivery = self._open[token] = Delivery(page, now, digest, owed, before)
        self._of_page.setdefault(page, []).append(delivery)
        return delivery

    # -- requests that are no pages

    def untracked_waits(self, parent: int) -> None:
        """A request that is no page was yielded, and waits for its slot; the delivery waits for it."""
        if (delivery := self._open.get(parent)) is not None:
            delivery.n_untracked += 1
            if delivery.is_patient:
                delivery.n_open += 1
                delivery.n_waiting += 1

    def untracked_sent(self, token: int, parent: int | None, now: float) -> None:
        """A request that is no page goes out; its own callback and items end it."""
        delivery = self._open[token] = Delivery(-1, now, None, 0, None)
        delivery.parent = parent

    def untracked_ended(self, parent: int, now: float) -> None:
        """Such a request has ended: with all that came of it, with an error, filtered or dropped."""
        if (delivery := self._open.get(parent)) is not None and delivery.is_patient:
            delivery.n_waiting -= 1
            self.output_ended(parent, now)

    # -- what a callback yields

    def yielded(self, token: int) -> None:
        """The callback has yielded something that has an end."""
        if (delivery := self._open.get(token)) is not None:
            delivery.n_open += 1
            delivery.n_yielded += 1

    def called_back(self, token: int, now: float) -> None:
        """The callback has ended."""
        if (delivery := self._open.get(token)) is not None:
            delivery.returned = True
            self._end_if_complete(token, delivery, now)

    def output_ended(self, token: object, now: float) -> None:
        """Something that the callback yielded has ended."""
        if isinstance(token, int) and (delivery := self._open.get(token)) is not None:
            delivery.n_open -= 1
            self._end_if_complete(token, delivery, now)

    def failed(self, token: object, now: float) -> None:
        """The callback or a pipeline raised, or there was no response."""
        if (delivery := self._taken_out(token)) is not None:
            if delivery.page >= 0:
                self._failed(delivery, now)
            self._tell_parent(delivery, now)

    def revoked(self, token: object, now: float) -> Delivery | None:
        """End a delivery, because the callback says that the page is a wrong one; return it."""
        if (delivery := self._taken_out(token)) is not None:
            self._tell_parent(delivery, now)
        return delivery

    def give_up(self, started_before: float, now: float) -> int:
        """Give up those that began before this time and wait for anything but requests in line for their slots."""
        old = [
            token
            for token, delivery in self._open.items()
            if delivery.started_at < started_before
            and not (delivery.returned and delivery.n_open <= delivery.n_waiting)
        ]
        for token in old:
            delivery = self._taken_out(token)
            assert delivery is not None
            if delivery.page >= 0:
                self._given_up(delivery, now)
            self._tell_parent(delivery, now)
        return len(old)

    def pages(self) -> list[int]:
        """Return the pages with open deliveries."""
        return list(self._of_page)

    def leave(self, is_meant: Callable[[int], bool], now: float) -> None:
        """Forget the deliveries of pages that are another process's from now on."""
        for token in [token for token, d in self._open.items() if d.page >= 0 and is_meant(d.page)]:
            delivery = self._taken_out(token)
            assert delivery is not None
            self._tell_parent(delivery, now)

    def _end_if_complete(self, token: int, delivery: Delivery, now: float) -> None:
        if delivery.returned and delivery.n_open <= 0:
            self._taken_out(token)
            if delivery.page >= 0:
                self._delivered(delivery, now)
            self._tell_parent(delivery, now)

    def _tell_parent(self, delivery: Delivery, now: float) -> None:
        if delivery.parent is not None:
            self.untracked_ended(delivery.parent, now)

    def _taken_out(self, token: object) -> Delivery | None:
        delivery = self._open.pop(token, None) if isinstance(token, int) else None
        if delivery is not None and delivery.page >= 0:
            others = self._of_page[delivery.page]
            others.remove(delivery)
            if not others:
                del self._of_page[delivery.page]
        return delivery
