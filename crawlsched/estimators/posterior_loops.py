"""One row of a compact posterior, rate by rate, as numba compiles it; `posterior` has the same for numpy.

Both leave the same row behind: sums are taken in the same order, and where the last digit of a logarithm could decide
how a step is rounded, the compiled code leaves the row to numpy.
"""

from __future__ import annotations

from math import exp, expm1, floor, inf, log, sqrt
from typing import Any

import numpy as np

from crawlsched.estimators.log_weights import CODES, LAST_CODE, LAST_STEP, STEPS_PER_NAT, STEPS_PER_SQUARE
from crawlsched.estimators.probabilities import TINY

__all__ = ["EXAMPLES", "update_row", "weights_of_row", "weights_of_rows"]

_SMALLEST = 1e-300
# Logarithms are good to 1e-13 nats, a step being 1/2048.
_DOUBT = 1e-8


def update_row(
    stored: Any,
    page: int,
    known: Any,
    prior: Any,
    rates: Any,
    elapsed: float,
    changed: bool,
    evidence: float,
    kept: float,
    near: Any,
    shares: Any,
    offset: float,
) -> bool:
    """Take one visit into account, as `Posterior.update_one` does; return False, and do nothing, where in doubt.

    Parameters
    ----------
    stored : ndarray of uint16 or uint8, shape (n, K)
    page : int
    known : ndarray, shape (2, L)
        What each stored value stands for, in nats and as a likelihood: an entry of `log_weights.KNOWN`.
    prior, rates : ndarray, shape (K,)
    elapsed, changed, evidence
        As for `Posterior.update_one`.
    kept : float
        Factor on earlier evidence.
    near : ndarray of int, shape (K, 2)
    shares : ndarray, shape (3,)
        Of `renewal.Renewal`.
    offset : float
        What `dither_one` gave.
    """
    steps, renewed = np.empty(len(rates)), shares[0] > 0.0
    for k in range(len(rates)):
        steps[k] = known[0, stored[page, k]] * kept
    if renewed:
        below = np.empty(len(rates) + 1)
        below[0] = total = 0.0
        for k in range(len(rates)):
            # A look-up is several times faster than an exponential.
            steps[k] = known[1, stored[page, k]] if kept == 1.0 else exp(steps[k])
            total += steps[k] * prior[k]
            below[k + 1] = total
        far, most = shares[1] * total, shares[2] * total
        for k in range(len(rates)):
            found = (below[near[k, 1]] - below[near[k, 0]]) * shares[0] / max(prior[k], TINY) + far
            steps[k] = log(steps[k] + min(found, most))
    highest = -inf
    for k in range(len(rates)):
        expected = rates[k] * elapsed
        if changed:
            expected = max(expected + evidence, _SMALLEST)
            steps[k] += log(-expm1(-expected))
        else:
            steps[k] -= expected
        highest = max(highest, steps[k])
    rounded = changed or renewed
    squared = known.shape[1] == CODES
    for k in range(len(rates)):
        step = (steps[k] - highest) * -STEPS_PER_NAT
        last = LAST_STEP
        if squared:
            step = code_of(step)
            last = LAST_CODE
        step += offset
        if rounded and step < last + 1.0:
            above = step - floor(step)
            if above < _DOUBT or above > 1.0 - _DOUBT:
                return False
        steps[k] = min(step, last)
    for k in range(len(rates)):
        stored[page, k] = int(steps[k])
    return True


def code_of(steps: float) -> float:
    """Return the place of so many steps among the codes of 8 bits, as `log_weights.encoded` does."""
    square = min(steps, LAST_STEP) / STEPS_PER_SQUARE
    code = floor(sqrt(square))
    return code + (square - code * code) / (2.0 * code + 1.0)


def weights_of_row(stored: Any, page: int, prior: Any, likelihoods: Any, weights: Any) -> float:
    """Set the probability of each rate, as `Posterior.weights_one` does, before it is divided by the sum returned."""
    total = 0.0
    for k in range(len(weights)):
        weights[k] = likelihoods[stored[page, k]] * prior[k]
        total += weights[k]
    for k in range(len(weights)):
        weights[k] /= total
    return total


def unchanged_of_row(stored: Any, page: int, prior: Any, likelihoods: Any, rates: Any, elapsed: float) -> float:
    """Return what `Posterior.unchanged_one` does; -1 where prior and visits rule each other out."""
    unchanged = total = 0.0
    for k in range(len(rates)):
        weight = likelihoods[stored[page, k]] * prior[k]
        total += weight
        unchanged += weight * exp(rates[k] * -elapsed)
    return unchanged / total if total > TINY else -1.0


def weights_of_rows(stored: Any, pages: Any, priors: Any, groups: Any, likelihoods: Any, weights: Any) -> float:
    """Set for many pages what `weights_of_row` sets; return the least of the sums.

    `groups` are rows of `priors`, one per page.
    """
    least = inf
    for n in range(len(pages)):
        page, group, total = pages[n], groups[n], 0.0
        for k in range(weights.shape[1]):
            weights[n, k] = likelihoods[stored[page, k]] * priors[group, k]
            total += weights[n, k]
        for k in range(weights.shape[1]):
            weights[n, k] /= total
        least = min(least, total)
    return least


_ROW, _CODES, _PAGES = np.full(2, 0.5), np.zeros((2, 2), np.uint8), np.zeros(2, np.intp)
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "update_row": (_CODES, 0, np.ones((2, 2)), _ROW, _ROW, 1.0, True, 0.0, 1.0, _CODES.astype(np.intp), _ROW, 0.5),
    "weights_of_row": (_CODES, 0, _ROW, _ROW, _ROW.copy()),
    "unchanged_of_row": (_CODES, 0, _ROW, _ROW, _ROW, 1.0),
    "weights_of_rows": (_CODES, _PAGES, np.ones((2, 2)), _PAGES, _ROW, np.ones((2, 2))),
}
