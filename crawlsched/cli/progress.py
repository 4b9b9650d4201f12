"""Progress: how far a long run has come, on standard error."""

import sys
from collections.abc import Callable
from time import monotonic

from crawlsched.wording import say_duration

__all__ = ["shown_progress"]

# Seconds until the first line, and between two.
_FIRST, _PAUSE = 2.0, 10.0


def shown_progress(name: str) -> Callable[[int, int | None], None]:
    """Return a function of (done, total) that says how far a run has come; a total of None: nobody knows.

    It prints a line after two seconds, then one every ten.
    """
    began = monotonic()
    following = began + _FIRST

    def show(done: int, total: int | None) -> None:
        nonlocal following
        now = monotonic()
        if now < following or done in (0, total):
            return
        following = now + _PAUSE
        if total is None:
            text = f"going on for {say_duration(now - began)}"
        else:
            left = (now - began) * (total - done) / done
            text = f"{done / total:.0%} done, about {say_duration(left)} left"
        print(f"{name}: {text}", file=sys.stderr, flush=True)

    return show
