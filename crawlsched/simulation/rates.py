"""Rates: what an arm believes of how often pages change, learned by an estimator, known, or told by hindsight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators import (
    BiasReduced,
    Estimator,
    FrequencyClasses,
    GammaPosterior,
    LastModified,
    LawOfLargeNumbers,
    MaximumLikelihood,
    MomentMatching,
    Momentum,
    Naive,
    Posterior,
    StochasticApproximation,
    UniformPrior,
    learn_prior,
)
from crawlsched.simulation.truth import Visit

__all__ = ["ESTIMATORS", "GivenRates", "LearnedRates", "Rates", "rate_grid"]

# What is not known yet is as uncertain as this: a Gamma distribution of this shape.
_PRIOR_SHAPE = 0.5
_GRID_SIZE = 32
# Rates slower than one change in ten replays, or faster than a hundred in an even interval, cannot be told apart.
_SLOWEST, _FASTEST = 0.1, 100.0


class Rates(Protocol):
    """Change rates of pages."""

    def change_rate(self, rows: IndexArray) -> FloatArray:
        """Return changes per second."""
        ...

    def observe(self, visit: Visit) -> None:
        """Learn from a visit."""
        ...

    def plan(self) -> None:
        """Learn what pages have in common."""
        ...


class GivenRates:
    """Rates from outside: the history's own columns, or those of hindsight.

    Parameters
    ----------
    change_rate : ndarray, shape (n,)
        Changes per second.
    """

    def __init__(self, change_rate: FloatArray) -> None:
        self._rates = change_rate

    def change_rate(self, rows: IndexArray) -> FloatArray:
        """Return changes per second."""
        return self._rates[rows]

    def observe(self, visit: Visit) -> None:
        """Nothing is left to learn."""

    def plan(self) -> None:
        """Nothing is left to learn."""


class LearnedRates:
    """Rates as an estimator learns them.

    Parameters
    ----------
    name : str
        A name in `ESTIMATORS`.
    n_pages : int
    even_rate : float
        Crawls per second and page if all get the same: the one rate known beforehand, which sets the scale.
    duration : float
        Of the replay, seconds.

    Notes
    -----
    Most estimators give 0 for a page that never was found changed, which would mean never to come back, and all
    such pages would be alike. It counts as if half a change had been seen in the time it was watched and one even
    interval more.
    """

    def __init__(self, name: str, n_pages: int, even_rate: float, duration: float) -> None:
        self._bank = ESTIMATORS[name](n_pages, even_rate, duration)
        self._watched = np.full(n_pages, 1.0 / even_rate)
        self._visited = np.zeros(n_pages, bool)

    def change_rate(self, rows: IndexArray) -> FloatArray:
        """Return changes per second."""
        estimates: FloatArray = self._bank.change_rate(rows)
        return np.where(estimates > 0.0, estimates, 0.5 / self._watched[rows])

    def observe(self, visit: Visit) -> None:
        """Learn from a visit."""
        since = None if np.isnan(visit.time_since_modified) else visit.time_since_modified
        self._bank.update(visit.row, visit.elapsed, visit.changed, time_since_modified=since)
        self._watched[visit.row] += visit.elapsed
        self._visited[visit.row] = True

    def plan(self) -> None:
        """Learn the prior of a gridded posterior from the pages visited."""
        if isinstance(self._bank, Posterior) and self._visited.any():
            self._bank.prior = learn_prior(self._bank.log_likelihood(np.flatnonzero(self._visited)))


def rate_grid(even_rate: float, duration: float) -> FloatArray:
    """Return the change rates that a replay can tell apart, in equal ratios, shape (32,)."""
    slowest = min(_SLOWEST / duration, even_rate / _FASTEST)
    return np.geomspace(slowest, even_rate * _FASTEST, _GRID_SIZE)


def _gamma(n_pages: int, even_rate: float, duration: float) -> Estimator:
    # The mean of the prior is the even rate: one change between two crawls of a page.
    return GammaPosterior(n_pages, _PRIOR_SHAPE, _PRIOR_SHAPE / even_rate)


def _posterior(n_pages: int, even_rate: float, duration: float) -> Estimator:
    return Posterior(n_pages, rate_grid(even_rate, duration))


def _plain(estimator: Callable[[int], Estimator]) -> Callable[[int, float, float], Estimator]:
    return lambda n_pages, even_rate, duration: estimator(n_pages)


#: The estimators by name, as functions of (n_pages, even_rate, duration).
ESTIMATORS: dict[str, Callable[[int, float, float], Estimator]] = {
    "naive": _plain(Naive),
    "bias_reduced": _plain(BiasReduced),
    "uniform_prior": _plain(UniformPrior),
    "maximum_likelihood": _plain(MaximumLikelihood),
    "moment_matching": _plain(MomentMatching),
    "last_modified": _plain(LastModified),
    "law_of_large_numbers": _plain(LawOfLargeNumbers),
    "stochastic_approximation": _plain(StochasticApproximation),
    "momentum": _plain(Momentum),
    "frequency_classes": _plain(FrequencyClasses),
    "gamma_posterior": _gamma,
    "posterior": _posterior,
}
