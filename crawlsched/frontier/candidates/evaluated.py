"""What a look at pages has found, until they are where they belong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray, LevelArray
from crawlsched.frontier.sleeping.levels import levels_above
from crawlsched.frontier.values import PageValues

__all__ = ["Found", "Sleepers", "highest_within"]


def highest_within(parabolas: FloatArray, left: float) -> FloatArray:
    """Return what values do not exceed for so many seconds from where their parabolas, shape (3, n), begin."""
    value, slope, curve = parabolas
    highest: FloatArray = value + left * (slope + left * curve)
    return highest


class Found(NamedTuple):
    """What a look at pages has found.

    Attributes
    ----------
    pages : ndarray of int, shape (n,)
    values : PageValues
    parabolas : ndarray, shape (3, n)
        Theirs from `after` until the time `lasts`.
    levels : ndarray of int32, shape (n,)
        Below which the values stay until the time `until`.
    after, until, lasts : float
        POSIX seconds.
    """

    pages: IndexArray
    values: PageValues
    parabolas: FloatArray
    levels: LevelArray
    after: float
    until: float
    lasts: float

    @classmethod
    def of(
        cls,
        pages: IndexArray,
        values: PageValues,
        parabolas: FloatArray,
        times: tuple[float, float, float],
    ) -> Found:
        """Return all of it; `times` are `after`, `until` and `lasts`. O(n)."""
        after, until, _ = times
        return cls(pages, values, parabolas, levels_above(highest_within(parabolas, until - after)), *times)


class Sleepers(NamedTuple):
    """Pages that have gone to bed without alarms: their levels, values, which of those are theirs, and until when safe.

    Attributes
    ----------
    pages : ndarray of int, shape (n,)
    levels : ndarray of int, shape (n,)
        Below which their values stay until their alarms ring.
    values : PageValues
    where : ndarray of bool, shape (m,)
        Which of the values are theirs.
    until : float
        POSIX seconds. They are below their levels until then.
    """

    pages: IndexArray
    levels: npt.NDArray[np.integer]
    values: PageValues
    where: BoolArray
    until: float
