"""Reading sources: from the bytes of a sitemap to announcements, and from a page to the sources that it names."""

from __future__ import annotations

import math
import re
import time
from dataclasses import dataclass, field
from hashlib import blake2b
from urllib.parse import urljoin, urlsplit

import numpy as np
from numpy.typing import NDArray

from crawlsched.change_signals import (
    Limits,
    SitemapDocument,
    announces,
    ascii_host,
    is_web_url,
    read_robots,
    read_sitemap,
    text_mark,
)
from crawlsched.change_signals.problems import ProblemCounter
from crawlsched.crawl.collection import Collection, FoundPage
from crawlsched.crawl.fingerprints import without_parameters
from crawlsched.crawl.shard import Shard
from crawlsched.crawl.side_thread import SLICE, STEP
from crawlsched.exceptions import StoreError
from crawlsched.slot_clock import DAY
from crawlsched.store import Source, host_of
from crawlsched.store.rows import ROWS_AT_ONCE

__all__ = [
    "SourceRead",
    "linked_sources",
    "read_source",
]

# An entry: its URL, its date in POSIX seconds, the precision of the date, and the date's text.
_Entry = tuple[str, float | None, str | None, str | None]


@dataclass(slots=True)
class SourceRead:
    """The content of a source."""

    digest: bytes  # of the body: the same bytes have the same content
    document: SitemapDocument
    pages: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, np.intp))  # known pages that it names
    # Which of these pages it announces as changed: their lastmod differs from the stored one.
    announced: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool))
    # The present date of each of these pages; for a date that cannot be read, the `text_mark` of its text.
    lastmod: list[float | None] = field(default_factory=list)
    # How often each page's lastmod was seen to differ, this time included.
    n_announced: list[int] = field(default_factory=list)
    # URLs that are no pages yet, and their dates.
    unknown: list[tuple[FoundPage, float | None]] = field(default_factory=list)


def read_source(collection: Collection, number: int, url: str, body: bytes) -> SourceRead:
    """Read a sitemap, an index of sitemaps, or a robots.txt, in any thread and without side effects.

    The crawling thread may add pages meanwhile, so it checks again before it adds an unknown entry.
    """
    source, digest = collection.sources[number], blake2b(body, digest_size=16).digest()
    if digest == source.fingerprint:
        return SourceRead(digest, SitemapDocument(url, "unknown"))
    if source.kind == "robots":
        document = read_robots(body, url)
    else:
        above = _above(collection, source)
        # A source may list pages of its own host, and of the hosts whose robots.txt names it or an index above it.
        hosts = {host for one in (source, *above) for host in (one.host, *one.hosts)}
        document = read_sitemap(body, url, hosts=hosts, ancestors=tuple(index.url for index in above))
    shard = collection.shards.of_name(source.host)
    if shard is None:
        raise StoreError("The shard of a sitemap that is being read is another process's by now.")
    read = SourceRead(digest, document)
    _compare(read, _look_up(read, collection, shard), collection, shard, number)
    return read


def _above(collection: Collection, source: Source) -> list[Source]:
    above: list[Source] = []
    # In the store, parents may form a cycle, so they are followed only up to the limit for nested indexes.
    while source.parent is not None and len(above) <= Limits().max_index_depth:
        source = collection.sources[source.parent]
        above.append(source)
    return above


def _look_up(read: SourceRead, collection: Collection, shard: Shard) -> list[_Entry]:
    """Separate a shard's entries into those of known and of unknown pages; return the entries of known pages."""

    def known_as(url: str) -> tuple[bytes, int]:
        name = collection.request_fingerprint(url)
        page = collection.index.page(name)
        return name, page if page >= 0 and collection.shards.of_page(page) is shard else -1

    # Two spellings of a URL are one page. The later date counts, as it does for two entries with the same spelling.
    known: dict[int, _Entry] = {}
    unknown: dict[bytes, _Entry] = {}
    refused = ProblemCounter()
    entries = read.document.entries
    columns = zip(entries.url, entries.lastmod, entries.precision, entries.lastmod_text, strict=True)
    for number, entry in enumerate(columns):
        url = entry[0]
        if number % STEP == 0:  # to let the slot clock run
            time.sleep(SLICE)
        try:
            name, page = known_as(url)
            if page < 0 and (plain := without_tracking(url)) != url:
                entry, (name, page) = (plain, *entry[1:]), known_as(plain)
        except ValueError:  # Scrapy or the project's own fingerprinter rejects the URL
            refused.add("bad-url", url)
            continue
        if page >= 0:
            known[page] = max(known.get(page, entry), entry, key=_date)
        else:
            unknown[name] = max(unknown.get(name, entry), entry, key=_date)
    read.document.problems.extend(refused.problems())
    for name, entry in unknown.items():
        read.unknown.append((FoundPage(entry[0], name, host_of(entry[0])), _kept(None, entry)))
    read.pages = np.fromiter(known, np.intp, len(known))
    return list(known.values())


def _date(entry: _Entry) -> float:
    return -math.inf if entry[1] is None else entry[1]


def _compare(read: SourceRead, entries: list[_Entry], collection: Collection, shard: Shard, source: int) -> None:
    """Find the announcements (by `change_signals.announces`), and the dates to store."""
    stored: list[float | None] = []
    counts = np.zeros(len(entries), np.int64)
    number, announced_before = shard.source_numbers.get(source, -1), shard.store.reader.announcements_for
    for start in range(0, len(entries), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        seen, before, counts[part] = announced_before(collection.numbers.of(read.pages[part]), number)
        found = zip(seen.tolist(), before.tolist(), strict=True)
        stored += [lastmod if is_seen and not math.isnan(lastmod) else None for is_seen, lastmod in found]
    both = list(zip(stored, entries, strict=True))
    read.announced = np.array([announces(lastmod, *entry[1:]) for lastmod, entry in both], bool)
    read.n_announced = (counts + read.announced).tolist()
    read.lastmod = [_kept(lastmod, entry) for lastmod, entry in both]


def _kept(before: float | None, entry: _Entry) -> float | None:
    """Return the date to store: the old date if the new date is missing, or has lost its time of day."""
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

    Such parameters only count a feed's readers, and the page is the same without them.

    >>> without_tracking("https://a.example/1?utm_source=rss&b=%20&utm_medium=feed#top"), without_tracking("/?a&utm")
    ('https://a.example/1?b=%20#top', '/?a&utm')
    """
    return without_parameters(url, _TRACKING.match)


_BEGIN = 32_768
_END_OF_HEAD = re.compile(rb"</head|<body", re.IGNORECASE)
_FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")


def linked_sources(body: bytes, url: str) -> list[str]:
    """Return the first feed and the sitemaps of a page's own site that the page's head links to (first 32 KB).

    >>> head = b"<link rel='alternate' type='application/rss+xml' href='/feed'><link rel=sitemap href=/map.xml>"
    >>> linked_sources(b"<html><head>" + head, "https://a.example/1")
    ['https://a.example/feed', 'https://a.example/map.xml']
    """
    head = _END_OF_HEAD.split(body[:_BEGIN], maxsplit=1)[0]
    lowered = head.lower()
    if b"alternate" not in lowered and b"sitemap" not in lowered:
        return []
    from lxml import etree, html  # imported here, since most pages name no source

    try:
        document = html.document_fromstring(head)
    except (etree.LxmlError, ValueError):
        return []
    feeds: list[str] = []
    sitemaps: list[str] = []
    base = next((base for element in document.iter("base") if (base := element.get("href", ""))), "")
    for link in document.iter("link"):
        relations = link.get("rel", "").lower().split()
        kind = link.get("type", "").partition(";")[0].strip().lower()
        is_feed = "alternate" in relations and kind in _FEEDS
        if (is_feed or "sitemap" in relations) and (named := _of_the_site(link.get("href", "").strip(), base, url)):
            (feeds if is_feed else sitemaps).append(named)
    return [*feeds[:1], *dict.fromkeys(sitemaps)]


def _of_the_site(reference: str, base: str, url: str) -> str | None:
    """Return the URL of a reference; None: the reference does not lead to the site of its page."""
    try:
        named = urljoin(urljoin(url, base), reference)
    except ValueError:
        return None
    is_of_site = bool(reference) and is_web_url(named) and _site(named) == _site(url)
    return named.partition("#")[0].replace(" ", "%20") if is_of_site else None


def _site(url: str) -> str:
    return ascii_host(urlsplit(url).netloc).removeprefix("www.")
