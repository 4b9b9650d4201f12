"""ChangeSignals: dates, announcements, and the sitemaps of a robots.txt."""

import calendar
import math
from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_signals import (
    PROBLEM_KINDS,
    announces,
    parse_lastmod,
    read_robots,
    robots_sitemaps,
    text_mark,
)

DAY = 86_400.0
MIDNIGHT = float(calendar.timegm((2026, 11, 20, 0, 0, 0)))

# Dates


@pytest.mark.parametrize(
    ("text", "seconds", "precision"),
    [
        ("2026", calendar.timegm((2026, 1, 1, 0, 0, 0)), "day"),
        ("2026-11", calendar.timegm((2026, 11, 1, 0, 0, 0)), "day"),
        ("2026-11-20", MIDNIGHT, "day"),
        (" 2026-11-20\n", MIDNIGHT, "day"),
        ("2026-11-20T09:15Z", MIDNIGHT + 33_300, "second"),
        ("2026-11-20T09:15:30Z", MIDNIGHT + 33_330, "second"),
        ("2026-11-20t09:15:30z", MIDNIGHT + 33_330, "second"),
        ("2026-11-20 09:15:30", MIDNIGHT + 33_330, "second"),
        ("2026-11-20 09:15:30 +0000", MIDNIGHT + 33_330, "second"),
        ("2026-11-20T10:15:30+01:00", MIDNIGHT + 33_330, "second"),
        ("2026-11-20T10:15:30+01", MIDNIGHT + 33_330, "second"),
        ("2026-11-19T23:45:30-0930", MIDNIGHT + 33_330, "second"),
        ("2026-11-20T09:15:30.25Z", MIDNIGHT + 33_330.25, "second"),
        ("2026-11-20T09:15:30,123456789Z", MIDNIGHT + 33_330.123456789, "second"),
        ("2016-12-31T23:59:60Z", calendar.timegm((2017, 1, 1, 0, 0, 0)), "second"),
        ("Fri, 20 Nov 2026 09:15:30 GMT", MIDNIGHT + 33_330, "second"),
        ("Fri, 20 Nov 2026 09:15:30 +0000", MIDNIGHT + 33_330, "second"),
        ("20 Nov 2026 04:15:30 EST", MIDNIGHT + 33_330, "second"),
        ("Friday, 20-Nov-26 09:15:30 GMT", MIDNIGHT + 33_330, "second"),
        ("Fri,20 Nov 2026 09:15:30 GMT", MIDNIGHT + 33_330, "second"),
        ("Fri (a (short) day), 20 Nov 2026 09:15:30 (UTC) +0000 (as said)", MIDNIGHT + 33_330, "second"),
        ("Fri, 20 November 2026 9:15 Z", MIDNIGHT + 33_300, "second"),
        ("fri, 20 nov 2026 09:15:30 (UTC)", MIDNIGHT + 33_330, "second"),
        ("Sat, 01 Jan 2000 00:00:00 -0000", 946_684_800.0, "second"),
        ("01 Jan 99 00:00 UT", 915_148_800.0, "second"),
        ("2026-11-20 09:15:30 UTC", MIDNIGHT + 33_330, "second"),
        ("2026-11-20 04:15:30 -0500 (EST)", MIDNIGHT + 33_330, "second"),
        ("Fri, Nov 20 2026 09:15:30 +0000", MIDNIGHT + 33_330, "second"),
        ("November 20, 2026, 09:15 PM", MIDNIGHT + 76_500, "second"),
        ("Fri, 20 Nov 2026 12:15 a.m. EST", MIDNIGHT + 900 + 5 * 3_600, "second"),
        ("Fri Nov 20 09:15:30 2026", MIDNIGHT + 33_330, "second"),
        ("Fri Nov 20 09:15:30 UTC 2026", MIDNIGHT + 33_330, "second"),
        ("20 Nov, 2026 09:15:30 GMT+0000", MIDNIGHT + 33_330, "second"),
        ("20 Nov 2026 10:15:30 GMT+1", MIDNIGHT + 33_330, "second"),
    ],
)
def test_the_forms_of_the_w3c_profile_and_of_rfc_2822_are_read(text: str, seconds: float, precision: str) -> None:
    """POSIX seconds, and whether a time of day was named."""
    assert parse_lastmod(text) == (pytest.approx(seconds, abs=1e-6), precision)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-20Z", 0), ("2026-11-20+02:00", -7_200), ("2026-11-20-05:00", 18_000),
        ("2026/11/20", 0), ("2026.11.20", 0), ("20261120", 0), ("20 Nov 2026", 0), ("20. November 2026", 0),
        ("Nov 20, 2026", 0), ("November 20th, 2026", 0), ("Fri, 20-Nov-2026", 0), ("2026 Nov 20", 0),
        ("2026-11-5", -15 * DAY), ("2026-1-5", -319 * DAY), ("November 2026", -19 * DAY), ("\ufeff2026-11-20", 0),
        ("2026-11-20T24:00:00Z", DAY), ("2026-11-20T24:00+01:00", DAY - 3_600),
        *((text, 33_330) for text in (
            "2026/11/20 9:15:30", "20261120T091530Z", "20261120T101530+0100", "2026-11-20 09:15:30 +0000 UTC",
            "2026-11-20 10:15:30.000000000 +0100 CET", "Fr, 20 Nov 2026 10:15:30 +0100", "Fri 2026-11-20 09:15:30 UTC",
            "Donnerstag, 20 Nov 2026 09:15:30", "星期五, 20 Nov 2026 17:15:30 +0800",
            "Thứ sáu, 20 Nov 2026 16:15:30 +0700", "Nov 20, 2026, 9:15:30\u202fAM",
        )),
    ],
)  # fmt: skip
def test_what_can_be_read_in_one_way_only_is_read(text: str, seconds: float) -> None:
    """Days of xsd:date and their ends, years first, months by name, any weekday, and a zone that is said twice."""
    precision = "second" if ":" in text.removesuffix(":00") or "T" in text[8:] else "day"
    assert parse_lastmod(text) == (MIDNIGHT + seconds, precision)


@pytest.mark.parametrize(
    "text",
    ["", "now", "yesterday", "11/20/2026", "20.11.2026", "2026-13-01", "2026-02-30", "2026-11-20T25:00:00Z",
     "2026-11-20T24:00:01Z", "2026-11-20T09:60:00Z", "2026-11-20T09:15:30+99:00", "2026-11-20T09Z", "26-11-20",
     "20112026", "20/11/2026", "2026-11/20", "20 Nov 26", "2026-11-20 10:00 +0200 UTC", "2026/13/01", "1795166130",
     "0000-00-00 00:00:00", "0001-01-01T00:00:00Z", "-0001-11-30T00:00:00+00:00",
     "1969-12-31", "9999-12-31", "2026-11-20T", "2026-11-20 Z", "Fri, 31 Feb 2026 09:15:30 GMT",
     "Fri, 20 Foo 2026 09:15:30 GMT", "２０２６-11-20",
     "2026-11-20T09:15:30Z\x00", "2" * 101, "2026-W47-5", "31 November 2026 10:00", "Nov 31 2026 10:00",
     "Fri, 20 Nov 2026 13:00 PM", "Fri, 20 Nov 2026 0:30 AM", "2026-11-20 10:00 PM tomorrow", "01/02/2026 10:00"],
)  # fmt: skip
def test_nothing_is_invented(text: str) -> None:
    """What is in no known form, or no day of the calendar, is no date."""
    assert parse_lastmod(text) is None


@given(st.text(max_size=60))
def test_no_text_makes_it_raise(text: str) -> None:
    """Arbitrary text."""
    found = parse_lastmod(text)
    assert found is None or (math.isfinite(found[0]) and found[1] in ("day", "second"))


@given(
    st.datetimes(datetime(1970, 1, 2), datetime(2199, 12, 30)).map(lambda moment: moment.replace(microsecond=0)),
    st.integers(-14 * 60, 14 * 60),
)
def test_every_time_that_python_writes_is_read_back(moment: datetime, offset: int) -> None:
    """ISO 8601 and RFC 2822, in every zone."""
    there = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=offset)))
    assert parse_lastmod(there.isoformat()) == (there.timestamp(), "second")
    assert parse_lastmod(format_datetime(there)) == (there.timestamp(), "second")


# Announcements


def told(stored: str | None, now: str | None) -> bool:
    """Whether an entry announces a change whose date was this at the last reading, and is that now."""
    before, read = parse_lastmod(stored or ""), parse_lastmod(now or "")
    mark = text_mark(stored) if stored and before is None else None
    return announces(before[0] if before else mark, *(read or (None, None)), now)


def test_dates_in_a_form_that_nobody_knows_still_differ() -> None:
    """By their text; another zone, or a date that can be read after one that could not, announces nothing."""
    assert told("2026-11-20T09:00:00Z", "2026-11-20T10:00:00+01:00") == 0
    assert (told("19.11.2026", "20.11.2026"), told("20.11.2026", "20.11.2026")) == (1, 0)
    assert told("19.11.2026", "2026-11-20") == told(None, "20.11.2026") == told("2026-11-20", "20.11.2026") == 0


# robots.txt


def test_sitemaps_of_a_robots_txt_are_found_however_they_are_written() -> None:
    """Case, spaces, comments, byte order mark, line ends, relative URLs, doubles."""
    body = (
        b"\xef\xbb\xbfSitemap:https://a.example/1.xml\r\n"
        b"User-agent: *\rDisallow: /sitemap: x\n"
        b"  SITEMAP : /2.xml   # the second\n"
        b"Site-map: 3.xml#part\n"
        b"sitemap: https://b.example/4.xml?a=1&b=2\n"
        b"# Sitemap: /commented.xml\n"
        b"Sitemap: https://a.example:99999/6.xml\nSitemap: https://a.example:x/7.xml\n"
        b"Sitemap:\nSitemap: # none\nSitemap: ftp://a.example/5.xml\nSitemap: http://[::1\nSitemap: /caf\xe9.xml\n"
        b"Sitemap: /2.xml"
    )
    assert robots_sitemaps(body, "https://a.example/robots.txt") == [
        "https://a.example/1.xml",
        "https://a.example/2.xml",
        "https://a.example/3.xml",
        "https://b.example/4.xml?a=1&b=2",
    ]


def test_a_robots_txt_of_any_size_is_read_within_bounds() -> None:
    """512,000 bytes without the line that is cut, and what lies beyond is reported."""
    body = b"".join(b"Sitemap: /%d.xml\n" % number for number in range(100_000))
    robots = read_robots(body, "https://a.example/robots.txt")
    assert robots.children.url == [f"https://a.example/{number}.xml" for number in range(body[:512_000].count(b"\n"))]
    assert [problem.kind for problem in robots.problems] == ["too-large"]


def test_several_sitemaps_on_one_line_are_read_and_words_around_one_are_not() -> None:
    """Between commas or spaces, each with its scheme or as a path."""
    body = b"Sitemap: https://a.example/1.xml, /2.xml\nSitemap: see https://a.example/3.xml please\n"
    found = [url.removeprefix("https://a.example/") for url in robots_sitemaps(body, "https://a.example/robots.txt")]
    assert found == ["1.xml", "2.xml", "3.xml"]


@pytest.mark.parametrize(
    ("line", "url", "problem"),
    [
        ("https://a.example/my map.xml", "https://a.example/my%20map.xml", "space-in-url"),
        ("/my map.xml", "https://a.example/my%20map.xml", "space-in-url"),
        ("https://a.example/map.xml (all pages)", "https://a.example/map.xml", None),
        ("a.example/map.xml", "https://a.example/map.xml", None),
        ("www.a.example/map.xml", "https://www.a.example/map.xml", None),
        ("maps/map.xml", "https://a.example/maps/map.xml", None),
        ("v1.2/map.xml", "https://a.example/v1.2/map.xml", None),
        ("map.xml", "https://a.example/map.xml", None),
        ("b.example/map.xml", None, "bad-url"),
        ("http//a.example/map.xml", None, "bad-url"),
        ("a.example", None, "bad-url"),
    ],
)
def test_a_sitemap_with_a_space_or_without_a_scheme_is_resolved_or_reported(
    line: str, url: str | None, problem: str | None
) -> None:
    """Nothing is polled that is not named."""
    robots = read_robots(f"Sitemap: {line}".encode(), "https://a.example/robots.txt")
    assert robots.children.url == ([url] if url else [])
    assert [found.kind for found in robots.problems] == ([problem] if problem else [])


# Documents

DOCS = Path(__file__).parents[3] / "docs" / "explanation"


def test_every_kind_of_problem_is_documented() -> None:
    """With the sentence that its message gives."""
    text = (DOCS / "change_signals.md").read_text("utf-8")
    for kind, meaning in PROBLEM_KINDS.items():
        assert f"| `{kind}` | {meaning} |" in text
