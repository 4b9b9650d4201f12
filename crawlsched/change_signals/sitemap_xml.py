"""Sitemaps, sitemap indexes, RSS and Atom, read by lxml element by element, without ever holding a tree of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html.entities import html5
from time import sleep
from urllib.parse import urljoin

from crawlsched.change_signals.collected import Collected, Limits
from crawlsched.change_signals.locations import is_web_url
from crawlsched.change_signals.mending import RAW_AMPERSAND, UNDECLARED, Mender
from crawlsched.change_signals.problems import ProblemCounter

__all__ = [
    "BASE",
    "ITEMS",
    "KIND_OF_ROOT",
    "fact_of",
    "is_page_link",
    "parted",
    "read_xml",
]

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


_HTML = ("html", "head", "body", "div", "script")
_MAX_NAMES = 10_000
# Everything stands below elements of our own, so that what follows the document's first element is read, too, and
# ends of elements that never began close those.
_AROUND = "crawlsched"
_NONE: Mapping[str, str] = {}
_NOTHING: list[str] = []
_LEVELS = 1_000
_NOWHERE = -_LEVELS - 10
_AMPERSAND = re.compile(rf"{RAW_AMPERSAND}([A-Za-z_][A-Za-z0-9._-]{{0,63}};)?")


def read_xml(characters: Iterable[str], collected: Collected, limits: Limits, problems: ProblemCounter) -> str:
    """Read an XML document into `collected`; return its kind, "unknown" if it is no sitemap and no feed."""
    from lxml import etree

    mender = Mender(problems, 2 * limits.max_text + 1024, limits.max_elements)
    elements = _Elements(collected, limits, mender.declared, problems)
    # Nothing is resolved or fetched, and there is nothing to be: the mender lets no document type through.
    parser = etree.XMLParser(target=elements, encoding="utf-8", recover=True, no_network=True, load_dtd=False)
    parser.feed(f"<{_AROUND}>".encode() * _LEVELS)
    for piece in mender.mended(characters):
        # libxml2 works without the interpreter's lock, but for the calls of `elements`.
        parser.feed(piece.encode("utf-8", "backslashreplace"))
        if elements.is_enough:
            return elements.kind
        sleep(0)  # gives up the interpreter lock
    elements.finish(mender.tail)
    errors = parser.feed_error_log.filter_from_errors()
    if errors and elements.kind in ("rss", "atom"):
        problems.add("damaged-feed", errors[0].message, len(errors))
    return elements.kind


class _Elements:
    """Collects the items of a document: the target of lxml's parser, which calls it where elements start and end.

    An item (`url`, `sitemap`, `item`, `entry`) is open until it ends or the next one starts; its facts stand directly
    below.
    """

    def __init__(self, collected: Collected, limits: Limits, declared: set[str], problems: ProblemCounter) -> None:
        self.kind = "unknown"
        self.is_enough = False
        self._collected = collected
        self._limits = limits
        self._declared = declared
        self._problems = problems
        self._n_left = limits.max_elements + _LEVELS
        self._tags: dict[str, tuple[str, str]] = {}
        self._root = ""
        self._depth = -_LEVELS  # so that the document's own elements begin at 1
        self._lost = 0  # levels that are open only because somebody forgot to close them
        self._item: tuple[str, str] | None = None
        self._item_namespace: str | None = None
        self._facts: dict[str, str] = {}  # what elements directly below an item of this namespace say
        self._direct = _NOWHERE  # the depth of what stands directly below the item
        self._child = ""  # the element directly below the item within which we are
        self._bases: list[tuple[int, str]] = []
        self._said: dict[str, list[str]] = {}
        self._dated: dict[str, str] = {}  # by element
        self._fact = ""
        self._attributes = _NONE
        self._text: list[str] = []
        self._length = 0
        self._is_dropped = False
        self._is_unclosed = False  # what stands directly below the item: deeper elements are taken for such, too

    # -- what lxml calls

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if self.is_enough:
            return
        self._depth += 1
        self._n_left -= 1
        if self._n_left < 0:
            self._stop("too-many-elements")
        # Nearly all elements of a sitemap are such: directly below an entry, and met before.
        if self._depth == self._direct and not attributes and tag in self._facts:
            self._child = tag
            if fact := self._facts[tag]:
                self._begin_fact(fact, attributes)
        elif self._depth > 0:
            self._start_other(tag, attributes)

    def _start_other(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = self._tags.get(tag) or self._new_tag(tag)
        if attributes and (base := attributes.get(BASE)):
            self._bases.append((self._depth, _join(self._base(), base)))
        if not self._root and not self._first(name):
            self.is_enough = True
            return
        if name == self._item if self._item else name[1] in ITEMS[self.kind]:
            if self._item is not None:
                if self.kind == "atom" and self._depth > self._direct and parted(self._child)[1] == "content":
                    return  # it quotes an entry
                self._problems.add("unclosed", f"<{self._item[1]}>")
                self._lost = self._depth - 1
                self._end_item()
            self._begin_item(name, attributes)
        elif self._item is not None:
            self._inside(tag, name, attributes)
        elif attributes and name[1] == "link" and self.kind in ("rss", "atom"):
            base = _join(self._collected.url, self._base()) or self._collected.url
            self._collected.hubs.add(attributes.get("rel", ""), attributes.get("href", ""), base)
        if self._depth - self._lost > self._limits.max_depth:
            self._stop("too-deep", f"<{name[1]}>")

    def end(self, tag: str) -> None:
        depth = self._depth
        if depth <= 0 or self.is_enough:  # one of ours around the document
            return
        if self._fact and depth == self._fact_depth:
            self._say()
        elif depth == self._direct - 1:
            self._end_item()
        if self._bases and self._bases[-1][0] == depth:
            self._bases.pop()
        self._depth = depth = depth - 1
        if self._lost > depth:
            self._lost = depth

    def data(self, text: str) -> None:
        if not self._fact and (self._depth != self._direct - 1 or text.isspace()):
            return
        # Of a longer text one character more is kept at least, so that it is seen to be too long.
        if self._length <= self._limits.max_text:
            self._text.append(text)
            self._length += len(text)

    def close(self) -> None:
        return

    # -- items

    def finish(self, tail: str) -> None:
        """Note that the document has ended."""
        if self._item is None and self._depth <= 0:
            return
        if re.search(rf"</(?:[^\s<>:]+:)?{re.escape(self._root)}\s*>\s*\Z", tail, re.IGNORECASE):
            self._problems.add("unclosed", f"<{self._item[1] if self._item else self._root}>")
            if self._item is not None:
                self._end_item()
        else:
            where = "".join(self._said.get("url", [])[:1]) if self._item else f"</{self._root}> is missing"
            self._problems.add("truncated", where)

    def _new_tag(self, tag: str) -> tuple[str, str]:
        if len(self._tags) >= _MAX_NAMES:
            self._stop("too-many-elements", f"more than {_MAX_NAMES} names of elements")
        name = self._tags[tag] = parted(tag)
        return name

    def _stop(self, problem: str, example: str = "") -> None:
        self._problems.add(problem, example)
        self.is_enough = True

    def _first(self, name: tuple[str, str]) -> bool:
        """Take the first element, which decides the kind of the document."""
        local = name[1]
        if local in _HTML:
            self._problems.add("html", f"<{local}>")
            return False
        self._root = local
        if local in ("url", "sitemap"):
            self.kind = "index" if local == "sitemap" else "urlset"
            self._problems.add("no-root", f"<{local}>")
        else:
            is_other = local == "entry" and "atom" not in name[0]  # many a document has entries
            self.kind = "unknown" if is_other else KIND_OF_ROOT.get(local, "unknown")
        return self.kind != "unknown"

    def _begin_item(self, name: tuple[str, str], attributes: Mapping[str, str]) -> None:
        if self._item_namespace != name[0]:
            self._item_namespace, self._facts = name[0], {}
        self._item, self._direct = name, self._depth + 1
        self._said, self._dated = {}, {}
        self._fact = self._child = ""
        self._text, self._length = [], 0
        self._is_dropped = self._is_unclosed = False
        if attributes and self.kind == "rss":  # RSS 1.0 and CDF name the page in the item itself
            for attribute, value in attributes.items():
                fact = {"about": "about", "href": "about", "lastmod": "modified"}.get(parted(attribute)[1])
                if fact:
                    self._said.setdefault(fact, []).append(_join(self._base(), value) if fact == "about" else value)

    def _inside(self, tag: str, name: tuple[str, str], attributes: Mapping[str, str]) -> None:
        assert self._item is not None
        if self._depth > self._direct and self._fact and any(map(str.strip, self._text)):
            self._problems.add("unclosed", f"<{parted(self._child)[1]}>")
            self._is_unclosed = True
            self._say()
        is_direct = self._depth == self._direct or self._is_unclosed
        fact = fact_of(self.kind, self._item[0], *name, is_direct=is_direct)
        if is_direct:
            self._child = tag
        if self._depth == self._direct:
            self._facts[tag] = fact
        if fact:
            self._begin_fact(fact, attributes)

    def _begin_fact(self, fact: str, attributes: Mapping[str, str]) -> None:
        if self._length:
            self._say("text")
        self._fact, self._fact_depth = fact, self._depth
        self._attributes = dict(attributes) if attributes else _NONE
        self._text = []
        self._length = 0

    def _say(self, fact: str = "") -> None:
        """Take the fact of an element; the text so far is its own."""
        attributes = _NONE if fact else self._attributes
        fact = fact or self._fact
        self._fact = ""
        text, self._text, self._length = "".join(self._text), [], 0
        if len(text) > self._limits.max_text:
            if fact != "text":
                self._problems.add("text-too-long", text)
                self._is_dropped = True
            return
        if fact == "link":
            if not is_page_link(attributes.get("rel")):
                return
            text = attributes.get("href") or text
            media = attributes.get("type", "").lower()
            fact = "url" if not media or "html" in media else "other type"
        elif fact == "id" and attributes.get("isPermaLink", "").lower() == "false":
            return
        text = self._plain(text)
        if text and (text := text.strip()):
            if fact in ("url", "other type") and self.kind in ("rss", "atom"):
                # A link within CDATA is escaped as HTML, more often than not.
                text = _join(self._base(), text.replace("&amp;", "&"))
            if fact in ("modified", "published") and self._dated.setdefault(self._child, text) != text:
                self._problems.add("second-lastmod", text)
            self._said.setdefault(fact, []).append(text)

    def _plain(self, text: str) -> str:
        """Put ampersands back that were no references of XML, and say so."""
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

    def _end_item(self) -> None:
        """Collect the item that has ended."""
        if self._fact:
            self._say()
        assert self._item is not None
        is_child = self._item[1] == "sitemap"
        bare = "".join(self._text).strip()
        self._item, self._direct, self._text, self._length = None, _NOWHERE, [], 0
        said = self._said
        if self._is_dropped:
            self.is_enough = not self._collected.look()
            return
        places = said.get("original", []) + said.get("url", [])
        if self.kind not in ("urlset", "index"):
            places = places + said.get("other type", []) + said.get("about", [])
            places += [place for place in said.get("id", []) if is_web_url(place)]
        elif not places:
            places = [self._plain(text) for text in (*said.get("text", []), bare) if is_web_url(self._plain(text))]
        elif len(set(places)) > 1:
            self._problems.add("second-url", places[1])
        dates = said.get("modified", _NOTHING) + said.get("published", _NOTHING)
        if is_child:
            goes_on = self._collected.child(places, dates)
        else:
            goes_on = self._collected.page(places, dates, said.get("priority", []), said.get("changefreq", []))
        self.is_enough = not goes_on

    def _base(self) -> str:
        return self._bases[-1][1] if self._bases else ""


def _join(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference.strip()) if base else reference.strip()
    except ValueError:
        return reference
