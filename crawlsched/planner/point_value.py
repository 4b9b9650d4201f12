"""The papers' rules: crawl values of pages as if one number for each of their rates were the truth."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.crawl_value import elapsed_at_value
from crawlsched.crawl_value.evaluation import evaluate
from crawlsched.crawl_value.rules import evidence_of, natural_parameters
from crawlsched.pages import Pages
from crawlsched.planner.page_values import PosteriorValues

__all__ = ["RULES", "KnownRates", "PointValue", "PointValues", "Rule", "RuleValues"]

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

# Values have to be finite; only a page that never changes and was announced by a rule that trusts blindly gets here.
_HIGHEST = 1e300
# Values and slopes are right to 1e-13 or so; bounds stay clear of that.
_SLACK = 1.0 + 1e-10
# GREEDY-CIS+ trusts announcements whose precision and recall are above these (section 6.7 of the paper).
_LEAST_PRECISION, _LEAST_RECALL = 0.7, 0.6


class Rule(NamedTuple):
    """One of the papers' rules, as GREEDY-NCIS of what it makes of the announcements.

    Attributes
    ----------
    ignores : callable
        ``ignores(rates)`` says of which pages it does not listen to announcements; `rates` are change rates, recalls
        and false signal rates, shape (3, n).
    trusts : bool
        Whether it takes every announcement that it listens to for a true one.
    max_terms : float
        Terms of the crawl value that it sums, as in G-NCIS-APPROX-j.
    """

    ignores: Callable[[FloatArray], BoolArray]
    trusts: bool = False
    max_terms: float = inf


def _no_page(rates: FloatArray) -> BoolArray:
    return np.zeros(rates.shape[1], bool)


def _all_pages(rates: FloatArray) -> BoolArray:
    return np.ones(rates.shape[1], bool)


def _pages_with_bad_signals(rates: FloatArray) -> BoolArray:
    change_rate, recall, false = rates
    true = recall * change_rate
    good: BoolArray = (true > _LEAST_PRECISION * (true + false)) & (recall > _LEAST_RECALL)
    return ~good


#: The rules by name.
RULES: dict[str, Rule] = {
    "greedy": Rule(_all_pages),
    "greedy_cis": Rule(_no_page, trusts=True),
    "greedy_cis_plus": Rule(_pages_with_bad_signals, trusts=True),
    "greedy_ncis": Rule(_no_page),
    "greedy_ncis_approx_1": Rule(_no_page, max_terms=1.0),
    "greedy_ncis_approx_2": Rule(_no_page, max_terms=2.0),
}


class KnownRates:
    """The rates of pages where they are known, one column each; nan where they are not."""

    def __init__(self) -> None:
        self._columns: FloatArray = np.full((3, 0), np.nan)

    def set(self, pages: IndexArray, *columns: FloatArray) -> None:
        """Set change rate, recall and false signal rate of distinct pages."""
        for name, column, most in zip(
            ("change_rate", "recall", "false_signal_rate"), columns, (1e300, 1.0, 1e300), strict=True
        ):
            if not ((column >= 0) & (column <= most)).all():
                raise ValueError(
                    f"{name} must be between 0 and {most:g}, got {column[~((column >= 0) & (column <= most))][0]!r}."
                )
        if pages.size and int(pages[-1]) >= self._columns.shape[1]:
            longer = np.full((3, int(pages[-1]) + 1 + self._columns.shape[1] // 2), np.nan)
            longer[:, : self._columns.shape[1]] = self._columns
            self._columns = longer
        self._columns[:, pages] = columns

    def get(self, pages: IndexArray) -> FloatArray:
        """Return change rates, recalls and false signal rates, shape (3, n); nan where they are not known."""
        found = np.full((3, pages.size), np.nan)
        inside = pages < self._columns.shape[1]
        found[:, inside] = self._columns[:, pages[inside]]
        return found


class _HasKnownRates(Protocol):
    known_rates: KnownRates | None


class PointValues:
    """Crawl values by one of the papers' rules, with known rates or else with the posterior's means.

    Parameters
    ----------
    pages : Pages
    estimates : PosteriorValues
        Where rates come from that are not known.
    rule : str
        A name in `RULES`.
    known : object
        Has `known_rates`.
    """

    def __init__(self, pages: Pages, estimates: PosteriorValues, rule: str, known: _HasKnownRates) -> None:
        self._pages = pages
        self._estimates = estimates
        self._rule = RULES[rule]
        self._known = known

    def one(self, page: int) -> PointValue:
        """Return the crawl value of a page as things stand."""
        return PointValue(self.many(np.array([page])))

    def many(self, pages: IndexArray) -> RuleValues:
        """Return the crawl values of pages as things stand."""
        known = self._known.known_rates
        rates = np.full((3, pages.size), np.nan) if known is None else known.get(pages)
        unknown = np.flatnonzero(np.isnan(rates[0]))
        if unknown.size:
            rates[:, unknown] = self._estimated(pages[unknown])
        columns = self._pages
        n_signals = columns.n_signals[pages].astype(np.float64)
        ignored = self._rule.ignores(rates)
        rates[1:, ignored], n_signals[ignored] = 0.0, 0.0
        if self._rule.trusts:
            rates[2] = 0.0
        crawled_at, importance = columns.crawled_at[pages], columns.importance[pages].astype(np.float64)
        horizon = self._estimates.parameters.discovery_horizon
        return RuleValues(self._rule, rates, n_signals, crawled_at, importance, horizon)

    def _estimated(self, pages: IndexArray) -> FloatArray:
        weights = self._estimates.weights(pages)
        unsignalled = (weights * self._estimates.parameters.rates).sum(axis=1)
        signal_rate, signal_weight = self._estimates.signals(pages)
        # An announcement says nothing of a page without a copy: its value waits for the first visit.
        signal_rate[self._pages.crawled_at[pages] == -np.inf] = 0.0
        false = signal_rate * np.exp(-signal_weight)
        change_rate = unsignalled + signal_rate - false
        return np.stack([change_rate, (signal_rate - false) / change_rate, false])


class RuleValues:
    """The values of several pages by a rule; see `crawlsched.frontier.PageValues`.

    Parameters
    ----------
    rule : Rule
    rates : ndarray, shape (3, n)
        Change rate, recall and false signal rate as the rule sees them.
    n_signals, crawled_at, importance : ndarray, shape (n,)
        As it sees them.
    horizon : float
        How far ahead a first crawl counts, seconds.
    """

    def __init__(
        self,
        rule: Rule,
        rates: FloatArray,
        n_signals: FloatArray,
        crawled_at: FloatArray,
        importance: FloatArray,
        horizon: float,
    ) -> None:
        self._rule = rule
        self._rates = rates
        self._n_signals = n_signals
        self._crawled_at = crawled_at
        self._importance = importance
        self._horizon = horizon
        self._never = crawled_at == -np.inf
        self.steady: BoolArray = self._never | (importance == 0.0)
        self._new = importance / (rates[0] + 1 / horizon)
        with np.errstate(under="ignore", over="ignore"):
            alpha, gamma, kappa = natural_parameters(*rates)
            # A change rate of 0 leaves no room for a true announcement.
            certain = (n_signals > 0) & (rates[0] > 0) if rule.trusts else np.zeros(n_signals.size, bool)
            self._natural: tuple[FloatArray, FloatArray, FloatArray] = alpha, gamma, kappa
            self._evidence: FloatArray = np.where(certain, np.inf, evidence_of(n_signals, kappa))

    def at(self, now: float) -> FloatArray:
        """Return the crawl values at a time."""
        return self._terms(now)[0]

    def _terms(self, now: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return crawl value, its slope in time, and a bound on the slope's slope."""
        # V rises by μ α exp(-y) ψ(y) a second, y = α τ + κ n (Lemma 4 of the noisy-signals paper; of the sums up to
        # term j too, where ψ is that of these terms), and ψ, the mean time until y is reached, by at most one second
        # a second: while no announcement comes the slope rises by at most μ α exp(-y) a second.
        alpha, gamma, kappa = self._natural
        elapsed = np.maximum(now - np.where(self._never, now, self._crawled_at), 0.0)
        with np.errstate(under="ignore", over="ignore"):
            stale = alpha * elapsed + self._evidence
            value, slope = evaluate(stale, alpha, gamma, kappa, self._rule.max_terms)
            value = np.minimum(np.where(self._never, self._new, value * self._importance), _HIGHEST)
            growth = np.where(self.steady, 0.0, alpha * self._importance)
            return value, np.where(growth > 0.0, slope, 0.0) * growth, np.exp(-stale) * growth

    def one(self, row: int) -> PointValue:
        """Return the crawl value of one of the pages."""
        part = slice(row, row + 1)
        columns = self._rates[:, part], self._n_signals[part], self._crawled_at[part], self._importance[part]
        return PointValue(RuleValues(self._rule, *columns, self._horizon))

    def parabolas(self, after: float, until: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and half curvature of parabolas that no crawl value exceeds."""
        value, slope, curvature = self._terms(after)
        return np.where(self.steady, value, value * _SLACK), slope * _SLACK, curvature * (0.5 * _SLACK)

    def crossings(self, values: FloatArray, after: float, where: BoolArray) -> FloatArray:
        """Return times before which the crawl values of the pages in `where` are below `values`."""
        times = np.full(where.size, np.inf)
        aims = np.ones(where.size)
        aims[where] = values
        grows = where & ~self.steady
        chosen = aims[grows], *self._rates[:, grows], self._importance[grows], self._n_signals[grows]
        elapsed = elapsed_at_value(*chosen)
        times[grows] = np.maximum(self._crawled_at[grows] + elapsed * (1 - 1e-8), after)
        return times[where]


class PointValue:
    """The value of one page by a rule; see `crawlsched.frontier.PageValue`."""

    __slots__ = ("_one", "steady")

    def __init__(self, one: RuleValues) -> None:
        self._one = one
        self.steady = bool(one.steady[0])

    def at(self, now: float) -> float:
        """Return the crawl value at a time."""
        return float(self._one.at(now)[0])

    def bound(self, until: float, rough: bool = False) -> float:
        """Return what the crawl value does not exceed until a time."""
        return float(self._one.parabolas(until, until)[0][0])

    def crossing(self, value: float, after: float) -> float:
        """Return a time before which the crawl value is below `value`."""
        return float(self._one.crossings(np.array([value]), after, np.ones(1, bool))[0])
