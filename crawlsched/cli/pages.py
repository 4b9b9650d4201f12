"""``crawlsched pages``: the pages of a collection, by conditions and in an order, for a person, as CSV or as JSON."""

import argparse
import time
from typing import Any

from crawlsched.cli.conditions import read_columns, read_condition, read_order, where_option
from crawlsched.cli.parsing import option, whole_number
from crawlsched.cli.stores import open_stores
from crawlsched.cli.table_files import write_table
from crawlsched.wording import say_count, say_interval, say_past, say_share, say_table

__all__ = ["EXAMPLES", "HELP", "OPTIONS"]

_COLUMNS = "url,state,crawled_at,n_changes,n_crawls,change_rate,importance"
_MOST_SAID = 50
_HEADINGS = {"change_rate": "changes", "n_changes": "found", "n_crawls": "visits", "crawled_at": "last crawl"}
_TIMES = ("first_seen", "crawled_at", "changed_at", "not_before")

ABOUT = """\
Columns are those of the table pages: url, host, state, importance, first_seen, crawled_at, changed_at, n_crawls,
n_changes, n_errors, change_rate (changes a second), expected_freshness (when the row was written), undelivered ..."""
HELP = "list pages by conditions and in an order"
EXAMPLES = (
    "crawlsched pages --where 'url ~ */news/*' --where 'crawled_at < now-2d' --order crawled_at",
    "crawlsched pages --order change_rate:desc --limit 1000 --csv busiest.csv",
)
OPTIONS = (
    where_option("such as 'n_changes > 3', 'state = error', 'url ~ */news/*', 'crawled_at = never'; all have to hold"),
    option("--order COLUMN", "smallest first; COLUMN:desc for the largest first"),
    option("--limit N", f"how many at most; a person gets {_MOST_SAID}", whole_number(1)),
    option("--columns A,B", "which columns, or all (%(default)s)", default=_COLUMNS),
    option("--csv FILE", "write CSV to the file, or print it", nargs="?", const="-"),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    from crawlsched.store.listing import TABLES, listed

    now, kinds = time.time(), TABLES["pages"]
    names = read_columns(arguments.columns, kinds)
    conditions = [read_condition(text, kinds, now) for text in arguments.where]
    order = None if arguments.order is None else read_order(arguments.order, kinds)
    is_whole = arguments.csv is not None or arguments.json is not None
    limit = arguments.limit or (None if is_whole else _MOST_SAID + 1)
    with open_stores(arguments) as stores, stores.database.reading() as connection:
        rows = listed(connection, stores.key, "pages", names, conditions, order, limit)
        found = {"collection": stores.name, "time": now, "columns": names}
        if arguments.csv is not None:
            return {**found, "written": write_table(arguments.csv, names, rows), "file": arguments.csv}
        return {**found, "pages": [dict(zip(names, row, strict=True)) for row in rows]}


def say(report: dict[str, Any]) -> str:
    if "written" in report:
        written = f"{say_count(report['written'], 'page')} written to {report['file']}."
        return "" if report["file"] == "-" else written
    pages, now = report["pages"], report["time"]
    if not pages:
        return f"The collection {report['collection']!r} has no such page."
    rows = [[_HEADINGS.get(name, name) for name in report["columns"]]]
    rows += [[_said(name, value, now) for name, value in page.items()] for page in pages[:_MOST_SAID]]
    is_cut = len(pages) > _MOST_SAID
    more = ["", "There are more; --limit N shows N of them, --csv FILE writes all."] if is_cut else []
    return "\n".join([*say_table(rows, indent=""), *more])


def _said(name: str, value: Any, now: float) -> str:
    if name in _TIMES:
        return say_past(value, now)
    if value is None:
        return "-"
    if name in ("change_rate", "change_rate_low", "change_rate_high"):
        return say_interval(value)
    if name in ("expected_freshness", "precision", "recall"):
        return say_share(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
