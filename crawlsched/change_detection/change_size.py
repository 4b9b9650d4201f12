"""The size of a change: how much of a page's text is another one."""

from collections.abc import Iterable
from zlib import crc32

import numpy as np
import numpy.typing as npt

__all__ = ["SKETCH_SIZE", "sketch", "sketch_similarity"]

SKETCH_SIZE = 64
"""Hashes that a sketch keeps, 4 bytes each."""

_SHINGLE_WORDS = 3
_HASH = np.dtype(">u4")
# Odd numbers that make the order of the words in a shingle count, and those of the finalizer of splitmix64.
_PLACES = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)
_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def sketch(text: str) -> bytes:
    """Sketch a text for similarities when the text is gone: the `SKETCH_SIZE` smallest hashes of its shingles.

    Notes
    -----
    A sketch measures a change; it does not detect one. It misses most one-word edits of long pages.

    Examples
    --------
    >>> len(sketch("a b c d"))
    8
    """
    words = _hashed(text.split())
    if words.size < _SHINGLE_WORDS:
        words = np.append(words, np.zeros(_SHINGLE_WORDS - words.size, np.uint64)) if words.size else words
    n = max(words.size - _SHINGLE_WORDS + 1, 0)
    total = np.zeros(n, np.uint64)
    for place, factor in enumerate(_PLACES):
        total += words[place : place + n] * factor
    return _smallest(total)


def sketch_similarity(before: bytes, after: bytes) -> float:
    """Estimate the similarity of two texts from their sketches.

    It is the Jaccard similarity of their three-word shingles, exact for texts of at most `SKETCH_SIZE` shingles
    together; otherwise its standard error is about 0.06 at most.

    Examples
    --------
    >>> sketch_similarity(sketch("a b c d"), sketch("a b c e"))
    0.333...
    """
    # Sets of 64 numbers and not numpy's: those import a module of 9 ms at their first call, which is made on the event
    # loop, and take four times as long at each.
    one, two = (set(np.frombuffer(data, _HASH).tolist()) for data in (before, after))
    smallest = sorted(one | two)[:SKETCH_SIZE]
    both = one & two
    return sum(number in both for number in smallest) / len(smallest) if smallest else 1.0


def _hashed(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    # 32 bits that anybody can make collide are enough for a measure.
    return np.array([crc32(text.encode("utf-8", "surrogatepass")) for text in texts], np.uint64) + np.uint64(1)


def _smallest(values: npt.NDArray[np.uint64]) -> bytes:
    # Not `numpy.unique`, which hashes, and keeps the interpreter's lock for milliseconds while it does.
    ordered = np.sort(_mixed(values))
    first = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first][:SKETCH_SIZE].astype(_HASH).tobytes()


def _mixed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    for shift, mixer in zip((30, 27), _MIXERS, strict=True):
        values = (values ^ (values >> np.uint64(shift))) * mixer
    return (values ^ (values >> np.uint64(31))) >> np.uint64(32)
