"""Tables in files, as CSV or JSON lines by the endings of the names; after an error no file is left."""

import csv
import gzip
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from crawlsched.exceptions import CrawlschedError

__all__ = ["FORMATS", "new_file", "write_table", "write_text"]

#: The endings of names that choose the format of a table.
FORMATS = (".csv", ".csv.gz", ".jsonl", ".jsonl.gz")

Rows = Iterator[tuple[Any, ...]]


def write_table(name: str, columns: Sequence[str], rows: Rows, *, otherwise: str | None = None) -> int:
    """Write rows to a file, or print them as CSV if `name` is ``-``; return the number of rows.

    A file with another ending gets the format `otherwise`; without `otherwise` the name is refused.
    """
    if name == "-":
        return _csv(sys.stdout, columns, rows)
    path = Path(name)
    ending = next((ending for ending in FORMATS if path.name.endswith(ending)), otherwise)
    if ending is None:
        raise CrawlschedError(f"The name of a table must end in {', '.join(FORMATS)}, got {name!r}.")
    with new_file(path) as unfinished, _text(unfinished, ending) as file:
        return (_csv if ".csv" in ending else _jsonl)(file, columns, rows)


def write_text(path: Path, text: str) -> None:
    """Write a text to a file, compressed if its name ends in .gz."""
    with new_file(path) as unfinished:
        unfinished.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield the name of a new file, which is renamed to `path` at the end, or deleted after an error.

    A pipe or `/dev/null` is written to directly, since renaming would replace it by a file.
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


def _text(path: Path, ending: str) -> IO[str]:
    return (gzip.open if ending.endswith(".gz") else open)(path, "wt", encoding="utf-8", newline="")


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
        n += 1
        file.write(json.dumps(dict(zip(columns, row, strict=True))) + "\n")
    return n
