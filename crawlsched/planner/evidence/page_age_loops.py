"""The rates that young pages have at present from those that they will have, page by page, as numba compiles it.

`crawlsched.planner.evidence.page_ages` has the same for numpy; both do the same operations in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["EXAMPLES", "quicken"]


def quicken(weights: Any, rows: Any, shifts: Any) -> None:
    """Move probabilities by numbers of steps of a grid in equal ratios, in place; as `page_ages.shifted` does.

    Parameters
    ----------
    weights : ndarray, shape (n, K)
    rows : ndarray of int, shape (m,)
        Those that are moved.
    shifts : ndarray, shape (m,)
        Steps, 0 or more.
    """
    size = weights.shape[1]
    for m in range(len(rows)):
        row = rows[m]
        whole = min(int(shifts[m]), size - 1)
        share = min(shifts[m] - whole, 1.0)
        total, kept = 0.0, 0.0
        for k in range(size):
            total += weights[row, k]
            if k == size - 2 - whole:
                kept = total
        # What would be faster than the last rate goes to that: all from the last but `whole` on, and some of one below.
        last = total
        if whole < size - 1:
            last += weights[row, size - 2 - whole] * share - kept
        for k in range(size - 1, -1, -1):
            lower = weights[row, k - whole] if k >= whole else 0.0
            below = weights[row, k - whole - 1] if k > whole else 0.0
            weights[row, k] = lower * (1.0 - share) + below * share
            if k == size - 1:
                weights[row, k] = last


#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {"quicken": (np.full((2, 2), 0.5), np.arange(2), np.full(2, 0.5))}
