"""Levels of crawl value: a fixed logarithmic scale, and how high a sleeping page may rise before it is looked at."""

from __future__ import annotations

from math import exp2, log2

import numpy as np
import numpy.typing as npt

__all__ = ["BOTTOM", "bed_level", "bed_levels", "level_above", "levels_above", "value_at", "values_at"]

FloatArray = npt.NDArray[np.float64]
LevelArray = npt.NDArray[np.int32]

# Steps per factor of two: neighbouring levels differ by 0.017 %, so that even among ten million pages only some
# thousand have their values between two of them.
_STEPS = 4096.0
#: The level of a crawl value of 0; its crawl value is 0 to rounding, and no positive value is below it.
BOTTOM = -1100 * 4096
# A sleeping page rings when it has made 7/8 of the way (in levels) up to where it would be awake: a page that begins
# twelve factors of two below is looked at six times on its way up.
_WAY_LEFT = 8


def level_above(value: float) -> int:
    """Return a level whose value is certainly above the given one; O(1)."""
    return int(log2(value) * _STEPS // 1) + 2 if value > 0 else BOTTOM


def levels_above(values: FloatArray) -> LevelArray:
    """Return what `level_above` returns, for many values."""
    with np.errstate(divide="ignore"):
        steps = np.floor(np.log2(values) * _STEPS) + 2
    levels: LevelArray = np.maximum(steps, BOTTOM).astype(np.int32)
    return levels


def value_at(level: int) -> float:
    """Return the crawl value of a level."""
    return exp2(level / _STEPS)


def values_at(levels: npt.NDArray[np.integer]) -> FloatArray:
    """Return the crawl values of many levels."""
    values: FloatArray = np.exp2(levels / _STEPS)
    return values


def bed_level(level: int, cutoff: int) -> int:
    """Return the level under which a page at `level` goes to sleep: at least `level`, at most `cutoff`.

    Parameters
    ----------
    level : int
        Above the page's value; at most `cutoff`.
    cutoff : int
        Pages above it are awake.

    Notes
    -----
    Beds far below the cutoff are rounded up to multiples of a power of two, 1/16 of the way or less, so that there are
    few of them.
    """
    way = (cutoff - level) // _WAY_LEFT
    shift = way.bit_length() - 4
    if shift <= 0:
        return cutoff - way
    return min(cutoff, -((way - cutoff) >> shift << shift))


def bed_levels(levels: LevelArray, cutoffs: npt.NDArray[np.int32] | int) -> LevelArray:
    """Return what `bed_level` returns, for many pages."""
    way = (cutoffs - levels) // _WAY_LEFT
    shift = np.maximum(np.frexp(way)[1] - 4, 0)
    beds: LevelArray = np.minimum(cutoffs, -(((way - cutoffs) >> shift) << shift)).astype(np.int32)
    return beds
