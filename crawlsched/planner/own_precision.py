"""Own precision: what a page's own visits say of how far announcements of its changes can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.estimators.page_precision import expected_evidence, expected_evidences, judged
from crawlsched.growing import grown
from crawlsched.pages import Pages

__all__ = ["COLUMNS", "OwnPrecision", "beta", "learned"]

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

#: The columns, as a store holds them.
COLUMNS = ("true_signals", "false_signals")
# So many announcements of a page are remembered: from then on older ones count ever less, so that a page whose
# announcements have become better or worse is noticed.
_REMEMBERED = 200.0
# No source is right or wrong so often that a page could not be otherwise.
_EXTREME = 1e-6


class OwnPrecision:
    """Announcements that visits found to be true and to be false, page by page: 8 bytes a page.

    Parameters
    ----------
    pages : Pages

    Attributes
    ----------
    true_signals, false_signals : ndarray of float32
        Expected numbers, beyond what the page's source counts for; shorter than the pages are many, or empty, as long
        as nothing was judged of the pages at the end.

    Notes
    -----
    The precision of a page is drawn from what its source, or the group of pages that it is in, is known to have:
    Beta(s m, s (1 - m)) for a mean m and a strength s. Visits make it Beta(s m + true, s (1 - m) + false), as `judged`
    does. Kept without m and s, so that what is newly learned of the source applies to all its pages at once.

    Examples
    --------
    A source is right half of the time, which counts for four announcements. Of one page it never is:

    >>> own, half = OwnPrecision(Pages()), float(np.log(2.0))
    >>> own.learn(0, (half, 4.0), n_signals=4.0, known=0.0, fresh=0.5)
    >>> [(-np.expm1(-own.weight_one(page, half, 4.0))).round(3).item() for page in (0, 1)]
    [0.25, 0.5]
    """

    true_signals: npt.NDArray[np.float32]
    false_signals: npt.NDArray[np.float32]

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.true_signals = self.false_signals = np.zeros(0, np.float32)

    def _make_room(self, n_pages: int) -> None:
        if self.true_signals.size < n_pages:
            size = max(n_pages, self._pages.capacity)
            self.true_signals, self.false_signals = grown(self.true_signals, size), grown(self.false_signals, size)

    # -- what is learned, stored and forgotten

    def learn(self, page: int, prior: tuple[float, float], n_signals: float, known: float, fresh: float) -> None:
        """Take in a visit after announcements.

        Parameters
        ----------
        page : int
        prior : tuple of float
            Weight of an announcement of its source, nats, and the strength of that.
        n_signals, known, fresh : float
            As for `judged`.
        """
        self._make_room(page + 1)
        before = self.true_signals.item(page), self.false_signals.item(page)
        self.true_signals[page], self.false_signals[page] = learned(prior, before, n_signals, known, fresh)

    def free(self, pages: IndexArray) -> None:
        """Forget what was learned of pages."""
        rows = pages[pages < self.true_signals.size]
        self.true_signals[rows] = self.false_signals[rows] = 0.0

    def columns(self, pages: IndexArray) -> dict[str, npt.NDArray[np.float32]]:
        """Copy the columns of some pages, by name."""
        found = {name: np.zeros(pages.size, np.float32) for name in COLUMNS}
        there = np.flatnonzero(pages < self.true_signals.size)
        for name, column in found.items():
            column[there] = getattr(self, name)[pages[there]]
        return found

    def load(self, pages: IndexArray, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Set pages to columns from a store; where none of them was ever announced that takes no memory."""
        if all(name in columns for name in COLUMNS):
            rows = np.flatnonzero((columns[COLUMNS[0]] != 0) | (columns[COLUMNS[1]] != 0))
            self.free(pages)
            if rows.size:
                self._make_room(int(pages[rows].max()) + 1)
                for name in COLUMNS:
                    getattr(self, name)[pages[rows]] = columns[name][rows]

    def everything(self, n_pages: int) -> dict[str, npt.NDArray[np.float32]]:
        """Return the columns of the first so many pages, for `restore`; views."""
        return {name: getattr(self, name)[:n_pages] for name in COLUMNS}

    def restore(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        """Become what `everything` was taken of; the arrays are kept."""
        self.true_signals, self.false_signals = (columns[name] for name in COLUMNS)

    # -- what announcements are worth

    def weights(self, pages: IndexArray, of_source: FloatArray, strength: FloatArray) -> FloatArray:
        """Return what one announcement of each page takes off the log-probability of freshness, nats.

        Parameters
        ----------
        pages : ndarray of int, shape (n,)
        of_source : ndarray, shape (n,)
            What one of their sources does, on average over its pages.
        strength : ndarray, shape (n,)
            For how many announcements that counts.
        """
        true, false = self._betas(pages, of_source, strength)
        weights: FloatArray = -np.log(false / (true + false))
        return weights

    def weight_one(self, page: int, of_source: float, strength: float) -> float:
        """Return what `weights` returns, to the last bit, for one page."""
        true, false = self._beta_one(page, of_source, strength)
        return -float(np.log(false / (true + false)))

    def evidence(
        self, pages: IndexArray, of_source: FloatArray, strength: FloatArray, n_signals: FloatArray
    ) -> FloatArray:
        """Return what so many announcements of each page take off the log-probability of freshness, nats."""
        return expected_evidences(*self._betas(pages, of_source, strength), n_signals)

    def evidence_one(self, page: int, of_source: float, strength: float, n_signals: float) -> float:
        """Return what `evidence` returns, to the last bit, for one page."""
        return expected_evidence(*self._beta_one(page, of_source, strength), n_signals)

    def _betas(self, pages: IndexArray, of_source: FloatArray, strength: FloatArray) -> tuple[FloatArray, FloatArray]:
        mean = np.clip(-np.expm1(-of_source), _EXTREME, 1.0 - _EXTREME)
        own = self.columns(pages)
        true, false = (own[name].astype(np.float64) for name in COLUMNS)
        return strength * mean + true, strength * (1.0 - mean) + false

    def _beta_one(self, page: int, of_source: float, strength: float) -> tuple[float, float]:
        true, false = beta(of_source, strength)
        if page < self.true_signals.size:
            true, false = true + self.true_signals.item(page), false + self.false_signals.item(page)
        return true, false


def learned(
    prior: tuple[float, float], before: tuple[float, float], n_signals: float, known: float, fresh: float
) -> tuple[float, float]:
    """Return how many announcements of a page visits have found true and false, with one more visit.

    Parameters
    ----------
    prior : tuple of float
        Weight of an announcement of the source, nats, and the strength of that.
    before : tuple of float
        True and false ones until then.
    n_signals, known, fresh : float
        As for `judged`.
    """
    of_source, against = beta(*prior)
    true, false = judged(of_source + before[0], against + before[1], n_signals, known, fresh)
    true, false = max(true - of_source, 0.0), max(false - against, 0.0)
    share = _REMEMBERED / max(true + false, _REMEMBERED)
    return true * share, false * share


def beta(weight: float, strength: float) -> tuple[float, float]:
    """Return the Beta distribution with a precision of 1 - exp(-weight) for its mean."""
    mean = min(max(-float(np.expm1(-weight)), _EXTREME), 1.0 - _EXTREME)
    return strength * mean, strength * (1.0 - mean)
