"""Linked sources: the feed and the sitemaps that a page names."""

import re
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

from crawlsched.change_signals import ascii_host, is_web_url

__all__ = ["linked_sources"]

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


@lru_cache(maxsize=256)  # pages of a site say the same
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
