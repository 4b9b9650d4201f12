"""Prospects: what crawling pages now is worth, and how likely their copies are still fresh."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.planner.planner import Planner

__all__ = ["prospects"]


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
        Importance times the probability of a fresh copy; 0 without a copy.
    """
    columns = planner.pages
    surplus = np.maximum(planner.crawl_values.value_at(pages, now) - planner.threshold, 0.0)
    fresh = planner.values.fresh(pages, now) * columns.importance[pages]
    return surplus, fresh
