"""Tallies: what a source has stated so far, without looking at any page: how late, how often backwards."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, lgamma, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.crawl.source_reading import MOST_PARTS, PartRead, SourceRead

__all__ = ["Delay", "median_delay", "tallied", "together"]

# Delays are counted in cells of which each is longer than the one before by a quarter of an octave (of a whole one in
# data of earlier versions: their names have no point), and only about so many of them are remembered.
_PER_OCTAVE = 4
_REMEMBERED = 1000
_CONFIDENCE = 0.95
_DAY = 86_400.0


def tallied(quality: dict[str, Any], read: SourceRead, now: float) -> dict[str, Any]:
    """Return a source's tallies with one more reading.

    ``delays`` counts dates by how long after them they were read, by the logarithm of the seconds to the base 2; a date
    that many pages of one reading share counts once. ``parts`` has the same for each of several parts of sites.
    """
    # Below zero are marks of texts that are no dates.
    stated = np.array([np.nan if date is None or date < 0.0 else date for date in read.lastmod])
    stated = stated[read.announced & ~read.backwards] if stated.size else stated
    whole = PartRead(int(read.announced.sum()), stated)
    parts = quality.get("parts", {})
    if len(parts) + len(read.parts) > 1:
        of_parts = {name: _with(parts.get(name, {}), part, now) for name, part in read.parts.items()}
        most = sorted({**parts, **of_parts}.items(), key=lambda item: -item[1]["announced"])
        parts = dict(most[:MOST_PARTS])
    backwards = quality.get("backwards", 0) + int(read.backwards.sum())
    stated_now = {"document": read.document, "backwards": backwards, "parts": parts}
    return {**quality, **_with(quality, whole, now), **stated_now}


def _with(quality: dict[str, Any], read: PartRead, now: float) -> dict[str, Any]:
    return {
        "announced": quality.get("announced", 0) + read.n_announced,
        "delays": _delays(quality.get("delays", {}), read.stated, now),
    }


def _delays(before: dict[str, int], stated: NDArray[np.float64], now: float) -> dict[str, int]:
    # Of a date without a time of day it is not known when in that day the page changed.
    dates = np.unique(stated[(stated % _DAY != 0) & (stated <= now)])  # a stamp on all pages is one statement
    cells = np.floor(_PER_OCTAVE * np.log2(np.maximum(now - dates, 1.0))) / _PER_OCTAVE
    delays = dict(before)
    for cell, n in zip(*np.unique(cells, return_counts=True), strict=True):
        name = f"{cell:.2f}"
        delays[name] = delays.get(name, 0) + int(n)
    if sum(delays.values()) > _REMEMBERED:
        delays = {cell: n // 2 for cell, n in delays.items() if n > 1}
    return delays


def together(qualities: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tallies of several sources as if they were one: ``announced`` and ``delays``."""
    delays: dict[str, int] = {}
    for quality in qualities:
        for cell, n in quality.get("delays", {}).items():
            delays[cell] = delays.get(cell, 0) + n
    return {"announced": sum(quality.get("announced", 0) for quality in qualities), "delays": delays}


class Delay(NamedTuple):
    """The delay between a change and its announcement.

    Attributes
    ----------
    interval : (float, float) or None
        In which that is with a probability of 95 % at least; None for less than six dates, of which nothing can be
        said with so much certainty.
    """

    median: float  # seconds from the date stated to its reading
    interval: tuple[float, float] | None
    n: int  # dates that it was counted from: about the last 1,000 at most


def median_delay(quality: dict[str, Any]) -> Delay | None:
    """Return the median delay of a source; None: not known.

    Notes
    -----
    The delays of a source are taken for independent, of one distribution, whatever that is. Then the number of those
    below the true median is Binomial(n, 1/2), and the median lies between the k-th smallest and the k-th largest with a
    probability of 1 - 2 P(Binomial(n, 1/2) < k) [1]_; k is the largest for which that is 95 % or more. Where within its
    cell, of a fifth of its length, a delay lies is interpolated.

    Examples
    --------
    >>> median_delay({"delays": {"3.00": 5, "3.25": 8, "6.00": 4}})
    Delay(median=10.3, interval=(9.4, 11.2), n=17)
    """
    cells = sorted((float(cell), "." not in cell, n) for cell, n in quality.get("delays", {}).items() if n)
    n_delays = sum(n for _, _, n in cells)
    if not n_delays:
        return None
    rank = _rank(n_delays)
    interval = None if rank is None else (_at(cells, float(rank)), _at(cells, n_delays + 1.0 - rank))
    return Delay(_at(cells, (n_delays + 1) / 2), interval, n_delays)


def _rank(n: int) -> int | None:
    """The largest k with P(Binomial(n, 1/2) < k) at most half of what is left to chance; None if there is none."""
    below, rank = 0.0, 0
    while (below := below + exp(lgamma(n + 1) - lgamma(rank + 1) - lgamma(n - rank + 1) - n * log(2.0))) <= (
        1.0 - _CONFIDENCE
    ) / 2:
        rank += 1
    return rank or None


def _at(cells: Sequence[tuple[float, bool, int]], rank: float) -> float:
    """Return the delay at a rank (from 1), in seconds, as if delays were spread evenly within each cell."""
    seen = 0
    for start, is_octave, n in cells:
        if rank <= seen + n or (start, is_octave, n) == cells[-1]:
            width = 1.0 if is_octave else 1.0 / _PER_OCTAVE
            share = min(max((rank - seen - 0.5) / n, 0.0), 1.0)
            return float(round(2.0 ** (start + width * share), 1))
        seen += n
    raise AssertionError("there are no cells")
