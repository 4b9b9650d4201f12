"""Logarithmic losses: how well visits were foretold in several ways, of which those of late count."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import FloatArray

__all__ = ["KEPT", "LEAST_PROBABILITY", "add_losses"]


#: What is kept of a loss at each visit after it: of one 8192 visits ago 1/e is left.
KEPT = 1.0 - 1.0 / 8192.0
#: What was found is never taken for less likely: a single visit decides nothing.
LEAST_PROBABILITY = 1e-9


def add_losses(losses: FloatArray, found: FloatArray) -> None:
    """Add the losses of some visits, and take those of the best way off all.

    Parameters
    ----------
    losses : ndarray, shape (m,)
        Sums of logarithmic losses beyond those of the best way, nats; changed in place.
    found : ndarray, shape (n, m)
        Probability of what each visit found, as each way foretold it, the first visit first.

    Examples
    --------
    Of two ways one was sure that the page had changed, and the other in doubt:

    >>> losses = np.zeros(2)
    >>> add_losses(losses, np.array([[0.99, 0.5]]))
    >>> losses.round(2).tolist()
    [0.0, 0.68]
    """
    kept = KEPT ** np.arange(len(found) - 1, -1, -1)
    losses *= kept[0] * KEPT
    losses -= kept @ np.log(np.maximum(found, LEAST_PROBABILITY))
    losses -= losses.min()
