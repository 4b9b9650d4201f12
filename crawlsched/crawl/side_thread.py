"""Work that must not hold up the slots: done in another thread, or in steps between two slots."""

from __future__ import annotations

import ctypes
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from crawlsched.crawl.guard import Guard

__all__ = ["SLICE", "STEP", "Aside", "LongWork", "give_memory_back", "share_one_heap"]

logger = logging.getLogger(__name__)


#: Long work runs for this number of seconds, and then rests equally long, so that no slot is late.
SLICE = 0.002
#: A step handles this number of items. An item takes 50 microseconds, so a step takes at most a millisecond.
STEP = 16

_T = TypeVar("_T")
_Job = tuple[Future[Any], Callable[[], Any]]


class Aside:
    """Runs functions in one other thread, one after the other.

    `then` is called when the crawling thread calls `collect`. So only the crawling thread uses the arrays, and they
    need no lock. The guard reports failures.

    Examples
    --------
    >>> aside = Aside(Guard(lambda name: None, clock=lambda: 0.0))
    >>> aside.run("adding", lambda: 1 + 1, then=print)
    >>> aside.close()
    2
    True
    """

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._running: deque[tuple[str, Future[Any], Callable[[], object]]] = deque()
        # A daemon: a function that hangs (a database that does not answer) does not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name="crawlsched-aside", daemon=True)
        self._thread.start()

    def run(self, name: str, function: Callable[[], _T], then: Callable[[_T], object] = lambda result: None) -> None:
        """Run a function in the other thread, after all earlier functions."""
        future: Future[_T] = Future()
        self._running.append((name, future, lambda: then(future.result())))
        self._jobs.put((future, function))

    def is_busy_with(self, name: str) -> bool:
        """Whether a function of this name is under way, so that a timer need not ask for it a second time."""
        return any(running == name for running, *_ in self._running)

    def collect(self) -> None:
        """Call `then` for every function that has ended."""
        while self._running and self._running[0][1].done():
            name, _, follow = self._running.popleft()
            self._guard.run(name, follow)

    def close(self, timeout: float | None = None) -> bool:
        """Wait at most `timeout` seconds for functions under way, and call `then`; return whether all have ended."""
        self._jobs.put(None)
        self._thread.join(timeout)
        self.collect()
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, function = job
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
            # The result may be large, so it is released before the thread waits for another function.
            del job, future, function


def share_one_heap() -> None:
    """Let all threads that begin from now on use one heap; without glibc it does nothing.

    glibc gives each thread a heap of its own, although Python's global lock lets only one thread allocate at a time. In
    each heap, unused memory stays between pieces in use. This made a crawl of 400 pages grow by 1.4 % in ten minutes.
    """
    m_arena_max = -8  # its number in glibc's malloc.h
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(m_arena_max, 1)


def give_memory_back() -> None:
    """Give back memory that was needed for a moment and that the C library keeps for later."""
    # Reading the rows needs 30 bytes a page, and making a plan needs 27 MB. glibc returns this memory to the system on
    # request, which takes a millisecond.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class LongWork:
    """Pieces of work in line, each an iterator whose steps take a millisecond at most.

    Examples
    --------
    >>> work = LongWork(clock=lambda: 0.0, has_room=lambda: True)
    >>> work.begin = lambda: print("go_on has to be called from now on")
    >>> work.add(iter([None]))
    go_on has to be called from now on
    >>> work.go_on(), work.has_work
    (False, False)
    """

    def __init__(self, clock: Callable[[], float], has_room: Callable[[], bool]) -> None:
        self._clock = clock
        self._has_room = has_room
        self._pieces: deque[Iterator[None]] = deque()
        #: Called when work comes in: `go_on` has to be called from then on.
        self.begin: Callable[[], object] = lambda: None

    @property
    def has_work(self) -> bool:
        """Whether something waits to be done."""
        return bool(self._pieces)

    def add(self, steps: Iterator[None]) -> None:
        """Take a piece of work in."""
        self._pieces.append(steps)
        self.begin()

    def go_on(self, seconds: float = SLICE) -> bool:
        """Work for about `seconds`, no faster than the store takes the results; return whether work remains."""
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
