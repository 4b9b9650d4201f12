"""The dates in sitemaps and feeds: the W3C profile of ISO 8601, and RFC 2822."""

import re
from datetime import date
from functools import lru_cache

__all__ = ["parse_lastmod"]

_W3C = re.compile(
    r"(\d{4})(?:-(\d\d)(?:-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{1,12})\d*)?)? ?(?:([Zz])|([+-])(\d\d):?(\d\d)?)?)?)?)?",
    re.ASCII,
)
_RFC_2822 = re.compile(
    r"(?:[a-z]{3,9}\.?(?:\s*,\s*|\s+))?(\d{1,2})[\s-]+([a-z]{3,9})\.?[\s-]+(\d{4}|\d\d)\s+"
    r"(\d{1,2}):(\d\d)(?::(\d\d))?(?:\s*(?:([+-])(\d\d):?(\d\d)|([a-z]{1,5})))?",
    re.ASCII | re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                "november", "december")  # fmt: skip
_MONTH_NUMBERS = {
    **{name: number for number, name in enumerate(_MONTHS, 1)},
    **{name: number for number, name in enumerate(_MONTH_NAMES, 1)},
    "sept": 9,
}
# RFC 2822, section 4.3. Every other alphabetic zone counts as -0000, as the same section says.
_ZONE_HOURS = {"edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7, "pst": -8}

_FIRST_YEAR, _LAST_YEAR = 1970, 2199
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MAX_CHARACTERS = 100
_COMMENT = re.compile(r"\([^()]*\)")


@lru_cache(maxsize=4096)
def parse_lastmod(text: str) -> tuple[float, str] | None:
    """Read a date as sitemaps and feeds write it.

    Parameters
    ----------
    text : str
        The text of a `lastmod`, `pubDate`, `updated` or a similar element.

    Returns
    -------
    tuple of (float, {"day", "second"}), or None
        POSIX seconds of the first instant of what is named, and whether the text names a time of day ("second") or
        only a date ("day"); None if the text is no date.

    Notes
    -----
    Nothing is invented: what is not written in one of the two forms is no date, and neither is a year before 1970 or
    after 2199 (``0001-01-01`` and the like stand for "unset"). A time without a zone is taken as UTC, and so are zones
    with unknown names [2]_. A year or a month alone stands for its first day. A leap second is the second after it,
    as in POSIX time.

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
    >>> parse_lastmod("Fri, 20 Nov 2026 09:15:30 GMT")
    (1795166130.0, 'second')
    >>> parse_lastmod("yesterday") is None
    True
    """
    text = text.strip()
    if len(text) > _MAX_CHARACTERS:
        return None
    if match := _W3C.fullmatch(text):
        return _from_w3c(match)
    while (without := _COMMENT.sub(" ", text)) != text:  # RFC 2822, section 3.2.3: within one another, and anywhere
        text = without
    if match := _RFC_2822.fullmatch(text.strip()):
        return _from_rfc_2822(match)
    return None


def _from_w3c(match: re.Match[str]) -> tuple[float, str] | None:
    year, month, day, hour, minute, second, fraction, zulu, sign, zone_hours, zone_minutes = match.groups()
    offset = 0 if zulu or not sign else _offset(sign, zone_hours, zone_minutes)
    seconds = _seconds(int(year), int(month or 1), int(day or 1), int(hour or 0), int(minute or 0), int(second or 0))
    if seconds is None or offset is None:
        return None
    return seconds - offset + (float(f"0.{fraction}") if fraction else 0.0), "day" if hour is None else "second"


def _from_rfc_2822(match: re.Match[str]) -> tuple[float, str] | None:
    day, month, year, hour, minute, second, sign, zone_hours, zone_minutes, zone_name = match.groups()
    month_number = _MONTH_NUMBERS.get(month.lower())
    if month_number is None:
        return None
    full_year = int(year)
    if len(year) == 2:  # RFC 2822, section 4.3
        full_year += 2000 if full_year < 50 else 1900
    offset = _offset(sign, zone_hours, zone_minutes) if sign else 3600 * _ZONE_HOURS.get((zone_name or "").lower(), 0)
    seconds = _seconds(full_year, month_number, int(day), int(hour), int(minute), int(second or 0))
    return None if seconds is None or offset is None else (seconds - offset, "second")


def _seconds(year: int, month: int, day: int, hour: int, minute: int, second: int) -> float | None:
    if not _FIRST_YEAR <= year <= _LAST_YEAR or hour > 23 or minute > 59 or second > 60:
        return None
    try:
        days = date(year, month, day).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None
    return float(days * 86_400 + hour * 3600 + minute * 60 + second)


def _offset(sign: str, hours: str, minutes: str | None) -> int | None:
    if int(hours) > 15 or int(minutes or 0) > 59:
        return None
    seconds = int(hours) * 3600 + int(minutes or 0) * 60
    return -seconds if sign == "-" else seconds
