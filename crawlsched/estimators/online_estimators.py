"""The online estimators of Avrachenkov, Patil and Thoppe: large numbers, stochastic approximation, and momentum."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.observations import Observations, check_n_pages, check_positive, per_page
from crawlsched.estimators.visit_counts import VisitCounts, ratio

__all__ = [
    "LawOfLargeNumbers",
    "Momentum",
    "OutsideTheorem",
    "StochasticApproximation",
    "crawl_rates",
]


class OutsideTheorem(UserWarning):
    """Step sizes that are allowed and may work well, although convergence with them is not proved."""


def _step_size(visits: FloatArray, exponent: float) -> FloatArray:
    """Return (k + 1)^-exponent for k visits before this one."""
    sizes: FloatArray = (visits + 1.0) ** -exponent
    return sizes


def _check_steps(eta: float) -> float:
    """Return the exponent of η_k = (k + 1)^-eta, checked against Theorem 2 of Avrachenkov et al.

    Steps that do not shrink, or that have a finite sum, raise ValueError. Steps for which only convergence in the mean
    is proved give an `OutsideTheorem` warning.
    """
    exponent = check_positive(eta, "eta", "an exponent")
    if exponent > 1:
        raise ValueError(
            f"eta must be above 0 and at most 1, got {eta!r}: with a finite sum of steps the estimate stops on the way."
        )
    if exponent <= 0.5:
        _warn(
            f"eta = {eta:g} is at most 0.5, so that the sum of squared steps is infinite: Theorem 2 gives convergence "
            "in the mean only, at rate k^(-eta/2)."
        )
    return exponent


def _check_momentum_steps(eta: float, beta: float, omega: float) -> tuple[float, float, float]:
    """Return eta, beta and omega of (10), checked against Theorem 3 of Avrachenkov et al.

    Steps that cannot converge raise ValueError. If neither case of the theorem holds, an `OutsideTheorem` warning is
    given. Both cases have 1/2 < beta <= 1. One case has eta = 2 beta, the other beta + 1/2 < eta < 2 beta.
    """
    eta, beta = check_positive(eta, "eta", "an exponent"), check_positive(beta, "beta", "an exponent")
    omega = check_positive(omega, "omega", "a factor")
    if omega > 2:
        raise ValueError(f"omega must be above 0 and at most 2, got {omega!r}: the first steps would overshoot.")
    if beta > 1:
        raise ValueError(f"beta must be above 0 and at most 1, got {beta!r}: the estimate would stop too early.")
    if not beta <= eta <= beta + 1:
        raise ValueError(
            f"eta must lie between beta and beta + 1 ({beta:g} and {beta + 1:g}), got {eta!r}: "
            "the steps eta_k / beta_k must neither grow nor have a finite sum."
        )
    if eta == beta and omega == 1:
        _check_steps(eta)  # without momentum: plain stochastic approximation
    elif eta > 2 * beta:
        _warn(f"eta = {eta:g} is above 2 beta = {2 * beta:g}: Theorem 3 says nothing about it.")
    elif beta <= 0.5 or (eta <= beta + 0.5 and eta != 2 * beta):
        _warn(
            f"eta = {eta:g}, beta = {beta:g} lie outside Theorem 3 (1/2 < beta <= 1 and beta + 1/2 < eta <= 2 beta): "
            "the paper only conjectures that the estimates converge if beta < eta."
        )
    return eta, beta, omega


def _check_initial(initial_change_rate: float) -> float:
    """Return the change rate at which an online estimator starts, or raise `ValueError`."""
    rate = float(initial_change_rate)
    if not 0 <= rate < np.inf:
        raise ValueError(
            f"initial_change_rate must be changes per second, 0 or above and finite, got {initial_change_rate!r}."
        )
    return rate


def _warn(message: str) -> None:
    warnings.warn(message, OutsideTheorem, stacklevel=4)


def _check_crawl_rate(crawl_rate: npt.ArrayLike | None, n: int) -> FloatArray:
    """Return one crawl rate per page, NaN where it is learned, or raise `ValueError`."""
    rates = per_page(np.nan if crawl_rate is None else crawl_rate, n, "crawl_rate")
    wrong = ~(np.isnan(rates) | ((rates > 0) & (rates < np.inf)))
    if wrong.any():
        raise ValueError(f"crawl_rate must be crawls per second above 0 and finite, got {rates[wrong][0]}.")
    return rates


def crawl_rates(columns: Mapping[str, npt.NDArray[Any]], pages: IndexArray) -> FloatArray:
    """Return crawl rates of pages: the known rate or, if it is NaN, visits divided by time (0 before a visit)."""
    known = columns["known_crawl_rate"][pages]
    learned = ratio(columns["visits"][pages], columns["time"][pages])
    return np.where(np.isnan(known), learned, known)


class LawOfLargeNumbers(VisitCounts):
    """p Î / (k + α_k - Î), with Î changes found in k visits at rate p.

    Parameters
    ----------
    crawl_rate : array_like, optional
        Crawls per second (p), one or one per page; learned from the intervals by default.
    alpha : float, str or callable, default 1
        The stabilizing sequence α_k: a positive number, ``"log k"``, ``"sqrt k"``, ``"k^0.75"`` (any exponent from 0 to
        below 1), or a function of an array of numbers of visits k = 1, 2, ... Where a sequence is 0 (log k at k = 1),
        log 2 takes its place.

    Notes
    -----
    Equation (1) of [1]_. By Theorem 1 the estimate converges almost surely if α_k/k goes to 0, with a mean error of
    O(max(k^-1/2, α_k/k)). In the long run, k^0.75 makes the error greater; a constant or log k does not.

    The theory assumes visits at random (exponential intervals at rate p). Let μ = Δ/(Δ + p) be the chance that a visit
    finds a change. With α = 1 and p known, the mean is exactly 1 - μ^k of the truth. So the bias is small as soon as it
    is unlikely that all visits find a change. A greater α_k multiplies the mean by about 1 - (α_k - 1)(1 + Δ/p)/k. For
    visits at *regular* intervals I the estimate converges to (e^{ΔI} - 1)/I. This is 5 % too high at ΔI = 0.1, and 72 %
    at ΔI = 1. The estimate is 0 for a page without visits or without changes, so a scheduler cannot use it alone.

    References
    ----------
    .. [1] Avrachenkov, Patil, Thoppe (2022), "Online algorithms for estimating change rates of web pages".

    Examples
    --------
    >>> estimator = LawOfLargeNumbers(1, crawl_rate=0.5)
    >>> for elapsed, changed in [(1.0, False), (3.0, True), (2.0, False), (2.0, True)]:
    ...     estimator.update(0, elapsed, changed)
    >>> round(estimator.change_rate(0), 4)  # 0.5 * 2 / (4 + 1 - 2)
    0.3333
    """

    def __init__(
        self,
        n_pages: int,
        crawl_rate: npt.ArrayLike | None = None,
        alpha: float | str | Callable[[FloatArray], npt.ArrayLike] = 1.0,
    ) -> None:
        known = _check_crawl_rate(crawl_rate, check_n_pages(n_pages))
        self.crawl_rate = float(np.asarray(crawl_rate)) if crawl_rate is not None and np.ndim(crawl_rate) == 0 else None
        self._alpha = _sequence(alpha)
        super().__init__(n_pages)
        self._columns["known_crawl_rate"][:] = known

    def _new_rows(self, n: int) -> Columns:
        known = np.full(n, np.nan if self.crawl_rate is None else self.crawl_rate)
        return {**super()._new_rows(n), "known_crawl_rate": known}

    def _estimate(self, pages: IndexArray) -> FloatArray:
        visits, changes = self._columns["visits"][pages], self._columns["changes"][pages]
        alpha = np.broadcast_to(np.asarray(self._alpha(np.maximum(visits, 1.0)), dtype=np.float64), visits.shape)
        if not ((alpha >= 0) & (alpha < np.inf)).all():
            raise ValueError("alpha must give positive finite numbers for k = 1, 2, ...; use 1, 'log k' or 'sqrt k'.")
        alpha = np.where(alpha > 0, alpha, np.log(2.0))
        return crawl_rates(self._columns, pages) * ratio(changes, visits + alpha - changes)


def _sequence(alpha: Any) -> Callable[[FloatArray], npt.ArrayLike]:
    """Return the function of k that `alpha` names."""
    if callable(alpha):
        return alpha  # type: ignore[no-any-return]
    if isinstance(alpha, str):
        if alpha == "log k":
            return np.log
        exponent = _exponent(alpha)
        return lambda visits: visits**exponent
    constant = float(alpha)
    if not 0 < constant < np.inf:
        raise ValueError(f"alpha must be positive and finite, got {alpha!r}; 1 is the paper's choice.")
    return lambda visits: constant


def _exponent(alpha: str) -> float:
    text = "0.5" if alpha == "sqrt k" else alpha.removeprefix("k^")
    try:
        exponent = float(text)
    except ValueError:
        raise ValueError(f"alpha must be a number, 'log k', 'sqrt k', 'k^0.75' or a function, got {alpha!r}.") from None
    if not 0 <= exponent < 1:
        raise ValueError(f"alpha must grow more slowly than k (Theorem 1), exponent from 0 to below 1, got {alpha!r}.")
    return exponent


class _LinearInCrawlRate(Estimator):
    """An estimate that is linear in the crawl rate p and in its initial value; the state is the two coefficients.

    p is used only when the estimate is read, so a learned crawl rate applies to all visits.
    """

    #: The columns of coefficients, with their values before the first visit.
    _coefficients: ClassVar[Mapping[str, float]] = {"of_initial": 1.0, "of_crawl_rate": 0.0}

    def __init__(self, n_pages: int, crawl_rate: npt.ArrayLike | None, initial_change_rate: float) -> None:
        known = _check_crawl_rate(crawl_rate, check_n_pages(n_pages))
        self.crawl_rate = float(np.asarray(crawl_rate)) if crawl_rate is not None and np.ndim(crawl_rate) == 0 else None
        self.initial_change_rate = _check_initial(initial_change_rate)
        super().__init__(n_pages)
        self._columns["known_crawl_rate"][:] = known

    def _new_rows(self, n: int) -> Columns:
        known = np.full(n, np.nan if self.crawl_rate is None else self.crawl_rate)
        counts = {"visits": np.zeros(n), "time": np.zeros(n), "known_crawl_rate": known}
        return {**counts, **{name: np.full(n, start) for name, start in self._coefficients.items()}}

    def _observe(self, seen: Observations) -> None:
        self._step(seen)
        self._columns["visits"][seen.pages] += 1
        self._columns["time"][seen.pages] += seen.elapsed

    @abstractmethod
    def _step(self, seen: Observations) -> None:
        """Move the coefficients by one visit."""

    def _estimate(self, pages: IndexArray) -> FloatArray:
        columns = self._columns
        of_rate = crawl_rates(columns, pages) * columns["of_crawl_rate"][pages]
        estimates: FloatArray = columns["of_initial"][pages] * self.initial_change_rate + of_rate
        return estimates


class StochasticApproximation(_LinearInCrawlRate):
    """y + η_k (I (y + p) - y) at each visit, with visits at rate p.

    Parameters
    ----------
    crawl_rate : array_like, optional
        Crawls per second (p), one or one per page; learned from the intervals by default.
    eta : float, default 0.75
        Exponent of the step sizes η_k = (k + 1)^-eta, above 0 and at most 1. Values up to 0.5 give a warning.
    initial_change_rate : float, default 0
        y_0, in changes per second.

    Notes
    -----
    Equation (2) of [1]_. By Theorem 2 the estimate converges almost surely if Σ η_k diverges and Σ η_k² converges. The
    mean error is O(k^{-η/2}) for η in (0, 1).

    y is linear in p and y_0, and the state is the two coefficients. p is used only when the estimate is read, so a
    learned crawl rate applies to all visits. Since η_0 = 1, the first visit erases y_0 unless this visit found a
    change.

    The theory assumes visits at random (exponential intervals at rate p). The estimate is low at first where Δ is much
    greater than p, since nearly every visit then adds only η_k p. For visits at *regular* intervals I the estimate
    converges to (e^{ΔI} - 1)/I. It may be 0, so a scheduler cannot use it alone.

    References
    ----------
    .. [1] Avrachenkov, Patil, Thoppe (2022), "Online algorithms for estimating change rates of web pages".

    Examples
    --------
    >>> estimator = StochasticApproximation(1, crawl_rate=0.5)
    >>> for elapsed, changed in [(1.0, False), (3.0, True), (2.0, False), (2.0, True)]:
    ...     estimator.update(0, elapsed, changed)
    >>> round(estimator.change_rate(0), 4)
    0.3437
    """

    def __init__(
        self,
        n_pages: int,
        crawl_rate: npt.ArrayLike | None = None,
        eta: float = 0.75,
        initial_change_rate: float = 0.0,
    ) -> None:
        self.eta = _check_steps(eta)
        super().__init__(n_pages, crawl_rate, initial_change_rate)

    def _step(self, seen: Observations) -> None:
        columns, pages = self._columns, seen.pages
        step = _step_size(columns["visits"][pages], self.eta)
        kept = np.where(seen.changed, 1.0, 1.0 - step)
        columns["of_initial"][pages] *= kept
        columns["of_crawl_rate"][pages] = columns["of_crawl_rate"][pages] * kept + step * seen.changed


class Momentum(_LinearInCrawlRate):
    """z + η_k (I (z + p) - z) + ζ_k (z - the z before) at each visit, with visits at rate p.

    Parameters
    ----------
    crawl_rate : array_like, optional
        Crawls per second (p), one or one per page; learned from the intervals by default.
    eta : float, default 1.3
        Exponent of the step sizes η_k = (k + 1)^-eta.
    beta : float, default 0.75
        Exponent of β_k = (k + 1)^-beta.
    omega : float, default 1
        Friction: ζ_k = (β_k - omega η_k) / β_{k-1}, and ζ_0 = 0. Above 0 and at most 2.
    initial_change_rate : float, default 0
        z_0, in changes per second.

    Notes
    -----
    Equations (3) and (10) of [1]_. ζ_0 is 0, since it would need β_{-1} = 1/0 and an earlier z. By Theorem 3 the
    estimate converges almost surely for 1/2 < beta <= 1 in two cases: eta = 2 beta (one time scale), and beta + 1/2 <
    eta < 2 beta (two time scales). Other choices with beta < eta <= 2 beta, which the paper's experiments use too, give
    an `OutsideTheorem` warning. Choices that cannot converge raise `ValueError`. The paper conjectures the rate
    k^{-beta/2}, up to logarithms.

    z is linear in p and z_0, and the state is their coefficients, as in `StochasticApproximation`. Momentum may carry z
    below 0 for a while; the estimate is then 0. The bias is the same as in `StochasticApproximation`, but it ends
    sooner where Δ is much greater than p. The estimate may be 0, so a scheduler cannot use it alone.

    References
    ----------
    .. [1] Avrachenkov, Patil, Thoppe (2022), "Online algorithms for estimating change rates of web pages".

    Examples
    --------
    >>> estimator = Momentum(1, crawl_rate=0.5)
    >>> for elapsed, changed in [(1.0, False), (3.0, True), (2.0, False), (2.0, True)]:
    ...     estimator.update(0, elapsed, changed)
    >>> round(estimator.change_rate(0), 4)
    0.3131
    """

    _coefficients: ClassVar[Mapping[str, float]] = {
        **dict.fromkeys(("of_initial", "of_initial_before"), 1.0),
        **dict.fromkeys(("of_crawl_rate", "of_crawl_rate_before"), 0.0),
    }

    def __init__(
        self,
        n_pages: int,
        crawl_rate: npt.ArrayLike | None = None,
        eta: float = 1.3,
        beta: float = 0.75,
        omega: float = 1.0,
        initial_change_rate: float = 0.0,
    ) -> None:
        self.eta, self.beta, self.omega = _check_momentum_steps(eta, beta, omega)
        super().__init__(n_pages, crawl_rate, initial_change_rate)

    def _step(self, seen: Observations) -> None:
        columns, pages = self._columns, seen.pages
        visits = columns["visits"][pages]
        step = _step_size(visits, self.eta)
        # Equation (10). The earlier z is z_0 at first, so momentum has no effect on the first visit.
        before = _step_size(np.maximum(visits, 1.0) - 1.0, self.beta)
        carried = (_step_size(visits, self.beta) - self.omega * step) / before
        kept = np.where(seen.changed, 1.0, 1.0 - step)
        for name, added in (("of_initial", 0.0), ("of_crawl_rate", step * seen.changed)):
            now, then = columns[name][pages], columns[f"{name}_before"][pages]
            columns[name][pages] = now * kept + added + carried * (now - then)
            columns[f"{name}_before"][pages] = now

    def _estimate(self, pages: IndexArray) -> FloatArray:
        return np.maximum(super()._estimate(pages), 0.0)
