"""Private checks of the arguments of crawl values.

A plain float is checked without numpy, because the crawling thread calls these functions for one page at a time.
"""

import math
from sys import float_info
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crawlsched.columns.array_types import FloatArray


def elapsed_seconds(value: ArrayLike) -> Any:
    """Check seconds since the last crawl: zero or more, infinity allowed."""
    return _checked("elapsed", value, 0.0, math.inf, "0 or more seconds")


def rate(name: str, value: ArrayLike) -> Any:
    """Check a rate per second: zero or more and finite."""
    return _checked(name, value, 0.0, _LARGEST, "0 or more per second, and finite")


def probability(name: str, value: ArrayLike) -> Any:
    """Check a probability."""
    return _checked(name, value, 0.0, 1.0, "from 0 to 1")


def weight(name: str, value: ArrayLike) -> Any:
    """Check an importance or another factor: zero or more and finite."""
    return _checked(name, value, 0.0, _LARGEST, "0 or more, and finite")


def value(name: str, value: ArrayLike) -> Any:
    """Check a crawl value: zero or more, infinity allowed."""
    return _checked(name, value, 0.0, math.inf, "0 or more, in importance times seconds")


def nats(name: str, value: ArrayLike) -> Any:
    """Check evidence in nats: zero or more, infinity allowed."""
    return _checked(name, value, 0.0, math.inf, "0 or more nats (infinity for a certain change)")


def count(name: str, value: ArrayLike) -> Any:
    """Check a number of announcements: zero or more and finite."""
    return _checked(name, value, 0.0, _LARGEST, "0 or more, and finite")


def positive(name: str, value: ArrayLike) -> Any:
    """Check a number above zero and finite."""
    return _checked(name, value, _SMALLEST, _LARGEST, "above 0, and finite")


def number_of_terms(max_terms: int | None) -> float:
    """Return the j of G-NCIS-APPROX-j as a float; infinity if all terms are summed."""
    if max_terms is None:
        return math.inf
    if isinstance(max_terms, bool) or not isinstance(max_terms, int | np.integer) or max_terms < 1:
        raise ValueError(f"max_terms must be a whole number from 1, or None for all, but {max_terms!r} was given.")
    return float(max_terms)


_SMALLEST = math.ulp(0.0)
_LARGEST = float_info.max


def _checked(name: str, value: ArrayLike, low: float, high: float, allowed: str) -> Any:
    if type(value) is float or type(value) is int:
        if low <= value <= high:
            return float(value)
        raise ValueError(f"{name} must be {allowed}, but {value!r} was given.")
    try:
        array: FloatArray = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be {allowed}, but {value!r} was given.") from None
    # NaN fails this test, since every comparison with NaN is false.
    if array.size == 0 or (array.min() >= low and array.max() <= high):
        return array
    within = (array >= low) & (array <= high)
    if array.ndim == 0:
        raise ValueError(f"{name} must be {allowed}, but {array[()]!s} was given.")
    place = np.unravel_index(int(np.argmin(within)), array.shape)
    where = ", ".join(str(int(index)) for index in place)
    raise ValueError(f"{name} must be {allowed}, but {array[place]!s} was given at index [{where}].")
