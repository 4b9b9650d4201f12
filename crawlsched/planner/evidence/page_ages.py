"""Ages: how old pages are, as far as it is known, and how much faster they change than they will."""

from __future__ import annotations

from math import floor, inf, log2, nan

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.compiling import Compilable
from crawlsched.pages import Pages
from crawlsched.planner.evidence import page_age_loops
from crawlsched.planner.models.rate_decay import AgingLaw

__all__ = ["Ages", "keep_found", "shifted"]


#: `crawlsched.planner.evidence.page_age_loops`.
LOOPS = Compilable(page_age_loops)

# When pages were found is kept in so many steps an even interval, so that many of them share a row of rare facts, and
# for so many even intervals, after which nothing is left of their youth.
_STEPS = 64.0
_LONGEST = 256.0

_FIRST_ROW = np.zeros(1, np.intp)


class Ages:
    """Since when pages of a collection are new, and what a law of aging says of them.

    Parameters
    ----------
    pages : Pages
        A page that has been crawled has `first_seen` as long as its age is known and makes a difference.

    Attributes
    ----------
    known_since : float
        When most pages of the collection had been crawled, POSIX seconds; inf: not yet. What was found before may be of
        any age, and counts as old.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self.known_since = inf

    def know(self, since: float) -> None:
        """Take in that by then most pages had been crawled."""
        self.known_since = min(self.known_since, since)

    def found_one(self, page: int, now: float, even_rate: float) -> float:
        """Return when a page that is being crawled was found, as `keep_found` keeps it; nan: it may be of any age."""
        found, even_interval = self._pages.first_seen.item(page), 1.0 / even_rate
        if not found >= self.known_since or (even_interval and found <= now - _LONGEST * even_interval):
            return nan
        step = _step(even_interval) if even_interval else 0.0
        return floor(found / step) * step if step else float(found)

    def paces(self, pages: IndexArray, law: AgingLaw, even_rate: float) -> FloatArray:
        """Return how many times as often as when they are old pages change at present, shape (n,).

        It stays what it is half an even interval after a visit until the next one: crawl values must not fall as time
        passes.
        """
        columns = self._pages
        # Without rare facts a page was not found lately: of their first row that is not a number.
        ages = columns.crawled_at[pages] - columns.rare_facts.columns["first_seen"][columns.rare[pages]]
        known = np.isfinite(ages)
        if not known.any():
            return np.ones(pages.size)
        paces: FloatArray = np.where(known, law.paces(np.maximum(ages, 0.0) + 0.5 / even_rate), 1.0)
        return paces

    def quicken(
        self, weights: FloatArray, pages: IndexArray, law: AgingLaw, even_rate: float, log_ratio: float
    ) -> None:
        """Turn probabilities of the rates that pages have when they are old into those of their rates at present.

        Parameters
        ----------
        weights : ndarray, shape (n, K)
            Changed in place.
        pages : ndarray of int, shape (n,)
        law : AgingLaw
        even_rate : float
            Crawls per second and page if all got the same.
        log_ratio : float
            Logarithm of the ratio of two rates of the grid that are next to each other.
        """
        paces = self.paces(pages, law, even_rate)
        young = (paces > 1.0).nonzero()[0]
        if young.size:
            self._shift(weights, young, np.log(paces[young]) / log_ratio)

    def quicken_one(self, weights: FloatArray, page: int, law: AgingLaw, even_rate: float, log_ratio: float) -> None:
        """Do what `quicken` does for one page; `weights` has the shape (K,)."""
        found = self._pages.first_seen.item(page)
        if found == found:
            age = max(self._pages.crawled_at.item(page) - found, 0.0) + 0.5 / even_rate
            self._shift(weights[np.newaxis], _FIRST_ROW, np.log(np.array([law.pace(age)])) / log_ratio)

    @staticmethod
    def _shift(weights: FloatArray, rows: IndexArray, shifts: FloatArray) -> None:
        if LOOPS.compiled:
            LOOPS.quicken(weights, rows, shifts)
        else:
            weights[rows] = shifted(weights[rows], shifts)

    def lived(self, page: int, begin: float, end: float, law: AgingLaw | None) -> float:
        """Return in how many seconds an old page is expected to change as often as this one between two times."""
        if law is None or not self._pages.rare.item(page):
            return end - begin
        found = self._pages.first_seen.item(page)
        return law.lived(begin - found, end - found) if begin >= found else end - begin


def keep_found(found: FloatArray, since: float, now: float, even_interval: float) -> FloatArray:
    """Return when pages were found as far as their age depends on it.

    Parameters
    ----------
    found : ndarray
        When each was found, POSIX seconds; nan: not known.
    since : float
        When the collection was known for the most part: what was found before may be of any age.
    now : float
        POSIX seconds.
    even_interval : float
        Seconds; 0: not yet known.

    Returns
    -------
    ndarray
        In steps of about a 64th of the even interval; nan for pages that may be of any age, or are old.

    Examples
    --------
    >>> keep_found(np.array([100.0, 200.0, 300.1, np.nan]), since=150.0, now=400.0, even_interval=64.0)
    array([ nan, 200., 300.,  nan])
    """
    if since == inf:
        return np.full(found.shape, nan)
    if even_interval == 0.0:
        return np.where(found >= since, found, nan)
    young = (found >= since) & (found > now - _LONGEST * even_interval)
    step = _step(even_interval)
    kept: FloatArray = np.where(young, np.floor(found / step) * step, nan)
    return kept


def _step(even_interval: float) -> float:
    # A power of two stays the same while the collection grows, and pages found before and after share their steps.
    return float(2.0 ** floor(log2(even_interval / _STEPS)))


def shifted(weights: FloatArray, shifts: FloatArray) -> FloatArray:
    """Return the probabilities of rates that are higher by so many steps of a grid than those which have `weights`.

    Parameters
    ----------
    weights : ndarray, shape (n, K)
        Of the rates of a grid in equal ratios.
    shifts : ndarray, shape (n,)
        0 or more.

    Notes
    -----
    What falls between two rates of the grid goes to both, so that the mean of the logarithm of the rate is right; what
    would be faster than the last goes to that.

    Examples
    --------
    >>> shifted(np.array([[0.5, 0.5, 0.0, 0.0]]), np.array([1.5])).round(3)
    array([[0.  , 0.25, 0.5 , 0.25]])
    """
    size = weights.shape[1]
    whole = np.minimum(shifts.astype(np.intp), size - 1)
    share = np.minimum(shifts - whole, 1.0)[:, np.newaxis]
    moved: FloatArray = np.zeros(weights.shape)
    # Added up in order, as compiled code does.
    sums = weights.cumsum(axis=1)
    for steps in set(whole.tolist()):
        rows = slice(None) if whole.size == 1 else whole == steps
        given, part = weights[rows, : size - steps], share[rows]
        found = np.zeros((given.shape[0], size))
        found[:, steps:] = given * (1.0 - part)
        below = given[:, :-1] * part
        found[:, steps + 1 :] += below
        found[:, -1] = sums[rows, -1]
        if steps < size - 1:
            found[:, -1] += below[:, -1] - sums[rows, size - 2 - steps]
        moved[rows] = found
    return moved
