"""ChangeSignals: dates, announcements, and the sitemaps of a robots.txt."""

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_signals import PROBLEM_KINDS, announces, parse_lastmod, read_robots, robots_sitemaps, text_mark

HERE = Path(__file__).parent

# Dates


@pytest.mark.parametrize("line", (HERE / "dates.txt").read_text("utf-8").splitlines()[1:])
def test_a_date_is_read_where_it_can_be_read_in_one_way_only(line: str) -> None:
    """The W3C's profile, RFC 2822 and what is near to them; what is in no known form, or no day, is no date."""
    text, *meant = line.split(" | ")
    found = parse_lastmod(text)
    if meant:
        moment = datetime.fromisoformat(meant[0]).replace(tzinfo=UTC).timestamp()
        assert found == (pytest.approx(moment, abs=1e-6), meant[1])
    else:
        assert found is None


def test_what_cannot_be_seen_around_a_date_is_not_of_it() -> None:
    """White space and a byte order mark; a NUL, nothing, and a text without end are no dates."""
    for text in (" 2026-11-20\n", "\ufeff2026-11-20"):
        assert parse_lastmod(text) == parse_lastmod("2026-11-20")
    assert parse_lastmod("Nov 20, 2026, 9:15:30\u202fAM") == parse_lastmod("2026-11-20 09:15:30")
    for text in ("", "2026-11-20T09:15:30Z\x00", "2" * 101):
        assert parse_lastmod(text) is None


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


@pytest.mark.parametrize("case", (HERE / "robots.txt").read_text().splitlines()[1:])
def test_a_line_with_spaces_commas_or_no_scheme_is_resolved_or_reported(case: str) -> None:
    """Nothing is polled that is not named."""
    line, _, meant = case.partition(" => ")
    found, _, reported = meant.partition(" !! ")
    robots = read_robots(f"Sitemap: {line}".encode(), "https://a.example/robots.txt")
    assert robots.children.url == found.split()
    assert [problem.kind for problem in robots.problems] == reported.split()


# Documents

DOCS = Path(__file__).parents[3] / "docs" / "explanation"


def test_every_kind_of_problem_is_documented() -> None:
    """With the sentence that its message gives."""
    text = (DOCS / "change_signals.md").read_text("utf-8")
    for kind, meaning in PROBLEM_KINDS.items():
        assert f"| `{kind}` | {meaning} |" in text
