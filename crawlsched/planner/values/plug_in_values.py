"""Crawl values by the papers' rules, as if one number for each of a page's rates were the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.crawl_value.inverse import LARGEST_SHARE, inverse_residual_one
from crawlsched.crawl_value.reaching import HIGHEST, tangent_wait
from crawlsched.crawl_value.rules_by_name import Rule
from crawlsched.crawl_value.terms import noisy_terms
from crawlsched.frontier import CrawlValues
from crawlsched.pages import Pages
from crawlsched.planner.evidence.announcements import Announcements

__all__ = ["PointValues"]


class PointValues(CrawlValues):
    """Crawl values by one of the papers' rules, with known rates or else with those that `change_rates` estimates."""

    def __init__(
        self,
        pages: Pages,
        announcements: Announcements,
        rule: Rule,
        change_rates: Callable[[IndexArray], FloatArray],
    ) -> None:
        self._pages = pages
        self._announcements = announcements
        self._rule = rule
        self._change_rates = change_rates
        # By page what `Rule.heard` returned, and whether that is known.
        self._known: FloatArray = np.zeros((0, 6))
        self._is_known: npt.NDArray[np.bool_] = np.zeros(0, bool)

    def know(self, pages: IndexArray, **rates: npt.ArrayLike) -> None:
        """Set ``change_rate``, ``recall`` and ``false_signal_rate`` of distinct pages, which are estimated no more."""
        columns = np.array([np.broadcast_to(np.asarray(rate, np.float64), pages.shape) for rate in rates.values()])
        for name, column, most in zip(rates, columns, (HIGHEST, 1.0, HIGHEST), strict=True):
            if not ((column >= 0) & (column <= most)).all():
                wrong = column[~((column >= 0) & (column <= most))][0]
                raise ValueError(f"{name} must be between 0 and {most:g}, got {wrong!r}.")
        if self._is_known.size < self._pages.n:
            self._known = grown(self._known, self._pages.capacity)
            self._is_known = grown(self._is_known, self._pages.capacity)
        self._known[pages], self._is_known[pages] = self._rule.heard(columns).T, True

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at a time, or each at its own."""
        # By these rules an announcement is worth what it is, be it estimated or known; n of them n times that.
        return self._terms(pages, self._pages.crawled_at[pages], self._announcements.counted(pages), now)[0]

    def supposing(
        self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.NDArray[Any], now: float
    ) -> FloatArray:
        """Return the crawl values of pages if they had last been crawled then, and announced so often since."""
        return self._terms(pages, crawled_at, n_signals, now)[0]

    def reaches(self, pages: IndexArray, level: float | FloatArray, now: float) -> FloatArray:
        """Return about when crawl values reach a level; too early for pages with announcements, but never too late."""
        crawled_at, n_signals = self._pages.crawled_at[pages], self._announcements.counted(pages)
        value, slope, curvature = self._terms(pages, crawled_at, n_signals, now)
        times = now + tangent_wait(np.broadcast_to(level, pages.shape) - value, slope, curvature)
        # As if nothing were ever announced: announcements to come only lower a value.
        alpha, importance = self.rates_of(pages)[3], self._pages.importance[pages]
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
        with np.errstate(under="ignore", over="ignore", invalid="ignore", divide="ignore"):
            stale = alpha * elapsed + np.where(n_signals > 0.0, kappa, 0.0) * n_signals
            value, slope = noisy_terms(stale, alpha, gamma, kappa, self._rule.max_terms)
            value = np.where(never, 1.0 / change_rate, value)
            value = np.where(importance > 0.0, np.minimum(value * importance, HIGHEST), 0.0)
            growth = np.where(never, 0.0, alpha * importance)
            return value, np.where(growth > 0.0, slope, 0.0) * growth, np.exp(-stale) * growth

    def rates_of(self, pages: IndexArray) -> FloatArray:
        """Return what the rule sees of the rates of pages, known or estimated: as `Rule.heard`, shape (6, n)."""
        seen, inside = np.empty((6, pages.size)), pages < self._is_known.size
        is_known = inside.copy()
        is_known[inside] = self._is_known[pages[inside]]
        seen[:, is_known] = self._known[pages[is_known]].T
        if not is_known.all():
            seen[:, ~is_known] = self._rule.heard(self._estimated(pages[~is_known]))
        return seen

    def _estimated(self, pages: IndexArray) -> FloatArray:
        signal_rate, signal_weight = self._announcements.signals(pages)
        signal_rate[self._pages.crawled_at[pages] == -np.inf] = 0.0
        false, change_rate = signal_rate * np.exp(-signal_weight), self._change_rates(pages)
        # No more changes can have been announced than there are.
        return np.stack([change_rate, np.minimum((signal_rate - false) / change_rate, 1.0), false])
