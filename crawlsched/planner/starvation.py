"""Rounds: a page whose crawl value never brings a visit is visited all the same, once in some rounds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

import numpy as np

from crawlsched.frontier import Frontier
from crawlsched.frontier.filing import AT_ONCE
from crawlsched.pages import Pages

__all__ = ["MAX_CRAWL_ROUNDS", "Rounds", "wait_after_rounds"]

#: Hardly any page of some importance waits for more rounds than these, even if it is not worth a crawl.
MAX_CRAWL_ROUNDS = 4.0

_NOT_WAITING = frozenset({"out", "in flight", "barred"})
# One pick in this number may be of a page that has waited too long. Then all pages go within sixteen rounds, so no page
# waits much longer than that beyond its time. It costs at most a sixteenth of the bandwidth.
_SHARE = 16


def wait_after_rounds(n_waiting: int, bandwidth: float) -> float:
    """Return the mean seconds that a page waits after its rounds if `n_waiting` pages do; half of them go before."""
    return 0.5 * n_waiting * _SHARE / bandwidth


class Rounds:
    """Goes through all pages, a few at a time, and sends those that have waited for `longest` rounds.

    Notes
    -----
    A page's crawl value is bounded by μ E[1/Δ]. A page of little importance, or one found changed at every visit, can
    stay below the threshold forever. Its estimate is then never put to the test again. The pages are gone through in
    the order of their numbers: this takes a sixteenth of a round if none waits, and no memory per page.
    """

    def __init__(self, pages: Pages, longest: float) -> None:
        self._pages = pages
        self._longest = longest
        self._picks = 0
        self._next = 0
        self._n_live = self._n_rows = 0  # pages and rows when they were counted
        # Sent and not yet picked: one page, and those whose hosts have been found to rest.
        self._sent: set[int] = set()

    def before_pick(self, frontier: Frontier, bandwidth: float, now: float) -> None:
        """Let a page that has waited for too long go next, if this is a pick for it; O(1)."""
        self._picks += 1
        if self._picks % _SHARE:
            return
        if self._has_room(frontier):
            page = next(self._waiting(frontier, self._next, self._since(bandwidth, now)), None)
            self._next = min(self._next + AT_ONCE, self._pages.n) if page is None else page + 1
            if self._next == self._pages.n:
                self._next = 0
            if page is not None:
                self._sent.add(page)
                frontier.force(np.array([page]))

    def coming(self, frontier: Frontier, n_picks: int, bandwidth: float, now: float) -> list[int]:
        """Return the pages that, by what is known now, go with some of the next picks; O(n_picks)."""
        n, since = max(self._picks % _SHARE + n_picks, 0) // _SHARE, self._since(bandwidth, now)
        parts = range(self._next, min(self._next + n * AT_ONCE, self._pages.n), AT_ONCE)
        return list(islice(chain.from_iterable(self._waiting(frontier, begin, since) for begin in parts), n))

    def _has_room(self, frontier: Frontier) -> bool:
        """Whether another page may be sent: those before have gone, or their hosts rest."""
        if not self._sent:
            return True
        self._sent = {page for page in self._sent if frontier.is_forced(page)}
        return all(frontier.is_resting(self._pages.host.item(page)) for page in self._sent)

    def _since(self, bandwidth: float, now: float) -> float:
        """Return the time of the last crawl of a page that has waited as long as any may."""
        if self._next == 0 or self._pages.n > 1.01 * self._n_rows:
            self._n_live, self._n_rows = len(self._pages), self._pages.n
        return now - self._longest * self._n_live / bandwidth

    def _waiting(self, frontier: Frontier, begin: int, since: float) -> Iterator[int]:
        """Give those of the pages from `begin` on that were last crawled (or first seen, if never) before `since`."""
        columns, part = self._pages, slice(begin, min(begin + AT_ONCE, self._pages.n))
        last = columns.crawled_at[part]
        if not np.minimum.reduce(last, initial=np.inf) < since:
            return  # the usual case: none waits, and none is new
        # A page that was never crawled waits since it was found.
        last = np.where(last == -np.inf, columns.first_seen[part], last)
        for page in (begin + np.flatnonzero((last < since) & (columns.importance[part] > 0))).tolist():
            if not frontier.is_resting(columns.host.item(page)) and frontier.place_of(page) not in _NOT_WAITING:
                yield page

    def sent(self, page: int) -> bool:
        """Whether a page goes because it had waited for too long; it is forgotten then."""
        if page not in self._sent:
            return False
        self._sent.discard(page)
        return True
