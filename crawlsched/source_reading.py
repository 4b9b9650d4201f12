"""Reading a source: from the bytes of a sitemap to what it announces of which pages; runs in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import Limits, Problem, SitemapDocument, read_sitemap, robots_sitemaps
from crawlsched.page_index import PageIndex
from crawlsched.store import Source, Store

__all__ = ["SourceRead", "UnknownEntry", "read_source"]

# As many pages are asked for in one statement.
_AT_ONCE = 1000
# After so many URLs this thread rests for a moment (seconds): it has no hurry, and the slot clock has.
_AT_A_STRETCH = 20
_REST = 0.002
_NO_PAGES: NDArray[np.intp] = np.empty(0, np.intp)


class UnknownEntry(NamedTuple):
    """An entry whose URL is no page yet."""

    url: str
    request_fingerprint: bytes
    lastmod: float | None
    priority: float | None


@dataclass(slots=True)
class SourceRead:
    """What a source says.

    Attributes
    ----------
    digest : bytes
        Of the body: the same bytes say the same.
    usable : bool
        Whether anything could be read.
    children : list of str
        Sitemaps that it names and that have to be read, too.
    pages : ndarray of int
        Known pages that it names.
    announced : ndarray of bool
        Which of them it announces a change of: their lastmod differs from the stored one.
    lastmod, priority : list of float or None
        As it states them now, by page.
    n_announced : list of int
        How often each page's lastmod was seen to differ, this time included.
    unknown : list of UnknownEntry
        Entries whose URLs are no pages yet.
    problems : sequence of Problem
        What was wrong with it.
    """

    digest: bytes
    usable: bool = True
    children: list[str] = field(default_factory=list)
    pages: NDArray[np.intp] = field(default_factory=lambda: _NO_PAGES)
    announced: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    lastmod: list[float | None] = field(default_factory=list)
    priority: list[float | None] = field(default_factory=list)
    n_announced: list[int] = field(default_factory=list)
    unknown: list[UnknownEntry] = field(default_factory=list)
    problems: Sequence[Problem] = ()


def read_source(
    source: Source,
    url: str,
    body: bytes,
    *,
    request_fingerprint: Callable[[str], bytes],
    index: PageIndex,
    store: Store,
    max_bytes: int,
    max_entries: int,
    ancestors: Sequence[str] = (),
) -> SourceRead:
    """Read a sitemap, an index of sitemaps, or a robots.txt.

    `ancestors` are the URLs of the indexes above it: one that lists any of them is a loop.

    Nothing is changed. The crawling thread goes on adding pages meanwhile; it looks again before it adds an entry that
    was unknown here.
    """
    digest = blake2b(body, digest_size=16).digest()
    if digest == source.fingerprint:
        return SourceRead(digest)
    if source.kind == "robots":
        return SourceRead(digest, children=robots_sitemaps(body, url))
    limits = Limits(max_bytes=max_bytes, max_entries=max_entries)
    document = read_sitemap(body, url, limits, ancestors=tuple(ancestors))
    read = SourceRead(
        digest,
        usable=document.kind != "unknown",
        children=list(document.children.url),
        problems=document.problems,
    )
    _look_up(read, document, source, request_fingerprint, index, store)
    return read


def _look_up(
    read: SourceRead,
    document: SitemapDocument,
    source: Source,
    request_fingerprint: Callable[[str], bytes],
    index: PageIndex,
    store: Store,
) -> None:
    entries = document.entries
    known: dict[int, int] = {}  # page to entry; two spellings of one URL are one page, and the first counts
    for number, url in enumerate(entries.url):
        if number % _AT_A_STRETCH == 0:
            time.sleep(_REST)
        name = request_fingerprint(url)
        page = index.page(name)
        if page >= 0:
            known.setdefault(page, number)
        else:
            read.unknown.append(UnknownEntry(url, name, entries.lastmod[number], entries.priority[number]))
    read.pages = np.fromiter(known, np.intp, len(known))
    read.lastmod = [entries.lastmod[number] for number in known.values()]
    read.priority = [entries.priority[number] for number in known.values()]
    _compare(read, source, store)


def _compare(read: SourceRead, source: Source, store: Store) -> None:
    """Find the announcements: a lastmod that differs from the stored one.

    "Later than the last crawl" would miss changes, since a lastmod often lags publishing by days. The first sight of a
    page announces nothing, and an entry without a date never does.
    """
    stated = np.array([np.nan if value is None else value for value in read.lastmod])
    announced = np.zeros(len(stated), bool)
    counts = np.zeros(len(stated), np.int64)
    for start in range(0, len(stated), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        seen, before, n = store.announcements_for(read.pages[part], source.source)
        announced[part] = seen & ~np.isnan(stated[part]) & ~np.isnan(before) & (stated[part] != before)
        counts[part] = n + announced[part]
        # An entry that lost its date keeps the one it had, so that a date which comes back is not news.
        kept = np.isnan(stated[part]) & ~np.isnan(before)
        stated[part] = np.where(kept, before, stated[part])
    read.announced = announced
    read.n_announced = counts.tolist()
    read.lastmod = [None if np.isnan(value) else float(value) for value in stated]
