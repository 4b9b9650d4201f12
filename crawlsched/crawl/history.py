"""A history: visits that somebody else has made, and what they would have taught."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.estimators import LearnedRates, Posterior
from crawlsched.planner.knowledge import RENEWAL

__all__ = ["Histories", "learned_from"]


class Histories(NamedTuple):
    """Visits of some pages, those of each page side by side and in the order of their times."""

    row: NDArray[np.intp]  # which page, ascending; shape (V,)
    time: NDArray[np.float64]  # POSIX seconds; shape (V,)
    # 1: the page had changed since the visit before; 0: it had not; -1: that is not known; shape (V,)
    changed: NDArray[np.int8]

    @classmethod
    def of(
        cls,
        row: NDArray[np.intp],
        time: NDArray[np.float64],
        changed: NDArray[np.int8],
        digest: NDArray[np.int64] | None = None,
    ) -> Histories:
        """Sort visits; of several of a page at the same time the first one counts.

        Where `changed` is not known, a `digest` that differs from the one before says it; 0: not known.

        >>> time, unknown = np.array([9.0, 5.0, 3.0]), np.full(3, -1, np.int8)
        >>> found = Histories.of(np.array([1, 0, 1]), time, unknown, np.array([7, 7, 8]))
        >>> found.time.tolist(), found.changed.tolist()
        ([5.0, 3.0, 9.0], [-1, -1, 1])
        """
        order = np.lexsort((time, row))
        row, time, changed = row[order], time[order], changed[order]
        again = np.zeros(row.size, bool)
        again[1:] = (row[1:] == row[:-1]) & (time[1:] == time[:-1])
        made = cls(row[~again], time[~again], changed[~again])
        if digest is None:
            return made
        found = digest[order][~again]
        before = np.concatenate([[0], found[:-1]])
        tells = (made.changed < 0) & ~made.is_first & (found != 0) & (before != 0)
        return made._replace(changed=np.where(tells, found != before, made.changed).astype(np.int8))

    def only(self, chosen: NDArray[np.bool_]) -> Histories:
        """Return some of the visits."""
        return Histories(self.row[chosen], self.time[chosen], self.changed[chosen])

    def between(self, start: int, stop: int) -> Histories:
        """Return the visits of the rows from `start` to below `stop`, numbered from 0."""
        of = slice(*np.searchsorted(self.row, [start, stop]))
        return Histories(self.row[of] - start, self.time[of], self.changed[of])

    def of_rows(self, rows: NDArray[np.intp], n_rows: int) -> Histories:
        """Return the visits of some rows of `n_rows`, numbered by their places among these.

        >>> histories = Histories.of(np.array([0, 1, 2]), np.array([3.0, 4.0, 5.0]), np.zeros(3, np.int8))
        >>> histories.of_rows(np.array([2, 0]), 3).time.tolist()
        [5.0, 3.0]
        """
        place = np.full(n_rows, -1)
        place[rows] = np.arange(rows.size)
        kept = place[self.row] >= 0
        return Histories.of(place[self.row[kept]], self.time[kept], self.changed[kept])

    def last(self, n_rows: int) -> NDArray[np.float64]:
        """Return the time of each row's last visit; -inf where there is none."""
        last = np.full(n_rows, -np.inf)
        np.maximum.at(last, self.row, self.time)
        return last

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which visits are the first of their page."""
        first = np.ones(self.row.size, bool)
        first[1:] = self.row[1:] != self.row[:-1]
        return first

    @property
    def elapsed(self) -> NDArray[np.float64]:
        """Seconds since the visit before; nan for a first one."""
        return np.where(self.is_first, np.nan, np.diff(self.time, prepend=np.nan))

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """Of which visits is known whether the page had changed; there is nothing to compare a first one with."""
        return (self.changed >= 0) & ~self.is_first


def learned_from(
    histories: Histories, n_pages: int, rates: NDArray[np.float64], learned: LearnedRates | None = None
) -> NDArray[np.uint16]:
    """Learn from histories as a crawl learns from its visits; return the posterior's compact rows.

    `learned` is an estimator that learns beside the posterior.

    Examples
    --------
    A page that was found changed at its second visit is more likely a fast one:

    >>> histories = Histories.of(np.zeros(2, int), np.array([0.0, 60.0]), np.array([-1, 1], np.int8))
    >>> learned_from(histories, 1, np.array([1e-6, 1e-1])).tolist()[0][1]  # steps below the likeliest
    0
    """
    posterior = Posterior(n_pages, rates, dtype=np.uint16, renewal=RENEWAL)
    teach = np.flatnonzero(histories.is_known)
    row, elapsed, changed = histories.row[teach], histories.elapsed[teach], histories.changed[teach] == 1
    _, start, count = np.unique(row, return_index=True, return_counts=True)
    # What the first visits of all pages teach, then the second ones, and so on.
    for number in range(int(count.max(initial=0))):
        at = start[count > number] + number
        posterior.update(row[at], elapsed[at], changed[at])
        if learned is not None:
            learned.observe(row[at], elapsed[at], changed[at])
    packed: NDArray[np.uint16] = posterior.packed(np.arange(n_pages))[:, :-1]  # without the number of updates
    return packed
