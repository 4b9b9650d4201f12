"""Linked sources: the feed and the sitemaps that a page names in its head."""

import re
from urllib.parse import urljoin, urlsplit

from crawlsched.change_signals import ascii_host, is_web_url

__all__ = ["linked_sources"]

_HEAD = 65_536
_BODY = re.compile(rb"<body\b", re.IGNORECASE)
_LINK = re.compile(rb"<(?:link|base)\b[^>]{0,2000}>", re.IGNORECASE)
_NAMES = re.compile(rb"alternate|sitemap", re.IGNORECASE)
_FEEDS = ("application/rss+xml", "application/atom+xml", "application/feed+json")


def linked_sources(body: bytes, url: str) -> list[str]:
    """Return the first feed and the sitemaps that a page links to, on its own site.

    Parameters
    ----------
    body : bytes
        The page; its head is looked at, as far as it is within 64 KB.
    url : str
        Its URL.

    Examples
    --------
    >>> head = b"<link rel='alternate' type='application/rss+xml' href='/feed'><link rel=sitemap href=/map.xml>"
    >>> linked_sources(b"<html><head>" + head, "https://a.example/1")
    ['https://a.example/feed', 'https://a.example/map.xml']
    """
    links = b"".join(_LINK.findall(_BODY.split(body[:_HEAD], maxsplit=1)[0]))
    if not _NAMES.search(links):
        return []
    from lxml import etree, html  # here: most pages name none

    try:
        document = html.fromstring(b"<html>" + links)
    except (etree.LxmlError, ValueError):
        return []
    base = next((base for element in document.iter("base") if (base := element.get("href", ""))), "")
    feeds: list[str] = []
    sitemaps: list[str] = []
    for link in document.iter("link"):
        relations = link.get("rel", "").lower().split()
        kind = link.get("type", "").partition(";")[0].strip().lower()
        if "alternate" in relations and kind in _FEEDS:
            feeds.append(link.get("href", ""))
        elif "sitemap" in relations:
            sitemaps.append(link.get("href", ""))
    return _of_the_site(feeds, base, url)[:1] + _of_the_site(sitemaps, base, url)


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
