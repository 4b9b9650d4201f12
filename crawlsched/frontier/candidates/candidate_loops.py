"""The highest bounds of the pages that are awake, as numba compiles it; see `candidates`."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

__all__ = ["EXAMPLES", "highest"]


def highest(bounds: Any, now: float) -> tuple[int, float, float]:
    """Return the row with the highest bound now, that bound, and the next highest one; -inf where there is none."""
    row, first, second = -1, -inf, -inf
    for n in range(bounds.shape[1]):
        since = now - bounds[0, n]
        # In the order in which numpy does it.
        bound = (bounds[3, n] * since + bounds[2, n]) * since + bounds[1, n] + bounds[4, n]
        if bound > first:
            row, first, second = n, bound, first
        elif bound > second:
            second = bound
    return row, first, second


#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {"highest": (np.zeros((5, 2)), 1.0)}
