"""Where pages belong, page by page, as numba compiles it; `Filing._put` has the same for numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawlsched.frontier import levels as scale
from crawlsched.frontier.bucket_rows import LIVING, empty_table, find
from crawlsched.frontier.ladder import LOWEST

__all__ = ["EXAMPLES", "belong", "leave"]

_STEPS, _BOTTOM, _SHARE, _BED_BITS, _LN2 = scale.STEPS, scale.BOTTOM, scale.SHARE, scale.BED_BITS, scale.LN2


def _fallen(value: float, slope: float, curve: float, limit: int, way: int, drift: float) -> int:
    """Return by how much the cutoff will have fallen, at most `way`, when a page meets it: `levels.meeting_levels`."""
    at_cutoff = 2.0 ** (limit / _STEPS)
    missing = max(at_cutoff - value, 0.0)
    closing = slope + at_cutoff * (drift * _LN2 / _STEPS)
    together = closing + math.sqrt(closing * closing + 4.0 * curve * missing)
    return int(min(2.0 * missing / together * drift, float(way - way // _SHARE))) if together > 0.0 else 0


def belong(
    value: Any,
    slope: Any,
    curve: Any,
    left: float,
    hosts: Any,
    cutoff_of_host: Any,
    cutoff: int,
    calm: int,
    falling: bool,
    coarse: int,
    drift: float,
    awake: Any,
    beds: Any,
) -> int:
    """Set which pages belong awake, and the levels of the beds of the others, in order; return how many belong awake.

    Parameters
    ----------
    value, slope, curve : ndarray, shape (n,)
        Parabolas that crawl values do not exceed for `left` seconds.
    hosts : ndarray of int32, shape (n,)
    cutoff_of_host : ndarray of int32
        What a host's own cutoff has above `LOWEST`.
    cutoff, calm, falling, coarse, drift
        As in `Standing.put`.
    awake : ndarray of bool, shape (n,)
    beds : ndarray of int32, shape (n,)
        The first are set, one for each page that does not belong awake.
    """
    n_awake = 0
    for n in range(len(value)):
        bound = value[n] + left * (slope[n] + left * curve[n])
        level = _BOTTOM
        if bound > 0.0:
            level = max(math.floor(math.log2(bound) * _STEPS) + 2, _BOTTOM)
        limit = max(cutoff, cutoff_of_host[hosts[n]] + LOWEST)
        awake[n] = level > limit
        if awake[n]:
            n_awake += 1
            continue
        rising = level < calm and not falling
        if level < calm:
            limit = calm
        # As `levels.bed_levels` does it in numpy.
        shift, aim = max(math.frexp(float((limit - level) // _SHARE))[1] - _BED_BITS, coarse), limit
        if rising and drift > 0.0:
            aim = limit - _fallen(value[n], slope[n], curve[n], limit, limit - level, drift)
        part = (aim - level) // _SHARE
        distance = part if rising else aim - level - part
        beds[n - n_awake] = min(limit, -(((distance - aim) >> shift) << shift))
    return n_awake


def leave(table: Any, place: Any, pages: Any, own: int, others: Any) -> int:
    """Count those of some pages no longer that sleep in the shared ladder; set `others` to the rest, return how many.

    Parameters
    ----------
    table : ndarray
        Of the shared ladder's beds; see `bucket_rows`.
    place : ndarray of int32
        By page, where it stands.
    pages : ndarray of int, shape (n,)
    own : int
        From here on up places are in ladders of hosts.
    others : ndarray of int, shape (n,)
    """
    n_others = 0
    for n in range(len(pages)):
        at: Any = np.int64(place[pages[n]])
        if at >= LOWEST and at <= own:
            table[find(table, at), LIVING] -= 1
        else:
            others[n_others] = pages[n]
            n_others += 1
    return n_others


_ROW, _INT = np.full(2, 0.5), np.zeros(2, np.int32)
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "belong": (_ROW, _ROW, _ROW, 0.5, _INT, _INT, 0, 0, False, 0, 0.0, np.zeros(2, bool), _INT.copy()),
    "leave": (empty_table(4), _INT, np.arange(0), 0, np.arange(0)),
}
