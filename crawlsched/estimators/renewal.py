"""Renewal: before each visit a page's change rate may have become another one, as a rule within a factor of ten."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators.probabilities import TINY

__all__ = ["Renewal"]


# A new rate lies within this factor of the old one, above or below it, except for the share below.
_FARTHEST = 10.0
# One of ten may be any rate, drawn from the prior: no rate is ever ruled out, and a jump of a hundred is followed.
_FAR = 0.1
# No rate is reached with more than so many times its prior probability. Without that, evidence against rates that no
# page seems to have would hardly count: the prior learned from such likelihoods would begin to believe in them.
_MOST = 2.0


class Renewal:
    """The step of a hidden Markov chain of change rates, on the likelihoods of a grid.

    Notes
    -----
    With the prior π and likelihoods L the weights of the rates before the step are π L. Of them the share ε goes to
    other rates: nine tenths evenly to the W rates that a grid has within a factor of ten, the rest to all, as the prior
    has them, and none gets more than 2 ε times its prior. As state is the likelihood without the prior, and but for a
    constant, with the odds o = ε / (1 - ε),

        L_j ← L_j + min(o (0.9 Σ_near π_i L_i / (W π_j) + 0.1 Σ π_i L_i), 2 ε Σ π_i L_i).

    The fixed share of Herbster and Warmuth (1998) is that with the last sum alone. It takes the longer to follow a page
    the fewer pages there are like what it becomes, and draws rates from everywhere that the prior has any; among ten
    times faster or slower ones a page is soon found again, whatever the others are like.

    Examples
    --------
    >>> rates = np.array([0.01, 0.1, 1.0, 10.0, 100.0])
    >>> likelihood, prior = np.array([0.0, 0.0, 1.0, 0.0, 0.0]), np.full(5, 0.2)
    >>> renewed = np.exp(Renewal(rates, 0.1).log_likelihood(np.log(likelihood + 1e-300), prior))
    >>> (renewed / renewed[2]).round(3)
    array([0.002, 0.034, 1.   , 0.034, 0.002])
    """

    def __init__(self, rates: FloatArray, probability: float) -> None:
        # Rates that are ten times each other but for rounding are near.
        factors = np.array([1.0 / _FARTHEST, _FARTHEST]) * [1.0 - 1e-9, 1.0 + 1e-9]
        self.near: IndexArray = np.searchsorted(rates, np.outer(rates, factors))
        odds = probability / (1.0 - probability)
        widest = int(np.diff(self.near, axis=1).max())
        self._shares = (1.0 - _FAR) * odds / widest, _FAR * odds, _MOST * probability
        self.shares: FloatArray = np.array(self._shares)
        # Whose weights go to each rate from near it, with their share; in the last column, that of all.
        rows = np.arange(rates.size)[:, np.newaxis]
        nearby = (rows >= self.near[:, 0]) & (rows < self.near[:, 1])
        self._sums: FloatArray = np.column_stack([nearby * self._shares[0], np.ones(rates.size)])

    def log_likelihood(self, before: FloatArray, prior: FloatArray) -> FloatArray:
        """Return log-likelihoods of the rates now, but for a constant, from those of the rates before."""
        return self.renewed(np.exp(before), prior)

    def renewed(self, likelihood: FloatArray, prior: FloatArray) -> FloatArray:
        """Return what `log_likelihood` returns, from likelihoods; what they stand in is taken for it."""
        _, far, most = self._shares
        weights = likelihood * prior
        if weights.ndim == 1:  # what each visit asks for: a plain number is faster
            sums = weights.dot(self._sums)
            total = sums.item(-1)
        else:  # a product for each row: that of two matrices would be rounded otherwise
            sums = np.matmul(weights[:, np.newaxis], self._sums)[:, 0]
            total = sums[:, -1:]
        found: FloatArray = sums[..., :-1]
        found /= np.maximum(prior, TINY)
        found += far * total
        likelihood += np.minimum(found, most * total, out=found)
        return np.log(likelihood, out=likelihood)
