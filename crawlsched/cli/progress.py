"""Progress: how far a long run has come, on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

from crawlsched.cli.wording import say_duration

__all__ = ["shown_progress", "waited_for"]

# Seconds until the first line, and between two.
_FIRST, _PAUSE = 2.0, 10.0


@contextmanager
def shown_progress(name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Give a function of (done, total) that shows how far a run has come; a total of None: nobody knows.

    On a terminal with tqdm (extra ``progress``) it is a bar; otherwise a line after two seconds, then one now and then.

    Parameters
    ----------
    name : str
        What is shown before it.
    """
    if sys.stderr.isatty():
        try:
            from tqdm import tqdm
        except ImportError:
            pass
        else:
            with tqdm(desc=name, leave=False, file=sys.stderr) as bar:

                def move(done: int, total: int | None) -> None:
                    if bar.total != total:
                        bar.reset(total)
                    bar.update(done - bar.n)

                yield move
            return
    yield _Lines(name)


@contextmanager
def waited_for(name: str) -> Iterator[None]:
    """Say on a terminal, after two seconds, for how long a command goes on; the line goes when it ends.

    Whatever shows how far it has come writes over it.
    """
    if not sys.stderr.isatty():
        yield
        return
    began, ended = monotonic(), Event()

    def say() -> None:
        wait = _FIRST
        while not ended.wait(wait):
            passed = say_duration(round(monotonic() - began))
            print(f"\r{name}: going on for {passed}", end="", file=sys.stderr, flush=True)
            wait = 1.0

    thread = Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        if monotonic() > began + _FIRST:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _Lines:
    """Write a line after two seconds, and then each time that ten have passed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = monotonic()
        self._next = self._began + _FIRST

    def __call__(self, done: int, total: int | None) -> None:
        now = monotonic()
        if now < self._next or done in (0, total):
            return
        self._next = now + _PAUSE
        if total is None:
            text = f"going on for {say_duration(now - self._began)}"
        else:
            left = (now - self._began) * (total - done) / done
            text = f"{done / total:.0%} done, about {say_duration(left)} left"
        print(f"{self._name}: {text}", file=sys.stderr, flush=True)
