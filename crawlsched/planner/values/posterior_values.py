"""Crawl values of pages as things stand: the one place where what is known of a page becomes what it is worth."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.estimators import Posterior
from crawlsched.frontier import CrawlValues, PageValue, PageValues
from crawlsched.pages import Pages
from crawlsched.planner.evidence.announcements import Announcements
from crawlsched.planner.parameters.in_force import InForce
from crawlsched.planner.values.compiled_batch import LOOPS as GATHERED
from crawlsched.planner.values.compiled_batch import GatheredValues
from crawlsched.planner.values.compiled_batch_loops import STEADY
from crawlsched.planner.values.signalled import (
    LOOPS,
    SLACK,
    SLACK_PER_SECOND,
    Grid,
    GrowingValue,
    GrowingValues,
    SignalledValue,
    SignalledValues,
    SteadyValue,
    highest_gain,
)

__all__ = ["MixedValues", "PosteriorValues"]


# What decides a page's crawl value, beside its host and its posterior.
_DECIDING = ("crawled_at", "importance", "source", "n_signals", "n_signals_total", "signalled_since", "part")
# Up to so many pages compiled code is faster one by one: a call for several takes as long as four of them.
_FEW_COMPILED = 3
# So many pages at once keep a pick below a millisecond, compiled; one with announcements counts for six without.
_PORTION_COMPILED, _COSTS_MORE = 256, 5.0
# How many of the pages looked at have announcements is known from so many calls.
_CALLS = 8


class PosteriorValues(CrawlValues):
    """The posterior crawl value (design, section 4): the expectation of the crawl value over what is still possible.

    Parameters
    ----------
    pages : Pages
    posterior : Posterior
        A row per page.
    in_force : InForce
    announcements : Announcements
    """

    def __init__(self, pages: Pages, posterior: Posterior, in_force: InForce, announcements: Announcements) -> None:
        self._pages = pages
        self.in_force = in_force
        self.announcements = announcements
        self._posterior = posterior
        self._grid = Grid(posterior.rates)
        self._fastest = posterior.rates.item(-1)
        self._signalled_share = 0.0  # of the pages looked at in the last calls, those with announcements

    # -- what is known of a page

    def weights(self, pages: IndexArray) -> FloatArray:
        """Return the posterior probabilities of the rates that pages have at present, shape (n, K)."""
        return self._weighted(pages, "priors")

    def value_weights(self, pages: IndexArray) -> FloatArray:
        """Return what each rate counts for in the crawl values of pages, shape (n, K)."""
        return self._weighted(pages, "value_priors")

    def _weighted(self, pages: IndexArray, name: str) -> FloatArray:
        weights = np.empty((pages.size, self._grid.rates.size))
        for parameters, part in self.in_force.by_parameters(pages):
            rows = pages if part is None else pages[part]
            groups = parameters.groups(self._pages.host[rows])
            found = self._posterior.weights_many(rows, getattr(parameters, name), groups, parameters.learning_rate)
            if part is None:
                return found
            weights[part] = found
        return weights

    def value_weights_one(self, page: int) -> FloatArray:
        """Return what each rate counts for in the crawl value of one page, shape (K,)."""
        return self._posterior.weights_one(page, *self._value_prior_one(page))

    def _value_prior_one(self, page: int) -> tuple[FloatArray, float]:
        """Return the prior that crawl values of a page begin with, shape (K,), and the power of its likelihood."""
        parameters = self.in_force.of(page)
        return parameters.value_priors[parameters.group(self._pages.host.item(page))], parameters.learning_rate

    def fresh(self, pages: IndexArray, now: float) -> FloatArray:
        """Return the probability that each page's copy is fresh, 0 where there is none: E[exp(-α τ - evidence)]."""
        crawled_at = self._pages.crawled_at[pages]
        elapsed = np.maximum(now - crawled_at, 0.0)
        by_age = np.vecdot(self.weights(pages), np.exp(-self._grid.rates * elapsed[:, np.newaxis]))
        found: FloatArray = by_age * np.exp(-self.announcements.evidence(pages))
        return found

    # -- what a page is worth

    def soon_at_most(self, page: int, until: float, enough: float = inf) -> float:
        """Return what the crawl value of a page does not exceed until a time, inf if it is not known.

        By the fastest rate, O(1), if that is below `enough`; by the mean rate otherwise, O(K).
        """
        pages = self._pages
        crawled_at = pages.crawled_at.item(page)
        # As `Announcements.is_silent`, without the call: this is asked at each visit.
        if crawled_at == -inf or pages.n_signals.item(page) or pages.further.item(page):
            return inf
        importance, elapsed = pages.importance.item(page), until - crawled_at
        at_most: float = importance * highest_gain(elapsed, self._fastest)
        if at_most < enough or elapsed <= 0.0:
            return at_most
        # What each rate is worth is at most r τ²/2, as `highest_gain` says.
        mean = self._posterior.mean_one(page, self._grid.rates, *self._value_prior_one(page))
        by_mean: float = importance * elapsed * (0.5 * mean * elapsed * SLACK + SLACK_PER_SECOND)
        return min(at_most, by_mean)

    def deciding(self, pages: IndexArray) -> list[npt.NDArray[Any]]:
        """Return all that the crawl values of pages depend on beside their host; see `CrawlValues`."""
        columns = self._pages
        below, n_adopted = self.in_force.adopted_below, self.in_force.n_adopted
        return [
            self._posterior._columns["log_likelihood"][pages],
            # Which parameters are in force: they are the same ones also when the others have followed.
            np.full(pages.size, n_adopted) if below is None else n_adopted - (pages >= below),
            *(getattr(columns, name)[pages] for name in _DECIDING),
            *self.announcements.deciding(pages),
            # What further sources say stands elsewhere: such a page is like no other.
            np.where(columns.further[pages] > 0, pages + 1, 0),
        ]

    @property
    def portion(self) -> int:
        """How many pages are looked at in a third of a millisecond or so."""
        if LOOPS.compiled:
            return int(_PORTION_COMPILED / (1.0 + _COSTS_MORE * self._signalled_share))
        return super().portion

    @property
    def few(self) -> int:
        """Up to how many pages are dealt with faster one by one than together."""
        return _FEW_COMPILED if LOOPS.compiled else 1

    def one(self, page: int) -> PageValue:
        """Return the crawl value of a page as things stand; O(K)."""
        pages = self._pages
        crawled_at, importance = pages.crawled_at.item(page), pages.importance.item(page)
        if crawled_at == -np.inf:
            parameters = self.in_force.of(page)
            return SteadyValue(parameters.new_values.item(parameters.group(pages.host.item(page))) * importance)
        if importance == 0.0:
            return SteadyValue(0.0)
        weights = self.value_weights_one(page)
        rate = weight = 0.0
        if pages.source.item(page) >= 0:
            rate, weight = self.announcements.signals_one(page)
        if weight > 0 and rate > 0:
            evidence = weight * self.announcements.heard_one(page)
            return SignalledValue(self._grid, weights, crawled_at, importance, evidence, rate, weight)
        return GrowingValue(self._grid, weights, crawled_at, importance)

    def many(self, pages: IndexArray) -> PageValues:
        """Return the crawl values of pages as things stand; O(K) a page."""
        signals = self.announcements.gathered(pages)
        if GATHERED.compiled:
            return self._compiled(pages, signals)
        return self._by_numpy(pages, self._pages.crawled_at[pages], signals)

    def supposing(self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any]) -> PageValues:
        """Return the crawl values of pages if they had last been crawled then, and announced so often since."""
        rate, weight = self.announcements.signals(pages)
        return self._by_numpy(pages, crawled_at, np.stack([rate, weight, weight * n_signals]))

    def _compiled(self, pages: IndexArray, signals: FloatArray) -> PageValues:
        """Return crawl values by compiled code; signal rates, weights and evidence have the shape (3, n)."""
        columns, n = self._pages, pages.size
        importance = columns.importance[pages].astype(np.float64)
        crawled_at, kinds = np.empty(n), np.empty(n, np.uint8)
        known = columns.crawled_at, importance, signals
        n_steady, n_silent = GATHERED.kinds_of(pages, *known, crawled_at, kinds)
        values = self._steady_values(pages, kinds == STEADY, importance) if n_steady else np.zeros(n)
        if n_steady == n:
            return MixedValues(kinds == STEADY, values, [])
        self._signalled_share += (1.0 - n_silent / n - self._signalled_share) / _CALLS
        weights = self.value_weights(pages)
        return GatheredValues(self.one, self._grid, pages, kinds, values, weights, crawled_at, importance, signals)

    def _by_numpy(self, pages: IndexArray, crawled_at: FloatArray, signals: FloatArray) -> PageValues:
        importance = self._pages.importance[pages].astype(np.float64)
        rate, weight, evidence = signals
        steady = (crawled_at == -np.inf) | (importance == 0.0)
        signalled = (rate > 0.0) & (weight > 0.0) & ~steady
        growing, weights = ~(steady | signalled), self.value_weights(pages)
        if growing.all():
            return GrowingValues(self._grid, weights, crawled_at, importance)
        if signalled.all():
            return SignalledValues(self._grid, weights, crawled_at, importance, evidence, rate, weight)
        parts: list[tuple[BoolArray, GrowingValues | SignalledValues]] = []
        if growing.any():
            parts.append((growing, GrowingValues(self._grid, *(c[growing] for c in (weights, crawled_at, importance)))))
        if signalled.any():
            columns = weights, crawled_at, importance, evidence, rate, weight
            parts.append((signalled, SignalledValues(self._grid, *(column[signalled] for column in columns))))
        return MixedValues(steady, self._steady_values(pages, steady, importance), parts)

    def _steady_values(self, pages: IndexArray, steady: BoolArray, importance: FloatArray) -> FloatArray:
        values = np.zeros(pages.size)
        if steady.any():
            hosts = self._pages.host[pages]
            for parameters, part in self.in_force.by_parameters(pages):
                rows = np.flatnonzero(steady if part is None else steady & part)
                values[rows] = parameters.new_values[parameters.groups(hosts[rows])] * importance[rows]
        return values


def _rows_within(part: BoolArray, rows: IndexArray) -> IndexArray:
    """Return where rows of a part stand among all of that part."""
    within: IndexArray = (part.cumsum() - 1)[rows]
    return within


class MixedValues(PageValues):
    """Crawl values of several pages of different kinds.

    Parameters
    ----------
    steady : ndarray of bool, shape (n,)
        Pages whose value does not change.
    values : ndarray, shape (n,)
        Their values.
    parts : list of (ndarray of bool, shape (n,), page values)
        The values of all other pages.
    """

    def __init__(
        self, steady: BoolArray, values: FloatArray, parts: list[tuple[BoolArray, GrowingValues | SignalledValues]]
    ) -> None:
        self.steady = steady
        self._values = values
        self._parts = parts

    def at(self, now: float) -> FloatArray:
        """Return the crawl values at a time."""
        values = self._values.copy()
        for part, members in self._parts:
            values[part] = members.at(now)
        return values

    def one(self, row: int) -> PageValue:
        """Return the crawl value of one of the pages."""
        for part, members in self._parts:
            if part[row]:
                return members.one(int(np.count_nonzero(part[:row])))
        return SteadyValue(self._values.item(row))

    def some(self, rows: IndexArray) -> MixedValues:
        """Return the crawl values of some of the pages."""
        parts: list[tuple[BoolArray, GrowingValues | SignalledValues]] = []
        for part, members in self._parts:
            chosen = part[rows]
            if chosen.any():
                parts.append((chosen, members.some(_rows_within(part, rows[chosen]))))
        return MixedValues(self.steady[rows], self._values[rows], parts)

    def parabolas(self, after: float, until: float) -> FloatArray:
        """Return value, slope and half curvature of parabolas that no crawl value exceeds, shape (3, n)."""
        found = np.zeros((3, self._values.size))
        found[0] = self._values
        for part, members in self._parts:
            found[:, part] = members.parabolas(after, until)
        return found

    def shortfalls(self, rows: IndexArray) -> FloatArray | None:
        """Return how far some crawl values may be below the last parabolas; None of compiled code."""
        found = np.zeros((2, rows.size))
        for part, members in self._parts:
            chosen = part[rows]
            if chosen.any():
                if (given := members.shortfalls(_rows_within(part, rows[chosen]))) is None:
                    return None
                found[:, chosen] = given
        return found

    def crossings(self, values: FloatArray, after: float, where: BoolArray) -> FloatArray:
        """Return times before which the crawl values of the pages in `where` are below `values`."""
        times = np.full(where.size, np.inf)
        aims = np.zeros(where.size)
        aims[where] = values
        for part, members in self._parts:
            chosen = part & where
            if chosen.any():
                times[chosen] = members.crossings(aims[chosen], after, where[part])
        return times[where]
