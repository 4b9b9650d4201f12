"""Announced: sources name pages and announce their changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import IndexArray
from crawlsched.planner.evidence.signal_counts import SignalCounts
from crawlsched.planner.knowledge import Knowledge
from crawlsched.planner.parameters.in_force import SLICE

__all__ = ["Announced"]

# Up to so many announcements at once are taken one by one.
_FEW = 16
_MOST = 0xFFFF


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
        rows = np.asarray(pages, np.intp).reshape(-1)
        if rows.size <= min(_FEW, self._known.frontier.values.few):
            return self._take_few_signals(sorted(set(rows.tolist())), source, now, before)
        rows = self._known.rows(rows)
        if (columns.source[rows] != source).any():
            self._counts.cover(rows, source, now)
        if self.signal_delay:
            rows = rows[now - columns.crawled_at[rows] >= self.signal_delay]
        if rows.size <= SLICE:
            self._take_signals(rows, source, now, before)
        else:
            self._known.in_slices(rows, lambda part, _: self._take_signals(part, source, now, before))
        return int(rows.size)

    def _take_few_signals(self, pages: list[int], source: int, now: float, since: float) -> int:
        """Take announcements of a few distinct pages one by one, for which arrays would cost more than all the rest."""
        columns, frontier = self._known.pages, self._known.frontier
        if pages and not (pages[0] >= 0 and pages[-1] < columns.n):
            self._known.complain(pages)
        sources, further, n_signals, crawled_at = columns.source, columns.further, columns.n_signals, columns.crawled_at
        if any(sources.item(page) != source for page in pages):
            self._counts.cover(np.array(pages), source, now)
        if self.signal_delay:
            pages = [page for page in pages if now - crawled_at.item(page) >= self.signal_delay]
        for page in pages:
            heard = n_signals.item(page)
            if sources.item(page) != source or further.item(page) or heard == _MOST:
                self._take_signals(np.array([page]), source, now, since)
            elif crawled_at.item(page) <= now:
                changes = frontier.values.hears(page)
                n_signals[page] = heard + 1
                columns.n_signals_total.set_one(page, columns.n_signals_total.item(page) + 1)
                # Of a page never crawled there is no copy that could go stale.
                if changes and crawled_at.item(page) > -np.inf:
                    frontier.refile_one(page, self._known.now)
        return len(pages)

    def announced_by(self, page: int, source: int) -> bool:
        """Whether a source has announced a page since its last crawl."""
        return self._counts.announced_by(page, source)

    def _take_signals(self, rows: IndexArray, source: int, announced_at: float, since: float) -> None:
        rows = self._counts.take(rows, source, announced_at, since)
        # Of a page never crawled there is no copy that could go stale.
        self._known.frontier.refile(rows[self._known.pages.crawled_at[rows] > -np.inf], self._known.now)
