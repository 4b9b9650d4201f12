"""``crawlsched export``: write all data of a collection to files for other programs."""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crawlsched.cli.pages import read_condition, where_option
from crawlsched.cli.parsing import AT_ONCE, option, shown_progress
from crawlsched.cli.stores import open_stores
from crawlsched.cli.table_files import FORMATS, write_table
from crawlsched.exceptions import CrawlschedError
from crawlsched.wording import say_count

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]

_TABLES = ("pages", "visits", "announcements", "sources", "hosts")


HELP = "write a collection to files"
ABOUT = "`crawlsched import` reads pages.csv and visits.csv, on another machine or in another collection."
EXAMPLES = (
    "crawlsched export out/                                 # pages.csv, visits.csv and so on",
    "crawlsched export out/ --format jsonl.gz",
    "crawlsched export changes.csv --table visits --where 'changed = yes' --where 'time > now-1d'",
)
_ENDINGS = [ending.removeprefix(".") for ending in FORMATS]
OPTIONS = (
    option("FOLDER|FILE", "a folder for all tables; or, with --table, a file or - for standard output", dest="to"),
    option("--table NAME", f"only this table, one of {', '.join(_TABLES)}", choices=_TABLES),
    option(
        "--format F", f"the format of the files in a folder: {', '.join(_ENDINGS)}", choices=_ENDINGS, default="csv"
    ),
    where_option("with --table; see `crawlsched pages`"),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the files; if the database allows it, all files show the same moment."""
    from crawlsched.store.listing import TABLES, listed

    if arguments.where and arguments.table is None:
        raise CrawlschedError("Conditions need a single table; name it with --table.")
    files = {arguments.table: arguments.to} if arguments.table is not None else _files(arguments.to, arguments.format)
    now, written, progress = time.time(), {}, shown_progress("Writing")
    with open_stores(arguments) as stores, stores.database.reading() as connection:
        for table, file in files.items():
            kinds = TABLES[table]
            conditions = [read_condition(text, kinds, now) for text in arguments.where]
            rows = _counted(listed(connection, stores.key, table, list(kinds), conditions), progress)
            written[table] = {"file": file, "rows": write_table(file, list(kinds), rows)}
        return {"collection": stores.name, "database": stores.database.name, "time": now, "written": written}


def _files(to: str, ending: str) -> dict[str, str]:
    """Make the folder, and return a file name in it for each table."""
    folder = Path(to)
    if folder.is_file() or to == "-":
        raise CrawlschedError(f"{to} is no folder; name one, or a single table with --table.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CrawlschedError(f"The folder {folder} cannot be made: {error.strerror}.") from error
    return {table: str(folder / f"{table}.{ending}") for table in _TABLES}


def _counted(rows: Iterator[tuple[Any, ...]], progress: Callable[[int, int | None], None]) -> Iterator[tuple[Any, ...]]:
    for n, row in enumerate(rows, 1):
        if n % AT_ONCE == 0:
            progress(n, None)
        yield row


def say(report: dict[str, Any]) -> str:
    lines = [
        f"{say_count(part['rows'], 'row')} of {table} written to {part['file']}."
        for table, part in report["written"].items()
        if part["file"] != "-"
    ]
    return "\n".join(lines)
