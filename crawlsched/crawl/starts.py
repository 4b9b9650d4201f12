"""Starts: the first start requests, and what they lead to, go before the pages that are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf

__all__ = ["Starts"]

# Pages wait at most for this number of slots, or these seconds, whichever is longer.
_MOST_SLOTS = 100
_LONGEST_WAIT = 60.0


class Starts:
    """Who goes first in a run: for the `first` start requests, and untracked requests behind them, known pages wait.

    Examples
    --------
    >>> starts = Starts(first=1)
    >>> starts.begin(now=0.0, bandwidth=1.0)
    >>> starts.asked(page=7), starts.asked(page=8)
    (True, False)
    >>> starts.is_over
    False
    """

    def __init__(self, first: int) -> None:
        self._first = first
        self._until = inf
        self._n = 0
        self._n_waiting = 0
        self._pages: set[int] = set()
        self._tokens: set[int] = set()
        self.line: deque[int] = deque()
        self.has_ended = False
        self.is_over = first == 0

    def begin(self, now: float, bandwidth: float) -> None:
        """The slots begin."""
        self._until = now + max(_LONGEST_WAIT, _MOST_SLOTS / bandwidth)

    def asked(self, page: int = -1) -> bool:
        """start() made a request, for a page or for none (-1); return whether it goes first."""
        self._n += 1
        if self.is_over or self._n > self._first:
            return False
        if page >= 0 and page not in self._pages:
            self._pages.add(page)
            self.line.append(page)
        return True

    def untracked_waits(self) -> None:
        """A request that is no page, and that they led to, waits for its slot."""
        self._n_waiting += 1

    def untracked_refused(self) -> None:
        """It was filtered."""
        self._n_waiting -= 1

    def untracked_sent(self, token: int) -> None:
        """It goes out."""
        self._n_waiting -= 1
        self._tokens.add(token)

    def leads(self, page: int, token: object) -> bool:
        """Whether a response is of a start request that goes first, or of what it led to."""
        return not self.is_over and (page in self._pages or token in self._tokens)

    def look(self, now: float, is_under_way: Callable[[int], bool], is_open: Callable[[int], bool]) -> bool:
        """Look whether all that goes first has ended; return whether the others may go now."""
        if self.is_over:
            return True
        self._pages = {page for page in self._pages if page in self.line or is_under_way(page)}
        self._tokens = {token for token in self._tokens if is_open(token)}
        is_through = self.has_ended or self._n >= self._first
        if now >= self._until or (is_through and not (self._pages or self._tokens or self._n_waiting > 0)):
            self.is_over = True
            self._pages, self._tokens = set(), set()
            self.line.clear()
        return self.is_over
