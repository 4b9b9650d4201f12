"""Crawl values where copies are to be young, or changes to be seen soon: `crawlsched.crawl_value.objectives`."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.crawl_value.objectives import Objective
from crawlsched.frontier import CrawlValues, PageValues
from crawlsched.pages import Pages
from crawlsched.planner.values.plug_in_values import PointValues
from crawlsched.planner.values.posterior_values import PosteriorValues
from crawlsched.planner.values.value_alone import ValueAlone

__all__ = ["ObjectiveValues", "Staleness"]

# Values are right to 1e-13 or so; bounds stay clear of that.
_SLACK = 1.0 + 1e-10
# Steps of Newton's method to where a value reaches a level.
_STEPS = 3
# Seconds after which nothing is crawled any more, and which can be multiplied by any rate.
_FOREVER = 1e15


class ObjectiveValues(CrawlValues):
    """Crawl values by an objective other than freshness; see `crawlsched.frontier.CrawlValues`.

    Parameters
    ----------
    pages : Pages
    estimates : PosteriorValues
        What is known of pages' change rates and announcements.
    objective : Objective
    point : PointValues, optional
        Where each page has one number for its rate, known or estimated: what says it.

    Notes
    -----
    The expectation over the rates that are still possible, fast ones doubted as for freshness. One thing of freshness
    means nothing here, and is off: announcements count once they have come, and are not waited for.
    """

    def __init__(
        self, pages: Pages, estimates: PosteriorValues, objective: Objective, point: PointValues | None = None
    ) -> None:
        self._pages = pages
        self._estimates = estimates
        self._objective = objective
        self._point = point

    def many(self, pages: IndexArray) -> Staleness:
        """Return the crawl values of pages as things stand; O(K) a page."""
        estimates, crawled_at = self._estimates, self._pages.crawled_at[pages]
        if self._point is not None:
            return self._of_point(self._point, pages, crawled_at, estimates.announcements.counted(pages))
        rate, weight, heard = estimates.announcements.known(pages)
        return self._of(pages, crawled_at, weight * heard, rate, weight)

    def supposing(self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any]) -> Staleness:
        """Return the crawl values of pages if they had last been crawled then, and announced so often since."""
        if self._point is not None:
            return self._of_point(self._point, pages, crawled_at, n_signals)
        rate, weight = self._estimates.announcements.signals(pages)
        return self._of(pages, crawled_at, weight * n_signals, rate, weight)

    def _of(
        self, pages: IndexArray, crawled_at: FloatArray, evidence: FloatArray, rate: FloatArray, weight: FloatArray
    ) -> Staleness:
        rates = self._estimates.in_force.parameters.rates
        announced = rate * -np.expm1(-weight)
        known = self._estimates.value_weights(pages), np.broadcast_to(rates, (pages.size, rates.size))
        return self._stale(pages, crawled_at, evidence, *known, rates + announced[:, np.newaxis])

    def _of_point(
        self, point: PointValues, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any]
    ) -> Staleness:
        change_rate, _, _, unsignalled, _, weight = point.rates_of(pages)
        with np.errstate(invalid="ignore"):
            evidence = np.where(n_signals > 0.0, weight * n_signals, 0.0)
        known = np.ones((pages.size, 1)), unsignalled[:, np.newaxis], change_rate[:, np.newaxis]
        return self._stale(pages, crawled_at, evidence, *known)

    def _stale(
        self,
        pages: IndexArray,
        crawled_at: FloatArray,
        evidence: FloatArray,
        weights: FloatArray,
        unsignalled: FloatArray,
        change_rate: FloatArray,
    ) -> Staleness:
        importance = self._pages.importance[pages].astype(np.float64)
        never = crawled_at == -inf
        steady, since, stale = never | (importance == 0.0), crawled_at, -np.expm1(-evidence)
        if never.any():
            # A page without a copy is worth what one is that was crawled one horizon ago, and once more has changed
            # than its rate says: it has come.
            horizon = self._estimates.in_force.parameters.discovery_horizon
            unsignalled, change_rate = unsignalled.copy(), change_rate.copy()
            unsignalled[never] = change_rate[never] = change_rate[never] + 1.0 / horizon
            since, stale = np.where(never, -horizon, crawled_at), np.where(never, 0.0, stale)
        return Staleness(self._objective, weights, unsignalled, change_rate, since, importance, stale, steady)

    def deciding(self, pages: IndexArray) -> list[npt.NDArray[Any]]:
        """Return all that the crawl values of pages depend on beside their host."""
        return self._estimates.deciding(pages) if self._point is None else self._point.deciding(pages)


class Staleness(PageValues):
    """The values of several pages by an objective, μ Σ w f(α τ + q) / Δ^p; see `crawlsched.frontier.PageValues`.

    Parameters
    ----------
    objective : Objective
        f and p.
    weights, unsignalled, change_rate : ndarray, shape (n, K)
        Probability w of each rate, the rate α of changes that nobody announces, and that of all, Δ; per second.
    crawled_at, importance : ndarray, shape (n,)
    stale : ndarray, shape (n,)
        q, the probability that something announced since the crawl is true.
    steady : ndarray of bool, shape (n,)
        Pages whose value is at all times what it is at time 0.
    """

    def __init__(
        self,
        objective: Objective,
        weights: FloatArray,
        unsignalled: FloatArray,
        change_rate: FloatArray,
        crawled_at: FloatArray,
        importance: FloatArray,
        stale: FloatArray,
        steady: BoolArray,
    ) -> None:
        self._objective = objective
        self._columns = weights, unsignalled, change_rate, crawled_at, importance, stale
        self.steady = steady
        # Of a page that never changes nothing is worth anything.
        with np.errstate(divide="ignore"):
            scale = np.where(change_rate > 0.0, change_rate, inf) ** -objective.power
        self._scaled = weights * scale * importance[:, np.newaxis]

    def _expected(self, now: FloatArray | float) -> FloatArray:
        """Return αt + q, the changes expected since the crawl by each rate."""
        _, unsignalled, _, crawled_at, _, stale = self._columns
        elapsed = np.maximum(np.where(self.steady, 0.0, now) - crawled_at, 0.0)
        expected: FloatArray = unsignalled * elapsed[:, np.newaxis] + stale[:, np.newaxis]
        return expected

    def at(self, now: FloatArray | float) -> FloatArray:
        """Return the crawl values at a time, or each at its own."""
        # One dot product per page and not a matrix product, whose rounding depends on how many pages there are.
        values: FloatArray = np.vecdot(self._scaled, self._objective.worth(self._expected(now)))
        return values

    def _slope(self, now: FloatArray | float) -> FloatArray:
        rise = self._scaled * self._columns[1]
        slope: FloatArray = np.where(self.steady, 0.0, np.vecdot(rise, self._objective.slope(self._expected(now))))
        return slope

    def one(self, row: int) -> ValueAlone:
        """Return the crawl value of one of the pages."""
        return ValueAlone(self.some(np.array([row])))

    def some(self, rows: IndexArray) -> Staleness:
        """Return the crawl values of some of the pages."""
        weights, unsignalled, change_rate, *known = (column[rows] for column in self._columns)
        crawled_at, importance, stale = known
        rates = weights, unsignalled, change_rate
        return Staleness(self._objective, *rates, crawled_at, importance, stale, self.steady[rows])

    def parabolas(self, after: float, until: float) -> FloatArray:
        """Return value, slope and half curvature of parabolas that no crawl value exceeds, shape (3, n)."""
        found = np.empty((3, self.steady.size))
        found[0], found[1] = self.at(after), self._slope(after)
        steepest = self._objective.steepest(self._expected(after), self._expected(until))
        found[2] = np.where(self.steady, 0.0, 0.5 * np.vecdot(self._scaled * self._columns[1] ** 2, steepest))
        return found * np.where(self.steady, 1.0, _SLACK)

    def crossings(self, values: FloatArray, after: float, where: BoolArray) -> FloatArray:
        """Return times before which the crawl values of the pages in `where` are below `values`."""
        part = self.some(np.flatnonzero(where))
        below, slope, curvature = part.parabolas(after, _FOREVER)
        missing = np.maximum(values - below, 0.0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            # A parabola says when at the earliest. From there Newton's method on the square root, which is nearly a
            # straight line, finds about when. A value bends upwards, so that a chord to a time when it is above the
            # level reaches the level too early, and never too late.
            wait = np.where(missing > 0.0, 2.0 * missing / (slope + np.sqrt(slope**2 + 4.0 * curvature * missing)), 0.0)
            about = wait
            for _ in range(_STEPS):
                reached, rise = part.at(after + about), part._slope(after + about)
                about = np.maximum(about + 2.0 * (np.sqrt(reached * values) - reached) / rise, wait)
            rise = part.at(after + about) - below
            found = np.where(rise > missing, about * (missing / rise), about)
        # Where a page never gets there, or numbers end, what the parabola said stands.
        found = np.where(np.isfinite(found), np.maximum(found, wait), wait)
        times: FloatArray = np.where(part.steady, inf, after + found * (1.0 - 1e-9))
        return times
