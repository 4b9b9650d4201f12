"""What a site changes on all of its pages alike is no change of each; what a page changes alone always is."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random

import pytest

from crawlsched.change_detection import LivingBlocks, TemplateEdits, recipe
from crawlsched.content.site_templates import Sites
from tests.noisy_pages import Judge, edited, noisy, written

Layout = Callable[[int, str], str]


class _Site:
    """A site of pages of one layout, each with a text of its own."""

    def __init__(self, layout: Layout, n_pages: int = 12, seed: int = 0) -> None:
        self.rng = Random(seed)
        self.layout = layout
        self.texts = [written(self.rng, 3) for _ in range(n_pages)]
        self.judge = Judge(LivingBlocks(), self.rng, with_probes=False)

    def found_changed(self, number: int, *, is_edited: bool = False) -> bool:
        if is_edited:
            edited(self.texts[number], self.rng)
        body = self.layout(number, "".join(self.texts[number]))
        counts = self.judge.counts
        before = counts.false + counts.seen
        self.judge.visit(f"https://docs.example/guide/{number}", body.encode, edited=is_edited)
        return counts.false + counts.seen > before

    def changed_pages(self) -> list[int]:
        return [number for number in range(len(self.texts)) if self.found_changed(number)]


def _page(
    *,
    release: str = "1.3",
    year: int = 2024,
    links: tuple[str, ...] = ("Home", "Guide", "Help"),
    above: str = "",
    search: str = "<div id=box><h3>Quick search</h3></div>",
    stock: Callable[[int], str] = lambda number: "In stock",
) -> Layout:
    def layout(number: int, text: str) -> str:
        listed = "".join(f"<li><a href=/{link}>{link}</a></li>" for link in links)
        return (
            f"<title>Page {number} - Tea {release} guide</title>{above}<nav><ul>{listed}</ul></nav>{search}"
            f"<h1>Tea {release} guide: page {number}</h1><p class=stock>{stock(number)}</p>{text}"
            f"<footer>© 2010-{year}, the authors. All rights reserved.</footer>"
        )

    return layout


_EDITS = pytest.mark.parametrize(
    ("before", "after"),
    [
        (_page(), _page(release="1.4")),
        (_page(), _page(year=2025)),
        (_page(), _page(release="2.0", year=2025)),
        (_page(), _page(links=("Home", "Guide", "News", "Help"))),
        (_page(), _page(links=("Home", "Help"))),
        (_page(), _page(above="<div class=banner>We are closed on Monday</div>")),
        (_page(above="<div class=banner>We are closed on Monday</div>"), _page()),
        (_page(), _page(stock=lambda number: "Ask us")),
    ],
    ids=["release", "year", "both", "new link", "link gone", "banner", "banner gone", "shared text"],
)


def _with_siblings(layout: Layout, n_pages: int = 12) -> _Site:
    """Return a site all of whose pages have been seen, and whose judge may look at another page before it decides."""
    site = _Site(layout, n_pages)

    def world(url: str) -> tuple[bytes, str]:
        number = int(url.rpartition("/")[2])
        own = "".join(site.texts[number])
        return site.layout(number, own).encode(), own

    site.judge = Judge(LivingBlocks(), site.rng, world=world)
    _looked(site)
    return site


def _looked(site: _Site) -> list[int]:
    return [n for n in range(len(site.texts)) if site.judge.look(f"https://docs.example/guide/{n}")]


@_EDITS
def test_of_an_edit_on_all_pages_no_page_has_changed_where_a_sibling_is_looked_at(
    before: Layout, after: Layout
) -> None:
    """The first page waits for another one, which shows the same; this takes two requests, once."""
    site = _with_siblings(before)
    site.layout = after
    probes = site.judge.counts.probes
    assert _looked(site) == []
    assert site.judge.counts.probes <= probes + 2
    for number in range(12):
        edited(site.texts[number], site.rng)
    assert _looked(site) == list(range(12))


def test_an_edit_of_the_page_and_of_its_template_at_once_is_seen() -> None:
    """Whether the first page that is visited has it, or the sibling that is looked at, or another one."""
    for number in range(4):
        site = _with_siblings(_page())
        site.layout = _page(release="1.4")
        edited(site.texts[number], site.rng)
        _looked(site)
        assert (site.judge.counts.edits, site.judge.counts.seen) == (1, 1)
        assert site.judge.counts.false == 0


def test_what_one_page_alone_says_otherwise_is_seen_and_asked_about_ever_more_rarely() -> None:
    """*In stock*, which all say, becomes *Only 7 left* on one page after the other, each time another number."""
    left: dict[int, int] = {}
    site = _with_siblings(
        _page(stock=lambda number: f"Only {left[number]} left" if number in left else "In stock"), n_pages=24
    )
    _looked(site)
    probes = site.judge.counts.probes
    for n in range(40):
        number = (7 * n) % 24
        left[number] = 1_000 + n
        assert _looked(site) == [number]
    assert 6 <= site.judge.counts.probes - probes <= 60  # two for each of the first three, then a few


def test_where_all_siblings_were_edited_too_three_that_show_the_same_are_enough() -> None:
    """Each had kept the old words until then, as far as is known of any page; long ones do not tell which blocks."""

    def long(release: str) -> Layout:
        return lambda number, text: _page(release=release)(number, text + "".join(f"<p>{n}</p>" for n in range(400)))

    site = _with_siblings(long("1.3"))
    site.layout = long("1.4")
    edited_pages = [number for number in range(12) if number != 5]
    for number in edited_pages:
        edited(site.texts[number], site.rng)
    _looked(site)
    counts = site.judge.counts
    assert (counts.seen, counts.edits, counts.false) == (11, 11, 0)


def test_what_a_short_page_is_known_to_have_said_shows_an_edit_of_the_template_beside_its_own() -> None:
    """Of up to 64 blocks all are known: the one sibling there is said *1.3* and says *1.4*, whatever else it says."""
    site = _with_siblings(_page(), n_pages=4)
    site.layout = _page(release="1.4")
    for number in (0, 1, 2):
        edited(site.texts[number], site.rng)
    assert not site.judge.look("https://docs.example/guide/3")
    assert _looked(site) == []  # the three others were siblings, or were seen since
    assert (site.judge.counts.seen, site.judge.counts.false) == (3, 0)


def test_a_sibling_that_has_no_such_words_tells_nothing_and_the_next_one_is_asked() -> None:
    """A page without a heading, one of another layout, is visited just before each of the others."""

    def with_odd_pages(release: str) -> Layout:
        usual = _page(release=release)
        return lambda number, text: text if number in (3, 10, 11) else usual(number, text)

    site = _with_siblings(with_odd_pages("1.3"))
    site.layout = with_odd_pages("1.4")
    assert not site.judge.look("https://docs.example/guide/4")
    assert _looked(site) == []


def test_a_block_that_stands_elsewhere_in_the_markup_counts_for_no_page() -> None:
    """Of a page that has it neither here nor there nothing is said: it has not kept it where it was."""

    def layout(release: str, search: str) -> Layout:
        usual, without = _page(release=release, search=search), _page(release=release, search="")
        return lambda number, text: (without if number % 3 == 0 else usual)(number, text)

    site = _with_siblings(layout("1.3", "<div id=box><h3>Quick search</h3></div>"))
    site.layout = layout("1.4", "<div id=box><span class=search>Quick search</span></div>")
    assert _looked(site) == []
    assert _looked(site) == []


def test_what_has_come_to_all_pages_is_no_edit_of_the_only_one_with_another_layout() -> None:
    """The site map has the navigation, too, at a place of its own; the new entry stands between the same ones."""

    def layout(links: tuple[str, ...]) -> Layout:
        usual = _page(links=links)

        def of_page(number: int, text: str) -> str:
            page = usual(number, text)
            return page.replace("<nav>", "<main><div class=map>").replace("</nav>", "</div>") if number == 7 else page

        return of_page

    site = _with_siblings(layout(("Home", "Guide", "Help")))
    site.layout = layout(("Home", "Guide", "News", "Help"))
    assert _looked(site) == []
    edited(site.texts[7], site.rng)
    assert _looked(site) == [7]


def test_new_markup_around_everything_and_a_new_release_at_once_are_no_change() -> None:
    """No block but the title is at its place, and headings name another release; nothing else reads otherwise."""

    def with_markup(release: str, element: str) -> Layout:
        def layout(number: int, text: str) -> str:
            title, rest = _page(release=release)(number, text).replace("guide:", "guide").split("<nav>")
            return f"{title}<{element} class=all><nav>{rest}</{element}>"

        return layout

    site = _with_siblings(with_markup("1.3", "div"))
    site.layout = with_markup("1.4", "main")
    edited(site.texts[8], site.rng)
    assert _looked(site) == [8]
    assert (site.judge.counts.seen, site.judge.counts.false) == (1, 0)


def test_the_release_that_an_article_names_is_the_pages_own() -> None:
    """*The newest is Tea 1.3* changes with the headings of all pages, and is seen: between other words than there."""

    def with_news(release: str) -> Layout:
        usual = _page(release=release)
        return lambda number, text: usual(number, text + (f"<p>The newest is {release}</p>" if number == 6 else ""))

    site = _with_siblings(with_news("1.3"))
    site.layout = with_news("1.4")
    assert _looked(site) == [6]


@_EDITS
def test_of_an_edit_on_all_pages_only_the_first_page_has_changed(before: Layout, after: Layout) -> None:
    """Beside it, edits of a page's own text are seen as ever."""
    site = _Site(before)
    assert site.changed_pages() == []
    site.layout = after
    assert site.changed_pages() == [0]
    assert site.changed_pages() == []
    assert all(site.found_changed(number, is_edited=True) for number in range(12))


@pytest.mark.parametrize(
    "search",
    ["<search id=box><h3>Quick search</h3></search>", "<div class=new><div><h2>Quick search</h2></div></div>"],
)
def test_markup_that_no_reader_sees_is_no_change_of_any_page(search: str) -> None:
    """Another element, another class, elements around it: what is read is the same. A page's own words still count."""
    site = _Site(_page())
    site.changed_pages()
    site.layout = _page(search=search)
    assert [number for number in range(12) if site.found_changed(number, is_edited=number % 3 == 1)] == [1, 4, 7, 10]
    assert site.changed_pages() == []


def test_a_page_that_was_edited_too_has_changed() -> None:
    """Nothing that is put back leads to the fingerprint that was kept."""
    site = _Site(_page())
    site.changed_pages()
    site.layout = _page(release="1.4")
    site.changed_pages()
    site.layout = _page(release="1.5")
    assert [number for number in range(12) if site.found_changed(number, is_edited=number % 3 == 1)] == [
        *(0, 1, 4, 7, 10)
    ]


def test_a_page_that_was_not_seen_for_three_releases_has_not_changed() -> None:
    """Releases are put back one after the other."""
    site = _Site(_page())
    site.changed_pages()
    for release in ("1.4", "1.5", "1.6"):
        site.layout = _page(release=release)
        assert [number for number in range(8) if site.found_changed(number)] == [0]
    assert not any(site.found_changed(number) for number in range(8, 12))


def test_a_page_that_alone_changes_what_all_pages_say_has_changed() -> None:
    """*In stock*, as on all other pages, becomes *Sold out*: the next pages keep it, so this is no template's."""
    sold: set[int] = set()
    site = _Site(_page(stock=lambda number: "Sold out" if number in sold else "In stock"), n_pages=24)
    site.changed_pages()
    site.changed_pages()
    for number in (3, 9, 14, 20):
        sold.add(number)
        assert site.changed_pages() == [number]
    sold.remove(9)
    assert site.changed_pages() == [9]


def test_the_same_edit_of_two_pages_with_none_between_hides_the_second_until_others_have_kept_the_old() -> None:
    """Two pages in a row are taken for all; after one that keeps what was there they are not."""
    sold: set[int] = set()
    site = _Site(_page(stock=lambda number: "Sold out" if number in sold else "In stock"), n_pages=24)
    site.changed_pages()
    sold |= {3, 4, 6, 10}
    assert site.changed_pages() == [3, 6, 10]


def test_nothing_is_put_back_before_three_pages_have_been_seen() -> None:
    """What two pages say alike may be chance."""
    site = _Site(_page(), n_pages=2)
    site.changed_pages()
    site.layout = _page(release="1.4")
    assert site.changed_pages() == [0, 1]


def test_users_may_have_edits_of_templates_count() -> None:
    """A banner on all pages is what some are waiting for."""
    site = _Site(_page())
    site.judge.recipe = recipe("blocks", template_edits=True)
    site.changed_pages()
    site.layout = _page(above="<p class=alert>Do not drink this tea</p>")
    assert site.changed_pages() == list(range(12))
    with pytest.raises(ValueError, match="template_edits belongs to the method 'blocks'; with the method 'json' it"):
        recipe("json", template_edits=True)


def test_what_was_learned_survives_the_process() -> None:
    """It is written down as JSON when the first page of a release has been seen, and read again for the second."""
    site = _Site(_page())
    site.changed_pages()
    site.layout = _page(release="1.4", links=("Home", "Guide", "News", "Help"))
    assert site.found_changed(0)
    kept = {name: json.dumps(known.edits.to_dict()) for name, known in site.judge.sites._sites.items()}
    site.judge.sites = Sites(lambda name: json.loads(kept[name]), kept)
    assert not any(site.found_changed(number) for number in range(1, 12))


def test_what_is_kept_of_a_site_is_bounded() -> None:
    """Whatever its pages are made of: each of 120 has 60 paths of its own and long texts at the same ones."""

    def layout(number: int, text: str) -> str:
        own = "".join(f"<div id=x{number}-{'y' * depth}><p>{number} {depth}</p></div>" for depth in range(60))
        names = "".join(f"<section class={'ab'[number % 2]}{letter}>{text}</section>" for letter in "abcdefgh")
        named = "".join(f"<i class={word}>{text[:2000]}</i>" for word in text.split()[:40])
        return f"<h1>Tea 1.3</h1>{own}{names}{named}"

    site = _Site(layout, n_pages=120)
    site.changed_pages()
    (known,) = site.judge.sites._sites.values()
    texts = known.edits.texts
    assert len(texts._samples) <= 2_048
    assert texts._n_characters <= 65_536
    kept = {id(s.words): s.words for group in texts._samples.values() if group for s in group}
    assert texts._n_characters == sum(len(word) + 1 for words in kept.values() for word in words)
    data = json.dumps(known.edits.to_dict())
    assert len(data) < 400_000
    assert TemplateEdits.from_dict(json.loads(data)).texts._samples == texts._samples


@pytest.mark.parametrize("seed", range(2))
def test_few_false_changes_and_nearly_all_edits_on_a_noisy_site_with_releases(seed: int) -> None:
    """Clocks, counters, boxes that move, a trial, and before every second round of visits another release and year."""
    rng = Random(seed)
    judge = Judge(LivingBlocks(), rng)
    contents = [written(rng) for _ in range(120)]
    for visit in range(6):
        release = f"1.{visit // 2}"
        for number, content in enumerate(contents):
            is_edited = visit > 0 and rng.random() < 0.2
            if is_edited:
                edited(content, rng)

            def fetch(n: int = number, texts: list[str] = content, v: int = visit, r: str = release) -> bytes:
                heading = f"<h1>Tea {r} guide: page {n}</h1><p class=legal>Tea, 2010-{2020 + v // 2}</p>"
                return noisy([heading, *texts], rng, v)

            judge.visit(f"https://www.example.com/news/{number}", fetch, edited=is_edited)
    assert judge.counts.quiet > 400
    assert judge.counts.false_share <= 0.01, judge.counts
    assert judge.counts.seen_share >= 0.97, judge.counts
