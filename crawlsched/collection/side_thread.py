"""Work beside the crawling thread: functions run in one other thread, and what follows is done back on this one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["Aside"]

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class Aside:
    """Run functions in one other thread, one after the other.

    What follows is not called when a function ends but when the crawling thread calls `collect`, so that nothing but
    the crawling thread ever touches the arrays, and no lock is needed.

    Examples
    --------
    >>> aside = Aside()
    >>> aside.run("adding", lambda: 1 + 1, then=print)
    True
    >>> aside.close()
    2
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="crawlsched-aside")
        self._running: dict[str, tuple[Future[Any], Callable[[Any], None] | None]] = {}

    def run(self, name: str, function: Callable[[], _T], then: Callable[[_T], None] | None = None) -> bool:
        """Run a function in the other thread; do nothing and return False while one of this name is under way."""
        if name in self._running:
            return False
        self._running[name] = (self._thread.submit(function), then)
        return True

    def collect(self) -> None:
        """Do what follows for every function that has ended."""
        if not self._running:
            return
        for name in [name for name, (future, _) in self._running.items() if future.done()]:
            future, then = self._running.pop(name)
            error = future.exception()
            if error is not None:
                logger.error("%s failed and will be tried again: %s", name.capitalize(), error)
            elif then is not None:
                then(future.result())

    def close(self) -> None:
        """Wait for what is under way, and do what follows."""
        self._thread.shutdown(wait=True)
        self.collect()
