"""The C library's heap: one for all threads, which gives back what was needed for a moment."""

from __future__ import annotations

import ctypes

__all__ = ["give_memory_back", "share_one_heap"]

_M_ARENA_MAX = -8


def share_one_heap() -> None:
    """Let all threads that begin from now on use one heap; nothing where the C library is another than glibc.

    glibc gives each thread its own, and Python's lock lets hardly two of them allocate at a time. What the threads that
    write, read and plan leave between the pieces in use made a crawl of 400 pages grow by 1.4 % in ten minutes.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)


def give_memory_back() -> None:
    """Give memory back to the machine that was needed for a moment and is kept by the C library for later."""
    # Reading the rows needs 30 bytes a page, and a plan 27 MB; glibc can be told to let go of them, which takes a ms.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
