"""Feeds: read by feedparser up to 200 KB, by lxml beyond, with the same entries where both can read them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_signals import Limits, read_sitemap

URL = "https://a.example/feed"
ATOM = b"""<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><entry>
<link href="https://a.example/1"/><published>2026-11-01T00:00:00Z</published><updated>2026-11-21T03:00:00Z</updated>
</entry></feed>"""
RSS = b"""<rss version="2.0"><channel><item><link>https://a.example/1</link>
<pubDate>%s</pubDate></item></channel></rss>"""


def test_an_update_counts_before_the_publication() -> None:
    """Both readers say the same of a sound feed."""
    ours, theirs = (read_sitemap(ATOM, URL, feedparser=choice) for choice in (False, True))
    assert ours.kind == theirs.kind == "atom"
    assert ours.entries.url == theirs.entries.url == ["https://a.example/1"]
    assert ours.entries.lastmod == theirs.entries.lastmod


@pytest.mark.parametrize("date", [b"Sat, 21 Nov 2026 03:00 EST", b"2026-325", b"Sat Nov 21 03:00:00 2026"])
def test_dates_that_sitemaps_do_not_know_are_read_by_feedparser(date: bytes) -> None:
    """Feeds have dates in many forms, and feedparser knows them."""
    assert read_sitemap(RSS % date, URL, feedparser=True).entries.lastmod[0] is not None


def test_a_damaged_feed_gives_what_can_be_read_and_says_so() -> None:
    """A tag that is not closed."""
    document = read_sitemap(RSS.replace(b"</item>", b"<b></item>") % b"2026-11-21", URL, feedparser=True)
    assert document.entries.url == ["https://a.example/1"]
    assert "damaged-feed" in {problem.kind for problem in document.problems}


def test_limits_and_other_hosts_hold_for_feedparser_too() -> None:
    """Entries beyond the limit are left, and so are another host's."""
    items = b"".join(b"<item><link>https://%s.example/%d</link></item>" % (b"ab"[n % 2 :][:1], n) for n in range(9))
    feed = b"<rss version='2.0'><channel>" + items + b"</channel></rss>"
    document = read_sitemap(feed, URL, Limits(max_entries=3), feedparser=True)
    assert document.entries.url == [f"https://a.example/{n}" for n in (0, 2, 4)]
    assert {"other-host", "too-many-entries"} <= {problem.kind for problem in document.problems}


@pytest.mark.parametrize("body", [b"<a>" * 600_000, b"<rss><channel>" + b"<item>" * 300_000, b"<sitemap>" * 200_000])
def test_two_megabytes_of_open_tags_cost_no_time(body: bytes) -> None:
    """Ten seconds of feedparser's, who is given nothing that has no feed's root, and nothing so large."""
    began = time.process_time()
    document = read_sitemap(body, URL, feedparser=True)
    assert time.process_time() - began < 3.0
    assert document.problems


def test_a_feed_beyond_feedparsers_size_loses_no_entry() -> None:
    """A megabyte of entries with dates is read by lxml, all of it."""
    items = b"".join(
        b"<item><link>https://a.example/%d</link><guid>%d</guid><pubDate>Sat, 21 Nov 2026 03:00:00 GMT</pubDate>"
        b"<description>%s</description></item>" % (n, n, b"words " * 50) for n in range(2_500)
    )  # fmt: skip
    document = read_sitemap(b"<rss version='2.0'><channel>" + items + b"</channel></rss>", URL, feedparser=True)
    assert document.entries.url == [f"https://a.example/{n}" for n in range(2_500)]
    assert None not in document.entries.lastmod


@given(st.binary(max_size=400).map(lambda noise: ATOM[: len(noise)] + noise + ATOM[len(noise) :]))
def test_nothing_is_raised_whatever_the_bytes(body: bytes) -> None:
    """A useful result, or none."""
    read_sitemap(body, URL, feedparser=True)
