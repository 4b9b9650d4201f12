"""The naive estimator: changes found per time watched."""

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.observations import Observations

__all__ = ["Naive", "ratio"]


class Naive(Estimator):
    """X/T: the changes found, divided by the time watched.

    Notes
    -----
    Cho and Garcia-Molina [1]_, section 4.1. Biased low, and more visits do not help: with visits every I seconds and
    r = change_rate · I its mean is (1 - e^{-r}) / r of the truth (Theorem 4.1): 10 % low at r = 0.21, 37 % at r = 1,
    57 % at r = 2; with visits at random at rate p it is p / (p + change_rate) of it (Avrachenkov et al. [2]_,
    section 3.4). 0 for a page without visits or without changes: not for scheduling by itself.

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
