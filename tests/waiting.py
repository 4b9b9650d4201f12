"""Waiting for what has to come to be so, on a machine however busy."""

import time
from collections.abc import Callable


def wait_until(is_so: Callable[[], object], seconds: float = 30.0, say: Callable[[], object] = str) -> None:
    """Look again and again whether something is so; after so many seconds fail, with what is said then."""
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"It never came to be so. {say()}"
        time.sleep(0.02)
