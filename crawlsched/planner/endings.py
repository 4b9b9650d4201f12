"""Endings: visits that did not reach content, and pages that back off for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.pages import ERROR, GONE, MOVED, REFUSED
from crawlsched.planner.knowledge import DAY, Knowledge

__all__ = ["Endings"]

_LONGEST_ERROR_INTERVAL = DAY
_LONGEST_GONE_INTERVAL = 30 * DAY


class Endings:
    """Let pages be tried again ever later.

    Parameters
    ----------
    known : Knowledge
    error_interval, gone_interval : float
        A page is tried again so many seconds after an error, or after it was gone; then after twice as many.
    """

    def __init__(self, known: Knowledge, error_interval: float, gone_interval: float) -> None:
        self._known = known
        self.error_interval, self.gone_interval = error_interval, gone_interval

    def failed(self, page: int, now: float, retry_at: float | None = None) -> None:
        """A visit did not reach content: the page backs off, at least until `retry_at`."""
        now = self._known.at(now)
        again = self._again(page, ERROR)
        wait = _backing_off(again, self.error_interval, _LONGEST_ERROR_INTERVAL)
        self._known.pages.set_rare(page, not_before=max(now + wait, retry_at or 0.0), n_errors=min(again + 1, 255))
        self._known.end_visit(page, now)

    def put_off(self, page: int, until: float, now: float) -> None:
        """Leave a page alone until a time."""
        now = self._known.at(now)
        self._known.pages.set_rare(page, not_before=until)
        self._known.frontier.refile(np.array([page]), now)

    def take_back(self, columns: dict[str, npt.NDArray[Any]], now: float) -> None:
        """Forget what the last visit of a page taught: it was not that page. It backs off as after an error.

        Parameters
        ----------
        columns : dict of ndarray
            What `Planner.columns` gave of it before that visit.
        now : float
        """
        rows = columns["page"]
        kept = {name: columns[name] for name in ("state", "crawled_at", "n_crawls", "n_changes", "n_signals")}
        self._known.pages.set_rows(rows, kept)
        self._known.own_precision.load(rows, columns)
        self._known.posterior.unpack(rows, columns["log_likelihood"])
        if not self._known.in_flight.intersection(rows.tolist()):
            self.failed(int(rows[0]), now)

    def gone(self, page: int, now: float) -> None:
        """A visit was told that the page is gone: it is looked for ever more rarely."""
        self._left(page, GONE, now)

    def moved(self, page: int, now: float) -> None:
        """A visit was sent elsewhere for good: the page is looked for ever more rarely."""
        self._left(page, MOVED, now)

    def _left(self, page: int, state: int, now: float) -> None:
        now = self._known.at(now)
        self._probe_later(page, state, now)
        self._known.pages.crawled_at[page] = now
        self._known.end_visit(page, now)

    def refused(self, page: int, now: float) -> None:
        """A visit was refused before it left: it is tried ever more rarely."""
        now = self._known.at(now)
        self._probe_later(page, REFUSED, now)
        self._known.end_visit(page, now)

    def release(self, page: int, now: float) -> None:
        """A visit was dropped: the page is as if it had not been picked."""
        self._known.end_visit(page, self._known.at(now))

    def _probe_later(self, page: int, state: int, now: float) -> None:
        again = self._again(page, state)
        wait = _backing_off(again, self.gone_interval, _LONGEST_GONE_INTERVAL)
        self._known.pages.set_rare(page, not_before=now + wait, n_errors=min(again + 1, 255))

    def _again(self, page: int, state: int) -> int:
        """Put a page into a state in which its visit ended; return how many in a row before it had ended so."""
        again = self._known.pages.n_errors.item(page) if self._known.pages.state.item(page) == state else 0
        self._known.pages.state[page] = state
        return int(again)


def _backing_off(again: int, first: float, longest: float) -> float:
    return float(min(first * 2.0 ** min(again, 60), max(longest, first)))
