"""The detector: evidence is counted by block, place and page, and what an edit can explain is told."""

from __future__ import annotations

from collections import deque
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlsched.change_detection import (
    Detector,
    Finding,
    Seen,
    SharedTexts,
    TemplateNoise,
    packed_trace,
    page_blocks,
    unpacked_trace,
)
from crawlsched.change_detection.trace import MOST_ENTRIES, differences, trace_of

WORDS = ["leaves", "water", "pot", "tray", "sugar", "milk", "honey", "lemon", "spoon"]
PAGE = "<html><title>{name}</title><body><header>{top}</header><main><h1>{name}</h1><p>{text}</p>{more}</main>{foot}"


def page(number: int, text: str = "", *, top: str = "Shop", more: str = "", foot: str = "") -> Seen:
    name = f"Cup {'abcdefghijklmnop'[number]}"
    words = text or " ".join(
        Random(number).sample(["leaves", "water", "pot", "tray", "sugar", "milk", "honey", "lemon", "spoon"], 6)
    )
    markup = PAGE.format(name=name, top=top, text=words, more=more, foot=foot)
    return Seen(f"http://a/{number}", page_blocks(markup))


class Site:
    """A detector, and what was given of each page."""

    def __init__(self) -> None:
        self.detector = Detector(TemplateNoise(), SharedTexts())
        self.given: dict[int, list[int]] = {}

    def visit(self, seen: Seen, now: float = 0.0, *, asked_at: float | None = None, announced: bool = False) -> Finding:
        given = self.given.get(seen.page)
        finding = self.detector.judge(seen, given, now, asked_at=asked_at, announced=announced)
        if finding.is_news or finding.reason == "template":
            self.detector.accept(seen, finding)
            self.given[seen.page] = list(seen.trace)
        return finding

    def probe(self, first: Seen, second: Seen) -> bool | None:
        return self.detector.learn_at_once(first, second, self.given.get(first.page), 0.0)


def test_what_differs_at_once_on_two_pages_is_noise_for_all() -> None:
    """And a word beside it is seen all the same; on one page alone it is not enough."""
    site = Site()
    for number in range(4):
        site.visit(page(number, foot="<p class=now>0</p>"))
    assert site.probe(page(0, foot="<p class=now>1</p>"), page(0, foot="<p class=now>2</p>"))
    assert site.visit(page(3, foot="<p class=now>7</p>")).is_news
    assert site.probe(page(1, foot="<p class=now>3</p>"), page(1, foot="<p class=now>4</p>"))
    found = site.visit(page(2, foot="<p class=now>5</p>"))
    assert (found.is_news, found.reason) == (False, "noise")
    assert "p.now differed in 2 of 2" in found.ignored[0]
    assert site.visit(page(2, "other words", foot="<p class=now>6</p>")).kind == "page"


def test_what_differed_at_once_on_another_template_of_the_site_is_suspect_until_the_template_is_known() -> None:
    """Alone it is, and it is not noise yet; a word beside it is not. After three second fetches its own count."""
    site = Site()
    site.visit(page(0, foot="<p class=now>0</p>"))
    site.probe(page(0, foot="<p class=now>1</p>"), page(0, foot="<p class=now>2</p>"))
    kept = SharedTexts.from_dict(site.detector.shared.to_dict())
    other = Site()
    other.detector = Detector(TemplateNoise(), kept)
    other.visit(page(1, foot="<p class=now>0</p>"))
    alone = other.detector.judge(page(1, foot="<p class=now>3</p>"), other.given[page(1).page], 0.0, learns=False)
    beside = page(1, "milk and honey", foot="<p class=now>3</p>")
    assert (alone.is_news, alone.is_suspect) == (True, True)
    assert not other.detector.judge(beside, other.given[page(1).page], 0.0, learns=False).is_suspect
    for _ in range(3):
        other.probe(page(1, foot="<p class=now>3</p>"), page(1, foot="<p class=now>3</p>"))
    assert not other.visit(page(1, foot="<p class=now>4</p>")).is_suspect


def test_what_differs_at_once_as_on_two_pages_of_other_templates_is_noise_at_its_first_second_fetch() -> None:
    """Three pages of a site agree, as they would have to of one template; a page on which it stood still does not."""

    def probed(number: int, noise: TemplateNoise, shared: SharedTexts, *, moves: bool = True) -> Detector:
        detector = Detector(noise, shared)
        first, second = (page(number, foot=f"<p class=x>{'ab'[fetch * moves] * 3}</p>") for fetch in (0, 1))
        detector.learn_at_once(first, second, None, 0.0)
        return detector

    def is_told(detector: Detector) -> bool:
        given = page(5, foot="<p class=x>cow</p>").trace
        return detector.judge(page(5, foot="<p class=x>owl</p>"), given, 0.0, learns=False).is_news

    shared = SharedTexts()
    for number in (0, 1):
        probed(number, TemplateNoise(), shared)
    assert is_told(probed(2, TemplateNoise(), SharedTexts()))
    assert is_told(probed(2, TemplateNoise(), shared, moves=False))
    assert not is_told(probed(2, TemplateNoise(), shared))


def test_two_variants_of_one_url_are_one_page_for_noise() -> None:
    """Whoever asks for a URL, with whatever cookies: what differs at it alone is no noise of the others."""
    site = Site()
    for number in range(4):
        site.visit(page(number, foot="<p class=now>0</p>"))
    for variant in ("1", "3"):
        site.probe(page(0, foot=f"<p class=now>{variant}</p>"), page(0, foot=f"<p class=now>{variant}0</p>"))
    assert site.visit(page(3, foot="<p class=now>7</p>")).is_news


def test_accidents_teach_nothing() -> None:
    """A second answer that is cut, that is what was given before, or that is another page."""
    site = Site()
    site.visit(page(0))
    whole = page(0, more="".join(f"<p>{word}</p>" for word in "abcdefgh"))
    cut = Seen("http://a/0", page_blocks(PAGE.format(name="Cup a", top="Shop", text="", more="", foot="")))
    assert site.probe(whole, page(0)) is None  # stale
    assert site.probe(whole, cut) is None
    assert site.probe(whole, Seen("http://a/0", page_blocks("<div class=wall><h2>Log in</h2><b>now"))) is None
    assert site.detector.noise.n_probes == 0


def test_a_second_fetch_may_say_what_was_given_before() -> None:
    """Its trace is then taken over and not made anew."""
    site = Site()
    site.visit(page(0))
    second = page(0)
    second.is_as(site.given[second.page])
    assert site.probe(page(0, "other words"), second) is None
    assert site.probe(second, page(0, "other words")) is True


def test_an_edit_between_two_fetches_hides_nothing_on_other_pages() -> None:
    """Even where that happens on two pages: elsewhere second fetches have confirmed what changed."""
    site = Site()
    for number in range(6):
        site.visit(page(number, more="<b class=k>1</b>"))
    for number in range(6):
        site.detector.judge(page(number, more="<b class=k>2</b>"), site.given[page(number).page], 0.0)
    for number in (2, 3, 4, 5):
        site.probe(page(number, more="<b class=k>2</b>"), page(number, more="<b class=k>2</b>"))
    for number in (0, 1):
        site.probe(page(number, more="<b class=k>2</b>"), page(number, more="<b class=k>3</b>"))
    assert site.visit(page(5, more="<b class=k>9</b>")).is_news


def test_an_edit_of_the_header_is_told_once_and_of_the_article_always() -> None:
    """Of the first page as the template's; the same price on all pages is a change of each."""
    site = Site()
    for number in range(5):
        site.visit(page(number, more="<b>19</b>"))
    kinds = [site.visit(page(number, top="Shop, new", more="<b>19</b>")).kind for number in range(5)]
    assert kinds == ["template", "", "", "", ""]
    kinds = [site.visit(page(number, top="Shop, new", more="<b>21</b>")).kind for number in range(5)]
    assert kinds == ["page"] * 5


def test_a_header_in_which_pages_are_in_different_states_is_theirs() -> None:
    """One page still says what another one has replaced: then it is a state of pages, and told of each."""
    site = Site()
    for number in range(5):
        site.visit(page(number, top="All works"))
    assert site.visit(page(0, top="Outage")).is_news
    site.visit(page(1, top="All works"))
    assert site.visit(page(2, top="Outage")).kind == "page"
    assert site.visit(page(3, top="Outage")).kind == "page"


@pytest.mark.parametrize(("asked_at", "kinds"), [(9.0, ["", ""]), (10.5, ["page", "page"])])
def test_an_answer_that_was_on_its_way_when_the_header_was_edited_is_no_other_state(
    asked_at: float, kinds: list[str]
) -> None:
    """It came after the first page with the new header, and was asked for before; later it would count."""
    site = Site()
    for number in range(5):
        site.visit(page(number, top="Tea 1.3"))
    assert site.visit(page(0, top="Tea 1.4"), 10.0, asked_at=9.0).kind == "template"
    site.visit(page(1, top="Tea 1.3"), 11.0, asked_at=asked_at)
    assert [site.visit(page(number, top="Tea 1.4"), 12.0, asked_at=11.0).kind for number in (2, 3)] == kinds


def test_a_release_among_a_page_s_own_words_is_put_back() -> None:
    """By words of other pages, and by the hash of what was given."""
    site = Site()

    def titled(number: int, release: str) -> Seen:
        name = "abcdefgh"[number]
        return Seen(f"http://a/{number}", page_blocks(f"<title>Cup {name} (Tea {release} guide)</title><p>{name}</p>"))

    for number in range(6):
        site.visit(titled(number, "1.3"))
    kinds = [site.visit(titled(number, "1.4")).kind for number in range(6)]
    assert kinds == ["template", "", "", "", "", ""]


def test_counters_are_learned_from_visits_and_edits_of_all_pages_are_not() -> None:
    """What changes again and again on all pages, and alone, is noise; what changes once on each is not."""
    site = Site()
    told = []
    for visit in range(6):
        for number in range(5):
            told.append(site.visit(page(number, more=f"<i class=k>{100 * visit + number}</i>")).is_news)
    assert sum(told[5:]) <= 10
    assert not any(told[-10:])
    once = Site()
    for number in range(8):
        once.visit(page(number, more="<i class=k>1</i>"))
    assert all(once.visit(page(number, more=f"<i class=k>{50 + number}</i>")).is_news for number in range(8))


def test_digits_that_change_whenever_that_is_announced_are_told() -> None:
    """Visits that announcements bring find changes: they look as what changes by itself, and are not."""
    site = Site()
    for visit in range(12):
        told = [
            site.visit(page(number, more=f"<i class=count>{100 * visit + number}</i>"), announced=True).is_news
            for number in range(5)
        ]
    assert all(told)


def test_a_price_that_changes_at_each_visit_is_told() -> None:
    """By its name, or by a sign of money, a place is never ignored on the evidence of visits alone."""
    site = Site()
    for visit in range(8):
        found = [site.visit(page(number, more=f"<i>€ {visit}.{number}</i>")) for number in range(5)]
    assert all(finding.is_news for finding in found)


def test_what_is_known_survives_as_plain_data() -> None:
    """Noise and shared texts come back from what the store keeps; of what earlier versions kept nothing does."""
    site = Site()
    for number in range(4):
        site.visit(page(number, foot="<p class=now>0</p>"))
    for number in (0, 1):
        site.probe(page(number, foot="<p class=now>1</p>"), page(number, foot="<p class=now>2</p>"))
    noise = TemplateNoise.from_dict(site.detector.noise.to_dict())
    shared = SharedTexts.from_dict(site.detector.shared.to_dict())
    again = Detector(noise, shared)
    assert not again.judge(page(2, foot="<p class=now>9</p>"), site.given[page(2).page], 0.0).is_news
    assert again.judge(page(2, top="Shop!"), list(page(2).trace), 0.0).kind == "template"
    assert TemplateNoise.from_dict({"max_rules": 1_024}).n_probes == 0
    assert SharedTexts.from_dict({"samples": []}).to_dict()["counts"] == []


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=12), st.data())
def test_a_page_differs_from_another_trace_unless_it_reads_the_same(
    blocks: list[tuple[str, str]], data: st.DataObject
) -> None:
    """Whatever is edited, put in, taken out or moved: nothing differs only where the same texts follow each other."""
    other = data.draw(st.permutations(blocks)) if blocks else []
    other = other[: data.draw(st.integers(0, len(other)))] + data.draw(st.sampled_from([[], [("a", "new")]]))
    one, two = (
        page_blocks("".join(f"<p class={place}>{text}</p>" for place, text in side)) for side in (blocks, other)
    )
    found = differences(trace_of(one)[0], *trace_of(two))
    assert bool(found) == (list(one.texts.values()) != list(two.texts.values()))


@settings(max_examples=10)
@given(st.integers(500, 1_500))
def test_traces_of_long_pages_stay_short_and_show_each_edit(n: int) -> None:
    """512 entries at most, 8 bytes each; what is too much is kept as one entry for each path."""
    texts = [f"text {number}" for number in range(n)]
    edited = [*texts[:7], "edited", *texts[8:]]
    one, two = (
        trace_of(page_blocks("".join(f"<li class={'ab'[len(t) % 2]}>{t}" for t in side))) for side in (texts, edited)
    )
    assert len(one[0]) <= MOST_ENTRIES
    assert differences(one[0], *two)
    assert list(unpacked_trace(packed_trace(one[0])) or []) == list(one[0])


def _documented(number: int, entries: list[str], *, more: str = "", foot: str = "2020") -> Seen:
    """Return a page as a generator of documentation builds it: its own entry of the menu has another class."""
    name = entries[number]
    menu = "".join(
        f'<li class="toctree-l1{" current" * (entry == name)}"><a class="{"current " * (entry == name)}internal" '
        f'href="/{entry}">{entry}</a></li>'
        for entry in entries
    )
    own = Random(name).sample(["leaves", "water", "pot", "tray", "sugar", "milk", "honey", "lemon", "spoon"], 6)
    paragraphs = "".join(f"<p>{name} needs {word}</p>{more}" for word in own[:3])
    markup = (
        f'<div class="wy-grid-for-nav"><nav class="side"><ul>{menu}</ul></nav><div class="nav-content-wrap">'
        f'<div class="rst-content"><div class="section"><h1>{name}</h1>{paragraphs}</div>'
        f"<footer><div><p>{foot}</p></div></footer></div></div></div>"
    )
    return Seen(f"http://a/{name}", page_blocks(markup))


ENTRIES = ["asyncio", "bells", "concurrent", "dask", "gui", "keras", "notebook", "rich"]


def _kinds_of_all(site: Site, entries: list[str], **more: str) -> list[str]:
    kinds = []
    for number, entry in enumerate(entries):
        seen = _documented(number, entries, **more)
        if entry in ENTRIES:
            kinds.append(site.visit(seen).kind)
        else:
            site.visit(seen)
    return kinds


def test_what_is_put_into_a_menu_is_told_once_whichever_entry_is_the_pages_own() -> None:
    """And so is what is edited in the footer below the content, although pages lie in the part named content, too."""
    site = Site()
    _kinds_of_all(site, ENTRIES)
    assert [*filter(None, _kinds_of_all(site, [*ENTRIES[:4], "discord", *ENTRIES[4:]]))] == ["template"]
    assert [*filter(None, _kinds_of_all(site, [*ENTRIES[:4], "discord", *ENTRIES[4:]], foot="2021"))] == ["template"]
    assert [*filter(None, _kinds_of_all(site, ENTRIES, foot="2021"))] == ["template"]


def test_what_all_pages_say_anew_in_their_content_is_told_of_each() -> None:
    """Around it stands an element whose class speaks of navigation: it holds the whole page."""
    site = Site()
    _kinds_of_all(site, ENTRIES)
    assert _kinds_of_all(site, ENTRIES, more="<p>[view source]</p>") == ["page"] * len(ENTRIES)


@pytest.mark.parametrize("seed", range(20))
def test_pages_that_are_edited_every_few_seconds_are_no_noise(seed: int) -> None:
    """A second fetch comes some seconds after the first and often finds the next edit; most pages stand still there."""
    rng, site = Random(seed), Site()

    def shop(number: int, version: int) -> Seen:
        return page(
            number, f"Revision {version} of what is told here", more=f"<p class=price>Price {100 + version}</p>"
        )

    versions = dict.fromkeys(range(12), 0)
    for number in versions:
        site.visit(shop(number, 0))
    hidden = 0
    for _ in range(15):
        for number in versions:
            is_fast = number < 5
            versions[number] += is_fast
            first = shop(number, versions[number])
            later = versions[number] + (is_fast and rng.random() < 0.4)
            given = site.given[first.page]
            finding = site.visit(first)
            hidden += is_fast and not finding.is_news
            if is_fast and rng.random() < 0.3:
                site.detector.learn_at_once(first, shop(number, later), given, 0.0)
    assert hidden <= 3


def things_in(thing: object) -> int:
    """Count all that hangs on an object: what is in its attributes, dictionaries, lists, sets and tuples."""
    if isinstance(thing, dict):
        return len(thing) + sum(things_in(part) for pair in thing.items() for part in pair)
    if isinstance(thing, (list, tuple, set, frozenset, deque)):
        return len(thing) + sum(map(things_in, thing))
    slots = {name: getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ())}
    return things_in({**slots, **getattr(thing, "__dict__", {})}) if slots or hasattr(thing, "__dict__") else 0


def test_what_is_learned_of_a_site_does_not_grow_with_its_edits() -> None:
    """Pages that say something new at every visit, for ever, teach no more than the last of it."""
    site, rng, sizes = Site(), Random(1), []
    for visit in range(16 * 300):
        news = " ".join(rng.choices(WORDS, k=8)) + f" {rng.randrange(10**9)}"
        menu = f"<p class=menu>{rng.choice(WORDS)} {rng.randrange(10**6)}</p>" * rng.randrange(3)
        site.visit(page(visit % 16, news, more=f"<p>{rng.choice(WORDS)}</p>", foot=menu), now=float(visit))
        if visit % 1_200 == 1_199:
            sizes.append(things_in([site.detector.noise, site.detector.shared]))
    assert sizes[-1] <= 1.1 * sizes[0], sizes
