"""Searching co-changes: which moments explain that pages, quiet until then, were found changed one after another?"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray
from crawlsched.planner.slices import done_at_once

__all__ = ["LEAST_EXPECTED", "LEAST_GAIN", "co_change_search", "excess", "find_co_changes"]


#: Nats that a co-change has to explain: chance gives as much once in e^10 searches, and one page cannot, since a moment
#: lies between two visits of a page only once.
LEAST_GAIN = 10.0
#: Changes expected of a page are taken for so many at least: pages change in bursts, and what is one surprise in a
#: thousand by a Poisson process is not so rare.
LEAST_EXPECTED = 0.1
# Visits to pages that are numbered one after another, as those of one section are that were found together, do not
# bear witness apart: a section changes together, and visits go through it one by one. Of as many stretches of page
# numbers as these each counts for so many visits at most.
_STRETCHES = 64
_MOST_WITNESSES = 2.0
_BINS = 128
_MOST = 8
# Evidence of a co-change, nats: it reached 5 %, 10 %, 18 %, 33 %, 55 % or 80 % of the pages.
_EVIDENCE = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
# Bins that are less likely than the likeliest by this factor are not kept.
_LEAST_ODDS = 1e-2


def excess(expected: npt.ArrayLike, evidence: float) -> FloatArray:
    """Return what a co-change adds to the log-likelihood of pages that were found changed, nats.

    Parameters
    ----------
    expected : array_like
        Changes expected of each page without it, x.
    evidence : float
        Of the co-change, h nats.

    Returns
    -------
    ndarray
        log((1 - e^-(x+h)) / (1 - e^-x)).
    """
    x = np.maximum(expected, LEAST_EXPECTED)
    found: FloatArray = np.log(np.expm1(-(x + evidence)) / np.expm1(-x))
    return found


def find_co_changes(
    page: npt.NDArray[np.intp], crawled_at: FloatArray, time: FloatArray, expected: FloatArray, changed: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Find moments at which many pages changed together.

    Parameters
    ----------
    page : ndarray of int, shape (n,)
        The pages visited, whose numbers are close for pages that were found together.
    crawled_at, time : ndarray, shape (n,)
        Visits, each with the visit before, POSIX seconds.
    expected : ndarray, shape (n,)
        Changes expected in between, by what was known of the page: -log of the probability of none.
    changed : ndarray of bool, shape (n,)
        Whether the page was found changed.

    Returns
    -------
    times, evidence : ndarray, shape (m,)
        Increasing times and nats, as in `HostCoChanges`; empty where nothing is there.

    Notes
    -----
    A co-change at u with h nats reaches each page with probability 1 - e^-h. It makes the visits whose interval holds u
    likelier if they found a change, by `excess`, and unlikelier by h nats if they found none. Visits are taken together
    in 64 stretches of page numbers with as many visits each, and of a stretch the mean counts, as two visits at most: a
    section that changed is no mass edit of the site. Moments are tried in 128 bins, heights in six steps; the likeliest
    is taken if it explains at least `LEAST_GAIN` nats, then the next beside it, up to eight. Its evidence is spread
    over the bins by their likelihood, since between visits nobody can tell when it was: a page crawled in the middle of
    them is stale with the probability that it came later. Cost O(n) a step.

    Examples
    --------
    Twenty pages crawled at 0 and once again, five a second from 10 on. From 12 on all were found changed:

    >>> crawled_at, time = np.zeros(20), 10 + np.arange(20) / 5
    >>> times, evidence = find_co_changes(np.arange(20), crawled_at, time, np.full(20, 0.2), time >= 12)
    >>> bool(abs(times @ evidence / evidence.sum() - 12) < 1), float(evidence.sum())
    (True, 1.6)
    """
    return done_at_once(co_change_search(page, crawled_at, time, expected, changed))


def co_change_search(
    page: npt.NDArray[np.intp], crawled_at: FloatArray, time: FloatArray, expected: FloatArray, changed: BoolArray
) -> Generator[None, None, tuple[FloatArray, FloatArray]]:
    """Search as `find_co_changes` does, in parts between which pages may be picked and crawled.

    Parameters
    ----------
    page, crawled_at, time, expected, changed
        As for `find_co_changes`; arrays of its own, which nobody changes meanwhile.

    Returns
    -------
    generator
        Yields before each step of about a millisecond for 8192 visits, and returns what `find_co_changes` does.

    Examples
    --------
    >>> crawled_at, time = np.zeros(20), 10 + np.arange(20) / 5
    >>> search = co_change_search(np.arange(20), crawled_at, time, np.full(20, 0.2), time >= 12)
    >>> len(list(search))
    2
    """
    none = np.empty(0)
    if not changed.any():
        return none, none
    begin, end = float(crawled_at.min()), float(time.max())
    width = (end - begin) / _BINS
    if not width > 0:
        return none, none
    first = np.minimum(((crawled_at - begin) / width).astype(np.intp), _BINS - 1)
    last = np.minimum(((time - begin) / width).astype(np.intp), _BINS - 1)
    # A bin in which a page was crawled cannot hold what that crawl saw before; only bins that are all in between count.
    first = np.minimum(first + 1, last)
    stretch = _stretches(page)
    weights = np.minimum(_MOST_WITNESSES / np.maximum(_covered(stretch, first, last, np.ones(page.size)), 1), 1)
    quiet = _covered(stretch[~changed], first[~changed], last[~changed], np.ones(np.count_nonzero(~changed)))
    stretch, first, last = stretch[changed], first[changed], last[changed]
    odds = np.maximum(expected[changed], LEAST_EXPECTED)
    total: FloatArray = np.zeros(_BINS)
    for _ in range(_MOST):
        yield
        found = [_covered(stretch, first, last, excess(odds, height)) - height * quiet for height in _EVIDENCE]
        gains = np.array([(weights * gain).sum(axis=0) for gain in found])
        height, best = np.unravel_index(int(gains.argmax()), gains.shape)
        if gains[height, best] < LEAST_GAIN:
            break
        share = np.exp(gains[height] - gains[height, best])
        share[share < _LEAST_ODDS] = 0.0
        evidence = _EVIDENCE[height] * share / share.sum()
        total += evidence
        sums = np.concatenate([[0.0], np.cumsum(evidence)])
        odds = odds + sums[last + 1] - sums[first]
    bins = np.flatnonzero(total)
    return np.asarray(begin + (bins + 0.5) * width, np.float64), total[bins]


def _stretches(page: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return for each visit the number of the stretch that its page lies in, all visits of a page in the same one."""
    order = np.sort(page)
    return order.searchsorted(page) * _STRETCHES // page.size


def _covered(
    stretch: npt.NDArray[np.intp], first: npt.NDArray[np.intp], last: npt.NDArray[np.intp], weights: FloatArray
) -> FloatArray:
    """Return for each stretch and bin the sum of the weights of the intervals that hold it, shape (stretches, bins)."""
    row, size = stretch * (_BINS + 1), _STRETCHES * (_BINS + 1)
    steps = np.bincount(row + first, weights, size) - np.bincount(row + last + 1, weights, size)
    sums: FloatArray = np.cumsum(steps.reshape(_STRETCHES, _BINS + 1), axis=1)[:, :_BINS]
    return sums
