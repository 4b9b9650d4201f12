"""The feed and the sitemaps that a page names near its beginning."""

import pytest

from crawlsched.crawl.source_reading import linked_sources

PAGE = "https://www.site.example/a/page"
FEED = "<link rel=alternate type=application/rss+xml href={}>"


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (FEED.format("/feed"), ["https://www.site.example/feed"]),
        (FEED.format("feed"), ["https://www.site.example/a/feed"]),
        ("<base href='/b/'>" + FEED.format("feed"), ["https://www.site.example/b/feed"]),
        (FEED.format("https://site.example/feed"), ["https://site.example/feed"]),
        (FEED.format("https://other.example/feed") + FEED.format("/mine"), ["https://www.site.example/mine"]),
        (FEED.format("/1") + FEED.format("/2"), ["https://www.site.example/1"]),
        ("<LINK REL='Alternate home' TYPE='application/atom+xml; charset=utf-8' HREF='/a?b=1&amp;c=2'>",
         ["https://www.site.example/a?b=1&c=2"]),
        ("<link rel=alternate type=application/feed+json href=/f.json>", ["https://www.site.example/f.json"]),
        ("<link rel=sitemap href=/m.xml><link rel=sitemap href=/n.xml>",
         ["https://www.site.example/m.xml", "https://www.site.example/n.xml"]),
        ("<link rel=alternate hreflang=de href=/de><link rel='alternate stylesheet' href=/x.css>", []),
        ("<link rel=alternate type=application/json href=/wp-json/1>", []),
        ("<link rel=alternate type=application/rss+xml><link rel=sitemap href=''>", []),
        ("<link rel=alternate type=application/rss+xml href='http://[/'>", []),
        ("<!-- " + FEED.format("/hidden") + " -->" + FEED.format("/shown"), ["https://www.site.example/shown"]),
        ("<body>" + FEED.format("/feed"), ["https://www.site.example/feed"]),
    ],
)  # fmt: skip
def test_a_page_names_its_sources_near_its_beginning(head: str, found: list[str]) -> None:
    """One feed at most, and sitemaps, of its own site."""
    assert linked_sources(f"<html><head>{head}</head><body>text</body></html>".encode(), PAGE) == found


@pytest.mark.parametrize(
    "body", [b"", b"<link", b"<link sitemap\xff\x00>", b"<link rel=sitemap" * 10_000, b"<base>sitemap"]
)
def test_no_page_makes_it_raise(body: bytes) -> None:
    """Whatever the bytes are."""
    assert linked_sources(body, PAGE) == []
