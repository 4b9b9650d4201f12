"""Sitemaps, sitemap indexes, RSS and Atom: lxml reads them entry by entry, and keeps no tree of the document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html.entities import html5
from time import sleep
from typing import Any
from urllib.parse import urljoin

from crawlsched.change_signals.collected import Collected, Limits
from crawlsched.change_signals.locations import is_web_url
from crawlsched.change_signals.mending import RAW_AMPERSAND, Mender
from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["read_xml"]

# The namespace of a prefix that the document uses but does not declare.
_UNDECLARED = "prefix:"

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

_SITEMAP = {"loc": "url", "lastmod": "modified"}
_ATOM = {
    "link": "link",
    "id": "id",
    "updated": "modified",
    "modified": "modified",
    "published": "published",
    "issued": "published",
    "created": "published",
}
# Elements directly below an item, in the item's namespace, with the fact that each element states.
_OWN = {
    "urlset": _SITEMAP,
    "index": _SITEMAP,
    "rss": {"link": "link", "guid": "id", "pubdate": "published", "updated": "modified", "published": "published"},
    "atom": _ATOM,
}
_DCTERMS = {"modified": "modified", "issued": "published", "created": "published"}
# Elements of feeds in other namespaces, with the fact that each element states.
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
    f"{_UNDECLARED}{prefix}": _FOREIGN[namespace]
    for prefix, namespace in (
        ("atom", "http://www.w3.org/2005/atom"),
        ("a10", "http://www.w3.org/2005/atom"),
        ("dc", "http://purl.org/dc/elements/1.1/"),
        ("feedburner", "http://rssnamespace.org/feedburner/ext/1.0"),
        ("dcterms", "http://purl.org/dc/terms/"),
    )
}
_NEWS = ("sitemap-news", f"{_UNDECLARED}news")
_RELATIONS = "http://www.iana.org/assignments/relation/"


@lru_cache(maxsize=1024)
def parted(tag: str) -> tuple[str, str]:
    """Return the namespace and the name of a tag from lxml, both in small letters.

    >>> parted("{http://www.w3.org/2005/Atom}Entry"), parted("pubDate")
    (('http://www.w3.org/2005/atom', 'entry'), ('', 'pubdate'))
    """
    namespace, _, name = tag.rpartition("}")
    prefix, _, local = name.rpartition(":")
    return (f"{_UNDECLARED}{prefix}" if prefix else namespace[1:]).lower(), local.lower()


@lru_cache(maxsize=1024)
def fact_of(kind: str, item: str, tag: str, *, is_direct: bool) -> str:
    """Return the name of the fact that an element within an item states about the page; "" if it states no fact.

    >>> fact_of("urlset", "url", "loc", is_direct=True), fact_of("urlset", "url", "{image}loc", is_direct=True)
    ('url', '')
    >>> fact_of("rss", "item", "{http://www.w3.org/2005/Atom}updated", is_direct=True)
    'modified'
    """
    namespace, name = parted(tag)
    if kind == "urlset" and name == "publication_date":
        return "published" if any(news in namespace for news in _NEWS) else ""
    if not is_direct:
        return ""
    if namespace == parted(item)[0] and name in _OWN[kind]:
        return _OWN[kind][name]
    return _FOREIGN.get(namespace, {}).get(name, "") if kind in ("rss", "atom") else ""


def is_page_link(relation: str | None) -> bool:
    """Whether a link of a feed names the entry's page: RFC 4287, section 4.2.7.2.

    >>> is_page_link(None), is_page_link("alternate"), is_page_link("license")
    (True, True, False)
    """
    return (relation or "alternate").strip().lower().removeprefix(_RELATIONS) in ("alternate", "")


_HTML = ("html", "head", "body", "div", "script")
# The document is wrapped in elements of this name. So text after the document's first element is also read, and the end
# of an element that never began only closes a wrapper.
_AROUND = "crawlsched"
_LEVELS = 500
# The parser gets this number of characters at a time. It keeps the interpreter lock for 10 ms if the characters have
# 2,000 elements.
_AT_ONCE = 4096
_AMPERSAND = re.compile(rf"{RAW_AMPERSAND}([A-Za-z_][A-Za-z0-9._-]{{0,63}};)?")


def read_xml(characters: Iterable[str], collected: Collected, limits: Limits, problems: ProblemCounter) -> str:
    """Read an XML document into `collected`; return its kind, or "unknown" if it is neither a sitemap nor a feed."""
    from lxml import etree

    mender = Mender(problems, 2 * limits.max_text + 1024, limits.max_elements)
    items = _Items(collected, limits, mender.declared, problems)
    # Nothing is resolved or fetched, since the mender removes document types.
    parser = etree.XMLPullParser(
        ("start", "end"), base_url=collected.url, encoding="utf-8", recover=True, huge_tree=True, no_network=True
    )
    parser.feed(f"<{_AROUND}>".encode() * _LEVELS)
    for piece in mender.mended(characters):
        items.has_base |= "xml:base" in piece
        for start in range(0, len(piece), _AT_ONCE):
            parser.feed(piece[start : start + _AT_ONCE].encode("utf-8", "backslashreplace"))
            for event, element in parser.read_events():
                items.start(element) if event == "start" else items.end(element)
                if items.is_enough:
                    return items.kind
            sleep(0)  # gives up the interpreter lock
    items.finish(mender.tail)
    errors = [error for error in parser.feed_error_log.filter_from_errors() if error.domain_name != "NAMESPACE"]
    if errors and items.kind in ("rss", "atom"):
        problems.add("damaged-feed", errors[0].message, len(errors))
    return items.kind


class _Items:
    """Collect each item of a document when the item has ended, and free its elements.

    An item (`url`, `sitemap`, `item`, `entry`) is open until it ends or the next item starts. The elements with its
    facts are directly below it.
    """

    def __init__(self, collected: Collected, limits: Limits, declared: set[str], problems: ProblemCounter) -> None:
        self.kind = "unknown"
        self.is_enough = False
        self._collected = collected
        self._limits = limits
        self._declared = declared
        self._problems = problems
        self._n_left = limits.max_elements
        self._root = ""
        self._depth = -_LEVELS  # the document's own elements begin at depth 1
        self._lost = 0  # levels that are open only because the document does not close them
        self.has_base = False
        self._item: Any = None
        self._is_dropped = False
        self._is_unclosed = False  # True if an element was not closed: elements below it count, too

    def start(self, element: Any) -> None:
        """Take the start of an element, which has its attributes, but no content yet."""
        self._depth += 1
        if self._depth <= 0:  # a wrapper around the document
            return
        self._n_left -= 1
        if self._n_left < 0:
            self._stop("too-many-elements")
        elif self._item is not None:
            if element.tag == self._item.tag and not self._is_quoted(element):
                self._problems.add("unclosed", f"<{parted(element.tag)[1]}>")
                self._lost = self._depth - 1
                self._end_item()
                self._item = element
        elif not self._root and not self._first(parted(element.tag)):
            self.is_enough = True
        elif (name := parted(element.tag)[1]) in ITEMS[self.kind]:
            self._item = element
        elif name == "link" and self.kind in ("rss", "atom"):
            self._collected.hubs.add(element.get("rel", ""), element.get("href", ""), element.base)
        if self._depth - self._lost > self._limits.max_depth:
            self._stop("too-deep", f"<{parted(element.tag)[1]}>")

    def end(self, element: Any) -> None:
        """Take the end of an element, which is complete now."""
        if self._depth <= 0:  # an end without a beginning closes a wrapper
            return
        self._depth -= 1
        if element is self._item:
            self._end_item()
        if self._item is None:
            element.clear()
            while element.getprevious() is not None:
                del element.getparent()[0]
        else:  # freed at once, since an item may have millions of useless elements
            if (before := element.getprevious()) is not None and self._says_nothing(before):
                element.getparent().remove(before)
            if len(element) == 1 and not self._fact(element) and self._says_nothing(element[0]):
                element.clear()
        if self._lost > self._depth:
            self._lost = self._depth

    def _fact(self, element: Any) -> str:
        return fact_of(self.kind, self._item.tag, element.tag, is_direct=True)

    def _says_nothing(self, element: Any) -> bool:
        return not len(element) and not self._fact(element)

    def finish(self, tail: str) -> None:
        """Take the end of the document."""
        if self._item is None and self._depth <= 0:
            return
        if re.search(rf"</(?:[^\s<>:]+:)?{re.escape(self._root)}\s*>\s*\Z", tail, re.IGNORECASE):
            self._problems.add("unclosed", f"<{self._root if self._item is None else parted(self._item.tag)[1]}>")
            if self._item is not None:
                self._end_item()
        else:
            self._problems.add("truncated", f"</{self._root}> is missing")

    def _stop(self, problem: str, example: str = "") -> None:
        self._problems.add(problem, example)
        self.is_enough = True

    def _first(self, name: tuple[str, str]) -> bool:
        """Decide the kind of the document by its first element."""
        local = name[1]
        if local in _HTML:
            self._problems.add("html", f"<{local}>")
            return False
        self._root = local
        if local in ("url", "sitemap"):
            self.kind = "index" if local == "sitemap" else "urlset"
            self._problems.add("no-root", f"<{local}>")
        else:
            is_other = local == "entry" and "atom" not in name[0]  # other kinds of documents also have entries
            self.kind = "unknown" if is_other else KIND_OF_ROOT.get(local, "unknown")
        return self.kind != "unknown"

    def _is_quoted(self, element: Any) -> bool:
        """Whether an element is part of the content of an open entry."""
        if self.kind != "atom":
            return False
        while element is not None and element.getparent() is not self._item:
            element = element.getparent()
        return element is not None and parted(element.tag)[1] == "content"

    # -- an item that has ended

    def _end_item(self) -> None:
        item, self._item = self._item, None
        self._is_dropped = self._is_unclosed = False
        said: dict[str, list[str]] = {}
        if self.kind == "rss":  # RSS 1.0 and CDF name the page in an attribute of the item
            for attribute, value in item.attrib.items():
                fact = {"about": "about", "href": "about", "lastmod": "modified"}.get(parted(attribute)[1])
                if fact:
                    said.setdefault(fact, []).append(self._joined(item, value) if fact == "about" else value)
        for fact, text in self._facts(item, item, is_direct=True):
            said.setdefault(fact, []).append(text)
        if self._is_dropped:
            self.is_enough = not self._collected.look()
            return
        places = said.get("original", []) + said.get("url", [])
        if self.kind not in ("urlset", "index"):
            places = places + said.get("other type", []) + said.get("about", [])
            places += [place for place in said.get("id", []) if is_web_url(place)]
        elif not places:
            texts = (self._plain(text or "").strip() for text in (item.text, *(child.tail for child in item)))
            places = [text for text in texts if is_web_url(text)]
        elif len(set(places)) > 1:
            self._problems.add("second-url", places[1])
        dates = said.get("modified", []) + said.get("published", [])
        self.is_enough = not self._collected.page(places, dates, is_child=parted(item.tag)[1] == "sitemap")

    def _facts(self, item: Any, above: Any, *, is_direct: bool) -> Iterator[tuple[str, str]]:
        """Yield the facts that are stated by the elements below `above`, with their texts."""
        dated: dict[str, str] = {}
        for element in above:
            if element.tag == item.tag:  # if an item is not closed, the next item is within it
                continue
            if fact := fact_of(self.kind, item.tag, element.tag, is_direct=is_direct):
                text = element.text or ""
                if len(element) and text.strip():
                    self._problems.add("unclosed", f"<{parted(element.tag)[1]}>")
                    self._is_unclosed = True
                elif len(element) and not self._is_unclosed:
                    text = "".join(element.itertext())
                fact, text = self._said(fact, text, element)
                if text and fact in ("modified", "published") and dated.setdefault(element.tag, text) != text:
                    self._problems.add("second-lastmod", text)
                if text:
                    yield fact, text
            if len(element):
                yield from self._facts(item, element, is_direct=self._is_unclosed)

    def _said(self, fact: str, text: str, element: Any) -> tuple[str, str]:
        """Return the fact that an element states, and the fact's text; the text is empty if there is no fact."""
        if len(text) > self._limits.max_text:
            self._problems.add("text-too-long", text)
            self._is_dropped = True
            return fact, ""
        if fact == "link":
            if not is_page_link(element.get("rel")):
                return fact, ""
            text = element.get("href") or text
            media = element.get("type", "").lower()
            fact = "url" if not media or "html" in media else "other type"
        elif fact == "id" and element.get("isPermaLink", "").lower() == "false":
            return fact, ""
        text = self._plain(text).strip()
        if text and fact in ("url", "other type") and self.kind in ("rss", "atom"):
            # In most feeds, links within CDATA are escaped as HTML.
            text = self._joined(element, text.replace("&amp;", "&"))
        return fact, text

    def _joined(self, element: Any, reference: str) -> str:
        try:
            return urljoin(element.base, reference.strip()) if self.has_base else reference.strip()
        except ValueError:
            return reference

    def _plain(self, text: str) -> str:
        """Restore ampersands that began no reference of XML, and report them."""
        if RAW_AMPERSAND not in text:
            return text
        kinds: set[str] = set()

        def replaced(match: re.Match[str]) -> str:
            name = match[1]
            if name and name[:-1] in self._declared:
                kinds.add("entity")
            elif name in html5:
                kinds.add("html-entity")
                return html5[name]
            else:
                kinds.add("raw-ampersand")
            return f"&{name or ''}"

        text = _AMPERSAND.sub(replaced, text)
        gravest = next(kind for kind in ("entity", "raw-ampersand", "html-entity") if kind in kinds)
        self._problems.add(gravest, text.strip())
        self._is_dropped |= gravest == "entity"
        return text
