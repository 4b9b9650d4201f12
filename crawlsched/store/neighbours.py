"""What pages have heard of their neighbours, as one value: of each page crawled sixteen others hear.

So it is not written with the pages, but when a crawl ends. After one that did not end well nothing has been heard yet.
"""

from __future__ import annotations

import zlib

import numpy as np

__all__ = ["packed", "unpacked"]

_WIDTH = 4  # bytes a page, as `crawlsched.planner.evidence.neighbours` has them
_QUICKLY = 1  # most of it are repetitions
_ROWS_AT_ONCE = 2**18


def packed(last_change: str | None, heard: np.ndarray) -> bytes | None:
    """Return what pages have heard, to be believed for as long as `last_change` is what it is.

    Parameters
    ----------
    last_change : str or None
        `Store.last_change`.
    heard : ndarray of uint8, shape (n, 4)

    Returns
    -------
    bytes or None
        None if nobody has heard anything.

    Examples
    --------
    >>> known = packed("a change", np.array([[0, 0, 0, 0], [1, 0, 200, 40]], np.uint8))
    >>> unpacked("a change", known)
    array([[  0,   0,   0,   0],
           [  1,   0, 200,  40]], dtype=uint8)
    >>> unpacked("another change", known)
    """
    if last_change is None or not heard.any():
        return None
    packing = zlib.compressobj(_QUICKLY)
    parts = [
        packing.compress(heard[begin : begin + _ROWS_AT_ONCE].tobytes())
        for begin in range(0, heard.shape[0], _ROWS_AT_ONCE)
    ]
    return b"".join([_mark(last_change), *parts, packing.flush()])


def unpacked(last_change: str | None, known: bytes | None) -> np.ndarray | None:
    """Return what `packed` was given; None if pages have been changed since, or if it is damaged."""
    if last_change is None or known is None or not known.startswith(mark := _mark(last_change)):
        return None
    try:
        heard = bytearray(zlib.decompress(memoryview(known)[len(mark) :]))
    except zlib.error:
        return None
    return None if len(heard) % _WIDTH else np.frombuffer(heard, np.uint8).reshape(-1, _WIDTH)


def _mark(last_change: str) -> bytes:
    return last_change.encode() + b"\0"
