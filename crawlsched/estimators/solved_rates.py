"""Estimators that solve an equation over all intervals: maximum likelihood, and matching the unchanged visits."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.columns.blocks import blocks
from crawlsched.columns.numerics import CONVERGED, LARGEST_LOG, ROUNDS
from crawlsched.estimators.estimator import Columns, Estimator, sums
from crawlsched.estimators.observations import Observations

__all__ = ["MaximumLikelihood", "MomentMatching"]


class MaximumLikelihood(Estimator):
    """The change rate under which the findings of the visits are most likely.

    Parameters
    ----------
    min_change_rate : float, default 0
        The least estimate, also for a page on which no change was ever found.
    max_change_rate : float, optional
        The greatest estimate; no limit by default.

    Notes
    -----
    Solves equation (2) of Cho and Garcia-Molina [1]_, Σ_changed t / (e^{λ t} - 1) = Σ_unchanged t. If no visit found a
    change, the equation has no positive solution: the likelihood is greatest at 0. If every visit found a change, the
    solution would be infinite, so half of the mean interval is added as time without a change. For regular visits this
    gives log(2n + 1) per interval, as `BiasReduced` does.

    The estimate is biased high by a term of order 1/n, since changed visits in a row point to ever higher rates. If a
    page changes once per interval on average, the bias is 11 % after 10 regular visits and 3 % after 30. With random
    intervals it is 22 % and 5 %. The estimate is consistent whatever the intervals, and efficient: no unbiased
    estimator is more precise for long histories. It has to store every interval that ended in a change, so its state
    grows with the history (8 to 32 bytes per change). After each visit the equation has to be solved anew.

    References
    ----------
    .. [1] Cho, Garcia-Molina (2003), "Estimating frequency of change", section 4.3 and appendix C.

    Examples
    --------
    The paper's Example 5, changes after 6 and 3 hours, none after 4 and 7:

    >>> hour = 3_600.0
    >>> estimator = MaximumLikelihood(1)
    >>> for hours, changed in [(6, True), (4, False), (3, True), (7, False)]:
    ...     estimator.update(0, hours * hour, changed)
    >>> round(estimator.change_rate(0) * 20 * hour, 2)
    2.67
    """

    _keeps_intervals: ClassVar[bool] = True  # the intervals that ended in a change

    def __init__(self, n_pages: int, min_change_rate: float = 0.0, max_change_rate: float | None = None) -> None:
        self.min_change_rate = float(min_change_rate)
        self.max_change_rate = None if max_change_rate is None else float(max_change_rate)
        if not 0 <= self.min_change_rate < np.inf:
            raise ValueError(f"min_change_rate must be changes per second from 0, and finite, got {min_change_rate}.")
        if self.max_change_rate is not None and not self.min_change_rate <= self.max_change_rate < np.inf:
            raise ValueError(
                f"max_change_rate must be finite and at least min_change_rate = {min_change_rate}, "
                f"got {max_change_rate}."
            )
        super().__init__(n_pages)

    def _new_rows(self, n: int) -> Columns:
        # An estimate is computed when it is first needed after a visit, and stored until the next visit.
        return {"unchanged_time": np.zeros(n), "estimate": np.zeros(n), "stale": np.zeros(n, dtype=np.bool_)}

    def _observe(self, seen: Observations) -> None:
        columns = self._columns
        self._intervals.append(seen.pages[seen.changed], seen.elapsed[seen.changed])
        columns["unchanged_time"][seen.pages] += np.where(seen.changed, 0.0, seen.elapsed)
        columns["stale"][seen.pages] = True

    def _estimate(self, pages: IndexArray) -> FloatArray:
        estimates = _up_to_date(self._columns, pages, self._solve)
        return np.clip(estimates, self.min_change_rate, self.max_change_rate)

    def _solve(self, rows: IndexArray) -> FloatArray:
        """Solve equation (2) for each row by Newton's method."""
        intervals, n_changed = self._intervals.gather(rows)
        changed_time = sums(intervals, n_changed)
        some = n_changed > 0
        unit = np.divide(changed_time, n_changed, out=np.ones(rows.size), where=some)
        unchanged = self._columns["unchanged_time"][rows] / unit
        unchanged[some & (unchanged == 0)] = 0.5
        intervals = intervals / np.repeat(unit, n_changed)
        # t / (e^y - 1) >= t (1/y - 1/2) gives a rate below the solution. The logarithm of the left side is convex and
        # falls, so Newton's method on it approaches the solution from below and never overshoots.
        rate = np.divide(n_changed, unchanged + 0.5 * n_changed, out=np.zeros(rows.size), where=some)

        def step(rate: FloatArray, active: BoolArray) -> FloatArray:
            first = 1.0 / np.expm1(np.minimum(np.repeat(rate, n_changed) * intervals, LARGEST_LOG))
            left = sums(intervals * first, n_changed)[active]
            fall = sums(intervals**2 * first * (1.0 + first), n_changed)[active]
            return np.log(left / unchanged[active]) * left / fall

        return _newton(rate, some, step) / unit


class MomentMatching(Estimator):
    """The change rate at which the expected number of unchanged visits equals the number found.

    Notes
    -----
    Solves Σ (1 - I_j) = Σ e^{-Δ τ_j} (Avrachenkov et al. [1]_, section 3.4, after Upadhyay et al. [2]_). If no visit
    found a change, the solution is 0. If every visit found a change, the solution would be infinite, so half an
    unchanged visit is added. For regular visits this gives log(2n + 1) per interval, as `BiasReduced` does.

    The estimate is biased high by a term of order 1/n. For regular visits it is the same as `MaximumLikelihood`. If a
    page changes once per interval on average, and intervals are random, the bias is 18 % after 10 visits and 5 % after
    30. The estimate is consistent. Where intervals differ it is less precise than `MaximumLikelihood`, since a change
    counts the same after a long interval and after a short interval. It has to store every interval, so its state grows
    with the history (8 to 32 bytes per visit). After each visit the equation has to be solved anew.

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

    _keeps_intervals: ClassVar[bool] = True

    def _new_rows(self, n: int) -> Columns:
        # An estimate is computed when it is first needed after a visit, and stored until the next visit.
        return {"changes": np.zeros(n), "estimate": np.zeros(n), "stale": np.zeros(n, dtype=np.bool_)}

    def _observe(self, seen: Observations) -> None:
        self._intervals.append(seen.pages, seen.elapsed)
        self._columns["changes"][seen.pages] += seen.changed
        self._columns["stale"][seen.pages] = True

    def _estimate(self, pages: IndexArray) -> FloatArray:
        return _up_to_date(self._columns, pages, self._solve)

    def _solve(self, rows: IndexArray) -> FloatArray:
        """Solve Σ e^{-Δ τ} = unchanged visits for each row by Newton's method."""
        intervals, visits = self._intervals.gather(rows)
        changes = self._columns["changes"][rows]
        some = changes > 0
        unit = np.divide(sums(intervals, visits), visits, out=np.ones(rows.size), where=visits > 0)
        intervals = intervals / np.repeat(unit, visits)
        unchanged = np.where(changes == visits, 0.5 * visits / (visits + 0.5), visits - changes)
        # The mean of e^{-Δτ} is at least e^{-Δ mean}, which gives a rate below the solution. The logarithm of the sum
        # is convex and falls, so Newton's method on it approaches the solution from below and never overshoots.
        rate = np.zeros(rows.size)
        rate[some] = np.log(visits[some] / unchanged[some])

        def step(rate: FloatArray, active: BoolArray) -> FloatArray:
            kept = np.exp(-np.minimum(np.repeat(rate, visits) * intervals, LARGEST_LOG))
            expected = sums(kept, visits)[active]
            return np.log(expected / unchanged[active]) * expected / sums(kept * intervals, visits)[active]

        return _newton(rate, some, step) / unit


def _up_to_date(columns: Columns, pages: IndexArray, solve: Callable[[IndexArray], FloatArray]) -> FloatArray:
    """Return the estimates of pages, after solving anew for pages with new visits."""
    stale = np.unique(pages[columns["stale"][pages]])
    for part in blocks(stale.size, width=32):  # each page has a few dozen intervals
        columns["estimate"][stale[part]] = solve(stale[part])
    columns["stale"][stale] = False
    estimates: FloatArray = columns["estimate"][pages]
    return estimates


def _newton(rate: FloatArray, active: BoolArray, step: Callable[[FloatArray, BoolArray], FloatArray]) -> FloatArray:
    """Return the rates after Newton's method on the active rows; `step` returns how far each active row moves."""
    for _ in range(ROUNDS):
        steps = np.zeros(rate.size)
        steps[active] = step(rate, active)
        rate = rate + steps
        active = active & (np.abs(steps) > CONVERGED * rate)
        if not active.any():
            break
    return rate
