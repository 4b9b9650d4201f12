"""The sitemaps that a robots.txt names."""

import codecs
import re
from urllib.parse import urljoin, urlsplit

__all__ = ["robots_sitemaps"]

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
    found: dict[str, None] = {}
    for line in re.split(r"[\r\n]+", text):
        match = _SITEMAP_LINE.match(line)
        url = _absolute(match[1], robots_url) if match else None
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
        parts = urlsplit(url)
        is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return None
    return url if is_web else None
