"""Gain: what a page gives in return for the rate at which it is crawled."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Self

from numpy.typing import ArrayLike

from crawlsched.bandwidth.arguments import not_negative, page_arrays
from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["Gain"]


@dataclass(frozen=True)
class Gain(ABC):
    """A concave, increasing function of the rate, one for every page.

    All ways to divide a bandwidth maximise the sum of such functions; they differ in nothing else. The threshold is the
    slope of the function, in importance times seconds, so that pages are compared in the units of crawl values.
    """

    change_rate: FloatArray  # changes per second; shape (n,)
    importance: FloatArray  # weight of a fresh copy; shape (n,)

    @classmethod
    def checked(cls, change_rate: ArrayLike, importance: ArrayLike) -> Self:
        """Make the gain from a caller's arguments, or say which of them is wrong."""
        change, weight = page_arrays(change_rate=change_rate, importance=importance)
        return cls(not_negative("change_rate", change), not_negative("importance", weight))

    def of(self, pages: slice | IndexArray) -> Self:
        """Give the gain of some of the pages; no copy if they are a slice."""
        return type(self)(*(getattr(self, field.name)[pages] for field in fields(self)))

    @abstractmethod
    def rates(self, threshold: FloatArray | float) -> FloatArray:
        """Give rates at which the slope is the threshold: 0 above the steepest slope, all that is useful at 0."""
