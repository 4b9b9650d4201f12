"""A sitemap in XML, JSON or lines: its entries or children, and all its problems."""

import csv
import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import sleep
from typing import Any

from crawlsched.change_signals.collected import Collected, Limits, SitemapEntries
from crawlsched.change_signals.decoding import characters, plain_chunks
from crawlsched.change_signals.hubs import Hubs
from crawlsched.change_signals.locations import Locations, is_web_url, parted_locations
from crawlsched.change_signals.problems import Problem, ProblemCounter
from crawlsched.change_signals.sitemap_xml import read_xml

__all__ = [
    "SitemapDocument",
    "read_sitemap",
]

_DOCUMENT = re.compile(r"<\?xml\s|<(?:[\w.-]+:)?(?:urlset|sitemapindex|rss|rdf|feed|entry)[\s>]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SitemapDocument:
    """The contents of a sitemap or a feed, and all its problems."""

    url: str  # the address of the document
    kind: str  # such as "urlset"
    entries: SitemapEntries = field(default_factory=SitemapEntries)  # the pages
    children: SitemapEntries = field(default_factory=SitemapEntries)  # the sitemaps that an index lists
    # All problems by kind, with the first example of each.
    problems: list[Problem] = field(default_factory=list)
    hubs: Hubs = field(default_factory=Hubs)  # the hubs that a feed names


def read_sitemap(
    body: bytes,
    url: str,
    limits: Limits | None = None,
    *,
    hosts: Collection[str] = (),
    ancestors: Sequence[str] = (),
) -> SitemapDocument:
    """Read a sitemap, a sitemap index, a list of URLs, or a feed (RSS, Atom, JSON Feed), plain or in gzip.

    It returns everything that can be read, and all problems. It raises no error for any bytes.

    Parameters
    ----------
    hosts : collection of str
        Further hosts, besides that of `url`, whose URLs are accepted, since their robots.txt names this sitemap.
    ancestors : sequence of str
        URLs of the index files through which this document was found. A child with one of these URLs is a loop.

    Notes
    -----
    Time and memory are linear in the limits. The function releases the interpreter lock after each millisecond or so,
    so that another thread (the crawl) can work while a large sitemap is read.

    Everything that is dropped or repaired is reported. URLs are never changed silently. An ampersand that is not
    escaped is part of the URL. An entry with a reference to an entity that the document declares is dropped.

    References
    ----------
    .. [1] sitemaps.org (2016), "Sitemaps XML format".
    .. [2] RSS Advisory Board (2009), "RSS 2.0 Specification".
    .. [3] Nottingham, Sayre (2005), "The Atom Syndication Format", RFC 4287.

    Examples
    --------
    >>> document = read_sitemap(
    ...     b"<urlset><url><loc>https://example.com/a?b=1&c=2</loc><lastmod>2026-11-20</lastmod></url></urlset>",
    ...     "https://example.com/sitemap.xml",
    ... )
    >>> document.kind, document.entries.url, document.entries.lastmod
    ('urlset', ['https://example.com/a?b=1&c=2'], [1795132800.0])
    >>> print(document.problems[0])
    raw-ampersand (once, at 'https://example.com/a?b=1&c=2'): an ampersand which is not written ...
    """
    limits = limits or Limits()
    problems = ProblemCounter()
    collected = Collected(url, limits, Locations(url, hosts, problems), ancestors, problems)
    decoded = characters(plain_chunks(body, limits, problems), problems)
    start, text = _start(decoded, limits.max_text, problems)
    kind = "unknown"
    if not start:
        problems.add("empty")
    elif start.startswith("<") and start[:5].lower() != "<http":
        kind = read_xml(text, collected, limits, problems)
    elif start.startswith("{"):
        kind = _read_json(text, collected, limits.max_json, problems)
    else:
        kind = _read_lines(text, collected, limits, problems)
    if kind == "unknown" and start:
        problems.add("not-a-sitemap", start)
    return SitemapDocument(url, kind, collected.entries, collected.children, problems.problems(), collected.hubs)


def _start(text: Iterator[str], max_text: int, problems: ProblemCounter) -> tuple[str, Iterable[str]]:
    """Find the start of the document; return its first characters, and the whole text from the start on."""
    for piece in text:
        piece = piece.lstrip("\ufeff\x00 \t\r\n")
        if not piece:
            continue
        # Warnings and other output of a program before the document are skipped.
        document = _DOCUMENT.search(piece[:max_text])
        if document and document.start() and not piece.startswith(("<!", "<?", "http", "{")):
            before = piece[: document.start()]
            if not before.startswith("<") or document[0].startswith("<?"):
                problems.add("junk-before", before)
                piece = piece[document.start() :]
        return piece[:200], chain((piece,), text)
    return "", ()


def _read_json(text: Iterable[str], collected: Collected, most: int, problems: ProblemCounter) -> str:
    """Read a JSON Feed (version 1.1) into `collected`; return "json", or "unknown" if the text is no such feed.

    The page of an item is its ``url``. Without a ``url``, it is the item's ``id`` if this is a URL. The date of an item
    is the date of its last modification. Without that date, it is the date of publication.
    """
    whole = ""
    for piece in text:
        whole += piece
        if len(whole) > most:
            problems.add("too-large", f"JSON of more than {most} characters")
            return "unknown"
    try:
        feed = json.loads(whole)
    except (ValueError, RecursionError):
        return "unknown"
    items = feed.get("items") if isinstance(feed, dict) else None
    if not isinstance(items, list):
        return "unknown"
    says_so = "jsonfeed.org" in str(feed.get("version", ""))[:100]
    if not says_so and not any(isinstance(item, dict) and _texts(item, "url") for item in items):
        return "unknown"
    for hub in feed["hubs"] if isinstance(feed.get("hubs"), list) else ():
        if isinstance(hub, dict) and str(hub.get("type")).lower() == "websub":
            collected.hubs.add("hub", str(hub.get("url", "")), collected.url)
    collected.hubs.add("self", "".join(_texts(feed, "feed_url")), collected.url)
    for item in items:
        if not isinstance(item, dict):
            continue
        named = _texts(item, "id")
        places = _texts(item, "url") + [name for name in named if is_web_url(name)]
        if not collected.page(places, _texts(item, "date_modified", "date_published")):
            break
    return "json"


def _texts(item: dict[str, Any], *names: str) -> list[str]:
    return [item[name].strip() for name in names if isinstance(item.get(name), str) and item[name].strip()]


_BEHIND = ",;\"'<>"
_SCHEMES = ("http://", "https://")
# The first line of a table that has the URLs in its first column.
_HEADER = re.compile(r"""\W*(?:url|loc|location|link|page|address)s?["']?\s*([,;|\t])""", re.IGNORECASE)


def _read_lines(text: Iterable[str], collected: Collected, limits: Limits, problems: ProblemCounter) -> str:
    r"""Read a list of URLs into `collected`; return "text", or "unknown" if no line is a URL.

    Lines without a full URL (prose, comments, hosts without a scheme) are left out and counted.
    """
    kind = "unknown"
    others: list[str] = []
    n_others = 0
    between = ""
    for line in _lines(text, limits.max_text):
        first = next(csv.reader([line or '""'], delimiter=between))[0] if between else line
        locations = [place for text in parted_locations(first) if (place := text.rstrip(_BEHIND))]
        if not all(map(_is_url, locations)):
            if header := _HEADER.match(line):
                between = header[1]
            n_others += 1
            others = others or [line]
            if not collected.look():
                break
            continue
        if not locations:
            continue
        kind = "text"
        if len(line) > limits.max_text:
            problems.add("text-too-long", line)
            continue
        if locations != [line.strip()]:
            problems.add("around-url", line)
        if not all(collected.page([place]) for place in locations):
            break
    if others and kind == "text":
        problems.add("not-a-url", others[0], n_others)
    return kind


def _is_url(text: str) -> bool:
    """Whether a text begins like a URL whose end is certain."""
    has_columns = " " in text and any(character in text for character in ",;|")
    return text[:8].lower().startswith(_SCHEMES) and not has_columns


def _lines(text: Iterable[str], max_text: int) -> Iterable[str]:
    """Yield the lines of a text. Of a line above the limit, only so much is read that it is still above the limit."""
    rest = ""
    for piece in chain(text, ("\n",)):
        *lines, rest = (rest + piece).replace("\r", "\n").split("\n")
        rest = rest[: max_text + 1]
        yield from lines
        sleep(0)  # gives up the interpreter lock
