"""Aging: pages that were found lately change more than they will, by as much as visits show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.planner.models.log_losses import add_losses

__all__ = ["Aging", "AgingLaw", "best_law", "first_aging_losses"]


# How many times faster a page is when it is found than what it will slow down to, less 1; and the age at which half of
# that is left, in even intervals.
_STRENGTHS = (1.0, 3.0, 9.0)
_HALF_AGES = (1 / 8, 1 / 2, 2.0)
_LAWS: FloatArray = np.array([(b, share) for b in _STRENGTHS for share in _HALF_AGES]).T
# That pages do not age is believed until one of these laws is better by so many nats.
_LEAD = 3.0
# So many visits are looked at together, as for the learning rate.
_TOGETHER = 64


@dataclass(frozen=True)
class AgingLaw:
    """How much faster than later a page of some age changes.

    Attributes
    ----------
    strength : float
        A page that has just been found changes 1 + strength times as often as one that is old.
    half_age : float
        Seconds after which half of that is left.

    Notes
    -----
    At age a a page whose rate will be r when it is old has the rate r φ(a), φ(a) = 1 + b / (1 + a/h): what is left of
    its youth is at first constant and then falls like 1/a, as the power-law process of reliability growth (Crow 1975)
    does. Between two ages r (Λ(a₂) - Λ(a₁)) changes are expected, Λ(a) = a + b h log(1 + a/h).

    References
    ----------
    L. H. Crow (1975). Reliability analysis for complex, repairable systems. US Army AMSAA, technical report 138.

    Examples
    --------
    >>> law = AgingLaw(strength=3.0, half_age=100.0)
    >>> law.pace(0.0), law.pace(100.0), law.pace(1e9).__round__(3)
    (4.0, 2.5, 1.0)
    >>> round(law.lived(0.0, 100.0))
    308
    """

    strength: float
    half_age: float

    def pace(self, age: float) -> float:
        """Return how many times as often as when it is old a page of this age, seconds, changes."""
        return self.strength / (1.0 + age / self.half_age) + 1.0

    def paces(self, ages: FloatArray) -> FloatArray:
        """Return what `pace` returns, of several ages."""
        return self.strength / (1.0 + ages / self.half_age) + 1.0

    def lived(self, begin: float, end: float) -> float:
        """Return in how many seconds an old page is expected to change as often as one from one age to another."""
        return float(_lived(begin, end, self.strength, self.half_age))


def _lived(begin: Any, end: Any, strength: Any, half_age: Any) -> Any:
    grown = np.log1p((end - begin) / (half_age + begin))
    return (end - begin) + strength * half_age * grown


class Aging:
    """Compare how well visits to pages whose age is known are foretold if pages slow down as they get older.

    Parameters
    ----------
    rates : ndarray, shape (K,)
        The grid of change rates, per second.
    losses : ndarray, shape (10,), optional
        As `losses` of an earlier one.

    Attributes
    ----------
    n_visits : int
        How many visits it has seen itself.

    Notes
    -----
    That no page ages is compared with nine laws, three strengths with three half ages, as powers of the likelihood are
    by `LearningRate`: each foretells a visit from those before, and the plan takes the one whose sum of logarithmic
    losses is least. A law has to be better than none by 3 nats. Half ages are in even intervals, since what is much
    shorter or longer than the time between two visits makes no difference to any of them.

    Examples
    --------
    Pages that are a minute old and hardly ever change later have changed by their first visit:

    >>> aging = Aging(np.array([1e-3, 1e-1]))
    >>> for _ in range(20):
    ...     aging.visited(np.array([1.0, 0.0]), 0.0, 60.0, 60.0, 0.0, changed=True)
    >>> best_law(aging.losses, 60.0)
    AgingLaw(strength=9.0, half_age=120.0)
    """

    def __init__(self, rates: FloatArray, losses: FloatArray | None = None) -> None:
        self._rates = rates
        self._losses = first_aging_losses() if losses is None else np.array(losses, np.float64)
        self.n_visits = 0
        self._waiting = 0
        self._weights = np.empty((_TOGETHER, rates.size))
        # Ages before and at each visit, the even interval, and the evidence.
        self._visits = np.empty((_TOGETHER, 4))
        self._changed = np.empty(_TOGETHER, bool)

    @property
    def losses(self) -> FloatArray:
        """Sum of the logarithmic losses of no aging, and of each law, beyond that of the best, nats, shape (10,).

        Old ones are forgotten.
        """
        if self._waiting:
            self._look()
        return self._losses

    def visited(
        self, weights: FloatArray, begin: float, end: float, even_interval: float, evidence: float, changed: bool
    ) -> None:
        """Take in what a visit to a page found whose age is known; O(K).

        Parameters
        ----------
        weights : ndarray, shape (K,)
            Probability, before the visit, of each rate that the page may have when it is old.
        begin, end : float
            Its age at the visit before and at this one, seconds.
        even_interval : float
            Seconds between two crawls of a page if all got the same.
        evidence : float
            Nats that announcements and other pages since take off the log-probability that it had not changed.
        changed : bool
            What the visit found.
        """
        row = self._waiting
        self._weights[row], self._changed[row] = weights, changed
        self._visits[row] = begin, end, even_interval, evidence
        self.n_visits += 1
        self._waiting += 1
        if self._waiting == _TOGETHER:
            self._look()

    def _look(self) -> None:
        n, self._waiting = self._waiting, 0
        changed, (begin, end, even_interval, evidence) = self._changed[:n], self._visits[:n].T[:, :, np.newaxis]
        lived = np.hstack([end - begin, _lived(begin, end, _LAWS[0], _LAWS[1] * even_interval)])
        stale = lived[:, :, np.newaxis] * self._rates + evidence[:, :, np.newaxis]
        found = np.vecdot(np.exp(-stale), self._weights[:n, np.newaxis, :])
        found[changed] = 1.0 - found[changed]
        add_losses(self._losses, found)


def first_aging_losses() -> FloatArray:
    """Return the losses of no aging and of the laws before the first visit."""
    losses = np.full(_LAWS.shape[1] + 1, _LEAD)
    losses[0] = 0.0
    return losses


def best_law(losses: FloatArray, even_interval: float) -> AgingLaw | None:
    """Return the law with the least loss for an even interval, seconds; None if that is no aging."""
    best = int(losses.argmin())
    if best == 0:
        return None
    return AgingLaw(float(_LAWS[0, best - 1]), float(_LAWS[1, best - 1]) * even_interval)
