"""Co-changes as a hint: visits to a host are watched, and what a search finds comes into force page by page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.pages import Pages
from crawlsched.planner.evidence.co_change_watch import CoChangeWatch, FoundCoChanges
from crawlsched.planner.evidence.hint import NOBODY, Hint, Visit
from crawlsched.planner.parameters.in_force import InForce, Work

__all__ = ["CoChangeHint"]

# What is found is put in force when the evidence of some page changes by so many nats at least.
_WORTH_ADOPTING = 0.05


class CoChangeHint(Hint):
    """What moments at which many pages of a host changed together say of its pages since.

    Parameters
    ----------
    pages : Pages
    in_force : InForce
        Holds the co-changes that are believed: parameters like others.
    work : deque
        Takes a search: it lasts for milliseconds, too long for the end of a visit.
    slowest : float
        The least change rate per second: what a host counts as having that was not watched yet.
    """

    def __init__(self, pages: Pages, in_force: InForce, work: Work, slowest: float) -> None:
        self._pages, self._in_force, self._work, self._slowest = pages, in_force, work, slowest
        self.watch = CoChangeWatch()
        self._searching: set[int] = set()  # hosts

    def evidence(self, pages: IndexArray) -> FloatArray:
        """Return the evidence of the co-changes since each page's crawl, nats."""
        evidence = np.zeros(pages.size)
        for parameters, part in self._in_force.by_parameters(pages):
            if parameters.co_changes:
                rows = np.arange(pages.size) if part is None else np.flatnonzero(part)
                columns = self._pages.host[pages[rows]], self._pages.crawled_at[pages[rows]]
                evidence[rows] = parameters.co_changes.evidence(*columns)
        return evidence

    def evidence_one(self, page: int) -> float:
        """Return the same for one page."""
        found = self._in_force.of(page).co_changes
        if not found.hosts:
            return 0.0
        return found.evidence_one(self._pages.host.item(page), self._pages.crawled_at.item(page))

    def rate(self, pages: IndexArray) -> FloatArray:
        """Return how often co-changes reach pages, per second: what a fresh copy has to expect of them."""
        rates = np.empty(pages.size)
        for parameters, part in self._in_force.by_parameters(pages):
            rows = np.arange(pages.size) if part is None else np.flatnonzero(part)
            rates[rows] = parameters.co_changes.rates(self._pages.host[pages[rows]], self._slowest)
        return rates

    def visited(self, visit: Visit, evidence: float) -> npt.NDArray[np.int64]:
        """Watch a visit, and search where visits surprise; what is found comes into force later."""
        # An announced change is no surprise, whatever announcements prove worth.
        if visit.announced == 0.0:
            host, known = visit.host, (visit.unchanged, visit.around, visit.changed)
            if self.watch.visited(host, visit.page, visit.crawled_at, visit.now, *known):
                self._search(host)
        return NOBODY

    def _search(self, host: int) -> None:
        if host in self._searching:
            return
        self._searching.add(host)
        search = self.watch.search(host)

        def step(now: float) -> bool:
            try:
                next(search)
            except StopIteration as end:
                self._searching.discard(host)
                self._found(host, end.value)
                return False
            return True

        self._work.append(step)

    def _found(self, host: int, found: FoundCoChanges) -> None:
        known = self._in_force.newest.co_changes
        of_host = found.beside(known.hosts.get(host))
        # All pages are placed anew for it: not for what makes no difference.
        if of_host.difference(known.of_host(host)) > _WORTH_ADOPTING:
            self._in_force.put(replace(self._in_force.newest, co_changes=known.with_host(host, of_host)))

    def forget(self, page: int) -> None:
        """Nothing: what came before a crawl says nothing of the page by itself."""

    def free(self, pages: IndexArray) -> None:
        """Nothing: it is known of hosts."""
