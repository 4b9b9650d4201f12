"""The papers' policies by brute force: at each slot they crawl the page of the highest crawl value.

Each page has one rate, known or estimated.
"""

from __future__ import annotations

from math import inf
from sys import float_info

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.crawl_value import unchecked_greedy, unchecked_noisy_value
from crawlsched.crawl_value.rules import Rule, evidence_of, rule_named
from crawlsched.simulation.arms import NO_PAGE, Arm, ArmSetting
from crawlsched.simulation.history import CrawlResult

__all__ = ["BruteForce", "Judged", "listens"]

# The number of slots in a block is the number of pages divided by this number. Blocks of fewer than two slots save
# nothing.
_PAGES_A_SLOT = 64
# Values are right to about 1e-13. Pages below a bound are left out. This factor lowers the bound by more than that
# error.
_SLACK = 1.0 - float_info.epsilon**0.5


def listens(policy: str) -> bool:
    """Return whether a rule counts announcements."""
    return policy != "greedy"


class BruteForce(Arm):
    """Crawl the page with the highest crawl value; among equal pages, the page with the lowest number.

    Notes
    -----
    Between its crawl and its next announcement the value of a page only grows. So slots are taken in blocks of k. At
    each slot of a block, some page is worth at least the k-th best value at the beginning of the block. So pages that
    are worth less even at the end of the block are left out. A page that begins, is announced or is crawled is
    evaluated again at the next slot.
    """

    def __init__(self, setting: ArmSetting, rule: str) -> None:
        super().__init__(setting)
        n_pages = self.there.size
        none = np.zeros(n_pages)
        self._recall = none if setting.recall is None else setting.recall
        self._false = none if setting.false_signal_rate is None else setting.false_signal_rate
        self._name, self._rule = rule, rule_named(rule) or Rule()
        self._change_rate = np.empty(n_pages)
        self._alpha, self._gamma, self._kappa = np.empty((3, n_pages))
        self._set_rates(np.arange(n_pages))
        self._n_signals = np.zeros(n_pages)
        self._is_candidate = np.zeros(n_pages, bool)
        self._touched: list[IndexArray] = []
        self._slots_left, self._block_ends, self._level = 0.0, -inf, -inf

    def _set_rates(self, rows: IndexArray) -> None:
        self._change_rate[rows] = rate = self.setting.change_rate(rows)
        heard = self._rule.heard(np.stack([rate, self._recall[rows], self._false[rows]]))
        self._alpha[rows], self._gamma[rows], self._kappa[rows] = heard[3:]

    def _values(self, rows: IndexArray, elapsed: FloatArray) -> FloatArray:
        rate, importance = self._change_rate[rows], self.setting.importance[rows]
        if self._name == "greedy":
            found: FloatArray = unchecked_greedy(elapsed, rate, importance)
            return found
        alpha, kappa = self._alpha[rows], self._kappa[rows]
        evidence = evidence_of(self._n_signals[rows], kappa)
        values = unchecked_noisy_value(elapsed, evidence, alpha, self._gamma[rows], kappa, self._rule.max_terms)
        return importance * np.where(rate > 0.0, values, 0.0)

    def values(self, rows: IndexArray, now: float) -> FloatArray:
        """Return the crawl values of some pages; all these pages must be there."""
        with np.errstate(under="ignore", over="ignore"):
            return self._values(rows, now - self.crawled_at[rows])

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages begin."""
        super().begin(rows, crawled_at, now)
        self._touch(rows)

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages end, so a new block begins."""
        super().end(rows, now)
        self._slots_left = 0.0

    def signalled(self, rows: IndexArray, now: float) -> None:
        """Count announcements."""
        if not listens(self._name):
            return
        if self.setting.signal_delay:
            rows = rows[now - self.crawled_at[rows] >= self.setting.signal_delay]
        self._n_signals[rows] += 1.0
        self._touch(rows)

    def crawled(self, visit: CrawlResult) -> None:
        """Learn from a visit."""
        super().crawled(visit)
        row = np.array([visit.row])
        self._n_signals[row] = 0.0
        if self.setting.learned is not None:
            self.setting.observe(visit)
            self._set_rates(row)
        self._touch(row)

    def _touch(self, rows: IndexArray) -> None:
        self._is_candidate[rows] = True
        self._touched.append(rows)

    def choose(self, now: float) -> int:
        """Return the page of the highest value."""
        with np.errstate(under="ignore", over="ignore"):
            if self._slots_left < 1.0 or now > self._block_ends:
                self._begin_block(now)
            self._slots_left -= 1.0
            rows = np.flatnonzero(self._is_candidate)
            touched = np.concatenate([*self._touched, rows[:0]])
            self._touched.clear()
            if self._level == -inf:
                touched = touched[:0]
            elapsed = np.concatenate([now - self.crawled_at[rows], self._block_ends - self.crawled_at[touched]])
            values = self._values(np.concatenate([rows, touched]), elapsed)
            self._is_candidate[touched[values[rows.size :] < self._level]] = False
        return int(rows[values[: rows.size].argmax()])

    def _begin_block(self, now: float) -> None:
        rows = np.flatnonzero(self.there)
        self._is_candidate[:] = self.there
        self._touched.clear()
        n_slots = rows.size // _PAGES_A_SLOT
        if n_slots < 2:
            self._slots_left, self._block_ends, self._level = inf, inf, -inf
            return
        self._slots_left, self._block_ends = float(n_slots), now + (n_slots - 1) / self.setting.bandwidth
        values = self._values(rows, now - self.crawled_at[rows])
        self._level = _SLACK * float(np.partition(values, -n_slots)[-n_slots])
        later = self._values(rows, self._block_ends - self.crawled_at[rows])
        self._is_candidate[rows[later < self._level]] = False


class Judged(Arm):
    """Crawl what one arm picks, and compare each pick's value with the highest value, which brute force finds.

    Attributes
    ----------
    worth : list of float
        For each pick, the value of the picked page divided by the highest value; 1 where the highest value is 0.
    """

    def __init__(self, arm: Arm, judge: BruteForce) -> None:
        super().__init__(judge.setting)
        self._arms, self._arm, self._judge = (arm, judge), arm, judge
        self.worth: list[float] = []

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages begin."""
        super().begin(rows, crawled_at, now)
        for arm in self._arms:
            arm.begin(rows, crawled_at, now)

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages end."""
        super().end(rows, now)
        for arm in self._arms:
            arm.end(rows, now)

    def signalled(self, rows: IndexArray, now: float) -> None:
        """Pass announcements on."""
        for arm in self._arms:
            arm.signalled(rows, now)

    def choose(self, now: float) -> int:
        """Return the arm's pick."""
        row = self._arm.choose(now)
        if row != NO_PAGE:
            picked, best = self._judge.values(np.array([row, self._judge.choose(now)]), now).tolist()
            self.worth.append(picked / best if best > 0.0 else 1.0)
        return row

    def crawled(self, visit: CrawlResult) -> None:
        """The page picked was crawled."""
        for arm in self._arms:
            arm.crawled(visit)
