"""Out of turn: pages that go next although others are worth more, one at a time."""

from __future__ import annotations

import numpy as np

from crawlsched.frontier import Frontier
from crawlsched.pages import Pages

__all__ = ["OutOfTurn"]

_NOT_WAITING = frozenset({"out", "in flight", "barred"})


class OutOfTurn:
    """Send pages ahead of what their crawl values say, and know them when they are picked.

    Parameters
    ----------
    pages : Pages
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        # Sent and not yet picked: one page, and those whose hosts have been found to rest.
        self._sent: set[int] = set()

    def has_room(self, frontier: Frontier) -> bool:
        """Whether another page may be sent: those before have gone, or their hosts rest."""
        if not self._sent:
            return True
        self._sent = {page for page in self._sent if frontier.is_forced(page)}
        return all(frontier.is_resting(self._pages.host.item(page)) for page in self._sent)

    def can_go(self, frontier: Frontier, page: int) -> bool:
        """Whether a page could be crawled now, if it were the best of all."""
        return not frontier.is_resting(self._pages.host.item(page)) and frontier.place_of(page) not in _NOT_WAITING

    def send(self, frontier: Frontier, page: int) -> None:
        """Let a page go next."""
        self._sent.add(page)
        frontier.force(np.array([page]))

    def sent(self, page: int) -> bool:
        """Whether a page that has been picked had been sent; it is forgotten then."""
        if page not in self._sent:
            return False
        self._sent.discard(page)
        return True
