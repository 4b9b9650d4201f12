"""Ctrl-C that ends a command wherever it comes."""

from __future__ import annotations

import sys
from _thread import interrupt_main
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

__all__ = ["interruption_felt"]

# Seconds; what could not be interrupted is over by then.
_LATER = 0.05


@contextmanager
def interruption_felt() -> Iterator[None]:
    """Let no interruption be lost: one that comes while an object is destroyed comes once more.

    Python can raise nothing there, and only says on standard error that it was ignored. While numba compiles, which
    takes seconds, that is where it comes rather often.
    """
    before = sys.unraisablehook

    def come_again(unraisable: Any) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            before(unraisable)
            return
        timer = Timer(_LATER, interrupt_main)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = come_again
    try:
        yield
    finally:
        sys.unraisablehook = before
