"""The parts of an entry: which elements of a sitemap or a feed say what, whatever their prefix is."""

from crawlsched.change_signals.mending import UNDECLARED

__all__ = ["BASE", "ITEMS", "KIND_OF_ROOT", "fact_of", "is_page_link", "parted"]

BASE = "{http://www.w3.org/XML/1998/namespace}base"
KIND_OF_ROOT = {
    "urlset": "urlset",
    "sitemapindex": "index",
    "rss": "rss",
    "rdf": "rss",
    "channel": "rss",
    "feed": "atom",
    "entry": "atom",
}
ITEMS = {"urlset": ("url", "sitemap"), "index": ("url", "sitemap"), "rss": ("item",), "atom": ("entry",)}

_SITEMAP = {"loc": "url", "lastmod": "modified", "priority": "priority", "changefreq": "changefreq"}
_ATOM = {
    "link": "link",
    "id": "id",
    "updated": "modified",
    "modified": "modified",
    "published": "published",
    "issued": "published",
    "created": "published",
}
# Elements directly below an item, in its own namespace, and what they say.
_OWN = {
    "urlset": _SITEMAP,
    "index": _SITEMAP,
    "rss": {"link": "link", "guid": "id", "pubdate": "published", "updated": "modified", "published": "published"},
    "atom": _ATOM,
}
_DCTERMS = {"modified": "modified", "issued": "published", "created": "published"}
# The same in other namespaces, in feeds.
_FOREIGN = {
    "http://www.w3.org/2005/atom": _ATOM,
    "http://purl.org/atom/ns#": _ATOM,
    "http://rssnamespace.org/feedburner/ext/1.0": {"origlink": "original"},
    "http://purl.org/dc/elements/1.1/": {"date": "modified"},
    "http://purl.org/dc/terms/": _DCTERMS,
    "http://purl.org/rss/1.0/": {"link": "link"},
    "http://my.netscape.com/rdf/simple/0.9/": {"link": "link"},
}
_FOREIGN |= {
    f"{UNDECLARED}{prefix}": _FOREIGN[namespace]
    for prefix, namespace in (
        ("atom", "http://www.w3.org/2005/atom"),
        ("a10", "http://www.w3.org/2005/atom"),
        ("dc", "http://purl.org/dc/elements/1.1/"),
        ("feedburner", "http://rssnamespace.org/feedburner/ext/1.0"),
        ("dcterms", "http://purl.org/dc/terms/"),
    )
}
_NEWS = ("sitemap-news", f"{UNDECLARED}news")
_RELATIONS = "http://www.iana.org/assignments/relation/"


def parted(tag: str) -> tuple[str, str]:
    """Return the namespace and the name of a tag as lxml writes it; the name in small letters.

    >>> parted("{http://www.w3.org/2005/Atom}Entry"), parted("pubDate")
    (('http://www.w3.org/2005/atom', 'entry'), ('', 'pubdate'))
    """
    namespace, _, name = tag.rpartition("}")
    return namespace[1:].lower(), name.lower()


def fact_of(kind: str, item_namespace: str, namespace: str, name: str, *, is_direct: bool) -> str:
    """Return the name of the fact that an element within an item states of its page, or "" for none.

    >>> fact_of("urlset", "", "", "loc", is_direct=True), fact_of("urlset", "", "image", "loc", is_direct=True)
    ('url', '')
    >>> fact_of("rss", "", "http://www.w3.org/2005/atom", "updated", is_direct=True)
    'modified'
    """
    if kind == "urlset" and name == "publication_date":
        return "published" if any(news in namespace for news in _NEWS) else ""
    if not is_direct:
        return ""
    if namespace == item_namespace and name in _OWN[kind]:
        return _OWN[kind][name]
    return _FOREIGN.get(namespace, {}).get(name, "") if kind in ("rss", "atom") else ""


def is_page_link(relation: str | None) -> bool:
    """Whether a link of a feed names the entry's page: RFC 4287, section 4.2.7.2.

    >>> is_page_link(None), is_page_link("alternate"), is_page_link("license")
    (True, True, False)
    """
    return (relation or "alternate").strip().lower().removeprefix(_RELATIONS) in ("alternate", "")
