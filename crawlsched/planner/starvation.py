"""Rounds: even a page whose value is never enough for a crawl is crawled once in some rounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from crawlsched.frontier import Frontier
from crawlsched.frontier.filing import AT_ONCE
from crawlsched.pages import Pages

__all__ = ["MAX_CRAWL_ROUNDS", "Rounds", "wait_after_rounds"]

#: Pages of some importance wait for about this number of rounds at most, even if they are not worth a crawl.
MAX_CRAWL_ROUNDS = 4.0

_NOT_WAITING = frozenset({"out", "in flight", "barred"})
# At most one of this number of picks is of a page that has waited too long. This takes a sixteenth of the bandwidth at
# most, and in sixteen rounds all pages could be picked in this way.
_SHARE = 16


def wait_after_rounds(n_waiting: int, bandwidth: float) -> float:
    """Return the mean wait of a page after its rounds have passed, in seconds, if `n_waiting` pages wait."""
    return 0.5 * n_waiting * _SHARE / bandwidth


class Rounds:
    """Goes through all pages, a few at a time, and forces pages that have waited for `longest` rounds.

    Notes
    -----
    A page's crawl value is at most μ E[1/Δ]. So the value of a page of little importance, or of a page found changed at
    every visit, can stay below the threshold forever. Then its estimate would never be corrected. Pages are checked in
    the order of their numbers. A pass over all pages takes a sixteenth of a round if no page waits. No memory per page
    is needed.
    """

    def __init__(self, pages: Pages, longest: float) -> None:
        self._pages = pages
        self._longest = longest
        self._picks = 0
        self._next = 0
        self._n_live = self._n_rows = 0  # numbers of pages and of rows, counted at the beginning of a pass
        # Pages that were forced and not picked yet: at most one page, and pages whose hosts rest.
        self._sent: set[int] = set()

    def before_pick(self, frontier: Frontier, bandwidth: float, now: float) -> None:
        """In one of `_SHARE` picks, force a page that has waited for too long; O(1)."""
        self._picks += 1
        if self._picks % _SHARE:
            return
        if self._has_room(frontier):
            page = next(self._waiting(frontier, AT_ONCE, self._since(bandwidth, now)), None)
            self._next = min(self._next + AT_ONCE, self._pages.n) if page is None else page + 1
            if self._next == self._pages.n:
                self._next = 0
            if page is not None:
                self._sent.add(page)
                frontier.force(np.array([page]))

    def coming(self, frontier: Frontier, n_picks: int, bandwidth: float, now: float) -> list[int]:
        """Return the pages that would be forced in the next `n_picks` picks by what is known now; O(n_picks)."""
        n = max(self._picks % _SHARE + n_picks, 0) // _SHARE
        return list(islice(self._waiting(frontier, n * AT_ONCE, self._since(bandwidth, now)), n))

    def _has_room(self, frontier: Frontier) -> bool:
        """Whether another page may be forced: all forced pages were picked, or their hosts rest."""
        if not self._sent:
            return True
        self._sent = {page for page in self._sent if frontier.is_forced(page)}
        return all(frontier.is_resting(self._pages.host.item(page)) for page in self._sent)

    def _since(self, bandwidth: float, now: float) -> float:
        """Return the time since which a page must have waited to be forced."""
        if self._next == 0 or self._pages.n > 1.01 * self._n_rows:
            self._n_live, self._n_rows = len(self._pages), self._pages.n
        return now - self._longest * self._n_live / bandwidth

    def _waiting(self, frontier: Frontier, n_rows: int, since: float) -> Iterator[int]:
        """Yield pages of the next rows whose wait began before `since`."""
        columns, begin = self._pages, self._next
        part = slice(begin, min(begin + n_rows, columns.n))
        last = columns.crawled_at[part]
        if not np.minimum.reduce(last, initial=np.inf) < since:
            return  # the usual case: no page waits or is new
        # A page that was never crawled has waited since it was found.
        last = np.where(last == -np.inf, columns.first_seen[part], last)
        for page in (begin + np.flatnonzero((last < since) & (columns.importance[part] > 0))).tolist():
            if not frontier.is_resting(columns.host.item(page)) and frontier.place_of(page) not in _NOT_WAITING:
                yield page

    def sent(self, page: int) -> bool:
        """Return whether a page was forced because it had waited for too long, and forget that."""
        if page not in self._sent:
            return False
        self._sent.discard(page)
        return True
