"""The share of an importance that something has, from an even sample."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import FloatArray

__all__ = ["Estimate", "estimated"]


class Estimate(NamedTuple):
    """A share by importance, with its standard error."""

    share: float
    error: float


def estimated(fresh: FloatArray, importance: FloatArray, n_all: float) -> Estimate | None:
    """Return the share of the importance that is fresh, from an even sample that stands for `n_all` pages.

    None without importance. The error is that of a ratio of means (Cochran, Sampling Techniques, section 6.4).

    Examples
    --------
    >>> import numpy as np
    >>> share, error = estimated(np.array([1.0, 0.0, 1.0, 1.0]), np.ones(4), n_all=1000)
    >>> share, round(error, 3)
    (0.75, 0.25)
    """
    total, n = float(importance.sum()), fresh.size
    if not total:
        return None
    share = float(importance @ fresh) / total
    if n < 2 or n >= n_all:
        return Estimate(share, 0.0)
    residuals = importance * (fresh - share)
    variance = n / (n - 1) * float(residuals @ residuals) / total**2 * (1.0 - n / n_all)
    return Estimate(share, float(np.sqrt(variance)))
