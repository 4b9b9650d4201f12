"""Body blocks: the blocks of bodies other than HTML, such as values of JSON, lines, cells or members of archives."""

import csv
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Collection
from itertools import islice

from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.content_kind import content_kind, decoded
from crawlsched.change_detection.html_scan import normalised
from crawlsched.change_detection.limits import DEEPEST, DENSE, LONGEST_NAME, MOST_BLOCKS, MOST_DENSE, MOST_KEPT
from crawlsched.change_detection.tag_data import parsed_json

__all__ = ["GZIP", "body_blocks"]

_KEY_AND_VALUE = re.compile(rf"\s*+(?:#\s*+)?+([A-Za-z][\w./-]{{0,{LONGEST_NAME}}}+)(?:;[^:]*+)?+\s*+[:=]\s*+\S")
# What ends a line, besides "\n" and "\r\n".
_LINE_ENDS = dict.fromkeys(map(ord, "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), "\n")
_TAG = re.compile(r"<(/?)([A-Za-z_][^\s/<>]*+)([^<>]*+)>([^<]*+)")
# Comments, instructions and declarations do not count, and CDATA is text. If the end mark of such a part is missing,
# the part ends with the body.
_SPECIAL = re.compile(r"<!--.*?(?:-->|\Z)|<!\[CDATA\[(.*?)(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<!.*?(?:>|\Z)", re.DOTALL)
_ATTRIBUTE = re.compile(r"""([^\s=<>"'/]++)\s*+=\s*+("[^"]*+"|'[^']*+')""")
_CDATA_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# Directly below the root or channel of a feed, these elements say when the feed was made. They are no content.
_FEED_CHURN = frozenset(
    {"lastBuildDate", "pubDate", "updated", "modified", "date", "generator", "ttl", "docs", "cloud"}
)
GZIP = b"\x1f\x8b"
_MOST_UNPACKED = 16_000_000
# A body that unpacks to more than this many times its size stays packed: its blocks would take too much memory.
_MOST_TIMES = 8
_PDF_DATES = re.compile(
    rb"/(?:CreationDate|ModDate)\s*(?:\((?:[^()\\]|\\.)*+\)|<[0-9A-Fa-f]*+>)|/ID\s*\[[^\]]{0,400}+\]"
    rb"|/(?:Producer|Creator)\s*\((?:[^()\\]|\\.){0,400}+\)"
    rb"|<(?:xmp|pdf|xmpMM):(?:CreateDate|ModifyDate|MetadataDate|Producer|CreatorTool|DocumentID|InstanceID)>[^<]*+<"
    rb"|startxref\s++\d++|\d{10} \d{5} [nf]",
)
_OF_PROGRAMS = frozenset({"docProps/core.xml", "docProps/app.xml", "meta.xml"})
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_SEEN = frozenset({b"IHDR", b"PLTE", b"tRNS", b"acTL", b"fcTL"})


def body_blocks(
    body: bytes, content_type: str | None, encoding: str | None, ignore_keys: Collection[str] = ()
) -> PageBlocks:
    """Cut a body that is not HTML into blocks; everything after the first 4,096 blocks is the remainder.

    A block is a value of JSON, a cell of CSV, a line of text, an element of XML, or a member of an archive. Its place
    consists of the keys of the value, the column of the cell, the line's beginning up to ":", or the name of the
    member. A PDF or a picture is one block without dates and names of programs.

    Examples
    --------
    >>> blocks = body_blocks(b'{"at": "12:01", "items": [1, 2]}', "application/json", None)
    >>> list(zip(map("".join, map(blocks.way_to, blocks.paths)), blocks.texts))
    [('json@at', '12:01'), ('json@items', '1'), ('json@items', '2')]
    >>> body_blocks(b'<a x="1" b="2"><!-- now -->Fish <![CDATA[& chips]]></a>', "text/xml", None).texts
    ['b="2" x="1" Fish & chips']
    """
    blocks = PageBlocks()
    # If gzip data are damaged or too large, the compressed bytes count.
    most = min(max(_MOST_TIMES * len(body), MOST_KEPT), _MOST_UNPACKED)
    inner = _unpacked(body, 16 + zlib.MAX_WBITS, most) if body.startswith(GZIP) else None
    if inner is not None:
        body, content_type, encoding = inner, None, None  # a packed body within a packed body counts as binary
    kind = content_kind(body, content_type, encoding)
    if kind == "binary":
        members = members_of_zip(body)
        for name, digest in members or ():
            blocks.add(blocks.to(blocks.to(0, "member"), f"@{name}"), digest)
        if members is None and body:
            blocks.rest = f"{zlib.crc32(without_dates(body)):08x} bytes"
        return blocks
    text = decoded(body, content_type, encoding)
    if kind == "html":
        return page_blocks(text)
    value = parsed_json(text, ignored=frozenset(ignore_keys)) if kind == "json" else None
    if isinstance(value, dict | list):
        for path, leaf in blocks.values(blocks.to(0, "json"), value):
            blocks.add(path, leaf or '""')
    elif isinstance(value, str) or (kind == "xml" and text.count("<") > MOST_DENSE + len(text) // DENSE):
        blocks.rest = normalised(text)
    elif kind == "xml":
        _add_xml(blocks, text)
    else:
        _add_text(blocks, text, "csv" in (content_type or "").lower())
    return blocks


def _add_xml(blocks: PageBlocks, markup: str) -> None:
    """Add the texts and attributes of an XML document in any spelling, without the time at which a feed was made."""
    markup = _SPECIAL.sub(lambda special: (special[1] or "").translate(_CDATA_ESCAPES), markup)
    root = blocks.to(0, "xml")
    feeds = {blocks.to(root, "feed"), *(blocks.to(blocks.to(root, name), "channel") for name in ("rss", "RDF"))}
    paths = [root]
    for slash, qualified, attributes, text in _TAG.findall(markup):
        name = qualified[qualified.rfind(":") + 1 :]
        if paths[-1] in feeds and name in _FEED_CHURN:
            continue
        said: list[str] = []
        if not slash:
            paths.append(blocks.to(paths[-1], name) if len(paths) < DEEPEST else paths[-1])
            found = _ATTRIBUTE.findall(attributes) if "=" in attributes else ()
            said = sorted(f'{key}="{normalised(value[1:-1])}"' for key, value in found)
            if attributes.endswith("/"):  # <a/> means <a></a>
                blocks.add(paths.pop(), " ".join(said))
                said = []
        elif len(paths) > 1:
            paths.pop()
        blocks.add(paths[-1], " ".join([*said, normalised(text)]).strip())
    blocks.cut()


def _add_text(blocks: PageBlocks, text: str, is_csv: bool) -> None:
    root, n_read = blocks.to(0, "text"), MOST_BLOCKS
    # Lines are made only as far as they are read: a list of short lines takes ten times the size of the text and more.
    text = text.replace("\r\n", "\n").translate(_LINE_ENDS).removesuffix("\n")
    if is_csv and (columns := _columns(text.split("\n", 5)[:5])):
        n_read = _add_rows(blocks, root, text, *columns)
    else:
        for line in text.split("\n", n_read)[:n_read]:
            match = _KEY_AND_VALUE.match(line)
            path = blocks.to(root, f"@{match[1]}") if match else root
            blocks.add(path, normalised(line, references=False))
    blocks.rest = "".join(text.split("\n", n_read)[n_read:])


def _add_rows(blocks: PageBlocks, root: int, text: str, start: int, delimiter: str, names: list[str]) -> int:
    """Add the cells of a table that begins at line `start`; return the number of lines that were read."""
    for line in text.split("\n", start)[:start]:
        blocks.add(blocks.to(root, "before"), normalised(line, references=False))
    paths = [blocks.to(root, f"@{name}") for name in names]
    lines = (line.removesuffix("\n") for line in io.StringIO(text))
    reader = csv.reader(islice(lines, start, None), delimiter=delimiter)
    n_read = 0
    try:
        for row in reader:
            if len(blocks.texts) + len(row) > MOST_BLOCKS:
                break
            n_read = reader.line_num
            for number, cell in enumerate(row):
                blocks.add(paths[number] if number < len(paths) else root, normalised(cell, references=False) or '""')
    except csv.Error:  # the further lines are no table, and become the remainder
        pass
    return start + n_read


def _columns(lines: list[str]) -> tuple[int, str, list[str]] | None:
    """Return the number of the line that names the columns, its separator, and the names; None without such a line."""
    for start, line in enumerate(lines):
        for delimiter in (",", ";", "\t"):
            names = line.split(delimiter, MOST_BLOCKS)
            if 1 < len(names) <= MOST_BLOCKS and not line.startswith("#"):
                return start, delimiter, [name.strip().strip('"')[:LONGEST_NAME] for name in names]
    return None


def members_of_zip(body: bytes) -> list[tuple[str, str]] | None:
    """Return names and digests of an archive's members, in order (also xlsx, docx, epub); None for other data.

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


def without_dates(body: bytes) -> bytes:
    """Return a PDF without dates and ids, gzip without its time, or only the picture of a PNG; other data unchanged.

    >>> without_dates(b"%PDF-1.7 /CreationDate (D:20260101) tea")
    b'%PDF-1.7  tea'
    """
    if body.startswith(b"%PDF-"):
        return _PDF_DATES.sub(b"", body)
    if body.startswith(GZIP):
        return body[:4] + body[8:]
    return _picture_of_png(body) if body.startswith(_PNG) else body


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
    """Return the decompressed data; None if they are damaged, have several parts, or have more than `most` bytes."""
    try:
        unpacker = zlib.decompressobj(window)
        unpacked = unpacker.decompress(data, most)
    except zlib.error:
        return None
    return unpacked if unpacker.eof and not unpacker.unused_data else None  # there may be a second member
