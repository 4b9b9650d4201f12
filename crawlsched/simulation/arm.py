"""An arm: one policy in a replay; and the setting that it plays in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.simulation.history import Window
from crawlsched.simulation.rates import Rates
from crawlsched.simulation.truth import Visit

__all__ = ["NO_PAGE", "Arm", "Setting", "Turns"]

#: What an arm picks when no page is there.
NO_PAGE = -1


@dataclass(frozen=True, eq=False)
class Setting:
    """What every arm is told before a replay begins.

    Attributes
    ----------
    importance : ndarray, shape (n,)
        Of all pages that will ever be there, in rows.
    bandwidth : float
        Crawls per second.
    window : Window
    even_rate : float
        Crawls per second and page if all get the same.
    rates : Rates or None
        Where change rates come from; None: the arm learns by itself, or needs none.
    recall, false_signal_rate : ndarray, shape (n,), or None
        Where they are known.
    has_signals : bool
        Whether something announces changes.
    seed : int
        Of what is random.
    """

    importance: FloatArray
    bandwidth: float
    window: Window
    even_rate: float
    rates: Rates | None
    recall: FloatArray | None
    false_signal_rate: FloatArray | None
    has_signals: bool
    seed: int


class Arm(Protocol):
    """What decides which page is crawled. Time never goes back from one call to the next."""

    def begin(self, rows: IndexArray, crawled_at: FloatArray, now: float) -> None:
        """Pages are there, and have been crawled when they began."""
        ...

    def end(self, rows: IndexArray, now: float) -> None:
        """Pages are there no more."""
        ...

    def signalled(self, rows: IndexArray, now: float) -> None:
        """Changes of distinct pages are announced."""
        ...

    def pick(self, now: float) -> int:
        """Return the page to crawl now; `NO_PAGE` only if none is there."""
        ...

    def crawled(self, visit: Visit) -> None:
        """The page picked was crawled."""
        ...


class Turns:
    """Since when each page waits for its turn; what the simple arms have in common.

    Attributes
    ----------
    there : ndarray of bool, shape (n,)
        Which pages may be crawled.
    crawled_at : ndarray, shape (n,)
        When they were crawled last; inf for pages that are not there, so that none of them waits longest.
    """

    def __init__(self, n_pages: int) -> None:
        self.there = np.zeros(n_pages, bool)
        self.crawled_at = np.full(n_pages, np.inf)
        self.n_there = 0

    def begin(self, rows: IndexArray, crawled_at: FloatArray) -> None:
        """Pages are there."""
        self.there[rows] = True
        self.crawled_at[rows] = crawled_at
        self.n_there += rows.size

    def end(self, rows: IndexArray) -> None:
        """Pages are there no more."""
        self.there[rows] = False
        self.crawled_at[rows] = np.inf
        self.n_there -= rows.size

    def oldest(self) -> int:
        """Return the page that waits longest, the lowest among equals; `NO_PAGE` if none is there."""
        return int(self.crawled_at.argmin()) if self.n_there else NO_PAGE
