"""From when on a page may be crawled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.pages import Pages
from crawlsched.pages.intervals import Intervals

__all__ = ["Eligibility"]


class Eligibility(NamedTuple):
    """From when on pages may be crawled: not before what their columns say, nor soon after their last crawl.

    Attributes
    ----------
    pages : Pages
    intervals : Intervals
        How soon after their last crawl.
    """

    pages: Pages
    intervals: Intervals

    def at(self, pages: IndexArray) -> FloatArray:
        """Return the time from which each page may be crawled, POSIX seconds; O(n)."""
        columns = self.pages
        eligible: FloatArray = np.maximum(
            columns.not_before[pages], columns.crawled_at[pages] + self.intervals.shortest(pages)
        )
        return eligible

    def at_one(self, page: int) -> float:
        """Return the same for one page; O(1)."""
        columns = self.pages
        soonest: float = columns.crawled_at.item(page) + self.intervals.shortest_one(page)
        row = columns.rare.item(page)
        if not row and soonest > 0.0:
            return soonest
        # As `not_before.item`, without the calls: this is asked at each visit.
        not_before: float = columns.rare_facts.columns["not_before"].item(row)
        return not_before if not_before > soonest else soonest
