"""Conditions and orders as they stand on the command line: ``crawled_at < now-2d``, ``n_changes:desc``."""

import math
import re
import time
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING

from crawlsched.cli.parsing import Option, option
from crawlsched.exceptions import CrawlschedError
from crawlsched.settings import parse_duration
from crawlsched.settings.values import read_date

if TYPE_CHECKING:
    from crawlsched.store.listing import Condition, Kind

__all__ = ["read_columns", "read_condition", "read_order", "where_option"]

_FORM = re.compile(r"\s*([A-Za-z_]+)\s*(<=|>=|!=|!~|=|<|>|~)\s*(.*?)\s*", re.DOTALL)
_NONE = ("", "none", "never", "unknown")
_TRUTHS = {"1": 1, "true": 1, "yes": 1, "0": 0, "false": 0, "no": 0}


def where_option(meaning: str) -> Option:
    """Return what adds ``--where``, which may be given several times."""
    return option("--where CONDITION", meaning, action="append", default=[])


def read_condition(text: str, kinds: "Mapping[str, Kind]", now: float) -> "Condition":
    """Read a condition: column, operator and value; ``none``, ``never`` or nothing stands for an empty value.

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
            raise CrawlschedError(f"A pattern fits texts only, and {name} is none; got {text!r}.")
        return Condition(name, operator, value)
    if value.lower() in _NONE:
        if operator not in ("=", "!="):
            raise CrawlschedError(f"What is {value or 'empty'} can be equal or not (= or !=), got {text!r}.")
        return Condition(name, operator, None)
    if kind == "text":
        return Condition(name, operator, value)
    if kind == "state":
        if value not in STATE_NAMES[1:]:
            raise CrawlschedError(f"A state is one of {', '.join(STATE_NAMES[1:])}, got {value!r}.")
        return Condition(name, operator, STATE_NAMES.index(value))
    if kind == "truth":
        if value.lower() not in _TRUTHS:
            raise CrawlschedError(f"{name} is yes or no, got {value!r}.")
        return Condition(name, operator, _TRUTHS[value.lower()])
    return Condition(name, operator, read_time(value, now) if kind == "time" else _number(value, name))


def read_order(text: str, kinds: "Mapping[str, Kind]") -> tuple[str, bool]:
    """Read a column to order by, and whether the largest comes first.

    >>> from crawlsched.store.listing import TABLES
    >>> read_order("n_changes:desc", TABLES["pages"])
    ('n_changes', True)
    """
    name, _, direction = text.partition(":")
    if direction not in ("", "asc", "desc"):
        raise CrawlschedError(f"An order is a column, or COLUMN:desc for the largest first, got {text!r}.")
    return _column(name, kinds), direction == "desc"


def read_columns(text: str, kinds: "Mapping[str, Kind]") -> list[str]:
    """Read names with commas between them; ``all`` stands for every name."""
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
