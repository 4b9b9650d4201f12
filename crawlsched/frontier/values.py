"""What the frontier asks of a crawl value, whatever its formula."""

from __future__ import annotations

from typing import Protocol

from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["CrawlValues"]


class CrawlValues(Protocol):
    """What pages are worth now, and when they will reach a level.

    Values are finite, not negative, and do not fall with time until something happens to the page.
    """

    def value_at(self, pages: IndexArray, now: float | FloatArray) -> FloatArray:
        """Return the crawl values of pages at a time, or each at its own; shape (n,). O(n K), K rates."""

    def reaches(self, pages: IndexArray, level: float | FloatArray, now: float) -> FloatArray:
        """Return about when crawl values reach a level, POSIX seconds; `now` at least, inf: never; O(n K).

        An early time costs another look at the page, a late one leaves the page behind: so guesses are early.
        """
