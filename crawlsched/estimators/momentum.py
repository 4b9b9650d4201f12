"""The online estimator of Avrachenkov, Patil and Thoppe by stochastic approximation with momentum."""

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.observations import Observations, check_n_pages
from crawlsched.estimators.online_parameters import (
    check_crawl_rate,
    check_initial,
    check_momentum_steps,
    crawl_rates,
    step_size,
)

__all__ = ["Momentum"]


class Momentum(Estimator):
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
    Equations (3) and (10) of [1]_; ζ_0 would need β_{-1} = 1/0, and there is no earlier z either. Theorem 3: almost
    surely convergent for 1/2 < beta <= 1 and eta = 2 beta (one time scale) or beta + 1/2 < eta < 2 beta (two); other
    choices with beta < eta <= 2 beta, which the paper's experiments use too, give an `OutsideTheorem` warning, and
    those that cannot converge a `ValueError`. The rate is conjectured to be k^{-beta/2} but for logarithms.

    z is linear in p and z_0: their coefficients are kept, as in `StochasticApproximation`. Momentum may carry z below
    0 for a while, which counts as 0. The bias is that of `StochasticApproximation`, but ends sooner where Δ is much
    greater than p. 0 is possible: not for scheduling by itself.

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

    def __init__(
        self,
        n_pages: int,
        crawl_rate: npt.ArrayLike | None = None,
        eta: float = 1.3,
        beta: float = 0.75,
        omega: float = 1.0,
        initial_change_rate: float = 0.0,
    ) -> None:
        known = check_crawl_rate(crawl_rate, check_n_pages(n_pages))
        self.crawl_rate = float(np.asarray(crawl_rate)) if crawl_rate is not None and np.ndim(crawl_rate) == 0 else None
        self.eta, self.beta, self.omega = check_momentum_steps(eta, beta, omega)
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
            "of_initial_before": np.ones(n),
            "of_crawl_rate": np.zeros(n),
            "of_crawl_rate_before": np.zeros(n),
        }

    def _observe(self, seen: Observations) -> None:
        columns, pages = self._columns, seen.pages
        visits = columns["visits"][pages]
        step = step_size(visits, self.eta)
        # Equation (10). There is no z before the first visit (it is set to z_0), and so nothing for ζ_0 to carry.
        before = step_size(np.maximum(visits, 1.0) - 1.0, self.beta)
        carried = (step_size(visits, self.beta) - self.omega * step) / before
        kept = np.where(seen.changed, 1.0, 1.0 - step)
        for name, added in (("of_initial", 0.0), ("of_crawl_rate", step * seen.changed)):
            now, then = columns[name][pages], columns[f"{name}_before"][pages]
            columns[name][pages] = now * kept + added + carried * (now - then)
            columns[f"{name}_before"][pages] = now
        columns["visits"][pages] += 1
        columns["time"][pages] += seen.elapsed

    def _estimate(self, pages: IndexArray) -> FloatArray:
        columns = self._columns
        of_rate = crawl_rates(columns, pages) * columns["of_crawl_rate"][pages]
        estimates: FloatArray = np.maximum(columns["of_initial"][pages] * self.initial_change_rate + of_rate, 0.0)
        return estimates
