"""Decompression with a hard limit: no bomb unfolds beyond it."""

import zlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from crawlsched.change_signals.problems import ProblemCounter

__all__ = ["plain_chunks"]

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 65_536
_GZIP_WINDOW = 31  # zlib's maximum window of 15, plus 16 for a gzip header
_MAX_LAYERS = 2  # a .gz file that the server compressed again
_MAX_MEMBERS = 1_000  # a gzip file may be several, one after another


def plain_chunks(body: bytes, max_bytes: int, problems: ProblemCounter) -> Iterator[bytes]:
    """Give a body in chunks of at most 64 KB, up to `max_bytes` of them, decompressed where it starts as gzip does."""
    chunks: Iterator[bytes] = (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
    for _ in range(_MAX_LAYERS):
        first = next(chunks, b"")
        chunks = _with_first(first, chunks)
        if not first.startswith(_GZIP_MAGIC):
            break
        # The limit holds for every layer: a bomb within a bomb unfolds no further than one.
        chunks = _limited(_gunzipped(chunks, problems), max_bytes, problems)
    return _limited(chunks, max_bytes, problems)


def _with_first(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks


def _gunzipped(chunks: Iterator[bytes], problems: ProblemCounter) -> Iterator[bytes]:
    decompressor = zlib.decompressobj(_GZIP_WINDOW)
    members = 1
    for chunk in chunks:
        data, holds_more = chunk, False
        while data or holds_more:
            if decompressor.eof:
                # What follows a gzip member is another one, or padding.
                if members == _MAX_MEMBERS or not data.startswith(_GZIP_MAGIC[:1]):
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
    """Decompress byte by byte: what came before is lost with the call that meets the damage, as a wrong checksum."""
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
