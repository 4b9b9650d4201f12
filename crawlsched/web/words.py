"""Words: numbers and times as short texts for the web page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from crawlsched.web.html import Html, tag
from crawlsched.wording import say_duration, say_interval, say_share

__all__ = ["BINDS", "SHOWN", "ago", "clock", "duration", "moment", "noted", "number", "per_time", "share", "short"]

#: A view has at most this many lines or rows.
SHOWN = 100
#: Texts for the reasons that decide a page's next crawl, by the planner's names.
BINDS = {
    "value": "what a crawl of it is worth",
    "overdue": "the max_interval of CRAWLSCHED_PAGES: the page is overdue, and is crawled before pages of any value",
    "forced": "a command, the spider or a long wait: the page is forced, and is crawled before pages of any value",
    "min_interval": "the min_interval of CRAWLSCHED_PAGES: the page may not be crawled again yet",
    "not_before": "the wait after its last visit, which failed",
    "host": "its host, which asked for a pause",
    "in_flight": "nothing: the page is being crawled now",
}


def noted(report: Mapping[str, Any]) -> list[str]:
    """Return the notes on a page that are worth showing."""
    notes = [f"last change: {place}: {before!r} became {after!r}" for place, before, after in report["told"]]
    if report["undelivered"]:
        notes.append("its last change has not been through the spider's callback and pipelines yet")
    if report["visits"] and report["visits"][0]["outcome"] == "wrong":
        notes.append("at its last visit another page (a log-in wall, an error page) was served in its place")
    if lying := [name for name, standing in report["validators"].items() if standing == "lying"]:
        notes.append(f"its host's {' and '.join(lying)} did not change when pages did, and are not used")
    if report["moved_to"]:
        notes.append(f"it moved to {report['moved_to']}")
    return notes


def duration(seconds: float | None) -> str:
    """Say how long something takes.

    >>> duration(45), duration(5400), duration(float("inf")), duration(None)
    ('45 s', '90 min', 'for ever', '–')
    """
    return "–" if seconds is None or math.isnan(seconds) else say_duration(seconds)


def ago(time: float | None, now: float) -> str:
    """Say how long ago something was, or how soon it will be.

    >>> ago(40.0, now=100.0), ago(160.0, now=100.0), ago(None, now=0.0)
    ('60 s ago', 'in 60 s', 'never')
    """
    distance = math.inf if time is None else abs(now - time)
    if time is None or say_duration(distance) == "for ever":
        return "never"
    passed = say_duration(round(distance))
    return f"{passed} ago" if now >= time else f"in {passed}"


def clock(time: float) -> str:
    """Say a time as a date and a clock time, UTC."""
    try:
        return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "never"


def moment(time: float | None, now: float) -> Html:
    """Return how long ago something was, with the time itself as a tooltip."""
    if time is None or not math.isfinite(time):
        return tag("span", "never", class_="faint")
    return tag("time", ago(time, now), title=clock(time))


def share(value: float | None, digits: int = 3) -> str:
    """Say a share in per cent.

    >>> share(0.98765), share(None)
    ('98.8 %', '–')
    """
    return say_share(value, digits, "–")


def number(value: float | None) -> str:
    """Say a whole number with all its digits.

    >>> number(12345), number(None)
    ('12,345', '–')
    """
    return "–" if value is None else f"{value:,.0f}"


def short(value: float | None) -> str:
    """Say a number with three digits.

    >>> short(0.01234), short(1234567), short(26.0)
    ('0.0123', '1.23 M', '26')
    """
    if value is None or math.isnan(value):
        return "–"
    for size, name in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if abs(value) >= size:
            return f"{value / (1e3 if size == 1e4 else size):.3g}{name}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def per_time(rate: float | None) -> str:
    """Say a rate per second as the time between two events.

    >>> per_time(1 / 7200), per_time(0.0)
    ('every 2 h', 'never')
    """
    return "–" if rate is None else say_interval(rate)
