"""Rates: the change rates that an arm uses: learned by an estimator, known, or those of hindsight."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators import LearnedRates, Posterior, learn_prior
from crawlsched.simulation.truth import CrawlResult

__all__ = ["EstimatedRates", "PosteriorRates", "Rates", "rate_grid"]

_GRID_SIZE = 32
# Rates slower than one change in ten replays, or faster than a hundred in an even interval, cannot be told apart.
_SLOWEST, _FASTEST = 0.1, 100.0


class Rates:
    """Rates from outside: the history's own columns, or those of hindsight. Nothing is left to learn."""

    def __init__(self, change_rate: FloatArray) -> None:
        self._rates = change_rate

    def change_rate(self, rows: IndexArray) -> FloatArray:
        """Return changes per second."""
        return self._rates[rows]

    def observe(self, visit: CrawlResult) -> None:
        """Learn from a visit."""

    def plan(self) -> None:
        """Learn what pages have in common."""


class EstimatedRates(Rates):
    """Rates from one of the point estimators, learned by the code of a crawl."""

    def __init__(self, learned: LearnedRates) -> None:
        self.learned = learned

    def change_rate(self, rows: IndexArray) -> FloatArray:
        """Return changes per second."""
        return self.learned.change_rate(rows)

    def observe(self, visit: CrawlResult) -> None:
        """Learn from a visit."""
        self.learned.observe(visit.row, visit.elapsed, visit.changed, time_since_modified=visit.time_since_modified)


class PosteriorRates(Rates):
    """Mean rates of a gridded posterior, whose prior is learned from the pages visited."""

    def __init__(self, n_pages: int, even_rate: float, duration: float) -> None:
        self._bank = Posterior(n_pages, rate_grid(even_rate, duration))
        self._visited = np.zeros(n_pages, bool)

    def change_rate(self, rows: IndexArray) -> FloatArray:
        """Return changes per second."""
        estimates: FloatArray = self._bank.change_rate(rows)
        return estimates

    def observe(self, visit: CrawlResult) -> None:
        """Learn from a visit."""
        self._bank.update(visit.row, visit.elapsed, visit.changed, time_since_modified=visit.time_since_modified)
        self._visited[visit.row] = True

    def plan(self) -> None:
        """Learn the prior."""
        if self._visited.any():
            self._bank.prior = learn_prior(self._bank.log_likelihood(np.flatnonzero(self._visited)))


def rate_grid(even_rate: float, duration: float) -> FloatArray:
    """Return the grid of change rates for a replay, in equal ratios, shape (32,)."""
    slowest = min(_SLOWEST / duration, even_rate / _FASTEST)
    return np.geomspace(slowest, even_rate * _FASTEST, _GRID_SIZE)
