"""The papers' rules: crawl values of pages as if one number for each of their rates were the truth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.crawl_value import elapsed_at_value, greedy, greedy_cis, greedy_ncis
from crawlsched.pages import Pages
from crawlsched.planner.page_values import PosteriorValues

__all__ = ["RULES", "KnownRates", "PointValue", "PointValues", "RuleValues"]

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

# Values have to be finite; only a page that never changes and was announced by a rule that trusts blindly gets here.
_HIGHEST = 1e300

#: The rules by name, as functions of (elapsed, n_signals, change_rate, recall, false_signal_rate, importance).
RULES: dict[str, Callable[..., Any]] = {
    "greedy": lambda elapsed, n, rate, recall, false, weight: greedy(elapsed, rate, weight),
    "greedy_cis": lambda elapsed, n, rate, recall, false, weight: greedy_cis(elapsed, n, rate, recall, weight),
    "greedy_ncis": greedy_ncis,
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
        self._takes_signals = rule != "greedy"
        self._trusts_signals = rule == "greedy_cis"
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
        if not self._takes_signals:
            rates[1:], n_signals = 0.0, np.zeros(pages.size)
        elif self._trusts_signals:
            rates[2] = 0.0
        crawled_at, importance = columns.crawled_at[pages], columns.importance[pages].astype(np.float64)
        horizon = self._estimates.parameters.discovery_horizon
        return RuleValues(self._rule, rates, n_signals, crawled_at, importance, horizon)

    def _estimated(self, pages: IndexArray) -> FloatArray:
        weights = self._estimates.weights(pages)
        unsignalled = (weights * self._estimates.parameters.rates).sum(axis=1)
        signal_rate, signal_weight = self._estimates.signals(pages)
        false = signal_rate * np.exp(-signal_weight)
        change_rate = unsignalled + signal_rate - false
        return np.stack([change_rate, (signal_rate - false) / change_rate, false])


class RuleValues:
    """The values of several pages by a rule; see `crawlsched.frontier.PageValues`."""

    def __init__(
        self,
        rule: Callable[..., Any],
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

    def at(self, now: float) -> FloatArray:
        """Return the crawl values at a time."""
        elapsed = np.maximum(now - np.where(self._never, now, self._crawled_at), 0.0)
        values = self._rule(elapsed, self._n_signals, *self._rates, self._importance)
        finite: FloatArray = np.minimum(np.where(self._never, self._new, values), _HIGHEST)
        return finite

    def one(self, row: int) -> PointValue:
        """Return the crawl value of one of the pages."""
        part = slice(row, row + 1)
        columns = self._rates[:, part], self._n_signals[part], self._crawled_at[part], self._importance[part]
        return PointValue(RuleValues(self._rule, *columns, self._horizon))

    def parabolas(self, after: float, until: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return value, slope and half curvature of parabolas that no crawl value exceeds: flat ones."""
        values = self.at(until)
        still = np.zeros(values.size)
        return np.where(self.steady, values, values * (1 + 1e-10)), still, still

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
