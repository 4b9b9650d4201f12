"""Decoding of XML: from bytes to characters, by byte order mark, XML declaration, or UTF-8."""

import codecs
import re
from collections.abc import Iterator
from itertools import chain

from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["characters"]

# The mark of UTF-32 starts as that of UTF-16 does.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Where there is no mark: in these, signs that are of ASCII have zeros (RFC 4627, section 3).
_UNMARKED = (
    (re.compile(rb"[^\0]\0\0\0", re.DOTALL), "utf-32-le"),
    (re.compile(rb"\0\0\0[^\0]", re.DOTALL), "utf-32-be"),
    (re.compile(rb"[^\0]\0[^\0]\0", re.DOTALL), "utf-16-le"),
    (re.compile(rb"\0[^\0]\0[^\0]", re.DOTALL), "utf-16-be"),
)
_DECLARATION = re.compile(rb"""\s*<\?xml[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""")
_SMALLEST_START = 4
# What calls itself so is Windows-1252 as a rule, which has some signs more (WHATWG, Encoding, section 4.2).
_MEANS_1252 = frozenset({"iso8859-1", "ascii"})


def characters(chunks: Iterator[bytes], problems: ProblemCounter) -> Iterator[str]:
    """Decode the bytes of an XML or text document, chunk by chunk; undecodable bytes become U+FFFD and a problem."""
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start) >= _SMALLEST_START:
            break
    encoding, skip = _encoding(start, problems)
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chain((start[skip:],), chunks):
        text = decoder.decode(chunk)
        _report_damage(text, problems)
        yield text
    text = decoder.decode(b"", True)
    _report_damage(text, problems)
    yield text


def _encoding(start: bytes, problems: ProblemCounter) -> tuple[str, int]:
    """Name the encoding of a document that starts so, and how many bytes its mark takes."""
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding, len(mark)
    for pattern, encoding in _UNMARKED:
        if pattern.match(start):
            return encoding, 0
    declared = _DECLARATION.match(start)
    if not declared:
        return "utf-8", 0
    name = declared[1].decode("ascii")
    try:
        codec = codecs.lookup(name)
        # A declaration that can be read byte by byte is not in UTF-16, whatever it says; and codecs such as
        # "rot13" or "zip" are no encodings of text.
        fits = "<?xml".encode(name) == b"<?xml" and isinstance(
            codecs.getincrementaldecoder(name)("replace").decode(b"<"), str
        )
    except Exception:  # codecs raise whatever they like for what is no text encoding
        fits = False
    if not fits:
        problems.add("unknown-encoding", name)
        return "utf-8", 0
    return "cp1252" if codec.name in _MEANS_1252 else codec.name, 0


def _report_damage(text: str, problems: ProblemCounter) -> None:
    count = text.count("\ufffd")
    if count:
        place = text.index("\ufffd")
        problems.add("encoding", text[max(0, place - 40) : place + 40], count)
