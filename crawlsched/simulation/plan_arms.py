"""Arms that divide the bandwidth among pages by a formula, and crawl by that plan until the next one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from crawlsched.bandwidth import harmonic_rates, poisson_crawl_rates, refresh_rates
from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.arm import NO_PAGE, Setting, Turns
from crawlsched.simulation.rates import Rates
from crawlsched.simulation.truth import Visit

__all__ = ["DIVISIONS", "AtRandom", "LowDiscrepancy", "MostOverdue", "Order", "PlannedRates"]

Division = Callable[[FloatArray, FloatArray, float], FloatArray]

#: How change rates, importances and a bandwidth become crawl rates, by name.
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


class Order(Protocol):
    """How crawl rates become picks."""

    def plan(self, rows: IndexArray, rates: FloatArray) -> None:
        """Crawl these pages, which are all that are there, at these rates (crawls per second) from now on."""
        ...

    def join(self, rows: IndexArray, rate: float) -> None:
        """Crawl these pages, which have just come, at this rate until the next plan."""
        ...

    def end(self, rows: IndexArray) -> None:
        """Pages are there no more."""
        ...

    def pick(self, now: float, turns: Turns) -> int:
        """Return the page to crawl."""
        ...

    def crawled(self, row: int) -> None:
        """The page was crawled."""
        ...


class PlannedRates:
    """Crawl at planned rates; plan again after as many crawls as there are pages.

    Parameters
    ----------
    setting : Setting
    division : callable
        One of `DIVISIONS`.
    order : Order
    rates : Rates
        Where change rates come from.

    Notes
    -----
    A page that comes between two plans is crawled at the mean rate until the next one. Pages of rate 0 are crawled only
    where no others are there, the one first that waits longest.
    """

    def __init__(self, setting: Setting, division: Division, order: Order, rates: Rates) -> None:
        self._turns = Turns(setting.importance.size)
        self._importance = setting.importance
        self._bandwidth = setting.bandwidth
        self._division = division
        self._order = order
        self._rates = rates
        self._crawls_until_plan = 0

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages are there."""
        self._turns.begin(rows, crawled_at)
        if self._crawls_until_plan > 0:
            self._order.join(rows, self._bandwidth / self._turns.n_there)

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages are there no more."""
        self._turns.end(rows)
        self._order.end(rows)

    def signalled(self, rows: IndexArray, now: float) -> None:
        """Announcements do not count."""

    def pick(self, now: float) -> int:
        """Return a page by the plan, after making one if it is time."""
        if not self._turns.n_there:
            return NO_PAGE
        if self._crawls_until_plan <= 0:
            self._plan()
        return self._order.pick(now, self._turns)

    def _plan(self) -> None:
        self._rates.plan()
        rows = np.flatnonzero(self._turns.there)
        change_rate = self._rates.change_rate(rows)
        self._order.plan(rows, self._division(change_rate, self._importance[rows], self._bandwidth))
        self._crawls_until_plan = rows.size

    def crawled(self, visit: Visit) -> None:
        """Learn from a visit."""
        self._turns.crawled_at[visit.row] = visit.time
        self._order.crawled(visit.row)
        self._rates.observe(visit)
        self._crawls_until_plan -= 1


class MostOverdue:
    """Pick the page whose waiting time is the most of its planned interval."""

    def __init__(self, setting: Setting) -> None:
        # Pages that are not there wait for minus infinity, whose product with 1 has a place in the order.
        self._rate = np.ones(setting.importance.size)

    def plan(self, rows: IndexArray, rates: FloatArray) -> None:
        """Crawl these pages at these rates from now on."""
        self._rate[rows] = rates

    def join(self, rows: IndexArray, rate: float) -> None:
        """Pages have come."""
        self._rate[rows] = rate

    def end(self, rows: IndexArray) -> None:
        """Pages are there no more."""
        self._rate[rows] = 1.0

    def pick(self, now: float, turns: Turns) -> int:
        """Return the most overdue page."""
        overdue = (now - turns.crawled_at) * self._rate
        row = int(overdue.argmax())
        return row if overdue[row] > 0.0 else turns.oldest()

    def crawled(self, row: int) -> None:
        """The waiting time begins anew by itself."""


class AtRandom:
    """Pick pages at random in proportion to their rates, as Azar et al.'s crawls come: as Poisson processes."""

    def __init__(self, setting: Setting) -> None:
        self._rng = np.random.default_rng(setting.seed)
        self._rate = np.zeros(setting.importance.size)
        self._cumulative: FloatArray | None = None

    def plan(self, rows: IndexArray, rates: FloatArray) -> None:
        """Crawl these pages at these rates from now on."""
        self._rate[rows] = rates
        self._cumulative = None

    def join(self, rows: IndexArray, rate: float) -> None:
        """Pages have come."""
        self._rate[rows] = rate
        self._cumulative = None

    def end(self, rows: IndexArray) -> None:
        """Pages are there no more."""
        self._rate[rows] = 0.0
        self._cumulative = None

    def pick(self, now: float, turns: Turns) -> int:
        """Return a page at random."""
        if self._cumulative is None:
            self._cumulative = np.cumsum(self._rate)
        total = self._cumulative[-1]
        if not total > 0.0:
            return turns.oldest()
        return int(self._cumulative.searchsorted(self._rng.random() * total, side="right"))

    def crawled(self, row: int) -> None:
        """Chance has no memory."""


class LowDiscrepancy:
    """Pick pages by Algorithm 3 of Azar et al. (see `low_discrepancy_schedule`), whose plan may change on the way.

    Parameters
    ----------
    setting : Setting

    Notes
    -----
    With q a page's share of the rates, k pages whose share is not 0 and d = 1/(2k - 2), a page that has a share
    of c crawls owed may be crawled when c ≥ d and has to be when c reaches 1 - d; the earliest deadline goes first.
    What is owed is carried over from one plan to the next. Where no page may be crawled yet, the first that may goes.
    """

    def __init__(self, setting: Setting) -> None:
        n_pages = setting.importance.size
        self._share = np.zeros(n_pages)
        self._owed = np.zeros(n_pages)  # at slot 0 of the numbering in which the next two are
        self._release = np.full(n_pages, np.inf)
        self._deadline = np.full(n_pages, np.inf)
        self._slot = 0
        self._margin = 0.5
        self._bandwidth = setting.bandwidth

    def plan(self, rows: IndexArray, rates: FloatArray) -> None:
        """Crawl these pages at these rates from now on."""
        self._settle()
        total = float(rates.sum())
        self._share[rows] = rates / total if total > 0.0 else 0.0
        self._set_all()

    def join(self, rows: IndexArray, rate: float) -> None:
        """Pages have come."""
        self._settle()
        self._share[rows] = rate / self._bandwidth
        self._set_all()

    def _settle(self) -> None:
        # What is owed under the shares until now, before the slots are numbered anew.
        self._owed += self._share * self._slot
        self._slot = 0

    def _set_all(self) -> None:
        self._margin = 1.0 / max(2 * int(np.count_nonzero(self._share)) - 2, 2)
        self._set(np.arange(self._share.size))

    def _set(self, rows: IndexArray) -> None:
        with np.errstate(divide="ignore", invalid="ignore"):
            release = (self._margin - self._owed[rows]) / self._share[rows]
            deadline = (1.0 - self._margin - self._owed[rows]) / self._share[rows]
        crawled = self._share[rows] > 0.0
        self._release[rows] = np.where(crawled, release, np.inf)
        self._deadline[rows] = np.where(crawled, deadline, np.inf)

    def end(self, rows: IndexArray) -> None:
        """Pages are there no more."""
        self._share[rows] = self._owed[rows] = 0.0
        self._set(rows)

    def pick(self, now: float, turns: Turns) -> int:
        """Return the page with the earliest deadline of those that may be crawled."""
        self._slot += 1
        row = int(np.where(self._release <= self._slot, self._deadline, np.inf).argmin())
        if self._release[row] > self._slot:
            row = int(self._release.argmin())
        return row if self._share[row] > 0.0 else turns.oldest()

    def crawled(self, row: int) -> None:
        """One crawl less is owed."""
        self._owed[row] -= 1.0
        share = self._share[row]
        if share > 0.0:
            self._release[row] = (self._margin - self._owed[row]) / share
            self._deadline[row] = (1.0 - self._margin - self._owed[row]) / share
