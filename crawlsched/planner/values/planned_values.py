"""Crawl values that make the frontier crawl by a plan: pages in turn, or each at a rate that a formula gives it.

A policy says when a page is due, or how overdue it is; whatever is due first is worth most. So the plans of Cho and
Garcia-Molina, of Azar et al. and of Kolobov et al. go through the same slots, host limits and floors as crawl values.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from crawlsched.bandwidth.even import EvenGain, refresh_rates
from crawlsched.bandwidth.harmonic import HarmonicGain, harmonic_rates
from crawlsched.bandwidth.poisson import PoissonGain, poisson_crawl_rates
from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.frontier import CrawlValues
from crawlsched.pages import Pages

__all__ = ["POLICIES", "PlannedValues"]

Rates = Callable[[FloatArray, FloatArray, float], FloatArray]
Threshold = Callable[[FloatArray, FloatArray, float], float]

# The bandwidth is divided among so many pages at most, evenly chosen; the threshold is that of all.
_SAMPLE = 4096
# Values of what is due fall with its time from here: POSIX seconds of the year 2242.
_FAR = 2.0**33
# What a page is worth of which there is no copy: more than any that waits.
_NEW = 2.0**40


class Policy(NamedTuple):
    """How a page's rate follows from its change rate, its importance, and what all pages have in common.

    Attributes
    ----------
    rates : callable
        ``rates(change_rate, importance, threshold)`` gives crawls per second; for `overdue` policies, to a factor.
    threshold : callable or None
        ``threshold(change_rate, importance, bandwidth)`` divides the bandwidth; None: the factor does not matter.
    order : str
        ``overdue``: the page goes first whose waiting time is the most of its interval. ``random``: crawls come as
        Poisson processes. ``deadline``: by Algorithm 3 of Azar et al., the earliest deadline of those released first.
    """

    rates: Rates
    threshold: Threshold | None = None
    order: str = "overdue"


def _in_turn(change_rate: FloatArray, importance: FloatArray, threshold: float) -> FloatArray:
    return np.ones(change_rate.size)


#: The policies by name. Uniform intervals and round robin are the same where a page waits for all others.
POLICIES: dict[str, Policy] = {
    "round_robin": Policy(_in_turn),
    "uniform": Policy(_in_turn),
    "proportional": Policy(lambda change_rate, importance, threshold: change_rate),
    "square_root": Policy(lambda change_rate, importance, threshold: np.sqrt(change_rate)),
    "harmonic": Policy(
        lambda change_rate, importance, threshold: HarmonicGain(change_rate, importance).rates(threshold),
        lambda change_rate, importance, bandwidth: harmonic_rates(change_rate, importance, bandwidth).threshold,
    ),
    "lds": Policy(
        lambda change_rate, importance, threshold: EvenGain(change_rate, importance).rates(threshold),
        lambda change_rate, importance, bandwidth: refresh_rates(change_rate, importance, bandwidth).threshold,
        "deadline",
    ),
    "poisson": Policy(
        lambda change_rate, importance, threshold: PoissonGain(change_rate, importance).rates(threshold),
        lambda change_rate, importance, bandwidth: poisson_crawl_rates(change_rate, importance, bandwidth).threshold,
        "random",
    ),
}


class ChangeRates(Protocol):
    """Where change rates come from."""

    def change_rates(self, pages: IndexArray) -> FloatArray:
        """Return changes per second."""


class PlannedValues(CrawlValues):
    """Crawl values by one of `POLICIES`; see `crawlsched.frontier.CrawlValues`.

    Parameters
    ----------
    pages : Pages
    estimates : ChangeRates
        Where change rates come from.
    policy : str
        A name in `POLICIES`.

    Notes
    -----
    What a plan decides is one number, the threshold Λ at which the rates add up to the bandwidth: a page's rate follows
    from it and from what is known of the page, so that nothing is kept for each page. Until the first plan all pages
    are crawled at the same rate. Only the deadlines of ``lds`` carry something over from crawl to crawl, the share of a
    crawl that a page is still owed (8 bytes a page); it begins anew with the process. The chance of ``poisson`` is
    drawn from the page's number and how often it was crawled. A page never crawled goes first; one whose rate is 0 is
    worth nothing, and goes where no others are there.
    """

    def __init__(self, pages: Pages, estimates: ChangeRates, policy: str) -> None:
        self._pages = pages
        self._estimates = estimates
        self._policy = POLICIES[policy]
        self._threshold: float | None = None
        self._even_rate = 1.0
        self._margin = 0.0
        self._owed = np.zeros(0)

    def divide(self, bandwidth: float) -> None:
        """Divide a bandwidth among all pages, by what is known of them now; about 10 ms."""
        n = self._pages.n
        rows = np.arange(0, n, max(1, -(-n // _SAMPLE)))
        rows = rows[self._pages.state[rows] != 0]
        if not rows.size:
            return
        n_pages = max(len(self._pages), 1)
        self._even_rate, self._margin = bandwidth / n_pages, 1.0 / max(2 * n_pages - 2, 2)
        importance = self._pages.importance[rows].astype(np.float64)
        if self._policy.threshold is not None and importance.any():
            change_rate = self._estimates.change_rates(rows)
            self._threshold = self._policy.threshold(change_rate, importance, bandwidth * rows.size / n_pages)

    def crawl_rates(self, pages: IndexArray) -> FloatArray:
        """Return crawls per second (for policies that have no threshold, to a factor), shape (n,)."""
        if self._policy.threshold is not None and self._threshold is None:
            return np.full(pages.size, self._even_rate)
        importance = self._pages.importance[pages].astype(np.float64)
        change_rate = self._estimates.change_rates(pages)
        return self._policy.rates(change_rate, importance, self._threshold or 1.0)

    def crawled(self, page: int, now: float) -> None:
        """A page is about to be noted as crawled: one crawl less is owed."""
        if self._policy.order != "deadline":
            return
        before = self._pages.crawled_at.item(page)
        if before > -inf:
            self._make_room(page + 1)
            rate = self.crawl_rates(np.array([page])).item(0)
            owed = self._owed.item(page) + rate * (now - before) - 1.0
            # Where each deadline is met it is between -1 and 0. What a page could not get, because slots were late or a
            # host rested, it does not get later.
            self._owed[page] = min(max(owed, -1.0), 0.0)

    def forget(self, pages: IndexArray) -> None:
        """Owe pages nothing any more."""
        self._owed[pages[pages < self._owed.size]] = 0.0

    def _make_room(self, n: int) -> None:
        if n > self._owed.size:
            self._owed = np.concatenate([self._owed, np.zeros(max(n, self._pages.n) - self._owed.size)])

    # -- what the frontier asks

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at a time, or each at its own."""
        return self._values(pages, self._pages.crawled_at[pages], now)

    def supposing(self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.ArrayLike, now: float) -> FloatArray:
        """Return the crawl values of pages if they had last been crawled then; announcements do not count."""
        return self._values(pages, crawled_at, now)

    def reaches(self, pages: IndexArray, level: float | FloatArray, now: float) -> FloatArray:
        """Return when pages are due: by itself where a policy says so, else when so much of an interval has passed."""
        crawled_at, levels = self._pages.crawled_at[pages], np.broadcast_to(level, pages.shape)
        release, due, rate = self._times(pages, crawled_at)
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.maximum(release, due) if self._policy.order != "overdue" else crawled_at + levels / rate
        times = np.where(crawled_at == -inf, np.where(levels <= _NEW, now, inf), np.where(rate > 0.0, times, inf))
        found: FloatArray = np.maximum(np.where(levels <= 0.0, now, times), now)
        return found

    def _times(self, pages: IndexArray, crawled_at: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return when each page is released and when it is due, POSIX seconds, and its rate."""
        rate = self.crawl_rates(pages)
        if self._policy.order == "overdue":
            return crawled_at, crawled_at, rate
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._policy.order == "random":
                due = crawled_at + _exponential(pages, self._pages.n_crawls[pages]) / rate
                return np.full(pages.size, -inf), due, rate
            self._make_room(int(pages.max(initial=-1)) + 1)
            owed = self._owed[pages]
            release = crawled_at + (self._margin - owed) / rate
            return release, crawled_at + (1.0 - self._margin - owed) / rate, rate

    def _values(self, pages: IndexArray, crawled_at: FloatArray, now: float | FloatArray) -> FloatArray:
        release, due, rate = self._times(pages, crawled_at)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self._policy.order == "overdue":
                values = rate * np.maximum(now - crawled_at, 0.0)
            else:
                # The sooner something is due, the more it is worth; and before it may go, less than all that may.
                values = np.where(due < _FAR - 2.0, _FAR - due, 1.0 + 1.0 / np.maximum(due, 1.0))
                values = np.where(now < release, 1.0 / (1.0 + np.maximum(release, 1.0)), values)
        found: FloatArray = np.where(crawled_at == -inf, _NEW, np.where(rate > 0.0, values, 0.0))
        return found


def _exponential(pages: IndexArray, n_crawls: npt.NDArray[np.integer]) -> FloatArray:
    """Return a draw from the exponential distribution of mean 1 for each page and number of crawls: always the same."""
    with np.errstate(over="ignore"):
        # The finaliser of SplitMix64.
        mixed = pages.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + n_crawls.astype(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 0x9E3779B97F4A7C15)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    uniform = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
    draws: FloatArray = -np.log(uniform)
    return draws
