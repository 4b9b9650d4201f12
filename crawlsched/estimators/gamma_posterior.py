"""The compact posterior: a Gamma distribution of the change rate, two numbers per page."""

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.observations import Observations, check_observations, check_positive, per_page

__all__ = ["GammaPosterior"]

WEEK = 604_800.0


class GammaPosterior(Estimator):
    """A Gamma distribution of each page's change rate, exact for unchanged visits and matched by moments for changed.

    Parameters
    ----------
    prior_shape : float, default 0.5
        Shape a of the distribution before the first visit; below 1, rates near 0 are the likeliest.
    prior_time : float, default half a week
        Rate b of that distribution, in seconds: as if the page had been watched so long. The mean is a/b, once a week
        by default.

    Notes
    -----
    A visit after τ seconds that found nothing gives b + τ, exactly. A changed one multiplies the density by
    1 - e^{-(λτ + e)}, e being the `evidence` of announcements; the result is replaced by the Gamma distribution of the
    same mean and variance. With q = b/(b + τ) and E = e^{-e}::

        mean             m = (a/b) (1 - E q^{a+1}) / (1 - E q^a)
        variance/mean²   = 1/a - d (1 + 1/a),  d = E q^a (1 - q)² / (1 - E q^{a+1})²

    so that a' = a / (1 - d (a + 1)) and b' = a'/m; with τ → 0 a change adds one to the shape, as for a page that is
    watched all the time.

    Bias: towards the prior's mean, by O(1/n), as any posterior; for pages much faster than the prior's mean slowly,
    since `prior_time` counts like as much time watched without a change. Matching moments costs less than 1 % with
    visits up to one change apart; with visits much farther apart the exact posterior has a tail that a Gamma cannot
    follow, and the mean is off by 5 to 15 % either way, depending on the prior, for hundreds of visits (five changes
    apart; `Posterior` does not have this). Positive for every history.

    Examples
    --------
    >>> day = 86_400.0
    >>> estimator = GammaPosterior(2)
    >>> for _ in range(7):
    ...     estimator.update([0, 1], day, [True, False])
    >>> (estimator.change_rate() * day).round(3)
    array([1.196, 0.048])
    """

    def __init__(self, n_pages: int, prior_shape: float = 0.5, prior_time: float = 0.5 * WEEK) -> None:
        self.prior_shape = check_positive(prior_shape, "prior_shape")
        self.prior_time = check_positive(prior_time, "prior_time", "seconds")
        super().__init__(n_pages)

    def _new_rows(self, n: int) -> Columns:
        return {"shape": np.full(n, self.prior_shape), "time": np.full(n, self.prior_time)}

    def update(
        self,
        pages: npt.ArrayLike,
        elapsed: npt.ArrayLike,
        changed: npt.ArrayLike,
        n_signals: npt.ArrayLike | None = None,
        time_since_modified: npt.ArrayLike | None = None,
        evidence: npt.ArrayLike | None = None,
    ) -> None:
        """Learn from one visit to each of some distinct pages.

        Parameters
        ----------
        evidence : array_like, optional
            Nats that announcements since the visit before take off the log-probability of freshness (the sum of κ n
            over their sources); 0 by default.
        """
        seen = check_observations(self.n_pages, pages, elapsed, changed, n_signals, time_since_modified)
        nats = per_page(0.0 if evidence is None else evidence, seen.pages.size, "evidence")
        if not (nats >= 0).all():
            raise ValueError(f"evidence must be nats that are not negative, got {nats[~(nats >= 0)][0]}.")
        self._take(seen, nats)

    def _observe(self, seen: Observations) -> None:
        self._take(seen, np.zeros(seen.pages.size))

    def _take(self, seen: Observations, evidence: FloatArray) -> None:
        same = ~seen.changed
        self._columns["time"][seen.pages[same]] += seen.elapsed[same]
        pages, elapsed, nats = seen.pages[seen.changed], seen.elapsed[seen.changed], evidence[seen.changed]
        shape, time = self._columns["shape"][pages], self._columns["time"][pages]
        log_q = -np.log1p(elapsed / time)
        at_shape = -np.expm1(shape * log_q - nats)
        above = -np.expm1((shape + 1) * log_q - nats)
        narrowing = np.exp(shape * log_q - nats) * (np.expm1(log_q) / above) ** 2
        mean = shape / time * above / at_shape
        matched = shape / (1.0 - narrowing * (shape + 1))
        self._columns["shape"][pages] = matched
        self._columns["time"][pages] = matched / mean

    def _estimate(self, pages: IndexArray) -> FloatArray:
        rates: FloatArray = self._columns["shape"][pages] / self._columns["time"][pages]
        return rates
