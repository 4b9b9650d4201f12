"""Tombstones: what was forgotten on purpose and must not come back by itself."""

import re
from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

__all__ = ["KINDS", "Tombstones", "host_of", "pattern"]

#: What can be forgotten for good: one URL, every URL of a pattern, every URL of a host.
KINDS = ("url", "pattern", "host")


def host_of(url: str) -> str:
    """Give a URL's host in lower case, without port and user.

    Examples
    --------
    >>> host_of("https://me@Example.com:8080/a")
    'example.com'
    """
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def pattern(text: str) -> "re.Pattern[str]":
    """Make a pattern over whole URLs, in which ``*`` stands for anything and all else for itself.

    Examples
    --------
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


class Tombstones:
    """Says quickly which URLs were forgotten.

    Parameters
    ----------
    rows : iterable of (kind, value)

    Examples
    --------
    >>> stones = Tombstones([("host", "example.com"), ("pattern", "*/private/*")])
    >>> stones.cover(["http://example.com/a", "http://b.org/", "http://b.org/private/x"])
    [True, False, True]
    """

    def __init__(self, rows: Iterable[tuple[str, str]] = ()) -> None:
        self.urls: set[str] = set()
        self.hosts: set[str] = set()
        self.patterns: dict[str, re.Pattern[str]] = {}
        for kind, value in rows:
            self.add(kind, value)

    def add(self, kind: str, value: str) -> None:
        """Add one."""
        if kind == "url":
            self.urls.add(value)
        elif kind == "host":
            self.hosts.add(value.lower())
        elif kind == "pattern":
            # A new dictionary: another thread may be going through the old one.
            self.patterns = {**self.patterns, value: pattern(value)}
        else:
            raise ValueError(f"kind is {kind!r}; it has to be one of {', '.join(KINDS)}.")

    def __len__(self) -> int:
        return len(self.urls) + len(self.hosts) + len(self.patterns)

    def cover(self, urls: Sequence[str]) -> list[bool]:
        """Say for each URL whether it was forgotten."""
        return [self._covers(url) for url in urls] if len(self) else [False] * len(urls)

    def _covers(self, url: str) -> bool:
        if url in self.urls or (self.hosts and host_of(url) in self.hosts):
            return True
        return any(found.fullmatch(url) for found in self.patterns.values())
