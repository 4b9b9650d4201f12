"""Cursors: positions in the feed, one in each shard, as a text that can be kept anywhere."""

from __future__ import annotations

import re
from collections.abc import Mapping

from crawlsched.exceptions import CrawlschedError
from crawlsched.settings.values import read_date, read_seconds

__all__ = ["Cursor", "read_since"]

_CURSOR = re.compile(r"[0-9]{1,9}:[0-9]{1,18}(,[0-9]{1,9}:[0-9]{1,18})*")
_ALLOWED = (
    "since must be a duration such as 2h, a time such as 2026-11-25T07:00Z (UTC where it names no zone), or a cursor "
    "such as 0:1234"
)


class Cursor:
    """A position in each shard: the number of the last change that was read there; 0 for a shard never read.

    >>> cursor = Cursor.read("0:12,3:7")
    >>> cursor[0], cursor[1], str(cursor.after(1, 5))
    (12, 0, '0:12,1:5,3:7')
    """

    def __init__(self, positions: Mapping[int, int]) -> None:
        self.positions = dict(positions)

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Read a cursor as `str` writes it."""
        if _CURSOR.fullmatch(text) is None:
            raise CrawlschedError(f"{_ALLOWED}, got {text!r}.")
        pairs = [part.split(":") for part in text.split(",")]
        return cls({int(shard): int(position) for shard, position in pairs})

    def __getitem__(self, shard: int) -> int:
        return self.positions.get(shard, 0)

    def __str__(self) -> str:
        return ",".join(f"{shard}:{position}" for shard, position in sorted(self.positions.items())) or "0:0"

    def after(self, shard: int, position: int) -> Cursor:
        """Return the cursor of somebody who has read up to this position, too."""
        return Cursor({**self.positions, shard: position})


def read_since(text: str, now: float) -> Cursor | float:
    """Read where in the feed to begin: a cursor, a time, or a duration before now; times in POSIX seconds.

    >>> read_since("2h", now=10_000.0), read_since("1970-01-01T01:00Z", now=0.0), str(read_since("0:7", now=0.0))
    (2800.0, 3600.0, '0:7')
    """
    text = text.strip()
    if _CURSOR.fullmatch(text):
        return Cursor.read(text)
    # A duration has a unit; a bare number can only be a year, which nobody means, or POSIX seconds, which nobody types.
    if re.fullmatch(r"[0-9.]+\s*(s|m|min|h|d)", text):
        try:
            return now - read_seconds(text)
        except ValueError:
            raise CrawlschedError(f"{_ALLOWED}, got {text!r}.") from None
    try:
        return read_date(text)
    except (ValueError, OverflowError):
        raise CrawlschedError(f"{_ALLOWED}, got {text!r}.") from None
