"""Recipes: which part of a response counts as content.

Each recipe has an ``id`` (method, parameters, library version) and a method
``fingerprint(body, content_type, encoding, url)``. No body makes one raise or run for ever.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, Protocol

from lxml import etree, html
from lxml.cssselect import CSSSelector

from crawlsched.change_detection.fingerprint import Fingerprint

__all__ = ["RawBytes", "Recipe", "Selectors", "UserFunction", "VisibleText", "recipe"]

logger = logging.getLogger(__name__)

# A parser's idea of a document may change with its version; then fingerprints must not be compared.
_PARSER = "lxml" + ".".join(map(str, etree.LXML_VERSION[:2])) + "-libxml" + ".".join(map(str, etree.LIBXML_VERSION))
_INVISIBLE = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "head", "object", "canvas"})
_HTML = re.compile(r"html|^$", re.IGNORECASE)
_XML = re.compile(r"[/+]xml", re.IGNORECASE)
_JSON = re.compile(r"[/+]json", re.IGNORECASE)
_TEXT = re.compile(r"^text/", re.IGNORECASE)
# What says when a feed was made, and nothing about what is in it.
_FEED_CHURN = frozenset({"lastBuildDate", "updated", "generator", "ttl"})
_WORD = re.compile(r"\S+")


class Recipe(Protocol):
    """How content becomes a fingerprint."""

    id: str

    def fingerprint(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> Fingerprint:
        """Return the fingerprint of a body."""


class RawBytes:
    """Every byte counts.

    Examples
    --------
    >>> RawBytes().fingerprint(b"a", None, None, "").digest == RawBytes().fingerprint(b"b", None, None, "").digest
    False
    """

    id = "raw_bytes/1"

    def fingerprint(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> Fingerprint:
        """Return the fingerprint of a body."""
        return Fingerprint.of(self.id, body)


class Selectors:
    """The visible text of some parts of a page counts, without that of others.

    Scripts, styles, comments and attributes never count, nor do white space, charset and the spelling of entities.
    What is not HTML counts as its kind deserves: JSON whatever the order of its keys, feeds without their build date,
    plain text without its white space, everything else byte by byte.

    Parameters
    ----------
    keep : sequence of str
        CSS selectors; empty: the whole page.
    drop : sequence of str
        CSS selectors of parts that do not count, also within what is kept.

    Raises
    ------
    ValueError
        If a selector cannot be read.

    Examples
    --------
    >>> price = Selectors(keep=[".price"], drop=["small"])
    >>> one = price.fingerprint(b"<b class=price>5<small>now</small></b> at 1 pm", "text/html", "utf-8", "")
    >>> two = price.fingerprint(b"<b class=price>5<small>later</small></b> at 2 pm", "text/html", "utf-8", "")
    >>> one == two
    True
    """

    def __init__(self, keep: Sequence[str] = (), drop: Sequence[str] = ()) -> None:
        self._keep = [_selector("keep", text) for text in keep]
        self._drop = [_selector("drop", text) for text in drop]
        parameters = blake2b(json.dumps([list(keep), list(drop)]).encode(), digest_size=6).hexdigest()
        self.id = f"visible_text/1/{parameters}/{_PARSER}" if keep or drop else f"visible_text/1/{_PARSER}"

    def fingerprint(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> Fingerprint:
        """Return the fingerprint of a body."""
        return Fingerprint.of(self.id, self._content(body, content_type or "", encoding))

    def _content(self, body: bytes, content_type: str, encoding: str | None) -> bytes:
        kind = content_type.partition(";")[0].strip()
        try:
            if _HTML.search(kind):
                return body if b"\0" in body[:1024] else self._html(body, encoding)
            if _JSON.search(kind):
                return json.dumps(json.loads(body), sort_keys=True).encode()
            if _XML.search(kind):
                return _xml(body)
            if _TEXT.search(kind):
                return " ".join(body.decode(encoding or "utf-8", "replace").split()).encode("utf-8", "replace")
        except (ValueError, LookupError, RecursionError, etree.LxmlError) as error:
            logger.debug("A body of type %r could not be read (%s); its bytes count.", kind, error)
        return body

    def _html(self, body: bytes, encoding: str | None) -> bytes:
        with suppress(LookupError):
            # Decoding here and encoding again is what makes the charset of the wire not matter.
            body = body.decode(encoding or "utf-8", "replace").encode("utf-8", "replace")
        parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, huge_tree=False)
        root = etree.fromstring(body, parser) if body.strip() else None
        if root is None:
            return b""
        dropped = {part for selector in self._drop for part in selector(root)}
        parts = [root]
        if self._keep:
            # In the order of the page, so that the order of the selectors does not matter.
            kept = {part for selector in self._keep for part in selector(root)}
            parts = [part for part in root.iter() if part in kept and not kept.intersection(part.iterancestors())]
        words = [word for part in parts for word in _WORD.findall(_visible_text(part, dropped))]
        return " ".join(words).encode("utf-8", "replace")


class VisibleText(Selectors):
    """The visible text of the whole page counts; see `Selectors`."""

    def __init__(self) -> None:
        super().__init__()


class UserFunction:
    """What a function of the user's returns counts.

    Parameters
    ----------
    function : callable
        ``function(body, content_type, url)`` returns bytes or str. Its ``version`` attribute, if it has one, becomes
        part of the recipe's id: change it whenever the function begins to see pages in another way.
    """

    def __init__(self, function: Callable[[bytes, str | None, str], bytes | str]) -> None:
        self._function = function
        name = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
        self.id = f"function/1/{name}/{getattr(function, 'version', 1)}"

    def fingerprint(self, body: bytes, content_type: str | None, encoding: str | None, url: str) -> Fingerprint:
        """Return the fingerprint of a body; if the function raises, the bytes count, and the log says so."""
        try:
            content = self._function(body, content_type, url)
        except Exception as error:
            logger.error("CRAWLSCHED_FINGERPRINT raised for %s (%r); the page's bytes count instead.", url, error)
            return Fingerprint.of(f"{self.id}/raised", body)
        return Fingerprint.of(self.id, content.encode("utf-8", "replace") if isinstance(content, str) else content)


def recipe(method: str | Callable[..., Any], *, keep: Sequence[str] = (), drop: Sequence[str] = ()) -> Recipe:
    """Return the recipe of this name.

    Parameters
    ----------
    method : {"raw_bytes", "visible_text"} or callable
        What counts; a callable ``f(body, content_type, url)`` returns what does.
    keep, drop : sequence of str
        CSS selectors, with "visible_text".

    Raises
    ------
    ValueError
        If the method is not known, a selector cannot be read, or selectors come with another method.

    Examples
    --------
    >>> recipe("raw_bytes").id
    'raw_bytes/1'
    """
    if method == "visible_text":
        return Selectors(keep, drop)
    if keep or drop:
        raise ValueError(f"keep and drop select visible text; with the method {method!r} they must be empty.")
    if method == "raw_bytes":
        return RawBytes()
    if callable(method):
        return UserFunction(method)
    raise ValueError(f"method must be 'raw_bytes', 'visible_text' or a callable, got {method!r}.")


def _selector(argument: str, text: str) -> CSSSelector:
    try:
        return CSSSelector(text, translator="html")
    except Exception as error:  # cssselect and lxml each have their own trees of exceptions
        raise ValueError(f"{argument} has {text!r}, which is no CSS selector: {error}.") from None


def _visible_text(root: Any, dropped: Iterable[Any]) -> str:
    """Return the text a reader sees below a node; a loop, since pages are nested as deeply as they like."""
    pieces: list[str] = []
    skip_until: Any = None
    for event, node in etree.iterwalk(root, events=("start", "end")):
        if skip_until is not None:
            if event == "end" and node is skip_until:
                skip_until = None
                pieces.append(node.tail or "" if node is not root else "")
            continue
        if event == "start":
            if node.tag in _INVISIBLE or node in dropped or "hidden" in node.attrib:
                skip_until = node
                continue
            pieces.append(node.text or "")
        elif node is not root:
            pieces.append(node.tail or "")
        # Words of neighbouring blocks stay apart; within a word tags like <b> would come to the same everywhere.
        pieces.append(" ")
    return "".join(pieces)


def _xml(body: bytes) -> bytes:
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, recover=True)
    root = etree.fromstring(body, parser)
    if root is None:
        return body
    pieces = []
    for node in root.iter(etree.Element):
        name = etree.QName(node).localname
        # An entry of a feed keeps its own date; the feed's says only when it was made.
        if (
            name in _FEED_CHURN
            and node.getparent() is not None
            and etree.QName(node.getparent()).localname
            in (
                "channel",
                "feed",
            )
        ):
            continue
        pieces.append(f"{name} {sorted(node.attrib.items())} {' '.join((node.text or '').split())}")
    return "\n".join(pieces).encode("utf-8", "replace")
