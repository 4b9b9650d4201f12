"""The kind of a body, by its content type if this is plausible, and otherwise by its first bytes."""

import codecs
import re
from typing import NamedTuple

from w3lib.encoding import html_to_unicode

from crawlsched.change_detection.limits import LOOKED_AT

__all__ = ["Body", "content_kind", "decoded"]


class Body(NamedTuple):
    """The body of a response, with everything else that a recipe needs."""

    body: bytes
    content_type: str | None
    encoding: str | None
    url: str


def decoded(body: bytes, content_type: str | None, encoding: str | None) -> str:
    """Decode a body. A byte order mark is removed, and bytes that cannot be decoded become U+FFFD.

    Notes
    -----
    The encoding is chosen in the order of browsers. A byte order mark comes first, then the encoding that the caller or
    the header names, and then the encoding that the document declares. Otherwise it is UTF-8 if the body is valid in
    UTF-8, and Windows-1252 if not.

    Examples
    --------
    >>> decoded("é".encode("latin-1"), "text/html; charset=iso-8859-1", None) == decoded("é".encode(), None, None)
    True
    """
    try:
        return html_to_unicode(f"charset={encoding}" if encoding else content_type, body, auto_detect_fun=_likely)[1]
    except Exception:  # a name from the web can be any codec, and some codecs ignore the error handler and raise
        return body.decode("utf-8", "replace")


def _likely(body: bytes) -> str:
    try:
        codecs.utf_8_decode(body)  # a document that was cut within its last character is still UTF-8
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


_MARKED_TEXT = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BINARY_STARTS = (
    b"%PDF-", b"\x89PNG\r\n", b"GIF87a", b"GIF89a", b"\xff\xd8\xff", b"PK\x03\x04", b"\x1f\x8b", b"RIFF", b"OggS",
    b"ID3", b"\x00\x00\x00", b"\x7fELF", b"BZh", b"7z\xbc\xaf", b"wOFF", b"wOF2",
)  # fmt: skip
# Patterns of media types with their kinds; the first pattern that fits counts. Servers that do not know the type of a
# body send a media type of the first pattern.
_KINDS = (
    (re.compile(r"octet-stream|unknown|\*|^[^/]*$"), ""),
    (re.compile(r"html(?:\+xml)?$"), "html"),
    (re.compile(r"(?:java|ecma)script|yaml|ndjson|/sql"), "text"),
    (re.compile(r"json$"), "json"),
    (re.compile(r"^(?!image/).*[/+](?:xml|rss|rdf)$"), "xml"),
    (re.compile(r"^text/"), "text"),
)


def content_kind(body: bytes, content_type: str | None, encoding: str | None = None) -> str:
    """Return the kind of a body: "html", "xml", "json", "text" or "binary".

    Examples
    --------
    >>> content_kind(b"<p>", "text/html; charset=utf-8"), content_kind(b"%PDF-1.7", "text/html")
    ('html', 'binary')
    >>> content_kind(b'{"a": 1}', None), content_kind(b"<rss>", "application/rss+xml")
    ('json', 'xml')
    """
    # If a server sends the header twice, both values may be in one text, separated by a comma.
    media_type = (content_type or "").replace(",", ";").partition(";")[0].strip().lower()
    kind = next((kind for pattern, kind in _KINDS if pattern.search(media_type)), "binary")
    if kind == "binary" or _looks_binary(body, encoding):
        return "binary"
    start = body[:LOOKED_AT].removeprefix(codecs.BOM_UTF8).lstrip().lower()
    if kind in ("html", "text") and start[:1] + body[-LOOKED_AT:].rstrip()[-1:] in (b"{}", b"[]"):
        return "json"  # JSON is often sent as text or HTML
    return kind or _sniffed_kind(start)


def _looks_binary(body: bytes, encoding: str | None) -> bool:
    """Whether a body is binary, although its header names a text or is missing."""
    if body.startswith(_BINARY_STARTS):
        return True
    if body.startswith(_MARKED_TEXT) or (encoding or "").lower().startswith(("utf-16", "utf-32", "utf16", "utf32")):
        return False
    start = body[:LOOKED_AT]
    return start.count(0) > len(start) // 500  # few NULs in a long text may be an accident


def _sniffed_kind(start: bytes) -> str:
    if start.startswith((b"{", b"[")):
        return "json"
    if not start.startswith(b"<"):
        return "text"
    is_xml = start.startswith((b"<?xml", b"<rss", b"<feed", b"<urlset", b"<sitemapindex"))
    return "xml" if is_xml and not (b"<html" in start or b"<!doctype html" in start) else "html"
