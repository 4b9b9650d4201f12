"""From when on a page may be crawled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.pages import Pages

__all__ = ["Eligibility"]


class Eligibility(NamedTuple):
    """From when on pages may be crawled: not before what their columns say, nor soon after their last crawl.

    Attributes
    ----------
    pages : Pages
    min_crawl_interval : float
        Seconds.
    """

    pages: Pages
    min_crawl_interval: float

    def at(self, pages: IndexArray) -> FloatArray:
        """Return the time from which each page may be crawled, POSIX seconds; O(n)."""
        columns = self.pages
        eligible: FloatArray = np.maximum(
            columns.not_before[pages], columns.crawled_at[pages] + self.min_crawl_interval
        )
        return eligible

    def at_one(self, page: int) -> float:
        """Return the same for one page; O(1)."""
        columns = self.pages
        soonest: float = columns.crawled_at.item(page) + self.min_crawl_interval
        row = columns.rare.item(page)
        if not row and soonest > 0.0:
            return soonest
        # As `not_before.item`, without the calls: this is asked at each visit.
        not_before: float = columns.rare_facts.columns["not_before"].item(row)
        return not_before if not_before > soonest else soonest
