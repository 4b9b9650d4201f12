"""Freshness now: how likely copies are fresh, of any pages and of all by an even sample, and what crawls now gain."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.pages import ERROR, LIVE, NEW, REFUSED
from crawlsched.planner.planner import Planner

__all__ = ["known_fresh", "prospects", "wanted"]

# Of these states a fresh copy is wanted. What is gone or moved has none to be had.
_WANTED = (NEW, LIVE, ERROR)


def wanted(planner: Planner, rows: Any) -> Any:
    """Return the pages that should be fresh: also those that had a copy and fail now."""
    pages = planner.pages
    state = pages.state[rows]
    had_one = (state == REFUSED) & (pages.n_crawls[rows] > 0)
    return rows[np.isin(state, _WANTED) | had_one | pages.failing(rows)]


def known_fresh(planner: Planner, rows: Any, now: float) -> FloatArray:
    """Return how likely pages are known to be fresh: not at all while they fail, or have no copy."""
    fresh: FloatArray = np.where(planner.pages.state[rows] == LIVE, planner.values.fresh(rows, now), 0.0)
    return fresh


def prospects(planner: Planner, pages: npt.NDArray[np.intp], now: float) -> tuple[FloatArray, FloatArray]:
    """Return what the crawl of each page gains beyond the threshold (at least 0), and importance times freshness."""
    columns = planner.pages
    surplus = np.maximum(planner.crawl_values.value_at(pages, now) - planner.threshold, 0.0)
    fresh = planner.values.fresh(pages, now) * columns.importance[pages]
    return surplus, fresh
