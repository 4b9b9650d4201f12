"""The learning rate: how much of what its own visits say of a page is believed, learned from how well it foretells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.compiling import Compilable
from crawlsched.estimators.log_weights import likelihood_table, relative_likelihoods
from crawlsched.planner.models import likelihood_power_loops
from crawlsched.planner.models.log_losses import KEPT, add_losses

__all__ = ["LEARNING_RATES", "LearningRate", "best_learning_rate", "first_losses"]


#: `crawlsched.planner.models.likelihood_power_loops`.
LOOPS = Compilable(likelihood_power_loops)

#: Powers of the likelihood that are compared; with the last the posterior is that of Bayes. With less than the first a
#: page that changes its ways would not be followed: a tenth of the likelihood never outweighs what all others are like.
LEARNING_RATES = (0.5, 0.75, 1.0)
_ROW_OF_POWER = {power: row for row, power in enumerate(LEARNING_RATES)}
# Until visits tell otherwise it is a half, since real pages change in bursts; one of twice or half as much has to be
# better by so many nats: chance gives it as much in one crawl of twenty.
_AT_FIRST = 0.5
_LEAD = 3.0
# So many visits are looked at together, which in numpy costs a tenth of looking at each when it comes.
_TOGETHER = 64


class LearningRate:
    """Compare how well pages' visits are foretold with several powers of the likelihood.

    Parameters
    ----------
    rates : ndarray, shape (K,)
        The grid of change rates, per second.
    losses : sequence of float, optional
        As `losses` of an earlier one.

    Attributes
    ----------
    n_visits : int
        How many visits it has seen itself.

    Notes
    -----
    Pages of real sites change in bursts. A page that was found changed by one visit is not as likely to have changed by
    the next as a Poisson page would be, so Bayes' rule, which is right for those, learns too much from few visits. The
    likelihood to a power η below 1 learns less; which η is right can be seen from the visits themselves: the best one
    is that which foretells each of them best from those before (Grünwald 2012, SafeBayes). Where pages are Poisson
    pages, η = 1 is. Visits to pages that have no history of their own are foretold alike by all and tell nothing.

    References
    ----------
    P. Grünwald (2012). The safe Bayesian: learning the learning rate via the mixability gap. ALT 2012.

    Examples
    --------
    >>> learning = LearningRate(np.array([1e-3, 1e-1]))
    >>> looked_fast, prior = np.array([-4.0, 0.0]), np.array([0.5, 0.5])
    >>> for _ in range(20):
    ...     learning.visited(looked_fast, prior, 60.0, 0.0, changed=False)
    >>> learning.best
    0.5
    """

    def __init__(self, rates: FloatArray, losses: Sequence[float] | FloatArray | None = None) -> None:
        self._rates: FloatArray = np.array(rates)  # never read-only, which to numba would be another type
        self._losses = first_losses() if losses is None else np.array(losses, np.float64)
        if self._losses.shape != (len(LEARNING_RATES),):
            raise ValueError(f"losses must be {len(LEARNING_RATES)} numbers, one per learning rate, got {losses!r}.")
        self.n_visits = 0
        self._waiting = 0
        self._stored: npt.NDArray[Any] = np.empty((_TOGETHER, rates.size))
        self._prior = np.empty((_TOGETHER, rates.size))
        self._elapsed, self._evidence = np.empty((2, _TOGETHER))
        self._changed = np.empty(_TOGETHER, bool)

    @property
    def losses(self) -> FloatArray:
        """Sum of the logarithmic losses of each of `LEARNING_RATES` beyond that of the best, nats, shape (3,).

        Old ones are forgotten.
        """
        if self._waiting:
            self._look()
        return self._losses

    @property
    def best(self) -> float:
        """The power that has foretold visits best."""
        return best_learning_rate(self.losses)

    def foretold(
        self,
        codes: npt.NDArray[Any],
        page: int,
        prior: FloatArray,
        power: float,
        elapsed: float,
        evidence: float,
        changed: bool,
        counts: bool,
    ) -> float | None:
        """Take in what a visit found as `visited` does, by compiled code; None, and nothing done, where it cannot.

        Parameters
        ----------
        codes : ndarray of uint8 or uint16, shape (n, K)
            Log-likelihoods of all pages before the visit, as a compact `Posterior` keeps them.
        page : int
        prior : ndarray, shape (K,)
            Probability of each rate before the first visit.
        power : float
            The learning rate in force.
        elapsed, evidence, changed
            As for `visited`.
        counts : bool
            Whether something is to be learned from this visit.

        Returns
        -------
        float or None
            Probability that the page has not changed, by its age alone and the power in force.
        """
        in_force = _ROW_OF_POWER.get(power)
        if in_force is None or not LOOPS.compiled:
            return None
        if self._waiting:
            self._look()
        powers = _likelihood_tables(codes.dtype.char), in_force
        # To numba an integer would be another type.
        visit = float(elapsed), float(evidence), bool(changed)
        kept = KEPT if counts else 0.0
        fresh: float = LOOPS.foretold(codes, page, prior, self._rates, *visit, *powers, kept, self._losses)
        if fresh < 0.0:
            return None
        self.n_visits += counts
        return fresh

    def visited(
        self, stored: npt.NDArray[Any], prior: FloatArray, elapsed: float, evidence: float, changed: bool
    ) -> None:
        """Take in what a visit found; O(K).

        Parameters
        ----------
        stored : ndarray, shape (K,)
            The page's log-likelihoods before the visit, as a `Posterior` keeps them; always of the same kind.
        prior : ndarray, shape (K,)
            Probability of each rate before the first visit.
        elapsed : float
            Seconds since the visit before.
        evidence : float
            Nats that announcements and co-changes since take off the log-probability that the page had not changed.
        changed : bool
            What the visit found.
        """
        if self._stored.dtype != stored.dtype:
            self._stored = np.empty(self._stored.shape, stored.dtype)
        row = self._waiting
        self._stored[row], self._prior[row], self._elapsed[row] = stored, prior, elapsed
        self._evidence[row], self._changed[row] = evidence, changed
        self.n_visits += 1
        self._waiting += 1
        if self._waiting == _TOGETHER:
            self._look()

    def _look(self) -> None:
        n, self._waiting = self._waiting, 0
        stored, prior, changed = self._stored[:n], self._prior[:n], self._changed[:n]
        fresh = np.exp(-self._elapsed[:n, np.newaxis] * self._rates - self._evidence[:n, np.newaxis])
        found = np.empty((n, len(LEARNING_RATES)))
        for row, power in enumerate(LEARNING_RATES):
            weights = relative_likelihoods(stored, power) * prior
            found[:, row] = np.vecdot(weights, fresh) / weights.sum(axis=1)
        found[changed] = 1.0 - found[changed]
        add_losses(self._losses, found)


@lru_cache
def _likelihood_tables(character: str) -> FloatArray:
    """Return for compact rows of a type `likelihood_table` of each learning rate, shape (3, L)."""
    return np.stack([likelihood_table(np.dtype(character).name, power) for power in LEARNING_RATES])


def first_losses() -> FloatArray:
    """Return the losses of the learning rates before the first visit."""
    losses: FloatArray = _LEAD * np.abs(np.log2(np.array(LEARNING_RATES) / _AT_FIRST))
    return losses


def best_learning_rate(losses: FloatArray) -> float:
    """Return the learning rate with the least loss."""
    return LEARNING_RATES[int(losses.argmin())]
