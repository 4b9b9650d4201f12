"""Readers for the values of settings, such as a bandwidth, a duration, a list or a function; all may be given as text.

A reader takes the value of a setting (with ``-s`` it is a text) and returns the checked value. For a wrong value it
raises ValueError with the end of the sentence "CRAWLSCHED_... must be".
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from importlib import import_module
from ipaddress import IPv4Network, IPv6Network, ip_network
from math import inf, isclose
from typing import Any, TypeVar
from urllib.parse import urlsplit

from crawlsched.settings.hours import HOURS_ALLOWED, Hours
from crawlsched.slot_clock import DAY

__all__ = [
    "allowing",
    "fits_no_url",
    "format_bandwidth",
    "parse_bandwidth",
    "parse_duration",
    "read_bandwidth",
    "read_bandwidth_or_hours",
    "read_conditional",
    "read_count",
    "read_database_url",
    "read_function",
    "read_names",
    "read_networks",
    "read_one_pass",
    "read_optional",
    "read_positive_seconds",
    "read_seconds",
    "read_selectors",
    "read_share",
    "read_table",
    "read_text",
    "read_truth",
    "read_urls",
    "read_withhold",
]

T = TypeVar("T")

SECONDS_PER = {"s": 1, "min": 60, "h": 3600, "d": int(DAY)}
_BANDWIDTH = "a positive number of crawls, by itself (per second) or per s, min, h or d, such as 5/s or 20000/d"
_DURATION = "a number of seconds or a text such as 45s, 30m, 12h or 90d"
_LISTED = "as a list, as JSON or with commas between them"
# The bounds are one crawl a year and a million crawls a second. Any other bandwidth is a typing error.
_LEAST_BANDWIDTH, _LARGEST_BANDWIDTH = 1 / (366 * DAY), 1e6
_TRUTHS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
_MAY_WITHHOLD = ("wrong_page", "template", "flapping", "noise", "minimum_change", "recipe")


def allowing(allowed: str) -> Callable[[Callable[[Any], T]], Callable[[Any], T]]:
    """Return a decorator that makes every error of a reader say what is allowed.

    >>> allowing("a whole number")(int)("soon")
    Traceback (most recent call last):
    ValueError: a whole number
    """

    def decorate(read: Callable[[Any], T]) -> Callable[[Any], T]:
        @wraps(read)
        def reader(value: Any) -> T:
            try:
                return read(value)
            except (ValueError, TypeError, KeyError, AttributeError):
                raise ValueError(allowed) from None

        return reader

    return decorate


def _right(value: T, is_right: object) -> T:
    if not is_right:
        raise ValueError
    return value


def _number(value: object, least: float = 0.0, most: float = inf) -> float:
    number = float(_right(str(value), not isinstance(value, bool)))
    return _right(number, least <= number <= most and number < inf)


def parse_bandwidth(text: str | float) -> float:
    """Return a bandwidth in crawls per second, from ``5``, ``5/s``, ``300/min``, ``300/h`` or ``20000/d``.

    >>> parse_bandwidth("5/s"), parse_bandwidth("300/h"), parse_bandwidth(0.5)
    (5.0, 0.0833, 0.5)
    """
    try:
        return read_bandwidth(text)
    except ValueError as error:
        raise ValueError(f"bandwidth must be {error}, got {text!r}.") from None


def format_bandwidth(bandwidth: float) -> str:
    """Return a bandwidth as the shortest text from which `parse_bandwidth` reads the same number.

    >>> format_bandwidth(5.0), format_bandwidth(20000 / 86400), format_bandwidth(0.5)
    ('5/s', '20000/d', '0.5/s')
    """
    texts = [f"{bandwidth * seconds:.15g}/{unit}" for unit, seconds in SECONDS_PER.items()]
    return min((text for text in texts if isclose(read_bandwidth(text), bandwidth, rel_tol=1e-12)), key=len)


def parse_duration(text: str | float) -> float:
    """Return a duration in seconds, from a number with or without one of the units s, m (or min), h and d.

    >>> parse_duration("90d"), parse_duration("1.5h"), parse_duration(45)
    (7776000.0, 5400.0, 45.0)
    """
    try:
        return read_seconds(text)
    except ValueError as error:
        raise ValueError(f"duration must be {error}, got {text!r}.") from None


def read_bandwidth(value: object) -> float:
    """Read crawls per second from a number or a text such as 300/h."""
    bandwidth = _per_second(value)
    if not _LEAST_BANDWIDTH <= bandwidth <= _LARGEST_BANDWIDTH:
        raise ValueError(f"{_BANDWIDTH}, between one a year and a million a second")
    return bandwidth


@allowing(_BANDWIDTH)
def _per_second(value: object) -> float:
    number, unit = re.fullmatch(r"([^/]+?)\s*(?:/\s*(s|min|h|d))?", str(value).strip()).groups("s")  # type: ignore[union-attr]
    rate = _number(_right(number, not isinstance(value, bool)))
    return _right(rate, rate > 0.0) / SECONDS_PER[unit]


@allowing(f"{_DURATION}, zero or more")
def read_seconds(value: object) -> float:
    """Read seconds from a number or a text such as 12h."""
    number, unit = re.fullmatch(r"(.+?)\s*(s|m|min|h|d)?", str(value).strip()).groups("s")  # type: ignore[union-attr]
    return _number(_right(number, not isinstance(value, bool))) * {**SECONDS_PER, "m": 60}[unit]


@allowing(f"{_DURATION}, above zero")
def read_positive_seconds(value: object) -> float:
    """Read a duration that is not zero."""
    seconds = read_seconds(value)
    return _right(seconds, seconds > 0.0)


@allowing("True or False")
def read_truth(value: object) -> bool:
    """Read True or False, or a word for one of them from a command line."""
    return _TRUTHS[str(value).strip().lower()]


@allowing("a whole number, zero or more")
def read_count(value: object) -> int:
    """Read a whole number, zero or more."""
    text = str(value).strip()
    return int(_right(text, re.fullmatch(r"\d+", text) and not isinstance(value, bool)))


@allowing("True, False, or a number of visits, 1 or more")
def read_one_pass(value: object) -> bool | int:
    """Read whether a run is a single pass, or the number of visits after which it ends."""
    text = str(value).strip().lower()
    return _TRUTHS[text] if text in _TRUTHS else _right(read_count(value), read_count(value) > 0)


@allowing(f"True, False, or a dictionary of these with the keys {', '.join(_MAY_WITHHOLD)}")
def read_withhold(value: object) -> frozenset[str]:
    """Read for which reasons changes may be withheld: True or False, for all reasons together or for single reasons."""
    if str(value).strip().lower() in _TRUTHS:
        return frozenset(_MAY_WITHHOLD if read_truth(value) else ())
    found = dict(read_table(value))
    _right(found, set(found) <= set(_MAY_WITHHOLD))
    return frozenset(name for name in _MAY_WITHHOLD if read_truth(found.get(name, True)))


@allowing("True, False or 'always'")
def read_conditional(value: object) -> bool | str:
    """Read whether visits are conditional: never, mostly, or always."""
    text = str(value).strip().lower()
    return "always" if text == "always" else _TRUTHS[text]


@allowing("a share from 0 to 1, such as 0.9 or 90%")
def read_share(value: object) -> float:
    """Read a share: a number from 0 to 1, or a text with a percentage."""
    text = str(value).strip()
    if text.endswith("%"):
        return _number(text.removesuffix("%"), most=100.0) / 100.0
    return _number(value, most=1.0)


@allowing("a text that is not empty")
def read_text(value: object) -> str:
    """Read a text that is not empty."""
    return _right(value, isinstance(value, str) and value.strip()).strip()  # type: ignore[attr-defined, no-any-return]


@allowing("a database URL such as sqlite:///crawlsched.db or postgresql+psycopg://user:password@host/database")
def read_database_url(value: object) -> str:
    """Read the URL of a database; only the store checks the database itself."""
    # A URL object of SQLAlchemy is refused, since its text hides the password.
    text = read_text(value)
    return _right(text, "://" in text)


def _is_none(value: object) -> bool:
    return value is None or (isinstance(value, str) and value.strip().lower() in ("", "none", "null"))


def read_optional(read: Callable[[object], Any]) -> Callable[[object], Any]:
    """Return a reader that also accepts None."""

    def reader(value: object) -> Any:
        try:
            return None if _is_none(value) else read(value)
        except ValueError as error:
            raise ValueError(f"None or {error}") from None

    return reader


def read_function(*names: str) -> Callable[[object], Any]:
    """Return a reader for a callable or its import path. The reader returns `names` unchanged."""
    allowed = (f"one of {', '.join(names)}, " if names else "") + "a callable or the import path of one"

    def reader(value: object) -> Any:
        if value in names or callable(value):
            return value
        if not isinstance(value, str) or "." not in value:
            raise ValueError(allowed)
        module, _, name = value.strip().rpartition(".")
        try:
            found = getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(f"{allowed} ({error})") from None
        if not callable(found):
            raise ValueError(allowed)
        return found

    return reader


def _texts(value: object, separator: str | None = r"[\s,]+") -> tuple[str, ...]:
    """Read a list of texts, also from JSON or from a text. The text is split at `separator`, unless this is None."""
    if _is_none(value):
        return ()
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            parsed = re.split(separator, value.strip()) if separator else [value]
        value = parsed if isinstance(parsed, list) else [value]
    is_list = isinstance(value, list | tuple | set | frozenset) and all(isinstance(text, str) for text in value)
    return tuple(text.strip() for text in _right(value, is_list) if text.strip())  # type: ignore[attr-defined]


@allowing(f"a list of absolute http or https URLs, {_LISTED}")
def read_urls(value: object) -> tuple[str, ...]:
    """Read a list of absolute URLs."""
    urls = _texts(value)
    # `urlsplit(...).port` raises ValueError for an impossible port.
    return _right(urls, all(re.match(r"https?://[^/\s]", url) and urlsplit(url).port != 0 for url in urls))


@allowing(f"a list of names of parameters such as sid or utm_*, {_LISTED}")
def read_names(value: object) -> tuple[str, ...]:
    """Read a list of names of parameters, in which ``*`` matches any characters."""
    names = _texts(value)
    return _right(names, all(name.strip("*") and not re.search(r"[=&?#\s]", name) for name in names))


def read_networks(value: object) -> tuple[IPv4Network | IPv6Network, ...]:
    """Read a list of ranges of addresses."""
    allowed = f"a list of ranges of addresses such as 127.0.0.0/8, {_LISTED}"
    ranges = allowing(allowed)(_texts)(value)
    try:
        return tuple(map(ip_network, ranges))
    except ValueError as error:
        raise ValueError(f"{allowed} ({error})") from None


@allowing("a list of selectors, as a list, as JSON or as a single selector")
def read_selectors(value: object) -> tuple[str, ...]:
    """Read a list of selectors; change detection parses them."""
    # The text is not split at commas, since a selector may contain commas, such as "h1, .price".
    return _texts(value, None)


def read_bandwidth_or_hours(value: object) -> float | Hours:
    """Read one bandwidth, or bandwidths by the hour of the day."""
    if not isinstance(value, Mapping) and not str(value).lstrip().startswith("{"):
        return read_bandwidth(value)
    return Hours.read(dict(allowing(HOURS_ALLOWED)(read_table)(value)), read_bandwidth)


@allowing("a dictionary, as it is or as JSON")
def read_table(value: object) -> tuple[tuple[str, Any], ...]:
    """Read a dictionary, also from JSON, and return its pairs."""
    table: Any = json.loads(value or "{}") if isinstance(value, str) else value
    is_table = isinstance(table, Mapping) and all(isinstance(key, str) for key in table)
    return tuple(_right(table, is_table).items())


def read_date(text: str) -> float:
    """Return the POSIX seconds of an ISO 8601 date, with or without a time; it is in UTC if it names no zone.

    >>> read_date("1970-01-02"), read_date("1970-01-01T01:00+01:00")
    (86400.0, 0.0)
    """
    date = datetime.fromisoformat(text)
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def fits_no_url(where: str) -> bool:
    """Whether a name of a host or a pattern of URLs fits no possible URL.

    >>> [fits_no_url(where) for where in ("a.example", "*/api/*", "http*://a.example/*")]
    [False, False, False]
    >>> [fits_no_url(where) for where in ("a.example/api/*", "a.example:8080", "")]
    [True, True, True]
    """
    if "*" in where or "/" in where:
        start = where.partition("*")[0].lower()
        return not any(start.startswith(scheme) or scheme.startswith(start) for scheme in ("http://", "https://"))
    return not where or bool(re.search(r"^[^:]*:\d*$", where))
