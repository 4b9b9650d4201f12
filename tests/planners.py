"""Planners in tests, and hosts that never rest."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from crawlsched.planner import Planner


def never_rests(host: int, now: float) -> float:
    """Say that a host may be asked now."""
    return now


def crawled_pages(n: int, sources: Iterable[int] = (), **parameters: Any) -> Planner:
    """Return a planner of so many pages, all crawled for the first time at 0 and covered by sources since then."""
    planner = Planner(1.0, **parameters)
    planner.add(0, 0.0, n=n)
    for page in range(n):
        planner.crawled(page, 0.0, None)
    for source in sources:
        planner.covered(np.arange(n), source, 0.0)
    return planner
