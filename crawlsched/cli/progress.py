"""Progress: how far a long run has come, on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from crawlsched.cli.wording import say_duration

__all__ = ["shown_progress"]

# Seconds between two lines.
_PAUSE = 10.0


@contextmanager
def shown_progress(name: str) -> Iterator[Callable[[int, int], None]]:
    """Give a function of (done, total) that shows how far a run has come.

    On a terminal with tqdm (extra ``progress``) it is a bar; otherwise a line now and then.

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

                def move(done: int, total: int) -> None:
                    if bar.total != total:
                        bar.reset(total)
                    bar.update(done - bar.n)

                yield move
            return
    yield _Lines(name)


class _Lines:
    """Write a line when ten seconds have passed since the last one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._began = self._last = monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = monotonic()
        if now - self._last < _PAUSE or done in (0, total):
            return
        self._last = now
        left = (now - self._began) * (total - done) / done
        print(f"{self._name}: {done} of {total} done, about {say_duration(left)} left", file=sys.stderr, flush=True)
