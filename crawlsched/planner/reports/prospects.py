"""Prospects: what crawling pages now is worth, and how likely their copies are still fresh."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value.objectives import OBJECTIVES
from crawlsched.planner.planner import Planner

__all__ = ["cost_of_staleness", "prospects"]


def prospects(planner: Planner, pages: npt.NDArray[np.intp], now: float) -> tuple[FloatArray, FloatArray]:
    """Return crawl values above the threshold, and importance times the probability of a fresh copy.

    Parameters
    ----------
    planner : Planner
    pages : ndarray of int, shape (n,)
    now : float
        POSIX seconds.

    Returns
    -------
    surplus : ndarray, shape (n,)
        What the crawl of each page gains beyond the threshold, which any crawl gains; 0 where it gains less.
    fresh : ndarray, shape (n,)
        Importance times the probability of a fresh copy times `cost_of_staleness`; 0 without a copy.
    """
    columns = planner.pages
    surplus = np.maximum(planner.crawl_values.value_at(pages, now) - planner.threshold, 0.0)
    crawled_at = columns.crawled_at[pages]
    elapsed = np.where(np.isfinite(crawled_at), np.maximum(now - crawled_at, 0.0), 0.0)
    fresh = planner.values.fresh(pages, now) * columns.importance[pages]
    return surplus, fresh * cost_of_staleness(planner, elapsed)


def cost_of_staleness(planner: Planner, elapsed: npt.ArrayLike) -> FloatArray:
    """Return what a stale copy of importance 1 costs a second, by the planner's objective, so long after its crawl."""
    seconds = np.asarray(elapsed, np.float64)
    objective = OBJECTIVES.get(planner.objective)
    return np.ones_like(seconds) if objective is None else objective.loss(seconds)
