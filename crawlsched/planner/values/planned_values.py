"""Crawl values that make the frontier crawl by a plan: each page has an interval, and the most overdue page goes first.

So the plans of Cho and Garcia-Molina, of Azar et al. and of Kolobov et al. go through the same slots, host limits and
floors as crawl values. Their own orders of crawls, at random or by deadlines, are replayed by `crawlsched.simulation`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.bandwidth.division import Gain, divide
from crawlsched.bandwidth.unannounced import EvenGain, HarmonicGain, PoissonGain
from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.frontier import CrawlValues
from crawlsched.pages import Pages
from crawlsched.planner.plans.plan import DEMAND_SAMPLE

__all__ = ["POLICIES", "PlannedValues"]

# The value of a page without a copy: more than any that waits.
_NEW = 2.0**40

# Policies that maximise a gain, and those whose rates are a function of the change rates, to a factor.
_GAINS: dict[str, type[Gain]] = {"harmonic": HarmonicGain, "lds": EvenGain, "poisson": PoissonGain}
_SHARES: dict[str, Callable[[FloatArray], FloatArray]] = {
    "round_robin": np.ones_like,
    "uniform": np.ones_like,
    "proportional": np.asarray,
    "square_root": np.sqrt,
}
#: The policies by name. Uniform intervals and round robin are the same where a page waits for all others.
POLICIES = (*_SHARES, *_GAINS)


class ChangeRates(Protocol):
    """Where change rates come from."""

    def change_rates(self, pages: IndexArray) -> FloatArray:
        """Return changes per second."""


class PlannedValues(CrawlValues):
    """Crawl values by one of `POLICIES`.

    Notes
    -----
    A page is worth the share of its interval that has passed. What a plan decides is one number, the threshold Λ at
    which the rates add up to the bandwidth: a page's rate follows from it and from what is known of the page, so that
    nothing is kept for each page. Until the first plan all pages are crawled at the same rate. A page never crawled
    goes first; one whose rate is 0 is worth nothing, and goes where no others are there.
    """

    def __init__(self, pages: Pages, estimates: ChangeRates, policy: str) -> None:
        self._pages = pages
        self._estimates = estimates
        self._gain, self._share = _GAINS.get(policy), _SHARES.get(policy, np.ones_like)
        self._threshold: float | None = None

    def divide(self, bandwidth: float) -> None:
        """Divide a bandwidth among all pages, by an even sample and what is known of it now; about 10 ms."""
        n = self._pages.n
        rows = np.arange(0, n, max(1, -(-n // DEMAND_SAMPLE)))
        rows = rows[self._pages.state[rows] != 0]
        importance = self._pages.importance[rows].astype(np.float64)
        if self._gain is not None and importance.any():
            gain = self._gain(self._estimates.change_rates(rows), importance)
            self._threshold = divide(gain, bandwidth * rows.size / len(self._pages)).threshold

    def crawl_rates(self, pages: IndexArray) -> FloatArray:
        """Return crawls per second, to a factor for policies without a threshold; shape (n,)."""
        if self._gain is None:
            return self._share(self._estimates.change_rates(pages))
        if self._threshold is None:
            return np.ones(pages.size)
        importance = self._pages.importance[pages].astype(np.float64)
        return self._gain(self._estimates.change_rates(pages), importance).rates(self._threshold)

    # -- what the frontier asks

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at a time, or each at its own."""
        return self.supposing(pages, self._pages.crawled_at[pages], 0.0, now)

    def supposing(
        self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.ArrayLike, now: float | FloatArray
    ) -> FloatArray:
        """Return the crawl values of pages if they had last been crawled then; announcements do not count."""
        elapsed = np.maximum(now - np.where(crawled_at == -inf, now, crawled_at), 0.0)
        found: FloatArray = np.where(crawled_at == -inf, _NEW, self.crawl_rates(pages) * elapsed)
        return found

    def reaches(self, pages: IndexArray, level: float | FloatArray, now: float) -> FloatArray:
        """Return when a given share of the intervals of pages with a copy has passed."""
        with np.errstate(divide="ignore", invalid="ignore"):
            times = self._pages.crawled_at[pages] + level / self.crawl_rates(pages)
        found: FloatArray = np.fmax(times, now)
        return found
