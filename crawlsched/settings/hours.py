"""Hours: bandwidths for some hours of each day, in a time zone, and another bandwidth for all other hours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from statistics import fmean
from typing import NamedTuple
from zoneinfo import ZoneInfo

__all__ = ["HOURS_ALLOWED", "Hours"]

HOURS_ALLOWED = (
    'a dictionary, as it is or as JSON, such as {"22:00-06:00 Europe/Berlin": "20/s", "else": "1/s"}; a key is a span '
    "of hours with a time zone (UTC if it has none), or 'else' for all other times, and a value is a bandwidth or 0"
)
_SPAN = re.compile(r"(\d{1,2}):(\d\d)\s*-\s*(\d{1,2}):(\d\d)(?:\s+(\S+))?")
# The length of a day in minutes.
_DAY = timedelta(days=1) // timedelta(minutes=1)


# A span of hours: its first minute of the day, the minute at which it ends, the time zone, and the rate. An end
# smaller than the beginning is on the next day.
_Span = tuple[int, int, ZoneInfo, float]


class Hours(NamedTuple):
    """Bandwidths by the time of day; `Hours.read` makes them.

    Examples
    --------
    >>> hours = Hours.read({"22:00-06:00 Europe/Berlin": 20.0, "else": 1.0}, float)
    >>> from datetime import UTC, datetime
    >>> [hours.rate_at(datetime(2026, 7, 1, hour, tzinfo=UTC).timestamp()) for hour in (19, 20, 3, 4)]
    [1.0, 20.0, 20.0, 1.0]
    """

    spans: tuple[_Span, ...]  # if several spans contain a time, the first of them counts
    otherwise: float  # crawls per second at all other times

    @classmethod
    def read(cls, written: Mapping[str, object], read_rate: Callable[[object], float]) -> Hours:
        """Read the value of the setting; the ValueError for a wrong value says what the value must be."""
        spans: list[_Span] = []
        otherwise: float | None = None
        for name, value in written.items():
            try:
                rate = 0.0 if str(value).strip() in ("0", "0.0") else read_rate(value)
            except ValueError as error:
                raise ValueError(f"{HOURS_ALLOWED} ({name!r}: it is no bandwidth, {error})") from None
            if name.strip().lower() == "else":
                otherwise = rate
            else:
                spans.append(_span(name, rate))
        if not spans:
            raise ValueError(f"{HOURS_ALLOWED} (it names no hours)")
        if otherwise is None:
            raise ValueError(f"{HOURS_ALLOWED} (it has no 'else')")
        if not any([otherwise, *(rate for *_, rate in spans)]):
            raise ValueError(f"{HOURS_ALLOWED} (nothing goes out at any hour)")
        return cls(tuple(spans), otherwise)

    def rate_at(self, now: float) -> float:
        """Return the crawls per second at a time in POSIX seconds; 0: no crawls at this time."""
        time = datetime.fromtimestamp(now, UTC)
        return next((rate for first, last, zone, rate in self.spans if _holds(first, last, zone, time)), self.otherwise)

    def largest(self) -> float:
        """Return the largest of the rates."""
        return max(self.otherwise, *(rate for *_, rate in self.spans))

    def mean(self, now: float) -> float:
        """Return the mean rate of the 24 hours that begin now."""
        start = datetime.fromtimestamp(now, UTC)
        return fmean(self.rate_at((start + timedelta(minutes=minute)).timestamp()) for minute in range(0, _DAY, 5))


def _holds(first: int, last: int, zone: ZoneInfo, time: datetime) -> bool:
    there = time.astimezone(zone)
    minute = 60 * there.hour + there.minute
    return first <= minute < last if first < last else minute >= first or minute < last


def _span(name: str, rate: float) -> _Span:
    match = _SPAN.fullmatch(name.strip())
    if match is None:
        raise ValueError(f"{HOURS_ALLOWED} ({name!r} names no hours)")
    first, last = (60 * int(match[hour]) + int(match[hour + 1]) for hour in (1, 3))
    if max(first, last) > _DAY or int(match[2]) > 59 or int(match[4]) > 59 or first % _DAY == last % _DAY:
        raise ValueError(f"{HOURS_ALLOWED} ({name!r} names no hours of a day)")
    try:
        zone = ZoneInfo(match[5] or "UTC")
    except (KeyError, ValueError, OSError):
        raise ValueError(f"{HOURS_ALLOWED} (the time zone {match[5]!r} is not known on this machine)") from None
    return first % _DAY, last if last == _DAY else last % _DAY, zone, rate
