"""Binary content: PDF, archives and pictures without what only says when and by what they were made."""

import io
import re
import struct
import zipfile
import zlib

from crawlsched.change_detection.limits import MOST_BLOCKS

__all__ = ["GZIP", "members_of_zip", "unpacked_gzip", "without_dates"]

GZIP = b"\x1f\x8b"
_MOST_UNPACKED = 16_000_000
# What is packed more tightly would take a hundred times its size in memory when it is read.
_MOST_TIMES, _SMALL = 8, 256_000
_PDF_DATES = re.compile(
    rb"/(?:CreationDate|ModDate)\s*(?:\((?:[^()\\]|\\.)*+\)|<[0-9A-Fa-f]*+>)|/ID\s*\[[^\]]{0,400}+\]"
    rb"|/(?:Producer|Creator)\s*\((?:[^()\\]|\\.){0,400}+\)"
    rb"|<(?:xmp|pdf|xmpMM):(?:CreateDate|ModifyDate|MetadataDate|Producer|CreatorTool|DocumentID|InstanceID)>[^<]*+<"
    rb"|startxref\s++\d++|\d{10} \d{5} [nf]",
)
_OF_PROGRAMS = frozenset({"docProps/core.xml", "docProps/app.xml", "meta.xml"})
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_SEEN = frozenset({b"IHDR", b"PLTE", b"tRNS", b"acTL", b"fcTL"})


def members_of_zip(body: bytes) -> list[tuple[str, str]] | None:
    """Return names and digests of what is in an archive (also xlsx, docx, epub), in order; None if it is none.

    >>> packed = io.BytesIO()
    >>> with zipfile.ZipFile(packed, "w") as archive:
    ...     archive.writestr("tea.txt", "A cup")
    >>> members_of_zip(packed.getvalue())
    [('tea.txt', '4b5fa02c 5')]
    """
    if not body.startswith(b"PK\x03\x04") or body.count(b"PK\x01\x02") > MOST_BLOCKS:
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            return sorted(
                (member.filename, f"{member.CRC:08x} {member.file_size}")
                for member in archive.infolist()
                if member.filename not in _OF_PROGRAMS and not member.is_dir()
            )
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, struct.error):
        return None


def unpacked_gzip(body: bytes) -> bytes | None:
    """Return what a gzip file holds; None if it is none, is damaged, or holds more than eight times its size."""
    if not body.startswith(GZIP):
        return None
    return _unpacked(body, 16 + zlib.MAX_WBITS, min(max(_MOST_TIMES * len(body), _SMALL), _MOST_UNPACKED))


def without_dates(body: bytes) -> bytes:
    """Return a PDF without dates and ids, gzip without its time, of a PNG the picture; all else as it is.

    >>> without_dates(b"%PDF-1.7 /CreationDate (D:20260101) tea")
    b'%PDF-1.7  tea'
    """
    if body.startswith(b"%PDF-"):
        return _PDF_DATES.sub(b"", body)
    if body.startswith(GZIP):
        return body[:4] + body[8:]
    if body.startswith(_PNG):
        return _picture_of_png(body)
    return body


def _picture_of_png(body: bytes) -> bytes:
    kept, packed, position = [_PNG], [], len(_PNG)
    while position + 8 <= len(body):
        length, name = struct.unpack_from(">I4s", body, position)
        data = body[position + 8 : position + 8 + length]
        if name in _PNG_SEEN:
            kept += name, data
        elif name in (b"IDAT", b"fdAT"):
            packed.append(data)
        position += 12 + length
    pixels = _unpacked(b"".join(packed), zlib.MAX_WBITS, _MOST_UNPACKED)
    return body if pixels is None else b"".join([*kept, pixels])


def _unpacked(data: bytes, window: int, most: int) -> bytes | None:
    """Return what was compressed; None where that is damaged, or more than this."""
    try:
        unpacker = zlib.decompressobj(window)
        unpacked = unpacker.decompress(data, most)
    except zlib.error:
        return None
    return unpacked if unpacker.eof else None
