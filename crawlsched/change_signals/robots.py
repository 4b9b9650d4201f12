"""The sitemaps that a robots.txt names; protego reads its lines."""

import re
from collections.abc import Iterable
from itertools import chain
from typing import Any
from urllib.parse import urljoin, urlsplit

from protego import Protego

from crawlsched.change_signals.collected import Limits, SitemapEntries
from crawlsched.change_signals.decoding import characters
from crawlsched.change_signals.locations import INVISIBLE, is_web_url
from crawlsched.change_signals.problems import ProblemCounter
from crawlsched.change_signals.sitemap import SitemapDocument

__all__ = ["absolute_sitemaps", "read_robots", "robots_sitemaps"]

_MAX_BYTES = 512_000  # RFC 9309, section 2.5, demands that at least 500 KiB are read
_LIMITS = Limits()
# Characters that people write around or after a URL.
_AROUND = "<>\"'`,; \t\xa0" + INVISIBLE
# The beginning of a URL without a valid scheme, such as "site.example/map.xml" or "http//site.example/".
_HOST = re.compile(r"https?|(?:[\w-]+\.)+[a-z][a-z-]+(?::\d+)?", re.IGNORECASE)
_FILE = re.compile(r"\.(?:xml|txt|gz|rss|atom|json|php|aspx?)(?:\?\S*)?$", re.IGNORECASE)
_LINE_ENDS = re.compile(r"[\r\n]+")
_SITEMAP_KEY = re.compile(r"site-?map", re.IGNORECASE)


def read_robots(body: bytes, robots_url: str) -> SitemapDocument:
    r"""Return the sitemaps that a robots.txt names, as `children` of a document: each URL once, in the file's order.

    It raises no error for any `body`. The first 512,000 bytes are read. Further bytes, and lines without a URL, are
    reported as problems.

    Notes
    -----
    protego reads the lines. It accepts capitals, missing colons and ``Sitemaps:``, as the parser of the largest search
    engine does [2]_. Characters around a URL (angle brackets, quotes, a comma, a no-break space) are removed.

    References
    ----------
    .. [1] Koster, Illyes, Zeller, Sassman (2022), "Robots Exclusion Protocol", RFC 9309.
    .. [2] Google (2019), "robotstxt", robots.cc.

    Examples
    --------
    >>> read_robots(b"User-agent: *\nSITEMAP <map.xml>, # all pages", "https://example.com/robots.txt").children.url
    ['https://example.com/map.xml']
    """
    problems = ProblemCounter()
    # Undecodable bytes in a comment do not matter. Undecodable bytes in a URL are reported below.
    text = "".join(characters(iter([body[:_MAX_BYTES]]), ProblemCounter())).replace("\x00", "")
    if len(body) > _MAX_BYTES:
        # The last line is left out: it was cut, so its URL could be wrong.
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
        problems.add("too-large", f"more than {_MAX_BYTES} bytes")
    # protego gets only lines that can name a sitemap, so that any number of rules costs nothing.
    lines = (line.strip(_AROUND).replace("\xa0", " ") for line in _LINE_ENDS.split(text))
    references = Protego.parse("\n".join(line for line in lines if _SITEMAP_KEY.match(line))).sitemaps
    return _document(references, robots_url, problems)


def robots_sitemaps(body: bytes, robots_url: str) -> list[str]:
    r"""Return the absolute URLs of the sitemaps that a robots.txt names; see `read_robots`.

    >>> robots_sitemaps(b"User-agent: *\nSITEMAP: /map.xml # all pages", "https://example.com/robots.txt")
    ['https://example.com/map.xml']
    """
    return read_robots(body, robots_url).children.url


def absolute_sitemaps(references: Iterable[str], robots_url: str) -> SitemapDocument:
    """Do the same as `read_robots` with the values of ``Sitemap:`` lines from another parser.

    >>> absolute_sitemaps(["/map.xml", "http://example.com:99999/map.xml"], "https://example.com/robots.txt").children.url
    ['https://example.com/map.xml']
    """
    return _document(references, robots_url, ProblemCounter())


def _parted(value: str) -> list[str]:
    """Return the references in a line: several words that are URLs or paths, the URLs in a text, or the whole line."""
    # A "#" starts a comment in robots.txt, and a fragment means nothing to a crawler.
    words = [word.strip(_AROUND) for word in value.partition("#")[0].split()]
    words = [word for word in words if word]
    urls = [word for word in words if word.lower().startswith(("http://", "https://"))]
    if len(words) > 1 and all(word in urls or word.startswith("/") for word in words):
        return words
    is_file = [bool(_FILE.search(word)) for word in words]
    if urls and (words[0] not in urls or (is_file[0] and not is_file[-1])):
        return urls
    return [" ".join(words)]


def _document(references: Iterable[str], robots_url: str, problems: ProblemCounter) -> SitemapDocument:
    found: dict[str, None] = {}
    for reference in chain.from_iterable(map(_parted, references)):
        is_too_long = len(reference) > _LIMITS.max_text or "\ufffd" in reference
        url = "" if is_too_long or not reference else _joined(reference, robots_url)
        if not is_web_url(url) or any(character in url for character in "\t<>"):
            problems.add("bad-url", reference)
        elif len(found) == _LIMITS.max_children and url not in found:
            problems.add("too-many-children", url)
        else:
            if " " in reference:
                problems.add("space-in-url", reference)
            found[url] = None
    nothing: list[Any] = [None] * len(found)
    children = SitemapEntries(list(found), nothing, nothing, nothing)
    return SitemapDocument(robots_url, "robots", children=children, problems=problems.problems())


def _joined(reference: str, robots_url: str) -> str:
    """Return the URL of a reference, as browsers resolve it. A host without a scheme must be the host of robots.txt."""
    first, slash, _ = reference.partition("/")
    if " " in reference and not (reference.lower().startswith(("/", "http")) or _FILE.search(reference)):
        return ""  # a text that is no URL
    try:
        parts = urlsplit(robots_url)
        is_own = first.lower().removeprefix("www.") == parts.netloc.lower().removeprefix("www.")
        if is_own or (slash and _HOST.fullmatch(first)):
            return f"{parts.scheme}://{reference}" if is_own and slash else ""
        return urljoin(robots_url, reference.replace(" ", "%20"))
    except ValueError:
        return ""
