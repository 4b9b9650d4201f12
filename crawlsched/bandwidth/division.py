"""Division: a bandwidth divided among pages so that no crawl would be worth more elsewhere.

The best rates of a sum of concave gains, given their sum, have one slope in common, the threshold Λ; each page by
itself then wants the rate at which its own gain has that slope (the Karush-Kuhn-Tucker conditions, which Busa-Fekete et
al. write out in Appendix A). So one number is searched for.

Everything is done in blocks of pages, so that ten million of them need little more memory than their arrays.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import fsum
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.bandwidth.arguments import not_negative, page_arrays
from crawlsched.bandwidth.threshold_search import bracket_threshold
from crawlsched.columns.array_types import FloatArray, IndexArray

__all__ = ["Allocation", "Gain", "SignalAllocation", "blocks", "divide", "total_rate"]


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """A division of the bandwidth among pages."""

    rates: FloatArray  # crawls per second of each page
    # The crawl value at which the bandwidth reaches a page (the Lagrange multiplier Λ); 0: all wishes are fulfilled.
    threshold: float


@dataclass(frozen=True, kw_only=True)
class SignalAllocation(Allocation):
    """A division of the bandwidth among pages whose changes are announced.

    Attributes
    ----------
    effective_elapsed : ndarray of shape (n_pages,)
        The threshold policy of each page (ι in the paper): a crawl is due as soon as its elapsed time plus β for every
        ChangeSignal reaches this, in seconds. ``inf`` where time alone never makes a crawl worth it.
    least_freshness : ndarray of shape (n_pages,)
        The same policy as a probability, exp(-α ι): a crawl is due as soon as the probability that the copy is fresh
        falls to this. It also holds where recall is 1, for which β is infinite.
    """

    effective_elapsed: FloatArray
    least_freshness: FloatArray


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


# Pages in a block: its arrays stay in the processor's cache.
_BLOCK = 1 << 14


def blocks(n_pages: int) -> Iterator[slice]:
    """Slices that together cover all pages."""
    for start in range(0, n_pages, _BLOCK):
        yield slice(start, min(start + _BLOCK, n_pages))


def divide(gain: Gain, bandwidth: float) -> Allocation:
    """Give the best division of the bandwidth among the pages."""
    if not 0.0 < bandwidth < np.inf:
        raise ValueError(f"bandwidth is {bandwidth!r}; it must be a positive, finite number of crawls per second.")
    if total_rate(gain, 0.0) <= bandwidth:
        return Allocation(rates=_wanted(gain, 0.0), threshold=0.0)
    below, above = bracket_threshold(lambda threshold: total_rate(gain, threshold), bandwidth, _start(gain, bandwidth))
    # Rates between those at the two ends of the bracket, so that they add up exactly. Only where demand is so steep
    # that no threshold meets the bandwidth does this move a rate by more than rounding.
    rates, least = _wanted(gain, below), _wanted(gain, above)
    n_pages = gain.change_rate.size
    missing = bandwidth - fsum(float(np.sum(least[pages])) for pages in blocks(n_pages))
    room = fsum(float(np.sum(rates[pages] - least[pages])) for pages in blocks(n_pages))
    share = min(max(missing / room, 0.0), 1.0) if room > 0.0 else 1.0
    for pages in blocks(n_pages):
        rates[pages] = least[pages] + share * (rates[pages] - least[pages])
    return Allocation(rates=rates, threshold=above + share * (below - above))


def total_rate(gain: Gain, threshold: float) -> float:
    """Add up the rates that the pages want at the threshold."""
    return fsum(float(np.sum(gain.of(pages).rates(threshold))) for pages in blocks(gain.change_rate.size))


def _wanted(gain: Gain, threshold: float) -> FloatArray:
    rates = np.empty(gain.change_rate.size)
    for pages in blocks(rates.size):
        rates[pages] = gain.of(pages).rates(threshold)
    return rates


def _start(gain: Gain, bandwidth: float) -> float:
    """Guess the threshold: rates are close to sqrt(importance * change_rate / threshold) in all gains, to a factor."""
    parts = (gain.of(pages) for pages in blocks(gain.change_rate.size))
    roots = fsum(float(np.sum(np.sqrt(part.importance * part.change_rate))) for part in parts)
    guess = (roots / bandwidth) ** 2
    return guess if 0.0 < guess < np.inf else 1.0
