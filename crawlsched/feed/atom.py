"""The feed as Atom (RFC 4287), for whatever reads feeds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote
from xml.etree import ElementTree

from crawlsched.feed.feed import Change

__all__ = ["atom"]

_ATOM = "http://www.w3.org/2005/Atom"
# What XML 1.0 has no way to write.
_UNSPEAKABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def atom(changes: Sequence[Change], collection: str, address: str, now: float) -> bytes:
    """Return changes, newest first, as an Atom document that is served at `address`."""
    feed = ElementTree.Element("feed", xmlns=_ATOM)
    _add(feed, "title", f"Changes of {collection}")
    # The address of a server may change, the identity of a feed may not.
    _add(feed, "id", f"urn:crawlsched:{quote(collection, safe='')}")
    _add(feed, "updated", _time(changes[0].time if changes else now))
    ElementTree.SubElement(feed, "link", rel="self", type="application/atom+xml", href=_plain(address))
    _add(ElementTree.SubElement(feed, "author"), "name", "crawlsched")
    for change in changes:
        _add_entry(feed, change, collection)
    document: bytes = ElementTree.tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def _add_entry(feed: ElementTree.Element, change: Change, collection: str) -> None:
    entry = ElementTree.SubElement(feed, "entry")
    _add(entry, "title", f"{change.kind.capitalize()}: {change.url}")
    _add(entry, "id", f"urn:crawlsched:{quote(collection, safe='')}:{change.shard}:{change.id}")
    _add(entry, "updated", _time(change.time))
    if change.url.lower().startswith(("http://", "https://")):
        ElementTree.SubElement(entry, "link", rel="alternate", href=_plain(change.url))
    ElementTree.SubElement(entry, "category", term=change.kind)
    content = f"<p>{escape(change.sentence)}</p>"
    if change.diff:
        content += f"<pre>{escape(chr(10).join(change.diff))}</pre>"
    _add(entry, "content", content).set("type", "html")


def _add(parent: ElementTree.Element, name: str, text: str) -> ElementTree.Element:
    element = ElementTree.SubElement(parent, name)
    element.text = _plain(text)
    return element


def _plain(text: str) -> str:
    return _UNSPEAKABLE.sub("\ufffd", text)


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
