"""Deliveries: changes that the spider's callback and pipelines have not yet finished with."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Deliveries"]


class _Delivery:
    __slots__ = ("finished_items", "items", "page", "started_at")

    def __init__(self, page: int, started_at: float) -> None:
        self.page = page
        self.started_at = started_at
        self.items: int | None = None  # unknown until the callback has ended
        self.finished_items = 0


class Deliveries:
    """Changes on their way through the spider.

    A page's new fingerprint is written as delivered only when its delivery is complete: the callback has ended without
    an exception and every item it yielded has been scraped or dropped. A crash before that leaves the old fingerprint
    in the store, and the change is delivered again.

    Parameters
    ----------
    delivered : callable
        Called with the page and the time when a delivery is complete.
    failed : callable
        Called with the page when a callback or a pipeline raised: the page stays undelivered.

    Examples
    --------
    >>> deliveries = Deliveries(delivered=lambda page, now: print("delivered", page), failed=print)
    >>> deliveries.begin(1, page=7, now=0.0)
    >>> deliveries.called_back(1, items=1, now=0.1)
    >>> deliveries.item_finished(1, now=0.2)
    delivered 7
    """

    def __init__(self, *, delivered: Callable[[int, float], None], failed: Callable[[int], None]) -> None:
        self._delivered = delivered
        self._failed = failed
        self._open: dict[int, _Delivery] = {}

    def __len__(self) -> int:
        return len(self._open)

    def __contains__(self, token: object) -> bool:
        return token in self._open

    def begin(self, token: int, page: int, now: float) -> None:
        """A changed response goes to the spider."""
        self._open[token] = _Delivery(page, now)

    def called_back(self, token: int, items: int, now: float) -> None:
        """The callback has ended, having yielded this many items."""
        if (delivery := self._open.get(token)) is not None:
            delivery.items = items
            self._end_if_complete(token, delivery, now)

    def item_finished(self, token: object, now: float) -> None:
        """An item has left the pipelines, scraped or dropped."""
        if isinstance(token, int) and (delivery := self._open.get(token)) is not None:
            delivery.finished_items += 1
            self._end_if_complete(token, delivery, now)

    def failed(self, token: object) -> None:
        """The callback or a pipeline raised."""
        if isinstance(token, int) and (delivery := self._open.pop(token, None)) is not None:
            self._failed(delivery.page)

    def give_up(self, started_before: float) -> int:
        """Count the deliveries that began before this time as failed (their end was never announced)."""
        old = [token for token, delivery in self._open.items() if delivery.started_at < started_before]
        for token in old:
            self.failed(token)
        return len(old)

    def _end_if_complete(self, token: int, delivery: _Delivery, now: float) -> None:
        if delivery.items is not None and delivery.finished_items >= delivery.items:
            del self._open[token]
            self._delivered(delivery.page, now)
