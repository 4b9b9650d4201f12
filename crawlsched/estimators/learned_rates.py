"""Rates from an estimator that is chosen by name, with a rate above 0 for pages that were never found changed.

Replays and crawls share this code.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.estimators.estimator import Estimator
from crawlsched.estimators.frequency_classes import FrequencyClasses
from crawlsched.estimators.gamma_posterior import GammaPosterior
from crawlsched.estimators.online_estimators import LawOfLargeNumbers, Momentum, StochasticApproximation
from crawlsched.estimators.solved_rates import MaximumLikelihood, MomentMatching
from crawlsched.estimators.visit_counts import BiasReduced, LastModified, Naive, UniformPrior

__all__ = ["POINT_ESTIMATORS", "LearnedRates"]

#: The estimators that give each page one rate and no distribution, by name.
POINT_ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    "naive": Naive,
    "bias_reduced": BiasReduced,
    "uniform_prior": UniformPrior,
    "maximum_likelihood": MaximumLikelihood,
    "moment_matching": MomentMatching,
    "last_modified": LastModified,
    "law_of_large_numbers": LawOfLargeNumbers,
    "stochastic_approximation": StochasticApproximation,
    "momentum": Momentum,
    "frequency_classes": FrequencyClasses,
    "gamma_posterior": GammaPosterior,
}
_WATCHED = np.dtype("<f8")


class LearnedRates:
    """Change rates that an estimator learns; they are always above 0.

    Parameters
    ----------
    name : str
        A name in `POINT_ESTIMATORS`.
    even_rate : float
        Crawls per second and page if all pages get the same number, or another guess of how often pages change. It is
        the only rate known before the first visit.
    parameters : mapping of str to object
        Further arguments of the estimator.

    Notes
    -----
    Most estimators give 0 for a page that was never found changed. Such a page would never be visited again, and all
    such pages would rank alike. So the rate of such a page is 0.5 / (the time for which it was watched + 1 /
    `even_rate`).

    Examples
    --------
    >>> rates = LearnedRates("naive", 2, even_rate=1 / 3600)
    >>> rates.observe(0, 1800.0, True)
    >>> (1 / rates.change_rate(np.arange(2))).tolist()
    [1800.0, 7200.0]
    """

    def __init__(self, name: str, n_pages: int, even_rate: float, parameters: Mapping[str, Any] | None = None) -> None:
        if name not in POINT_ESTIMATORS:
            raise ValueError(f"name must be one of {', '.join(POINT_ESTIMATORS)}, got {name!r}.")
        given = dict(parameters or {})
        if name == "gamma_posterior":
            # The prior's mean is the even rate: a page changes once between two crawls.
            shape = given.setdefault("prior_shape", GammaPosterior(0).prior_shape)
            given.setdefault("prior_time", shape / even_rate)
        try:
            self._bank = POINT_ESTIMATORS[name](n_pages, **given)
            # The packed state of a page that was never visited.
            (nothing,) = POINT_ESTIMATORS[name](1, **given).rows_to_bytes(np.array([0]))
            self._nothing = bytes(_WATCHED.itemsize) + nothing
            self.key = json.dumps({"name": name, **given}, sort_keys=True, allow_nan=False)
        except TypeError as error:
            raise ValueError(f"{name} does not take these parameters ({error})") from None
        self._even_interval = 1.0 / even_rate
        self._watched = np.zeros(n_pages)

    @property
    def n_pages(self) -> int:
        """Number of rows."""
        return self._bank.n_pages

    def resize(self, n_pages: int) -> None:
        """Grow to `n_pages` rows."""
        self._bank.resize(n_pages)
        self._watched = grown(self._watched, n_pages)

    def change_rate(self, pages: IndexArray, even_rate: float | FloatArray = np.inf) -> FloatArray:
        """Return changes per second, above 0; a finite `even_rate` replaces the constructor's."""
        estimates: FloatArray = self._bank.change_rate(pages)
        even_interval = np.where(np.isfinite(even_rate), 1.0 / np.asarray(even_rate), self._even_interval)
        return np.where(estimates > 0.0, estimates, 0.5 / (self._watched[pages] + even_interval))

    def observe(
        self,
        pages: int | IndexArray,
        elapsed: float | FloatArray,
        changed: Any,
        n_signals: Any = None,
        time_since_modified: Any = None,
    ) -> None:
        """Learn from a visit to a page, or to each of some distinct pages; see `Estimator.update`."""
        self._bank.update(pages, elapsed, changed, n_signals, time_since_modified)
        self._watched[pages] += elapsed

    def forget(self, pages: IndexArray) -> None:
        """Reset pages to the state before their first visit."""
        self.unpack(pages, [self._nothing] * pages.size)

    def packed(self, pages: IndexArray) -> list[bytes]:
        """Return the state of some pages, each as bytes."""
        watched = self._watched[pages].astype(_WATCHED)
        return [one.tobytes() + row for one, row in zip(watched, self._bank.rows_to_bytes(pages), strict=True)]

    def unpack(self, pages: IndexArray, rows: Sequence[bytes]) -> None:
        """Set pages to rows that `packed` returned; a row of the wrong length raises ValueError."""
        self._bank.rows_from_bytes(pages, [row[_WATCHED.itemsize :] for row in rows])
        watched = b"".join([row[: _WATCHED.itemsize] for row in rows])
        self._watched[pages] = np.frombuffer(watched, _WATCHED)
