"""Sources that pages name: which of them are read."""

from __future__ import annotations

__all__ = ["NamedByPages"]

# The first source of a host is read when one page names it, the next when two others do, then four and so on, so that
# those of many pages come first; a host has no more than so many.
_MOST_OF_A_HOST = 5
# Of so many that were named it is remembered which pages did.
_MOST_REMEMBERED = 10_000


class NamedByPages:
    """Counts which pages name a feed or sitemap that is not read yet.

    Examples
    --------
    >>> named = NamedByPages()
    >>> named.is_wanted("https://a.example/feed", page=1, n_taken=0)
    True
    >>> [named.is_wanted("https://a.example/news.xml", page, n_taken=1) for page in (1, 1, 2)]
    [False, False, True]
    """

    def __init__(self) -> None:
        self._pages: dict[str, set[int]] = {}

    def is_wanted(self, url: str, page: int, n_taken: int) -> bool:
        """Note that a page names a source; return whether to read it, given how many of its kind the host has."""
        if n_taken >= _MOST_OF_A_HOST:
            return False
        pages = self._pages.pop(url, set())
        pages.add(page)
        if len(pages) >= 2**n_taken:
            return True
        self._pages[url] = pages  # last in line
        if len(self._pages) > _MOST_REMEMBERED:
            del self._pages[next(iter(self._pages))]
        return False
