"""Crawl values by the papers' rules, as if one number for each of a page's rates were the truth."""

from __future__ import annotations

from math import exp, inf
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.compiling import Compilable
from crawlsched.crawl_value.evaluation import ELEMENTS, evaluate
from crawlsched.estimators import LearnedRates
from crawlsched.frontier import CrawlValues, PageValue, PageValues
from crawlsched.pages import Pages
from crawlsched.planner.values import plug_in_loops
from crawlsched.planner.values.plug_in_loops import HIGHEST
from crawlsched.planner.values.posterior_values import PosteriorValues
from crawlsched.planner.values.rules import Rule, rule_named
from crawlsched.planner.values.signalled import SteadyValue, highest_gain

__all__ = ["KnownRates", "PointValue", "PointValues", "RuleValues"]


# Values and slopes are right to 1e-13 or so; bounds stay clear of that.
_SLACK = 1.0 + 1e-10
# Up to so many pages plain Python is faster than numpy.
_FEW = 32
# So many pages at once keep a pick below a millisecond, compiled.
_PORTION_COMPILED = 512

#: `crawlsched.planner.values.plug_in_loops`: what compiled code can do faster.
LOOPS = Compilable(plug_in_loops, uses=(ELEMENTS,), keeps_lock=True)


class KnownRates:
    """The rates of pages where they are known.

    Parameters
    ----------
    rule : Rule
        Sees them in its own way.

    Attributes
    ----------
    columns : ndarray, shape (n, 6)
        By page what `Rule.heard` returned, nan where rates are not known.
    """

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        # What is known of a page stands side by side: it is looked at as a whole, page after page.
        self.columns: FloatArray = np.full((0, 6), np.nan)

    def set(self, pages: IndexArray, *rates: FloatArray) -> None:
        """Set change rate, recall and false signal rate of distinct pages, ascending."""
        for name, column, most in zip(
            ("change_rate", "recall", "false_signal_rate"), rates, (1e300, 1.0, 1e300), strict=True
        ):
            if not ((column >= 0) & (column <= most)).all():
                raise ValueError(
                    f"{name} must be between 0 and {most:g}, got {column[~((column >= 0) & (column <= most))][0]!r}."
                )
        if pages.size and int(pages[-1]) >= self.columns.shape[0]:
            longer = np.full((int(pages[-1]) + 1 + self.columns.shape[0] // 2, 6), np.nan)
            longer[: self.columns.shape[0]] = self.columns
            self.columns = longer
        self.columns[pages] = self._rule.heard(np.stack(rates)).T

    def get(self, pages: IndexArray) -> FloatArray:
        """Return what `Rule.heard` returned, shape (6, n); nan where rates are not known."""
        inside = pages < self.columns.shape[0]
        if inside.all():
            return np.ascontiguousarray(self.columns[pages].T)
        found = np.full((6, pages.size), np.nan)
        found[:, inside] = self.columns[pages[inside]].T
        return found

    def one(self, page: int) -> list[float] | None:
        """Return the same for one page; None if its rates are not known."""
        if page >= self.columns.shape[0]:
            return None
        found: list[float] = self.columns[page].tolist()
        return None if found[0] != found[0] else found


class _HasKnownRates(Protocol):
    known_rates: KnownRates | None
    learned: LearnedRates | None

    def change_rates(self, pages: IndexArray) -> FloatArray: ...


class PointValues(CrawlValues):
    """Crawl values by one of the papers' rules, with known rates or else with the posterior's means.

    Parameters
    ----------
    pages : Pages
    estimates : PosteriorValues
        Where rates come from that are not known.
    rule : str
        A name that `rule_named` knows.
    known : object
        Has `known_rates`; and where rates come from that are not known, `learned` and its `change_rates`.
    """

    def __init__(self, pages: Pages, estimates: PosteriorValues, rule: str, known: _HasKnownRates) -> None:
        self._pages = pages
        self._estimates = estimates
        found = rule_named(rule)
        assert found is not None
        self._rule = found
        self._known = known

    def soon_at_most(self, page: int, until: float, enough: float = inf) -> float:
        """Return what the crawl value of a page does not exceed until a time, inf if it is not known; O(1)."""
        columns = self._pages
        crawled_at, importance = columns.crawled_at.item(page), columns.importance.item(page)
        if crawled_at == -inf or (importance and (columns.n_signals.item(page) or columns.further.item(page))):
            return inf
        at_most: float = importance * highest_gain(until - crawled_at)
        return at_most

    def deciding(self, pages: IndexArray) -> list[npt.NDArray[Any]]:
        """Return all that the crawl values of pages depend on beside their host; see `CrawlValues`."""
        columns = self._estimates.deciding(pages)
        known = self._known.known_rates
        if self._known.learned is not None:
            columns = [*columns, self._known.change_rates(pages)]
        return columns if known is None else [*columns, known.get(pages).T]

    @property
    def portion(self) -> int:
        """How many pages are looked at in a third of a millisecond or so."""
        return _PORTION_COMPILED if LOOPS.compiled else super().portion

    @property
    def few(self) -> int:
        """Up to how many pages are dealt with faster one by one than together."""
        return _FEW

    def one(self, page: int) -> PageValue:
        """Return the crawl value of a page as things stand."""
        known = self._known.known_rates
        seen = None if known is None else known.one(page)
        if seen is None:
            return super().one(page)
        columns = self._pages
        return _point_value(
            self._rule,
            seen,
            self._estimates.announcements.counted_one(page),
            columns.crawled_at.item(page),
            columns.importance.item(page),
            self._estimates.in_force.parameters.discovery_horizon,
        )

    def many(self, pages: IndexArray) -> RuleValues:
        """Return the crawl values of pages as things stand."""
        # By these rules an announcement is worth what it is, be it estimated or known; n of them n times that.
        return self.supposing(pages, self._pages.crawled_at[pages], self._estimates.announcements.counted(pages))

    def supposing(self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any]) -> RuleValues:
        """Return the crawl values of pages if they had last been crawled then, and announced so often since."""
        horizon = self._estimates.in_force.parameters.discovery_horizon
        columns = np.empty((10, pages.size))
        columns[:6] = self.rates_of(pages)
        columns[6], columns[7], columns[8] = n_signals, crawled_at, self._pages.importance[pages]
        columns[9] = columns[8] / (columns[0] + 1 / horizon)
        return RuleValues(self._rule, columns, horizon)

    def rates_of(self, pages: IndexArray) -> FloatArray:
        """Return what the rule sees of the rates of pages, known or estimated: as `Rule.heard`, shape (6, n)."""
        known = self._known.known_rates
        seen = np.full((6, pages.size), np.nan) if known is None else known.get(pages)
        rows = np.flatnonzero(np.isnan(seen[0]))
        if rows.size:
            seen[:, rows] = self._rule.heard(self._estimated(pages[rows]))
        return seen

    def _estimated(self, pages: IndexArray) -> FloatArray:
        signal_rate, signal_weight = self._estimates.announcements.signals(pages)
        # An announcement says nothing of a page without a copy: its value waits for the first visit.
        signal_rate[self._pages.crawled_at[pages] == -np.inf] = 0.0
        false = signal_rate * np.exp(-signal_weight)
        if self._known.learned is not None:
            # An estimator counts all changes: no more of them can have been announced.
            change_rate = self._known.change_rates(pages)
            return np.stack([change_rate, np.minimum((signal_rate - false) / change_rate, 1.0), false])
        unsignalled = (self._estimates.weights(pages) * self._estimates.in_force.parameters.rates).sum(axis=1)
        change_rate = unsignalled + signal_rate - false
        return np.stack([change_rate, (signal_rate - false) / change_rate, false])


class RuleValues(PageValues):
    """The values of several pages by a rule; see `crawlsched.frontier.PageValues`.

    Parameters
    ----------
    rule : Rule
    columns : ndarray, shape (10, n)
        All that values depend on: what `Rule.heard` returned (change rate, recall and false signal rate, then alpha,
        gamma and kappa), announcements since the last crawl, when that was, importance, and what the page is worth if
        it has never been crawled.
    horizon : float
        How far ahead a first crawl counts, seconds.
    """

    def __init__(self, rule: Rule, columns: FloatArray, horizon: float) -> None:
        self._rule = rule
        self._max_terms = rule.max_terms
        self._columns = columns
        self._horizon = horizon
        self.steady: BoolArray = (columns[7] == -np.inf) | (columns[8] == 0.0)
        # Of the last parabolas without compiled code: when they begin, values, slopes and bounds on the slopes' slopes.
        self._known: tuple[float, tuple[FloatArray, FloatArray, FloatArray]] | None = None

    def at(self, now: float) -> FloatArray:
        """Return the crawl values at a time."""
        return self._terms(now)[0]

    def _terms(self, now: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return crawl value, its slope in time, and a bound on the slope's slope."""
        # V rises by μ α exp(-y) ψ(y) a second, y = α τ + κ n (Lemma 4 of the noisy-signals paper; of the sums up to
        # term j too, where ψ is that of these terms), and ψ, the mean time until y is reached, by at most one second
        # a second: while no announcement comes the slope rises by at most μ α exp(-y) a second.
        _, _, _, alpha, gamma, kappa, n_signals, crawled_at, importance, new = self._columns
        never = crawled_at == -np.inf
        elapsed = np.maximum(now - np.where(never, now, crawled_at), 0.0)
        with np.errstate(under="ignore", over="ignore"):
            stale = alpha * elapsed + np.where(n_signals > 0.0, kappa, 0.0) * n_signals
            value, slope = _evaluated(stale, alpha, gamma, kappa, self._max_terms)
            value = np.minimum(np.where(never, new, value * importance), HIGHEST)
            growth = np.where(self.steady, 0.0, alpha * importance)
            return value, np.where(growth > 0.0, slope, 0.0) * growth, np.exp(-stale) * growth

    def one(self, row: int) -> PageValue:
        """Return the crawl value of one of the pages."""
        *seen, n_signals, crawled_at, importance, _ = self._columns[:, row].tolist()
        return _point_value(self._rule, seen, n_signals, crawled_at, importance, self._horizon)

    def some(self, rows: IndexArray) -> RuleValues:
        """Return the crawl values of some of the pages."""
        return RuleValues(self._rule, self._columns.take(rows, axis=1), self._horizon)

    def parabolas(self, after: float, until: float) -> FloatArray:
        """Return value, slope and half curvature of parabolas that no crawl value exceeds, shape (3, n)."""
        self._known = after, self._terms(after)
        value, slope, curvature = self._known[1]
        found = np.empty((3, value.size))
        found[0] = np.where(self.steady, value, value * _SLACK)
        np.multiply(slope, _SLACK, out=found[1])
        np.multiply(curvature, 0.5 * _SLACK, out=found[2])
        return found

    def crossings(self, values: FloatArray, after: float, where: BoolArray) -> FloatArray:
        """Return times before which the crawl values of the pages in `where` are below `values`."""
        times = np.full(where.size, np.inf)
        aims = np.ones(where.size)
        aims[where] = values
        grows = where & ~self.steady
        # A tangent (see `_terms`) where the value is known reaches the level too early. To come closer takes another
        # evaluation, which in numpy costs more than the looks that it saves.
        start, terms = (after, self._terms(after)) if self._known is None else self._known
        value, slope, curvature = (column[grows] for column in terms)
        missing = np.maximum(aims[grows] - value, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = slope + np.sqrt(slope * slope + 2.0 * curvature * missing)
            wait = np.where(rise > 0.0, 2.0 * missing / rise * (1 - 1e-9), np.inf)
        times[grows] = np.maximum(start + np.where(missing > 0.0, wait, 0.0), after)
        return times[where]


def _evaluated(
    stale: FloatArray, alpha: FloatArray, gamma: FloatArray, kappa: FloatArray, max_terms: float
) -> tuple[FloatArray, FloatArray]:
    """Return values and their derivatives by y; of few pages one by one, which is faster than numpy."""
    if ELEMENTS.compiled:
        value, slope = np.empty((2, stale.size))
        ELEMENTS.many_terms(stale, alpha, gamma, kappa, max_terms, value, slope)
        return value, slope
    if stale.size > _FEW:
        return evaluate(stale, alpha, gamma, kappa, max_terms)
    columns = zip(stale.tolist(), alpha.tolist(), gamma.tolist(), kappa.tolist(), strict=True)
    terms = np.array([ELEMENTS.element_terms(*column, max_terms) for column in columns]).reshape(-1, 2)
    return terms[:, 0], terms[:, 1]


def _point_value(
    rule: Rule, seen: list[float], n_signals: float, crawled_at: float, importance: float, horizon: float
) -> PageValue:
    if crawled_at == -inf:
        return SteadyValue(min(importance / (seen[0] + 1 / horizon), HIGHEST))
    if importance == 0.0:
        return SteadyValue(0.0)
    change_rate, _, _, alpha, gamma, kappa = seen
    evidence = kappa * n_signals if n_signals else 0.0
    return PointValue(change_rate, alpha, gamma, kappa, rule.max_terms, evidence, crawled_at, importance)


class PointValue(PageValue):
    """The value of one page by a rule; see `crawlsched.frontier.PageValue`.

    Parameters
    ----------
    change_rate, unsignalled_change_rate, signal_rate, signal_weight : float
        As the rule sees them.
    max_terms : float
        Terms of the sum to use.
    evidence : float
        Nats that announcements since the last crawl take off the log-probability of freshness.
    crawled_at : float
        POSIX seconds.
    importance : float
        Above 0.
    """

    __slots__ = ("_change_rate", "_crawled_at", "_evidence", "_importance", "_natural")
    steady = False

    def __init__(
        self,
        change_rate: float,
        unsignalled_change_rate: float,
        signal_rate: float,
        signal_weight: float,
        max_terms: float,
        evidence: float,
        crawled_at: float,
        importance: float,
    ) -> None:
        self._change_rate = change_rate
        self._natural = unsignalled_change_rate, signal_rate, signal_weight, max_terms
        self._evidence = evidence
        self._crawled_at = crawled_at
        self._importance = importance

    def at(self, now: float) -> float:
        """Return the crawl value at a time."""
        stale = self._natural[0] * max(now - self._crawled_at, 0.0) + self._evidence
        value: float = ELEMENTS.element_terms(stale, *self._natural)[0] * self._importance
        return min(value, HIGHEST)

    def bound(self, until: float, rough: bool = False) -> float:
        """Return what the crawl value does not exceed until a time."""
        return self.at(until) * _SLACK

    def parabola(self, after: float, until: float) -> tuple[float, float, float]:
        """Return value, slope and half curvature of a parabola that the crawl value does not exceed."""
        alpha, importance = self._natural[0], self._importance
        stale = alpha * max(after - self._crawled_at, 0.0) + self._evidence
        value, slope = ELEMENTS.element_terms(stale, *self._natural)
        growth = alpha * importance * _SLACK
        rise = slope * growth if growth > 0.0 else 0.0
        return min(value * importance, HIGHEST) * _SLACK, rise, 0.5 * exp(-stale) * growth

    def crossing(self, value: float, after: float) -> float:
        """Return a time before which the crawl value is below `value`."""
        stale = self._natural[0] * max(after - self._crawled_at, 0.0) + self._evidence
        wait: float = LOOPS.point_crossing(self._change_rate, *self._natural, stale, value / self._importance)
        return after + wait
