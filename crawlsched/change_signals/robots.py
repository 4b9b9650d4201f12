"""The sitemaps that a robots.txt names."""

import codecs
import re
from collections.abc import Iterable
from urllib.parse import urljoin

from crawlsched.change_signals.locations import is_web_url

__all__ = ["absolute_sitemaps", "robots_sitemaps"]

_SITEMAP_LINE = re.compile(r"[ \t]*site-?map[ \t]*:[ \t]*([^ \t#]\S*)", re.IGNORECASE)
_MAX_BYTES = 512_000  # RFC 9309, section 2.5: at least 500 KiB have to be read
_MAX_SITEMAPS = 1_000
_MAX_URL = 8_192


def robots_sitemaps(body: bytes, robots_url: str) -> list[str]:
    r"""Absolute URLs of the sitemaps that a robots.txt names.

    Parameters
    ----------
    body : bytes
        The robots.txt; any bytes will do, and the first 512,000 are read.
    robots_url : str
        Its URL, to which relative URLs are joined.

    Returns
    -------
    list of str
        Each URL once, in the order of the file, at most 1,000; http and https only, without fragments.

    References
    ----------
    .. [1] Koster, Illyes, Zeller, Sassman (2022), "Robots Exclusion Protocol", RFC 9309.

    Examples
    --------
    >>> robots_sitemaps(b"User-agent: *\nSITEMAP: /map.xml # all pages", "https://example.com/robots.txt")
    ['https://example.com/map.xml']
    """
    text = body[:_MAX_BYTES].removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace")
    matches = (_SITEMAP_LINE.match(line) for line in re.split(r"[\r\n]+", text))
    return absolute_sitemaps((match[1] for match in matches if match), robots_url)


def absolute_sitemaps(references: Iterable[str], robots_url: str) -> list[str]:
    """Absolute URLs of sitemaps, as a robots.txt that somebody else has read names them.

    Parameters
    ----------
    references : iterable of str
        What stands behind ``Sitemap:``. What names no URL that can be asked for is left out.
    robots_url : str
        The robots.txt, to whose URL relative ones are joined.

    Returns
    -------
    list of str
        As `robots_sitemaps`.

    Examples
    --------
    >>> absolute_sitemaps(["/map.xml", "http://example.com:99999/map.xml"], "https://example.com/robots.txt")
    ['https://example.com/map.xml']
    """
    found: dict[str, None] = {}
    for reference in references:
        url = _absolute(reference, robots_url)
        if url is not None:
            found[url] = None
        if len(found) == _MAX_SITEMAPS:
            break
    return list(found)


def _absolute(reference: str, base: str) -> str | None:
    # A "#" starts a comment in robots.txt, and a fragment means nothing to a crawler.
    reference = reference.partition("#")[0]
    if len(reference) > _MAX_URL or "\ufffd" in reference:
        return None
    try:
        url = urljoin(base, reference)
    except ValueError:
        return None
    return url if is_web_url(url) else None
