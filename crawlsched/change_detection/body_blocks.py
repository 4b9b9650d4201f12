"""Body blocks: what is not HTML as blocks, too: keys of JSON, lines, cells, members of archives."""

import csv
import re
import zlib
from collections.abc import Collection

from crawlsched.change_detection.binary_content import GZIP, members_of_zip, unpacked_gzip, without_dates
from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.content_kind import content_kind, decoded
from crawlsched.change_detection.html_scan import normalised
from crawlsched.change_detection.limits import DEEPEST, LONGEST_NAME, MOST_BLOCKS, MOST_DENSE
from crawlsched.change_detection.page_data import parsed_json
from crawlsched.change_detection.xml_text import xml_text

__all__ = ["body_blocks"]

_KEY_AND_VALUE = re.compile(rf"\s*+(?:#\s*+)?+([A-Za-z][\w./-]{{0,{LONGEST_NAME}}}+)(?:;[^:]*+)?+\s*+[:=]\s*+\S")


def body_blocks(
    body: bytes, content_type: str | None, encoding: str | None, ignore_keys: Collection[str] = ()
) -> PageBlocks:
    """Cut a body that is not HTML into blocks; of more than 4,096 what is left is the remainder.

    Blocks are values of JSON by their keys, cells of CSV by their columns, lines of text by their beginning up to ":",
    elements of XML and members of archives by their names. PDF and pictures are one block without dates and names of
    programs.

    Examples
    --------
    >>> blocks = body_blocks(b'{"at": "12:01", "items": [1, 2]}', "application/json", None)
    >>> list(zip(map("".join, map(blocks.way_to, blocks.paths)), blocks.texts))
    [('json@at', '12:01'), ('json@items', '1'), ('json@items', '2')]
    """
    blocks = PageBlocks()
    inner = unpacked_gzip(body)
    if inner is not None:
        if inner.startswith(GZIP):  # once is enough
            blocks.rest = f"{zlib.crc32(inner):08x}"
            return blocks
        body, content_type, encoding = inner, None, None
    kind = content_kind(body, content_type, encoding)
    if kind == "binary":
        _add_binary(blocks, body)
        return blocks
    text = decoded(body, content_type, encoding)
    if kind == "html":
        return page_blocks(text)
    if kind == "json" and (value := parsed_json(text, ignored=frozenset(ignore_keys))) is not None:
        for path, leaf in blocks.values(blocks.to(0, "json"), value):
            blocks.add(path, leaf or '""')
    elif kind == "json" or (kind == "xml" and text.count("<") > MOST_DENSE + len(text) // 40):
        blocks.rest = normalised(text)
    elif kind == "xml":
        _add_xml(blocks, text)
    else:
        _add_text(blocks, text, "csv" in (content_type or "").lower())
    return blocks


def _add_binary(blocks: PageBlocks, body: bytes) -> None:
    members = members_of_zip(body)
    if members is None:
        blocks.rest = f"{zlib.crc32(without_dates(body)):08x} bytes" if body else ""
        return
    for name, digest in members:
        blocks.add(blocks.to(0, f"member@{name}"), digest)


def _add_xml(blocks: PageBlocks, text: str) -> None:
    paths = [blocks.to(0, "xml")]
    lines = xml_text(text).split("\n")
    blocks.rest = "\n".join(lines[MOST_BLOCKS:])
    for line in lines[:MOST_BLOCKS]:
        name, _, rest = line.partition(" ")
        if name.startswith("/"):
            if len(paths) > 1:
                paths.pop()
        else:
            paths.append(blocks.to(paths[-1], name) if len(paths) < DEEPEST else paths[-1])
        blocks.add(paths[-1], rest)


def _add_text(blocks: PageBlocks, text: str, is_csv: bool) -> None:
    root = blocks.to(0, "text")
    lines = text.splitlines()
    columns = _columns(lines) if is_csv else None
    if columns is not None:
        _add_rows(blocks, root, lines, *columns)
        return
    blocks.rest = "\n".join(lines[MOST_BLOCKS:])
    for line in lines[:MOST_BLOCKS]:
        match = _KEY_AND_VALUE.match(line)
        path = blocks.to(root, f"@{match[1]}") if match else root
        blocks.add(path, normalised(line, references=False))


def _add_rows(blocks: PageBlocks, root: int, lines: list[str], start: int, delimiter: str, names: list[str]) -> None:
    for line in lines[:start]:
        blocks.add(blocks.to(root, "before"), normalised(line, references=False))
    paths = [blocks.to(root, f"@{name}") for name in names]
    reader = csv.reader(lines[start:], delimiter=delimiter)
    n_read = 0
    try:
        for row in reader:
            if len(blocks.texts) + len(row) > MOST_BLOCKS:
                break
            n_read = reader.line_num
            for number, cell in enumerate(row):
                blocks.add(paths[number] if number < len(paths) else root, cell.strip() or '""')
    except csv.Error:  # what is no table from here on is the remainder
        pass
    blocks.rest = "\n".join(lines[start + n_read :])


def _columns(lines: list[str]) -> tuple[int, str, list[str]] | None:
    """Return the line with the names of the columns, what parts them, and the names; None if there is none."""
    for start, line in enumerate(lines[:5]):
        for delimiter in (",", ";", "\t"):
            names = line.split(delimiter, MOST_BLOCKS)
            if 1 < len(names) <= MOST_BLOCKS and not line.startswith("#"):
                return start, delimiter, [name.strip().strip('"')[:LONGEST_NAME] for name in names]
    return None
