"""Sitemap indexes: the sitemaps that need not be fetched, because their index states no newer date."""

from __future__ import annotations

from crawlsched.crawl.sources import Sources
from crawlsched.store import Source

__all__ = ["SKIPPED_FOR", "SitemapIndexes"]

#: After this number of its intervals a sitemap is read even if its index states no newer date, to test the index.
SKIPPED_FOR = 8.0
# An index is believed while what it was caught at is at most this share of what was looked at.
_MOST_MISSED = 0.1
# About this number of looks is remembered, so that an index which becomes honest is believed again.
_REMEMBERED = 40.0


class SitemapIndexes:
    """What the dates in sitemap indexes have proved to be worth.

    Notes
    -----
    A sitemap that had something new although its index stated the old date was missed by the index, if the index states
    the old date still when it is read the next time; before that, it may simply not have been asked.

    Examples
    --------
    >>> sources = Sources(interval=3600.0)
    >>> index = sources.add("sitemap", "https://a/index.xml", "a", now=0.0)
    >>> child = sources.add("sitemap", "https://a/1.xml", "a", now=0.0, parent=index.source)
    >>> indexes = SitemapIndexes(sources)
    >>> indexes.listed(child.source, 1_790_000_000.0), indexes.read(child.source, brought=True)
    (True, None)
    >>> indexes.may_skip(child.source), indexes.listed(child.source, 1_790_000_000.0)
    (True, False)
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._suspects: dict[int, set[int]] = {}

    def listed(self, child: int, lastmod: float | None) -> bool:
        """Note the date that an index states for a sitemap; return whether to read the sitemap."""
        source = self._sources[child]
        if source.listed_lastmod != lastmod:
            source = self._sources.describe(child, listed_lastmod=lastmod)
        return lastmod is not None and lastmod != source.read_lastmod

    def listed_again(self, index: int) -> None:
        """An index was read to its end: count the changes that it still misses."""
        for child in self._suspects.pop(index, ()):
            source = self._sources[child]
            if source.listed_lastmod == source.read_lastmod:
                self._looked(index, missed=True)

    def read(self, child: int, *, brought: bool) -> None:
        """A sitemap was read, and `brought` something new or not."""
        source = self._sources[child]
        if source.parent is None or source.listed_lastmod is None:
            return
        if source.listed_lastmod != source.read_lastmod:
            self._sources.describe(child, read_lastmod=source.listed_lastmod)
        elif brought:
            self._suspects.setdefault(source.parent, set()).add(child)
        else:
            self._looked(source.parent, missed=False)

    def may_skip(self, child: int) -> bool:
        """Whether the index above a sitemap states no newer date, and can be believed."""
        source = self._sources[child]
        if source.parent is None or source.listed_lastmod is None or source.listed_lastmod != source.read_lastmod:
            return False
        held, missed = _looks(self._sources[source.parent])
        return missed <= _MOST_MISSED * (held + missed)

    def _looked(self, index: int, *, missed: bool) -> None:
        quality = self._sources[index].quality
        held, n_missed = _looks(self._sources[index])
        fading = 1.0 - 1.0 / _REMEMBERED
        looks = {"held": held * fading + (not missed), "missed": n_missed * fading + missed}
        self._sources.describe(index, quality={**quality, "index": looks})


def _looks(index: Source) -> tuple[float, float]:
    looks = index.quality.get("index", {})
    return looks.get("held", 0.0), looks.get("missed", 0.0)
