"""Watching for co-changes: the last visits, and an alarm when a host's pages were found changed too often."""

from __future__ import annotations

from array import array
from collections.abc import Generator
from math import expm1, log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.planner.evidence.co_change_search import LEAST_EXPECTED, co_change_search
from crawlsched.planner.parameters.co_changes import HostCoChanges

__all__ = ["CoChangeWatch", "FoundCoChanges"]


# Visits that are kept.
_VISITS = 8192
# The evidence, nats, that is tried visit by visit; and how many nats must speak for it to raise the alarm.
_TRIED = 0.5
_ALARM = 5.0
# A co-change found before is kept while fewer of the visits kept could tell.
_TELLING = 10
_MOST_TIMES = 64
_NO_SURPRISE = 0.0, 0.0


class CoChangeWatch:
    """Keep the last visits, and search them for co-changes when they surprise.

    Attributes
    ----------
    n_visits : int
        How many there were.

    Notes
    -----
    For each host two sums follow its visits, as in Page's test (CUSUM): one of the log-likelihood ratio of half a nat
    of evidence against none, one of no evidence against what is believed. Each starts again at 0 when it would fall
    below. The search runs when one of them reaches 5 nats, so a host whose pages change on their own costs nothing
    beside O(1) a visit. Memory is bounded: 8192 visits.

    References
    ----------
    E. S. Page (1954). Continuous inspection schemes. Biometrika 41.
    """

    def __init__(self) -> None:
        # Python's own arrays, into which a single number is written in a third of the time that numpy's take.
        self._host, self._page = array("i", [-1]) * _VISITS, array("q", [0]) * _VISITS
        self._crawled_at, self._time, self._expected = (array("d", [0.0]) * _VISITS for _ in range(3))
        self._changed = array("B", [0]) * _VISITS
        self.n_visits = 0
        self._surprise: dict[int, tuple[float, float]] = {}

    def visited(
        self, host: int, page: int, crawled_at: float, time: float, fresh: float, evidence: float, changed: bool
    ) -> bool:
        """Take in a visit; return whether it is time to search. O(1).

        Parameters
        ----------
        host, page : int
        crawled_at, time : float
            The visit before and this one, POSIX seconds.
        fresh : float
            Probability of no change in between by the page's own rate.
        evidence : float
            Nats of the co-changes in between that are believed.
        changed : bool
        """
        expected = -log(fresh) if fresh > 0.0 else 700.0
        row = self.n_visits % _VISITS
        self._host[row], self._page[row] = host, page
        self._crawled_at[row], self._time[row] = crawled_at, time
        self._expected[row], self._changed[row] = expected, bool(changed)
        self.n_visits += 1
        missed, imagined = self._surprise.get(host, _NO_SURPRISE)
        # As in the search: bursts of single pages are no alarm.
        own = expected if expected > LEAST_EXPECTED else LEAST_EXPECTED
        believed = own + evidence
        if changed:
            missed += log(expm1(-(believed + _TRIED)) / expm1(-believed))
            imagined += log(expm1(-own) / expm1(-believed))
        else:
            missed -= _TRIED
            imagined += evidence
        alarm = missed >= _ALARM or imagined >= _ALARM
        if not alarm and (missed > 0.0 or imagined > 0.0):
            self._surprise[host] = missed if missed > 0.0 else 0.0, imagined if imagined > 0.0 else 0.0
        else:
            self._surprise.pop(host, None)
        return alarm

    def search(self, host: int) -> Generator[None, None, FoundCoChanges]:
        """Search the visits to a host that are kept for co-changes, in parts between which there may be more visits.

        Parameters
        ----------
        host : int

        Returns
        -------
        generator
            Yields before each step of about a millisecond, and returns what the visits say that were kept when it
            began.
        """
        rows = np.flatnonzero(np.frombuffer(self._host, np.int32) == host)
        page, changed = np.frombuffer(self._page, np.int64)[rows], np.frombuffer(self._changed, np.bool_)[rows]
        crawled_at, time, expected = (np.frombuffer(c)[rows] for c in (self._crawled_at, self._time, self._expected))
        found = yield from co_change_search(page, crawled_at, time, expected, changed)
        return FoundCoChanges(crawled_at, time, *found)


class FoundCoChanges(NamedTuple):
    """What a search of a host's visits found.

    Attributes
    ----------
    crawled_at, time : ndarray, shape (n,)
        The visits, each with the visit before, POSIX seconds.
    times, evidence : ndarray, shape (m,)
        As `find_co_changes` gives them.
    """

    crawled_at: FloatArray
    time: FloatArray
    times: FloatArray
    evidence: FloatArray

    def beside(self, known: HostCoChanges | None) -> HostCoChanges:
        """Return the co-changes of the host: these, and those known that the visits can say nothing of any more."""
        times, evidence = self.times, self.evidence
        since = float(self.crawled_at.min()) if known is None else known.since
        if known is not None:
            telling = _covering(self.crawled_at, self.time, known.times) >= _TELLING
            times = np.concatenate([known.times[~telling], times])
            evidence = np.concatenate([known.evidence[~telling], evidence])
        order = np.argsort(times, kind="stable")[-_MOST_TIMES:]
        return HostCoChanges(since, float(self.time.max()), times[order], evidence[order])


def _covering(
    crawled_at: npt.NDArray[np.float64], time: npt.NDArray[np.float64], moments: npt.NDArray[np.float64]
) -> npt.NDArray[np.intp]:
    """Return how many intervals hold each moment."""
    begun = np.sort(crawled_at).searchsorted(moments, side="left")
    over: npt.NDArray[np.intp] = begun - np.sort(time).searchsorted(moments, side="left")
    return over
