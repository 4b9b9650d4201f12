"""The parameters in force, and how all pages are placed by new parameters without delaying the next pick."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from crawlsched.columns.array_types import IndexArray
from crawlsched.pages import Pages
from crawlsched.planner.plans.parameters import Parameters
from crawlsched.planner.plans.plan import Plan

__all__ = ["PICKS_A_SLICE", "PLAN_SLICE", "SLICE", "InForce", "Work"]

#: Work between picks: each step is called with the time, and returns whether it has more to do.
Work = deque[Callable[[float], bool]]

#: This number of announced pages is placed anew between two picks, in a millisecond or two. The next picks take a few
#: milliseconds more, because some of these pages have become due.
SLICE = 128
#: A plan places `PLAN_SLICE` pages, and then waits for `PICKS_A_SLICE` picks. So a crawl at its highest possible rate
#: loses only a twentieth of that rate. All pages are placed in less than a twentieth of the time of one round. If there
#: are few pages, the plan waits for fewer picks, since each pick by the old plan matters more.
PICKS_A_SLICE = 96
PLAN_SLICE = 16 * SLICE
# If picks are rare, the next slices wait for this number of seconds instead.
_SECONDS_A_SLICE = 0.1
# A newer plan waits for this multiple of the time in which the last plan was placed. That is minutes for millions of
# pages.
_TIMES_IT_TOOK = 4.0


class InForce:
    """The parameters in force. Crawl values use new parameters at once; the frontier places pages by them in slices.

    `work` has the steps to do between picks. ``refile(pages, now)`` places pages anew.
    """

    def __init__(
        self, parameters: Parameters, pages: Pages, work: Work, refile: Callable[[IndexArray, float], None]
    ) -> None:
        self.parameters = parameters
        self.placed = 0
        self.rests_until = -np.inf
        self.plan: Plan | None = None
        self._pages, self._work, self._refile = pages, work, refile

    def put(self, parameters: Parameters) -> None:
        """Let parameters come into force; with the next picks, all pages are placed by them."""
        self.parameters = parameters
        is_placing, self.rests_until = self.rests_until == np.inf, np.inf
        self.placed = 0
        if is_placing:
            return  # the step below begins again with the first page
        n_picks, began, due = 0, np.inf, -np.inf

        def step(now: float) -> bool:
            nonlocal n_picks, began, due
            began, n_picks = min(began, now), n_picks - 1
            if n_picks > 0 and now < due:
                return True
            n_picks, due = min(self._pages.n // (PICKS_A_SLICE * SLICE), PICKS_A_SLICE), now + _SECONDS_A_SLICE
            rows = np.arange(self.placed, min(self.placed + PLAN_SLICE, self._pages.n))
            self.placed += PLAN_SLICE
            self._refile(rows, now)
            if self.placed < self._pages.n:
                return True
            self.rests_until = now + _TIMES_IT_TOOK * (now - began)
            return False

        self._work.append(step)
