"""Every ``CRAWLSCHED_*`` setting: what it means, what it is when nobody sets it, and what it may be.

There is one table, made of the fields of `Settings`; README's is generated from it. Values are checked here and nowhere
else, all of them at the start of a crawl, and everything below the Scrapy layer receives plain values.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from importlib import import_module
from math import isclose, isfinite
from typing import Any

from crawlsched.exceptions import SettingError

__all__ = [
    "PREFIX",
    "SETTINGS",
    "Setting",
    "Settings",
    "format_bandwidth",
    "markdown_table",
    "parse_bandwidth",
    "parse_duration",
]

PREFIX = "CRAWLSCHED_"

SECONDS_PER = {"s": 1, "min": 60, "h": 3600, "d": 86400}
DURATION_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
BANDWIDTH_ALLOWED = "a positive number of crawls, by itself (per second) or per s, min, h or d, such as 5/s or 20000/d"
DURATION_ALLOWED = "a number of seconds or a text such as 45s, 30m, 12h or 90d"


def parse_bandwidth(text: str | float) -> float:
    """Return a bandwidth in crawls per second.

    Parameters
    ----------
    text : str or float
        ``5`` and ``5/s`` are 5 crawls a second; ``300/min``, ``300/h`` and ``20000/d`` are per minute, hour and day.

    Raises
    ------
    ValueError
        If it is not a positive number in one of these forms.

    Examples
    --------
    >>> parse_bandwidth("5/s"), parse_bandwidth("300/h"), parse_bandwidth(0.5)
    (5.0, 0.0833, 0.5)
    """
    try:
        return _bandwidth(text)
    except ValueError as error:
        raise ValueError(f"bandwidth must be {error}, got {text!r}.") from None


def format_bandwidth(bandwidth: float) -> str:
    """Return a bandwidth as a person would write it: the shortest text that `parse_bandwidth` reads back.

    Examples
    --------
    >>> format_bandwidth(5.0), format_bandwidth(20000 / 86400), format_bandwidth(0.5)
    ('5/s', '20000/d', '0.5/s')
    """
    texts = [f"{bandwidth * seconds:.15g}/{unit}" for unit, seconds in SECONDS_PER.items()]
    return min((text for text in texts if isclose(_bandwidth(text), bandwidth, rel_tol=1e-12)), key=len)


def parse_duration(text: str | float) -> float:
    """Return a duration in seconds.

    Parameters
    ----------
    text : str or float
        A number of seconds, or a number with one of the units s, m (or min), h and d.

    Raises
    ------
    ValueError
        If it is not a number that is zero or more in one of these forms.

    Examples
    --------
    >>> parse_duration("90d"), parse_duration("1.5h"), parse_duration(45)
    (7776000.0, 5400.0, 45.0)
    """
    try:
        return _seconds(text)
    except ValueError as error:
        raise ValueError(f"duration must be {error}, got {text!r}.") from None


# Readers: each takes what stands in the settings (`-s` gives text) and returns the value, or raises ValueError with the
# end of the sentence "CRAWLSCHED_... must be".


def _bandwidth(value: object) -> float:
    match = re.fullmatch(r"([^/]+?)\s*(?:/\s*(s|min|h|d))?", str(value).strip())
    if match is None or isinstance(value, bool):
        raise ValueError(BANDWIDTH_ALLOWED)
    return _number(match[1], BANDWIDTH_ALLOWED, above=0.0) / SECONDS_PER[match[2] or "s"]


def _seconds(value: object) -> float:
    match = re.fullmatch(r"(.+?)\s*(s|m|min|h|d)?", str(value).strip())
    if match is None or isinstance(value, bool):
        raise ValueError(f"{DURATION_ALLOWED}, zero or more")
    return _number(match[1], f"{DURATION_ALLOWED}, zero or more") * DURATION_UNITS[match[2] or "s"]


def _positive_seconds(value: object) -> float:
    allowed = f"{DURATION_ALLOWED}, above zero"
    try:
        seconds = _seconds(value)
    except ValueError:
        raise ValueError(allowed) from None
    if seconds == 0.0:
        raise ValueError(allowed)
    return seconds


def _number(text: str, allowed: str, above: float | None = None) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(allowed) from None
    if not isfinite(number) or number < 0.0 or (above is not None and number <= above):
        raise ValueError(allowed)
    return number


def _truth(value: object) -> bool:
    known = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    try:
        return known[str(value).strip().lower()]
    except KeyError:
        raise ValueError("True or False") from None


def _count(value: object) -> int:
    if isinstance(value, bool) or re.fullmatch(r"\d+", str(value).strip()) is None:
        raise ValueError("a whole number, zero or more")
    return int(str(value))


def _positive_count(value: object) -> int:
    if isinstance(value, bool) or re.fullmatch(r"0*[1-9]\d*", str(value).strip()) is None:
        raise ValueError("a whole number above zero")
    return int(str(value))


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text that is not empty")
    return value.strip()


def _database_url(value: object) -> str:
    # A URL object of SQLAlchemy's would do as well, but its text hides the password.
    if not isinstance(value, str) or "://" not in value:
        raise ValueError(
            "a database URL such as sqlite:///crawlsched.db or postgresql+psycopg://user:password@host/database"
        )
    return value.strip()


def _optional(read: Callable[[object], Any]) -> Callable[[object], Any]:
    def read_optional(value: object) -> Any:
        if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none", "null")):
            return None
        try:
            return read(value)
        except ValueError as error:
            raise ValueError(f"None or {error}") from None

    return read_optional


def _one_of(*names: str) -> Callable[[object], str]:
    def read_one(value: object) -> str:
        if value not in names:
            raise ValueError(f"one of {', '.join(names)}")
        return str(value)

    return read_one


def _function(*names: str) -> Callable[[object], Any]:
    """Read a callable or an import path to one; or one of the names, which stay as they are."""
    allowed = (f"one of {', '.join(names)}, " if names else "") + "a callable or the import path of one"

    def read_function(value: object) -> Any:
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

    return read_function


def _scheduler(value: object) -> Any:
    # Scrapy takes a class or its import path; the path is imported only when it is needed.
    if isinstance(value, type) or (isinstance(value, str) and "." in value):
        return value
    raise ValueError("a scheduler class or its import path")


def _texts(value: object, separator: str | None, allowed: str) -> tuple[str, ...]:
    """Read a list: one of texts, one written as JSON, or texts with separators between them (None: a single text)."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "none", "null")):
        return ()
    if isinstance(value, str):
        try:
            parsed = json.loads(value)
        except json.JSONDecodeError:
            parsed = re.split(separator, value.strip()) if separator else [value]
        value = parsed if isinstance(parsed, list) else [value]
    if not isinstance(value, list | tuple | set | frozenset) or not all(isinstance(text, str) for text in value):
        raise ValueError(allowed)
    return tuple(text.strip() for text in value if text.strip())


def _urls(value: object) -> tuple[str, ...]:
    allowed = "a list of absolute http or https URLs, as a list, as JSON or with commas between them"
    urls = _texts(value, r"[\s,]+", allowed)
    if not all(re.match(r"https?://[^/\s]", url) for url in urls):
        raise ValueError(allowed)
    return urls


def _selectors(value: object) -> tuple[str, ...]:
    # Not split at commas: they mean something in a selector, and "h1, .price" is one selector for both.
    allowed = "a list of CSS selectors, as a list, as JSON or as a single selector"
    selectors = _texts(value, None, allowed)
    from cssselect import SelectorError, parse  # Scrapy's own; not needed where no selector is set

    for selector in selectors:
        try:
            parse(selector)
        except SelectorError as error:
            raise ValueError(f"{allowed} ({selector!r}: {error})") from None
    return selectors


def _setting(default: object, read: Callable[[object], Any], meaning: str) -> Any:
    """Return a field of `Settings` which carries its row of the table."""
    return field(default=read(default), metadata={"default": default, "read": read, "meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one crawl, read and checked; durations in seconds, the bandwidth in crawls per second.

    Examples
    --------
    >>> settings = Settings.from_scrapy({"CRAWLSCHED_BANDWIDTH": "300/h", "BOT_NAME": "news"}, spider_name="articles")
    >>> settings.bandwidth, settings.collection
    (0.0833, 'articles')
    >>> Settings.from_scrapy({"CRAWLSCHED_BANDWITH": "300/h"}, spider_name="articles")
    Traceback (most recent call last):
    crawlsched.exceptions.SettingError: CRAWLSCHED_BANDWITH is not a setting; did you mean CRAWLSCHED_BANDWIDTH?
    """

    enabled: bool = _setting(True, _truth, "`False`: the crawl runs as if crawlsched were not installed.")
    bandwidth: float = _setting(
        "1/s", _bandwidth, "How many requests go out: `5` or `5/s`, `300/min`, `300/h`, `20000/d`. One number for all."
    )
    database_url: str = _setting(
        "sqlite:///crawlsched.db",
        _database_url,
        "Where everything is kept: an SQLAlchemy URL. SQLite, or PostgreSQL with `crawlsched[postgresql]`.",
    )
    database_upgrade: bool | None = _setting(
        None, _optional(_truth), "Upgrade the database's tables at start. `None`: on SQLite only."
    )
    collection: str | None = _setting(
        None, _optional(_text), "The name under which the pages are kept. `None`: the spider's name."
    )
    shard: int = _setting(0, _count, "The number of the shard that this process serves.")
    crawl_value: str = _setting(
        "posterior",
        _one_of("posterior", "greedy", "greedy_cis", "greedy_ncis"),
        "What a crawl is worth: `posterior` (expected over all change rates still possible), or one of the papers' "
        "rules with the mean rate: `greedy`, `greedy_cis`, `greedy_ncis`.",
    )
    min_crawl_interval: float = _setting(
        0.0, _seconds, "No page is crawled sooner than this after its last crawl, whatever it is worth."
    )
    max_crawl_interval: float | None = _setting(
        None, _optional(_positive_seconds), "Every page is crawled at least this often, before anything of value."
    )
    discovery_horizon: float = _setting(
        86400.0,
        _positive_seconds,
        "How far ahead a first crawl counts: the longer, the sooner a new page goes before known ones.",
    )
    importance: Callable[..., float] | None = _setting(
        None,
        _optional(_function()),
        "`f(url, meta)`, or its import path: how much a fresh copy of the page is worth, 1 being usual.",
    )
    sitemap_priority: bool = _setting(False, _truth, "Take a page's importance from the sitemap's `<priority>`.")
    fingerprint: str | Callable[..., Any] = _setting(
        "visible_text",
        _function("raw_bytes", "visible_text"),
        "What counts as a change: `raw_bytes`, `visible_text`, or a function (or its import path).",
    )
    fingerprint_keep: tuple[str, ...] = _setting(
        [], _selectors, "CSS selectors of the parts of a page that count. Empty: the whole page."
    )
    fingerprint_drop: tuple[str, ...] = _setting(
        [], _selectors, "CSS selectors of parts that do not count: clocks, counters, lists of related pages."
    )
    conditional_requests: bool = _setting(
        True, _truth, "Send `If-None-Match` and `If-Modified-Since`; a 304 then counts as unchanged."
    )
    callback_on_unchanged: bool = _setting(
        False, _truth, "Call the spider's callback for pages that did not change, too."
    )
    sitemap_urls: tuple[str, ...] = _setting([], _urls, "Sitemaps to read beside those that robots.txt names.")
    sitemaps_from_robots: bool = _setting(True, _truth, "Read the sitemaps that the sites' robots.txt files name.")
    sitemap_interval: float = _setting(3600.0, _positive_seconds, "How often a sitemap is read again.")
    sitemap_discovery: bool = _setting(True, _truth, "Make pages of the unknown URLs that a sitemap lists.")
    sitemap_max_bytes: int = _setting(52428800, _positive_count, "A sitemap is read up to this size, unpacked.")
    sitemap_max_entries: int = _setting(50000, _positive_count, "A sitemap is read up to this many entries.")
    signal_delay: float = _setting(
        0.0, _seconds, "Announcements this soon after a crawl are dropped: they are about what was just seen."
    )
    replan_interval: float = _setting(
        300.0, _positive_seconds, "How often the population's rates and the sources' precision are learned anew."
    )
    flush_interval: float = _setting(
        0.3, _positive_seconds, "How often what happened is written down; a crash forgets at most this and 0.2 s."
    )
    observation_retention: float = _setting("90d", _positive_seconds, "How long single visits are kept.")
    gone_interval: float = _setting(
        86400.0, _positive_seconds, "When a page that is gone is looked for again; then twice as long, up to 30 days."
    )
    error_interval: float = _setting(
        60.0, _positive_seconds, "When a page is tried again after an error; then twice as long, up to a day."
    )
    visit_timeout: float = _setting(
        600.0, _positive_seconds, "A request that nothing was heard of for so long counts as dropped."
    )
    jobs: bool = _setting(True, _truth, "Run the jobs inside the crawl. `False`: the command `crawlsched jobs` does.")
    fallback_scheduler: str | type | None = _setting(
        None, _optional(_scheduler), "The scheduler for requests that are no pages. Set by the add-on."
    )

    @classmethod
    def from_scrapy(cls, settings: Mapping[str, Any], spider_name: str | None = None) -> "Settings":
        """Read the ``CRAWLSCHED_*`` settings out of all others.

        Parameters
        ----------
        settings : mapping
            Scrapy's settings, or a dictionary.
        spider_name : str, optional
            The name of the collection where the settings give none.

        Raises
        ------
        SettingError
            If a value is not allowed or a name is unknown: one sentence for each mistake, each on a line.
        """
        if not _read_enabled(settings):
            return cls(enabled=False, collection=spider_name)
        values, mistakes = _read_all(settings)
        mistakes += _unknown_names(settings)
        shortest, longest = values.get("min_crawl_interval", 0.0), values.get("max_crawl_interval")
        if longest is not None and longest < shortest:
            mistakes.append(
                "CRAWLSCHED_MAX_CRAWL_INTERVAL must be None or at least CRAWLSCHED_MIN_CRAWL_INTERVAL "
                f"({shortest:g} s), got {longest:g} s."
            )
        if mistakes:
            raise SettingError("\n".join(mistakes))
        if values["collection"] is None:
            values["collection"] = spider_name
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table of settings.

    Attributes
    ----------
    name : str
        As it stands in a project's ``settings.py``.
    default : object
        As a person would write it there.
    meaning : str
        One or two sentences.
    read : callable
        Takes the value as set and returns the checked one, or raises ValueError with what is allowed.
    """

    name: str
    default: object
    meaning: str
    read: Callable[[object], Any]


SETTINGS: tuple[Setting, ...] = tuple(Setting(PREFIX + f.name.upper(), **f.metadata) for f in fields(Settings))


def markdown_table() -> str:
    """Return all settings as the table that stands in the README."""
    rows = ["| Setting | Default | Meaning |", "| --- | --- | --- |"]
    rows += [f"| `{row.name}` | `{row.default!r}` | {row.meaning} |" for row in SETTINGS]
    return "\n".join(rows)


def _read_enabled(settings: Mapping[str, Any]) -> bool:
    """Tell whether anything is to be read at all: when switched off, not even wrong settings matter."""
    try:
        return _truth(settings.get("CRAWLSCHED_ENABLED", True))
    except ValueError:
        return True


def _read_all(settings: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    values, mistakes = {}, []
    for row in SETTINGS:
        value = settings.get(row.name, row.default)
        try:
            values[row.name.removeprefix(PREFIX).lower()] = row.read(value)
        except ValueError as error:
            mistakes.append(f"{row.name} must be {error}, got {value!r}.")
    return values, mistakes


def _unknown_names(settings: Mapping[str, Any]) -> list[str]:
    known = [row.name.removeprefix(PREFIX) for row in SETTINGS]
    ours = [str(name).removeprefix(PREFIX) for name in settings if str(name).startswith(PREFIX)]
    mistakes = []
    for name in sorted(set(ours).difference(known)):
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {PREFIX}{near[0]}?" if near else "all of them stand in the README."
        mistakes.append(f"{PREFIX}{name} is not a setting; {hint}")
    return mistakes
