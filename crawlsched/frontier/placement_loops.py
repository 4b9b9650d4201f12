"""Where pages belong, page by page, as numba compiles it; `Standing.settle` has the same for numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crawlsched.frontier.buckets.bucket_loops import LIVING, empty_table, find
from crawlsched.frontier.places import LOWEST
from crawlsched.frontier.sleeping import levels as scale

__all__ = ["EXAMPLES", "belong", "leave"]

_STEPS, _BOTTOM, _BED_BITS, _LN2 = scale.STEPS, scale.BOTTOM, scale.BED_BITS, scale.LN2
_SHARE, _FALLING_SHARE = scale.SHARE, scale.FALLING_SHARE


def _fallen(value: float, slope: float, curve: float, limit: int, way: int, drift: float) -> int:
    """Return by how much the cutoff will have fallen, at most `way`, when a page meets it: `levels.meeting_levels`."""
    at_cutoff = 2.0 ** (limit / _STEPS)
    missing = max(at_cutoff - value, 0.0)
    closing = slope + at_cutoff * (drift * _LN2 / _STEPS)
    together = closing + math.sqrt(closing * closing + 4.0 * curve * missing)
    return int(min(2.0 * missing / together * drift, float(way - way // _SHARE))) if together > 0.0 else 0


def belong(
    parabolas: Any,
    left: float,
    pages: Any,
    hosts_low: Any,
    hosts_high: Any,
    cutoff_of_host: Any,
    stays: Any,
    cutoff: int,
    calm: int,
    falling: bool,
    coarse: int,
    drift: float,
    back: float,
    asleep: Any,
    rows: Any,
    beds: Any,
) -> int:
    """Set which pages belong to bed, and under which levels; return how many do.

    Parameters
    ----------
    parabolas : ndarray, shape (3, n)
        That crawl values do not exceed for `left` seconds.
    pages : ndarray of int, shape (n,)
    hosts_low, hosts_high : ndarray of uint16
        The hosts of all pages; see `NumberColumn`.
    cutoff_of_host : ndarray of int32
        What a host's own cutoff has above `LOWEST`; of no host where none has one.
    stays : ndarray of bool
        By host, whether its own cutoff does not come back.
    cutoff, calm, falling, coarse, drift
        As in `Standing.put`.
    back : float
        Which part of what it has above the level of the calm the cutoff falls by in a second.
    asleep : ndarray of bool, shape (n,)
    rows : ndarray of int, shape (n,)
        First those of the pages that belong to bed, in order, and then of those that belong awake, in reverse order.
    beds : ndarray of int, shape (n,)
        The first are set, one for each page that belongs to bed.
    """
    n_asleep = 0
    for n in range(len(pages)):
        value, slope, curve = parabolas[0, n], parabolas[1, n], parabolas[2, n]
        bound = value + left * (slope + left * curve)
        level = _BOTTOM
        if bound > 0.0:
            level = max(math.floor(math.log2(bound) * _STEPS) + 2, _BOTTOM)
        limit, returns = cutoff, back
        if len(cutoff_of_host) > 0:
            host = np.int64(hosts_low[pages[n]])
            if len(hosts_high) > 0:
                host += np.int64(hosts_high[pages[n]]) << 16
            if cutoff_of_host[host] + LOWEST > cutoff:
                limit = cutoff_of_host[host] + LOWEST
                if stays[host]:
                    returns = 0.0
        asleep[n] = level <= limit
        if level > limit:
            rows[len(pages) - 1 - (n - n_asleep)] = n
            continue
        rising, falls_by = not falling and (level < calm or calm > LOWEST), drift
        if level < calm:
            limit = calm
        else:
            falls_by = (limit - calm) * returns
        # As `levels.bed_levels` does it in numpy.
        shift, aim = max(math.frexp(float((limit - level) // _SHARE))[1] - _BED_BITS, coarse), limit
        if rising and falls_by > 0.0:
            aim = limit - _fallen(value, slope, curve, limit, limit - level, falls_by)
        way = aim - level
        distance = way // _SHARE if rising else way - way // _FALLING_SHARE
        beds[n_asleep], rows[n_asleep] = min(limit, -(((distance - aim) >> shift) << shift)), n
        n_asleep += 1
    return n_asleep


def leave(table: Any, place: Any, pages: Any, own: int, others: Any) -> int:
    """Count those of some pages no longer that sleep in the shared ladder; set `others` to the rest, return how many.

    Parameters
    ----------
    table : ndarray
        Of the shared ladder's beds; see `bucket_loops`.
    place : ndarray of int32
        By page, where it stands.
    pages : ndarray of int, shape (n,)
    own : int
        From here on up places are in ladders of hosts.
    others : ndarray of int, shape (n,)
    """
    # The places alone first: without branches that wait for them the machine reads several at once.
    for n in range(len(pages)):
        others[n] = place[pages[n]]
    n_others = 0
    for n in range(len(pages)):
        at = others[n]
        if at >= LOWEST and at <= own:
            table[find(table, at), LIVING] -= 1
        else:
            others[n_others] = pages[n]
            n_others += 1
    return n_others


_INT, _PAGES, _HALF = np.zeros(2, np.int32), np.arange(2), np.zeros(2, np.uint16)
_LIMITS = _INT[:0], np.zeros(2, bool), 0, 0, False, 0, 0.0, 0.0
#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {
    "belong": (np.ones((3, 2)), 0.5, _PAGES, _HALF, _HALF, *_LIMITS, np.zeros(2, bool), _PAGES.copy(), _PAGES.copy()),
    "leave": (empty_table(4), _INT, np.arange(0), 0, np.arange(0)),
}
