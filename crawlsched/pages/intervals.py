"""Crawl intervals: the shortest and the longest time between two crawls of a page, by the number of the page's rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.pages.pages import Pages

__all__ = ["CrawlIntervals"]


class CrawlIntervals:
    """The limits of each page: those of its rule (`Pages.rule`), or the general limits if it has no rule.

    Examples
    --------
    >>> pages = Pages()
    >>> intervals = CrawlIntervals(pages, [(0.0, np.inf), (60.0, 3600.0)])
    >>> pages.rule[pages.add(0, now=0.0, n=3)] = 0, 0, 1
    >>> intervals.shortest(np.arange(3)), intervals.longest(np.array([2]))
    (array([ 0.,  0., 60.]), array([3600.]))
    """

    def __init__(self, pages: Pages, limits: Sequence[tuple[float, float]]) -> None:
        if len(limits) > 256:
            raise ValueError(f"rules must be 255 at most, got {len(limits) - 1}.")
        #: The shortest and the longest seconds between two crawls: first the general limits, then those of each rule.
        self.limits = tuple(limits)
        self.come = any(longest < np.inf for _, longest in limits)
        self._pages = pages
        self._shortest, self._longest = np.array(limits, np.float64).T

    def shortest(self, pages: Any) -> Any:
        """Return the shortest interval of each page, or of one page; O(n)."""
        return self._shortest[self._pages.rule[pages]]

    def longest(self, pages: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
        """Return the longest interval of each page; O(n)."""
        found: npt.NDArray[np.float64] = self._longest[self._pages.rule[pages]]
        return found
