"""The estimator that takes every probability of change to be equally likely beforehand."""

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.naive import ratio
from crawlsched.estimators.observations import Observations

__all__ = ["UniformPrior"]


class UniformPrior(Estimator):
    """-log((n - X + 1) / (n + 2)) per mean interval, with X changes found in n visits.

    Notes
    -----
    Cho and Garcia-Molina [1]_, appendix B: the probability θ that a visit finds a change has posterior mean
    (X + 1) / (n + 2) under a uniform prior, and the rate is -log(1 - θ) per interval. Biased towards θ = 1/2, that is
    towards one change per 1.44 intervals: high by about 1/n per interval for pages that hardly change, low for fast
    ones (at most log(n + 2) per interval). Where intervals differ it takes each for the mean one. Positive from the
    first visit on; 0 before it, since there is no interval yet.

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

    def _new_rows(self, n: int) -> Columns:
        return {"visits": np.zeros(n), "changes": np.zeros(n), "time": np.zeros(n)}

    def _observe(self, seen: Observations) -> None:
        self._columns["visits"][seen.pages] += 1
        self._columns["changes"][seen.pages] += seen.changed
        self._columns["time"][seen.pages] += seen.elapsed

    def _estimate(self, pages: IndexArray) -> FloatArray:
        visits, changes = self._columns["visits"][pages], self._columns["changes"][pages]
        # -log((n - X + 1) / (n + 2)) = -log(1 - (X + 1) / (n + 2))
        per_visit = -np.log1p(-(changes + 1) / (visits + 2))
        return ratio(per_visit * visits, self._columns["time"][pages])
