"""Blocks: how a page is cut, whatever its markup."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_detection.blocks import page_blocks
from crawlsched.change_detection.html_scan import visible_text

MARKUP = [
    "<p>", "</p>", "<P>", "</P>", "<b>", "</b>", "<B>one</B>", "<B>two</b>", "<span class=a>", "</span>", "<br>",
    "</br>", "<br></br>", "<wbr>x</wbr>", "<li>", "</li>", "<ul>", "</ul>", "<tr>", "<td>", "<table>", "</table>",
    "<dl>", "<dt>", "<dd>", "<script>", "</script>", "</SCRIPT>", "<style>.a{}</style>", "<noscript>",
    "</noscript>", "</b x>", "<!x>", '<a href="/x">', '<a href=" ">', "</a>", "<img src=/i.png></img>",
    '<div id="a1">', '<div CLASS="u">', "</div>", '<a class="x" href="/a?id=3">', '<a class="x y" title="q id=3">',
    "<!-- x -->", "<//b>", "<pre>", "</pre>", "<i class=k>three</i>", "<i id=l></i>", " ", "<", ">", "&amp;",
    "text",
]  # fmt: skip


def texts(markup: str) -> list[str]:
    return page_blocks(markup).texts


CUT = [line.split("   ==>   ") for line in (Path(__file__).parent / "blocks.txt").read_text().splitlines()]


@pytest.mark.parametrize(("markup", "expected"), CUT)
def test_a_block_is_the_text_directly_below_an_element(markup: str, expected: str) -> None:
    """Ends that need not be written are understood; inline elements belong to what is around them."""
    assert sorted(texts(markup)) == sorted(expected.split(" | "))


def test_items_of_a_list_have_one_path_however_many_there_are() -> None:
    """Unclosed items do not nest: their path does not depend on the items before them."""
    blocks = page_blocks("<ul>" + "<li>x" * 50 + "</ul>")
    assert len(blocks.texts) == 50
    assert len(set(blocks.paths)) == 1


def test_numbers_and_made_up_parts_of_names_do_not_move_a_block() -> None:
    """id="post-12" and class="css-1q2w" are the same place as id="post-13" and class="css-9z8y"."""
    one = page_blocks("<div id=post-12 class='css-1q2w card'><p>a</p></div>")
    two = page_blocks("<div class='css-9z8y card' id='post-13'><p>a</p></div>")
    other = page_blocks("<div id=page-12 class='css-1q2w list'><p>a</p></div>")
    assert one.paths == two.paths
    assert one.paths != other.paths


@given(st.text(max_size=300))
def test_no_markup_makes_it_raise(markup: str) -> None:
    """And every block has a path and a text."""
    blocks = page_blocks(markup)
    assert len(blocks.paths) == len(blocks.texts)
    assert all(blocks.texts)


# Behind a bare < a comment would stand within an unfinished tag, and be a part of its name.
@given(st.lists(st.sampled_from([bit for bit in MARKUP if bit != "<"]), max_size=40))
def test_an_element_is_cut_alike_at_one_go_and_in_parts(bits: list[str]) -> None:
    """A comment before each end, which no reader sees, keeps an element and its text from being read at once."""
    whole = "".join(bits)
    parted = "".join(f"<!---->{bit}" if bit.startswith("</") else bit.replace("</", "<!----></") for bit in bits)
    assert page_blocks(whole) == page_blocks(parted)
    assert visible_text(whole) == visible_text(parted)


def test_the_colours_of_a_program_are_no_places() -> None:
    """The classes of what highlights its words differ from version to version; elsewhere a class makes a block."""
    before = page_blocks('<pre><span class="k">def</span> <span class="nf">tea</span></pre><p>a <b class="c">cup</b>')
    after = page_blocks(
        '<pre><b class="kw">def</b> <span class="fn"><i class="id">tea</i></span></pre><p>a <b class="c">cup</b>'
    )
    assert before.texts == after.texts
    assert before.texts == ["def tea", "a", "cup"]


def test_what_has_an_id_is_a_place_within_a_program_too() -> None:
    """Lines that can be linked to are blocks, so that a change in one of them is a small one."""
    assert texts('<pre><span id="line-1"><b class="k">a</b> b</span>\n<span id="line-2">c</span></pre>') == ["a b", "c"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('<p class="a b" href="/1" lang="t">x', "<p lang=t href=/2 CLASS='a b'>x"),
        ('<p class="a" lang="no class">x', "<p class=a>x"),
        ('<p class="">x', "<p>x"),
    ],
)
def test_only_classes_and_ids_make_a_place(one: str, other: str) -> None:
    """However they are written, and whatever else an element has."""
    assert page_blocks(one) == page_blocks(other)
