"""Feeds: their links, ids and dates, whatever their size and damage."""

import pytest

from crawlsched.change_signals import read_sitemap

URL = "https://a.example/feed"
NOVEMBER_21 = 1795219200.0
RSS = b"""<rss version="2.0"><channel><item><link>https://a.example/1</link>
<pubDate>%s</pubDate></item></channel></rss>"""


@pytest.mark.parametrize(
    ("date", "seconds"),
    [
        (b"Sat, 21 Nov 2026 08:00 EST", 13 * 3600.0),
        (b"2026-325", 0.0),
        (b"Sat Nov 21 03:00:00 2026", 3 * 3600.0),
        (b"Sat, 21 Nov 2026 03:00:00 Etc/GMT", 3 * 3600.0),
    ],
)
def test_feeds_have_dates_in_forms_that_sitemaps_do_not_know(date: bytes, seconds: float) -> None:
    """Zones by name, the day of the year, the year last."""
    assert read_sitemap(RSS % date, URL).entries.lastmod == [NOVEMBER_21 + seconds]


@pytest.mark.parametrize("n", [1, 5_000])
@pytest.mark.parametrize(
    "entry",
    [
        "<entry><link href='https://a.example/{}?a=1&amp;b=2'/></entry>",
        "<entry><link href='https://a.example/{}?a=1&b=2'/></entry>",
        "<item><link>https://a.example/{}?a=1&amp;b=2</link></item>",
        "<item><link><![CDATA[https://a.example/{}?a=1&amp;b=2]]></link></item>",
        "<item><guid>https://a.example/{}?a=1&#38;b=2</guid></item>",
    ],
)
def test_an_ampersand_in_a_link_is_one_however_it_is_written(entry: str, n: int) -> None:
    """In an attribute, a text, or a CDATA section, in feeds of any size."""
    root = "feed" if entry.startswith("<entry") else "rss"
    body = f"<{root}>{''.join(entry.format(number) for number in range(n))}</{root}>"
    document = read_sitemap(body.encode(), URL)
    assert document.entries.url == [f"https://a.example/{number}?a=1&b=2" for number in range(n)]
