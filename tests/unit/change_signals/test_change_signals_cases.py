"""Documents on which readers of sitemaps and feeds were seen to fail, and what is right; kind by kind."""

import gzip
import resource
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from crawlsched.change_signals import SitemapDocument, read_sitemap

SITE = "https://site.example"
DAY = "2026-11-20T00:00:00"
ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'><entry>{}</entry></feed>"
RSS = "<rss version='2.0'><channel><item>{}</item></channel></rss>"
URLSET = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url>{}</url></urlset>"
AROUND = {"atom": ATOM, "rss": RSS, "urlset": URLSET}
UPDATED = "<updated>2026-11-20T00:00:00Z</updated>"
PAGE = f"<link rel='alternate' type='text/html' href='{SITE}/1'/>"
LOC = f"<loc>{SITE}/1</loc>"
LINK = f"<link>{SITE}/1</link>"


def told(document: SitemapDocument) -> list[tuple[str, str | None]]:
    """Give the entries as they are easiest to compare."""
    dates = [
        None if date is None else datetime.fromtimestamp(date, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        for date in document.entries.lastmod
    ]
    return list(zip([url.removeprefix(SITE) for url in document.entries.url], dates, strict=True))


def kinds(document: SitemapDocument) -> set[str]:
    return {problem.kind for problem in document.problems}


def case(text: str) -> Any:
    """Read a case of `entries.txt`: what it is about, a body, its entries, what is reported."""
    about, *lines = text.splitlines()
    entries = [line[3:] for line in lines if line.startswith("=> ")]
    reported = [line[3:] for line in lines if line.startswith("!! ")]
    body = "\n".join(line for line in lines if line[:3] not in ("=> ", "!! "))
    kind, _, inside = body.partition(": ")
    body = AROUND[kind].format(inside) if kind in AROUND else body
    return pytest.param(body, entries, " ".join(reported), id=about)


CASES = (Path(__file__).parent / "entries.txt").read_text("utf-8").split("---- ")[1:]


@pytest.mark.parametrize(("body", "entries", "reported"), [case(text) for text in CASES])
def test_an_entry_is_what_other_readers_take_it_for(body: str, entries: list[str], reported: str) -> None:
    """What is not taken is reported."""
    document = read_sitemap(body.encode(), f"{SITE}/map")
    assert [f"{path} {date or ''}".strip() for path, date in told(document)] == entries
    assert " ".join(sorted(kinds(document))) == reported


def test_what_is_quoted_in_a_document_type_does_not_end_it() -> None:
    """However often."""
    entities = "".join(f'<!ENTITY e{n} "]>x">' for n in range(9_000))
    assert told(read_sitemap(f"<!DOCTYPE u [{entities}]>{URLSET.format(LOC)}".encode(), SITE)) == [("/1", None)]


@pytest.mark.parametrize(
    "location",
    [
        f"\u200b{SITE}/1", f"{SITE}/1\u2060", f"\u200e{SITE}/1\u200f", f"\ufeff{SITE}/1", f"\xad{SITE}/1\u3000",
        f'"{SITE}/1"', f"'{SITE}/1'", f"\u201c{SITE}/1\u201d", f"\xab{SITE}/1\xbb", f"&lt;{SITE}/1&gt;",
        f"\ufeff'{SITE}/1'",
        f"{SITE}/1,2026-11-20", f"{SITE}/1;2026-11-20T10:00:00Z;0.8;daily", f'"{SITE}/1","2026-11-20"',
        f"{SITE}/1 2026-11-20 10:00", f"{SITE}/1\t0.5",
    ],
)  # fmt: skip
def test_what_stands_around_a_url_is_not_the_url(location: str) -> None:
    """In a sitemap, a feed and a list; it is told that something was taken off."""
    line = "All pages:\n" + location.replace("&lt;", "<").replace("&gt;", ">")
    for body in (URLSET.format(f"<loc>{location}</loc>"), RSS.format(f"<link>{location}</link>"), line):
        document = read_sitemap(body.encode(), f"{SITE}/map")
        assert told(document) == [("/1", None)]
        assert kinds(document) - {"not-a-url"} == {"around-url"}


@pytest.mark.parametrize(
    "path",
    [
        "a,b",
        "a;v=1",
        "1,2026",
        "Foo_(bar)",
        "it's",
        "?u=https://b.example/",
        "web/2020/https://b.example/1",
        "x|y",
        "a\u200cb",
    ],
)
def test_what_can_be_of_a_url_stays(path: str) -> None:
    """Commas, quotes, brackets, other URLs, and joiners within words."""
    document = read_sitemap(URLSET.format(f"<loc>{SITE}/{path}</loc>").encode(), f"{SITE}/map.xml")
    assert (told(document), document.problems) == ([(f"/{path}", None)], [])


def test_an_atom_entry_is_a_document_of_its_own() -> None:
    """RFC 4287, section 2; entries of other namespaces are none."""
    body = "<entry xmlns='{}'>" + PAGE + UPDATED + "</entry>"
    document = read_sitemap(body.format("http://www.w3.org/2005/Atom").encode(), f"{SITE}/1")
    assert (document.kind, told(document)) == ("atom", [("/1", DAY)])
    assert read_sitemap(body.format("urn:other").encode(), f"{SITE}/1").kind == "unknown"


def test_a_feed_of_feedburner_links_to_the_original() -> None:
    """Not to the machine that counts who follows the link."""
    body = RSS.format(
        "<link>https://feeds.example/~r/1</link><feedburner:origLink>https://site.example/1</feedburner:origLink>"
    )
    declared = body.replace("<rss", "<rss xmlns:feedburner='http://rssnamespace.org/feedburner/ext/1.0'", 1)
    for text in (body, declared):
        document = read_sitemap(text.encode(), f"{SITE}/feed", hosts=["feeds.example"])
        assert told(document) == [("/1", None)]


@pytest.mark.parametrize("place", [-1, -5, -8])
def test_a_gzip_with_a_wrong_checksum_or_length_is_read_to_its_end(place: int) -> None:
    """Only what stands behind the data is wrong."""
    urls = [f"{SITE}/{n}" for n in range(3_000)]
    packed = bytearray(gzip.compress("\n".join(urls).encode()))
    packed[place] ^= 1
    document = read_sitemap(bytes(packed), f"{SITE}/map.txt.gz")
    assert (document.entries.url, kinds(document)) == (urls, {"bad-gzip"})


HOSTILE = {
    "one name": b"<urlset><" + b"a" * 400_000,
    "one name, packed": gzip.compress(b"<rss><channel><" + b"a" * 400_000),
    "white space before a feed": b"\n" * 190_000 + b"<rss><channel/></rss>",
    "white space in a document type": b"<!DOCTYPE a " + b"\n" * 190_000 + b"><rss><channel/></rss>",
    "declarations": b"\n<!DOCTYPE a" * 16_000 + b"<rss><channel/></rss>",
    "names of people": b"<rss><channel><item><author>" + b"a." * 90_000 + b"</author></item></channel></rss>",
    "elements in a feed": b"<rss><channel>" + b"<a>" * 60_000,
    "ends": b"<urlset>" + b"</a>" * 500_000,
    "distinct ends": b"<urlset>" + b"".join(b"</a%d>" % n for n in range(200_000)),
    "distinct names": b"<urlset>" + b"".join(b"<a%d/>" % n for n in range(300_000)),
    "distinct prefixes": b"<urlset>" + b"".join(b"<a%d:b/>" % n for n in range(200_000)),
    "attributes": b"<urlset><a " + b"".join(b"a%d='1' " % n for n in range(300_000)),
    "namespaces": b"<urlset>" + b"".join(b"<a xmlns:b%d='c'>" % n for n in range(100_000)),
    "unclosed entries": b"<urlset>" + b"<url><loc>/1</loc>" * 20_000,
    "quotes": b"<!DOCTYPE a [" + b"'\"" * 500_000,
    "comments": b"<urlset>" + b"<!---->" * 300_000,
    "references": b"<urlset><url><loc>" + b"&a;" * 700_000,
    "entities": b"<!DOCTYPE a [" + b"".join(b"<!ENTITY a%d 'b'>" % n for n in range(100_000)) + b"]><urlset/>",
    "bomb": b"<!DOCTYPE a [<!ENTITY b 'c'><!ENTITY % d \"<!ENTITY e '&b;&b;'>\">%d;]><urlset>&e;</urlset>",
    "lines": b"http://\n" * 300_000,
}


def test_what_says_nothing_of_an_entry_takes_no_memory() -> None:
    """Some hundred thousand elements directly below it, or deeper: less than twenty megabytes."""
    for inside in ("<a/>", "<b><a>text</a></b>"):
        body = f"<urlset><url>{LOC}{inside * 300_000}<lastmod>2026-11-20</lastmod></url></urlset>".encode()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        document = read_sitemap(body, f"{SITE}/map.xml")
        assert told(document) == [("/1", DAY)]
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


@pytest.mark.parametrize("name", HOSTILE)
def test_no_document_takes_long_or_holds_up_another_thread(name: str) -> None:
    """A megabyte or two of the worst: seconds of CPU (what is quadratic takes minutes), and others have their turns."""
    lateness = [0.0]
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            start = time.perf_counter()
            time.sleep(0.001)
            lateness.append(time.perf_counter() - start)

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.process_time()
    try:
        read_sitemap(HOSTILE[name], f"{SITE}/map.xml")
    finally:
        done.set()
        thread.join()
    assert time.process_time() - start < 8.0
    assert max(lateness) < 0.5  # a few milliseconds on a machine that does nothing else
