"""The extract of what a shard has learned: what the other shards of its collection need to learn as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["MOST_ROWS", "Extract", "evenly"]

#: Pages in an extract at most: 32 bytes of each.
MOST_ROWS = 512
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Extract:
    """What one shard lets the others know at each of its plans.

    Attributes
    ----------
    n_pages : int
        Visited pages of the shard.
    log_likelihood : ndarray of uint8, shape (m, K)
        Compact rows of some of them; each part from the first on is an even sample.
    announcements : tuple of float
        Announcements that visits have judged, as the shard's sources show by themselves: how many were true, and how
        many there were.
    neighbour_losses : ndarray, optional
        What the shard's own visits say of how far neighbours are trusted; None: there was none to judge by.
    """

    n_pages: int
    log_likelihood: npt.NDArray[Any]
    announcements: tuple[float, float] = (0.0, 0.0)
    neighbour_losses: npt.NDArray[np.float64] | None = None

    @staticmethod
    def judged(extracts: Iterable[Extract]) -> tuple[float, float]:
        """Add up the announcements that were true, and all that were judged.

        Examples
        --------
        >>> nothing = np.zeros((0, 32), np.uint8)
        >>> Extract.judged([Extract(0, nothing, (3.0, 4.0)), Extract(0, nothing, (1.0, 6.0))])
        (4.0, 10.0)
        """
        both = [extract.announcements for extract in extracts]
        return sum(true for true, _ in both), sum(n for _, n in both)


def evenly(n: int) -> npt.NDArray[np.intp]:
    """Return the rows 0 to n - 1 in such an order that any number of the first ones lie evenly among all.

    Examples
    --------
    >>> evenly(8).tolist()
    [0, 5, 2, 7, 4, 1, 6, 3]
    """
    return np.argsort(np.arange(n) * _GOLDEN % 1.0, kind="stable")
