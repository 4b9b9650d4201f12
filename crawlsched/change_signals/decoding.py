"""Decoding: from bytes, perhaps compressed, to characters.

The encoding is that of the byte order mark or of the XML declaration, or UTF-8.
"""

import codecs
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

from w3lib.encoding import read_bom, resolve_encoding

from crawlsched.change_signals.collected import Limits
from crawlsched.change_signals.problems import ProblemCounter

__all__ = [
    "characters",
    "plain_chunks",
]

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 32_768
_GZIP_WINDOW = zlib.MAX_WBITS + 16  # with a gzip header


def plain_chunks(body: bytes, limits: Limits, problems: ProblemCounter) -> Iterator[bytes]:
    """Yield a body in chunks of at most 32 KB, up to `max_bytes` altogether, decompressed if it starts like gzip."""
    chunks: Iterator[bytes] = (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
    for _ in range(2):  # a server may compress a .gz file again
        first = next(chunks, b"")
        chunks = chain((first,), chunks)
        if not first.startswith(_GZIP_MAGIC):
            break
        # The limit applies to each layer, so a gzip bomb within another takes no more memory than a single bomb.
        chunks = _limited(_gunzipped(chunks, limits.max_members, problems), limits.max_bytes, problems)
    return _limited(chunks, limits.max_bytes, problems)


def _gunzipped(chunks: Iterator[bytes], max_members: int, problems: ProblemCounter) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(_GZIP_WINDOW)
    members = 1
    for chunk in chunks:
        data, holds_more = chunk, False
        while data or holds_more:
            if decompressor.eof:
                # After a member of a gzip file, there is another member or padding.
                if members == max_members or not data.startswith(_GZIP_MAGIC[:1]):
                    return
                decompressor = zlib.decompressobj(_GZIP_WINDOW)
                members += 1
            before = decompressor.copy()
            try:
                plain = decompressor.decompress(data, _CHUNK)
            except zlib.error as error:
                yield from _up_to_damage(before, data)
                problems.add("bad-gzip", str(error))
                return
            if plain:
                yield plain
            data = decompressor.unused_data if decompressor.eof else decompressor.unconsumed_tail
            holds_more = len(plain) == _CHUNK and not decompressor.eof
    if not decompressor.eof:
        problems.add("truncated", "the compressed data end too early")


def _up_to_damage(decompressor: Any, data: bytes) -> Iterator[bytes]:
    """Decompress byte by byte, since a call that finds damage loses all of its output."""
    with suppress(zlib.error):
        for place in range(len(data)):
            if plain := decompressor.decompress(data[place : place + 1]):
                yield plain


def _limited(chunks: Iterator[bytes], max_bytes: int, problems: ProblemCounter) -> Iterator[bytes]:
    left = max_bytes
    for chunk in chunks:
        if len(chunk) > left:
            problems.add("too-large", f"more than {max_bytes} bytes")
            yield chunk[:left]
            return
        left -= len(chunk)
        yield chunk


# The first characters of a document are ASCII. Without a byte order mark, the places of their zero bytes show the
# encoding (RFC 4627, section 3).
_UNMARKED = (
    (re.compile(rb"[^\0]\0\0\0", re.DOTALL), "utf-32-le"),
    (re.compile(rb"\0\0\0[^\0]", re.DOTALL), "utf-32-be"),
    (re.compile(rb"[^\0]\0[^\0]\0", re.DOTALL), "utf-16-le"),
    (re.compile(rb"\0[^\0]\0[^\0]", re.DOTALL), "utf-16-be"),
)
_DECLARATION = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")


def characters(chunks: Iterator[bytes], problems: ProblemCounter) -> Iterator[str]:
    """Decode the bytes of an XML or text document, chunk by chunk; undecodable bytes become U+FFFD and a problem."""
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start) >= len(codecs.BOM_UTF32):
            break
    encoding, skip = _encoding(start, problems)
    for text in codecs.iterdecode(chain((start[skip:],), chunks), encoding, "replace"):
        _report_damage(text, problems)
        yield text


def _encoding(start: bytes, problems: ProblemCounter) -> tuple[str, int]:
    """Return the encoding of a document with this start, and the size of its byte order mark."""
    by_mark, mark = read_bom(start)
    if by_mark:
        return by_mark, len(mark or b"")
    for pattern, encoding in _UNMARKED:
        if pattern.match(start):
            return encoding, 0
    declared = _DECLARATION.match(start)
    if not declared:
        return "utf-8", 0
    name = declared[1].decode("ascii")
    try:
        # A declaration that can be read byte by byte is not in UTF-16, even if it states UTF-16. Codecs such as "rot13"
        # or "zip" are no encodings of text.
        fits = "<?xml".encode(name) == b"<?xml" and isinstance(
            codecs.getincrementaldecoder(name)("replace").decode(b"<"), str
        )
    except Exception:  # codecs that are no text encodings raise many kinds of errors
        fits = False
    if not fits:
        problems.add("unknown-encoding", name)
        return "utf-8", 0
    # Most documents that declare Latin-1 are in Windows-1252, which has more characters (WHATWG, Encoding, 4.2).
    return resolve_encoding(name) or "utf-8", 0


def _report_damage(text: str, problems: ProblemCounter) -> None:
    count = text.count("\ufffd")
    if count:
        place = text.index("\ufffd")
        problems.add("encoding", text[max(0, place - 40) : place + 40], count)
