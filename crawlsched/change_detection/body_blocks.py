"""Body blocks: what is not HTML as blocks, too, so that its noise can be learned: keys of JSON, lines, cells."""

import csv
import re
import zlib
from collections.abc import Collection

from crawlsched.change_detection.binary_content import members_of_zip, unpacked_gzip, without_dates
from crawlsched.change_detection.blocks import PageBlocks, path_below
from crawlsched.change_detection.content_kind import content_kind
from crawlsched.change_detection.decoding import decoded
from crawlsched.change_detection.html_scan import normalised
from crawlsched.change_detection.page_data import leaves_of, parsed_json
from crawlsched.change_detection.visible_text import visible_text
from crawlsched.change_detection.xml_text import xml_text

__all__ = ["body_blocks"]

_KEY_AND_VALUE = re.compile(r"\s*#?\s*([A-Za-z][\w./-]{0,39}(?:;[^:]{0,60})?)\s*[:=]\s*(\S.*)")
_MOST_LINES = 20_000
_LONGEST_TEXT = 4_000_000


def body_blocks(
    body: bytes, content_type: str | None, encoding: str | None, ignore_keys: Collection[str] = ()
) -> PageBlocks:
    """Cut a body that is not HTML, or too large to be cut as that, into blocks.

    Parameters
    ----------
    body : bytes
    content_type : str or None
        The Content-Type header.
    encoding : str or None
    ignore_keys : collection of str
        Keys of JSON that do not count, wherever they stand.

    Returns
    -------
    PageBlocks
        Values of JSON by their keys, cells of CSV by their columns, lines of text by what stands before ":" in them,
        elements of XML by their names, members of archives by theirs. Of PDF and pictures one block of all that is no
        date and no name of a program.

    Examples
    --------
    >>> blocks = body_blocks(b'{"at": "12:01", "items": [1, 2]}', "application/json", None)
    >>> list(zip(map("".join, map(blocks.way_to, blocks.path_of.values())), blocks.texts.values()))
    [('json@at', '12:01'), ('json@items', '1'), ('json@items', '2')]
    """
    blocks = PageBlocks()
    if body.startswith(b"\x1f\x8b"):
        inner = unpacked_gzip(body)
        if inner is not None:
            return body_blocks(inner, None, None, ignore_keys)
    kind = content_kind(body, content_type, encoding)
    if kind == "binary":
        members = members_of_zip(body)
        if members is None:
            blocks.add(_step(blocks, 0, "body"), f"{zlib.crc32(without_dates(body)):08x} {len(body) and 'bytes'}")
            return blocks
        for name, digest in members:
            blocks.add(_step(blocks, 0, f"member@{name}"), digest)
        return blocks
    text = decoded(body, content_type, encoding)
    if kind == "json" and (value := parsed_json(text)) is not None:
        _add_json(blocks, value, frozenset(ignore_keys))
    elif len(text) > _LONGEST_TEXT or kind == "html":
        blocks.add(_step(blocks, 0, "body"), visible_text(text) if kind == "html" else normalised(text))
    elif kind == "xml":
        _add_xml(blocks, text)
    else:
        _add_text(blocks, text, "csv" in (content_type or "").lower())
    return blocks


def _add_json(blocks: PageBlocks, value: object, ignored: frozenset[str]) -> None:
    root = _step(blocks, 0, "json")
    for keys, leaf in leaves_of(value):
        if ignored.isdisjoint(keys):
            path = root
            for key in keys:
                path = _step(blocks, path, f"@{key}")
            blocks.add(path, normalised(leaf) or '""')


def _add_xml(blocks: PageBlocks, text: str) -> None:
    paths = [_step(blocks, 0, "xml")]
    for line in xml_text(text).split("\n")[:_MOST_LINES]:
        name, _, rest = line.partition(" ")
        if name.startswith("/"):
            if len(paths) > 1:
                paths.pop()
        else:
            paths.append(_step(blocks, paths[-1], name) if len(paths) < 64 else paths[-1])
        blocks.add(paths[-1], rest)


def _add_text(blocks: PageBlocks, text: str, is_csv: bool) -> None:
    root = _step(blocks, 0, "text")
    lines = text.splitlines()[:_MOST_LINES]
    if is_csv and (columns := _columns(lines)) is not None:
        start, delimiter, names = columns
        for line in lines[:start]:
            blocks.add(_step(blocks, root, "before"), normalised(line))
        try:
            for row in csv.reader(lines[start:], delimiter=delimiter):
                for number, cell in enumerate(row):
                    name = names[number] if number < len(names) else str(number)
                    blocks.add(_step(blocks, root, f"@{name}"), cell.strip() or '""')
            return
        except csv.Error:
            blocks.clear()
    for line in lines:
        match = _KEY_AND_VALUE.match(line)
        path = _step(blocks, root, f"@{match[1].partition(';')[0]}") if match else root
        blocks.add(path, " ".join(line.split()))


def _columns(lines: list[str]) -> tuple[int, str, list[str]] | None:
    """Return the line with the names of the columns, what parts them, and the names; None if there is none."""
    for start, line in enumerate(lines[:5]):
        for delimiter in (",", ";", "\t"):
            names = line.split(delimiter)
            if len(names) > 1 and not line.startswith("#"):
                return start, delimiter, [name.strip().strip('"')[:40] for name in names]
    return None


def _step(blocks: PageBlocks, path: int, step: str) -> int:
    below = path_below(path, step)
    blocks.steps[below] = path, step
    return below
