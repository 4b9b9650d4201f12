"""Reading sources: from the bytes of a sitemap to announcements, and from a page to the sources that it names."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any
from urllib.parse import urljoin, urlsplit

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import (
    Problem,
    SitemapDocument,
    announces,
    ascii_host,
    is_web_url,
    read_robots,
    read_sitemap,
    text_mark,
)
from crawlsched.change_signals.problems import MAX_EXAMPLE
from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.fingerprints import without_parameters
from crawlsched.crawl.side_thread import SLICE, STEP
from crawlsched.slot_clock import DAY
from crawlsched.store import Source, host_of
from crawlsched.store.rows import ROWS_AT_ONCE

__all__ = [
    "SourceRead",
    "linked_sources",
    "read_source",
]

#: The request fingerprint of a URL, and its pages.
KnownAs = Callable[[str], tuple[bytes, Sequence[int]]]
#: Reads from the database the last announcements of pages by a source.
AnnouncedBefore = Callable[[NDArray[np.intp], int], tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]
# An entry: its URL, its date in POSIX seconds, whether that names a time of day, and its text.
_Entry = tuple[str, float | None, str | None, str | None]
_NO_PAGES: NDArray[np.intp] = np.empty(0, np.intp)


@dataclass(slots=True)
class SourceRead:
    """The content of a source."""

    digest: bytes  # of the body: the same bytes say the same
    document: SitemapDocument
    pages: NDArray[np.intp] = field(default_factory=lambda: _NO_PAGES)  # known pages that it names
    # Which of them it announces a change of: their lastmod differs from the stored one.
    announced: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    # Their dates as stated now, by page; for a date that cannot be read, the `text_mark` of its text.
    lastmod: list[float | None] = field(default_factory=list)
    # How often each page's lastmod was seen to differ, this time included.
    n_announced: list[int] = field(default_factory=list)
    # URLs that are no pages yet, and their dates.
    unknown: list[tuple[FoundPage, float | None]] = field(default_factory=list)


def read_source(
    source: Source,
    url: str,
    body: bytes,
    *,
    known_as: KnownAs,
    announced_before: AnnouncedBefore,
    ancestors: Sequence[str] = (),
    hosts: Collection[str] = (),
) -> SourceRead:
    """Read a sitemap, an index of sitemaps, or a robots.txt; change nothing.

    An index that lists any of its `ancestors` is a loop. The document may also list pages of `hosts`, whose robots.txt
    files name it. `known_as` gives the request fingerprint of a URL and its pages, and `announced_before` what a
    source last stated of pages (`Reader.announcements_for`). The crawling thread may add pages meanwhile, so it checks
    again before it adds an unknown entry.
    """
    digest = blake2b(body, digest_size=16).digest()
    if digest == source.fingerprint:
        return SourceRead(digest, SitemapDocument(url, "unknown"))
    if source.kind == "robots":
        document = read_robots(body, url)
    else:
        document = read_sitemap(body, url, hosts=hosts, ancestors=tuple(ancestors))
    read = SourceRead(digest, document)
    known = _look_up(read, known_as)
    _compare(read, known, source, announced_before)
    return read


def _look_up(read: SourceRead, known_as: KnownAs) -> list[_Entry]:
    """Note which entries are of known pages and which of unknown ones; return those of the known pages."""
    # Two spellings of one URL are one page, and the later date counts, as for two entries with one spelling.
    known: dict[int, _Entry] = {}
    unknown: dict[bytes, _Entry] = {}
    refused: list[str] = []
    entries = read.document.entries
    columns = zip(entries.url, entries.lastmod, entries.precision, entries.lastmod_text, strict=True)
    for number, entry in enumerate(columns):
        url = entry[0]
        if number % STEP == 0:  # in favour of the slot clock
            time.sleep(SLICE)
        try:
            name, pages = known_as(url)
            if not pages and (plain := without_tracking(url)) != url:
                entry, (name, pages) = (plain, *entry[1:]), known_as(plain)
        except ValueError:  # Scrapy or the project's own fingerprinter can make no request of it
            refused.append(url)
            continue
        for page in pages:
            known[page] = _later(known.get(page), entry)
        if not pages:
            unknown[name] = _later(unknown.get(name), entry)
    if refused:
        read.document.problems.append(Problem("bad-url", len(refused), refused[0][:MAX_EXAMPLE]))
    for name, entry in unknown.items():
        read.unknown.append((FoundPage(entry[0], name, host_of(entry[0])), _kept(None, entry)))
    read.pages = np.fromiter(known, np.intp, len(known))
    return list(known.values())


def _later(before: _Entry | None, entry: _Entry) -> _Entry:
    """Return the one of a page's two entries that has the later date; the first if that is not known."""
    if before is None:
        return entry
    return entry if entry[1] is not None and (before[1] is None or entry[1] > before[1]) else before


def _compare(read: SourceRead, entries: list[_Entry], source: Source, announced_before: AnnouncedBefore) -> None:
    """Find the announcements (by `change_signals.announces`), and the dates to store."""
    stored: list[float | None] = []
    counts = np.zeros(len(entries), np.int64)
    for start in range(0, len(entries), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        seen, before, counts[part] = announced_before(read.pages[part], source.source)
        found = zip(seen.tolist(), before.tolist(), strict=True)
        stored += [lastmod if is_seen and not math.isnan(lastmod) else None for is_seen, lastmod in found]
    both = list(zip(stored, entries, strict=True))
    read.announced = np.array([announces(lastmod, *entry[1:]) for lastmod, entry in both], bool)
    read.n_announced = (counts + read.announced).tolist()
    read.lastmod = [_kept(lastmod, entry) for lastmod, entry in both]


def _kept(before: float | None, entry: _Entry) -> float | None:
    """Return the date to store: the old one if the new one is missing, or has lost its time of day."""
    _, now, precision, text = entry
    if now is None:
        return text_mark(text) if text and (before is None or before < 0.0) else before
    if before is not None and precision == "day" and before // DAY == now // DAY:
        return before
    return now


_TRACKING = re.compile(
    r"(?:amp;)*(?:utm_[^=]*|fbclid|gclid|dclid|msclkid|yclid|mc_cid|mc_eid|_hsenc|_hsmi|mkt_tok)(?:=|$)", re.IGNORECASE
)


def without_tracking(url: str) -> str:
    """Return a URL without the parameters that track campaigns, such as ``utm_source``.

    They serve the statistics of a feed's readers, and name no other page.

    >>> without_tracking("https://a.example/1?utm_source=rss&b=%20&utm_medium=feed#top"), without_tracking("/?a&utm")
    ('https://a.example/1?b=%20#top', '/?a&utm')
    """
    return without_parameters(url, _TRACKING.match)


_BEGIN = 32_768
_LINK = re.compile(rb"<(?:link|base)\b[^>]{0,2000}>", re.IGNORECASE)
_NAMES = re.compile(rb"alternate|sitemap|^<base", re.IGNORECASE)
_FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")


def linked_sources(body: bytes, url: str) -> list[str]:
    """Return the first feed and the sitemaps that a page links to in its first 32 KB, on its own site.

    >>> head = b"<link rel='alternate' type='application/rss+xml' href='/feed'><link rel=sitemap href=/map.xml>"
    >>> linked_sources(b"<html><head>" + head, "https://a.example/1")
    ['https://a.example/feed', 'https://a.example/map.xml']
    """
    begin = body[:_BEGIN]
    lowered = begin.lower()
    if b"alternate" not in lowered and b"sitemap" not in lowered:
        return []
    first, *others = begin.split(b"<!--")
    shown = b"".join([first, *(other.partition(b"-->")[2] for other in others)])
    base, feeds, sitemaps = _named(b"".join(link for link in _LINK.findall(shown) if _NAMES.search(link)))
    return _of_the_site(feeds, base, url)[:1] + _of_the_site(sitemaps, base, url)


@lru_cache(maxsize=256)  # pages of a site have the same links
def _named(links: bytes) -> tuple[str, list[str], list[str]]:
    """Return the base URL of a page, and the links to its feeds and sitemaps, as written there."""
    from lxml import etree, html  # here: most pages name none

    feeds: list[str] = []
    sitemaps: list[str] = []
    try:
        document = html.fromstring(b"<html>" + links)
    except (etree.LxmlError, ValueError):
        return "", feeds, sitemaps
    base = next((base for element in document.iter("base") if (base := element.get("href", ""))), "")
    for link in document.iter("link"):
        relations = link.get("rel", "").lower().split()
        kind = link.get("type", "").partition(";")[0].strip().lower()
        if "alternate" in relations and kind in _FEEDS:
            feeds.append(link.get("href", ""))
        elif "sitemap" in relations:
            sitemaps.append(link.get("href", ""))
    return base, feeds, sitemaps


def _of_the_site(references: list[str], base: str, url: str) -> list[str]:
    found: dict[str, None] = {}
    for reference in references:
        try:
            named = urljoin(urljoin(url, base), reference.strip())
        except ValueError:
            continue
        if reference.strip() and is_web_url(named) and _site(named) == _site(url):
            found[named.partition("#")[0].replace(" ", "%20")] = None
    return list(found)


def _site(url: str) -> str:
    return ascii_host(urlsplit(url).netloc).removeprefix("www.")
