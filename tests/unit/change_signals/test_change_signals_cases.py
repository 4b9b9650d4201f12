"""Documents on which readers of sitemaps and feeds were seen to fail, and what is right; kind by kind."""

import gzip
import resource
import threading
import time
from datetime import UTC, datetime

import pytest

from crawlsched.change_signals import Limits, SitemapDocument, read_sitemap

SITE = "https://site.example"
DAY = "2026-11-20T00:00:00"
ATOM = "<feed xmlns='http://www.w3.org/2005/Atom'><entry>{}</entry></feed>"
RSS = "<rss version='2.0'><channel><item>{}</item></channel></rss>"
URLSET = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'><url>{}</url></urlset>"
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


@pytest.mark.parametrize(
    ("body", "entries"),
    [
        # A ">" within an attribute
        (ATOM.format(f"<link rel='alternate' title='A > B' href='{SITE}/1'/>{UPDATED}"), [("/1", DAY)]),
        (ATOM.format(f"<category term='a->b'/><link href='{SITE}/1'/>{UPDATED}"), [("/1", DAY)]),
        (URLSET.format(f"{LOC}<xhtml:link href='{SITE}/de?a=1>0'/><lastmod>2026-11-20</lastmod>"), [("/1", DAY)]),
        (RSS.format(f"<media:title x='>'>a</media:title>{LINK}"), [("/1", None)]),
        # What is empty or cannot be read hides nothing that can
        (RSS.format(f"<link> </link>{LINK}"), [("/1", None)]),
        (ATOM.format(f"{PAGE}<updated/><published>2026-11-20T00:00:00Z</published>"), [("/1", DAY)]),
        (ATOM.format(f"{PAGE}<updated>soon</updated><published>2026-11-20T00:00:00Z</published>"), [("/1", DAY)]),
        (ATOM.format(f"<link rel='alternate' type='text/html'/>{PAGE}{UPDATED}"), [("/1", DAY)]),
        (URLSET.format(f"<loc/>{LOC}<lastmod></lastmod><lastmod>2026-11-20</lastmod>"), [("/1", DAY)]),
        (URLSET.format(f"<loc>mailto:a</loc>{LOC}<lastmod>?</lastmod><lastmod>2026-11-20</lastmod>"), [("/1", DAY)]),
        # Which link is the page
        (ATOM.format(f"<link rel='alternate' type='application/json' href='{SITE}/1.json'/>{PAGE}"), [("/1", None)]),
        *((ATOM.format(f"<link rel='{relation}' href='{SITE}/other'/>{PAGE}{UPDATED}"), [("/1", DAY)])
          for relation in ("license", "author", "edit", "http://www.iana.org/assignments/relation/self",
                           "http://gdata.youtube.com/schemas/2007#video.in-response-to")),
        (ATOM.format(f"<link rel='http://www.iana.org/assignments/relation/alternate' href='{SITE}/1'/>"),
         [("/1", None)]),
        (ATOM.format(f"<link rel='license' href='{SITE}/other'/>{UPDATED}"), []),
        (RSS.format(f"<guid isPermaLink='false'>{SITE}/1</guid>"), []),
        (RSS.format(f"<guid isPermaLink='true'>{SITE}/1</guid>"), [("/1", None)]),
        (RSS.format(f"<guid>{SITE}/1</guid>"), [("/1", None)]),
        (RSS.format("<guid>12345</guid>"), []),
        (ATOM.format(f"<id>12345</id>{UPDATED}"), []),
        (ATOM.format(f"<id>tag:site.example,2026:1</id>{UPDATED}"), []),
        # xml:base
        (f"<rss version='2.0' xml:base='{SITE}/blog/'><channel><item><link>post/1</link></item></channel></rss>",
         [("/blog/post/1", None)]),
        # Dates
        (RSS.format(f"{LINK}<pubDate>Fri, 20 Nov 2026 10:00 PM</pubDate>"), [("/1", "2026-11-20T22:00:00")]),
        (RSS.format(f"{LINK}<pubDate>2026-11-20 10:15:30 UTC</pubDate>"), [("/1", "2026-11-20T10:15:30")]),
        (RSS.format(f"{LINK}<pubDate>Mon, May 25 2020 04:45:26 +0000</pubDate>"), [("/1", "2020-05-25T04:45:26")]),
        (RSS.format(f"{LINK}<pubDate>Mon, 31 Nov 2026 04:45:26 +0000</pubDate>"), [("/1", None)]),
        (URLSET.format(f"{LOC}<video:video xmlns:video='http://www.google.com/schemas/sitemap-video/1.1'>"
                       "<video:publication_date>2007-11-05</video:publication_date></video:video>"), [("/1", None)]),
        (URLSET.format(f"{LOC}<lastmod/><news:news xmlns:news='http://www.google.com/schemas/sitemap-news/0.9'>"
                       "<news:publication_date>2026-11-20</news:publication_date></news:news>"), [("/1", DAY)]),
        # Namespaces, not prefixes
        ("<rss version='2.0' xmlns:a='http://www.w3.org/2005/Atom'><channel><item>"
         f"{LINK}<a:updated>2026-11-20T00:00:00Z</a:updated><pubDate>Fri, 20 Nov 2020 00:00:00 GMT</pubDate>"
         "</item></channel></rss>", [("/1", DAY)]),
        (URLSET.format(f"<s:loc xmlns:s='http://www.sitemaps.org/schemas/sitemap/0.9'>{SITE}/1</s:loc>"),
         [("/1", None)]),
        (URLSET.format(f"{LOC}<image:loc>{SITE}/1.png</image:loc>"), [("/1", None)]),
        # Older kinds
        (f"<feed version='0.3' xmlns='http://purl.org/atom/ns#'><entry>{PAGE}<issued>2003-12-13T08:29:29-04:00</issued>"
         "<modified>2003-12-13T18:30:02Z</modified></entry></feed>", [("/1", "2003-12-13T18:30:02")]),
        ("<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>"
         f"<item rdf:about='{SITE}/1'><title>x</title></item></rdf:RDF>", [("/1", None)]),
        (f"<Channel><Item HREF='{SITE}/1' LASTMOD='2026-11-20T00:00'/></Channel>", [("/1", DAY)]),
        (f"<URLSET><URL><LOC>{SITE}/1</LOC></URL></URLSET>", [("/1", None)]),
        (URLSET.format(f"\n{SITE}/1?a=1&amp;b=2\n"), [("/1?a=1&b=2", None)]),
        # Damage
        (f"<urlset><url>{LOC}<url><loc>{SITE}/2</loc></urlset>", [("/1", None), ("/2", None)]),
        (f"<urlset></p><url></br>{LOC}</url></urlset>", [("/1", None)]),
        (f"<urlset><url><x a=1>y</x>{LOC}</url><url><loc>{SITE}/2</loc></url></urlset>",
         [("/1", None), ("/2", None)]),
        (f"<urlset><url\"><lastmod'>x</lastmod>{LOC}</url><url><l'oc>x</l><loc>{SITE}/2</loc></url></urlset>",
         [("/1", None), ("/2", None)]),
        (f"<feed><entry><link rel=alternate href={SITE}/1 /><link a=b href='{SITE}/2'/></entry></feed>",
         [("/1", None)]),
        (f"<urlset><url>{LOC}</url></urlset><urlset><url><loc>{SITE}/2</loc></url></urlset>",
         [("/1", None), ("/2", None)]),
        (f"<urlset><url>{LOC}</url> 1 < 2 <3> & <url><loc>{SITE}/2</loc></url></urlset>", [("/1", None), ("/2", None)]),
        (f"Warning: no memory in map.php\n<?xml version='1.0'?>{URLSET.format(LOC)}", [("/1", None)]),
        (f"<br /><b>Warning</b>: x<?xml version='1.0'?>{URLSET.format(LOC)}", [("/1", None)]),
        ("<!DOCTYPE u [" + "".join(f'<!ENTITY e{n} "]>x">' for n in range(9_000)) + f"]>{URLSET.format(LOC)}",
         [("/1", None)]),
        (f"<!DOCTYPE u [<!-- ' ]> --><!ENTITY a '>'>] >{URLSET.format(LOC)}", [("/1", None)]),
        # Lists of URLs
        (f"{SITE}/1\n\nSome other stuff which is no URL\n# a comment\nwww.site.example/3\nsite.example/2\n{SITE}/2\n",
         [("/1", None), ("/2", None)]),
        (f"Tralala\n{SITE}/1\n{SITE}/2", [("/1", None), ("/2", None)]),
        (URLSET.format("<loc>www.site.example/2</loc>"), []),
        (URLSET.format("<loc>See all our pages</loc>"), []),
        # JSON Feed
        (f'{{"version": "https://jsonfeed.org/version/1", "items": [{{"id": "1", "url": "{SITE}/1", '
         f'"date_modified": "", "date_published": "2026-11-20"}}, {{"id": "{SITE}/2"}}, {{"id": "3"}}, 4]}}',
         [("/1", DAY), ("/2", None)]),
    ],
)  # fmt: skip
def test_an_entry_is_what_other_readers_take_it_for(body: str, entries: list[tuple[str, str | None]]) -> None:
    """What is not taken is reported."""
    document = read_sitemap(body.encode(), f"{SITE}/map")
    assert told(document) == entries
    assert entries or document.problems


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
    "body",
    [
        f"{SITE}/1 {SITE}/2", f"{SITE}/1,{SITE}/2", f"{SITE}/1\t{SITE}/2", f'"{SITE}/1";"{SITE}/2"',
        f"{SITE}/1 -> {SITE}/2", f"url,title\n{SITE}/1,a page\n{SITE}/2,another, with commas\n",
        f"<{SITE}/1>\n<{SITE}/2>", f"{SITE}/1,\n{SITE}/2,\n",
    ],
)  # fmt: skip
def test_a_list_has_each_url_whatever_is_between_them(body: str) -> None:
    """Several on a line, the first column of a table, brackets, commas."""
    document = read_sitemap(body.encode(), f"{SITE}/map.txt")
    assert told(document) == [("/1", None), ("/2", None)]
    assert "around-url" in kinds(document)


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
        "a\u200cb",
        "x|y",
    ],
)
def test_what_can_be_of_a_url_stays(path: str) -> None:
    """Commas, quotes, brackets, other URLs, and joiners within words."""
    document = read_sitemap(URLSET.format(f"<loc>{SITE}/{path}</loc>").encode(), f"{SITE}/map.xml")
    assert (told(document), document.problems) == ([(f"/{path}", None)], [])


@pytest.mark.parametrize(
    "location",
    ["(https://site.example/1)", "http//site.example/1", "see https://site.example/1", "[https://site.example/1]"],
)
def test_no_page_is_made_of_a_url_and_what_stands_around_it(location: str) -> None:
    """What is not certain is refused, and told."""
    document = read_sitemap(URLSET.format(f"<loc>{location}</loc>").encode(), f"{SITE}/map.xml")
    assert (told(document), kinds(document)) == ([], {"bad-url"})


@pytest.mark.parametrize(
    "body",
    [
        URLSET.format(f"<loc>{SITE}/1<lastmod>2026-11-20</lastmod></loc>"),
        URLSET.format(f"<loc>{SITE}/1<lastmod>2026-11-20</lastmod>"),
        URLSET.format(f"<loc>{SITE}/1<loc><lastmod>2026-11-20</lastmod>"),
        URLSET.format(f"<loc>{SITE}/1<priority>0.5</priority><lastmod>2026-11-20</lastmod>"),
        URLSET.format(f"<lastmod>2026-11-20<loc>{SITE}/1</loc>"),
    ],
)
def test_an_element_that_is_not_closed_ends_where_the_next_one_begins(body: str) -> None:
    """Its text is no part of a URL, and that it is not closed is told."""
    document = read_sitemap(body.encode(), f"{SITE}/map.xml")
    assert (told(document), kinds(document)) == ([("/1", DAY)], {"unclosed"})


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


def test_a_document_of_too_many_elements_is_read_up_to_them() -> None:
    """Bytes alone bound no time."""
    body = b"<urlset><url><loc>/1</loc></url>" + b"<a/>" * 10_000
    document = read_sitemap(body, f"{SITE}/map.xml", Limits(max_elements=1_000))
    assert (told(document), kinds(document)) == ([("/1", None)], {"relative-url", "too-many-elements"})
