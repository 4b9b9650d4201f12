"""A sitemap: its entries or children, and everything that was wrong with it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from time import sleep

from crawlsched.change_signals.collected import Collected
from crawlsched.change_signals.decoding import characters
from crawlsched.change_signals.decompression import plain_chunks
from crawlsched.change_signals.entries import SitemapChildren, SitemapEntries
from crawlsched.change_signals.feeds import read_feed
from crawlsched.change_signals.limits import Limits
from crawlsched.change_signals.locations import Locations
from crawlsched.change_signals.markup import TagReader
from crawlsched.change_signals.problems import Problem, ProblemCounter
from crawlsched.change_signals.sitemap_xml import SitemapXML

__all__ = ["SitemapDocument", "read_sitemap"]


@dataclass(frozen=True, slots=True)
class SitemapDocument:
    """What a sitemap or a feed says, and everything that was wrong with it.

    Parameters
    ----------
    url : str
        Where it was read.
    kind : {"urlset", "index", "text", "rss", "atom", "unknown"}
        What it is.
    entries : SitemapEntries
        Its pages.
    children : SitemapChildren
        The sitemaps that an index lists.
    problems : list of Problem
        Everything that was wrong, by kind, with the first example of each.
    """

    url: str
    kind: str
    entries: SitemapEntries = field(default_factory=SitemapEntries)
    children: SitemapChildren = field(default_factory=SitemapChildren)
    problems: list[Problem] = field(default_factory=list)


def read_sitemap(
    body: bytes,
    url: str,
    limits: Limits | None = None,
    *,
    hosts: Collection[str] = (),
    ancestors: Sequence[str] = (),
    feedparser: bool = False,
) -> SitemapDocument:
    """Read a sitemap, a sitemap index, a list of URLs, or an RSS or Atom feed.

    Parameters
    ----------
    body : bytes
        As it was received; gzip is recognised by itself.
    url : str
        Where it was read.
    limits : Limits, optional
        How much is read at most.
    hosts : collection of str
        Hosts whose URLs are accepted beside that of `url`, as where one host's robots.txt names another's sitemap.
    ancestors : sequence of str
        URLs of the index files through which this document was found; a child among them is a loop.
    feedparser : bool
        Let feedparser, if it is installed, read what may be a feed; what it reads counts if that is no less.

    Returns
    -------
    SitemapDocument
        Whatever could be read, and every problem. Nothing is raised, whatever the bytes.

    Notes
    -----
    Time and memory are linear in what the limits allow. Between pieces of about a millisecond's work the interpreter
    lock is given up, so that another thread (the crawl) goes on while a large sitemap is read.

    What is dropped is reported, and what is repaired too. URLs are never changed silently: an ampersand that is not
    escaped is taken as it stands; a reference to an entity which the document declares drops its entry.

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
    decoded = characters(plain_chunks(body, limits.max_bytes, problems), problems)
    start, text = _start(decoded)
    if not start:
        problems.add("empty")
        kind = "unknown"
    elif start.startswith("<"):
        kind = _read_xml(text, collected, limits, problems)
    else:
        kind = _read_lines(text, collected, limits, problems)
    if feedparser and start.startswith("<") and kind in ("rss", "atom", "unknown") and not collected.children.url:
        again = ProblemCounter()
        other = Collected(url, limits, Locations(url, hosts, again), ancestors, again)
        other_kind = read_feed(b"".join(plain_chunks(body, limits.max_bytes, again)), other, again)
        if other_kind is not None and len(other.entries) >= len(collected.entries):
            return SitemapDocument(url, other_kind, other.entries, other.children, again.problems())
    if kind == "unknown" and start:
        problems.add("not-a-sitemap", start)
    return SitemapDocument(url, kind, collected.entries, collected.children, problems.problems())


def _start(text: Iterator[str]) -> tuple[str, Iterable[str]]:
    """Find the first characters that are no white space; give them, and all of the text from there."""
    for piece in text:
        piece = piece.lstrip("\ufeff\x00 \t\r\n")
        if piece:
            return piece[:200], chain((piece,), text)
    return "", ()


def _read_xml(text: Iterable[str], collected: Collected, limits: Limits, problems: ProblemCounter) -> str:
    reader = TagReader(problems, limits.max_text)
    xml = SitemapXML(collected, limits, reader.declared, problems)
    for tags in reader.tags(text):
        if not xml.read(tags):
            break
        sleep(0)  # gives up the interpreter lock
    else:
        xml.finish(reader.ends_in_text)
    return xml.kind


def _read_lines(text: Iterable[str], collected: Collected, limits: Limits, problems: ProblemCounter) -> str:
    """Read a text sitemap: one URL per line, and nothing else."""
    kind = "unknown"
    rest = ""
    for piece in chain(text, ("\n",)):
        *lines, rest = (rest + piece).replace("\r", "\n").split("\n")
        rest = rest[: limits.max_text + 1]
        for line in lines:
            if not line or line.isspace():
                continue
            if kind == "unknown" and not line.strip().lower().startswith(("http://", "https://")):
                return kind
            kind = "text"
            if len(line) > limits.max_text:
                problems.add("text-too-long", line)
            elif not collected.page(line):
                return kind
        if kind == "unknown" and len(rest) > limits.max_text:
            return kind
        sleep(0)  # gives up the interpreter lock
    return kind
