"""Own precision: what a page's own visits say of how far announcements of its changes can be trusted."""

from __future__ import annotations

from math import exp

import numpy as np
import numpy.typing as npt

from crawlsched.pages import grown

__all__ = ["OwnPrecision"]

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

# How many announcements its source counts for, when the precision of a page's own is estimated.
_ANNOUNCEMENTS_OF_THE_SOURCE = 4.0
# A precision of 1 would make an announcement proof for ever.
_HIGHEST = 1 - 1e-12


class OwnPrecision:
    """Count, page by page, the announcements that visits judged, and how many of them are thought to be true.

    Notes
    -----
    Of one source's announcements those for one page may all be true and those for another all false: in Figure 4 of the
    noisy-signals paper [1]_ nearly every page is at one of these ends. The precision of a page is a Beta variable, with
    its source's precision for a mean before the first announcement and the strength of 4 of them. A visit that finds
    the page unchanged has proved its n announcements false. One that finds a change after τ seconds says of each that
    it is true with probability p / (1 - f (1 - p)^n), where f, the mean of exp(-α τ), is the probability that nothing
    unannounced has happened; so many are counted as true, which keeps the mean of the Beta as Bayes' rule has it.

    The counts are kept in memory only: a crawl that starts anew begins with the precision of the sources.

    References
    ----------
    .. [1] Busa-Fekete et al. (2025), "Scalable crawling with noisy change-indicating signals", section 6.6.

    Examples
    --------
    A source is right half of the time. Of one page it never is, as eight visits tell:

    >>> own, half = OwnPrecision(), np.log(2.0)
    >>> for _ in range(8):
    ...     own.learn(0, 1.0, half, False, 0.5)
    >>> (-np.expm1(-own.weights(np.array([0, 1]), np.array([half, half])))).round(3)
    array([0.167, 0.5  ])
    """

    def __init__(self) -> None:
        self._judged = np.zeros(0, np.float32)
        self._true = np.zeros(0, np.float32)

    def learn(self, page: int, n_signals: float, weight: float, changed: bool, fresh: float) -> None:
        """Take in a visit after announcements.

        Parameters
        ----------
        page : int
        n_signals : float
            Announcements since the visit before, above 0.
        weight : float
            What each was thought to be worth, nats above 0.
        changed : bool
            What the visit found.
        fresh : float
            Probability that nothing unannounced had happened.
        """
        if page >= self._judged.size:
            size = page + 1 + page // 4
            self._judged, self._true = grown(self._judged, size), grown(self._true, size)
        self._judged[page] += n_signals
        if changed:
            precision = 1.0 - exp(-weight)
            self._true[page] += n_signals * min(1.0, precision / (1.0 - fresh * exp(-weight * n_signals)))

    def weights(self, pages: IndexArray, of_source: FloatArray) -> FloatArray:
        """Return what one announcement of each page is worth, nats.

        Parameters
        ----------
        pages : ndarray of int, shape (n,)
        of_source : ndarray, shape (n,)
            What one announcement of their sources is worth.
        """
        weights = of_source.copy()
        rows = np.flatnonzero(pages < self._judged.size)
        rows = rows[self._judged[pages[rows]] > 0]
        if rows.size:
            true, judged = self._true[pages[rows]].astype(np.float64), self._judged[pages[rows]].astype(np.float64)
            true -= np.expm1(-of_source[rows]) * _ANNOUNCEMENTS_OF_THE_SOURCE
            precision = true / (judged + _ANNOUNCEMENTS_OF_THE_SOURCE)
            weights[rows] = -np.log1p(-np.minimum(precision, _HIGHEST))
        return weights
