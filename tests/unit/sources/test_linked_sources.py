"""The feed and the sitemaps that a page names near its beginning."""

from pathlib import Path

import pytest

from crawlsched.crawl.source_reading import linked_sources

PAGE = "https://www.site.example/a/page"


@pytest.mark.parametrize("case", (Path(__file__).parent / "heads.txt").read_text().strip().split("\n\n"))
def test_a_page_names_its_sources_near_its_beginning(case: str) -> None:
    """One feed at most, and sitemaps, of its own site."""
    head, *found = case.splitlines()
    assert linked_sources(f"<html><head>{head}</head><body>text</body></html>".encode(), PAGE) == found


@pytest.mark.parametrize(
    "body", [b"", b"<link", b"<link sitemap\xff\x00>", b"<link rel=sitemap" * 10_000, b"<base>sitemap"]
)
def test_no_page_makes_it_raise(body: bytes) -> None:
    """Whatever the bytes are."""
    assert linked_sources(body, PAGE) == []
