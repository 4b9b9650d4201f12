"""Change detection: what counts as a change under each recipe, and that no body breaks it."""

import json
import logging
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from lxml.cssselect import CSSSelector

from crawlsched.change_detection import Recipe, recipe
from crawlsched.change_detection.fingerprint import Fingerprint
from crawlsched.change_detection.html_scan import normalised
from crawlsched.change_detection.selectors import LinearTranslator, PageParts

PAGE = """<!DOCTYPE html>
<html><head><title>Teas &amp; more</title><style>p { color: red }</style></head>
<body class="x"><nav><a href="/a">Home</a></nav>
<main><h1>Earl Grey</h1><p class="price">5.20 &euro;</p><p>Black&nbsp;tea with <b>berga</b>mot.</p></main>
<script>var nonce = "{nonce}";</script><!-- generated in {nonce} ms -->
<footer>12 visitors</footer></body></html>
"""
VISIBLE, RAW, JSON, BLOCKS = Recipe("visible_text"), Recipe("raw_bytes"), Recipe("json"), Recipe()
RECIPES = [
    RAW,
    VISIBLE,
    Recipe("visible_text", keep=["html", "a::attr(href)"]),
    Recipe("visible_text", keep=["main", "a::attr(href)", "//title/text()"], drop=[".price"]),
    Recipe("json", ignore_keys=["now"]),
    BLOCKS,
]
HTML = "text/html; charset=utf-8"


def same(recipe: Recipe, one: str | bytes, two: str | bytes, content_type: str | None = HTML) -> bool:
    bodies = [body.encode() if isinstance(body, str) else body for body in (one, two)]
    first, second = (recipe.fingerprint(body, content_type, None, "http://a/") for body in bodies)
    return first == second


# Text


def test_the_spelling_of_a_page_does_not_count() -> None:
    """Scripts, comments, attributes, white space, entities, and the case of tags."""
    spelled = (
        PAGE.replace("&euro;", "&#8364;").replace("<p>", "<P\n data-x='1 > 0'>\n ").replace('class="x"', "class=y")
    )
    assert same(VISIBLE, PAGE.replace("{nonce}", "1"), spelled.replace("{nonce}", "2"))


def test_the_charset_does_not_count() -> None:
    """The same text in UTF-8, UTF-16, Latin-1 by header, by meta, and by byte order mark."""
    text = "<p>Caf\xe9 \xfcber alles, d\xe9j\xe0 vu</p>"
    fingerprints = {
        VISIBLE.fingerprint(body, content_type, encoding, "http://a/")
        for body, content_type, encoding in [
            (text.encode(), "text/html", "utf-8"),
            (text.encode(), "text/html", None),
            (text.encode("utf-8-sig"), "text/html; charset=latin-1", None),
            (text.encode("latin-1"), "text/html; charset=iso-8859-1", None),
            (text.encode("latin-1"), "text/html", "latin-1"),
            (b"<meta charset=windows-1252>" + text.encode("cp1252"), "text/html", None),
            (text.encode("latin-1"), "text/html", None),
            (text.encode("utf-16"), "text/html", None),
            (text.encode("utf-16-le"), "text/html", "utf-16-le"),
            (text.encode(), "text/html", "klingon"),
            (text.encode(), "text/html; charset=rot13", None),
        ]
    }
    assert len(fingerprints) == 1


def test_one_changed_word_or_number_counts() -> None:
    """Whatever else stays the same."""
    for old, new in [
        ("5.20", "5.30"),
        ("bergamot", "lemon"),
        ("berga", "Berga"),
        ("12 vis", "13 vis"),
        ("Teas", "Tea"),
    ]:
        page = PAGE.replace("<b>berga</b>mot", "bergamot")
        assert not same(VISIBLE, page, page.replace(old, new))


def test_inline_markup_joins_words_and_blocks_part_them() -> None:
    """<b>ber</b>gamot is one word, and <p>a</p><p>b</p> are two."""
    text = VISIBLE
    assert same(text, "<p><b>ber</b>gamot</p>", "<p>bergamot</p>")
    assert same(text, "<p>a</p><p>b</p>", "<div>a<br>b</div>")
    assert not same(text, "<p>a</p><p>b</p>", "ab")


@pytest.mark.parametrize(
    "markup",
    [
        "<a href={}>x</a>",
        "<area href={}>",
        '<a title=" href=/9" href="{}">x</a>',
        "<img src={}>",
        '<img src=blank.gif data-src="{}">',
        "<img src=1.png srcset='1.png 1x, {} 2x'>",
        "<picture><source srcset={}><img src=1.png></picture>",
    ],
)
@pytest.mark.parametrize("method", ["blocks", "visible_text"])
def test_wherever_a_target_or_a_source_stands_it_counts(method: str, markup: str) -> None:
    """Maps, pictures in several sizes, those that are loaded when the reader has come so far; and only if kept."""
    one, two = markup.format("/1"), markup.format("/2")
    attributes = ["*::attr(href)", "*::attr(src)", "*::attr(data-src)", "*::attr(srcset)"]
    assert not same(Recipe(method, keep=["html", *attributes]), one, two)
    assert not same(Recipe(method, keep=["html", *attributes]), one, f"{one}<p>more")
    assert same(Recipe(method), one, two)


MARKUP = [line.split("   ==>   ") for line in (Path(__file__).parent / "markup.txt").read_text().splitlines()[1:]]


@pytest.mark.parametrize(("markup", "text"), MARKUP)
def test_markup_is_read_as_browsers_read_it(markup: str, text: str) -> None:
    """Where a reader would see it."""
    assert same(VISIBLE, markup, text)
    assert not same(VISIBLE, f"more {markup}", text)


# Selectors


@pytest.mark.parametrize("method", ["blocks", "visible_text"])
def test_only_the_selected_parts_count(method: str) -> None:
    """What is kept, without what is dropped from it."""
    selectors = Recipe(method, keep=["main"], drop=[".price"])
    assert same(selectors, PAGE, PAGE.replace("12 visitors", "13 visitors"))
    assert same(selectors, PAGE, PAGE.replace("5.20", "5.30"))
    assert not same(selectors, PAGE, PAGE.replace("Earl", "Lady"))


def test_a_dropped_part_leaves_nothing_behind() -> None:
    """Not even a space: a page with an advertisement reads as one without. What stands behind it stays."""
    drop = Recipe("visible_text", drop=[".ad", "//aside"])
    assert same(drop, "<div>tea<div class=ad>Buy<p>!</div>pot</div>", "<div>teapot</div>")
    assert same(drop, "<p>tea <aside>Buy <i class=ad>!</i></aside> pot", "<p>tea pot")
    assert not same(drop, "<p>tea<i class=ad>!</i>pot", "<p>tea<i class=ad>!</i>")


def test_attributes_and_xpaths_can_be_kept() -> None:
    """::attr(name), //elements, and XPaths which give texts or numbers."""
    page = "<a class=file href='/1.pdf'>File</a><p>one</p><p>two</p>"
    for keep in ("a.file::attr(href)", "//a/@href", "xpath: string(//a/@href)", "(//a)[1]/@href"):
        assert not same(Recipe("visible_text", keep=[keep]), page, page.replace("1.pdf", "2.pdf"))
        assert same(Recipe("visible_text", keep=[keep]), page, page.replace("File", "PDF"))
    assert not same(Recipe("visible_text", keep=["xpath:count(//p)"]), page, page + "<p>three")


@pytest.mark.parametrize(
    "xpath",
    ["//p[re:test(@class, 'price \\d')]", "//p[has-class('price')]", "//p[contains(., 'No(1)') or not(@id) and (1)]"],
)
def test_what_xpaths_know_in_scrapy_they_know_here(xpath: str) -> None:
    """Functions of parsel and EXSLT; and what looks like a function within quotes is none."""
    page = '<h1>Tea</h1><p class="price 5">No(1)</p>'
    assert PageParts(keep=[xpath]).markup(page) == page.removeprefix("<h1>Tea</h1>")


def random_tree(rng: random.Random, depth: int = 0) -> str:
    """Nested elements of three names and two classes."""
    if depth == 6:
        return ""
    inner = "".join(random_tree(rng, depth + 1) for _ in range(rng.randrange(4)))
    name = rng.choice(["div", "section", "span"])
    return f"<{name} class='{rng.choice(['a', 'b', 'a b'])}' id='n{rng.randrange(10**9)}'>{inner}</{name}>"


SELECTORS = (Path(__file__).parent / "selectors.txt").read_text().splitlines()


@pytest.mark.parametrize("selector", SELECTORS)
def test_selectors_select_what_they_select_elsewhere(selector: str) -> None:
    """The translation that no page makes slow finds the same elements as the usual one."""
    rng = random.Random(selector)
    ours, usual = etree.XPath(LinearTranslator().css_to_xpath(selector)), CSSSelector(selector, translator="html")
    n_found = 0
    for _ in range(40):
        root = etree.fromstring(f"<body>{random_tree(rng)}{random_tree(rng)}</body>")
        assert ours(root) == usual(root)
        n_found += len(usual(root))
    assert n_found > 0


@pytest.mark.parametrize("selector", ["p ~ p", "p + p", "a ~ p", "div p", "div div p", "p:nth-child(3n)"])
def test_no_page_makes_a_selector_slow(selector: str) -> None:
    """100,000 siblings, and 20,000 below 250 levels: quadratic time would not come to an end here."""
    for selectors in (Recipe("visible_text", keep=[selector]), Recipe("visible_text", drop=[selector])):
        for body in (b"<p>x</p>" * 100_000, b"<div>" * 250 + b"<p>x</p>" * 20_000):
            assert len(selectors.fingerprint(body, HTML, None, "").digest) == 16


def test_a_crowded_page_counts_as_a_whole_where_siblings_are_looked_at() -> None:
    """4,096 elements side by side: all its text counts rather than none."""
    crowd = b"<p>x</p>" * 5_000
    assert not same(Recipe("visible_text", keep=["a ~ p"]), crowd + b"<b>y", crowd + b"<b>z")
    assert same(Recipe("visible_text", keep=["p"]), crowd + b"<b>y", crowd + b"<b>z")


# Other kinds


def test_json_counts_by_what_it_says() -> None:
    """Key order, white space and escapes do not count; values, types and every digit do."""
    for content_type in ("application/json", "application/ld+json; charset=utf-8", None):
        one = '{"b": [1, 2.50, null], "a": "caf\\u00e9"}'
        assert same(VISIBLE, one, '{"a":"café","b":[1,2.50,null]}', content_type)
        for two in (
            '{"b":[1,2.50,null]}',
            one.replace("2.50", "2.51"),
            one.replace("1,", '"1",'),
            one.replace("null", "0"),
        ):
            assert not same(VISIBLE, one, two, content_type)
    assert not same(JSON, f"[{'1' * 6000}]", f"[{'1' * 5999}2]", "application/json")
    assert not same(JSON, "[1e400]", "[2e400]", "application/json")
    assert same(Recipe("json", ignore_keys=["now"]), '{"a": [{"now": 1}]}', '{"a": [{"now": 2}]}', "application/json")
    assert not same(JSON, '{"a": [{"now": 1}]}', '{"a": [{"now": 2}]}', "application/json")


@pytest.mark.parametrize("content_type", ["text/html", "text/plain", "application/x-anything", "image/png", None])
def test_json_that_is_called_something_else_is_json_for_the_recipe_that_says_so(content_type: str | None) -> None:
    """Many a server calls it text/html; chosen keys are ignored, and a page that is none is still a page."""
    by_keys = Recipe("json", ignore_keys=["now"])
    assert same(by_keys, '\ufeff {"a": 1, "now": 2}', '{"now": 3, "a": 1}', content_type)
    assert not same(by_keys, '{"a": 1, "now": 2}', '{"a": 2, "now": 2}', content_type)
    assert same(by_keys, "<p>a<script>1</script>", "<p>a", "text/html")
    in_latin = '{"a": "caf\xe9"}'.encode("latin-1"), "text/plain; charset=iso-8859-1"
    assert by_keys.fingerprint(*in_latin, None, "") == by_keys.fingerprint('{"a":"caf\xe9"}'.encode(), None, None, "")


def test_broken_json_counts_as_text() -> None:
    """And so do JSON lines, and nesting that Python does not read."""
    assert same(JSON, '{"a": 1,', '{"a":  1,', "application/json")
    assert not same(JSON, '{"a": 1,', '{"a": 2,', "application/json")
    assert not same(JSON, "[" * 100_000 + "1", "[" * 100_000 + "2", "application/json")


def test_a_feed_counts_without_the_time_of_its_making() -> None:
    """lastBuildDate, the channel's pubDate, the feed's updated; an item's dates count."""
    rss = (
        "<rss><channel><lastBuildDate>{0}</lastBuildDate><pubDate>{0}</pubDate><ttl>{0}</ttl><item><title>A</title>"
        "<pubDate>{1}</pubDate></item></channel></rss>"
    )
    atom = (
        '<?xml version="1.0"?><!-- {0} --><feed xmlns="x"><updated>{0}</updated>'
        "<entry><updated>{1}</updated></entry></feed>"
    )
    for feed, content_type in (
        (rss, "application/rss+xml"),
        (atom, "application/atom+xml"),
        (rss, "text/xml"),
        (atom, None),
    ):
        assert same(VISIBLE, feed.format(1, 5), feed.format(2, 5), content_type)
        assert not same(VISIBLE, feed.format(1, 5), feed.format(1, 6), content_type)


def test_xml_counts_by_what_it_says() -> None:
    """Attributes in any order, CDATA, prefixes; every value counts, and elements without one say nothing."""
    one = '<x:a xmlns:x="u" b="1" c="2&amp;"><x:d>fish &amp; chips</x:d><e/></x:a>'
    two = (
        "<?xml version='1.0'?>\n<x:a c='2&#38;' b='1' xmlns:x='u'> <x:d><![CDATA[fish & chips]]></x:d>\n <e></e></x:a>"
    )
    assert same(VISIBLE, one, two, "application/xml")
    assert same(VISIBLE, one, one.replace("<e/>", ""), "application/xml")
    for old, new in (('b="1"', 'b="3"'), ("fish", "dish"), ("<e/>", "<e>1</e>")):
        assert not same(VISIBLE, one, one.replace(old, new), "application/xml")


def test_a_content_type_that_was_sent_twice_is_one() -> None:
    """Some servers behind others send the header twice, and caches join the two with a comma."""
    assert same(VISIBLE, "<p>a<script>1</script>", "<p>a", "text/html, text/html; charset=utf-8")


@pytest.mark.parametrize(
    "start", [b"%PDF-1.7\n", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff\xe0", b"PK\x03\x04", b"\x00\x01"]
)
def test_pictures_and_documents_count_byte_by_byte_whatever_they_are_called(start: bytes) -> None:
    """A server that calls everything text/html does not make them text."""
    body = start + bytes(range(256)) * 4
    for content_type in ("text/html", None, "application/octet-stream", "image/png"):
        assert not same(VISIBLE, body, body + b" ", content_type)
        assert VISIBLE.fingerprint(body, content_type, None, "").digest != RAW.fingerprint(body, None, None, "")


# Recipes


def test_programs_outside_make_a_recipe_by_its_earlier_name() -> None:
    """They say `recipe("json", ignore_keys=["now"])`."""
    assert recipe("json", ignore_keys=["now"]).id == Recipe("json", ignore_keys=["now"]).id


def test_everything_that_matters_is_in_the_id() -> None:
    """Method, parameters, and for what lxml reads its version; the digests differ too."""
    by_parts = [Recipe("visible_text", keep=["main"]), Recipe("visible_text", drop=["main"])]
    recipes = [*RECIPES, *by_parts, JSON, Recipe("json", ignore_keys=["a", "b"])]
    assert len({r.id for r in recipes}) == len(recipes)
    assert len({r.fingerprint(b"a", "text/plain", None, "").digest for r in recipes}) == len(recipes)
    assert Recipe("json", ignore_keys=["a", "b"]).id == Recipe("json", ignore_keys=["b", "a"]).id
    assert "lxml" in Recipe(keep=["main"]).id
    assert "lxml" not in VISIBLE.id


def test_a_function_of_the_user_counts_what_it_returns(caplog: pytest.LogCaptureFixture) -> None:
    """Bytes or text; what it raises is logged, and the bytes count then, under another recipe."""

    def first_word(body: bytes, content_type: str | None, url: str) -> str:
        return body.decode().split()[0]

    by_word = Recipe(first_word)
    assert by_word.id == f"function/1/{first_word.__module__}.{first_word.__qualname__}/1"
    assert same(by_word, "a b", "a c")
    assert not same(by_word, "a b", "b b")
    with caplog.at_level(logging.ERROR):
        raised = by_word.fingerprint(b"", None, None, "http://a/")
    assert raised.recipe == f"{by_word.id}/raised"
    assert "http://a/" in caplog.text
    assert by_word.fingerprint(b"a", None, None, "").recipe != raised.recipe
    assert Recipe(lambda body, content_type, url: 5).fingerprint(b"", None, None, "").recipe.endswith("/raised")
    first_word.version = 2
    assert Recipe(first_word).id != by_word.id


# Whatever the bytes

HOSTILE = {
    "empty": b"",
    "white space": b" \n",
    "NUL": b"\0",
    "deep": b"<div>" * 100_000,
    "deep and closed": b"<div>" * 50_000 + b"x" + b"</div>" * 50_000,
    "tags without end": b"<a" * 300_000,
    "tags without end before one": b"<a" * 300_000 + b">",
    "tags without end after many": b"<b>" * 50_000 + b"<a" * 300_000,
    "items": b"<li>" * 100_000,
    "paragraphs": b"<p>x" * 50_000,
    "ends of others": b"<b>" * 50_000 + b"</i>" * 50_000,
    "ends alone": b"</div>" * 100_000,
    "attributes without end": b"<p class=" * 50_000,
    "ids": b"<div id=a1>x" * 20_000,
    "quotes without end": b"<a b='" * 100_000,
    "quotes of two kinds": b"<a b='\" c=\"'>" * 50_000 + b"<a b='>",
    "quotes that swallow": b"<a b=\"> '" * 100_000,
    "comments without end": b"<!--" * 200_000,
    "scripts without end": b"<script>" * 100_000,
    "script ends without end": b"<script>" + b"</script " * 100_000,
    "ends without start": b"<div>" * 250 + b"</x>" * 200_000,
    "references": b"&" * 500_000 + b"&#" + b"9" * 10_000 + b";" + b"&#xd800;&#x110000;",
    "one long text": b"<p>" + b"ab " * 200_000,
    "one long word": b"<p>" + b"a" * 1_000_000,
    "CDATA without end": b"<a><![CDATA[" * 100_000,
    "truncated UTF-16": "<p>\u20ac".encode("utf-16")[:-1],
    "surrogates": b"<p>\xed\xa0\x80",
    "accents upon one letter": ("<p>a" + "\u0301\u0316" * 200_000).encode(),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("content_type", ["text/html", "application/xml"])
def test_hostile_bodies_neither_raise_nor_go_on_for_ever(name: str, content_type: str | None) -> None:
    """Time is linear in the size: quadratic time would not come to an end here."""
    for r in RECIPES:
        fingerprint = r.fingerprint(HOSTILE[name], content_type, None, "http://a/")
        assert (fingerprint.recipe, len(fingerprint.digest)) == (r.id, 16)


DENSE = [line.split("   ") for line in (Path(__file__).parent / "dense.txt").read_text().splitlines()[1:]]


@pytest.mark.parametrize(("one", "sign", "two"), DENSE)
def test_what_a_reader_sees_behind_too_many_tags_is_not_lost(one: str, sign: str, two: str) -> None:
    """The text counts as a whole, and what its tags and scripts say; what no reader sees does not."""
    for cells in ("<td>" * 30_000, "".join(f"<td>{number}" for number in range(9_000))):
        assert same(BLOCKS, f"<table>{cells}{one}", f"<table>{cells}{two}") == (sign == "===")


def test_changes_in_hostile_bodies_are_seen() -> None:
    """Pages too deep or too large for a tree are not all alike, as they would be if they were cut."""
    for r in RECIPES:
        assert not same(r, b"<div>" * 3_000 + b"x", b"<div>" * 3_000 + b"y")
    for r in (VISIBLE, Recipe("visible_text", drop=["nav"])):
        assert not same(r, b"<p>" + b"ab " * 3_400_000 + b"x", b"<p>" + b"ab " * 3_400_000 + b"y")


@given(
    st.one_of(st.binary(max_size=300), st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))),
    st.one_of(
        st.none(), st.sampled_from(["text/html", "text/plain", "application/json", "text/xml", "image/png"]), st.text()
    ),
    st.one_of(
        st.none(), st.sampled_from(["utf-8", "utf-16", "cp1252", "undefined", "idna", "zip"]), st.text(max_size=12)
    ),
)
def test_no_body_makes_it_raise(body: bytes, content_type: str | None, encoding: str | None) -> None:
    """Arbitrary bytes, content types and encodings; the same bytes give the same fingerprint."""
    for r in RECIPES:
        assert r.fingerprint(body, content_type, encoding, "") == r.fingerprint(body, content_type, encoding, "")


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda children: st.one_of(st.lists(children), st.dictionaries(st.text(), children)),
    max_leaves=20,
)


@given(json_values, json_values)
def test_json_documents_are_equal_when_they_say_the_same(one: object, two: object) -> None:
    """However they are written; and differ when they do not."""
    compact = json.dumps(one, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    sorted_and_spread = json.dumps(one, indent=3, sort_keys=True)
    if b"\xed" not in compact:
        assert same(JSON, compact, sorted_and_spread, "application/json")
    texts = [json.dumps(value, sort_keys=True) for value in (one, two)]
    assert same(JSON, *texts, "application/json") == (texts[0] == texts[1])


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cn", "Cs")), max_size=20), max_size=8))
def test_text_is_read_back_however_it_is_escaped(words: list[str]) -> None:
    """What an HTML writer escapes counts as what it stands for."""
    plain = normalised(" ".join(words), references=False)
    escaped = "".join(f"<p>{''.join(f'&#{ord(c)};' for c in word)}</p>" for word in words)
    if not any(0x80 <= ord(c) < 0xA0 for c in plain):  # HTML reads these references as Windows-1252
        assert VISIBLE.fingerprint(escaped.encode(), HTML, None, "") == Fingerprint.of(VISIBLE.id, plain)
