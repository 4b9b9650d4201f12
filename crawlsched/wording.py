"""Wording: numbers, times and tables as text for people."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = [
    "or_dash",
    "say_count",
    "say_duration",
    "say_interval",
    "say_moment",
    "say_past",
    "say_per_day",
    "say_rate",
    "say_share",
    "say_table",
    "say_trust",
]

_YEAR, _DAY = timedelta(days=365.25).total_seconds(), timedelta(days=1).total_seconds()
_UNITS = ((_YEAR, "years"), (_DAY, "d"), (3600.0, "h"), (60.0, "min"))


def say_duration(seconds: float) -> str:
    """Say how long something takes, with two or three digits.

    >>> say_duration(0.25), say_duration(45), say_duration(5400), say_duration(864000), say_duration(float("inf"))
    ('0.25 s', '45 s', '90 min', '10 d', 'for ever')
    """
    if seconds > 1000 * _YEAR:
        return "for ever"
    for size, name in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {name}"
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def say_interval(per_second: float) -> str:
    """Say a rate as the time between two events.

    >>> say_interval(1 / 86400), say_interval(0.0)
    ('every 24 h', 'never')
    """
    return "never" if per_second <= 0.0 else f"every {say_duration(1.0 / per_second)}"


def say_moment(time: float | None, now: float) -> str:
    """Say when something was or will be.

    >>> say_moment(1700000000.0, now=1700000060.0), say_moment(1700000060.0, now=1700000000.0)
    ('2023-11-14 22:13:20 UTC, 60 s ago', '2023-11-14 22:14:20 UTC, in 60 s')
    >>> say_moment(None, now=0.0)
    'never'
    """
    if time is None or not math.isfinite(time):
        return "never"
    distance = f"{say_duration(now - time)} ago" if time < now else f"in {say_duration(time - now)}"
    try:
        there = datetime.fromtimestamp(time, UTC).astimezone()  # the zone of the terminal
        return f"{there:%Y-%m-%d %H:%M:%S %Z}, {distance}"
    except (OverflowError, ValueError, OSError):
        return distance


def say_past(time: float | None, now: float) -> str:
    """Say when something was. The time may be after `now`, if a running crawl wrote it after `now` was read.

    >>> say_past(1700000000.5, now=1700000000.0)
    '2023-11-14 22:13:20 UTC, just now'
    """
    if time is None or not now <= time < math.inf:
        return say_moment(time, now)
    return f"{say_moment(time, now).partition(',')[0]}, just now"


def say_share(share: float | None, digits: int = 3, unknown: str = "not known") -> str:
    """Say a share as a percentage, without meaningless digits.

    >>> say_share(0.98765), say_share(None), say_share(0.99999, 2), say_share(1e-7), say_share(0.005)
    ('98.8 %', 'not known', '100 %', '< 0.1 %', '0.5 %')
    """
    if share is None or math.isnan(share):
        return unknown
    if 0.0 < share < 0.001:
        return "< 0.1 %"
    return f"{float(f'{100 * share:.{digits}g}'):g} %"


def say_trust(share: float | None, interval: Sequence[float] | None, unknown: str | None = None) -> str:
    """Say a share that is estimated from announcements, with its interval, or say why the share is not known.

    >>> say_trust(0.8, (0.7, 0.85)), say_trust(None, (0.0, 1.0), "14 of 14 true")
    ('80 % (70 % to 85 %)', 'not known yet (14 of 14 true)')
    """
    if share is None or interval is None:
        return f"not known yet ({unknown})" if unknown else "not known yet"
    low, high = interval
    return f"{say_share(share)} ({say_share(low)} to {say_share(high)})"


def say_per_day(n: float) -> str:
    """Say a number per day; a number below one in three years becomes 0.

    >>> say_per_day(1900.0), say_per_day(0.5), say_per_day(4.5e-13)
    ('1,900', '0.5', '0')
    """
    return f"{n:,.0f}" if n >= 10 else f"{n:.2g}" if n >= 0.001 else "0"


def say_rate(per_second: float) -> str:
    """Say a rate with three digits, in the first unit in which it is 1 or more.

    >>> say_rate(12.345), say_rate(0.5), say_rate(0.5 / 3600)
    ('12.3/s', '30/min', '12/d')
    """
    units = (("s", 1.0), ("min", 60.0), ("h", 3600.0))
    unit, seconds = next((one for one in units if per_second * one[1] >= 1.0), ("d", _DAY))
    return f"{float(f'{per_second * seconds:.3g}'):,g}/{unit}"


def say_count(n: int, thing: str) -> str:
    """Say how many things there are.

    >>> say_count(1, "page"), say_count(12345, "page")
    ('1 page', '12,345 pages')
    """
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def or_dash(value: Any, form: str) -> str:
    """Write a value by a format, or a dash if the value is None.

    >>> or_dash(2.5, "{:.2g}/s"), or_dash(None, "{:.2g}/s")
    ('2.5/s', '-')
    """
    return "-" if value is None else form.format(value)


def say_table(rows: Sequence[Sequence[str]], right: str = "", indent: str = "  ") -> list[str]:
    """Arrange rows in columns. `right` has a letter for each column, which is "r" if the column is flush right.

    >>> print(*say_table([["live", "12"], ["gone", "3"]], right="lr"), sep="|")
      live  12|  gone   3
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    sides = right.ljust(len(widths), "l")[: len(widths)]
    return [
        indent
        + "  ".join(
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        ).rstrip()
        for row in rows
    ]
