"""Levels of crawl value: a fixed logarithmic scale, and how high a sleeping page may rise before it is looked at."""

from __future__ import annotations

from math import exp2, log, log2

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, LevelArray

__all__ = [
    "BED_BITS",
    "BOTTOM",
    "FALLING_SHARE",
    "LN2",
    "SHARE",
    "STEPS",
    "bed_level",
    "bed_levels",
    "coarseness",
    "level_above",
    "levels_above",
    "meeting_levels",
    "value_at",
    "values_at",
]


#: Steps per factor of two: neighbouring levels differ by 5e-6, so that even among ten million pages only some hundred
# have their values within the eight steps in which all sleep under one level. More would not fit beside each other in
# a 4-byte number (see `places`): values reach from 2**-1000 to 2**1000.
STEPS = 2.0**17
LN2 = log(2.0)
#: The level of all values from 0 up to 2**-1000, which is its own value.
BOTTOM = -1000 * 2**17
#: A page on its way up sleeps until it has made 7/8 of the way (in levels) to where it would be awake: beginning twelve
#: factors of two below it is looked at six times.
SHARE = 8
#: A page that the cutoff is coming down to has its bed 1/64 of the way up, so that it is not looked at before the
#: cutoff has made nearly all of the way to it. One that rises there by itself meanwhile is looked at once more.
FALLING_SHARE = 64
#: Beds are rounded to 1/128 of their distance from the cutoff or less.
BED_BITS = 8
# Up to 2**16 pages beds are 2**5 levels or more apart (0.017 % of the value), and with each doubling half of that.
_COARSE_BITS, _FEW_PAGES_BITS = 7, 16


def level_above(value: float) -> int:
    """Return a level whose value is certainly above the given one; O(1)."""
    return max(int(log2(value) * STEPS // 1) + 2, BOTTOM) if value > 0 else BOTTOM


def levels_above(values: FloatArray) -> LevelArray:
    """Return what `level_above` returns, for many values."""
    with np.errstate(divide="ignore"):
        steps = np.floor(np.log2(values) * STEPS) + 2
    levels: LevelArray = np.maximum(steps, BOTTOM).astype(np.int32)
    return levels


def value_at(level: int) -> float:
    """Return the crawl value of a level."""
    return exp2(level / STEPS)


def values_at(levels: npt.NDArray[np.integer]) -> FloatArray:
    """Return the crawl values of many levels."""
    values: FloatArray = np.exp2(levels / STEPS)
    return values


def coarseness(n_pages: int) -> int:
    """Return to multiples of which power of two beds are rounded at least: among few pages, most would be alone."""
    return max(0, _COARSE_BITS - (n_pages >> _FEW_PAGES_BITS).bit_length())


def bed_level(level: int, cutoff: int, coarse: int = 0) -> int:
    """Return the level under which a page on its way up goes to sleep: at least `level`, at most `cutoff`.

    Parameters
    ----------
    level : int
        Above the page's value; at most `cutoff`.
    cutoff : int
        Pages above it are awake.
    coarse : int
        See `coarseness`.

    Notes
    -----
    Beds are rounded up to multiples of a power of two, 1/128 of their distance from the cutoff or less: there are some
    thousands of them.
    """
    left = (cutoff - level) // SHARE
    shift = max(left.bit_length() - BED_BITS, coarse)
    if shift <= 0:
        return cutoff - left
    return min(cutoff, -((left - cutoff) >> shift << shift))


def meeting_levels(
    levels: LevelArray,
    cutoffs: npt.NDArray[np.int32],
    parabolas: tuple[FloatArray, FloatArray, FloatArray],
    drift: FloatArray | float,
) -> LevelArray:
    """Return about where pages meet a cutoff that comes down to them: at least `levels`, at most `cutoffs`; O(n).

    Parameters
    ----------
    levels, cutoffs : ndarray of int32, shape (n,)
        As for `bed_levels`.
    parabolas : tuple of three ndarrays, shape (n,)
        Value v, slope s and half curvature c: in t seconds a page is worth about v + s t + c t².
    drift : float or ndarray of float
        Levels a second by which the cutoff falls; 0 or more.
    """
    value, slope, curve = parabolas
    # Where v + s t + c t² = C - f t, the cutoff's value C falling by f a second.
    at_cutoff = values_at(cutoffs)
    missing = np.maximum(at_cutoff - value, 0.0)
    closing = slope + at_cutoff * (drift * LN2 / STEPS)
    with np.errstate(divide="ignore", invalid="ignore"):
        wait = 2.0 * missing / (closing + np.sqrt(closing * closing + 4.0 * curve * missing))
        # Not a number where nothing moves.
        fallen = np.minimum(wait * drift, cutoffs - levels - (cutoffs - levels) // SHARE)
    met: LevelArray = (cutoffs - np.where(fallen > 0.0, fallen, 0.0).astype(np.int32)).astype(np.int32)
    return met


def bed_levels(
    levels: LevelArray,
    cutoffs: npt.NDArray[np.int32] | int,
    falling: npt.NDArray[np.bool_] | bool,
    coarse: int = 0,
    aims: LevelArray | None = None,
) -> LevelArray:
    """Return the levels under which pages go to sleep.

    Parameters
    ----------
    levels : ndarray of int32
        Above the pages' values; at most `cutoffs`.
    cutoffs : int or ndarray of int32
        Pages above it are awake.
    falling : bool or ndarray of bool
        Whether the cutoff is coming down to the pages, or the pages are on their way up as for `bed_level`.
    coarse : int
        See `coarseness`.
    aims : ndarray of int32, optional
        From `levels` to `cutoffs`, where pages are likely to meet the cutoff, which itself by default.
    """
    goals = cutoffs if aims is None else aims
    way = goals - levels
    left = np.where(falling, way - way // FALLING_SHARE, way // SHARE)
    shift = np.maximum(np.frexp((cutoffs - levels) // SHARE)[1] - BED_BITS, coarse)
    beds: LevelArray = np.minimum(cutoffs, -(((left - goals) >> shift) << shift)).astype(np.int32)
    return beds
