"""Crawl intervals: the shortest and longest time between crawls of a page, by the number of its rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.growing import grown

__all__ = ["Intervals", "Limits"]


class Limits(NamedTuple):
    """The shortest and the longest time between two crawls, seconds."""

    shortest: float = 0.0
    longest: float = np.inf


class Intervals:
    """The limits of each page: those of all pages, or those of the rule that was made for it.

    Notes
    -----
    A byte a page, and none where there are no rules.

    Examples
    --------
    >>> intervals = Intervals(Limits(0.0, np.inf), [Limits(60.0, 3600.0)])
    >>> intervals.put(np.array([2]), np.array([1], np.uint8))
    >>> intervals.shortest(np.arange(3)), intervals.longest(np.array([2]))
    (array([ 0.,  0., 60.]), array([3600.]))
    """

    def __init__(self, general: Limits = Limits(), rules: Sequence[Limits] = ()) -> None:  # noqa: B008
        if len(rules) > 255:
            raise ValueError(f"rules must be 255 at most, got {len(rules)}.")
        self.general = general
        self.rules = tuple(rules)
        self.come = any(limits.longest < np.inf for limits in (general, *rules))
        self._shortest, self._longest = np.array([general, *rules]).T
        self._rule: npt.NDArray[np.uint8] | None = np.zeros(0, np.uint8) if rules else None

    def put(self, pages: npt.NDArray[np.integer], rules: npt.NDArray[np.uint8]) -> None:
        """Set the rules of distinct pages (0: none); O(n)."""
        if self._rule is not None and pages.size:
            if (most := int(pages.max()) + 1) > self._rule.size:
                self._rule = grown(self._rule, most + most // 8)
            self._rule[pages] = rules

    def rule_of(self, page: int) -> int:
        """Return the number of a page's rule; 0: there is none. O(1)."""
        return self._rule.item(page) if self._rule is not None and page < self._rule.size else 0

    def shortest(self, pages: npt.NDArray[np.integer]) -> float | npt.NDArray[np.float64]:
        """Return the shortest interval of each page, or one for all; O(n)."""
        return self.general.shortest if self._rule is None else self._shortest[self.rules_of(pages)]

    def longest(self, pages: npt.NDArray[np.integer]) -> float | npt.NDArray[np.float64]:
        """Return the longest interval of each page, or one for all; O(n)."""
        return self.general.longest if self._rule is None else self._longest[self.rules_of(pages)]

    def shortest_one(self, page: int) -> float:
        """Return the shortest interval of one page; O(1)."""
        return self.general.shortest if self._rule is None else float(self._shortest[self.rule_of(page)])

    def rules_of(self, pages: npt.NDArray[np.integer]) -> npt.NDArray[np.uint8]:
        """Return the number of each page's rule; 0: there is none. O(n)."""
        if self._rule is None:
            return np.zeros(pages.size, np.uint8)
        if not pages.size or int(pages.max()) < self._rule.size:
            found: npt.NDArray[np.uint8] = self._rule[pages]
            return found
        # Pages without a rule.
        found = np.zeros(len(pages), np.uint8)
        known = np.asarray(pages) < self._rule.size
        found[known] = self._rule[pages[known]]
        return found
