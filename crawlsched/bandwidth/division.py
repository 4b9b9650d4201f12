"""Division: a bandwidth divided among pages so that no crawl would be worth more elsewhere.

The best rates of a sum of concave gains, given their sum, have one slope in common, the threshold Λ; each page by
itself then wants the rate at which its own gain has that slope (the Karush-Kuhn-Tucker conditions, which Busa-Fekete et
al. write out in Appendix A). So one number is searched for.

Everything is done in blocks of pages, so that ten million of them need little more memory than their arrays.
"""

from collections.abc import Iterator
from math import fsum

import numpy as np

from crawlsched.bandwidth.allocation import Allocation
from crawlsched.bandwidth.gain import Gain
from crawlsched.bandwidth.threshold_search import bracket_threshold
from crawlsched.columns.array_types import FloatArray

__all__ = ["blocks", "divide", "total_rate"]

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
