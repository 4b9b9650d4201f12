"""Storage of a posterior's rows of log-likelihoods: float64, or 8 bits with unbiased rounding."""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.columns.numerics import GOLDEN

__all__ = ["decoded", "dither", "dither_one", "encoded", "from_steps", "relative_likelihoods", "to_steps"]


# A store has log-likelihoods in steps of 1/2048 nat (a factor of 1.0005), in 16 bits. The last step means e^-32.
_STEPS_PER_NAT = 2048.0
_LAST_STEP = float(np.iinfo(np.uint16).max)

# In 8 bits, steps grow with the distance from the likeliest rate. A code k means the 16-bit step with the number
# 257 k² / 255, so that code 255 means the last 16-bit step. Near the likeliest rate, where weights are large, steps are
# as fine as in 16 bits. One nat below it, a step is 0.05 nat.
_LAST_CODE = float(np.iinfo(np.uint8).max)
_STEPS_PER_SQUARE = _LAST_STEP / _LAST_CODE**2
_SQUARES_PER_NAT = _STEPS_PER_NAT / _STEPS_PER_SQUARE
_STEPS = (np.arange(256) ** 2 * 257 // 255).astype(np.uint16)
_NEAREST_CODE = np.rint(np.sqrt(np.arange(65536) / _STEPS_PER_SQUARE)).astype(np.uint8)

# The log-likelihood of each code, in nats.
_NATS: FloatArray = np.arange(256.0) ** 2 * (_STEPS_PER_SQUARE * (-1.0 / _STEPS_PER_NAT))
# Types are compared by this character, since numpy takes a microsecond to build a type's name.
_CODE = np.dtype(np.uint8).char

# Rounding uses a Weyl sequence modulo 2^32 with the golden section. No sequence is more evenly spread, so the rounding
# errors of equal updates cancel to within a few steps, for any number of updates. Pages start at different points of
# the sequence.
_MASK = int(np.iinfo(np.uint32).max)
_UNIT = 1.0 / (_MASK + 1)
_COUNT_STEP = int(GOLDEN / _UNIT)
_PAGE_STEP = 0x85EBCA6B


def dither(pages: npt.NDArray[np.intp], n_updates: npt.ArrayLike) -> FloatArray:
    """Return a number in [0, 1) for each page after `n_updates` updates; a page's numbers are spread evenly.

    Notes
    -----
    Adding this number before rounding down makes the rounding right on average. Rounding to the nearest step would lose
    every update smaller than half a step. A page that is found unchanged each minute for a year would then teach
    nothing. The number depends only on page and count, so a run is reproducible for any order of pages.
    """
    counted = np.asarray(n_updates, np.uint64) * np.uint64(_COUNT_STEP)
    mixed = pages.astype(np.uint64) * np.uint64(_PAGE_STEP) + (counted & np.uint64(_MASK))
    spread: FloatArray = (mixed & np.uint64(_MASK)).astype(np.float64) * _UNIT
    return spread


def dither_one(page: int, n_updates: int) -> float:
    """Return what `dither` gives for one page, without arrays."""
    return ((page * _PAGE_STEP + n_updates * _COUNT_STEP) & _MASK) * _UNIT


def encoded(relative: FloatArray, offset: Any) -> npt.NDArray[np.uint8]:
    """Return compact rows of log-likelihoods relative to their row's maximum, rounded with the offset from `dither`.

    Rates more than 32 nats below the maximum get the last code, so no rate is ever excluded for good.
    """
    # Rounding has to be right on average in nats. With an offset o, a value s (in squares) gets a code of at least k
    # where s - o (1 - o) >= (k - o)². This holds if s >= (k - 1)² + (1 - o) (k² - (k - 1)²).
    # Conversion to an integer cuts off the fraction.
    squares = relative * -_SQUARES_PER_NAT
    squares -= offset * (1.0 - offset)
    codes = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)
    codes += offset
    return np.minimum(codes, _LAST_CODE, out=codes).astype(np.uint8)


def to_steps(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    """Return compact rows as steps of 1/2048 nat, the form in a store."""
    steps: npt.NDArray[np.uint16] = _STEPS.take(codes)
    return steps


def from_steps(steps: npt.NDArray[np.uint16]) -> npt.NDArray[np.uint8]:
    """Return the compact rows nearest to steps of 1/2048 nat. This undoes `to_steps` exactly."""
    codes: npt.NDArray[np.uint8] = _NEAREST_CODE.take(steps)
    return codes


def decoded(stored: npt.NDArray[Any]) -> FloatArray:
    """Return a copy of stored rows, compact or exact, as log-likelihoods in nats."""
    return _NATS.take(stored) if stored.dtype.char == _CODE else np.array(stored, dtype=np.float64)


@lru_cache(maxsize=64)
def _likelihoods(learning_rate: float) -> FloatArray:
    """Return the likelihood of each code to the power `learning_rate`; a look-up is much faster than an exponential."""
    return np.exp(_NATS * learning_rate)


def relative_likelihoods(stored: npt.NDArray[Any], learning_rate: float = 1.0) -> FloatArray:
    """Return likelihoods relative to each row's maximum, to the power `learning_rate`, from compact or exact rows."""
    if stored.dtype.char == _CODE:
        return _likelihoods(learning_rate).take(stored)
    exponentials: FloatArray = np.exp(stored * learning_rate)
    return exponentials
