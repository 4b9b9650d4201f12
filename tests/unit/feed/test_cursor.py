"""Where on somebody wants the feed, as people and programs write it."""

import pytest

from crawlsched.exceptions import CrawlschedError
from crawlsched.feed.feed import read_since


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90s", 9910.0),
        ("1.5 h", 4600.0),
        ("1970-01-01", 0.0),
        ("1970-01-01T01:00+01:00", 0.0),
        ("1970-01-01 00:01", 60.0),
    ],
)
def test_durations_and_times_are_moments(text, meant):
    """A time without a zone is UTC."""
    assert read_since(text, now=10_000.0) == meant


@pytest.mark.parametrize("text", ["", "2", "yesterday", "0:", "0:1;1:2", "-2h", "0:1,", "1e400h", "²h", "2h 3m"])
def test_anything_else_is_refused_with_what_is_allowed(text):
    """One sentence, with the three forms."""
    with pytest.raises(CrawlschedError, match=r"a duration such as 2h, a time such as .*, or a cursor such as 0:1234"):
        read_since(text, now=0.0)
