"""Stored texts of pages at their last two changes, so that the differences can be shown."""

from __future__ import annotations

import re
import zlib
from difflib import unified_diff

__all__ = ["differences", "packed", "unpacked"]

# Texts are compared sentence by sentence, since some texts are a single long line.
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n")


def packed(text: str, max_bytes: int) -> bytes:
    """Compress a text to at most `max_bytes` bytes; if it is too long, its end is cut off.

    Examples
    --------
    >>> unpacked(packed("Tea " * 1000, 100)) == "Tea " * 1000
    True
    >>> text = "".join(map(chr, range(65, 1000)))
    >>> len(packed(text, 100)) <= 100, text.startswith(unpacked(packed(text, 100)))
    (True, True)
    """
    data = text.encode("utf-8", "replace")
    compressed = zlib.compress(data)
    while len(compressed) > max_bytes:
        # The factor 0.9 is needed since a shorter text is compressed less well.
        data = data[: int(0.9 * len(data) * max_bytes / len(compressed))]
        compressed = zlib.compress(data) if data else b""
    return compressed


def unpacked(data: bytes) -> str:
    """Return the text that was packed."""
    return zlib.decompress(data).decode("utf-8", "ignore") if data else ""


def differences(before: bytes, after: bytes, context: int = 1) -> list[str]:
    """Return the lines that differ between two packed texts, with "-", "+" or " " in front, and "@@" before each place.

    >>> differences(packed("Tea. Now 3 euros.", 99), packed("Tea. Now 4 euros.", 99), context=0)
    ['@@ -2 +2 @@', '-Now 3 euros.', '+Now 4 euros.']
    """
    old, new = ([line for line in _SENTENCE_END.split(unpacked(text)) if line] for text in (before, after))
    return list(unified_diff(old, new, n=max(context, 0), lineterm=""))[2:]
