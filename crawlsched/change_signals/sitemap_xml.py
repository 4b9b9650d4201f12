"""Sitemaps, sitemap indexes, RSS and Atom, from their tags: which elements are pages, and which say what of them."""

import re
from collections.abc import Container
from urllib.parse import urljoin

from crawlsched.change_signals.collected import Collected
from crawlsched.change_signals.limits import Limits
from crawlsched.change_signals.markup import Tag, unescape
from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["SitemapXML"]

_KIND_OF_ROOT = {"urlset": "urlset", "sitemapindex": "index", "rss": "rss", "RDF": "rss", "feed": "atom"}
_ITEMS = {"urlset": ("url", "sitemap"), "index": ("url", "sitemap"), "rss": ("item",), "atom": ("entry",)}
# Elements directly below an item, and what they say. Other prefixes than the item's belong to extensions
# (image:loc is no page), except where they are named here.
_LEAVES = {
    "urlset": {"loc": "url", "lastmod": "modified", "priority": "priority", "changefreq": "changefreq"},
    "index": {"loc": "url", "lastmod": "modified", "priority": "priority", "changefreq": "changefreq"},
    "rss": {"link": "url", "guid": "id", "pubDate": "published"},
    "atom": {"link": "link", "id": "id", "updated": "modified", "published": "published"},
}
_FOREIGN_LEAVES = {
    "rss": {
        "dc:date": "published",
        "dcterms:modified": "modified",
        "atom:updated": "modified",
        "a10:updated": "modified",
    }
}
_MAX_NAMES = 1_000
_ATTRIBUTE = re.compile(r"""(?:^|\s)(href|rel|isPermaLink|xml:base)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_NOT_PAGES = frozenset({"self", "edit", "enclosure", "replies", "via", "related", "next", "hub"})


class SitemapXML:
    """Collects the items of a sitemap or a feed from its tags.

    Parameters
    ----------
    collected : Collected
        Where items go.
    limits : Limits
    declared : container of str
        Names of entities which the document declares.
    problems : ProblemCounter

    Attributes
    ----------
    kind : {"urlset", "index", "rss", "atom", "unknown"}
        Known when the first element was read.

    Notes
    -----
    There is no stack. An item (`url`, `sitemap`, `item`, `entry`) is open until it ends or the next one starts, and
    what says something of it stands directly below it: `_nested` counts the other elements that are open within.
    """

    def __init__(
        self, collected: Collected, limits: Limits, declared: Container[str], problems: ProblemCounter
    ) -> None:
        self.kind = "unknown"
        self._collected = collected
        self._limits = limits
        self._declared = declared
        self._problems = problems
        self._root = ""
        self._root_is_open = False
        self._items: dict[str, bool] = {}  # every element name met outside of items: is it an item?
        self._item = ""
        self._prefix = ""
        # What links of a feed are relative to, where it says so: in its first element, and in an item.
        self._feed_base = ""
        self._base = ""
        self._leaves: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self._is_dropped = False
        self._nested = 0

    def read(self, tags: list[Tag]) -> bool:
        """Take the next tags of the document; False when the rest is not to be read."""
        for slash, name, attributes, text in tags:
            if not self._item:
                goes_on = self._outside(slash, name, attributes)
            elif name in self._leaves:
                if not slash and not self._nested:
                    self._say(self._leaves[name], attributes, text)
                continue
            else:
                goes_on = self._inside(slash, name, attributes, text)
            if not goes_on:
                return False
        return True

    def finish(self, ends_in_text: bool) -> None:
        """Note that the document has ended."""
        if self.kind != "unknown" and (self._root_is_open or self._item):
            self._problems.add("truncated", self._said.get("url", "") if self._item else f"</{self._root}> is missing")
        elif self.kind != "unknown" and ends_in_text and not self._root:
            self._problems.add("truncated")

    def _outside(self, slash: str, name: str, attributes: str) -> bool:
        if not self._root and self.kind == "unknown":
            return not slash and self._first(name, attributes)
        if slash:
            if name == self._root:
                self._root_is_open = False
            else:
                self._nested = max(self._nested - 1, 0)
            return True
        if self._is_item(name):
            self._begin(name, attributes)
            return attributes[-1:] != "/" or self._end()
        return attributes[-1:] == "/" or self._deeper(name)

    def _inside(self, slash: str, name: str, attributes: str, text: str) -> bool:
        if slash:
            if name == self._item:
                return self._end()
            if name == self._root:
                self._root_is_open = False
                self._problems.add("unclosed", f"<{self._item}>")
                return self._end()
            self._nested = max(self._nested - 1, 0)
            return True
        if attributes[-1:] == "/":
            return True
        if name == self._item:  # items do not hold items: the last one was never closed
            self._problems.add("unclosed", f"<{self._item}>")
            goes_on = self._end()
            self._begin(name, attributes)
            return goes_on
        if name.endswith(":publication_date") and self.kind == "urlset":
            self._say("published", "", text)
        return self._deeper(name)

    def _deeper(self, name: str) -> bool:
        self._nested += 1
        if self._nested <= self._limits.max_depth:
            return True
        self._problems.add("too-deep", f"<{name}>")
        return False

    def _first(self, name: str, attributes: str) -> bool:
        """Take the first element, which says what the document is."""
        local = name.rpartition(":")[2]
        if local.lower() in ("html", "head", "body", "div", "script"):
            self._problems.add("html", f"<{name}>")
            return False
        self.kind = _KIND_OF_ROOT.get(local, "unknown")
        if self.kind != "unknown":
            self._root = name
            self._root_is_open = attributes[-1:] != "/"
            self._feed_base = _joined("", attributes)
            return True
        if local in ("url", "sitemap"):
            self.kind = "index" if local == "sitemap" else "urlset"
            self._problems.add("no-root", f"<{name}>")
            self._begin(name, attributes)
            return True
        return False

    def _is_item(self, name: str) -> bool:
        known = self._items.get(name)
        if known is None:
            known = name.rpartition(":")[2] in _ITEMS[self.kind]
            if len(self._items) < _MAX_NAMES:
                self._items[name] = known
        return known

    def _begin(self, name: str, attributes: str) -> None:
        if name != self._item or not self._leaves:
            prefix = name[: name.rfind(":") + 1]
            if prefix != self._prefix or not self._leaves:
                self._prefix = prefix
                self._leaves = {prefix + leaf: fact for leaf, fact in _LEAVES[self.kind].items()}
                self._leaves |= _FOREIGN_LEAVES.get(self.kind, {})
        self._item = name
        self._base = _joined(self._feed_base, attributes)
        self._said = {}
        self._is_dropped = False
        self._nested = 0

    def _say(self, fact: str, attributes: str, text: str) -> None:
        if attributes and self.kind in ("rss", "atom"):
            values = {match[1]: match[2] or match[3] or "" for match in _ATTRIBUTE.finditer(attributes)}
            if fact == "link":
                if values.get("rel", "alternate") in _NOT_PAGES:
                    return
                fact, text = "url", values.get("href", "")
                if text and (base := _joined(self._base, attributes)):
                    text = _join(base, text)
            elif fact == "id" and values.get("isPermaLink", "").lower() == "false":
                return
        if len(text) > self._limits.max_text:
            self._problems.add("text-too-long", text)
            self._is_dropped = True
            return
        if "&" in text:
            plain, problem = unescape(text, self._declared)
            if problem:
                self._problems.add(problem, text.strip())
                self._is_dropped |= problem == "entity"
            text = plain
        self._said.setdefault(fact, text)

    def _end(self) -> bool:
        """Collect the item that has ended; False when no more can be taken."""
        said = self._said
        is_child = self._item.endswith("sitemap")
        self._item = ""
        self._nested = 0
        if self._is_dropped:
            return self._collected.look()
        location = said.get("url") or said.get("id", "")
        lastmod = said.get("modified") or said.get("published")
        if is_child:
            return self._collected.child(location, lastmod)
        return self._collected.page(location, lastmod, said.get("priority"), said.get("changefreq"))


def _joined(base: str, attributes: str) -> str:
    """Return what is relative to an element's ``xml:base``, where it has one, and otherwise to the one around it."""
    if "xml:base" not in attributes:
        return base
    own = next((match[2] or match[3] or "" for match in _ATTRIBUTE.finditer(attributes) if match[1] == "xml:base"), "")
    return _join(base, unescape(own.strip())[0])


def _join(base: str, reference: str) -> str:
    try:
        return urljoin(base, reference)
    except ValueError:
        return reference
