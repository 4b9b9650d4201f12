"""Endings: visits that did not reach content, and pages that back off for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import IndexArray
from crawlsched.pages import ERROR, GONE, LAST_TRIES, LIVE, MOVED, REFUSED, STATE_NAMES
from crawlsched.planner.knowledge import DAY, Knowledge

__all__ = ["Endings"]

_LONGEST_ERROR_INTERVAL = DAY
_LONGEST_GONE_INTERVAL = 30 * DAY
# After so many visits in a row without content a page is said to fail.
_FAILING_FROM = 3


class Endings:
    """Let pages be tried again ever later.

    Parameters
    ----------
    known : Knowledge
    error_interval, gone_interval : float
        A page is tried again so many seconds after an error, or after it was found gone, refused or moved; then after
        twice as many. One that had been there before it was gone or refused is tried as soon as after an error.
    """

    def __init__(self, known: Knowledge, error_interval: float, gone_interval: float) -> None:
        self._known = known
        self.error_interval, self.gone_interval = error_interval, gone_interval

    def failed(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """A visit did not reach content: the page backs off.

        Parameters
        ----------
        page : int
        now : float
        retry_at : float, optional
            Not to be tried earlier.
        of_host : bool
            Its host fails as a whole, and says by `retry_at` when it may be asked again: the page waits no longer.
        """
        self._back_off(page, ERROR, now, self.error_interval, _LONGEST_ERROR_INTERVAL, retry_at, of_host)
        self._known.end_visit(page, self._known.at(now))

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
        kept = {name: columns[name] for name in ("crawled_at", "n_crawls", "n_changes", "n_signals")}
        self._known.pages.set_rows(rows, kept)
        self._known.own_precision.load(rows, columns)
        self._known.posterior.unpack(rows, columns["log_likelihood"])
        if not self._known.in_flight.intersection(rows.tolist()):
            self.failed(int(rows[0]), now)

    def gone(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """A visit was told that the page is gone: it is looked for ever more rarely; see `failed`."""
        self._left(page, GONE, now, retry_at, of_host)

    def moved(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """A visit was sent elsewhere for good: the page is looked for ever more rarely; see `failed`."""
        self._left(page, MOVED, now, retry_at, of_host)

    def _left(self, page: int, state: int, now: float, retry_at: float | None, of_host: bool) -> None:
        now = self._known.at(now)
        self._look_later(page, state, now, retry_at, of_host)
        if state == MOVED or not self._known.pages.n_crawls.item(page):
            self._known.pages.crawled_at[page] = now
        self._known.end_visit(page, now)

    def refused(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """A visit was refused: it is tried ever more rarely; see `failed`."""
        now = self._known.at(now)
        self._look_later(page, REFUSED, now, retry_at, of_host)
        self._known.end_visit(page, now)

    def not_allowed(self, page: int, now: float, retry_at: float | None = None, *, of_host: bool = False) -> None:
        """A visit was refused before it left, as by robots.txt: it is tried ever more rarely."""
        now = self._known.at(now)
        self._back_off(page, REFUSED, now, self.gone_interval, _LONGEST_GONE_INTERVAL, retry_at, of_host)
        self._known.end_visit(page, now)

    def ask_soon(self, pages: IndexArray, now: float) -> None:
        """Let pages that wait after a failure go now."""
        now = self._known.at(now)
        self._known.pages.not_before[pages] = now
        self._known.refile(pages, now)

    def standing(self, page: int) -> str:
        """Say what is to be thought of a page that has had a copy: live, failing, gone or moved."""
        pages = self._known.pages
        state = pages.state.item(page)
        if state == LIVE or not pages.n_crawls.item(page):
            return "live"
        if state in (GONE, MOVED):
            return STATE_NAMES[state]
        return "failing" if pages.n_errors.item(page) >= _FAILING_FROM else "live"

    def release(self, page: int, now: float) -> None:
        """A visit was dropped: the page is as if it had not been picked."""
        self._known.end_visit(page, self._known.at(now))

    def _look_later(self, page: int, state: int, now: float, retry_at: float | None, of_host: bool) -> None:
        # What was there may be so again in a minute.
        was_there = state != MOVED and self._known.pages.n_crawls.item(page)
        first = min(self.error_interval, self.gone_interval) if was_there else self.gone_interval
        self._back_off(page, state, now, first, _LONGEST_GONE_INTERVAL, retry_at, of_host)

    def _back_off(
        self, page: int, state: int, now: float, first: float, longest: float, retry_at: float | None, of_host: bool
    ) -> None:
        now, again = self._known.at(now), self._again(page, state)
        wait = 0.0 if of_host else min(first * 2.0 ** min(again, 60), max(longest, first))
        # A page does not wait for long because its host fails.
        tries = max(again, min(again + 1, LAST_TRIES if of_host else 255))
        self._known.pages.set_rare(page, not_before=max(now + wait, retry_at or 0.0), n_errors=tries)

    def _again(self, page: int, state: int) -> int:
        """Put a page into a state in which its visit ended; return how many in a row before it had no content."""
        pages = self._known.pages
        # An error says nothing new of a page that is gone.
        if state in (GONE, MOVED) or pages.state.item(page) not in (GONE, MOVED):
            pages.state[page] = state
        return int(pages.n_errors.item(page))
