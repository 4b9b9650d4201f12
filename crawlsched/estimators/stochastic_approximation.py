"""The online estimator of Avrachenkov, Patil and Thoppe by stochastic approximation."""

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.observations import Observations, check_n_pages
from crawlsched.estimators.online_parameters import check_crawl_rate, check_initial, check_steps, crawl_rates, step_size

__all__ = ["StochasticApproximation"]


class StochasticApproximation(Estimator):
    """y + η_k (I (y + p) - y) at each visit, with visits at rate p.

    Parameters
    ----------
    crawl_rate : array_like, optional
        Crawls per second (p), one or one per page; learned from the intervals by default.
    eta : float, default 0.75
        Exponent of the step sizes η_k = (k + 1)^-eta, above 0 and at most 1; up to 0.5 with a warning.
    initial_change_rate : float, default 0
        y_0, in changes per second.

    Notes
    -----
    Equation (2) of [1]_. Theorem 2: almost surely convergent if Σ η_k diverges and Σ η_k² converges, and the mean error
    is O(k^{-η/2}) for η in (0, 1).

    Since y is linear in p and y_0, their two coefficients are kept, and p is put in when the estimate is read: a crawl
    rate that is learned on the way applies to all visits. With η_0 = 1 the first visit erases y_0 unless it found a
    change.

    The theory is for visits at random (exponential intervals at rate p). Biased low at first where Δ is much greater
    than p, since nearly every visit then adds only η_k p; for visits at *regular* intervals I it converges to
    (e^{ΔI} - 1)/I. 0 is possible: not for scheduling by itself.

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
        known = check_crawl_rate(crawl_rate, check_n_pages(n_pages))
        self.crawl_rate = float(np.asarray(crawl_rate)) if crawl_rate is not None and np.ndim(crawl_rate) == 0 else None
        self.eta = check_steps(eta)
        self.initial_change_rate = check_initial(initial_change_rate)
        super().__init__(n_pages)
        self._columns["known_crawl_rate"][:] = known

    def _new_rows(self, n: int) -> Columns:
        known = np.full(n, np.nan if self.crawl_rate is None else self.crawl_rate)
        return {
            "visits": np.zeros(n),
            "time": np.zeros(n),
            "known_crawl_rate": known,
            "of_initial": np.ones(n),
            "of_crawl_rate": np.zeros(n),
        }

    def _observe(self, seen: Observations) -> None:
        columns, pages = self._columns, seen.pages
        step = step_size(columns["visits"][pages], self.eta)
        kept = np.where(seen.changed, 1.0, 1.0 - step)
        columns["of_initial"][pages] *= kept
        columns["of_crawl_rate"][pages] = columns["of_crawl_rate"][pages] * kept + step * seen.changed
        columns["visits"][pages] += 1
        columns["time"][pages] += seen.elapsed

    def _estimate(self, pages: IndexArray) -> FloatArray:
        columns = self._columns
        of_rate = crawl_rates(columns, pages) * columns["of_crawl_rate"][pages]
        estimates: FloatArray = columns["of_initial"][pages] * self.initial_change_rate + of_rate
        return estimates
