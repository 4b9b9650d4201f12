"""The estimator of Cho and Garcia-Molina for pages that tell when they were last modified."""

from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.observations import Observations, check_rows
from crawlsched.estimators.visit_counts import ratio

__all__ = ["LastModified"]

# A page modified in the very second of a visit counts as modified a millionth of the interval before it.
_NEAREST = 1e-6


class LastModified(Estimator):
    """X'/T: changes found, less their bias, by the time from the last change or visit to each visit.

    Notes
    -----
    Figures 10 and 13 of Cho and Garcia-Molina [1]_. T adds up ``time_since_modified`` for changed visits and
    ``elapsed`` for unchanged ones; X' = (X - 1) - X / (N log(1 - X/N)) with X changes found in N visits, its limits
    being 0 at X = 0 and N - 1 at X = N (footnote 12).

    Less than 2 % biased whatever the rate, already with two visits (Figure 12; their first version X/T would be up to
    N/(N - 1) of the truth). With a single visit X' is 0 whatever it found; 0 also for a page without changes: not for
    scheduling by itself. It believes every date: a page that is always "modified now" gets a huge rate.

    `changed` decides what counts as a change. A change whose time is not given (NaN), or that is said to have happened
    before the last visit, counts as in the middle of its interval: its expected place if the page changes rarely, too
    early, and the estimate thus too low, if it changes often.

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
            Changes per second. With N regular visits its mean is N log(N/(N - 1)) of a small rate and N/(N - 1) of a
            great one (Theorem D.2).
        """
        rows = np.arange(self.n_pages) if pages is None else check_rows(pages, self.n_pages)
        rates = ratio(self._columns["changes"][rows], self._columns["time"][rows])
        return float(rates[0]) if pages is not None and np.ndim(pages) == 0 else rates

    def _new_rows(self, n: int) -> Columns:
        return {"visits": np.zeros(n), "changes": np.zeros(n), "time": np.zeros(n)}

    def _observe(self, seen: Observations) -> None:
        inside = seen.time_since_modified < seen.elapsed
        since = np.where(inside, seen.time_since_modified, 0.5 * seen.elapsed)
        since = np.maximum(since, _NEAREST * seen.elapsed)
        self._columns["visits"][seen.pages] += 1
        self._columns["changes"][seen.pages] += seen.changed
        self._columns["time"][seen.pages] += np.where(seen.changed, since, seen.elapsed)

    def _estimate(self, pages: IndexArray) -> FloatArray:
        visits, changes = self._columns["visits"][pages], self._columns["changes"][pages]
        without_bias = np.where(changes == visits, np.maximum(visits - 1, 0), 0.0)
        between = (changes > 0) & (changes < visits)
        x, n = changes[between], visits[between]
        without_bias[between] = (x - 1) - x / (n * np.log1p(-x / n))
        return ratio(without_bias, self._columns["time"][pages])
