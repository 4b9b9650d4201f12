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
from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.frontier import CrawlValues, PageValues
from crawlsched.pages import Pages
from crawlsched.planner.values.value_alone import ValueAlone

__all__ = ["POLICIES", "PlannedValues", "RampValues"]

Rates = Callable[[FloatArray, FloatArray, float], FloatArray]
Threshold = Callable[[FloatArray, FloatArray, float], float]

# The bandwidth is divided among so many pages at most, evenly chosen; the threshold is that of all.
_SAMPLE = 4096
# Values of what is due fall with its time from here: POSIX seconds of the year 2242.
_FAR = 2.0**33
# What a page is worth of which there is no copy: more than any that waits.
_NEW = 2.0**40
_SLACK = 1.0 + 1e-10


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

    def _make_room(self, n: int) -> None:
        if n > self._owed.size:
            self._owed = np.concatenate([self._owed, np.zeros(max(n, self._pages.n) - self._owed.size)])

    # -- what the frontier asks

    def ramps(self, pages: IndexArray, crawled_at: FloatArray) -> FloatArray:
        """Return what `RampValues` is made of, shape (4, n)."""
        ramps = np.zeros((4, pages.size))
        release, early, base, slope = ramps
        release[:] = crawled_at
        rate = self.crawl_rates(pages)
        if self._policy.order == "overdue":
            slope[:] = rate
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                if self._policy.order == "random":
                    release[:], due = -inf, crawled_at + _exponential(pages, self._pages.n_crawls[pages]) / rate
                else:
                    self._make_room(int(pages.max(initial=-1)) + 1)
                    owed = self._owed[pages]
                    release[:] = crawled_at + (self._margin - owed) / rate
                    due = crawled_at + (1.0 - self._margin - owed) / rate
                # The sooner something is due, the more it is worth; and before it may go, less than all that may.
                base[:] = np.where(due < _FAR - 2.0, _FAR - due, 1.0 + 1.0 / np.maximum(due, 1.0))
                early[:] = 1.0 / (1.0 + np.maximum(release, 1.0))
        never, nothing = crawled_at == -inf, rate <= 0.0
        for rows, value in ((nothing, 0.0), (never, _NEW)):
            ramps[:, rows] = np.array([[-inf], [value], [value], [0.0]])
        return ramps

    def many(self, pages: IndexArray) -> RampValues:
        """Return the crawl values of pages as things stand."""
        return RampValues(self.ramps(pages, self._pages.crawled_at[pages]))

    def supposing(self, pages: IndexArray, crawled_at: FloatArray, n_signals: npt.ArrayLike) -> RampValues:
        """Return the crawl values of pages if they had last been crawled then; announcements do not count."""
        return RampValues(self.ramps(pages, crawled_at))

    def deciding(self, pages: IndexArray) -> list[npt.NDArray[np.float64]]:
        """Return all that the crawl values of pages depend on beside their host."""
        return [np.ascontiguousarray(self.ramps(pages, self._pages.crawled_at[pages]).T)]


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


class RampValues(PageValues):
    """Values that are low until a time, and from then on rise by so much a second; `crawlsched.frontier.PageValues`.

    Parameters
    ----------
    ramps : ndarray, shape (4, n)
        Time of release (POSIX seconds), value before it, value at it, and slope from then on.
    """

    def __init__(self, ramps: FloatArray) -> None:
        self._ramps = ramps
        release, early, base, slope = ramps
        self.steady: BoolArray = (slope == 0.0) & ((release == -inf) | (early == base))

    def at(self, now: float) -> FloatArray:
        """Return the crawl values at a time."""
        release, early, base, slope = self._ramps
        with np.errstate(invalid="ignore"):
            late = base + np.where(slope > 0.0, slope * np.maximum(now - release, 0.0), 0.0)
        values: FloatArray = np.where(now < release, early, late)
        return values

    def one(self, row: int) -> ValueAlone:
        """Return the crawl value of one of the pages."""
        return ValueAlone(RampValues(self._ramps[:, row : row + 1]))

    def some(self, rows: IndexArray) -> RampValues:
        """Return the crawl values of some of the pages."""
        return RampValues(self._ramps[:, rows])

    def parabolas(self, after: float, until: float) -> FloatArray:
        """Return value, slope and half curvature of lines that no crawl value exceeds, shape (3, n)."""
        release, _, _, slope = self._ramps
        found = np.zeros((3, release.size))
        # What is released on the way counts from the beginning.
        comes = (release > after) & (release <= until)
        found[0] = np.where(comes, self.at(until), self.at(after)) * np.where(slope > 0.0, _SLACK, 1.0)
        found[1] = np.where((release <= after) & (slope > 0.0), slope * _SLACK, 0.0)
        return found

    def crossings(self, values: FloatArray, after: float, where: BoolArray) -> FloatArray:
        """Return times before which the crawl values of the pages in `where` are below `values`."""
        release, _, base, slope = self._ramps[:, where]
        reached = self.at(after)[where] >= values
        at = np.maximum(after, release)
        with np.errstate(divide="ignore", invalid="ignore"):
            rises = np.maximum(at, release + (values - base) / slope * (1.0 - 1e-9))
            late = base + np.where(slope > 0.0, slope * (at - release), 0.0)
        times = np.where(slope > 0.0, rises, inf)
        times[late >= values] = at[late >= values]
        times[reached] = after
        return times
