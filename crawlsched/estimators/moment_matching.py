"""The moment-matching estimator: as many unchanged visits as were to be expected."""

from typing import ClassVar

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.intervals import sums
from crawlsched.estimators.observations import Observations

__all__ = ["MomentMatching"]

_ROUNDS = 100
_TOLERANCE = 1e-14
_SLICE = 4096


class MomentMatching(Estimator):
    """The change rate at which the unchanged visits are as many as expected.

    Notes
    -----
    Solves Σ (1 - I_j) = Σ e^{-Δ τ_j} (Avrachenkov et al. [1]_, section 3.4, after Upadhyay et al. [2]_). Where no visit
    found a change the solution is 0. Where all did it is infinite: half an unchanged visit is counted then, out of half
    a visit more, which for regular visits gives log(2n + 1) per interval, as `BiasReduced` does.

    Biased high by a term of order 1/n like `MaximumLikelihood` (for regular visits the two are the same, for random
    ones one change apart it is 18 % with 10 visits and 5 % with 30), consistent as n grows; less precise than it where
    intervals differ, since a change after a long interval counts as much as one after a short one. It has to keep every
    interval, and each new visit means solving anew: state grows with the history (8 to 32 bytes per visit).

    References
    ----------
    .. [1] Avrachenkov, Patil, Thoppe (2022), "Online algorithms for estimating change rates of web pages".
    .. [2] Upadhyay, Busa-Fekete, Kotlowski, Pal, Szorenyi (2020), "Learning to crawl".

    Examples
    --------
    Changes after 6 and 3 hours, none after 4 and 7:

    >>> hour = 3_600.0
    >>> estimator = MomentMatching(1)
    >>> for hours, changed in [(6, True), (4, False), (3, True), (7, False)]:
    ...     estimator.update(0, hours * hour, changed)
    >>> round(estimator.change_rate(0) * 20 * hour, 2)
    2.87
    """

    _histories: ClassVar[tuple[str, ...]] = ("intervals",)

    def _new_rows(self, n: int) -> Columns:
        # Estimates are solved for when asked for, and kept until the next visit.
        return {"changes": np.zeros(n), "estimate": np.zeros(n), "stale": np.zeros(n, dtype=np.bool_)}

    def _observe(self, seen: Observations) -> None:
        self._intervals["intervals"].append(seen.pages, seen.elapsed)
        self._columns["changes"][seen.pages] += seen.changed
        self._columns["stale"][seen.pages] = True

    def _estimate(self, pages: IndexArray) -> FloatArray:
        stale = np.unique(pages[self._columns["stale"][pages]])
        for start in range(0, stale.size, _SLICE):
            rows = stale[start : start + _SLICE]
            self._columns["estimate"][rows] = self._solve(rows)
        self._columns["stale"][stale] = False
        estimates: FloatArray = self._columns["estimate"][pages]
        return estimates

    def _solve(self, rows: IndexArray) -> FloatArray:
        """Solve Σ e^{-Δ τ} = unchanged visits for each row by Newton's method."""
        intervals, visits = self._intervals["intervals"].gather(rows)
        changes = self._columns["changes"][rows]
        some = changes > 0
        unit = np.divide(sums(intervals, visits), visits, out=np.ones(rows.size), where=visits > 0)
        intervals = intervals / np.repeat(unit, visits)
        unchanged = np.where(changes == visits, 0.5 * visits / (visits + 0.5), visits - changes)
        # The mean of e^{-Δτ} is at least e^{-Δ mean}, which gives a rate below the solution. The logarithm of the sum
        # is convex and falls, so that Newton's method on it comes from below and never overshoots.
        rate = np.zeros(rows.size)
        rate[some] = np.log(visits[some] / unchanged[some])
        active = some
        for _ in range(_ROUNDS):
            kept = np.exp(-np.minimum(np.repeat(rate, visits) * intervals, 600.0))
            expected = sums(kept, visits)[active]
            step = np.zeros(rows.size)
            step[active] = np.log(expected / unchanged[active]) * expected / sums(kept * intervals, visits)[active]
            rate = rate + step
            active = active & (np.abs(step) > _TOLERANCE * rate)
            if not active.any():
                break
        return rate / unit
