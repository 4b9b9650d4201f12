"""Hosts in tests: those that never rest, and slots in which they do, each pick held against brute force."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawlsched.frontier import Pick
from crawlsched.pages import FREE
from crawlsched.planner import Planner
from tests.benchmarks.frontier_collection import pages_in_blocks


def never_rests(host: int, now: float) -> float:
    """Say that a host may be asked now."""
    return now


class Crawl:
    """Slots of a planner, each page of which comes back at once; hosts rest after their visits.

    Parameters
    ----------
    planner : Planner
    rests : callable
        For how many seconds a host rests after a visit.
    found : callable
        What a visit of a page at a time finds: whether it changed.
    now : float
    every : int
        One in so many picks by crawl value has to be the one of brute force.
    overrides : bool
        Whether the planner may let a page go that is not worth most, as in a crawl.
    """

    def __init__(
        self,
        planner: Planner,
        rests: Callable[[int], float],
        found: Callable[[int, float], bool],
        *,
        now: float = 0.0,
        every: int = 1,
        overrides: bool = True,
    ) -> None:
        self.planner, self.rests, self.now = planner, rests, now
        self.free_at = np.zeros(int(planner.pages.host[: planner.pages.n].max()) + 1)
        self.n_picks = self.n_checked = self.n_none = 0
        self._found, self._every, self._pick = found, every, planner.frontier.pick
        # Inside `Planner.pick`, when a slice of what is being adopted has run.
        planner.frontier.pick = self._checked  # type: ignore[method-assign]
        self._slot = planner.pick if overrides else self._checked

    def run(self, n: int) -> None:
        """Let so many slots pass."""
        pages = self.planner.pages
        for _ in range(n):
            self.now += 1 / self.planner.bandwidth
            pick = self._slot(self.now, lambda host, now: self.free_at.item(host))
            if pick is None:
                self.n_none += 1
                continue
            host = pages.host.item(pick.page)
            self.free_at[host] = self.now + self.rests(host)
            is_new = pages.crawled_at.item(pick.page) == -np.inf
            self.planner.crawled(pick.page, self.now, None if is_new else self._found(pick.page, self.now))

    def _checked(self, now: float, host_free_at: Callable[[int, float], float]) -> Pick | None:
        self.n_picks += 1
        wanted = self._best(now) if self.n_picks % self._every == 0 else None
        pick = self._pick(now, host_free_at)
        while pick is None and self.planner.frontier.next_event(now) <= now:  # it has not looked at all there is
            pick = self._pick(now, host_free_at)
        if wanted is not None and (pick is None or pick.reason == "value"):
            assert (-1 if pick is None else pick.page) == wanted
            self.n_checked += 1
        return pick

    def _best(self, now: float) -> int:
        """Return the best of all pages whose hosts may be asked, the lowest of the best ones; -1 if there is none."""
        pages, best = self.planner.pages, (np.inf, -1)
        for block in pages_in_blocks(pages.n):
            allowed = block[(pages.state[block] != FREE) & (self.free_at[pages.host[block]] <= now)]
            if allowed.size:
                values = self.planner.frontier.values.many(allowed).at(now)
                row = int(values.argmax())
                best = min(best, (-values.item(row), int(allowed[row])))
        return best[1]
