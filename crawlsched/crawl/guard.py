"""The guard runs tasks again and again, so that no exception ends a task in silence."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from crawlsched.exceptions import CrawlschedError
from crawlsched.showing import in_words

__all__ = ["PATIENCE", "SLOTS_OF_PATIENCE", "Guard"]

logger = logging.getLogger(__name__)


class Guard:
    """Runs timers, callbacks and jobs: an exception is logged and counted, and the next run is not affected.

    A task that fails `most` times in a row, and for these `seconds`, ends the crawl. After a `CrawlschedError`, such as
    that of a database that does not answer, the crawl waits instead.

    Examples
    --------
    >>> guard = Guard(lambda name: None, clock=lambda: 0.0)
    >>> guard.run("the flush", lambda: print("written"))
    written
    True
    """

    def __init__(
        self, count: Callable[..., None], clock: Callable[[], float], most: int = 5, seconds: float = 10.0
    ) -> None:
        self.give_up: Callable[[str, str], None] | None = None
        self._most, self._seconds = most, seconds
        self._count = count
        self._clock = clock
        # By the name of each failing task: when its failures in a row began, and how many there were.
        self._episodes: dict[str, tuple[float, int]] = {}

    def run(self, name: str, function: Callable[[], Any]) -> bool:
        """Run a function; return whether it ended without an exception. Failures in a row are counted by `name`."""
        try:
            function()
        except Exception as error:
            self.failed(name, error)
            return False
        self.worked(name)
        return True

    def worked(self, name: str) -> None:
        """Note that a task has succeeded, which ends its failures in a row."""
        if self._episodes and name in self._episodes:
            _, failures = self._episodes.pop(name)
            logger.warning("%s works again after %d failures.", _capital(name), failures)

    def failed(self, name: str, error: Exception) -> None:
        """Count a failure, log the first in a row, and end the crawl if there are too many in a row."""
        now = self._clock()
        self._count("crawlsched/failures")
        before = self._episodes.get(name)
        began, failures = (now, 1) if before is None else (before[0], before[1] + 1)
        self._episodes[name] = began, failures
        expected = isinstance(error, CrawlschedError)
        if before is None:
            logger.error("%s failed: %s", _capital(name), in_words(error), exc_info=None if expected else error)
        is_hopeless = failures >= self._most and now - began >= self._seconds
        if not expected and is_hopeless and self.give_up is not None:
            self.give_up(
                "crawlsched_failed",
                f"{_capital(name)} has failed {failures} times in a row within {now - began:.0f} s, the last time with "
                f"{in_words(error)}; the crawl ends, so that it does not go on in silence without this part.",
            )


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]


#: A waiting request is given up after this number of seconds, or after this number of slots if they take longer. It may
#: have to wait for a robots.txt first, and then for its own turn.
PATIENCE, SLOTS_OF_PATIENCE = 60.0, 4.0
