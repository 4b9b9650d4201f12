"""Sitemaps and feeds: what is read from them, and what is reported."""

import gzip
import zlib
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_signals import PROBLEM_KINDS, Limits, SitemapDocument, parse_lastmod, read_sitemap
from tests.inputs import tries

SITEMAPS = Path(__file__).parent / "sitemaps"
NOVEMBER_20_09_15_30 = 1795166130.0


def read(name: str, url: str, **options: object) -> SitemapDocument:
    return read_sitemap((SITEMAPS / name).read_bytes(), url, **options)


def problems(document: SitemapDocument) -> dict[str, int]:
    return {problem.kind: problem.count for problem in document.problems}


def urlset(*locations: str) -> bytes:
    return f"<urlset>{''.join(f'<url><loc>{location}</loc></url>' for location in locations)}</urlset>".encode()


# What is read


def test_a_sitemap_with_images_gives_its_pages_and_not_its_images() -> None:
    """image:loc is no page, and nothing is wrong with such a sitemap."""
    document = read("wordpress.xml", "https://shop.example/post-sitemap.xml")
    assert document.kind == "urlset"
    assert document.problems == []
    assert document.entries.url == [
        "https://shop.example/",
        "https://shop.example/tea/earl-grey/",
        "https://shop.example/tea/?sort=price&page=2",
    ]
    assert document.entries.lastmod_text == ["2026-11-20T14:03:11+00:00", "2026-10-02T08:55:40+02:00", "2026-09-30"]
    assert document.entries.lastmod == [parse_lastmod(text)[0] for text in document.entries.lastmod_text]
    assert document.entries.precision == ["second", "second", "day"]


def test_an_index_gives_its_children_with_their_dates_and_refuses_itself_and_other_hosts() -> None:
    """A child that is the index itself would be read for ever."""
    document = read("index.xml", "https://shop.example/sitemap_index.xml")
    assert document.kind == "index"
    assert document.children.url == [
        "https://shop.example/post-sitemap.xml",
        "https://shop.example/page-sitemap.xml.gz",
    ]
    assert document.children.precision == ["second", "day"]
    assert len(document.entries) == 0
    assert problems(document) == {"loop": 1, "other-host": 1}


def test_rss_items_are_entries_and_what_their_texts_quote_is_not() -> None:
    """Links within a CDATA description are text."""
    document = read("feed.rss", "https://paper.example/feed")
    assert document.kind == "rss"
    assert document.entries.url == ["https://paper.example/world/3", "https://paper.example/world/4"]
    assert document.entries.lastmod == [NOVEMBER_20_09_15_30, NOVEMBER_20_09_15_30]
    assert document.problems == []


def test_atom_entries_link_to_their_page_and_were_updated_rather_than_published() -> None:
    """rel="replies" is not the page, and an id that is a URL stands in for a missing link."""
    document = read("feed.atom", "https://paper.example/feed.atom")
    assert document.kind == "atom"
    assert document.entries.url == ["https://paper.example/world/5?a=1&b=2", "https://paper.example/world/6"]
    assert document.entries.lastmod[0] == NOVEMBER_20_09_15_30
    assert document.problems == []


# What is wrong with it


def test_a_damaged_sitemap_gives_what_is_certain_and_reports_the_rest() -> None:
    """Nothing is dropped, changed or repaired without being counted."""
    document = read("damaged.xml", "http://a.example/sitemap.xml")
    assert document.entries.url == [
        "http://a.example/list?b=1&c=2&copy=3",
        "http://a.example/relative?x=1",
        "http://a.example/one",
        "http://a.example/with%20space",
        "http://a.example/café",
    ]
    assert document.entries.lastmod_text[2] == "2026-11-02"
    assert problems(document) == {
        "raw-ampersand": 1,
        "bad-lastmod": 1,
        "relative-url": 1,
        "duplicate-url": 1,
        "other-host": 1,
        "bad-url": 1,
        "no-url": 1,
        "unclosed": 1,
        "space-in-url": 1,
        "html-entity": 1,
        "truncated": 1,
    }


def test_entities_are_inert() -> None:
    """Neither bombs nor external entities are replaced; an entry that refers to one is dropped, not changed."""
    document = read("entities.xml", "http://a.example/sitemap.xml")
    assert document.entries.url == ["http://a.example/?a=1&b=2"]
    assert problems(document) == {"doctype": 1, "entity": 2}


def test_every_problem_has_an_explanation() -> None:
    """A message can be made of any problem."""
    document = read("damaged.xml", "http://a.example/sitemap.xml")
    example = next(problem for problem in document.problems if problem.kind == "bad-lastmod")
    assert str(example) == (
        "bad-lastmod (once, at 'yesterday'): a lastmod that cannot be read without guessing; "
        "it counts only where its text changes"
    )


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (b"", {"empty"}),
        (b" \r\n\t", {"empty"}),
        (b"<!DOCTYPE html><html><body>Not found</body></html>", {"doctype", "html", "not-a-sitemap"}),
        (b"<HTML><h1>Hello", {"html", "not-a-sitemap"}),
        (b"<catalogue><book/></catalogue>", {"not-a-sitemap"}),
        (b"Not found", {"not-a-sitemap"}),
        (b"{'a': 1}", {"not-a-sitemap"}),
        (b"\x89PNG\r\n\x1a\n\x00\x00", {"encoding", "not-a-sitemap"}),
        (b"<!-- only a comment", {"unclosed", "not-a-sitemap"}),
    ],
)
def test_what_is_no_sitemap_is_called_so(body: bytes, kinds: set[str]) -> None:
    """The kind is "unknown", with the reason."""
    document = read_sitemap(body, "http://a.example/sitemap.xml")
    assert document.kind == "unknown"
    assert len(document.entries) == 0
    assert set(problems(document)) == kinds


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


@pytest.mark.parametrize("location", ["http://[::1", "http://", "http:///x", "ftp://a.example/", "javascript:alert(1)",
                                      "http://a.example/\x01", "//", "http://a.example\\@b.example/",
                                      "http://b.example\\@a.example/", "http://a.example:99999/",
                                      "http://a.example:x/", "http://a.example:-1/", "http://[::1]@a.example/",
                                      "http://a[.example/", "//a.example:99999/",
                                      "http://a.example:\uff18\uff10/"])  # fmt: skip
def test_what_is_no_web_address_is_refused(location: str) -> None:
    """Whatever stands in a loc, nothing but http and https URLs of known hosts comes out."""
    document = read_sitemap(urlset(location), "http://a.example/sitemap.xml")
    assert document.entries.url == []
    assert set(problems(document)) & {"bad-url", "other-host"}


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
    assert_sound(read_sitemap(body, "http://a.example/sitemap.xml", hosts={"shop.example", "paper.example"}))
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


def test_a_sitemap_that_an_index_lists_under_two_spellings_is_listed_once() -> None:
    """With the later of its dates, as where it is listed twice."""
    entries = [("/s.xml?a=1&amp;b=2", "2026-11-01"), ("/s.xml?b=2&amp;a=%31", "2026-11-20"), ("/S.xml", "2026-11-02")]
    listed = "".join(
        f"<sitemap><loc>http://a.example{loc}</loc><lastmod>{date}</lastmod></sitemap>" for loc, date in entries
    )
    document = read_sitemap(f"<sitemapindex>{listed}</sitemapindex>".encode(), "http://a.example/index.xml")
    assert document.children.url == ["http://a.example/s.xml?a=1&b=2", "http://a.example/S.xml"]
    assert document.children.lastmod_text[0] == "2026-11-20"
    assert problems(document) == {"duplicate-url": 1}


@pytest.mark.parametrize("declared", ["windows-1252", "iso-8859-1", "us-ascii"])
@pytest.mark.parametrize("n", [1, 4000])
def test_latin_1_is_read_as_browsers_read_it(declared: str, n: int) -> None:
    """A dash of Windows-1252 in a URL stays a dash, in sitemaps and in feeds of any size, whatever it is called."""
    urls = [f"http://a.example/caf\u00e9\u2013{number}" for number in range(n)]
    start = f'<?xml version="1.0" encoding="{declared}"?>'
    entries = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    items = "".join(f"<item><link>{url}</link></item>" for url in urls)
    for body in (
        f"{start}<urlset>{entries}</urlset>",
        f"{start}<rss version='2.0'><channel>{items}</channel></rss>",
    ):
        assert read_sitemap(body.encode("cp1252"), "http://a.example/").entries.url == urls
