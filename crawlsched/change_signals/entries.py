"""Entries: what a sitemap says of each page, as parallel lists."""

from dataclasses import dataclass, field

__all__ = ["SitemapChildren", "SitemapEntries"]


@dataclass(slots=True)
class SitemapChildren:
    """The sitemaps that an index lists: one list per fact, all of the same length.

    Parameters
    ----------
    lastmod : list of float or None
        POSIX seconds; None if missing or no date. A child whose `lastmod` is unchanged need not be fetched again,
        where the index proved honest.
    """

    url: list[str] = field(default_factory=list)  # absolute http or https URLs, each once
    lastmod: list[float | None] = field(default_factory=list)
    lastmod_text: list[str | None] = field(default_factory=list)  # the date as it was written; None if missing
    precision: list[str | None] = field(default_factory=list)  # whether `lastmod` names a time of day

    def __len__(self) -> int:
        return len(self.url)


@dataclass(slots=True)
class SitemapEntries(SitemapChildren):
    """What a sitemap says of its pages: the same, and two facts more.

    Examples
    --------
    >>> len(SitemapEntries(["http://a/"], [0.0], ["1970-01-01"], ["day"], [None], [None]))
    1
    """

    priority: list[float | None] = field(default_factory=list)  # from 0 to 1
    changefreq: list[str | None] = field(default_factory=list)  # as it was written, in lower case
