"""Which parameters are in force for which page, while those of a new plan are adopted page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.pages import Pages
from crawlsched.planner.parameters.parameters import Parameters

__all__ = ["PICKS_A_SLICE", "PLAN_SLICE", "SLICE", "InForce", "Work"]

#: What is to be done between picks: each step is given the time, and says whether there is more of it to do.
Work = deque[Callable[[float], bool]]

#: So many pages that were announced are worked on between two picks: a millisecond or two, and what they leave
#: to be done by the turns that follow, which have to look at those that wake, stays within a few more.
SLICE = 128
#: So many pages adopt a plan between two picks, and the next ones wait for so many picks: a crawl at its ceiling loses
#: a tenth by it, and not half. All have adopted it in a sixteenth of the time in which each could be crawled.
PLAN_SLICE, PICKS_A_SLICE = 256, 16
# Where picks are rarer they wait for so many seconds: slices take a tenth of the time then, too.
_SECONDS_A_SLICE = 0.02
# No newer plan comes for so many times as long as the last one took to be adopted by all pages, minutes among millions.
_TIMES_IT_TOOK = 4.0


class InForce:
    """The parameters in force; a page adopts new ones when its slice is worked on.

    Parameters
    ----------
    parameters : Parameters
        In force for all pages at first.
    pages : Pages
    work : deque
        Takes what is to be done between picks.
    refile : callable
        ``refile(pages, now)`` places pages anew.

    Attributes
    ----------
    parameters, before : Parameters
        In force for the pages below `adopted_below`, and for the others.
    adopted_below : int or None
        None: `parameters` are in force for all.
    n_adopted : int
        How many parameters there were, those that are being adopted among them.
    rests_until : float
        No newer plan is to come sooner, POSIX seconds; inf while one is being adopted.
    plan : Plan or None
        The newest plan.
    """

    def __init__(
        self, parameters: Parameters, pages: Pages, work: Work, refile: Callable[[IndexArray, float], None]
    ) -> None:
        self.parameters = self.before = parameters
        self.adopted_below: int | None = None
        self.n_adopted = 0
        self.rests_until = -np.inf
        self.plan: Any = None
        self._pages, self._work, self._refile = pages, work, refile
        self._next: Parameters | None = None
        self._adopting = False

    def of(self, page: int) -> Parameters:
        """Return the parameters in force for a page."""
        below = self.adopted_below
        return self.parameters if below is None or page < below else self.before

    def by_parameters(self, pages: IndexArray) -> list[tuple[Parameters, BoolArray | None]]:
        """Return parameters, and of which of the pages they are in force (None: of all)."""
        if self.adopted_below is None:
            return [(self.parameters, None)]
        new = pages < self.adopted_below
        return [(p, part) for p, part in ((self.parameters, new), (self.before, ~new)) if part.any()]

    def even_rates(self, pages: IndexArray) -> FloatArray:
        """Return how often each page would be crawled if all were alike, per second; inf before the first plan."""
        found = np.full(pages.size, self.parameters.even_rate)
        if self.adopted_below is not None:
            found[pages >= self.adopted_below] = self.before.even_rate
        return found

    def begin(self, parameters: Parameters) -> None:
        """Let new parameters be in force for no page yet."""
        self.before, self.parameters, self.adopted_below = self.parameters, parameters, 0
        self.n_adopted += 1

    def adopt_below(self, page: int | None) -> None:
        """Let the new parameters be in force for pages below this number; None: for all."""
        self.adopted_below = page
        if page is None:
            self.before = self.parameters

    def put(self, parameters: Parameters) -> None:
        """Let parameters come into force page by page; those that still wait are replaced."""
        if self._adopting:
            self._next = parameters
            return
        self._adopting, self.rests_until = True, np.inf
        self.begin(parameters)
        at, n_picks, began, due = 0, 0, np.inf, -np.inf

        def step(now: float) -> bool:
            nonlocal at, n_picks, began, due
            began, n_picks = min(began, now), n_picks - 1
            if n_picks > 0 and now < due:
                return True
            n_picks, due = PICKS_A_SLICE, now + _SECONDS_A_SLICE
            rows = np.arange(at, min(at + PLAN_SLICE, self._pages.n))
            at += PLAN_SLICE
            self.adopt_below(at)
            self._refile(rows, now)
            if at < self._pages.n:
                return True
            self.adopt_below(None)
            self._adopting, self.rests_until = False, now + _TIMES_IT_TOOK * (now - began)
            if self._next is not None:
                following, self._next = self._next, None
                self.put(following)
            return False

        self._work.append(step)
