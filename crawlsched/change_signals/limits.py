"""Limits: how much of a sitemap is read at most."""

from dataclasses import dataclass, fields

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a sitemap is read at most; what lies beyond is refused and reported, never read.

    Parameters
    ----------
    max_elements : int, default 5_000_000
        Elements, and repairs, of one document: a hundred for each of 50,000 entries. It bounds the time, as `max_bytes`
        does not: 50 MB can be 12 million elements.

    Examples
    --------
    >>> Limits(max_entries=1000).max_children
    50000
    """

    max_bytes: int = 52_428_800  # bytes after decompression; the default is the sitemap protocol's 50 MB
    max_entries: int = 50_000  # pages of one sitemap or feed; the default is the sitemap protocol's
    max_children: int = 50_000  # sitemaps of one index; the default is the sitemap protocol's
    max_depth: int = 64  # elements open at once
    max_elements: int = 5_000_000
    max_text: int = 8_192  # characters of one text (a URL, a date); the sitemap protocol allows URLs of 2,048
    max_index_depth: int = 5  # index files above one another; the sitemap protocol allows one

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{field.name} is {value!r}; a limit is a whole number of at least 1.")
