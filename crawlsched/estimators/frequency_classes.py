"""Classes of change frequency, such as weekly and monthly, to which pages belong by Bayesian inference."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.estimator import Columns, Estimator
from crawlsched.estimators.observations import Observations
from crawlsched.estimators.probabilities import check_prior, posterior_probabilities, visit_log_likelihood

__all__ = ["FrequencyClasses"]

# Pages of the default classes change once a week or once a month (a twelfth of a year).
_INTERVALS = timedelta(days=7), timedelta(days=365.25 / 12)


class FrequencyClasses(Estimator):
    """The probability that a page belongs to each of a few classes of change frequency.

    Parameters
    ----------
    n_pages : int
        Number of rows.
    rates : array_like, shape (K,), optional
        Changes per second of each class; once a week and once a month by default, as in the paper.
    names : sequence of str, optional
        Name of each class; "weekly" and "monthly" by default, otherwise the rates as text.
    prior : array_like, shape (K,), optional
        Probability of each class before the first visit; equal by default.

    Notes
    -----
    Cho and Garcia-Molina [1]_, section 2 (3), "categorization of frequency". Each visit multiplies the probability of
    each class by the likelihood of what the visit found: e^{-rτ} (unchanged) or 1 - e^{-rτ} (changed). The change rate
    is the mean of the classes' rates, weighted by these probabilities. It always lies between the slowest and the
    fastest class, so it is biased for a page outside that range. It is positive for every history.

    References
    ----------
    .. [1] Cho, Garcia-Molina (2003), "Estimating frequency of change".

    Examples
    --------
    "If we learn that page p has not changed for one month, we increase P{p in C_M} and decrease P{p in C_W}":

    >>> classes = FrequencyClasses(1)
    >>> classes.update(0, 2_629_800.0, False)
    >>> classes.probabilities(0).round(3)
    array([0.034, 0.966])
    >>> classes.classify(0)
    'monthly'
    """

    def __init__(
        self,
        n_pages: int,
        rates: npt.ArrayLike | None = None,
        names: Sequence[str] | None = None,
        prior: npt.ArrayLike | None = None,
    ) -> None:
        given = [1 / interval.total_seconds() for interval in _INTERVALS] if rates is None else rates
        self.rates: FloatArray = np.array(given, dtype=np.float64)
        if self.rates.ndim != 1 or self.rates.size < 1 or not ((self.rates > 0) & (self.rates < np.inf)).all():
            raise ValueError(f"rates must be one change rate per class, above 0 and finite, got {rates!r}.")
        if names is None:
            names = ("weekly", "monthly") if rates is None else [f"{rate:g}/s" for rate in self.rates]
        self.names = tuple(str(name) for name in names)
        if len(self.names) != self.rates.size:
            raise ValueError(f"names must be one per rate ({self.rates.size}), got {len(self.names)}.")
        self.prior = check_prior(np.ones(self.rates.size) if prior is None else prior, self.rates.size)
        super().__init__(n_pages)

    def _new_rows(self, n: int) -> Columns:
        return {"log_likelihood": np.zeros((n, self.rates.size))}

    def _observe(self, seen: Observations) -> None:
        found = visit_log_likelihood(self.rates, seen.elapsed, seen.changed, np.zeros(seen.pages.size))
        relative = self._columns["log_likelihood"][seen.pages] + found
        self._columns["log_likelihood"][seen.pages] = relative - relative.max(axis=1, keepdims=True)

    def _estimate(self, pages: IndexArray) -> FloatArray:
        rates: FloatArray = (self._probabilities(pages) * self.rates).sum(axis=1)
        return rates

    def _probabilities(self, pages: IndexArray) -> FloatArray:
        return posterior_probabilities(self._columns["log_likelihood"][pages], self.prior)

    def probabilities(self, pages: npt.ArrayLike | None = None) -> FloatArray:
        """Return the probability of each class.

        Parameters
        ----------
        pages : int or array_like of int, optional
            Row numbers; all rows by default.

        Returns
        -------
        ndarray, shape (n, K), or (K,) for a single page
            Rows add up to 1.
        """
        found: FloatArray = self._of(pages, self._probabilities)
        return found

    def classify(self, pages: npt.ArrayLike | None = None) -> Any:
        """Return the name of the most probable class, or of the first if several are equally probable.

        Parameters
        ----------
        pages : int or array_like of int, optional
            Row numbers; all rows by default.

        Returns
        -------
        list of str, or str for a single page
        """
        best = self.probabilities(pages).argmax(axis=-1)
        return self.names[best] if np.ndim(best) == 0 else [self.names[k] for k in best]
