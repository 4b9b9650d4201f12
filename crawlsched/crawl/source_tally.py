"""Tallies: what a source has stated so far, without looking at any page: how late, how often backwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlsched.crawl.source_reading import SourceRead

__all__ = ["tallied"]

# The newest delays that are kept of a source.
_REMEMBERED = 100
_DAY = 86_400.0


def tallied(quality: dict[str, Any], read: SourceRead, now: float) -> dict[str, Any]:
    """Return a source's tallies with one more reading.

    ``late`` has the seconds from dates stated to their reading; one that many pages of a reading share counts once.
    """
    # Below zero are marks of texts that are no dates.
    stated = np.array([np.nan if date is None or date < 0.0 else date for date in read.lastmod])
    stated = stated[read.announced & ~read.backwards] if stated.size else stated
    # Of a date without a time of day it is not known when in that day the page changed.
    dates = np.unique(stated[(stated % _DAY != 0) & (stated <= now)])
    return {
        **quality,
        "document": read.document,
        "announced": quality.get("announced", 0) + int(read.announced.sum()),
        "backwards": quality.get("backwards", 0) + int(read.backwards.sum()),
        "late": [*quality.get("late", []), *np.round(now - dates, 1).tolist()][-_REMEMBERED:],
    }
