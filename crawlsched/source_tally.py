"""Tallies: what a source has stated so far, without looking at any page: how late, how alike, how often backwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crawlsched.source_reading import MOST_PARTS, PartRead, SourceRead

__all__ = ["median_delay", "tallied", "together"]

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
        frequent date) and ``delays``: how many announcements were read 1, 2, 4, ... seconds after the date they state;
        and, where it speaks of several parts of sites, all but ``backwards`` for each of them in ``parts``.
    """
    stated = np.array([np.nan if date is None else date for date in read.lastmod])
    stated = stated[read.announced & ~read.backwards] if stated.size else stated
    whole = PartRead(int(read.announced.sum()), read.alike, stated)
    parts = quality.get("parts", {})
    if len(parts) + len(read.parts) > 1:
        told = {name: _with(parts.get(name, {}), part, now) for name, part in read.parts.items()}
        most = sorted({**parts, **told}.items(), key=lambda item: -item[1]["announced"])
        parts = dict(most[:MOST_PARTS])
    backwards = quality.get("backwards", 0) + int(read.backwards.sum())
    return {**quality, **_with(quality, whole, now), "backwards": backwards, "parts": parts}


def _with(quality: dict[str, Any], read: PartRead, now: float) -> dict[str, Any]:
    readings = quality.get("readings", 0)
    share = 1.0 / min(readings + 1, _READINGS)
    alike = quality.get("alike", 0.0)
    return {
        "readings": readings + 1,
        "announced": quality.get("announced", 0) + read.n_announced,
        "alike": alike + share * (read.alike - alike),
        "delays": _delays(quality.get("delays", {}), read.stated, now),
    }


def _delays(before: dict[str, int], stated: NDArray[np.float64], now: float) -> dict[str, int]:
    # Of a date without a time of day it is not known when in that day the page changed.
    told = stated[(stated % _DAY != 0) & (stated <= now)]
    cells = np.floor(np.log2(np.maximum(now - told, 1.0))).astype(int)
    delays = dict(before)
    for cell, n in zip(*np.unique(cells, return_counts=True), strict=True):
        delays[str(cell)] = delays.get(str(cell), 0) + int(n)
    if sum(delays.values()) > _REMEMBERED:
        delays = {cell: n // 2 for cell, n in delays.items() if n > 1}
    return delays


def together(qualities: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tallies of several sources as if they were one: ``announced``, ``alike`` and ``delays``.

    ``alike`` is the mean over those that were read, and None if none was.
    """
    delays: dict[str, int] = {}
    for quality in qualities:
        for cell, n in quality.get("delays", {}).items():
            delays[cell] = delays.get(cell, 0) + n
    shares = [quality["alike"] for quality in qualities if "alike" in quality]
    announced = sum(quality.get("announced", 0) for quality in qualities)
    return {"announced": announced, "alike": sum(shares) / len(shares) if shares else None, "delays": delays}


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
