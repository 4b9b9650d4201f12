"""Locations: the URLs of a sitemap are checked; wrong URLs are repaired if this is certain, and refused otherwise."""

import re
from collections.abc import Collection, Sequence
from functools import lru_cache
from urllib.parse import urljoin, urlsplit, urlunsplit
from zlib import crc32

import numpy as np

from crawlsched.change_signals.problems import ProblemCounter

__all__ = [
    "INVISIBLE",
    "Locations",
    "ascii_host",
    "canonical",
    "is_web_url",
    "part_number",
    "part_of_site",
    "parted_locations",
]

#: Invisible characters: byte order marks, marks for the direction of writing, and marks for possible breaks in words.
INVISIBLE = "\xad\u034f\u061c\u180e\ufeff" + "".join(
    map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)))
)
_SPACES = " \t\n\r\x00\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_AROUND = _SPACES + INVISIBLE
# Browsers and Python read different hosts from a URL with a backslash. The other characters can surround a URL.
_SUSPECT = re.compile(f'[\x00-\x20\x7f\xa0\ud800-\udfff\ufffd\\\\"<>,;|\u201c\u201d{INVISIBLE}]')
_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "<": ">",
    "\xab": "\xbb",
    "\u201c": "\u201d",
    "\u201e": "\u201c",
    "\u2018": "\u2019",
}
_BETWEEN_URLS = re.compile("""\\s+|[,;|](?=["'<]?https?://)""", re.IGNORECASE)
# Further columns of a table with URLs: dates, times, priorities, frequencies. No URL has these after a comma or space.
_COLUMN = re.compile(
    r"\d{4}-\d\d-\d\d(?:T[\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?|\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?|[01]\.\d{1,2}"
    r"|always|hourly|daily|weekly|monthly|yearly|never",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile("[\x00-\x1f\x7f\ufffd\\\\]")
_BRACKETED = re.compile(r"(?:[^\[\]@]*@)?\[[0-9A-Fa-f:.]*\](?::\d*)?", re.ASCII)  # an IPv6 address
_SURROGATE = re.compile("[\ud800-\udfff]")


@lru_cache(maxsize=4_096)
def canonical(url: str) -> str:
    """Return one spelling for all URLs that Scrapy treats as the same; an invalid URL is returned unchanged.

    >>> canonical("https://Example.com/sitemap.xml?b=2&a=%7e1#top")
    'https://example.com/sitemap.xml?a=~1&b=2'
    """
    from w3lib.url import canonicalize_url  # imported only here, since this loads all of urllib's clients

    try:
        return canonicalize_url(url)
    except ValueError:
        return url


def ascii_host(host: str) -> str:
    """Return a host's name in lower case, and an international name in its ASCII form.

    >>> ascii_host("Example.com"), ascii_host("BÜCHER.example")
    ('example.com', 'xn--bcher-kva.example')
    """
    host = host.lower()
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def is_web_url(url: str) -> bool:
    """Whether a URL can be requested: http or https, a host, a possible port, no control characters.

    >>> is_web_url("https://example.com:8080/a"), is_web_url("https://example.com:99999/a"), is_web_url("/a")
    (True, False, False)
    """
    try:
        parts = urlsplit(url)
        has_host = bool(parts.hostname) and parts.port != 0  # ValueError if the port is no number or too large
    except ValueError:
        return False
    if "\\" in parts.netloc:
        return False
    if "[" in parts.netloc or "]" in parts.netloc:
        has_host = has_host and bool(_BRACKETED.fullmatch(parts.netloc))
    return has_host and parts.scheme in ("http", "https") and not _SURROGATE.search(url)


def parted_locations(text: str) -> list[str]:
    r"""Return all URLs of a text that should be one URL, without surrounding characters.

    Invisible characters, quotes, angle brackets, and the further columns of a table are removed. If the text does not
    have several URLs, the rest of it is returned, even if it is no URL.

    >>> parted_locations('\ufeff"https://a/1","2026-11-20"'), parted_locations("https://a/1; 0.8; daily")
    (['https://a/1'], ['https://a/1'])
    >>> parted_locations("https://a.example/1 https://a.example/2"), parted_locations("/a page")
    (['https://a.example/1', 'https://a.example/2'], ['/a page'])
    """
    urls = [url for word in _BETWEEN_URLS.split(text) if _has_scheme(url := _bare(word))]
    return urls if len(urls) > 1 else [_bare(text)]


def _has_scheme(text: str) -> bool:
    return text[:8].lower().startswith(("http://", "https://"))


def _bare(text: str) -> str:
    text = text.strip(_AROUND)
    for _ in range(2):
        if text[:1] in _QUOTES:
            text = text[1:].partition(_QUOTES[text[0]])[0].strip(_AROUND)
    text = text.partition("\t")[0].rstrip(_AROUND)
    for _ in range(8):  # no table of URLs has more than eight further columns
        cut = max(text.rfind(character) for character in ",;| ")
        if cut < 0:
            break
        before = text[:cut].rstrip()
        column = text[cut + 1 :].strip("\"'")
        # After a space, only a date or a time counts as a column, since other words may belong to the URL.
        is_table = text[cut] != " " or before.endswith((",", ";", "|")) or ":" in column or "-" in column
        if not (is_table and _COLUMN.fullmatch(column)):
            break
        text = before.rstrip(",;| ")
    return text.strip(_AROUND)


class Locations:
    """Check the URLs of one document.

    Examples
    --------
    >>> problems = ProblemCounter()
    >>> Locations("https://example.com/sitemap.xml", (), problems).accept_first(["/a page"])
    'https://example.com/a%20page'
    >>> [problem.kind for problem in problems.problems()]
    ['space-in-url', 'relative-url']
    """

    def __init__(self, document_url: str, hosts: Collection[str], problems: ProblemCounter) -> None:
        self._base = document_url
        self._problems = problems
        self._hosts = {ascii_host(host).removesuffix(".") for host in hosts}
        own = _host(document_url)
        if own:
            self._hosts.add(own)
        self._prefixes = tuple(f"{scheme}://{host}/" for host in self._hosts for scheme in ("https", "http"))

    def accept_first(self, locations: Sequence[str]) -> str | None:
        """Return the first URL that is not refused. If all are refused, return None and report the first problem."""
        if locations and locations[0].startswith(self._prefixes) and not _SUSPECT.search(locations[0]):
            return locations[0]
        first: list[tuple[str, str]] = [("no-url", "")]
        for number, location in enumerate(locations):
            place, *others = parted_locations(location)
            found: list[tuple[str, str]] = [("second-url" if others else "around-url", location)]
            if place == location.strip():
                found = []
            url = self._examined(place, found)
            if url is not None or number == 0:
                first = found
            if url is not None:
                break
        else:
            url = None
        for kind, example in first:
            self._problems.add(kind, example)
        return url

    def _examined(self, location: str, found: list[tuple[str, str]]) -> str | None:
        """Return the URL of a location, and add its problems to `found`."""
        if not location:
            found.append(("no-url", ""))
            return None
        if _FORBIDDEN.search(location):
            found.append(("encoding" if "\ufffd" in location else "bad-url", location))
            return None
        try:
            is_relative = not urlsplit(location).scheme
            # Only URLs without a scheme are joined, since otherwise "http:///x" would get the host of the document.
            if is_relative and self._is_no_reference(location):
                url = ""
            elif is_relative:
                url = urljoin(self._base, location.replace(" ", "%20"))
            else:
                url = location.replace(" ", "%20")
        except ValueError:
            url = ""
        if not is_web_url(url):
            found.append(("bad-url", location))
            return None
        if " " in location:
            found.append(("space-in-url", location))
        if is_relative:
            found.append(("relative-url", location))
        if _host(url) not in self._hosts:
            found.append(("other-host", url))
            return None
        return url if url.isascii() else _with_ascii_host(url)

    def _is_no_reference(self, location: str) -> bool:
        """Whether a text without a scheme is prose, a host without its scheme, or nothing but slashes."""
        if location[0] in "/?.":
            return location != "/" and not location.strip("/")
        first = location.partition("/")[0].lower()
        is_host = first.startswith("www.") or first.removeprefix("www.") in self._hosts
        return " " in location or is_host or first in ("http", "https") or "://" in location.partition("?")[0]


def _host(url: str) -> str:
    try:
        return ascii_host(urlsplit(url).hostname or "").removesuffix(".")
    except ValueError:
        return ""


def _with_ascii_host(url: str) -> str:
    """Write the host in the form that requests have; the crawl would take another form for a different host."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host.isascii():
        return url
    netloc = parts.netloc.lower().replace(host, ascii_host(host))
    return urlunsplit(parts._replace(netloc=netloc))


_NUMBERS = int(np.iinfo(np.uint16).max)


def part_of_site(url: str) -> str:
    """Return the first directory of a URL's path.

    >>> part_of_site("https://example.com/news/2026/tea.html"), part_of_site("https://example.com/about.html")
    ('/news/', '/')
    """
    try:
        directories = urlsplit(url).path.split("/")[1:-1]
    except ValueError:
        return "/"
    return f"/{directories[0]}/" if directories else "/"


def part_number(url: str) -> int:
    """Return a number from 0 to 65,535 for the part of the site to which a page belongs; 0 for pages at the top.

    The number needs no table of names, and takes two bytes for each page. Among a hundred parts, two have the same
    number with a probability of 7 %. Such parts are judged together.

    >>> part_number("https://example.com/news/1") == part_number("http://example.org/news/2/3")
    True
    >>> part_number("https://example.com/"), part_number("https://example.com/shop/1")
    (0, 23488)
    """
    part = part_of_site(url)
    return 0 if part == "/" else crc32(part.encode("utf-8", "replace")) % _NUMBERS + 1
