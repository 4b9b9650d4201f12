"""The online estimator of Avrachenkov, Patil and Thoppe by the law of large numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns
from crawlsched.estimators.observations import check_n_pages
from crawlsched.estimators.online_parameters import check_crawl_rate, crawl_rates
from crawlsched.estimators.visit_counts import VisitCounts, ratio

__all__ = ["LawOfLargeNumbers"]


class LawOfLargeNumbers(VisitCounts):
    """p Î / (k + α_k - Î), with Î changes found in k visits at rate p.

    Parameters
    ----------
    crawl_rate : array_like, optional
        Crawls per second (p), one or one per page; learned from the intervals by default.
    alpha : float, str or callable, default 1
        The stabilizing sequence α_k: a positive number, ``"log k"``, ``"sqrt k"``, ``"k^0.75"`` (any exponent from 0 to
        below 1), or a function of an array of numbers of visits k = 1, 2, ... Where a sequence is 0 (log k at k = 1),
        log 2 is taken.

    Notes
    -----
    Equation (1) of [1]_. Theorem 1: almost surely convergent if α_k/k goes to 0, and then the mean error is
    O(max(k^-1/2, α_k/k)); a constant or log k costs nothing in the long run, k^0.75 does.

    The theory is for visits at random (exponential intervals at rate p). With α = 1 and p known its mean is exactly 1 -
    μ^k of the truth, with μ = Δ/(Δ + p) the chance that a visit finds a change: practically unbiased once some visit
    found none. With a greater α_k it is low by about the factor 1 - (α_k - 1)(1 + Δ/p)/k. For visits at *regular*
    intervals I it converges to (e^{ΔI} - 1)/I: 5 % high at ΔI = 0.1, 72 % high at ΔI = 1. 0 for a page without visits
    or without changes: not for scheduling by itself.

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
        known = check_crawl_rate(crawl_rate, check_n_pages(n_pages))
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
