"""One row of a compact posterior, rate by rate, as numba compiles it; `posterior` has the same for numpy.

Both leave the same row behind: sums are taken in the same order, and where the last digit of a logarithm could decide
how a step is rounded, the compiled code leaves the row to numpy.
"""

from __future__ import annotations

from math import expm1, inf, log
from typing import Any

import numpy as np

from crawlsched.estimators.log_weights import STEPS_PER_NAT

__all__ = ["EXAMPLES", "update_row", "weights_of_row"]

_NATS_PER_STEP = -1.0 / STEPS_PER_NAT
_LAST = 65535.0
_SMALLEST = 1e-300
# Logarithms are good to 1e-13 nats, a step being 1/2048.
_DOUBT = 1e-8


def update_row(
    stored: Any, page: int, rates: Any, elapsed: float, changed: bool, evidence: float, kept: float, offset: float
) -> bool:
    """Take one visit into account, as `Posterior.update_one` does; return False, and do nothing, where in doubt.

    Parameters
    ----------
    stored : ndarray of uint16, shape (n, K)
    page : int
    rates : ndarray, shape (K,)
    elapsed, changed, evidence
        As for `Posterior.update_one`.
    kept : float
        Factor on earlier evidence.
    offset : float
        What `dither_one` gave.
    """
    steps = np.empty(len(rates))
    highest = -inf
    for k in range(len(rates)):
        relative = stored[page, k] * _NATS_PER_STEP * kept
        expected = rates[k] * elapsed
        if changed:
            expected = max(expected + evidence, _SMALLEST)
            relative += log(-expm1(-expected))
        else:
            relative -= expected
        steps[k] = relative
        highest = max(highest, relative)
    for k in range(len(rates)):
        step = (steps[k] - highest) * -STEPS_PER_NAT + offset
        if changed and step < _LAST + 1.0:
            above = step % 1.0
            if above < _DOUBT or above > 1.0 - _DOUBT:
                return False
        steps[k] = min(step, _LAST)
    for k in range(len(rates)):
        stored[page, k] = int(steps[k])
    return True


def weights_of_row(stored: Any, page: int, prior: Any, likelihoods: Any, weights: Any) -> float:
    """Set the probability of each rate, as `Posterior.weights_one` does, before it is divided by the sum returned."""
    total = 0.0
    for k in range(len(weights)):
        weights[k] = likelihoods[stored[page, k]] * prior[k]
        total += weights[k]
    for k in range(len(weights)):
        weights[k] /= total
    return total


_ROW, _STORED = np.full(2, 0.5), np.zeros((2, 2), np.uint16)
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "update_row": (_STORED, 0, _ROW, 1.0, True, 0.0, 1.0, 0.5),
    "weights_of_row": (_STORED, 0, _ROW, _ROW, _ROW.copy()),
}
