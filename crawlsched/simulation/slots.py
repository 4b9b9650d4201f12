"""The simulated clock: the times of the slots, exact however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import floor

import numpy as np

from crawlsched.simulation.history import Window

__all__ = ["slot_times"]

_BLOCK = 1 << 16


def slot_times(window: Window, bandwidth: float) -> Iterator[float]:
    """Give start + j/R for j = 1, 2, ... up to and including the end.

    Notes
    -----
    300 crawls an hour are 1/12 a second, which no float is. The simple fraction that rounds to `bandwidth` is meant,
    and with it j/R is rounded once: slot 300 is an hour after the start, and not some 10^-13 s later or earlier.

    Examples
    --------
    >>> list(slot_times(Window(0.0, 3600.0, 0.0), 3 / 3600))
    [1200.0, 2400.0, 3600.0]
    """
    simple = Fraction(bandwidth).limit_denominator(10**7)
    exact = simple if float(simple) == bandwidth else Fraction(bandwidth)
    slots, seconds = (exact.numerator, exact.denominator) if exact == simple else (bandwidth, 1)
    last = floor(Fraction(window.end - window.start) * exact)
    # The end less the start is itself rounded: one more is looked at.
    for first in range(1, last + 2, _BLOCK):
        numbers = np.arange(first, min(first + _BLOCK, last + 2), dtype=np.float64)
        times = window.start + numbers * seconds / slots
        yield from times[times <= window.end].tolist()
