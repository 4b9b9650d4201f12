"""Estimators of Cho and Garcia-Molina from counts of visits and changes, with and without dates of changes."""

import math
from sys import float_info
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.observations import Observations

__all__ = [
    "BiasReduced",
    "LastModified",
    "Naive",
    "UniformPrior",
    "VisitCounts",
    "best_frequency_ratio",
    "best_visit_interval",
    "bias_reduced_moments",
    "bias_reducing_addend",
    "naive_moments",
    "ratio",
]


class Naive(Estimator):
    """X/T: the changes found, divided by the time watched.

    Notes
    -----
    Cho and Garcia-Molina [1]_, section 4.1. The estimate is biased low, and more visits do not help. With visits every
    I seconds and r = change_rate · I, the mean estimate is (1 - e^{-r}) / r of the truth (Theorem 4.1). This is 10 %
    too low at r = 0.21, 37 % at r = 1, and 57 % at r = 2. With visits at random at rate p, the mean is p / (p +
    change_rate) of the truth (Avrachenkov et al. [2]_, section 3.4). It is 0 for a page without visits or without
    changes, so a scheduler cannot use it alone.

    References
    ----------
    .. [1] Cho, Garcia-Molina (2003), "Estimating frequency of change".
    .. [2] Avrachenkov, Patil, Thoppe (2022), "Online algorithms for estimating change rates of web pages".

    Examples
    --------
    The paper's Example 1, six changes in ten daily visits:

    >>> day = 86_400.0
    >>> naive = Naive(1)
    >>> for changed in [True] * 6 + [False] * 4:
    ...     naive.update(0, day, changed)
    >>> round(naive.change_rate(0) * day, 3)
    0.6
    """

    def _new_rows(self, n: int) -> Columns:
        return {"changes": np.zeros(n), "time": np.zeros(n)}

    def _observe(self, seen: Observations) -> None:
        self._columns["changes"][seen.pages] += seen.changed
        self._columns["time"][seen.pages] += seen.elapsed

    def _estimate(self, pages: IndexArray) -> FloatArray:
        return ratio(self._columns["changes"][pages], self._columns["time"][pages])


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Return above / below, and 0 where below is 0."""
    quotient: FloatArray = np.divide(above, below, out=np.zeros(above.shape), where=below > 0)
    return quotient


class VisitCounts(Estimator):
    """Counts of each page: its visits, the visits that found a change, and the seconds between visits."""

    def _new_rows(self, n: int) -> Columns:
        return {"visits": np.zeros(n), "changes": np.zeros(n), "time": np.zeros(n)}

    def _observe(self, seen: Observations) -> None:
        self._columns["visits"][seen.pages] += 1
        self._columns["changes"][seen.pages] += seen.changed
        self._columns["time"][seen.pages] += seen.elapsed


class BiasReduced(VisitCounts):
    """-log((n - X + 0.5) / (n + 0.5)) per mean interval, with X changes found in n visits.

    Notes
    -----
    Cho and Garcia-Molina [1]_, section 4.2 and appendix B. With visits every I seconds and r = change_rate · I the mean
    of the estimate is equation (1) of the paper. It is practically unbiased for r < 1 from three visits on. With 20
    visits it is less than 10 % too low for r < 3.5, and with 80 visits for r < 5. It never exceeds log(2n + 1) / I. It
    is most precise with about 1.5 changes per interval. All intervals are replaced with their mean, so the estimate is
    biased low where intervals differ (use `MaximumLikelihood`). It is 0 for a page without visits or without changes,
    so a scheduler cannot use it alone.

    References
    ----------
    .. [1] Cho, Garcia-Molina (2003), "Estimating frequency of change".

    Examples
    --------
    The paper's Example 1, six changes in ten daily visits ("0.8 times a day"; the formula gives 0.85):

    >>> day = 86_400.0
    >>> estimator = BiasReduced(1)
    >>> for changed in [True] * 6 + [False] * 4:
    ...     estimator.update(0, day, changed)
    >>> round(estimator.change_rate(0) * day, 3)
    0.847
    """

    def _estimate(self, pages: IndexArray) -> FloatArray:
        visits, changes = self._columns["visits"][pages], self._columns["changes"][pages]
        # -log((n - X + 0.5) / (n + 0.5)) = -log(1 - X / (n + 0.5)), exact for few changes in many visits.
        per_visit = -np.log1p(-changes / (visits + 0.5))
        return ratio(per_visit * visits, self._columns["time"][pages])


class UniformPrior(VisitCounts):
    """-log((n - X + 1) / (n + 2)) per mean interval, with X changes found in n visits.

    Notes
    -----
    Cho and Garcia-Molina [1]_, appendix B. The probability θ that a visit finds a change has the posterior mean (X + 1)
    / (n + 2) under a uniform prior, and the rate is -log(1 - θ) per interval. The estimate is biased towards θ = 1/2,
    which is one change per 1.44 intervals. It is too high by about 1/n per interval for pages that rarely change. It is
    too low for pages that often change (at most log(n + 2) per interval). It replaces all intervals with their mean. It
    is positive from the first visit on, and 0 before the first visit.

    References
    ----------
    .. [1] Cho, Garcia-Molina (2003), "Estimating frequency of change".

    Examples
    --------
    Six changes in ten daily visits:

    >>> day = 86_400.0
    >>> estimator = UniformPrior(1)
    >>> for changed in [True] * 6 + [False] * 4:
    ...     estimator.update(0, day, changed)
    >>> round(estimator.change_rate(0) * day, 3)
    0.875
    """

    def _estimate(self, pages: IndexArray) -> FloatArray:
        visits, changes = self._columns["visits"][pages], self._columns["changes"][pages]
        # -log((n - X + 1) / (n + 2)) = -log(1 - (X + 1) / (n + 2))
        per_visit = -np.log1p(-(changes + 1) / (visits + 2))
        return ratio(per_visit * visits, self._columns["time"][pages])


# A page modified at the time of a visit counts as modified a millionth of the interval earlier.
_NEAREST = 1e-6


class LastModified(VisitCounts):
    """X'/T: the bias-corrected number of changes, divided by the time in which the page is known not to have changed.

    Notes
    -----
    Figures 10 and 13 of Cho and Garcia-Molina [1]_. T adds up ``time_since_modified`` for changed visits and
    ``elapsed`` for unchanged visits. X' = (X - 1) - X / (N log(1 - X/N)) with X changes found in N visits. The limits
    of X' are 0 at X = 0 and N - 1 at X = N (footnote 12).

    From two visits on, the bias is below 2 % whatever the rate (Figure 12). The paper's first version, X/T, would be up
    to N/(N - 1) of the truth. The estimate is 0 after a single visit and for a page without changes, so a scheduler
    cannot use it alone. The estimator trusts every date, so a page that is always "modified now" gets a huge rate.

    `changed` decides what counts as a change. A change without a known time (NaN), or dated before the last visit,
    counts as made in the middle of its interval. If the page changes rarely, the middle is the expected time. If the
    page changes often, the middle is too early, and the estimate is too low.

    References
    ----------
    .. [1] Cho, Garcia-Molina (2003), "Estimating frequency of change", section 5 and appendix D.

    Examples
    --------
    Daily visits; the page changed an hour before the first and 20 hours before the third:

    >>> hour = 3_600.0
    >>> estimator = LastModified(1)
    >>> for hours, changed in [(1, True), (25, False), (20, True), (44, False)]:
    ...     estimator.update(0, 24 * hour, changed, time_since_modified=hours * hour)
    >>> round(estimator.change_rate(0) * 24 * hour, 3)
    0.599
    """

    def uncorrected_change_rate(self, pages: npt.ArrayLike | None = None) -> Any:
        """Return X/T, the first version of the estimate (Figure 10 as printed), for comparison.

        Parameters
        ----------
        pages : int or array_like of int, optional
            Row numbers; all rows by default.

        Returns
        -------
        ndarray or float
            Changes per second. With N regular visits its mean is N log(N/(N - 1)) times a small rate, and N/(N - 1)
            times a great rate (Theorem D.2).
        """
        return self._of(pages, lambda rows: ratio(self._columns["changes"][rows], self._columns["time"][rows]))

    def _observe(self, seen: Observations) -> None:
        inside = seen.time_since_modified < seen.elapsed
        since = np.where(inside, seen.time_since_modified, 0.5 * seen.elapsed)
        since = np.maximum(since, _NEAREST * seen.elapsed)
        super()._observe(seen._replace(elapsed=np.where(seen.changed, since, seen.elapsed)))

    def _estimate(self, pages: IndexArray) -> FloatArray:
        visits, changes = self._columns["visits"][pages], self._columns["changes"][pages]
        without_bias = np.where(changes == visits, np.maximum(visits - 1, 0), 0.0)
        between = (changes > 0) & (changes < visits)
        x, n = changes[between], visits[between]
        without_bias[between] = (x - 1) - x / (n * np.log1p(-x / n))
        return ratio(without_bias, self._columns["time"][pages])


def naive_moments(frequency_ratio: npt.ArrayLike, n_visits: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of X/n, the naive estimate of the changes between two visits.

    Parameters
    ----------
    frequency_ratio : array_like
        True changes between two regular visits (r, the paper's λ/f).
    n_visits : int
        Number of visits.

    Returns
    -------
    mean, deviation : ndarray
        1 - e^{-r} and sqrt(e^{-r} (1 - e^{-r}) / n).

    Notes
    -----
    Theorem 4.1 and Corollary 4.2 of Cho and Garcia-Molina (2003); their Figures 3 and 4 show mean/r and deviation/r.

    Examples
    --------
    The paper's Example 3: visited every two weeks, a page that changes weekly is estimated 57 % too slow.

    >>> mean, _ = naive_moments(2.0, 10)
    >>> round(float(1 - mean / 2.0), 2)
    0.57
    """
    found = -np.expm1(-np.asarray(frequency_ratio, dtype=np.float64))
    return found, np.sqrt((1 - found) * found / n_visits)


def bias_reduced_moments(frequency_ratio: npt.ArrayLike, n_visits: int) -> tuple[FloatArray, FloatArray]:
    """Return mean and standard deviation of the bias-reduced estimate, -log((n - X + 0.5) / (n + 0.5)).

    Parameters
    ----------
    frequency_ratio : array_like
        True changes between two regular visits (r).
    n_visits : int
        Number of visits.

    Returns
    -------
    mean, deviation : ndarray
        Equation (1) of Cho and Garcia-Molina (2003), and the root of the same equation for the square.

    Notes
    -----
    Their Figures 5 and 7 show mean/r and deviation/r.

    Examples
    --------
    >>> mean, deviation = bias_reduced_moments(1.5, 10)
    >>> round(float(mean / 1.5), 3), round(float(deviation / 1.5), 2)
    (0.997, 0.4)
    """
    ratio = np.asarray(frequency_ratio, dtype=np.float64)
    kept = np.arange(n_visits + 1)
    # log of the binomial coefficients, in a form that does not overflow
    choose = np.array([math.lgamma(n_visits + 1) - math.lgamma(k + 1) - math.lgamma(n_visits - k + 1) for k in kept])
    found = np.maximum(-np.expm1(-ratio), float_info.min)[..., np.newaxis]
    chances = np.exp(choose + (n_visits - kept) * np.log(found) - kept * ratio[..., np.newaxis])
    estimates = -np.log((kept + 0.5) / (n_visits + 0.5))
    mean = (chances * estimates).sum(axis=-1)
    return mean, np.sqrt((chances * (estimates - mean[..., np.newaxis]) ** 2).sum(axis=-1))


def best_frequency_ratio(n_visits: int) -> float:
    """Return how many changes between two visits make the bias-reduced estimate most precise.

    Parameters
    ----------
    n_visits : int
        Number of visits, at least 2.

    Returns
    -------
    float
        From 18 visits on, the r of the first minimum of deviation/r, within 0.001. With more visits this r approaches
        the root of r e^r = 2 (e^r - 1), which is 1.594. Below 18 visits, this root is returned.

    Notes
    -----
    Below 18 visits deviation/r has no minimum. It falls as r grows, since all visits find a change more and more often.
    The estimate is then log(2n + 1) for any r, which is precise and wrong. The Fisher information of a visit about log
    r, r² e^{-r} / (1 - e^{-r}), is greatest at this root for any number of visits.

    Examples
    --------
    "When n = 20, σ/r is minimum when r ≈ 1.35", and at r ≈ 1.5 for other n:

    >>> round(best_frequency_ratio(20), 2), round(best_frequency_ratio(80), 2), round(best_frequency_ratio(5), 3)
    (1.35, 1.52, 1.594)
    """
    if n_visits < 2:
        raise ValueError(f"n_visits must be at least 2, got {n_visits!r}.")
    ratios = np.arange(0.05, 3.0, 0.001)
    variation = bias_reduced_moments(ratios, n_visits)[1] / ratios
    rising = np.flatnonzero(np.diff(variation) > 0)
    best = rising[0] if rising.size else np.argmax(ratios**2 / np.expm1(ratios))
    return float(ratios[best])


def bias_reducing_addend(n_visits: npt.ArrayLike) -> FloatArray:
    """Return the constant a with which -log((n - X + a) / (n + a)) is unbiased for rare changes; a tends to 0.5.

    Parameters
    ----------
    n_visits : array_like
        Number of visits, at least 1.

    Returns
    -------
    ndarray
        The solution of n log((n + a) / (n - 1 + a)) = 1: 1 / (e^{1/n} - 1) - (n - 1).

    Notes
    -----
    Figure 19 of Cho and Garcia-Molina (2003), the source of the 0.5 in `BiasReduced`.

    Examples
    --------
    >>> bias_reducing_addend([1, 2, 10, 100]).round(3)
    array([0.582, 0.541, 0.508, 0.501])
    """
    n = np.asarray(n_visits, dtype=np.float64)
    addend: FloatArray = 1.0 / np.expm1(1.0 / n) - (n - 1.0)
    return addend


def best_visit_interval(change_rate: npt.ArrayLike, frequency_ratio: float = 1.5) -> FloatArray:
    """Return the interval between visits at which the fewest visits are needed to learn a change rate.

    Parameters
    ----------
    change_rate : array_like
        Changes per second, as guessed beforehand; positive.
    frequency_ratio : float, default 1.5
        Changes between two visits; at 1.5 a visit teaches most (Cho and Garcia-Molina 2003, section 4.2, Figure 7).

    Returns
    -------
    ndarray
        Seconds.

    Examples
    --------
    The paper's Example 4: a page thought to change weekly is to be visited every ten days.

    >>> week = 604_800.0
    >>> float(best_visit_interval(1 / week)) / 86_400
    10.5
    """
    rates = np.asarray(change_rate, dtype=np.float64)
    if not ((rates > 0) & (rates < np.inf)).all():
        raise ValueError(f"change_rate must be changes per second above 0 and finite, got {change_rate!r}.")
    interval: FloatArray = frequency_ratio / rates
    return interval
