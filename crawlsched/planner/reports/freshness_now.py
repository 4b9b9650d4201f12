"""Freshness now: how likely it is that copies are fresh, of any pages, and of all of them by an even sample."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.pages import ERROR, LIVE, NEW, REFUSED
from crawlsched.planner.planner import Planner

__all__ = ["Estimate", "estimated", "known_fresh", "wanted"]

# Of these states a fresh copy is wanted. What is gone or moved has none to be had.
_WANTED = (NEW, LIVE, ERROR)


def wanted(planner: Planner, rows: Any) -> Any:
    """Return those of the pages of which a fresh copy is wanted: also those that had one and fail now."""
    pages = planner.pages
    state = pages.state[rows]
    had_one = (state == REFUSED) & (pages.n_crawls[rows] > 0)
    return rows[np.isin(state, _WANTED) | had_one | pages.failing(rows)]


def known_fresh(planner: Planner, rows: Any, now: float) -> FloatArray:
    """Return how likely pages are known to be fresh: not at all while they fail, or have no copy."""
    fresh: FloatArray = np.where(planner.pages.state[rows] == LIVE, planner.values.fresh(rows, now), 0.0)
    return fresh


class Estimate(NamedTuple):
    """A share by importance, with its standard error."""

    share: float
    error: float


def estimated(fresh: FloatArray, importance: FloatArray, n_all: float) -> Estimate | None:
    """Return the share of the importance that is fresh, from an even sample.

    Parameters
    ----------
    fresh, importance : ndarray, shape (n,)
        Of the pages of the sample.
    n_all : float
        How many pages they stand for; with all of them there is no error.

    Returns
    -------
    Estimate or None
        None without importance. The error is that of a ratio of means (Cochran, Sampling Techniques, section 6.4).

    Examples
    --------
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
