"""Crawl values by the papers' rules, as if one number for each of a page's rates were the truth."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.crawl_value.inverse import LARGEST_SHARE, inverse_residual_one
from crawlsched.crawl_value.terms import noisy_terms
from crawlsched.estimators import LearnedRates
from crawlsched.frontier import CrawlValues
from crawlsched.pages import Pages
from crawlsched.planner.values.posterior_values import PosteriorValues
from crawlsched.planner.values.reaching import HIGHEST, tangent_wait
from crawlsched.planner.values.rules import Rule, rule_named

__all__ = ["KnownRates", "PointValues"]


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

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at a time, or each at its own."""
        # By these rules an announcement is worth what it is, be it estimated or known; n of them n times that.
        return self._terms(pages, self._pages.crawled_at[pages], self._estimates.announcements.counted(pages), now)[0]

    def supposing(
        self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any], now: float
    ) -> FloatArray:
        """Return the crawl values of pages if they had last been crawled then, and announced so often since."""
        return self._terms(pages, crawled_at, n_signals, now)[0]

    def reaches(self, pages: IndexArray, level: float | FloatArray, now: float) -> FloatArray:
        """Return about when crawl values reach a level; too early for pages with announcements, but never too late."""
        crawled_at, n_signals = self._pages.crawled_at[pages], self._estimates.announcements.counted(pages)
        value, slope, curvature = self._terms(pages, crawled_at, n_signals, now)
        times = now + tangent_wait(np.broadcast_to(level, pages.shape) - value, slope, curvature)
        # As if nothing were ever announced: announcements to come only lower a value.
        rates, importance = self.rates_of(pages), self._pages.importance[pages]
        alpha = rates[3]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(alpha > 0.0, level * alpha / importance, 0.0)
            plain = crawled_at + inverse_residual_one(np.clip(share, 0.0, LARGEST_SHARE)) / alpha
        known = (n_signals == 0.0) & (alpha > 0.0) & (share < 1.0) & (times > now)
        found: FloatArray = np.where(known, np.fmax(times, plain), times)
        return found

    def _terms(
        self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any], now: float | FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return crawl value, its slope in time, and a bound on the slope's slope."""
        change_rate, _, _, alpha, gamma, kappa = self.rates_of(pages)
        importance = self._pages.importance[pages].astype(np.float64)
        never = crawled_at == -np.inf
        elapsed = np.maximum(now - np.where(never, now, crawled_at), 0.0)
        with np.errstate(under="ignore", over="ignore", invalid="ignore"):
            stale = alpha * elapsed + np.where(n_signals > 0.0, kappa, 0.0) * n_signals
            value, slope = noisy_terms(stale, alpha, gamma, kappa, self._rule.max_terms)
            horizon = self._estimates.in_force.parameters.discovery_horizon
            value = np.where(never, 1.0 / (change_rate + 1.0 / horizon), value)
            value = np.where(importance > 0.0, np.minimum(value * importance, HIGHEST), 0.0)
            growth = np.where(never, 0.0, alpha * importance)
            return value, np.where(growth > 0.0, slope, 0.0) * growth, np.exp(-stale) * growth

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
