"""Announced: sources name pages and announce their changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import IndexArray
from crawlsched.planner.evidence.signal_counts import SignalCounts
from crawlsched.planner.knowledge import Knowledge
from crawlsched.planner.parameters.in_force import SLICE

__all__ = ["Announced"]


class Announced:
    """Take announcements in, and place their pages anew.

    Parameters
    ----------
    known : Knowledge
    signal_delay : float
        A ChangeSignal is discarded so many seconds after a crawl: it announces what that crawl has seen.
    """

    def __init__(self, known: Knowledge, signal_delay: float) -> None:
        self._known = known
        self.signal_delay = signal_delay
        self._counts = SignalCounts(known.pages, known.further, known.announcements)

    def covered(self, pages: npt.ArrayLike, source: int, now: float) -> None:
        """A source names these pages; the first time is no announcement. O(1) a page."""
        self._known.at(now)
        self._counts.cover(self._known.rows(pages), source, now)

    def signalled(self, pages: npt.ArrayLike, source: int, now: float, since: float | None = None) -> int:
        """A source announces changes of these pages, once each.

        Parameters
        ----------
        pages : array_like of int
        source : int
        now : float
            POSIX seconds.
        since : float, optional
            When the source was read before, POSIX seconds: what another source has announced since then may be the
            same change. The signal delay before `now` by default.

        Returns
        -------
        int
            How many were taken: not those within the signal delay after a crawl.

        Notes
        -----
        More than 128 at once come into force in slices over the next picks; a page visited before its slice has been
        seen by that visit.
        """
        now = self._known.at(now)
        columns, before = self._known.pages, (now if since is None else min(since, now)) - self.signal_delay
        rows = self._known.rows(pages)
        if (columns.source[rows] != source).any():
            self._counts.cover(rows, source, now)
        if self.signal_delay:
            rows = rows[now - columns.crawled_at[rows] >= self.signal_delay]
        if rows.size <= SLICE:
            self._take_signals(rows, source, now, before)
        else:
            self._known.in_slices(rows, lambda part, _: self._take_signals(part, source, now, before))
        return int(rows.size)

    def announced_by(self, page: int, source: int) -> bool:
        """Whether a source has announced a page since its last crawl."""
        return self._counts.announced_by(page, source)

    def _take_signals(self, rows: IndexArray, source: int, announced_at: float, since: float) -> None:
        rows = self._counts.take(rows, source, announced_at, since)
        # Of a page never crawled there is no copy that could go stale.
        self._known.frontier.refile(rows[self._known.pages.crawled_at[rows] > -np.inf], self._known.now)
