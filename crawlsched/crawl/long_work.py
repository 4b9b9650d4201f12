"""Long work: what takes longer than a slot may wait is done in steps, in the moments that the slots leave."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator

__all__ = ["LongWork"]

logger = logging.getLogger(__name__)


class LongWork:
    """Pieces of work in line, each an iterator whose steps take a millisecond at most.

    Examples
    --------
    >>> work = LongWork(clock=lambda: 0.0, is_open=lambda: True, has_room=lambda: True)
    >>> work.add(iter([None]))
    >>> work.go_on(0.001), work.has_work
    (False, False)
    """

    def __init__(self, clock: Callable[[], float], is_open: Callable[[], bool], has_room: Callable[[], bool]) -> None:
        self.on_work: Callable[[], None] | None = None
        self._clock = clock
        self._is_open = is_open
        self._has_room = has_room
        self._pieces: deque[Iterator[None]] = deque()

    @property
    def has_work(self) -> bool:
        """Whether something waits to be done."""
        return bool(self._pieces)

    def add(self, steps: Iterator[None]) -> None:
        """Take a piece of work in."""
        if self._is_open():
            self._pieces.append(steps)
            if self.on_work is not None:
                self.on_work()

    def go_on(self, seconds: float) -> bool:
        """Work for about `seconds`; return whether there is more. It is no faster than the store takes the results."""
        until = self._clock() + seconds
        while self._pieces and self._has_room():
            try:
                next(self._pieces[0])
            except StopIteration:
                self._pieces.popleft()
            except Exception:
                logger.exception("A piece of long work failed and is given up; the crawl goes on.")
                self._pieces.popleft()
            if self._clock() >= until:
                break
        return bool(self._pieces)
