"""Tables written to files: CSV, JSON lines or Parquet, as the name ends; a file is whole, or it is not there."""

import csv
import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from crawlsched.exceptions import CrawlschedError

__all__ = ["FORMATS", "new_file", "write_table", "write_text"]

_ROWS_AT_ONCE = 50_000

Rows = Iterator[tuple[Any, ...]]


def write_table(name: str, columns: Sequence[str], rows: Rows) -> int:
    """Write rows to a file, or print them as CSV where its name is ``-``; return how many there were.

    Raises
    ------
    CrawlschedError
        If the file cannot be written, or its ending is of no known kind.
    """
    if name == "-":
        return _csv(sys.stdout, columns, rows)
    path = Path(name)
    ending = next((ending for ending in FORMATS if path.name.endswith(ending)), None)
    if ending is None:
        raise CrawlschedError(f"The name of a table must end in {', '.join(FORMATS)}, got {name!r}.")
    with new_file(path) as unfinished:
        return FORMATS[ending](unfinished, columns, rows)


def write_text(path: Path, text: str) -> None:
    """Write a text to a file, packed where its name ends in .gz."""
    with new_file(path) as unfinished:
        unfinished.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Give a name to write to, which becomes `path` at the end; if that is not reached nothing is left.

    What is no file, such as a pipe or `/dev/null`, is written to as it is: root would put a file in its place.
    """
    is_special = path.exists() and not (path.is_file() or path.is_dir())
    unfinished = path if is_special else path.with_name(f"{path.name}.unfinished-{os.getpid()}")
    try:
        yield unfinished
        if not is_special:
            unfinished.replace(path)
    except OSError as error:
        raise CrawlschedError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        if not is_special:
            unfinished.unlink(missing_ok=True)


def _csv(file: IO[str], columns: Sequence[str], rows: Rows) -> int:
    writer = csv.writer(file)
    writer.writerow(columns)
    n = 0
    for row in rows:
        writer.writerow(row)
        n += 1
    return n


def _jsonl(file: IO[str], columns: Sequence[str], rows: Rows) -> int:
    n = 0
    for row in rows:
        file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")
        n += 1
    return n


def _plain(write: Callable[[IO[str], Sequence[str], Rows], int]) -> Callable[[Path, Sequence[str], Rows], int]:
    def to(path: Path, columns: Sequence[str], rows: Rows) -> int:
        with path.open("w", encoding="utf-8", newline="") as file:
            return write(file, columns, rows)

    return to


def _packed(write: Callable[[IO[str], Sequence[str], Rows], int]) -> Callable[[Path, Sequence[str], Rows], int]:
    def to(path: Path, columns: Sequence[str], rows: Rows) -> int:
        with gzip.open(path, "wt", encoding="utf-8", newline="") as file:
            return write(file, columns, rows)

    return to


def _parquet(path: Path, columns: Sequence[str], rows: Rows) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise CrawlschedError(
            "Parquet needs pyarrow, which is not installed; install crawlsched[parquet], or write .csv or .jsonl."
        ) from error
    n, writer = 0, None
    try:
        while some := list(islice(rows, _ROWS_AT_ONCE)):
            arrays = [pa.array(column) for column in zip(*some, strict=True)]
            if writer is None:
                # A column that is empty at first may hold numbers later: whatever has no kind yet is a number.
                kinds = [pa.float64() if array.type in (pa.null(), pa.int64()) else array.type for array in arrays]
                writer = pq.ParquetWriter(path, pa.schema(list(zip(columns, kinds, strict=True))))
            arrays = [pa.array(c, kind) for c, kind in zip(zip(*some, strict=True), writer.schema.types, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=writer.schema))
            n += len(some)
        if writer is None:
            pq.write_table(pa.table({name: pa.array([], pa.null()) for name in columns}), path)
    finally:
        if writer is not None:
            writer.close()
    return n


#: How a table is written, by the ending of its file's name.
FORMATS: dict[str, Callable[[Path, Sequence[str], Rows], int]] = {
    ".csv": _plain(_csv),
    ".csv.gz": _packed(_csv),
    ".jsonl": _plain(_jsonl),
    ".jsonl.gz": _packed(_jsonl),
    ".parquet": _parquet,
}
