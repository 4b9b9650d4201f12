"""Sitemaps and feeds: what is read from them, and what is reported."""

import gzip
import resource
import threading
import time
import zlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_signals import PROBLEM_KINDS, Limits, SitemapDocument, parse_lastmod, read_sitemap
from tests.inputs import tries

HERE = Path(__file__).parent
SITEMAPS = HERE / "sitemaps"
SITE = "https://site.example"
TIME = "%Y-%m-%dT%H:%M:%S"
ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'><entry>{}</entry></feed>"
RSS = "<rss version='2.0'><channel><item>{}</item></channel></rss>"
URLSET = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url>{}</url></urlset>"
AROUND = {"atom": ATOM, "rss": RSS, "urlset": URLSET}
LOC = f"<loc>{SITE}/1</loc>"


def problems(document: SitemapDocument) -> dict[str, int]:
    return {problem.kind: problem.count for problem in document.problems}


def urlset(*locations: str) -> bytes:
    return f"<urlset>{''.join(f'<url><loc>{location}</loc></url>' for location in locations)}</urlset>".encode()


# What is read, case by case: documents on which readers of sitemaps and feeds were seen to fail, too


def told(document: SitemapDocument) -> list[str]:
    """Give the entries, or what an index lists, as they stand in `entries.txt`."""
    listed = document.children if document.kind == "index" else document.entries
    dates = ["" if date is None else f" {datetime.fromtimestamp(date, UTC):{TIME}}" for date in listed.lastmod]
    return [url.removeprefix(SITE) + date for url, date in zip(listed.url, dates, strict=True)]


def case(text: str) -> Any:
    """Read a case of `entries.txt`: what it is about, a body, its entries, what is reported."""
    about, *lines = text.splitlines()
    entries = [line[3:] for line in lines if line.startswith("=> ")]
    reported = [line[3:] for line in lines if line.startswith("!! ")]
    body = "\n".join(line for line in lines if line[:3] not in ("=> ", "!! "))
    kind, _, inside = body.partition(": ")
    body = AROUND[kind].format(inside) if kind in AROUND else body
    return pytest.param(body, entries, " ".join(reported), id=about)


CASES = (HERE / "entries.txt").read_text("utf-8").split("---- ")[1:]


@pytest.mark.parametrize(("body", "entries", "reported"), [case(text) for text in CASES])
def test_an_entry_is_what_other_readers_take_it_for(body: str, entries: list[str], reported: str) -> None:
    """What is not taken is reported."""
    document = read_sitemap(body.encode(), f"{SITE}/map")
    assert told(document) == entries
    assert " ".join(sorted(set(problems(document)))) == reported
    assert (document.kind == "unknown") == ("not-a-sitemap" in reported)


def test_what_is_quoted_in_a_document_type_does_not_end_it() -> None:
    """However often."""
    entities = "".join(f'<!ENTITY e{n} "]>x">' for n in range(9_000))
    assert told(read_sitemap(f"<!DOCTYPE u [{entities}]>{URLSET.format(LOC)}".encode(), SITE)) == ["/1"]


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
        assert told(document) == ["/1"]
        assert set(problems(document)) - {"not-a-url"} == {"around-url"}


@pytest.mark.parametrize("place", [-1, -5, -8])
def test_a_gzip_with_a_wrong_checksum_or_length_is_read_to_its_end(place: int) -> None:
    """Only what stands behind the data is wrong."""
    urls = [f"{SITE}/{n}" for n in range(3_000)]
    packed = bytearray(gzip.compress("\n".join(urls).encode()))
    packed[place] ^= 1
    document = read_sitemap(bytes(packed), f"{SITE}/map.txt.gz")
    assert (document.entries.url, set(problems(document))) == (urls, {"bad-gzip"})


def test_a_sitemap_gives_its_dates_as_they_are_written_and_as_they_are_meant() -> None:
    """And whether a time of day was named; images and what else stands there is nothing wrong."""
    document = read_sitemap((SITEMAPS / "wordpress.xml").read_bytes(), "https://shop.example/post-sitemap.xml")
    assert (document.kind, document.problems) == ("urlset", [])
    assert document.entries.lastmod_text == ["2026-11-20T14:03:11+00:00", "2026-10-02T08:55:40+02:00", "2026-09-30"]
    assert document.entries.lastmod == [parse_lastmod(text)[0] for text in document.entries.lastmod_text]
    assert document.entries.precision == ["second", "second", "day"]


# What is wrong with it


def test_every_problem_has_an_explanation() -> None:
    """A message can be made of any problem, with how often it was met and where first."""
    dated = "<loc>http://a.example/{}</loc><lastmod>yesterday</lastmod>"
    body = "".join(f"<url>{dated.format(n)}</url>" for n in range(3))
    (problem,) = read_sitemap(f"<urlset>{body}</urlset>".encode(), "http://a.example/sitemap.xml").problems
    assert str(problem) == (
        "bad-lastmod (3 times, first at 'yesterday'): a lastmod that cannot be read without guessing; "
        "it counts only where its text changes"
    )


@pytest.mark.parametrize("body", [b"", b" \r\n\t", b"\x89PNG\r\n\x1a\n\x00\x00"])
def test_what_is_nothing_or_a_picture_is_no_sitemap(body: bytes) -> None:
    """The kind is "unknown", with the reason."""
    document = read_sitemap(body, "http://a.example/sitemap.xml")
    assert (document.kind, len(document.entries)) == ("unknown", 0)
    assert set(problems(document)) == ({"encoding", "not-a-sitemap"} if body.strip() else {"empty"})


def test_a_truncated_sitemap_gives_its_complete_entries_wherever_it_is_cut() -> None:
    """No URL is ever cut short, and the cut is always reported."""
    body = (SITEMAPS / "wordpress.xml").read_bytes()
    url = "https://shop.example/sitemap.xml"
    whole = read_sitemap(body, url).entries
    end = body.index(b"</urlset>") + len(b"</urlset>")
    for cut in range(body.index(b"<urlset"), end):
        document = read_sitemap(body[:cut], url)
        assert document.entries.url == whole.url[: len(document.entries)]
        assert document.entries.lastmod == whole.lastmod[: len(document.entries)]
        assert document.problems


@pytest.mark.parametrize("host", ["bücher.example", "BÜCHER.example", "xn--bcher-kva.example"])
def test_an_international_host_has_one_name_however_it_is_written(host: str) -> None:
    """The sitemap is asked for under the ASCII form, and its pages are of the same host."""
    body = urlset(f"https://{host}/tee", f"https://{host}:8443/ä")
    for named in ("https://xn--bcher-kva.example/sitemap.xml", "https://Bücher.example/sitemap.xml"):
        document = read_sitemap(body, named)
        hosts = [urlsplit(url).netloc for url in document.entries.url]
        assert hosts == ["xn--bcher-kva.example", "xn--bcher-kva.example:8443"]


def test_the_first_example_of_a_problem_is_kept_and_bounded() -> None:
    """A report stays small, whatever is wrong."""
    document = read_sitemap(urlset(*[f"ftp://a.example/{number}" for number in range(500)]), "http://a.example/s.xml")
    (problem,) = document.problems
    assert (problem.count, problem.example) == (500, "ftp://a.example/0")
    (problem,) = read_sitemap(urlset("x:" + "y" * 8000), "http://a.example/s.xml").problems
    assert len(problem.example) == 200


# Encodings


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "iso-8859-1"]
)
def test_the_encoding_does_not_matter_where_it_is_said(encoding: str) -> None:
    """A byte order mark or an XML declaration says it."""
    declared = encoding.removesuffix("-sig").removesuffix("-le").removesuffix("-be")
    text = f"<?xml version='1.0' encoding='{declared}'?><urlset><url><loc>http://a.example/caf\xe9</loc></url></urlset>"
    document = read_sitemap(text.encode(encoding), "http://a.example/sitemap.xml")
    assert (document.entries.url, document.problems) == (["http://a.example/caf\xe9"], [])


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-be"])
def test_an_encoding_of_several_bytes_needs_neither_a_mark_nor_a_declaration(encoding: str) -> None:
    """The first element shows it."""
    body = urlset("http://a.example/caf\xe9").decode().encode(encoding)
    assert read_sitemap(body, "http://a.example/sitemap.xml").entries.url == ["http://a.example/caf\xe9"]


# Compression


def test_gzip_is_recognised_by_its_first_bytes() -> None:
    """Once, twice (a .gz file that the server compressed again), and in several members."""
    body = urlset("http://a.example/1", "http://a.example/2")
    half = len(body) // 2
    for packed in (
        gzip.compress(body),
        gzip.compress(gzip.compress(body)),
        gzip.compress(body[:half]) + gzip.compress(body[half:]) + b"\x00" * 100,
    ):
        document = read_sitemap(packed, "http://a.example/sitemap.xml.gz")
        assert (len(document.entries), document.problems) == (2, [])


def test_damaged_gzip_gives_what_came_before_the_damage() -> None:
    """Cut off, or with wrong bytes in it."""
    packed = gzip.compress(urlset(*[f"http://a.example/{zlib.crc32(b'%d' % n)}" for n in range(20_000)]))
    cut = read_sitemap(packed[: len(packed) // 2], "http://a.example/sitemap.xml.gz")
    assert 5_000 < len(cut.entries) < 15_000
    assert set(problems(cut)) == {"truncated"}
    middle = len(packed) // 2
    spoilt = packed[:middle] + bytes(64) + packed[middle + 64 :]
    assert "bad-gzip" in problems(read_sitemap(spoilt, "http://a.example/sitemap.xml.gz"))
    assert "bad-gzip" in problems(read_sitemap(b"\x1f\x8bnothing", "http://a.example/sitemap.xml.gz"))


def test_a_bomb_unfolds_no_further_than_the_limit() -> None:
    """1 GB in 1 MB, and a bomb within a bomb, are refused by name."""
    compressor = zlib.compressobj(9, wbits=31)
    bomb = b"".join(compressor.compress(bytes(1_000_000)) for _ in range(300)) + compressor.flush()
    for body in (bomb, gzip.compress(bomb)):
        document = read_sitemap(body, "http://a.example/sitemap.xml.gz", Limits(max_bytes=2_000_000))
        assert problems(document)["too-large"] == 1


# Limits


TEN = urlset(*[f"http://a.example/{number}" for number in range(10)])
LINES = b"\n".join(b"http://a.example/%d" % number for number in range(10))
INDEX = TEN.replace(b"urlset>", b"sitemapindex>").replace(b"url>", b"sitemap>")


@pytest.mark.parametrize(
    ("body", "limit", "n", "kinds"),
    [
        (TEN, {"max_entries": 4}, 4, {"too-many-entries"}),
        (TEN, {"max_bytes": 100}, 2, {"too-large", "truncated"}),
        (LINES, {"max_entries": 4}, 4, {"too-many-entries"}),
        (INDEX, {"max_children": 4}, 4, {"too-many-children"}),
        (TEN.replace(b"</url>", b"</url>" + b"<a/>" * 200), {"max_elements": 1_000}, 5, {"too-many-elements"}),
        (b"<urlset>" + b"<a>" * 100_000, {}, 0, {"too-deep"}),
        (b"<urlset><url>" + b"<a>" * 100_000, {}, 0, {"too-deep"}),
    ],
)
def test_what_lies_beyond_a_limit_is_refused_by_name(
    body: bytes, limit: dict[str, int], n: int, kinds: set[str]
) -> None:
    """The part before it is read."""
    document = read_sitemap(body, "http://a.example/sitemap.xml", Limits(**limit))
    assert (len(document.entries) + len(document.children), set(problems(document))) == (n, kinds)


def test_loops_and_deep_indexes_are_refused() -> None:
    """The caller says through which index files it came."""
    body = b"<sitemapindex><sitemap><loc>http://a.example/top.xml</loc></sitemap></sitemapindex>"
    document = read_sitemap(body, "http://a.example/sub.xml", ancestors=["http://a.example/top.xml"])
    assert (len(document.children), problems(document)) == (0, {"loop": 1})
    other_spelling = read_sitemap(body, "http://a.example/sub.xml", ancestors=["http://A.example/%74op.xml#1"])
    assert (len(other_spelling.children), problems(other_spelling)) == (0, {"loop": 1})
    ancestors = [f"http://a.example/{number}.xml" for number in range(5)]
    document = read_sitemap(body, "http://a.example/sub.xml", ancestors=ancestors)
    assert (len(document.children), problems(document)) == (0, {"index-depth": 1})


@pytest.mark.parametrize("name", ["max_bytes", "max_entries", "max_children", "max_depth", "max_text"])
def test_wrong_limits_are_named(name: str) -> None:
    """One sentence says which, its value, and what is allowed."""
    with pytest.raises(ValueError, match=f"{name} is 0; a limit is a whole number of at least 1."):
        Limits(**{name: 0})


# Whatever the bytes

SAMPLES = [path.read_bytes() for path in sorted(SITEMAPS.iterdir())]
SAMPLES += (HERE / "entries.txt").read_bytes().split(b"---- ")
SNIPPETS = [b"<", b">", b"&", b"<url>", b"</url>", b"<loc>", b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<?", b"<!DOCTYPE",
            b"[", b"]", b"\x00", b"\xff", b"&#x110000;", b"&#55296;", b"\xef\xbb\xbf", b"\x1f\x8b", b"/>",
            b"'", b'"']  # fmt: skip


def assert_sound(document: SitemapDocument) -> None:
    """What holds for every document that comes out, whatever went in."""
    entries = document.entries
    columns = entries.url, entries.lastmod, entries.lastmod_text, entries.precision
    assert len({len(column) for column in columns}) == 1
    assert len(set(entries.url)) == len(entries.url)
    assert all(url.lower().startswith(("http://", "https://")) for url in entries.url + document.children.url)
    assert all(problem.kind in PROBLEM_KINDS and problem.count > 0 for problem in document.problems)


@tries(300)
@given(st.sampled_from(SAMPLES), st.data())
def test_no_damage_makes_it_raise(sample: bytes, data: st.DataObject) -> None:
    """Real sitemaps with parts cut out, doubled, or replaced."""
    body = sample
    for _ in range(data.draw(st.integers(1, 6))):
        start = data.draw(st.integers(0, len(body)))
        end = data.draw(st.integers(start, min(start + 60, len(body))))
        middle = data.draw(st.one_of(st.sampled_from(SNIPPETS), st.binary(max_size=8), st.just(body[start:end] * 2)))
        body = body[:start] + middle + body[end:]
    assert_sound(read_sitemap(body, "http://a.example/sitemap.xml", hosts={"shop.example", "site.example"}))
    assert_sound(read_sitemap(gzip.compress(body)[:-9], "http://a.example/sitemap.xml", Limits(max_text=50)))


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Cs", "Z")), max_size=30), max_size=8)
)
def test_every_url_that_is_written_comes_back(paths: list[str]) -> None:
    """What an XML writer escapes, the reader gives back; the order is kept, and doubles are taken once.

    Invisible signs (Cf) stand around a URL, not in it.
    """
    locations = [f"http://a.example/{path}" for path in paths if "\ufffd" not in path and "\\" not in path]
    escaped = [text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for text in locations]
    document = read_sitemap(urlset(*escaped), "http://a.example/sitemap.xml")
    assert document.entries.url == list(dict.fromkeys(locations))


@pytest.mark.parametrize("declared", ["windows-1252", "iso-8859-1", "us-ascii"])
@pytest.mark.parametrize("n", [1, 4000])
def test_latin_1_is_read_as_browsers_read_it(declared: str, n: int) -> None:
    """A dash of Windows-1252 in a URL stays a dash, in sitemaps and in feeds of any size, whatever it is called."""
    urls = [f"http://a.example/caf\u00e9\u2013{number}" for number in range(n)]
    start = f'<?xml version="1.0" encoding="{declared}"?>'
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    items = "".join(f"<item><link>{url}</link></item>" for url in urls)
    for body in (f"{start}<urlset>{entries}</urlset>", f"{start}<rss version='2.0'><channel>{items}</channel></rss>"):
        assert read_sitemap(body.encode("cp1252"), "http://a.example/").entries.url == urls


# However large

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
        assert told(document) == ["/1 2026-11-20T00:00:00"]
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000


@pytest.mark.parametrize("name", HOSTILE)
def test_no_document_takes_long_or_holds_up_another_thread(name: str) -> None:
    """A megabyte or two of the worst: seconds of CPU (what is quadratic takes minutes), and others have their turns."""
    lateness = [0.0]
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            start = time.process_time()  # what other processes do meanwhile is no hold-up by this one
            time.sleep(0.001)
            lateness.append(time.process_time() - start)

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.process_time()
    try:
        read_sitemap(HOSTILE[name], f"{SITE}/map.xml")
    finally:
        done.set()
        thread.join()
    assert time.process_time() - start < 8.0
    assert max(lateness) < 0.5


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
    document = read_sitemap(body.encode(), "https://a.example/feed")
    assert document.entries.url == [f"https://a.example/{number}?a=1&b=2" for number in range(n)]
