"""Tombstones: what was forgotten on purpose and must not come back by itself."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

__all__ = ["KINDS", "Tombstone", "Tombstones", "host_of", "pattern"]

#: What can be forgotten for good: one URL, every URL of a pattern, every URL of a host.
KINDS = ("url", "pattern", "host")


def host_of(url: str) -> str:
    """Give a URL's host in lower case, without port and user.

    >>> host_of("https://me@Example.com:8080/a")
    'example.com'
    """
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def pattern(text: str) -> "re.Pattern[str]":
    """Make a pattern over whole URLs, in which ``*`` stands for anything and all else for itself.

    >>> found = pattern("https://example.com/old/*?id=*")
    >>> bool(found.fullmatch("https://example.com/old/a?id=1")), bool(found.fullmatch("https://example.com/old/a"))
    (True, False)
    """
    first, *others = (re.escape(part) for part in text.split("*"))
    if not others:
        return re.compile(first)
    # The first place that fits is as good as any other, so nothing is tried twice, whatever the URL.
    between = "".join(f"(?>.*?{part})" for part in others[:-1])
    return re.compile(f"{first}{between}.*{others[-1]}", re.DOTALL)


class Tombstone(NamedTuple):
    """What was forgotten: one of `KINDS`, the URL, pattern or host, and when, in POSIX seconds."""

    kind: str
    value: str
    created_at: float


class Tombstones:
    """Finds out quickly which URLs were forgotten.

    Examples
    --------
    >>> stones = Tombstones([Tombstone("host", "example.com", 5.0), Tombstone("pattern", "*/private/*", 6.0)])
    >>> stones.cover(["http://example.com/a", "http://b.org/", "http://b.org/private/x"])
    [True, False, True]
    >>> stones.covering("http://b.org/private/x")
    Tombstone(kind='pattern', value='*/private/*', created_at=6.0)
    """

    def __init__(self, stones: Iterable[Tombstone] = ()) -> None:
        self._stones: dict[tuple[str, str], Tombstone] = {}
        self._patterns: dict[Tombstone, re.Pattern[str]] = {}
        for stone in stones:
            self.add(*stone)

    def add(self, kind: str, value: str, created_at: float) -> None:
        """Add one."""
        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}; it has to be one of {', '.join(KINDS)}.")
        stone = Tombstone(kind, value, created_at)
        self._stones[stone[:2]] = stone
        if kind == "pattern":
            # A new dictionary: another thread may be going through the old one.
            self._patterns = {**self._patterns, stone: pattern(value)}

    def take(self, kind: str, value: str) -> bool:
        """Take one away; say whether it was there."""
        found = self._stones.pop((kind, value), None)
        self._patterns = {stone: compiled for stone, compiled in self._patterns.items() if stone != found}
        return found is not None

    def __len__(self) -> int:
        return len(self._stones)

    def __iter__(self) -> Iterator[Tombstone]:
        return iter(sorted(self._stones.values(), key=lambda stone: stone.created_at))

    def cover(self, urls: Sequence[str]) -> list[bool]:
        """Say for each URL whether it was forgotten."""
        return [self.covering(url) is not None for url in urls]

    def covering(self, url: str) -> Tombstone | None:
        """Return what a URL was forgotten by; None: it was not."""
        if not self._stones:
            return None
        found = self._stones.get(("url", url)) or self._stones.get(("host", host_of(url)))
        return found or next((stone for stone, compiled in self._patterns.items() if compiled.fullmatch(url)), None)
