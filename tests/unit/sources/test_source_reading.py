"""Reading a source against what was stored: what announces a change, what only looks like it, and whose pages count."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scrapy import Request
from scrapy.utils.request import RequestFingerprinter

from crawlsched.change_signals import parse_lastmod
from crawlsched.crawl.source_reading import SourceRead, linked_sources, read_source
from crawlsched.pages.page_index import PageIndex
from crawlsched.store import Batch, Source, Store
from tests.rows import name_of

MAP = "http://a.example/sitemap.xml"
PAGE = "https://www.site.example/a/page"


def _known_as(index: PageIndex, name: Callable[[str], bytes]) -> Callable[[str], tuple[bytes, list[int]]]:
    return lambda url: (name(url), [page for page in [index.page(name(url))] if page >= 0])


def _seconds(text: str) -> float:
    parsed = parse_lastmod(text)
    return parsed[0]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.open(f"sqlite:///{tmp_path / 'crawl.db'}", "test")
    yield store
    store.close()


def _read_body(
    store: Store, index: PageIndex, body: str, name: Callable[[str], bytes] = name_of, hosts: tuple[str, ...] = ()
) -> SourceRead:
    """Read a sitemap that says this now, of pages by their names."""
    return read_source(
        Source(0, "sitemap", MAP, "a.example"),
        MAP,
        body.encode(),
        known_as=_known_as(index, name),
        announced_before=store.reader.announcements_for,
        hosts=hosts,
    )


def _read(store: Store, stored: str | None, now: str, hosts: tuple[str, ...] = (), url: str = "") -> SourceRead:
    """Read a sitemap of one page whose lastmod was `stored` and is `now`."""
    url = url or "http://a.example/page"
    index = PageIndex()
    index.add(name_of(url), 0)
    store.save(Batch(announcements={(0, 0): (None if stored is None else _seconds(stored), 3)}))
    body = f"<urlset><url><loc>{url}</loc><lastmod>{now}</lastmod></url></urlset>"
    return _read_body(store, index, body, hosts=hosts)


@pytest.mark.parametrize("case", (Path(__file__).parent / "lastmods.txt").read_text().splitlines()[1:])
def test_what_announces_a_change(store: Store, case: str) -> None:
    """A date that differs, later or earlier; not one that only becomes more or less precise.

    The more precise date is kept, so that the same time of day announces nothing when it comes back.
    """
    stored, now, follows, kept = case.split(" | ")
    read = _read(store, None if stored == "-" else stored, now)
    assert read.announced.tolist() == [follows == "announced"]
    assert read.n_announced == [3 + (follows == "announced")]
    assert read.lastmod == [_seconds(kept)]


def test_pages_of_another_host_count_if_its_robots_txt_names_the_sitemap(store: Store) -> None:
    """Otherwise the entry is refused, and that is reported."""
    url = "http://b.example/page"
    refused = _read(store, "2026-11-20", "2026-11-21", url=url)
    assert refused.pages.size == 0
    assert [(problem.kind, problem.count) for problem in refused.document.problems] == [("other-host", 1)]
    taken = _read(store, "2026-11-20", "2026-11-21", hosts=("b.example",), url=url)
    assert taken.announced.tolist() == [True]
    assert not taken.document.problems


def test_the_later_date_of_two_spellings_counts_in_whatever_order_they_stand(store: Store) -> None:
    """Parts of a page and the order of parameters are spellings of one page, for Scrapy and so for us."""
    name = RequestFingerprinter().fingerprint
    index = PageIndex()
    index.add(name(Request("http://a.example/page?a=1&b=2")), 0)
    store.save(Batch(announcements={(0, 0): (_seconds("2026-11-20"), 3)}))
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
        read = _read_body(store, index, f"<urlset>{''.join(body)}</urlset>", lambda url: name(Request(url)))
        assert read.lastmod == [_seconds("2026-11-20")]
        assert not read.announced.any()
        assert [lastmod for _, lastmod in read.unknown] == [_seconds("2026-11-19")]


def test_an_entry_that_the_fingerprinter_refuses_costs_no_other(store: Store) -> None:
    """A project's own may raise whatever the URL; that is reported."""

    def name(url: str) -> bytes:
        if "odd" in url:
            raise ValueError(url)
        return name_of(url)

    body = "<urlset><url><loc>http://a.example/odd</loc></url><url><loc>http://a.example/1</loc></url></urlset>"
    read = _read_body(store, PageIndex(), body, name)
    assert [page.url for page, _ in read.unknown] == ["http://a.example/1"]
    assert [(problem.kind, problem.example) for problem in read.document.problems] == [
        ("bad-url", "http://a.example/odd")
    ]


@pytest.mark.parametrize("parameters", ["?utm_source=rss&utm_medium=feed", "?fbclid=1", "?amp;utm_id=3"])
def test_links_that_carry_tracking_are_of_the_page_without_it(store: Store, parameters: str) -> None:
    """A known page is announced, and an unknown one is named without it; what is no tracking stays."""
    index = PageIndex()
    index.add(name_of("http://a.example/known"), 0)
    index.add(name_of(f"http://a.example/tracked{parameters}"), 1)
    store.save(Batch(announcements={(page, 0): (_seconds("2026-11-20"), 0) for page in (0, 1)}))
    links = [f"http://a.example/{name}{parameters}" for name in ("known", "tracked", "new")]
    items = "".join(
        f"<item><link>{link.replace('&', '&amp;')}</link><pubDate>21 Nov 2026</pubDate></item>"
        for link in [*links, "http://a.example/other?utm=1"]
    )
    read = _read_body(store, index, f"<rss><channel>{items}</channel></rss>")
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
