"""Exploration: pages that are visited for what the visit teaches, more than for the fresh copy."""

from __future__ import annotations

from collections import deque

import numpy as np

from crawlsched.frontier import Frontier
from crawlsched.pages import LIVE, Pages
from crawlsched.planner.overrides.knowledge_gradient import KnowledgeGradient
from crawlsched.planner.overrides.out_of_turn import OutOfTurn
from crawlsched.planner.values.posterior_values import PosteriorValues

__all__ = ["Exploration"]

# Of so many picks one looks at pages, at twice as many: each page is looked at twice in a round.
_TOGETHER = 32
_LOOKED_AT = 2 * _TOGETHER
# No more than every second pick may be of such a page; so many wait for theirs at most.
_SHARE = 2
_MOST_WAITING = 1024
# Where announcements tell a larger share of a page's changes, those need no looking for.
_MOST_RECALL = 1.0 / 3.0
# Tables are made anew when the even interval differs by more than this factor.
_DIFFERS = 1.2


class Exploration:
    """Goes through all pages, a few at a time, and sends those whose visit is worth its slot with what it teaches.

    Parameters
    ----------
    pages : Pages
    values : PosteriorValues
        What pages are worth, and what is known of their rates.
    rounds : float
        For how long what is learned counts: so many rounds, each as long as one crawl of every page takes.

    Notes
    -----
    The posterior crawl value takes a visit for the fresh copy that it brings. What it teaches has a value of its own:
    the knowledge gradient, importance times freshness per second, times the seconds for which it will be of use; these
    are the length of so many rounds, or of as many as there have been where that is less. A page is sent when both
    together reach the threshold and the crawl value alone does not. What is taught falls again as time passes (a page
    that must have changed by now teaches nothing), so that it cannot be part of what the frontier sorts pages by; but
    it changes little within half a round, and looking at a few pages at a time, twice in a round, finds nearly all. It
    takes no memory of a page. Where the likelihood is taken to a power η, what a visit teaches moves probabilities by η
    times as much, and their gain is of second order in that: η² of it counts. Pages of whose changes more than a third
    is announced are left out: the plans that the knowledge gradient compares do not hear, and gain more by knowing.
    """

    def __init__(self, pages: Pages, values: PosteriorValues, rounds: float) -> None:
        self._pages = pages
        self._values = values
        self._rounds = rounds
        self._out_of_turn = OutOfTurn(pages)
        self._gradient: KnowledgeGradient | None = None
        self._picks = 0
        self._next = 0
        # Of the pass through all pages before this one, and of this one: pages crawled before, and their crawls.
        self._lived = (0, 0)
        self._counted = (0, 0)
        # Pages that are to go, and when each had last been crawled when that was found.
        self._waiting: deque[tuple[int, float]] = deque()

    def before_pick(self, frontier: Frontier, threshold: float, now: float) -> None:
        """Look at some pages or send one, if this is a pick for it; amortised O(K) for two pages."""
        self._picks += 1
        if self._picks % _TOGETHER == 0 and threshold > 0.0 and len(self._waiting) < _MOST_WAITING:
            self._look(threshold, now)
        if self._waiting and self._picks % _SHARE == 0 and self._out_of_turn.has_room(frontier):
            while self._waiting:
                page, crawled_at = self._waiting.popleft()
                if self._pages.crawled_at.item(page) == crawled_at and self._out_of_turn.can_go(frontier, page):
                    self._out_of_turn.send(frontier, page)
                    return

    def sent(self, page: int) -> bool:
        """Whether a page goes because of what its visit teaches; it is forgotten then."""
        return self._out_of_turn.sent(page)

    def _look(self, threshold: float, now: float) -> None:
        """Find out which of the next pages are worth a visit for what it teaches."""
        columns, values = self._pages, self._values
        begin = self._next
        end = min(begin + _LOOKED_AT, columns.n)
        gradient = self._gradient_of(1.0 / values.parameters.even_rate)
        part = slice(begin, end)
        known = (columns.state[part] == LIVE) & (columns.importance[part] > 0) & (columns.crawled_at[part] > -np.inf)
        pages = begin + known.nonzero()[0]
        self._count(int(columns.n_crawls[pages].sum()), pages.size)
        if end < columns.n:
            self._next = end
        else:
            self._next, self._lived, self._counted = 0, self._counted, (0, 0)
        if gradient is None or not pages.size:
            return
        worth = values.many(pages).at(now)
        below = worth < threshold
        pages, worth = pages[below], worth[below]
        if not pages.size:
            return
        weights, (signal_rate, signal_weight, heard) = values.weights(pages), values.announcements(pages)
        if signal_weight.any():
            announced = signal_rate * -np.expm1(-signal_weight)
            apart = announced <= _MOST_RECALL * (announced + weights @ gradient.rates)
            pages, worth, weights = pages[apart], worth[apart], weights[apart]
            signal_weight, heard = signal_weight[apart], heard[apart]
        importance, crawled_at = columns.importance[pages].astype(np.float64), columns.crawled_at[pages]
        evidence = values.co_change_evidence(pages) + signal_weight * heard
        stale = np.multiply.outer(np.maximum(now - crawled_at, 0.0), gradient.rates)
        stale += evidence[:, np.newaxis]
        taught = gradient(weights, stale, threshold / importance)
        useful_for = self._useful_for() * gradient.even_interval * values.parameters.learning_rate**2
        chosen = worth + importance * taught * useful_for >= threshold
        self._waiting.extend(zip(pages[chosen].tolist(), crawled_at[chosen].tolist(), strict=True))

    def _count(self, n_crawls: int, n_pages: int) -> None:
        self._counted = self._counted[0] + n_crawls, self._counted[1] + n_pages

    def _useful_for(self) -> float:
        """Return for how many rounds what is learned counts: for no more than there have been."""
        n_crawls, n_pages = self._lived if self._lived[1] else self._counted
        return min(self._rounds, n_crawls / n_pages)

    def _gradient_of(self, even_interval: float) -> KnowledgeGradient | None:
        """Return the knowledge gradient for an even interval, seconds; None before the first plan, when it is 0."""
        if even_interval == 0.0:
            return None
        known = self._gradient
        if known is None or not 1 / _DIFFERS < even_interval / known.even_interval < _DIFFERS:
            self._gradient = known = KnowledgeGradient(self._values.parameters.rates, even_interval)
        return known
