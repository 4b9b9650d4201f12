"""Reading a source against what was stored: what announces a change, what only looks like it, and whose pages count."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.utils.request import RequestFingerprinter

from crawlsched.change_signals import parse_lastmod
from crawlsched.crawl.collection import Collection, FoundPage
from crawlsched.crawl.source_reading import SourceRead, linked_sources, read_source
from tests import parts
from tests.rows import name_of

NOW = 1_000_000.0
MAP = "http://a.example/sitemap.xml"
PAGE = "https://www.site.example/a/page"


def _seconds(text: str) -> float:
    parsed = parse_lastmod(text)
    return parsed[0]


@pytest.fixture
def collection(tmp_path: Path) -> Iterator[Collection]:
    made = parts.collection(parts.settings(f"sqlite:///{tmp_path / 'crawl.db'}"), NOW)
    yield made
    made.close(NOW)


def _read_body(
    collection: Collection,
    pages: Sequence[FoundPage],
    stored: str | None,
    body: str,
    n: int = 3,
    hosts: Sequence[str] = (),
) -> SourceRead:
    """Read a sitemap that says this now, of pages whose lastmod was `stored` and seen to differ `n` times."""
    known = collection.add_pages(pages, NOW) if not len(collection.index) else []
    if (number := collection.sources.number("sitemap", MAP)) is None:
        added = collection.sources.add("sitemap", MAP, "a.example", NOW)
        number = added.source
    collection.sources.describe(number, hosts=list(hosts))
    collection.unsaved.source(collection.sources[number], NOW)
    for page in known:
        collection.unsaved.announcement(page, number, None if stored is None else _seconds(stored), 3, NOW)
    collection.flush(NOW)
    assert collection.write_behind.drain()
    return read_source(collection, number, MAP, body.encode())


def _read(
    collection: Collection, stored: str | None, now: str, hosts: Sequence[str] = (), url: str = "http://a.example/page"
) -> SourceRead:
    """Read a sitemap of one page whose lastmod was `stored` and is `now`."""
    body = f"<urlset><url><loc>{url}</loc><lastmod>{now}</lastmod></url></urlset>"
    return _read_body(collection, parts.found([url]), stored, body, hosts=hosts)


@pytest.mark.parametrize("case", (Path(__file__).parent / "lastmods.txt").read_text().splitlines()[1:])
def test_what_announces_a_change(collection: Collection, case: str) -> None:
    """A date that differs, later or earlier; not one that only becomes more or less precise.

    The more precise date is kept, so that the same time of day announces nothing when it comes back.
    """
    stored, now, follows, kept = case.split(" | ")
    read = _read(collection, None if stored == "-" else stored, now)
    assert read.announced.tolist() == [follows == "announced"]
    assert read.n_announced == [3 + (follows == "announced")]
    assert read.lastmod == [_seconds(kept)]


def test_pages_of_another_host_count_if_its_robots_txt_names_the_sitemap(collection: Collection) -> None:
    """Otherwise the entry is refused, and that is reported."""
    url = "http://b.example/page"
    refused = _read(collection, "2026-11-20", "2026-11-21", url=url)
    assert refused.pages.size == 0
    assert [(problem.kind, problem.count) for problem in refused.document.problems] == [("other-host", 1)]
    taken = _read(collection, "2026-11-20", "2026-11-21", hosts=("b.example",), url=url)
    assert taken.announced.tolist() == [True]
    assert not taken.document.problems


def test_the_later_date_of_two_spellings_counts_in_whatever_order_they_stand(collection: Collection) -> None:
    """Parts of a page and the order of parameters are spellings of one page, for Scrapy and so for us."""
    name = RequestFingerprinter().fingerprint
    collection.request_fingerprint = lambda url: name(Request(url))
    url = "http://a.example/page?a=1&b=2"
    known = FoundPage(url, collection.request_fingerprint(url), "a.example")
    entries = [
        f"<url><loc>http://a.example/{path}</loc><lastmod>{date}</lastmod></url>"
        for path, date in (
            ("page?a=1&amp;b=2#one", "2026-11-19"),
            ("page?b=2&amp;a=1#two", "2026-11-20"),
            ("new#one", "2026-11-18"),
            ("new", "2026-11-19"),
        )
    ]
    for body in (entries, entries[::-1]):
        read = _read_body(collection, [known], "2026-11-20", f"<urlset>{''.join(body)}</urlset>")
        assert read.lastmod == [_seconds("2026-11-20")]
        assert not read.announced.any()
        assert [lastmod for _, lastmod in read.unknown] == [_seconds("2026-11-19")]


def test_an_entry_that_the_fingerprinter_refuses_costs_no_other(collection: Collection) -> None:
    """A project's own may raise whatever the URL; that is reported."""

    def name(url: str) -> bytes:
        if "odd" in url:
            raise ValueError(url)
        return name_of(url)

    body = "<urlset><url><loc>http://a.example/odd</loc></url><url><loc>http://a.example/1</loc></url></urlset>"
    collection.request_fingerprint = name
    read = _read_body(collection, [], None, body)
    assert [page.url for page, _ in read.unknown] == ["http://a.example/1"]
    assert [(problem.kind, problem.example) for problem in read.document.problems] == [
        ("bad-url", "http://a.example/odd")
    ]


@pytest.mark.parametrize("parameters", ["?utm_source=rss&utm_medium=feed", "?fbclid=1", "?amp;utm_id=3"])
def test_links_that_carry_tracking_are_of_the_page_without_it(collection: Collection, parameters: str) -> None:
    """A known page is announced, and an unknown one is named without it; what is no tracking stays."""
    known = parts.found(["http://a.example/known", f"http://a.example/tracked{parameters}"])
    links = [f"http://a.example/{name}{parameters}" for name in ("known", "tracked", "new")]
    items = "".join(
        f"<item><link>{link.replace('&', '&amp;')}</link><pubDate>21 Nov 2026</pubDate></item>"
        for link in [*links, "http://a.example/other?utm=1"]
    )
    read = _read_body(collection, known, "2026-11-20", f"<rss><channel>{items}</channel></rss>")
    assert (read.pages.tolist(), read.announced.tolist()) == ([0, 1], [True, True])
    assert [page.url for page, _ in read.unknown] == ["http://a.example/new", "http://a.example/other?utm=1"]


# What a page names


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
