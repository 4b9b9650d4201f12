"""All the beds: those that most hosts share, and a ladder of its own for each large host that has rested."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray, LevelArray
from crawlsched.columns.growing import grown
from crawlsched.frontier.buckets.entries import LOOPS
from crawlsched.frontier.places import OWN_LADDER, RUNNING
from crawlsched.frontier.sleeping.level_queue import Ladder, Run
from crawlsched.pages import Pages

__all__ = ["Ladders"]


class Ladders:
    """Put pages to bed in the ladder that is theirs, and find the highest bed of all.

    Parameters
    ----------
    pages : Pages
    resting : container of int
        The hosts that rest: their ladders are skipped.
    place : callable
        Returns the column that says where pages stand, which is written here for those that go to bed.

    Attributes
    ----------
    shared : Ladder
    of_host : dict of int to Ladder
        A host's pages move to its own ladder as they are looked at; until then they are left out one by one.
    """

    def __init__(self, pages: Pages, resting: Container[int], place: Callable[[], LevelArray]) -> None:
        self._pages = pages
        self._resting = resting
        self._place = place
        self.shared = Ladder(-1, 0, place)
        self.of_host: dict[int, Ladder] = {}
        self._have_own: npt.NDArray[np.bool_] = np.zeros(1, np.bool_)  # by host
        self._order: list[tuple[float, int, int]] = []
        self._run_numbers = count()
        self._is_compiled = LOOPS.compiled

    def __iter__(self) -> Iterator[Ladder]:
        yield self.shared
        yield from self.of_host.values()

    def adapt(self) -> None:
        """Keep all beds as suits the code in use; O(1), or O(n) when that has changed."""
        if self._is_compiled != LOOPS.compiled:
            self._is_compiled = LOOPS.compiled
            for ladder in self:
                ladder.adapt()

    def give_own(self, host: int) -> None:
        """Let a host have a ladder of its own from now on; amortised O(1)."""
        if host not in self.of_host:
            self.of_host[host] = Ladder(host, OWN_LADDER, self._place)
            if host >= self._have_own.size - 1:
                self._have_own = grown(self._have_own, host + host // 2 + 2)
            self._have_own[host] = True

    def _parted(self, pages: IndexArray) -> list[tuple[Ladder, Any]]:
        """Return the ladders of some pages, and which rows are theirs; O(n log n)."""
        if not self.of_host:
            return [(self.shared, slice(None))]
        hosts = self._pages.host[pages]
        own = self._have_own.take(hosts, mode="clip")  # the last row stands for all hosts that come after it
        parted: list[tuple[Ladder, Any]] = [] if own.all() else [(self.shared, ~own)]
        rows = np.flatnonzero(own)
        rows = rows[np.argsort(hosts[rows], kind="stable")]
        changes = np.flatnonzero(np.diff(hosts[rows])) + 1
        for some in np.split(rows, changes) if rows.size else ():
            parted.append((self.of_host[hosts.item(some.item(0))], some))
        return parted

    # -- pages go to bed, and leave it

    def put(self, pages: IndexArray, levels: npt.NDArray[np.integer]) -> None:
        """Put distinct pages to bed, each under its level; O(n log n)."""
        for ladder, rows in self._parted(pages):
            self._place()[pages[rows]] = levels[rows] + ladder.offset
            ladder.add(pages[rows], levels[rows])
            self.note(ladder)

    def put_one(self, page: int, level: int, host: int) -> None:
        """Do what `put` does for a single page; O(log(levels))."""
        ladder = self.of_host.get(host, self.shared)
        self._place()[page] = level + ladder.offset
        ladder.add_one(page, level)
        self.note(ladder)

    def run(self, pages: IndexArray, values: FloatArray) -> None:
        """Put distinct pages whose values do not grow into runs; O(n log n)."""
        self._place()[pages] = RUNNING
        for ladder, rows in self._parted(pages):
            ladder.add_run(Run(next(self._run_numbers), pages[rows], values[rows]))
            self.note(ladder)

    def leave(self, pages: IndexArray, place: LevelArray) -> None:
        """Count pages no longer that stood asleep in these places; O(n log n)."""
        own = place > OWN_LADDER // 2
        self.shared.leave(place[~own])
        if own.any():
            place = place[own]
            for ladder, rows in self._parted(pages[own]):
                ladder.leave(place[rows] - OWN_LADDER)

    def leave_one(self, page: int, place: int) -> None:
        """Count a page no longer that stood asleep in this place; O(1)."""
        if place > OWN_LADDER // 2:
            self.of_host[self._pages.host.item(page)].leave_one(place - OWN_LADDER)
        else:
            self.shared.leave_one(place)

    # -- the highest bed

    def note(self, ladder: Ladder) -> None:
        """Let a ladder be found when its best pages are the best of all; amortised O(log(ladders))."""
        ladder.sweep()
        bound = ladder.bound()
        if bound is not None and bound != ladder.noted:
            ladder.noted = bound
            heappush(self._order, (*bound, ladder.host))

    def highest(self) -> tuple[float, int, Ladder] | None:
        """Return a key (-value, page) before those of all pages asleep whose hosts do not rest, and the ladder.

        None where there are no such pages. Amortised O(log(ladders)).
        """
        order = self._order
        while order:
            value, page, host = order[0]
            ladder = self.of_host[host] if host >= 0 else self.shared
            if host in self._resting:
                heappop(order)
                ladder.noted = None
                continue
            if ladder.bound() == (value, page):
                return value, page, ladder
            heappop(order)
            if ladder.noted == (value, page):
                ladder.noted = None
            self.note(ladder)
        return None

    def host_returns(self, host: int) -> None:
        """Let the ladder of a host that does not rest any more be found; amortised O(log(ladders))."""
        ladder = self.of_host.get(host)
        if ladder is not None:
            ladder.noted = None
            self.note(ladder)
