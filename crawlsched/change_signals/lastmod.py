"""The dates in sitemaps and feeds: the W3C profile of ISO 8601, RFC 2822, and other common forms."""

import re
from calendar import isleap
from datetime import date
from functools import lru_cache
from hashlib import blake2b

from crawlsched.change_signals.locations import INVISIBLE

__all__ = ["MAX_DATE", "parse_lastmod", "text_mark"]

_TIME = r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,12})\d*)?)?"
_BASIC_TIME = r"(?P<hour>\d\d)(?P<minute>\d\d)(?:(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,12})\d*)?)?"
_OFFSET = r"(?P<sign>[+-])(?P<zone_hours>\d{1,2}):?(?P<zone_minutes>\d\d)?"
_ZONE = (
    r"(?:\s*(?P<meridiem>[ap]\.?m\.?)(?![a-z]))?"
    rf"(?:\s*(?:(?:z|ut|utc|gmt)?\s?{_OFFSET}(?:\s+(?P<name>[a-z]{{1,5}}))?|(?:etc/)?(?P<zone>[a-z]{{1,5}})))?"
)
# A weekday in any language; it is not checked.
_WEEKDAY = r"(?:[^\d,]{1,30},\s*|[^\s\d,]{1,20}\s+)?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_MONTH = r"(?:of\s+)?(?P<month>[a-z]{3,9})\.?"
_YEAR = r"(?P<year>\d{4})"
_FORMS = [
    re.compile(form, re.ASCII | re.IGNORECASE)
    for form in (
        # 2026-11
        rf"{_YEAR}(?:[-/](?P<number>\d\d?))?",
        # 2026-325, the day of the year
        rf"{_YEAR}-(?P<day_of_year>\d{{3}})",
        # 2026-11-20+01:00, as xsd:date writes a day
        rf"{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)(?:z|(?P<sign>[+-])(?P<zone_hours>\d\d):(?P<zone_minutes>\d\d))",
        # 2026-11-20T09:15:30.5+01:00, also with slashes, or with a word for the zone (databases, Ruby, Go)
        rf"{_WEEKDAY}{_YEAR}(?P<between>[-/.])(?P<number>\d\d?)(?P=between)(?P<day>\d\d?)(?:(?:t|,?\s+){_TIME}{_ZONE})?",
        # 20261120T091530Z, the basic form of ISO 8601
        rf"{_YEAR}(?P<number>\d\d)(?P<day>\d\d)(?:t{_BASIC_TIME}(?:z|{_OFFSET})?)?",
        # Fri, 20 Nov 2026 09:15:30 GMT
        rf"{_WEEKDAY}{_DAY}[\s/-]+{_MONTH}[\s,/-]+(?P<year>\d{{4}}|\d\d),?\s+{_TIME}{_ZONE}",
        # 20 November 2026
        rf"{_WEEKDAY}{_DAY}[\s/-]+{_MONTH}[\s,/-]+{_YEAR}",
        # Fri, Nov 20 2026 09:15:30 GMT
        rf"{_WEEKDAY}{_MONTH}[\s-]+{_DAY}[\s,-]+{_YEAR}(?:,?\s+{_TIME}{_ZONE})?",
        # 2026 Nov 20, 09:15
        rf"{_WEEKDAY}{_YEAR}[\s,-]+{_MONTH}[\s-]+{_DAY}(?:,?\s+{_TIME}{_ZONE})?",
        # November 2026
        rf"{_MONTH}\s+{_YEAR}",
        # Fri Nov 20 09:15:30 GMT 2026, which C and Java write
        rf"[a-z]{{3}}\s+{_MONTH}\s+(?P<day>\d{{1,2}})\s+{_TIME}{_ZONE}\s+{_YEAR}",
    )
]
_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
           "november", "december")  # fmt: skip
_MONTH_NUMBERS = {
    **{name: number for number, name in enumerate(_MONTHS, 1)},
    **{name[:3]: number for number, name in enumerate(_MONTHS, 1)},
    "sept": 9,
}
# RFC 2822, section 4.3. Every other alphabetic zone counts as -0000, as the same section says.
_ZONE_HOURS = {
    "z": 0,
    "ut": 0,
    "utc": 0,
    "gmt": 0,
    "edt": -4,
    "est": -5,
    "cdt": -5,
    "cst": -6,
    "mdt": -6,
    "mst": -7,
    "pdt": -7,
    "pst": -8,
}

_YEARS = range(1970, 2200)
_EPOCH_ORDINAL = date(_YEARS[0], 1, 1).toordinal()
#: The most characters of a date: a longer text is no date.
MAX_DATE = 100
_INVISIBLE = re.compile(f"[{INVISIBLE}]")
_COMMENT = re.compile(r"\([^()]*\)")


@lru_cache(maxsize=4096)
def parse_lastmod(text: str) -> tuple[float, str] | None:
    """Read a date as sitemaps and feeds write it.

    Returns
    -------
    tuple of (float, {"day", "second"}), or None
        POSIX seconds of the first instant of the named period, and whether the text names a time of day ("second") or
        only a date ("day"); None if the text is no date.

    Notes
    -----
    Nothing is guessed. A text with more than one meaning (``20/11/2026``) is no date, and neither is a day that does
    not exist. A year before 1970 or after 2199 is no date either, since ``0001-01-01`` and the like mean "unset". A
    time without a zone, or with an unknown name of a zone, is in UTC [2]_. A year or a month alone means its first day.
    A leap second counts as the following second, as in POSIX time.

    References
    ----------
    .. [1] Wolf, Wicksteed (1997), "Date and Time Formats", W3C note.
    .. [2] Resnick (2001), "Internet Message Format", RFC 2822, sections 3.3 and 4.3.

    Examples
    --------
    >>> parse_lastmod("2026-11-20")
    (1795132800.0, 'day')
    >>> parse_lastmod("2026-11-20T10:15:30+01:00")
    (1795166130.0, 'second')
    >>> parse_lastmod("Fri, 20 Nov 2026 09:15:30 GMT") == parse_lastmod("Nov 20 2026 9:15:30 AM")
    True
    >>> parse_lastmod("yesterday") is None
    True
    """
    text = " ".join(_INVISIBLE.sub("", text).split())
    if len(text) > MAX_DATE:
        return None
    while (without := _COMMENT.sub(" ", text)) != text:  # nested comments, too (RFC 2822, section 3.2.3)
        text = without
    text = text.strip()
    match = next((match for form in _FORMS if (match := form.fullmatch(text))), None)
    return None if match is None else _read(match.groupdict())


def _read(said: dict[str, str | None]) -> tuple[float, str] | None:
    if said.get("number") or not said.get("month"):
        month = int(said.get("number") or 1)
    else:
        month = _MONTH_NUMBERS.get((said["month"] or "").lower(), 0)
    year = int(said["year"] or 0)
    if len(said["year"] or "") == 2:  # RFC 2822, section 4.3
        year += 2000 if year < 50 else 1900
    hour = _hour(int(said.get("hour") or 0), (said.get("meridiem") or "").lower())
    offset = _offset(said)
    clock = hour, int(said.get("minute") or 0), int(said.get("second") or 0)
    seconds = _seconds((year, month, int(said.get("day") or 1)), clock)
    day_of_year = int(said.get("day_of_year") or 1)
    if seconds is None or offset is None or not 1 <= day_of_year <= 365 + isleap(year):
        return None
    fraction = said.get("fraction")
    seconds += 86_400 * (day_of_year - 1) + (float(f"0.{fraction}") if fraction else 0.0) - offset
    return seconds, "day" if said.get("hour") is None else "second"


def _hour(hour: int, meridiem: str) -> int:
    """Return the hour of the day, or 99 (which is refused) for an hour such as "13 pm"."""
    if not meridiem:
        return hour
    return hour % 12 + 12 * (meridiem[0] == "p") if 1 <= hour <= 12 else 99


def _seconds(day: tuple[int, int, int], clock: tuple[int, int, int]) -> float | None:
    hour, minute, second = clock
    if day[0] not in _YEARS or minute > 59 or second > 60:
        return None
    if hour > 23 and clock != (24, 0, 0):  # 24:00:00 is the end of a day in xsd:dateTime
        return None
    try:
        days = date(*day).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None
    return float(days * 86_400 + hour * 3600 + minute * 60 + second)


def _offset(said: dict[str, str | None]) -> int | None:
    """Return how many seconds the zone is ahead of UTC; None for an impossible zone."""
    if not said.get("sign"):
        return 3600 * _ZONE_HOURS.get((said.get("zone") or "").lower(), 0)
    hours, minutes = int(said["zone_hours"] or 0), int(said["zone_minutes"] or 0)
    offset = (hours * 3600 + minutes * 60) * (-1 if said["sign"] == "-" else 1)
    named = _ZONE_HOURS.get((said.get("name") or "").lower())
    is_one_zone = named is None or 3600 * named == offset
    return offset if hours <= 15 and minutes <= 59 and is_one_zone else None


def text_mark(text: str) -> float:
    """Return a number that identifies a text that is no date; a store has it in place of the seconds of a date.

    The number is below zero, unlike the seconds of any date. Two texts have the same number with a probability of
    4e-15.

    >>> text_mark("last Tuesday") < 0.0, text_mark("last Tuesday") == text_mark("last Monday")
    (True, False)
    """
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=6).digest()
    return -1.0 - float(int.from_bytes(digest, "big"))
