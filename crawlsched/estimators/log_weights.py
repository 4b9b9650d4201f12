"""How a posterior's rows of log-likelihoods are kept: as float64, or as 16-bit fixed point with unbiased rounding."""

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LIKELIHOOD", "STEPS_PER_NAT", "decoded", "dither", "dither_one", "encoded", "relative_likelihoods"]

FloatArray = npt.NDArray[np.float64]

#: A stored step is 1/2048 nat (a factor of 1.0005); 65535 of them reach down to e^-32.
STEPS_PER_NAT = 2048.0
_NATS_PER_STEP = -1.0 / STEPS_PER_NAT
_LAST = 65535.0

#: exp(-x/2048) for each of the 65536 values: a look-up is several times faster than an exponential.
LIKELIHOOD: FloatArray = np.exp(np.arange(65536) * _NATS_PER_STEP)

# Weyl sequence modulo 2^32 with the golden ratio: the most evenly spread of all, so that the rounding errors of equal
# steps cancel to within a few steps for ever; pages start at different points of it.
_COUNT_STEP = 0x9E3779B9
_PAGE_STEP = 0x85EBCA6B
_MASK = 0xFFFFFFFF
_UNIT = 2.0**-32


def dither(pages: npt.NDArray[np.intp], updates: npt.NDArray[np.uint16]) -> FloatArray:
    """Return one number in [0, 1) per page, spread evenly over the updates of each page.

    Parameters
    ----------
    pages : ndarray of int, shape (n,)
        Row numbers.
    updates : ndarray of uint16, shape (n,)
        How many updates each row has had (modulo 65536).

    Notes
    -----
    Adding this before rounding down makes the rounding right on average. Rounding to nearest would lose every update
    smaller than half a step, however many of them came: a page seen unchanged each minute for a year would have taught
    nothing. A function of (page, count) instead of a random generator keeps a run reproducible whatever the order of
    pages.
    """
    mixed = pages.astype(np.uint64) * np.uint64(_PAGE_STEP) + updates.astype(np.uint64) * np.uint64(_COUNT_STEP)
    spread: FloatArray = (mixed & np.uint64(_MASK)).astype(np.float64) * _UNIT
    return spread


def dither_one(page: int, updates: int) -> float:
    """Return what `dither` gives for one page, without arrays."""
    return ((page * _PAGE_STEP + updates * _COUNT_STEP) & _MASK) * _UNIT


def encoded(relative: FloatArray, offset: Any) -> npt.NDArray[np.uint16]:
    """Return log-likelihoods relative to their row's maximum as steps below it.

    Parameters
    ----------
    relative : ndarray
        Nats, at most 0, and 0 somewhere in each row.
    offset : float or ndarray that broadcasts
        What `dither` gave.

    Returns
    -------
    ndarray of uint16
        Steps of 1/2048 nat; whatever lies more than 32 nats below the maximum stays at 65535, which is also why no rate
        is ever excluded for good.
    """
    steps = relative * -STEPS_PER_NAT
    steps += offset
    # Conversion cuts off the fraction, which rounds down since nothing is negative.
    stored: npt.NDArray[np.uint16] = np.minimum(steps, _LAST).astype(np.uint16)
    return stored


def decoded(stored: npt.NDArray[Any]) -> FloatArray:
    """Return log-likelihoods in nats from stored rows of either kind (a copy)."""
    if stored.dtype == np.uint16:
        nats: FloatArray = stored * _NATS_PER_STEP
        return nats
    return np.array(stored, dtype=np.float64)


def relative_likelihoods(stored: npt.NDArray[Any]) -> FloatArray:
    """Return exp(log-likelihood) relative to each row's maximum, from stored rows of either kind."""
    if stored.dtype == np.uint16:
        likelihoods: FloatArray = LIKELIHOOD.take(stored)
        return likelihoods
    exponentials: FloatArray = np.exp(stored)
    return exponentials
