"""What several powers of a page's likelihood foretold of one visit, rate by rate, as numba compiles it.

`crawlsched.planner.models.likelihood_power` has the same for numpy, many visits at a time: numpy is good at that.
"""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np

from crawlsched.estimators.probabilities import TINY
from crawlsched.planner.models.log_losses import LEAST_PROBABILITY

__all__ = ["EXAMPLES", "foretold"]


def foretold(
    stored: Any,
    page: int,
    prior: Any,
    rates: Any,
    elapsed: float,
    evidence: float,
    changed: bool,
    likelihoods: Any,
    in_force: int,
    kept: float,
    losses: Any,
) -> float:
    """Return the probability that a page has not changed by its age alone, and add up how well powers foretold a visit.

    Parameters
    ----------
    stored : ndarray of uint8 or uint16, shape (n, K)
    page : int
    prior, rates : ndarray, shape (K,)
    elapsed : float
        Seconds since the visit before.
    evidence : float
        Nats that announcements and co-changes take off the log-probability of no change.
    changed : bool
        What the visit found.
    likelihoods : ndarray, shape (P, L)
        What each stored value stands for, to each power.
    in_force : int
        Row of the power by which the probability is returned.
    kept : float
        Factor on earlier losses; 0: this visit does not count, and losses stay as they are.
    losses : ndarray, shape (P,)
        Brought up to date.

    Returns
    -------
    float
        -1, and nothing is done, where prior and visits rule each other out.
    """
    powers = len(losses)
    if kept == 0.0:
        fresh = total = 0.0
        for k in range(len(rates)):
            weight = likelihoods[in_force, stored[page, k]] * prior[k]
            total += weight
            fresh += weight * exp(rates[k] * -elapsed)
        return fresh / total if total > TINY else -1.0
    sums = np.zeros((2, powers))
    for k in range(len(rates)):
        code, before, stays = stored[page, k], prior[k], exp(rates[k] * -elapsed)
        for power in range(powers):
            weight = likelihoods[power, code] * before
            sums[0, power] += weight * stays
            sums[1, power] += weight
    for power in range(powers):
        if not sums[1, power] > TINY:
            return -1.0
    explained, least = exp(-evidence), np.inf
    for power in range(powers):
        found = sums[0, power] / sums[1, power] * explained
        if changed:
            found = 1.0 - found
        losses[power] = losses[power] * kept - log(max(found, LEAST_PROBABILITY))
        least = min(least, losses[power])
    for power in range(powers):
        losses[power] -= least
    return float(sums[0, in_force] / sums[1, in_force])


_ROW, _CODES = np.full(2, 0.5), np.zeros((2, 2), np.uint8)
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "foretold": (_CODES, 0, _ROW, _ROW, 1.0, 0.0, True, np.ones((2, 256)), 0, 0.5, np.zeros(2)),
}
