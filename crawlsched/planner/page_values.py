"""Crawl values of pages as things stand: the one place where what is known of a page becomes what it is worth."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.crawl_value.sources import merge_sources
from crawlsched.estimators import Posterior
from crawlsched.estimators.probabilities import posterior_probabilities
from crawlsched.frontier import PageValue, PageValues
from crawlsched.pages import Pages
from crawlsched.planner.further_sources import FurtherSources
from crawlsched.planner.parameters import Parameters
from crawlsched.planner.posterior_value import (
    ROWS,
    Grid,
    GrowingValue,
    GrowingValues,
    SignalledValue,
    SignalledValues,
    SteadyValue,
)

__all__ = ["SIGNALS_OF_A_RATE", "MixedValues", "PosteriorValues"]

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

#: A page's signal rate is its own count of signals with so many added at the rate of its source.
SIGNALS_OF_A_RATE = 2.0
# With less than this a signal tells nothing, and its page is treated as one without signals.
_LEAST_WEIGHT = 1e-4
# Evidence that a co-change is taken to bring where no source tells: it only says how often there are further ones.
_CO_CHANGE_WEIGHT = 1.0
# Up to so many pages compiled code is faster one by one.
_FEW_COMPILED = 24


class PosteriorValues:
    """The posterior crawl value (design, section 4): the expectation of the crawl value over what is still possible.

    Parameters
    ----------
    pages : Pages
    posterior : Posterior
        A row per page.
    parameters : Parameters
        In force for all pages; while `adopted` is not None only for those before it.
    further : FurtherSources, optional
        What sources beside its first one say of a page; nothing by default.
    """

    def __init__(
        self, pages: Pages, posterior: Posterior, parameters: Parameters, further: FurtherSources | None = None
    ) -> None:
        self._pages = pages
        self._further = FurtherSources(pages) if further is None else further
        self._posterior = posterior
        self._grid = Grid(posterior.rates)
        self.parameters = parameters
        self._before = parameters
        self._adopted_below: int | None = None

    # -- which parameters are in force

    def begin_adoption(self, parameters: Parameters) -> None:
        """Let new parameters be in force for no page yet."""
        self._before, self.parameters, self._adopted_below = self.parameters, parameters, 0

    def adopt_below(self, page: int | None) -> None:
        """Let the new parameters be in force for pages below this number; None: for all."""
        self._adopted_below = page
        if page is None:
            self._before = self.parameters

    def parameters_of(self, page: int) -> Parameters:
        """Return the parameters in force for a page."""
        below = self._adopted_below
        return self.parameters if below is None or page < below else self._before

    def _by_parameters(self, pages: IndexArray) -> list[tuple[Parameters, BoolArray | None]]:
        if self._adopted_below is None:
            return [(self.parameters, None)]
        new = pages < self._adopted_below
        return [(p, part) for p, part in ((self.parameters, new), (self._before, ~new)) if part.any()]

    # -- what is known of a page

    def weights(self, pages: IndexArray) -> FloatArray:
        """Return the posterior probabilities of the rates, shape (n, K)."""
        return self._weighted(pages, "priors")

    def value_weights(self, pages: IndexArray) -> FloatArray:
        """Return what each rate counts for in the crawl values of pages, shape (n, K)."""
        return self._weighted(pages, "value_priors")

    def _weighted(self, pages: IndexArray, name: str) -> FloatArray:
        hosts = self._pages.host[pages]
        stored = self._posterior._columns["log_likelihood"][pages]
        before = np.empty((pages.size, self._grid.rates.size))
        for parameters, part in self._by_parameters(pages):
            priors: FloatArray = getattr(parameters, name)
            if priors.shape[0] == 1:
                before[... if part is None else part] = priors[0]
            elif part is None:
                before = priors[parameters.groups(hosts)]
            else:
                before[part] = priors[parameters.groups(hosts[part])]
        return posterior_probabilities(stored, before)

    def prior_one(self, page: int) -> FloatArray:
        """Return the prior probabilities of the rates for one page, shape (K,)."""
        parameters = self.parameters_of(page)
        prior: FloatArray = parameters.priors[parameters.group(self._pages.host.item(page))]
        return prior

    def weights_one(self, page: int) -> FloatArray:
        """Return the posterior probabilities of the rates for one page, shape (K,)."""
        return self._posterior.weights_one(page, self.prior_one(page))

    def value_weights_one(self, page: int) -> FloatArray:
        """Return what each rate counts for in the crawl value of one page, shape (K,)."""
        parameters = self.parameters_of(page)
        prior = parameters.value_priors[parameters.group(self._pages.host.item(page))]
        return self._posterior.weights_one(page, prior)

    def signals(self, pages: IndexArray) -> tuple[FloatArray, FloatArray]:
        """Return signal rates (per second) and signal weights (nats); 0 both for pages whose signals tell nothing.

        The rate is counted per page, so it is 0 before the first announcement: a page that a source names and has never
        announced is worth what it would be without the source.
        """
        rate, weight = np.zeros(pages.size), np.zeros(pages.size)
        sources = self._pages.source[pages]
        if (sources < 0).all():
            return rate, weight
        for parameters, part in self._by_parameters(pages):
            rows = np.flatnonzero(sources >= 0 if part is None else (sources >= 0) & part)
            weight[rows] = parameters.of_source(parameters.signal_weights, sources[rows])
            rate[rows] = parameters.of_source(parameters.signal_rates, sources[rows])
        weight[weight < _LEAST_WEIGHT] = 0.0
        rows = np.flatnonzero((weight > 0) & (rate > 0))
        rate[rows] = self._own_rate(pages[rows], rate[rows])
        rate[(weight == 0.0) | (self._pages.n_signals_total[pages] == 0)] = 0.0
        for row in np.flatnonzero(self._pages.further[pages]).tolist():
            rate[row], weight[row], _ = self._of_several(int(pages[row]))
        return rate, weight

    def signals_one(self, page: int) -> tuple[float, float]:
        """Return what `signals` returns, to the last bit, for one page."""
        columns, parameters = self._pages, self.parameters_of(page)
        if columns.further.item(page):
            return self._of_several(page)[:2]
        source = columns.source.item(page)
        if source < 0:
            return 0.0, 0.0
        weight: float = parameters.signal_weights.item(min(source, parameters.signal_weights.size - 1))
        if weight < _LEAST_WEIGHT:
            return 0.0, 0.0
        rate: float = parameters.signal_rates.item(min(source, parameters.signal_rates.size - 1))
        total = columns.n_signals_total.item(page)
        if total == 0 or rate <= 0:
            return 0.0, weight
        time = max(columns.crawled_at.item(page) - columns.signalled_since.item(page), 0.0)
        counted = max(float(total) - columns.n_signals.item(page), 0.0)
        if not time < np.inf:
            time = 0.0
        return (counted + SIGNALS_OF_A_RATE) / (time + SIGNALS_OF_A_RATE / rate), weight

    def heard(self, pages: IndexArray) -> FloatArray:
        """Return how many announcements, of the weight that `signals` gives, there were since the last crawl.

        A whole number, unless several sources cover the page: evidence is the sum of their κ n.
        """
        n: FloatArray = self._pages.n_signals[pages].astype(np.float64)
        for row in np.flatnonzero(self._pages.further[pages]).tolist():
            n[row] = self.heard_one(int(pages[row]))
        return n

    def heard_one(self, page: int) -> float:
        """Return what `heard` returns for one page."""
        if not self._pages.further.item(page):
            return float(self._pages.n_signals.item(page))
        _, weight, evidence = self._of_several(page)
        return evidence / weight if weight > 0 else 0.0

    def _of_several(self, page: int) -> tuple[float, float, float]:
        """Return signal rate, signal weight and evidence of a page that several sources cover."""
        parameters, crawled_at = self.parameters_of(page), self._pages.crawled_at.item(page)
        rates, weights, evidence = [], [], 0.0
        for source, n_signals, n_total, since in self._further.counts(page):
            number = min(source, parameters.signal_weights.size - 1)
            weight = parameters.signal_weights.item(number)
            if weight < _LEAST_WEIGHT or n_total == 0:
                continue
            time = max(crawled_at - since, 0.0) if crawled_at > -np.inf else 0.0
            counted = max(n_total - n_signals, 0) + SIGNALS_OF_A_RATE
            rates.append(counted / (time + SIGNALS_OF_A_RATE / parameters.signal_rates.item(number)))
            weights.append(weight)
            evidence += weight * n_signals
        if len(rates) <= 1:
            return (rates[0], weights[0], evidence) if rates else (0.0, 0.0, 0.0)
        return *_merged(tuple(rates), tuple(weights)), evidence

    def _own_rate(self, pages: IndexArray, towards: FloatArray) -> FloatArray:
        # Counted up to the last crawl: what has come since is evidence, and the rate must not change between events.
        columns = self._pages
        counted = np.maximum(columns.n_signals_total[pages].astype(np.float64) - columns.n_signals[pages], 0.0)
        time = np.maximum(columns.crawled_at[pages] - columns.signalled_since[pages], 0.0)
        time = np.where(np.isfinite(time), time, 0.0)
        return (counted + SIGNALS_OF_A_RATE) / (time + SIGNALS_OF_A_RATE / towards)

    # -- what pages around a page say of it

    def co_change_evidence(self, pages: IndexArray) -> FloatArray:
        """Return what co-changes since their crawls take off the log-probability that pages are fresh, nats."""
        evidence = np.zeros(pages.size)
        for parameters, part in self._by_parameters(pages):
            if parameters.co_changes:
                rows = np.arange(pages.size) if part is None else np.flatnonzero(part)
                columns = self._pages.host[pages[rows]], self._pages.crawled_at[pages[rows]]
                evidence[rows] = parameters.co_changes.evidence(*columns)
        return evidence

    def co_change_evidence_one(self, page: int) -> float:
        """Return what `co_change_evidence` returns for one page."""
        found = self.parameters_of(page).co_changes
        return found.evidence_one(self._pages.host.item(page), self._pages.crawled_at.item(page)) if found else 0.0

    def _co_change_rate(self, pages: IndexArray) -> FloatArray:
        """Return how often co-changes reach pages, per second: what a fresh copy has to expect of them."""
        rates, slowest = np.empty(pages.size), self._grid.rates.item(0)
        for parameters, part in self._by_parameters(pages):
            rows = np.arange(pages.size) if part is None else np.flatnonzero(part)
            rates[rows] = parameters.co_changes.rates(self._pages.host[pages[rows]], slowest)
        return rates

    # -- what a page is worth

    def hears(self, page: int) -> bool:
        """Whether one more ChangeSignal changes what a page is worth."""
        return self._pages.source.item(page) >= 0

    @property
    def few(self) -> int:
        """Up to how many pages are dealt with faster one by one than together."""
        return _FEW_COMPILED if ROWS.compiled else 1

    def one(self, page: int) -> PageValue:
        """Return the crawl value of a page as things stand; O(K)."""
        pages = self._pages
        crawled_at, importance = pages.crawled_at.item(page), pages.importance.item(page)
        if crawled_at == -np.inf:
            parameters = self.parameters_of(page)
            return SteadyValue(parameters.new_values.item(parameters.group(pages.host.item(page))) * importance)
        if importance == 0.0:
            return SteadyValue(0.0)
        weights = self.value_weights_one(page)
        rate = weight = 0.0
        if pages.source.item(page) >= 0:
            rate, weight = self.signals_one(page)
        together = self.co_change_evidence_one(page)
        if together > 0.0 or (weight > 0 and rate > 0):
            evidence = weight * self.heard_one(page) + together
            if not (weight > 0 and rate > 0):
                rate, weight = self._co_change_rate(np.array([page])).item(0), _CO_CHANGE_WEIGHT
            return SignalledValue(self._grid, weights, crawled_at, importance, evidence, rate, weight)
        return GrowingValue(self._grid, weights, crawled_at, importance)

    def many(self, pages: IndexArray) -> PageValues:
        """Return the crawl values of pages as things stand; O(K) a page."""
        together = self.co_change_evidence(pages)
        return self.supposing(pages, self._pages.crawled_at[pages], self.heard(pages), together)

    def supposing(
        self,
        pages: IndexArray,
        crawled_at: FloatArray,
        n_signals: npt.NDArray[Any],
        together: FloatArray | None = None,
    ) -> PageValues:
        """Return the crawl values of pages if they had last been crawled then, and announced so often since.

        `together` is the evidence of co-changes since, nats; none by default.
        """
        importance = self._pages.importance[pages].astype(np.float64)
        rate, weight = self.signals(pages)
        steady = (crawled_at == -np.inf) | (importance == 0.0)
        reached = np.zeros(pages.size, bool) if together is None else together > 0.0
        if not (steady.any() or weight.any() or reached.any()):
            return GrowingValues(self._grid, self.value_weights(pages), crawled_at, importance)
        silent = (rate <= 0) | (weight <= 0)
        signalled = ~(silent & ~reached | steady)
        growing = ~(steady | signalled)
        parts: list[tuple[BoolArray, GrowingValues | SignalledValues]] = []
        if growing.any():
            chosen = self.value_weights(pages[growing]), crawled_at[growing], importance[growing]
            parts.append((growing, GrowingValues(self._grid, *chosen)))
        if signalled.any():
            evidence = weight[signalled] * n_signals[signalled]
            if together is not None:
                evidence += together[signalled]
                silent &= reached
                rate[silent], weight[silent] = self._co_change_rate(pages[silent]), _CO_CHANGE_WEIGHT
            chosen = self.value_weights(pages[signalled]), crawled_at[signalled], importance[signalled]
            noisy = SignalledValues(self._grid, *chosen, evidence, rate[signalled], weight[signalled])
            parts.append((signalled, noisy))
        return MixedValues(steady, self._steady_values(pages, steady, importance), parts)

    def _steady_values(self, pages: IndexArray, steady: BoolArray, importance: FloatArray) -> FloatArray:
        values = np.zeros(pages.size)
        if steady.any():
            hosts = self._pages.host[pages]
            for parameters, part in self._by_parameters(pages):
                rows = np.flatnonzero(steady if part is None else steady & part)
                values[rows] = parameters.new_values[parameters.groups(hosts[rows])] * importance[rows]
        return values


@lru_cache(maxsize=8192)
def _merged(rates: tuple[float, ...], weights: tuple[float, ...]) -> tuple[float, float]:
    # Between two crawls of a page they stay as they are, and are asked for often.
    rate, weight = merge_sources(rates, weights)
    return float(rate), float(weight)


class MixedValues:
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

    def parabolas(self, after: float, until: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and half curvature of parabolas that no crawl value exceeds."""
        columns = self._values.copy(), np.zeros(self._values.size), np.zeros(self._values.size)
        for part, members in self._parts:
            for column, given in zip(columns, members.parabolas(after, until), strict=True):
                column[part] = given
        return columns

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
