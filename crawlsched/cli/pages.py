"""``crawlsched pages``: list pages by conditions and in an order, as a printed table, CSV or JSON."""

import argparse
import math
import re
import time
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from crawlsched.cli.parsing import MOST_SHOWN, Option, option, whole_number
from crawlsched.cli.stores import open_stores
from crawlsched.cli.table_files import write_table
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import parse_duration
from crawlsched.settings.values import read_date
from crawlsched.wording import say_count, say_interval, say_past, say_share, say_table

if TYPE_CHECKING:
    from crawlsched.store.listing import Condition, Kind

__all__ = ["EXAMPLES", "HELP", "OPTIONS", "read_condition", "where_option"]

_FORM = re.compile(r"\s*([A-Za-z_]+)\s*(<=|>=|!=|!~|=|<|>|~)\s*(.*?)\s*", re.DOTALL)
_NONE = ("", "none", "never", "unknown")
_TRUTHS = {"1": 1, "true": 1, "yes": 1, "0": 0, "false": 0, "no": 0}


def where_option(meaning: str) -> Option:
    """Return the option ``--where``, which may be given several times."""
    return option("--where CONDITION", meaning, action="append", default=[])


def read_condition(text: str, kinds: "Mapping[str, Kind]", now: float) -> "Condition":
    """Read a condition: column, operator and value; ``none``, ``never`` or no text stand for an empty value.

    >>> from crawlsched.store.listing import TABLES
    >>> tuple(read_condition("crawled_at < now-2d", TABLES["pages"], now=200_000.0))
    ('crawled_at', '<', 27200.0)
    >>> tuple(read_condition("url ~ */news/*", TABLES["pages"], now=0.0))
    ('url', '~', '*/news/*')
    """
    from crawlsched.pages import STATE_NAMES
    from crawlsched.store.listing import Condition

    match = _FORM.fullmatch(text)
    if match is None:
        raise CrawlschedError(
            f"A condition is a column, one of = != < <= > >= ~ !~ and a value, such as n_changes > 3, got {text!r}."
        )
    name, operator, value = match.groups()
    kind = kinds[_column(name, kinds)].kind
    if operator in ("~", "!~"):
        if kind != "text":
            raise CrawlschedError(f"A pattern fits texts only, and the column {name} has no texts; got {text!r}.")
        return Condition(name, operator, value)
    if value.lower() in _NONE:
        if operator not in ("=", "!="):
            raise CrawlschedError(f"What is {value or 'empty'} can be equal or not (= or !=), got {text!r}.")
        return Condition(name, operator, None)
    if kind == "state" and value not in STATE_NAMES[1:]:
        raise CrawlschedError(f"A state is one of {', '.join(STATE_NAMES[1:])}, got {value!r}.")
    if kind in ("text", "state"):
        return Condition(name, operator, value)
    if kind == "truth":
        if value.lower() not in _TRUTHS:
            raise CrawlschedError(f"{name} is yes or no, got {value!r}.")
        return Condition(name, operator, _TRUTHS[value.lower()])
    return Condition(name, operator, read_time(value, now) if kind == "time" else _number(value, name))


def _read_order(text: str, kinds: "Mapping[str, Kind]") -> tuple[str, bool]:
    """Read the column of an order, and whether the largest value comes first.

    >>> from crawlsched.store.listing import TABLES
    >>> _read_order("n_changes:desc", TABLES["pages"])
    ('n_changes', True)
    """
    name, _, direction = text.partition(":")
    if direction not in ("", "asc", "desc"):
        raise CrawlschedError(f"An order is a column, or COLUMN:desc for the largest first, got {text!r}.")
    return _column(name, kinds), direction == "desc"


def _read_columns(text: str, kinds: "Mapping[str, Kind]") -> list[str]:
    """Read column names with commas between them; ``all`` stands for every name."""
    return list(kinds) if text == "all" else [_column(name.strip(), kinds) for name in text.split(",")]


def read_time(text: str, now: float) -> float:
    """Read a time: POSIX seconds, a date of ISO 8601 (UTC without a zone), ``now`` or ``now-2d``.

    >>> read_time("2024-01-01", now=0.0), read_time("now-90s", now=100.0)
    (1704067200.0, 10.0)
    """
    try:
        if text == "now" or text.startswith("now-"):
            return now - (parse_duration(text[4:]) if text[3:] else 0.0)
        try:
            found = float(text)
        except ValueError:
            found = read_date(text)
    except (ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        today = time.strftime("%Y-%m-%d", time.gmtime(now))
        raise CrawlschedError(f"A time is POSIX seconds, a date such as {today}, or now-2d, got {text!r}.")
    return found


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise CrawlschedError(f"{name} is a number, got {text!r}.")
    return number


def _column(name: str, kinds: "Mapping[str, Kind]") -> str:
    if name in kinds:
        return name
    near = get_close_matches(name, list(kinds), n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(kinds)}."
    raise CrawlschedError(f"There is no column {name!r}; {hint}")


_COLUMNS = "url,state,crawled_at,n_changes,n_crawls,change_rate,importance"
_HEADINGS = {"change_rate": "changes", "n_changes": "found", "n_crawls": "visits", "crawled_at": "last crawl"}
_TIMES = ("first_seen", "crawled_at", "changed_at", "not_before")

ABOUT = """\
Columns are those of the table pages: url, host, state, importance, first_seen, crawled_at,
changed_at, n_crawls, n_changes, n_errors, change_rate (changes a second), expected_freshness
(when the row was written), undelivered ..."""
HELP = "list pages by conditions and in an order"
EXAMPLES = (
    "crawlsched pages --where 'url ~ */news/*' --where 'crawled_at < now-2d' --order crawled_at",
    "crawlsched pages --order change_rate:desc --limit 1000 --csv busiest.csv",
)
OPTIONS = (
    where_option("such as 'n_changes > 3', 'state = error', 'url ~ */news/*', 'crawled_at = never'; all have to hold"),
    option("--order COLUMN", "smallest first; COLUMN:desc for the largest first"),
    option("--limit N", f"how many at most; {MOST_SHOWN} in a printed table", whole_number(1)),
    option("--columns A,B", "which columns, or all (%(default)s)", default=_COLUMNS),
    option("--csv FILE", "write CSV to the file, or print it", nargs="?", const="-"),
)


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    from crawlsched.store.listing import TABLES, listed

    now, kinds = time.time(), TABLES["pages"]
    names = _read_columns(arguments.columns, kinds)
    conditions = [read_condition(text, kinds, now) for text in arguments.where]
    order = None if arguments.order is None else _read_order(arguments.order, kinds)
    is_whole = arguments.csv is not None or arguments.json is not None
    limit = arguments.limit or (None if is_whole else MOST_SHOWN + 1)
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
    rows += [[_said(name, value, now) for name, value in page.items()] for page in pages[:MOST_SHOWN]]
    numbers = [isinstance(value, int | float) and name not in _TIMES for name, value in pages[0].items()]
    right = "".join("r" if is_number else "l" for is_number in numbers)
    is_cut = len(pages) > MOST_SHOWN
    more = ["", "There are more; --limit N shows N of them, --csv FILE writes all."] if is_cut else []
    return "\n".join([*say_table(rows, right, indent=""), *more])


def _said(name: str, value: Any, now: float) -> str:
    if name in _TIMES:
        return say_past(value, now).rpartition(", ")[2]  # only how long ago, since the time takes 25 more characters
    if value is None:
        return "-"
    if name in ("change_rate", "change_rate_low", "change_rate_high"):
        return say_interval(value)
    if name in ("expected_freshness", "precision", "recall"):
        return say_share(value)
    return f"{value:g}" if isinstance(value, float) else str(value)
