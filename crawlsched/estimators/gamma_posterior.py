"""The compact posterior: a Gamma distribution of the change rate, two numbers per page."""

from datetime import timedelta

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.observations import Observations, check_positive

__all__ = ["GammaPosterior"]

_HALF_A_WEEK = timedelta(days=3.5).total_seconds()


class GammaPosterior(Estimator):
    """A Gamma distribution of each page's change rate, exact until the first change, then matched by moments.

    Parameters
    ----------
    prior_shape : float, default 0.5
        Shape a of the distribution before the first visit; below 1, rates near 0 are the likeliest.
    prior_time : float, default half a week
        Parameter b of that distribution, in seconds. It counts like time for which the page was watched. The mean
        change rate is a/b, once a week by default.

    Notes
    -----
    A visit after τ seconds that finds no change adds τ to b, which is exact. A visit that finds a change multiplies the
    density by 1 - e^{-λτ}. The Gamma distribution of the same mean and variance then replaces the result. With q = b/(b
    + τ)::

        mean             m = (a/b) (1 - q^{a+1}) / (1 - q^a)
        variance/mean²   = 1/a - d (1 + 1/a),  d = q^a (1 - q)² / (1 - q^{a+1})²

    so that a' = a / (1 - d (a + 1)) and b' = a'/m. With τ → 0 a change adds one to the shape, as for a page that is
    watched all the time.

    The estimate is biased towards the prior's mean, by O(1/n) after n visits, as in any posterior. For pages that
    change much faster than this mean the bias falls slowly, since `prior_time` counts as time without a change. With at
    most one change per interval on average, matching moments is right within 1 %. With many more changes per interval,
    the exact posterior has a tail that a Gamma distribution cannot follow. With five changes per interval, the mean
    stays 5 to 15 % too high or too low for hundreds of visits, depending on the prior. The mean of `Posterior` has no
    such error. The estimate is positive for every history.

    Examples
    --------
    >>> day = 86_400.0
    >>> estimator = GammaPosterior(2)
    >>> for _ in range(7):
    ...     estimator.update([0, 1], day, [True, False])
    >>> (estimator.change_rate() * day).round(3)
    array([1.196, 0.048])
    """

    def __init__(self, n_pages: int, prior_shape: float = 0.5, prior_time: float = _HALF_A_WEEK) -> None:
        self.prior_shape = check_positive(prior_shape, "prior_shape")
        self.prior_time = check_positive(prior_time, "prior_time", "seconds")
        super().__init__(n_pages)

    def _new_rows(self, n: int) -> Columns:
        return {"shape": np.full(n, self.prior_shape), "time": np.full(n, self.prior_time)}

    def _observe(self, seen: Observations) -> None:
        same = ~seen.changed
        self._columns["time"][seen.pages[same]] += seen.elapsed[same]
        pages, elapsed = seen.pages[seen.changed], seen.elapsed[seen.changed]
        shape, time = self._columns["shape"][pages], self._columns["time"][pages]
        log_q = -np.log1p(elapsed / time)
        at_shape = -np.expm1(shape * log_q)
        above = -np.expm1((shape + 1) * log_q)
        narrowing = np.exp(shape * log_q) * (np.expm1(log_q) / above) ** 2
        mean = shape / time * above / at_shape
        matched = shape / (1.0 - narrowing * (shape + 1))
        self._columns["shape"][pages] = matched
        self._columns["time"][pages] = matched / mean

    def _estimate(self, pages: IndexArray) -> FloatArray:
        rates: FloatArray = self._columns["shape"][pages] / self._columns["time"][pages]
        return rates
