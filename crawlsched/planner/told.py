"""Told: what people say of pages, their importance, their intervals, and rates that are known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.pages import check_importance
from crawlsched.planner.knowledge import Knowledge
from crawlsched.planner.values.plug_in_values import KnownRates
from crawlsched.planner.values.rules import RULES, rule_named

__all__ = ["Told"]


class Told:
    """Take in what is said of pages.

    Parameters
    ----------
    known : Knowledge
    """

    def __init__(self, known: Knowledge) -> None:
        self._known, self._rule = known, known.rule

    def set_importance(self, pages: npt.ArrayLike, importance: npt.ArrayLike, now: float) -> None:
        """Set the weights of distinct pages; O(log n) a page."""
        now = self._known.at(now)
        rows = np.asarray(pages, np.intp).reshape(-1)
        if self._known.rows(rows).size != rows.size:
            raise ValueError(f"pages must be distinct, got {pages!r}.")
        weights = np.broadcast_to(check_importance(importance), rows.shape).astype(np.float32)
        differs = self._known.pages.importance[rows] != weights
        self._known.pages.importance[rows[differs]] = weights[differs]
        self._known.refile(rows[differs], now)

    def set_rates(
        self,
        pages: npt.ArrayLike,
        change_rate: npt.ArrayLike,
        recall: npt.ArrayLike = 0.0,
        false_signal_rate: npt.ArrayLike = 0.0,
        now: float | None = None,
    ) -> None:
        """Say what the rates of pages are, for the papers' rules: nothing is estimated for these pages any more.

        Parameters
        ----------
        pages : array_like of int
            Distinct pages.
        change_rate : array_like
            Changes per second.
        recall : array_like
            Probability that a change is announced.
        false_signal_rate : array_like
            Announcements per second without a change.
        now : float, optional
            POSIX seconds; the time passed last by default.
        """
        rule = rule_named(self._rule)
        if rule is None:
            raise ValueError(f"crawl_value must be one of {', '.join(RULES)} for known rates, got {self._rule!r}.")
        rows = self._known.rows(pages)
        order = np.argsort(np.asarray(pages, np.intp), kind="stable")
        if self._known.known_rates is None:
            self._known.known_rates = KnownRates(rule)
        columns = (
            np.broadcast_to(np.asarray(c, np.float64), order.shape) for c in (change_rate, recall, false_signal_rate)
        )
        self._known.known_rates.set(rows, *(column[order] for column in columns))
        if self._known.frontier_or_none is not None:
            self._known.refile(rows, self._known.at(self._known.now if now is None else now))

    def set_intervals(self, pages: npt.ArrayLike, rules: npt.ArrayLike, now: float) -> None:
        """Say by which rules distinct pages have their crawl intervals (0: by none), and file them again."""
        self._known.at(now)
        rows = self._known.rows(pages)
        self._known.intervals.put(rows, np.asarray(rules, np.uint8))
        self._known.refile(rows, now)
