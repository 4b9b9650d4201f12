"""Own precision: what a page's own visits say of how far announcements of its changes can be trusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.columns.growing import grown
from crawlsched.estimators.page_precision import expected_evidence, judged
from crawlsched.pages import Pages

__all__ = ["COLUMNS", "OwnPrecision", "beta", "learned"]


#: The columns, as a store holds them.
COLUMNS = ("true_signals", "false_signals")
# So many announcements of a page are remembered: from then on older ones count ever less, so that a page whose
# announcements have become better or worse is noticed.
_REMEMBERED = 200.0
#: For how many announcements what is known of a source counts beside a page's own.
OF_THE_SOURCE = 4.0
#: No source is right or wrong so often that a page could not be otherwise.
EXTREME = 1e-6
#: Steps of the square root of a count: one of them is a thousandth or less of what the count may be off by, however
#: large it is, as the standard error of the root of a count is a half (Anscombe, 1948); and 256 still fits 16 bits.
STEPS = 4096.0
_MOST_STEPS = 65535.0


class OwnPrecision:
    """Announcements that visits found to be true and to be false, page by page: 4 bytes a page.

    Parameters
    ----------
    pages : Pages

    Attributes
    ----------
    roots : ndarray of uint16, shape (n, 2)
        By page the square roots, in steps of 1/4096, of the expected numbers of true and of false ones, beyond what the
        page's source counts for; shorter than the pages are many, or empty, as long as nothing was judged of the pages
        at the end.

    Notes
    -----
    The precision of a page is drawn from what its source, or the group of pages that it is in, is known to have:
    Beta(4 m, 4 (1 - m)) for a mean m, which so counts for four announcements. Visits make it Beta(4 m + true,
    4 (1 - m) + false), as `judged` does. Kept without m, so that what is newly learned of the source applies to all its
    pages at once.

    Examples
    --------
    A source is right half of the time. Of one page it never is:

    >>> own, half = OwnPrecision(Pages()), float(np.log(2.0))
    >>> own.learn(0, half, n_signals=4.0, known=0.0, fresh=0.5)
    >>> [(-np.expm1(-own.weight_one(page, half))).round(3).item() for page in (0, 1)]
    [0.25, 0.5]
    """

    roots: npt.NDArray[np.uint16]

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.roots = np.zeros((0, len(COLUMNS)), np.uint16)

    def _make_room(self, n_pages: int) -> None:
        if self.roots.shape[0] < n_pages:
            self.roots = grown(self.roots, max(n_pages, self._pages.capacity))

    # -- what is learned, stored and forgotten

    def learn(self, page: int, of_source: float, n_signals: float, known: float, fresh: float) -> None:
        """Take in a visit after announcements.

        Parameters
        ----------
        page : int
        of_source : float
            Weight of an announcement of its source, nats.
        n_signals, known, fresh : float
            As for `judged`.
        """
        self._make_room(page + 1)
        counts = learned(of_source, self._count_one(page), n_signals, known, fresh)
        self.roots[page] = [int(min(math.sqrt(count) * STEPS + 0.5, _MOST_STEPS)) for count in counts]

    def _count_one(self, page: int) -> tuple[float, float]:
        true, false = self.roots[page].tolist()
        return (true / STEPS) ** 2, (false / STEPS) ** 2

    def free(self, pages: IndexArray) -> None:
        """Forget what was learned of pages."""
        self.roots[pages[pages < self.roots.shape[0]]] = 0

    def columns(self, pages: IndexArray) -> dict[str, npt.NDArray[np.float32]]:
        """Return the numbers of some pages, by the name that their column has in a store."""
        return dict(zip(COLUMNS, self._counts(pages).astype(np.float32), strict=True))

    def _counts(self, pages: IndexArray) -> FloatArray:
        found = np.zeros((len(COLUMNS), pages.size))
        there = np.flatnonzero(pages < self.roots.shape[0])
        found[:, there] = np.square(self.roots[pages[there]].T / STEPS)
        return found

    def load(self, pages: IndexArray, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Set pages to columns from a store; where none of them was ever announced that takes no memory."""
        if all(name in columns for name in COLUMNS):
            counts = np.column_stack([columns[name] for name in COLUMNS])
            rows = np.flatnonzero(counts.any(axis=1))
            self.free(pages)
            if rows.size:
                self._make_room(int(pages[rows].max()) + 1)
                steps = np.sqrt(counts[rows].astype(np.float64)) * STEPS + 0.5
                self.roots[pages[rows]] = np.minimum(steps, _MOST_STEPS)

    # -- what announcements are worth

    def weight_one(self, page: int, of_source: float) -> float:
        """Return what one announcement of a page takes off the log-probability that it is fresh, nats."""
        true, false = self._beta_one(page, of_source)
        return -float(np.log(false / (true + false)))

    def evidence_one(self, page: int, of_source: float, n_signals: float) -> float:
        """Return what so many announcements of a page take off it, nats."""
        return expected_evidence(*self._beta_one(page, of_source), n_signals)

    def betas(self, pages: IndexArray, of_source: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return for how many true and false announcements all counts that is known of each page's next one.

        Parameters
        ----------
        pages : ndarray of int, shape (n,)
        of_source : ndarray, shape (n,)
            What one announcement of their sources takes off the log-probability of freshness, on average over their
            pages, nats.
        """
        mean = np.clip(-np.expm1(-of_source), EXTREME, 1.0 - EXTREME)
        true, false = self._counts(pages)
        return OF_THE_SOURCE * mean + true, OF_THE_SOURCE * (1.0 - mean) + false

    def _beta_one(self, page: int, of_source: float) -> tuple[float, float]:
        true, false = beta(of_source)
        if page < self.roots.shape[0]:
            own = self._count_one(page)
            true, false = true + own[0], false + own[1]
        return true, false


def learned(
    of_source: float, before: tuple[float, float], n_signals: float, known: float, fresh: float
) -> tuple[float, float]:
    """Return how many announcements of a page visits have found true and false, with one more visit.

    Parameters
    ----------
    of_source : float
        Weight of an announcement of the source, nats.
    before : tuple of float
        True and false ones until then.
    n_signals, known, fresh : float
        As for `judged`.
    """
    right, wrong = beta(of_source)
    true, false = judged(right + before[0], wrong + before[1], n_signals, known, fresh)
    true, false = max(true - right, 0.0), max(false - wrong, 0.0)
    share = _REMEMBERED / max(true + false, _REMEMBERED)
    return true * share, false * share


def beta(weight: float) -> tuple[float, float]:
    """Return the Beta distribution with a precision of 1 - exp(-weight) for its mean."""
    mean = min(max(-float(np.expm1(-weight)), EXTREME), 1.0 - EXTREME)
    return OF_THE_SOURCE * mean, OF_THE_SOURCE * (1.0 - mean)
