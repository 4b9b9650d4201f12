"""The detector: only what two fetches at once or other pages prove is left out, and nothing larger than that."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlsched.change_detection.blocks import PageBlocks, page_blocks
from crawlsched.change_detection.detector import Detector, Finding
from crawlsched.change_detection.limits import LONGEST_NAME, MOST_BLOCKS, MOST_COMPARED, MOST_KEPT
from crawlsched.change_detection.shared_texts import SharedTexts
from crawlsched.change_detection.template_noise import TemplateNoise
from crawlsched.change_detection.trace import Trace, differences, token_runs
from tests.inputs import tries

WORDS = ["leaves", "water", "pot", "tray", "sugar", "milk", "honey", "lemon", "spoon"]


class Site:
    """A site of one template, and what the readers of its pages were given."""

    def __init__(self) -> None:
        self.detector = Detector(TemplateNoise(), SharedTexts())
        self.given: dict[str, Trace] = {}
        self.now = 0.0

    def page(self, number: int, text: str = "", foot: str = "") -> PageBlocks:
        """Return a page as it was read."""
        words = text or " ".join(Random(number).choices(WORDS, k=12))
        return page_blocks(f"<h1>Cup {number}</h1><p>{words}</p><footer>Tea</footer>{foot}", url=f"http://a/{number}")

    def visit(self, seen: PageBlocks) -> Finding:
        """Visit a page, and give its reader what is news."""
        self.now += 60.0
        finding = self.detector.judge(seen, self.given.get(seen.page), self.now)
        if finding.is_news or finding.reason == "template":
            self.given[seen.page] = seen.trace
        return finding

    def probe(self, first: PageBlocks, second: PageBlocks) -> bool | None:
        """Fetch a page twice at once."""
        return self.detector.learn_at_once(first, second, self.now)

    def with_clock(self, least: int = 3) -> Site:
        """Let so many pages prove that `p.now` is a clock."""
        for number in range(4):
            self.visit(self.page(number, foot="<p class=now>0</p>"))
        for number in range(least):
            first, second = (self.page(number, foot=f"<p class=now>{1 + 2 * number + n}</p>") for n in (0, 1))
            self.probe(first, second)
        return self


def test_what_differs_at_once_on_three_pages_is_noise_on_others() -> None:
    """And the text beside it is not."""
    site = Site().with_clock()
    found = site.visit(site.page(3, foot="<p class=now>8</p>"))
    assert (found.is_news, found.reason, found.is_suspect) == (False, "noise", True)
    assert "p.now differed in 3 of 3 second fetches at once" in found.ignored[0]
    assert site.visit(site.page(3, "other words", foot="<p class=now>9</p>")).kind == "page"


def test_a_page_whose_two_fetches_agree_speaks_for_itself() -> None:
    """What differs there at a later visit is its content, whatever others have shown."""
    site = Site().with_clock()
    site.visit(site.page(3, foot="<p class=now>8</p>"))
    site.probe(site.page(3, foot="<p class=now>8</p>"), site.page(3, foot="<p class=now>8</p>"))
    assert site.visit(site.page(3, foot="<p class=now>9</p>")).kind == "page"
    known = site.visit(site.page(1, foot="<p class=now>9</p>"))
    assert (known.reason, known.is_suspect) == ("noise", False)


def test_how_much_of_a_page_changed_is_a_share_of_its_blocks() -> None:
    """One of three, then and now."""
    site = Site()
    site.visit(site.page(0))
    assert site.visit(site.page(0, "other words")).changed_share == pytest.approx(1 / 3)


def test_only_digits_are_noise_where_only_digits_differed() -> None:
    """A clock that becomes a notice is told, and one that is gone."""
    site = Site().with_clock()
    assert site.visit(site.page(1, foot="<p class=now>Recalled</p>")).kind == "page"
    assert site.visit(site.page(2)).kind == "page"


def test_beside_a_counter_a_price_is_content() -> None:
    """What two fetches disagree on is the number before a word, and no more of the text."""
    site = Site()
    foot = "<p>{} people look at this · € {}</p>".format
    for number in range(4):
        site.visit(site.page(number, foot=foot(1, 5)))
    for number in range(3):
        site.probe(site.page(number, foot=foot(2, 5)), site.page(number, foot=foot(3, 5)))
    assert site.visit(site.page(0, foot=foot(40, 5))).reason == "noise"
    assert site.visit(site.page(0, foot=foot(41, 6))).kind == "page"
    assert site.visit(site.page(0, foot=foot(41, 7))).kind == "page"


def test_two_states_by_turns_are_noise_though_one_of_them_was_given() -> None:
    """A second fetch that shows what was given may be an old copy, unless the first was shown before, too."""
    site = Site()
    states = ["<b class=x>Buy it now</b>", "<b class=x>Order yours today</b>"]
    for number in range(4):
        site.visit(site.page(number, foot=states[0]))
    for number in (0, 1, 2, 3):
        site.probe(site.page(number, foot=states[1]), site.page(number, foot=states[0]))
    assert site.visit(site.page(1, foot=states[1])).reason == "noise"


def test_a_third_text_where_two_came_by_turns_is_told_and_so_is_what_comes_back() -> None:
    """What two fetches have proved is that the two texts are alike, and nothing about another one."""
    site = Site()
    one, two, third = (
        f"<b class=x>{text}</b>" for text in ("Buy it now", "Order yours today", "Not to be had any more")
    )
    for number in (0, 1, 2, 0, 1, 2):
        site.visit(site.page(number, foot=one))
        site.probe(site.page(number, foot=two), site.page(number, foot=one))
    told = [site.visit(site.page(0, foot=foot)).kind for foot in (two, one, third, third, one, two)]
    assert told == ["", "", "page", "", "page", ""]


def test_two_boxes_that_change_places_by_turns_are_noise_whichever_comes_first() -> None:
    """Which of the two has moved cannot be said."""
    site = Site()
    feet = ["<div class=a>One</div><div class=b>Two</div>", "<div class=b>Two</div><div class=a>One</div>"]
    for number in range(8):
        site.visit(site.page(number, foot=feet[number % 2]))
        site.probe(*(site.page(number, foot=foot) for foot in feet[:: 1 - 2 * (number % 2)]))
    assert not any(site.visit(site.page(number, foot=foot)).is_news for foot in feet for number in range(8))


def test_a_date_of_two_words_on_all_pages_is_told_once() -> None:
    """Each of its words is the site's, though they stand in one text."""
    site = Site()
    told = [
        [site.visit(site.page(number, foot=f"<p class=x>{day}, the {date} of May</p>")).kind for number in range(6)]
        for date, day in enumerate(["Monday", "Tuesday", "Wednesday", "Thursday"], 7)
    ]
    assert [sum(kind != "" for kind in kinds) for kinds in told] == [6, 2, 1, 1]


def test_a_price_that_stands_elsewhere_in_the_lists_of_other_pages_is_a_pages_own() -> None:
    """Where a page has several texts at a place, a few tokens say too little: the whole text has to be the site's."""
    site = Site()

    def page(number: int, price: int) -> PageBlocks:
        return site.page(number, foot=f"<ul><li>Tea {price}<li>Cup 11<li>Pot 12</ul><ul><li>Own {number}</ul>")

    for number in range(6):
        site.visit(page(number, 10))
    kinds = []
    for number in range(0, 6, 2):
        kinds += [site.visit(page(number, 11)).kind, site.visit(page(number + 1, 10)).kind]
    assert kinds == ["page", ""] * 3


@pytest.mark.parametrize(
    ("noisy", "told"),
    [
        ("{word} for € {price}", True),
        ("{n} people look at this · € {price}", True),
        ("{n} 7 {price} {n}", True),
        ("€ {price} ({n})", True),
        ("seen by {n} people, bought by {price} people", True),
        ("{word} {n}", False),
    ],
)
def test_a_price_beside_noise_in_one_text_is_told(noisy: str, told: bool) -> None:
    """What stood still in all pairs of fetches is no noise, however much of the text is."""
    site, rng = Site(), Random(1)

    def page(number: int, price: int) -> PageBlocks:
        word = rng.choice(["Buy it now", "Order yours today", "Take one home"])
        return site.page(
            number, foot=f"<p class=x>{noisy.format(word=word, n=rng.randrange(100, 999), price=price)}</p>"
        )

    for number in range(8):
        site.visit(page(number, 99))
        for _ in range(3):
            site.probe(page(number, 99), page(number, 99))
    assert not any(site.visit(page(number, 99)).is_news for number in range(8))
    assert [site.visit(page(number, 90 - number)).kind == "page" for number in range(8)] == [told] * 8


def test_an_old_copy_teaches_nothing_and_two_states_by_turns_do() -> None:
    """An edit that the second fetch does not show yet is another one each time; states come again."""
    edits, states = Site(), Site()
    for number in range(8):
        edited = edits.page(number, f"words that nobody has said before {number * WORDS[number]}")
        edits.detector.learn_at_once(edited, edits.page(number), 0.0, may_be_old=True)
        shown, hidden = (states.page(number, foot=f"{sale}<b>End</b>") for sale in ("<p>Sale</p>", ""))
        states.detector.learn_at_once(shown, hidden, 0.0, may_be_old=True)
    assert not [*edits.detector.noise.known()]
    assert [*states.detector.noise.known()]


def test_accidents_teach_nothing() -> None:
    """An answer that is cut, which a second fetch has to tell from an edit; another page, also one with our frame."""
    site = Site()
    whole, cut = site.page(0, foot="<i>a</i><p>b<p>c"), page_blocks("<h1>Cup 0</h1><p>lea", url="http://a/0")
    assert site.probe(whole, cut) is None
    assert site.probe(whole, page_blocks("<div class=wall><h2>Log in</h2><b>now", url="http://a/0")) is None
    other = "".join(
        f"<{tag}>{tag}</{tag}>" for tag in ["h2", "h3", "h4", "h5", "h6", "pre", "aside", "address", "blockquote"]
    )
    assert site.probe(site.page(0), site.page(0, "other words", foot=other)) is None
    site.visit(whole)
    assert site.visit(cut).is_suspect


def test_a_page_of_one_text_is_never_noise_as_a_whole() -> None:
    """It would have nothing left to say."""
    site = Site()
    pages = [page_blocks(f"<p>{word}</p>", url="http://a/1") for word in WORDS]
    site.visit(pages[0])
    for first, second in pairwise(pages):
        site.probe(first, second)
    assert [*site.detector.noise.known()]
    assert site.visit(pages[-1]).kind == "page"


def test_what_lies_beyond_the_blocks_is_told_and_never_noise() -> None:
    """However often it differed at once."""
    site = Site()

    def page(last: str) -> PageBlocks:
        return page_blocks("".join(f"<p>{n}</p>" for n in range(MOST_BLOCKS)) + f"<p>{last}", url="http://a/1")

    site.visit(page("a"))
    for word in WORDS:
        site.probe(page(word), page(word + "s"))
    assert site.visit(page("b")).kind == "page"
    assert not site.visit(page("b")).is_news


@pytest.mark.parametrize("few", ["<p>1", "<i></i>"])
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("<b class=sold-out>Tea</b>", "<b class=available>Tea</b>"),
        ("<meta itemprop=price content=5>", "<meta itemprop=price content=6>"),
        ("<img alt=Open>", "<img alt=Closed>"),
        (
            '<script type="application/json">{"price": 5}</script>',
            '<script type="application/json">{"price": 6}</script>',
        ),
    ],
)
def test_what_tags_say_behind_thousands_of_others_is_told(few: str, one: str, two: str) -> None:
    """Also where no block is looked at any more."""
    site = Site()
    site.visit(page_blocks(few * 20_500 + one, url="http://a/1"))
    assert site.visit(page_blocks(few * 20_500 + two, url="http://a/1")).is_news


@pytest.mark.parametrize("text", ["{}", "seen {} minutes ago by {}", "{} " + "and so on " * 30])
def test_of_a_page_that_differs_all_over_a_bounded_part_is_compared(text: str) -> None:
    """What is behind is one remainder: told whenever it differs, whatever two fetches have shown of all its blocks."""

    def page(start: int, last: str = "") -> PageBlocks:
        texts = [text.format(start + n, n) for n in range(4_000)]
        return page_blocks("<h1>Tea</h1>" + "".join(f"<p>{one}</p>" for one in [*texts, last]), url="http://a/1")

    detector = Detector(TemplateNoise(), SharedTexts())
    found = differences(page(0).trace, page(5_000).trace)
    assert 10 < len(found) < 1_100
    assert found[-1].kind == "rest"
    assert sum({one.number: 40 + len(one.was + one.says) for one in found}.values()) <= MOST_COMPARED
    for n in range(4):
        detector.learn_at_once(page(10_000 * n), page(10_000 * n + 5_000), 60.0 * n)
    assert detector.judge(page(50_000, "Recalled"), page(60_000).trace, 300.0).kind == "page"


def test_a_text_that_moves_is_told_beside_known_noise() -> None:
    """From one list to another, and within a list."""
    site = Site().with_clock()

    def lists(one: str, two: str, now: int) -> str:
        return f"<ul class=a>{one}</ul><ul class=b>{two}</ul><p class=now>{now}</p>"

    site.visit(site.page(1, foot=lists("<li>x<li>y", "<li>z", 1)))
    moved = site.page(1, foot=lists("<li>y", "<li>z<li>x", 2))
    assert (site.visit(moved).kind, moved.trace.changes) == ("page", [["ul.b > li", "x", "x"]])
    turned = site.page(1, foot=lists("<li>y", "<li>x<li>z", 3))
    assert (site.visit(turned).kind, turned.trace.changes) == ("page", [["ul.b > li", "", "another order of x"]])


def test_what_pages_say_alike_is_the_sites_and_told_once() -> None:
    """Wherever it stands; and pages that show it beside words of their own are told of these."""
    site = Site()
    for number in range(5):
        site.visit(site.page(number))
    foot = "<p>A new card of the day</p>"
    assert site.visit(site.page(0, foot=foot)).kind == "page"
    for number in (1, 2):
        assert site.visit(site.page(number, foot=foot)).reason == "template"
    own = site.page(3, "words of its own", foot=foot)
    assert (site.visit(own).kind, [says for _, _, says in own.trace.changes]) == ("page", ["words of its own"])


@pytest.mark.parametrize("item", ["<li>Sale of cups now on", "<li>Sale", ""])
def test_an_edit_of_a_list_on_all_pages_is_told_each_time_it_returns(item: str) -> None:
    """An item that comes and goes, or two items that change places: each time of one or two pages."""
    site, states = Site(), [f"<ul><li>a<li>b{item}</ul>", "<ul><li>a<li>b</ul>" if item else "<ul><li>b<li>a</ul>"]
    for number in range(6):
        site.visit(site.page(number, foot=states[0]))
    for turn in range(1, 6):
        told = [site.visit(site.page(number, foot=states[turn % 2])).is_news for number in range(6)]
        assert 1 <= sum(told) <= 2


@pytest.mark.parametrize("mark", [" class=current", " aria-current=page"])
def test_an_entry_of_a_menu_that_marks_its_own_page_is_told_once(mark: str) -> None:
    """Its page comes second, and shows the new name in another way than all others."""
    site, told = Site(), 0
    for entry in ("About us", "About the shop"):
        for number in range(8):
            menu = f"<ul><li>Home<li{mark * (number == 1)}>{entry}<li>All of our teas</ul>"
            told += site.visit(site.page(number, foot=menu)).is_news
    assert told <= 8 + 2


_OFFER = '<script type="application/ld+json">{"name": "Cup"%s}</script>'
_PRICE = "<b>A cup of green tea for %s euros</b>"
_TASKS = "<ul class=a><li>x%s</ul><ul class=b><li>z%s</ul>"


@pytest.mark.parametrize(
    ("first", "of_site", "own"),
    [
        (_TASKS % ("<li>Third task", ""), _TASKS % ("", "<li>Third task"), _TASKS % ("<li>Third task", "")),
        (
            "<ul><li>Gift card<li>Sale of cups<li>Closed now<li>Z",
            "<ul><li>Closed now<li>Gift card",
            "<ul><li>Closed now",
        ),
        (_PRICE % 1, _PRICE % 2, _PRICE % 3),
        ("<p>Back in stock next week", "<p>Back in stock next week", ""),
        (_OFFER % ', "offers": "Back in stock next week"', _OFFER % ', "offers": "In stock now"', _OFFER % ""),
    ],
)
def test_a_page_that_leaves_its_site_and_returns_is_told_both_times(first: str, of_site: str, own: str) -> None:
    """Also the second page, which does what another one did before, and a page whose last block is gone."""
    site = Site()
    for said in (first, of_site):
        for number in range(4):
            site.visit(site.page(number, foot=said))
        for number in (2, 1, 3, 1):
            for foot in (own, said):
                assert site.visit(site.page(number, foot=foot)).is_news == (own != said)
                for other in {0, 1, 2, 3} - {number}:
                    site.visit(site.page(other, foot=said))


def test_what_only_some_pages_show_is_their_own() -> None:
    """Three are sold out one after the other, and others that were asked for meanwhile are not."""
    site = Site()
    for number in range(6):
        site.visit(site.page(number, foot="<b>In stock</b>"))
    for number in (0, 2, 4):
        assert site.visit(site.page(number, foot="<b>Sold out</b>")).kind == "page"
        assert not site.visit(site.page(number + 1, foot="<b>In stock</b>")).is_news


@pytest.mark.parametrize(
    ("said", "is_with"),
    [
        *(("new words", True), ("here new words", True), ("here new", False)),
        *(("here newer", False), ("renew words", False), ("anew words", False)),
    ],
)
def test_a_page_that_said_it_all_along_is_not_without_it(said: str, is_with: bool) -> None:
    """Wherever in its text it does, before the same word: who only seems to say it is in another state."""
    site = Site()
    for number in range(4):
        site.visit(site.page(number, foot=f"<p class=x>{said if number == 3 else f'old words of {number}'}</p>"))
    for number in (0, 1):
        assert site.visit(site.page(number, foot=f"<p class=x>new words of {number}</p>")).kind == "page"
        site.visit(site.page(3, foot=f"<p class=x>{said}</p>"))
    assert (site.visit(site.page(2, foot="<p class=x>new words of 2</p>")).reason == "template") == is_with


def test_another_order_of_a_list_is_the_sites_where_pages_show_it_and_none_is_without() -> None:
    """And each page's own where one that was asked for since has the old order."""
    for is_asked in (False, True):
        site, old, new = Site(), "<ul><li>a<li>b<li>c</ul>", "<ul><li>b<li>a<li>c</ul>"
        for number in range(4):
            site.visit(site.page(number, foot=old))
        for number in (0, 1):
            assert site.visit(site.page(number, foot=new)).kind == "page"
            if is_asked:
                site.visit(site.page(3, foot=old))
        assert (site.visit(site.page(2, foot=new)).reason == "template") != is_asked


def test_of_a_long_text_is_shown_what_differs_and_what_is_around_it() -> None:
    """Eighty characters of it, before and now."""
    site = Site()
    words = [f"w{n}" for n in range(100)]
    site.visit(site.page(0, " ".join(words)))
    seen = site.page(0, " ".join([*words[:50], "another", *words[51:]]))
    site.visit(seen)
    ((_, was, says),) = seen.trace.changes
    assert (len(was), len(says)) == (LONGEST_NAME, LONGEST_NAME)
    assert was.startswith("w45 w46 w47 w48 w49 w50 ")
    assert says.startswith("w45 w46 w47 w48 w49 another ")


def test_two_pages_that_say_all_the_same_are_one() -> None:
    """What a page and its copy say alike is no evidence of a site."""
    site = Site()
    for url in ("http://a/1", "http://a/1?print"):
        site.visit(page_blocks("<h1>Tea</h1><p>A cup of it", url=url))
    for url in ("http://a/1", "http://a/1?print"):
        assert site.visit(page_blocks("<h1>Tea</h1><p>Quite another text of it", url=url)).kind == "page"


def test_what_differs_at_most_visits_is_suggested_and_told() -> None:
    """With the setting that leaves it out."""
    site = Site()
    for n in range(7):
        for number in range(4):
            assert site.visit(site.page(number, foot=f"<p class=sold>{100 * number + n} sold</p>")).is_news
    (text,) = site.detector.noise.suggestions()
    assert text.startswith("`p.sold` differed at 24 of 24 visits on 4 pages")
    assert "`CRAWLSCHED_FINGERPRINT_DROP = ['p.sold']` leaves it out" in text
    kept = TemplateNoise.from_dict(site.detector.noise.to_dict())
    assert (kept.suggestions(), kept.suggestions(new=True)) == ([text], [])


def test_what_was_learned_is_the_same_when_it_is_read_back() -> None:
    """And what a page of the site shows next is judged alike."""
    site = Site().with_clock()
    site.visit(site.page(3, foot="<p class=now>8</p>"))
    card = "<p class=now>0</p><i>A new card of the day</i>"
    for number in (0, 1):
        site.visit(site.page(number, foot=card))
    kept = Detector(
        TemplateNoise.from_dict(site.detector.noise.to_dict()), SharedTexts.from_dict(site.detector.shared.to_dict())
    )
    assert [*kept.noise.known()] == [*site.detector.noise.known()]
    seen = site.page(2, foot=card)
    assert kept.judge(seen, site.given[seen.page], site.now).reason == "template"
    seen = site.page(3, foot="<p class=now>9</p>")
    assert kept.judge(seen, site.given[seen.page], 0.0).reason == "noise"


def test_texts_that_are_not_stored_can_be_on_either_side() -> None:
    """A first fetch that was unchanged has the kept trace of its page, without a long page's last texts."""
    texts = [f"{'word ' * (MOST_KEPT // 100)}{number}" for number in range(30)]
    page, divided = (page_blocks("<p>".join(parts)) for parts in (texts, [*texts[:-1], *texts[-1].split(" ", 1)]))
    kept, now = Trace.unpacked(page.trace.packed()), divided.trace
    assert kept is not None
    assert None in kept.texts
    assert differences(kept, now)
    assert differences(now, kept)


BLOCKS = st.lists(st.tuples(st.sampled_from("abc"), st.text("xy z", min_size=1, max_size=4)), max_size=8)


@given(BLOCKS, BLOCKS)
@example([("a", "x"), ("a", "x"), ("b", "x")], [("a", "x"), ("b", "x"), ("a", "x")])
@tries(200)
def test_pages_differ_when_their_texts_do(one: list[tuple[str, str]], two: list[tuple[str, str]]) -> None:
    """Wherever one block ends, and whatever leads to it, unless other blocks stay there; a kept page tells the same."""
    pages = [page_blocks("".join(f"<p class={place}>{text}</p>" for place, text in side)) for side in (one, two)]
    before, now = (page.trace for page in pages)
    kept = Trace.unpacked(before.packed())
    assert kept is not None
    assert differences(kept, now) == differences(before, now)
    words = [" ".join(page.texts).split() for page in pages]
    if words[0] != words[1]:
        assert differences(before, now)
    if pages[0].texts == pages[1].texts:
        assert all(one.kind == "moved" for one in differences(before, now))
        if {*before.places}.isdisjoint(now.places):
            assert not differences(before, now)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("<ul class=o><li>a<li>b</ul><ul class=d><li>c</ul>", "<ul class=o><li>a</ul><ul class=d><li>b<li>c</ul>"),
        ("<tr><td>a<td><tr><td>b<td>c", "<tr><td><td>a<tr><td>b<td>c"),
        ("<p><meta itemprop=price content=5>", "<p><meta itemprop=lowPrice content=5>"),
        (
            '<script type=application/ld+json>{"start": 1}</script>',
            '<script type=application/ld+json>{"end": 1}</script>',
        ),
    ],
)
def test_a_text_that_moves_next_door_is_a_difference(before: str, now: str) -> None:
    """Its list, its column, its name in data: all texts are the same, in the same order."""
    one, two = page_blocks(before), page_blocks(now)
    assert one.texts == two.texts
    assert one.counts != two.counts
    assert [found.kind for found in differences(one.trace, two.trace)] == ["moved"]


def test_where_most_texts_of_a_place_are_random_those_that_never_differed_count() -> None:
    """Each price beside four teasers is told."""
    site = Site()

    def seen(number: int, price: int, drawn: int) -> PageBlocks:
        teasers = "".join(f"<p>Teaser {drawn}{slot}</p>" for slot in range(4))
        return site.page(number, foot=f"<section><p>For {price} euros</p>{teasers}</section>")

    for number in (0, 1, 2):
        site.visit(seen(number, 5, 10))
        site.probe(seen(number, 5, 20 + number), seen(number, 5, 30 + number))
    assert site.visit(seen(0, 5, 40)).reason == "noise"
    assert site.visit(seen(0, 6, 50)).kind == "page"


def test_a_page_without_the_element_is_without_what_it_says() -> None:
    """The place of a sentence that comes with a new element is of no page that has not got the element."""
    site = Site()
    notice = "<div class=notice><p>Sold out until May</p></div>"
    for number in range(4):
        site.visit(site.page(number))
    for number in (0, 1):
        assert site.visit(site.page(number, foot=notice)).kind == "page"
        site.visit(site.page(3))
    assert site.visit(site.page(2, foot=notice)).kind == "page"


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.lists(st.sampled_from(WORDS), max_size=12))
def test_runs_of_tokens_tell_all_that_was_replaced(one: list[str], two: list[str]) -> None:
    """Texts that differ have a run, and each run says what stands in the texts."""
    before, now = " ".join(one), " ".join(two)
    if before != now:
        runs = token_runs(before, now)
        assert runs
        assert all(old in before and new in now and old != new for _, _, old, new, *_ in runs)


@pytest.mark.parametrize("n", [1_000, 4_000])
def test_hostile_orders_are_compared_in_linear_time(n: int) -> None:
    """A page whose texts all stand elsewhere, and one that says the same over and over."""
    numbers = list(range(n))
    Random(1).shuffle(numbers)
    for side in (numbers, [number % 7 for number in numbers]):
        before, now = (page_blocks("".join(f"<p>{x}</p>" for x in texts)).trace for texts in (range(n), side))
        assert differences(before, now)
