"""Who has just been crawled, as numba compiles it; `Fresh.still` has the same for numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlsched.frontier.places import FRESH, IN_FLIGHT

__all__ = ["EXAMPLES", "take_fresh"]


def take_fresh(place: Any, pages: Any) -> int:
    """Put those of some pages first that have just been crawled, each once, and return how many; they are in flight."""
    n_fresh = 0
    for n in range(len(pages)):
        page = pages[n]
        if place[page] == FRESH:
            place[page] = IN_FLIGHT
            pages[n_fresh] = page
            n_fresh += 1
    return n_fresh


#: Arguments of the functions that are called from outside, as numba is to compile them.
EXAMPLES = {"take_fresh": (np.zeros(2, np.int32), np.arange(2))}
