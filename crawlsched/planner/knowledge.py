"""Knowledge: the state of a planner, and how pages are placed in its frontier."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.blocks import blocks
from crawlsched.crawl_value.rules import rule_named
from crawlsched.estimators import LearnedRates, Posterior
from crawlsched.estimators.signal_pooling import FIRST_PRECISION
from crawlsched.frontier import DiscoveryShare, Frontier
from crawlsched.pages import Pages
from crawlsched.pages.intervals import CrawlIntervals
from crawlsched.planner.evidence.announcements import Announcements, OwnPrecision
from crawlsched.planner.evidence.further_sources import FurtherSources
from crawlsched.planner.plans.in_force import SLICE, InForce, Work
from crawlsched.planner.plans.parameters import Parameters
from crawlsched.planner.plans.plan import FIRST_SIGNAL_RATE
from crawlsched.planner.values import POLICIES, PlannedValues, PointValues, PosteriorValues

__all__ = ["RENEWAL", "Knowledge"]


#: Probability that the change rate of a page is different at the next visit. If the rate changes, earlier visits lose
#: their effect within about ten visits. docs/notes/learning.md says how much freshness this costs if rates are
#: constant.
RENEWAL = 0.01


class Knowledge:
    """Pages, the evidence of visits and announcements, crawl values, and the frontier.

    The parameters are those of `Planner`, after their checks; `rule` is its `crawl_value`.
    """

    def __init__(
        self,
        bandwidth: float,
        rates: npt.ArrayLike,
        rule: str,
        limits: Sequence[tuple[float, float]],
        discovery_share: float,
        learned: LearnedRates | None,
        picks: bool,
    ) -> None:
        self.bandwidth = bandwidth
        self.rule, self.learned = rule, learned
        self._picks = picks
        self.pages = Pages()
        self.intervals = CrawlIntervals(self.pages, limits)
        self.posterior = Posterior(0, rates, dtype=np.uint8, renewal=RENEWAL)
        self.steps: Work = deque()
        self.in_force = InForce(_first_parameters(self.posterior.rates), self.pages, self.steps, self._refile)
        self.further = FurtherSources(self.pages)
        self.own_precision = OwnPrecision(self.pages)
        self.announcements = Announcements(self.pages, self.in_force, self.further, self.own_precision)
        self.values = PosteriorValues(self.pages, self.posterior, self.in_force, self.announcements)
        self.planned = PlannedValues(self.pages, self.change_rates, rule) if rule in POLICIES else None
        self.crawl_values: PosteriorValues | PointValues | PlannedValues = self.planned or self.values
        if (of_papers := rule_named(rule)) is not None:
            self.crawl_values = PointValues(self.pages, self.announcements, of_papers, self.change_rates)
        share = DiscoveryShare(discovery_share)
        self.frontier = Frontier(
            self.pages, self.crawl_values, intervals=self.intervals, slot=1.0 / bandwidth, share=share
        )
        self.in_flight_pages: set[int] = set()
        self.now = -np.inf

    def at(self, now: float) -> float:
        """Return the POSIX time. If the clock was set back, the result stays the same until the clock has caught up."""
        self.now = max(self.now, now)
        return self.now

    def change_rates(self, pages: IndexArray) -> FloatArray:
        """Return the rates of all changes per second, by the estimator if there is one, otherwise by the posterior."""
        if self.learned is not None:
            return self.learned.change_rate(pages, self.in_force.parameters.even_rate)
        signal_rate, signal_weight = self.announcements.signals(pages)
        # An announcement is no evidence about a page without a copy, so it does not count in the rate of such a page.
        signal_rate[self.pages.crawled_at[pages] == -np.inf] = 0.0
        unsignalled: FloatArray = (self.values.weights(pages) * self.posterior.rates).sum(axis=1)
        return unsignalled + signal_rate * -np.expm1(-signal_weight)

    def rows(self, pages: npt.ArrayLike) -> IndexArray:
        """Return pages as an array of distinct row numbers; raise `ValueError` if a number belongs to no page."""
        rows = np.unique(np.asarray(pages, np.intp))
        if rows.size and not (rows[0] >= 0 and rows[-1] < self.pages.n):
            raise ValueError(f"pages must hold row numbers from 0 to {self.pages.n - 1}, got {pages!r}.")
        return rows

    # -- pages are placed anew

    def _refile(self, rows: IndexArray, now: float) -> None:
        """Place pages anew after new evidence."""
        self._place(rows, now, self.frontier.refile)

    def _place(self, rows: IndexArray, now: float, place: Callable[[IndexArray, float], None]) -> None:
        for part in blocks(rows.size if self._picks else 0, self.posterior.rates.size):
            place(rows[part], now)

    def _end_visit(self, page: int, now: float) -> None:
        """Place a page by what is known after its visit."""
        self.in_flight_pages.discard(page)
        self.frontier.file_one(page, now)

    def _in_slices(self, rows: IndexArray, do: Callable[[IndexArray, float], None]) -> None:
        """Apply `do` to the rows, one slice after each of the next picks."""
        at = 0

        def step(now: float) -> bool:
            nonlocal at
            do(rows[at : at + SLICE], now)
            at += SLICE
            return at < rows.size

        self.steps.append(step)


def _first_parameters(rates: FloatArray) -> Parameters:
    return Parameters(
        priors=np.full((1, rates.size), 1 / rates.size),
        group_of_host=np.zeros(0, np.intp),
        signal_weights=np.array([-np.log1p(-FIRST_PRECISION)]),
        signal_rates=np.array([FIRST_SIGNAL_RATE]),
        rates=rates,
    )
