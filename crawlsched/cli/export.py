"""``crawlsched export``: all that a collection holds, as files that other programs read."""

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from crawlsched.cli.conditions import read_condition
from crawlsched.cli.progress import shown_progress
from crawlsched.cli.stores import open_stores
from crawlsched.cli.table_files import FORMATS, write_table
from crawlsched.cli.target import common_options, find_target
from crawlsched.cli.wording import say_count
from crawlsched.exceptions import CrawlschedError

__all__ = ["add_parser", "report", "say"]

_TABLES = ("pages", "visits", "announcements", "sources", "hosts")
_TOLD_EACH = 10_000

_EXAMPLE = """\
pages.csv and visits.csv can be read by `crawlsched import`, on another machine or by another collection.

examples:
  crawlsched export out/                                 # pages.csv, visits.csv and so on
  crawlsched export out/ --format parquet                # with crawlsched[parquet]
  crawlsched export changes.csv --table visits --where 'changed = yes' --where 'time > now-1d'"""


def add_parser(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "export", help="write a collection to files", parents=[common_options()], epilog=_EXAMPLE
    )
    parser.add_argument(
        "to", metavar="FOLDER|FILE", help="a folder for all tables; or, with --table, a file or - for standard output"
    )
    parser.add_argument("--table", choices=_TABLES, help="only this one")
    endings = [ending.removeprefix(".") for ending in FORMATS]
    parser.add_argument("--format", choices=endings, default="csv", help="of the files in a folder (%(default)s)")
    parser.add_argument(
        "--where", action="append", default=[], metavar="CONDITION", help="with --table; as `crawlsched pages` has them"
    )
    parser.set_defaults(report=report, say=say, is_long=True)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    """Write the files, all as of one moment where the database can give that."""
    from crawlsched.store.listing import TABLES, listed

    if arguments.where and arguments.table is None:
        raise CrawlschedError("Conditions are about one table; name it with --table.")
    if arguments.table is None:
        folder = Path(arguments.to)
        if folder.is_file() or arguments.to == "-":
            raise CrawlschedError(f"{arguments.to} is no folder; name one, or a single table with --table.")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CrawlschedError(f"The folder {folder} cannot be made: {error.strerror}.") from error
        files = {table: str(folder / f"{table}.{arguments.format}") for table in _TABLES}
    else:
        files = {arguments.table: arguments.to}
    now, written = time.time(), {}
    stores = open_stores(find_target(arguments))
    try:
        with stores.database.reading() as connection, shown_progress("Writing") as progress:
            for table, file in files.items():
                kinds = TABLES[table]
                conditions = [read_condition(text, kinds, now) for text in arguments.where]
                rows = _told(listed(connection, stores.key, table, list(kinds), conditions), progress)
                written[table] = {"file": file, "rows": write_table(file, list(kinds), rows)}
        return {"collection": stores.name, "database": stores.database.name, "time": now, "written": written}
    finally:
        stores.close()


def _told(rows: Iterator[tuple[Any, ...]], progress: Callable[[int, int | None], None]) -> Iterator[tuple[Any, ...]]:
    """Give rows on, and say now and then that it goes on."""
    for n, row in enumerate(rows, 1):
        if n % _TOLD_EACH == 0:
            progress(n, None)
        yield row


def say(report: dict[str, Any]) -> str:
    """Say what was written."""
    lines = [
        f"{say_count(part['rows'], 'row')} of {table} written to {part['file']}."
        for table, part in report["written"].items()
        if part["file"] != "-"
    ]
    return "\n".join(lines)
