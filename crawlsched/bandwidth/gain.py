"""Gain: what a page gives in return for the rate at which it is crawled."""

from typing import Protocol, Self, TypeAlias

from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["Gain", "Pages"]

Pages: TypeAlias = slice | IndexArray


class Gain(Protocol):
    """A concave, increasing function of the rate, one for every page.

    All five ways to divide a bandwidth maximise the sum of such functions; they differ in nothing else. The threshold
    is the slope of the function, in importance times seconds, so that pages are compared in the units of crawl values.
    """

    @property
    def change_rate(self) -> FloatArray:
        """Changes per second of each page."""

    @property
    def importance(self) -> FloatArray:
        """Weight of a fresh copy of each page."""

    def of(self, pages: Pages) -> Self:
        """Give the gain of some of the pages; no copy if they are a slice."""

    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Give rates at which the slope is the threshold: 0 above the steepest slope, all that is useful at 0."""

    def total(self, rates: FloatArray) -> FloatArray:
        """Give the gain at these rates."""

    def surplus(self, threshold: FloatArray | float) -> FloatArray:
        """Give the largest value of gain - threshold * rate, which is its value at ``rates(threshold)``."""

    def slope(self, rates: FloatArray) -> FloatArray:
        """Give the slope at these rates, or any upper bound of it."""
