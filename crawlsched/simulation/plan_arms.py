"""Arms that plan: they divide the bandwidth among pages by a formula, and divide it anew from time to time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crawlsched.bandwidth import harmonic_rates, poisson_crawl_rates, refresh_rates
from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.arms import Arm, ArmSetting
from crawlsched.simulation.history import CrawlResult

__all__ = ["DIVISIONS", "AtRandom", "LowDiscrepancy", "Planned"]

Division = Callable[[FloatArray, FloatArray, float], FloatArray]

#: Functions from change rates, importances and a bandwidth to crawl rates, by name.
DIVISIONS: dict[str, Division] = {
    "proportional": lambda change_rate, importance, bandwidth: _shares(change_rate, bandwidth),
    "square_root": lambda change_rate, importance, bandwidth: _shares(np.sqrt(change_rate), bandwidth),
    "harmonic": lambda change_rate, importance, bandwidth: harmonic_rates(change_rate, importance, bandwidth).rates,
    "lds": lambda change_rate, importance, bandwidth: refresh_rates(change_rate, importance, bandwidth).rates,
    "poisson": lambda change_rate, importance, bandwidth: poisson_crawl_rates(change_rate, importance, bandwidth).rates,
}


def _shares(parts: FloatArray, bandwidth: float) -> FloatArray:
    largest = float(parts.max(initial=0.0))
    if largest == 0.0:
        return np.full(parts.size, bandwidth / parts.size)
    scaled = parts / largest
    shares: FloatArray = bandwidth * scaled / scaled.sum()
    return shares


class Planned(Arm):
    """Crawl at planned rates, by a policy of `DIVISIONS`; plan again after one crawl per page on average.

    Notes
    -----
    A page that begins between two plans is crawled at the mean rate until the next plan. Pages of rate 0 are crawled
    only if all pages have rate 0. Then the page that has waited longest is crawled.
    """

    def __init__(self, setting: ArmSetting, policy: str) -> None:
        super().__init__(setting)
        self._division = DIVISIONS[policy]
        self._crawls_until_plan = 0
        self.rate = np.zeros(self.there.size)

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages begin."""
        super().begin(rows, crawled_at, now)
        if self._crawls_until_plan > 0:
            self.set_rates(rows, np.full(rows.size, self.setting.bandwidth / self.n_there))

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages end."""
        super().end(rows, now)
        self.rate[rows] = 0.0

    def set_rates(self, rows: IndexArray, rates: FloatArray) -> None:
        """Crawl these pages at these rates, crawls per second, from now on."""
        self.rate[rows] = rates

    def choose(self, now: float) -> int:
        """Return the next page of the plan, after making a new plan if one is due."""
        if self._crawls_until_plan <= 0:
            rows = np.flatnonzero(self.there)
            change_rate = self.setting.change_rate(rows)
            self.set_rates(rows, self._division(change_rate, self.setting.importance[rows], self.setting.bandwidth))
            self._crawls_until_plan = rows.size
        row = self.follow(now)
        return row if self.rate[row] > 0.0 else int(self.crawled_at.argmin())

    def follow(self, now: float) -> int:
        """Return the page that has waited the greatest share of its planned interval."""
        rows = np.flatnonzero(self.there)
        return int(rows[((now - self.crawled_at[rows]) * self.rate[rows]).argmax()])

    def crawled(self, visit: CrawlResult) -> None:
        """Learn from a visit."""
        super().crawled(visit)
        self.setting.observe(visit)
        self._crawls_until_plan -= 1


class AtRandom(Planned):
    """Pick pages at random in proportion to their rates: Poisson processes, as in Azar et al."""

    def __init__(self, setting: ArmSetting, policy: str) -> None:
        super().__init__(setting, policy)
        self._rng = np.random.default_rng(setting.seed)
        self._cumulative: FloatArray | None = None

    def set_rates(self, rows: IndexArray, rates: FloatArray) -> None:
        """Crawl these pages at these rates from now on."""
        super().set_rates(rows, rates)
        self._cumulative = None

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages end."""
        super().end(rows, now)
        self._cumulative = None

    def follow(self, now: float) -> int:
        """Return a page at random."""
        if self._cumulative is None:
            self._cumulative = np.cumsum(self.rate)
        if not self._cumulative[-1] > 0.0:
            return 0
        return int(self._cumulative.searchsorted(self._rng.random() * self._cumulative[-1], side="right"))


class LowDiscrepancy(Planned):
    """Pick pages by Algorithm 3 of Azar et al. (see `low_discrepancy_schedule`), with plans that may change.

    Notes
    -----
    Let k be the number of pages whose rate is not 0, and d = 1/(2k - 2). Let c be the number of a page's planned crawls
    less its actual crawls. The page may be crawled when c ≥ d, and has to be crawled when c reaches 1 - d. The page
    with the earliest deadline is crawled first. The numbers c are carried over from one plan to the next. If no page
    may be crawled yet, the page that may be crawled soonest is crawled now.
    """

    def __init__(self, setting: ArmSetting, policy: str) -> None:
        super().__init__(setting, policy)
        n_pages = self.there.size
        self._owed = np.zeros(n_pages)  # planned crawls less actual crawls, at slot 0
        # Releases and deadlines are slots, counted from slot 0.
        self._release = np.full(n_pages, np.inf)
        self._deadline = np.full(n_pages, np.inf)
        self._slot = 0
        self._margin = 0.5

    def set_rates(self, rows: IndexArray, rates: FloatArray) -> None:
        """Crawl these pages at these rates from now on."""
        # Crawls that the old rates planned are added, before the slots are counted anew.
        self._owed += self.rate / self.setting.bandwidth * self._slot
        self._slot = 0
        super().set_rates(rows, rates)
        self._margin = 1.0 / max(2 * int(np.count_nonzero(self.rate)) - 2, 2)
        self._set(np.arange(self.rate.size))

    def _set(self, rows: IndexArray) -> None:
        share = self.rate[rows] / self.setting.bandwidth
        with np.errstate(divide="ignore", invalid="ignore"):
            release = (self._margin - self._owed[rows]) / share
            deadline = (1.0 - self._margin - self._owed[rows]) / share
        self._release[rows] = np.where(share > 0.0, release, np.inf)
        self._deadline[rows] = np.where(share > 0.0, deadline, np.inf)

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages end."""
        super().end(rows, now)
        self._owed[rows] = 0.0
        self._set(rows)

    def follow(self, now: float) -> int:
        """Return the page with the earliest deadline among the pages that may be crawled."""
        self._slot += 1
        row = int(np.where(self._release <= self._slot, self._deadline, np.inf).argmin())
        return row if self._release[row] <= self._slot else int(self._release.argmin())

    def crawled(self, visit: CrawlResult) -> None:
        """Count the crawl."""
        super().crawled(visit)
        self._owed[visit.row] -= 1.0
        self._set(np.array([visit.row]))
