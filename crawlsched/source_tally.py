"""Tallies: what a source has stated so far, without looking at any page: how late, how alike, how often backwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlsched.source_reading import SourceRead

__all__ = ["median_delay", "tallied"]

# Delays are counted in cells of twice the length, and only about so many of them are remembered.
_REMEMBERED = 1000
# The share of equal dates is a running mean over about so many readings.
_READINGS = 5.0
_DAY = 86_400.0


def tallied(quality: dict[str, Any], read: SourceRead, now: float) -> dict[str, Any]:
    """Return a source's tallies with one more reading.

    Parameters
    ----------
    quality : dict
        `Source.quality` so far.
    read : SourceRead
    now : float
        When it was read, POSIX seconds.

    Returns
    -------
    dict
        With ``readings``, ``announced`` and ``backwards`` (counts), ``alike`` (share of dated pages with the most
        frequent date) and ``delays``: how many announcements were read 1, 2, 4, ... seconds after the date they state.
    """
    readings = quality.get("readings", 0)
    share = 1.0 / min(readings + 1, _READINGS)
    alike = quality.get("alike", 0.0)
    return {
        **quality,
        "readings": readings + 1,
        "announced": quality.get("announced", 0) + int(read.announced.sum()),
        "backwards": quality.get("backwards", 0) + int(read.backwards.sum()),
        "alike": alike + share * (read.alike - alike),
        "delays": _delays(quality.get("delays", {}), read, now),
    }


def _delays(before: dict[str, int], read: SourceRead, now: float) -> dict[str, int]:
    stated = np.array([np.nan if date is None else date for date in read.lastmod])
    if not stated.size:
        return before
    # Of a date without a time of day it is not known when in that day the page changed.
    told = read.announced & ~read.backwards & (stated % _DAY != 0) & (stated <= now)
    cells = np.floor(np.log2(np.maximum(now - stated[told], 1.0))).astype(int)
    delays = dict(before)
    for cell, n in zip(*np.unique(cells, return_counts=True), strict=True):
        delays[str(cell)] = delays.get(str(cell), 0) + int(n)
    if sum(delays.values()) > _REMEMBERED:
        delays = {cell: n // 2 for cell, n in delays.items() if n > 1}
    return delays


def median_delay(quality: dict[str, Any]) -> float | None:
    """Return half of the announcements were read within about so many seconds of the date stated; None: not known.

    Examples
    --------
    >>> median_delay({"delays": {"3": 5, "6": 4}})
    11.3
    """
    delays = sorted((int(cell), n) for cell, n in quality.get("delays", {}).items())
    half, seen = sum(n for _, n in delays) / 2, 0
    for cell, n in delays:
        seen += n
        if seen >= half:
            return float(round(2.0 ** (cell + 0.5), 1))
    return None
