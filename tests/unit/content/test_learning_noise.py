"""What the crawl does with noise: masks shared by templates, probes chosen, contents judged."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import pytest

from crawlsched.change_detection import NoiseMask, page_blocks
from crawlsched.content.judging import flaps_between, judged, kept_of, rebaselined
from crawlsched.content.noise_masks import NoiseMasks
from crawlsched.content.reading import Body, Content, read_content
from crawlsched.content.recipe_choice import Recipes
from crawlsched.settings import Settings
from crawlsched.store import Outcome, PageFacts
from crawlsched.visits.probes import Probe, Probes

RECIPES = Recipes(Settings.from_scrapy({}))
URL = "http://a/news/1"


def masks() -> NoiseMasks:
    return NoiseMasks(read=lambda template: None)


def read(markup: str, of: NoiseMasks, url: str = URL, first: Any = None, before: PageFacts | None = None) -> Content:
    body = Body(markup.encode(), "text/html", "utf-8", url)
    kept = None if before is None else kept_of(before)
    return read_content(body, RECIPES.of(url), of, first=first, before=kept)


def page(text: str, now: int) -> str:
    return f"<h1>Tea</h1><p>{text}</p><b class=now>{now} o'clock</b>"


def new_page() -> PageFacts:
    return PageFacts(0, URL, None, None, None, None, None, None, None, 0, None, 1)


def delivered(facts: PageFacts) -> PageFacts:
    return facts._replace(fingerprint=facts.pending_fingerprint or facts.fingerprint, pending_fingerprint=None)


# Masks


def test_pages_of_a_template_share_a_mask_and_others_do_not() -> None:
    """What is learned from one news page is ignored on the others, and on no other page."""
    shared = masks()
    template, _ = shared.of("http://a/news/1")
    shared.learn(template, [page_blocks(page("x", 1)), page_blocks(page("x", 2))])
    same = [read(page("x", now), shared, "http://a/news/2").fingerprint for now in (3, 4)]
    other = [read(page("x", now), shared, "http://a/shop/2").fingerprint for now in (3, 4)]
    assert same[0] == same[1]
    assert other[0] != other[1]


def test_a_folder_of_many_names_is_one_template() -> None:
    """/wiki/Tea and /wiki/Milk are pages and not templates: a probe for each would cost as much as crawling them."""
    shared = masks()
    templates = {shared.of(f"http://a/wiki/{name}")[0] for name in map(chr, range(ord("a"), ord("z") + 1))}
    assert len(templates) == 5
    assert "a/wiki/*" in templates
    again = NoiseMasks(lambda template: None, templates)
    assert again.of("http://a/wiki/a")[0] == "a/wiki/a"
    assert again.of("http://a/wiki/zebra")[0] == "a/wiki/*"


def test_a_mask_that_was_given_out_never_changes() -> None:
    """Rules and their id belong together, whatever is learned in another thread meanwhile."""
    shared = masks()
    template, before = shared.of(URL)
    after, is_surprised = shared.learn(template, [page_blocks(page("x", 1)), page_blocks(page("x", 2))])
    assert is_surprised
    assert (before.rules_id, before.n_probes) == ("", 0)
    assert shared.of(URL)[1] is after


def test_threads_that_learn_at_once_lose_nothing() -> None:
    """Twenty probes in five threads are twenty probes."""
    shared = masks()
    template, _ = shared.of(URL)

    def learn() -> None:
        for number in range(4):
            shared.learn(template, [page_blocks(page("x", number)), page_blocks(page("x", number + 1))])

    threads = [threading.Thread(target=learn) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared.of(URL)[1].n_probes == 20


def test_masks_beyond_the_limit_come_back_from_the_store() -> None:
    """The oldest leave memory, but none that is not written yet."""
    store: dict[str, Any] = {}
    shared = NoiseMasks(store.get, limit=3)
    fetches = [page_blocks(page("x", 1)), page_blocks(page("x", 2))]
    urls = [f"http://{host}/news/1" for host in "abcdefgh"]
    for number, url in enumerate(urls):
        template, _ = shared.of(url)
        shared.learn(template, fetches)
        data = shared.save(template, batch=number)
        if number < 6:
            store[template] = data
            shared.written(number)
    assert len(shared) <= 4
    assert all(shared.of(url)[1].n_probes == 1 for url in urls)


# Probes


def test_the_share_of_probed_changes_is_the_doubt() -> None:
    """A twelfth after ten that found nothing, all until five in a row have, or where a page looks as before."""
    learned, surprised = NoiseMask(), NoiseMask()
    for number in range(100):
        learned.learn([page_blocks(page("x", 1)), page_blocks(page("x", 1))])
        surprised.learn(
            [page_blocks(f"<p>a<b class={'abcdefghij'[number % 10] * (1 + number // 10)}>{n}") for n in (1, 2)]
        )
    probes = Probes(Random(1))
    content = read(page("x", 1), masks())
    n = 4_000
    for mask, expected in ((NoiseMask(), 1.0), (surprised, 1.0), (learned, 1 / 12)):
        share = sum(probes.is_wanted(0, content._replace(mask=mask), True) for _ in range(n)) / n
        assert share == pytest.approx(expected, abs=4 * 0.5 / n**0.5)
    for quiet, expected in ((5, 1 / 7), (4, 1.0)):
        young = NoiseMask()
        for _ in range(quiet):
            young.learn([page_blocks(page("x", 1)), page_blocks(page("x", 1))])
        known = NoiseMask.from_dict(young.to_dict())
        share = sum(probes.is_wanted(0, content._replace(mask=known), True) for _ in range(n)) / n
        assert share == pytest.approx(expected, abs=4 * 0.5 / n**0.5)
    assert all(probes.is_wanted(0, content._replace(mask=learned), True, returned=True) for _ in range(50))


def test_first_visits_share_the_probes_of_their_template() -> None:
    """While one is under way no other is asked for, and after three there are none."""
    probes, shared = Probes(Random(1)), masks()
    content = read(page("x", 1), shared)
    wanted = 0
    for number in range(1000):
        content = read(page("x", number), shared)
        if probes.is_wanted(0, content, None):
            wanted += 1
            probes.ask(Probe(number, 0, content, False, False, 0.0))
            assert not any(probes.is_wanted(0, content, None) for _ in range(20))
            probe = probes.next_due(lambda host: True)
            assert probe is not None
            read(page("x", number + 1), shared, first=probe.first.blocks)
            probes.ended(probe)
    assert wanted == 3


def test_a_quiet_site_is_asked_less_for_each_of_its_templates() -> None:
    """After five probes of any template that found nothing, a first visit and two changes do for another one."""
    probes, shared = Probes(Random(1)), masks()
    for number in range(5):
        probes.learned(f"example.com/{number}", is_surprised=False)
    young = NoiseMask()
    content = read(page("x", 1), shared)._replace(template="example.com/new")
    wanted = []
    for _ in range(3):
        wanted.append(probes.is_wanted(0, content._replace(mask=young), None))
        young.learn([page_blocks(page("x", 1)), page_blocks(page("x", 1))])
    assert wanted == [True, False, False]
    share = sum(probes.is_wanted(0, content._replace(mask=young), True) for _ in range(1000)) / 1000
    assert share == pytest.approx(young.doubt, abs=0.06)
    probes.learned("example.com/0", is_surprised=True)
    assert all(probes.is_wanted(0, content._replace(mask=young), True) for _ in range(50))


def test_a_probe_is_not_probed_and_documents_are_not_either() -> None:
    """Nor is anything when probes are switched off."""
    shared, probes = masks(), Probes(Random(1))
    first = read(page("x", 1), shared)
    assert not any(probes.is_wanted(0, read(page("x", 2), shared, first=first.blocks), True) for _ in range(50))
    document = read_content(Body(b'{"a": 1}', "application/json", None, URL), RECIPES.of(URL), shared)
    assert not any(probes.is_wanted(0, document, True) for _ in range(50))
    assert not any(Probes(Random(1), enabled=False).is_wanted(0, first, True) for _ in range(50))


def test_probes_wait_for_their_host_and_not_for_ever() -> None:
    """The one whose host is free goes first; the others are given up after their time."""
    probes, content = Probes(Random(1)), read(page("x", 1), masks())
    for number in range(3):
        probes.ask(Probe(number, number, content, True, False, float(number)))
    due = probes.next_due(lambda host: host == 1)
    assert due is not None
    assert due.page == 1
    assert [probe.page for probe in probes.give_up(2.0)] == [0]
    assert len(probes) == 1
    # Where there is never a slot in time, the page is judged without its probe the next time.
    assert [probes.is_wanted(0, content, True) for _ in range(3)] == [False, True, True]


def visits_until_living_again(n_surprises: int) -> int:
    """Count the visits that find nothing new until noise which has stopped counts again."""
    shared, probes = masks(), Probes(Random(3))
    template, _ = shared.of(URL)
    for number in range(n_surprises):
        shared.learn(template, [page_blocks(page("x", number)), page_blocks(page("x", number + 1))])
    n_visits = 0
    while shared.of(URL)[1].n_rules:
        content = read(page("x", 7), shared)  # it stands still from now on
        if probes.is_wanted(0, content, False):
            read(page("x", 7), shared, first=content.blocks)
        n_visits += 1
        assert n_visits < 6_000
    return n_visits


def test_noise_returns_to_the_living_although_nothing_looks_changed() -> None:
    """A hundredth of the visits that find nothing new are probed where something is ignored: enough to notice."""
    assert visits_until_living_again(3) > 300


def test_what_differed_only_once_returns_to_the_living_ten_times_as_soon() -> None:
    """It may have been an edit between the two fetches of a probe, which hides a block of all the template's pages."""
    assert 60 < visits_until_living_again(1) < 300


def test_all_that_looks_changed_is_probed_until_what_is_ignored_has_differed_twice() -> None:
    """Then what ten quiet probes said is enough."""
    once, probes = NoiseMask(), Probes(Random(1))
    for _ in range(20):
        once.learn([page_blocks(page("x", 1)), page_blocks(page("x", 2))])  # known, and goes on
    assert once.is_confirmed
    content = read(page("x", 1), masks())
    share = sum(probes.is_wanted(0, content._replace(mask=once), True) for _ in range(1000)) / 1000
    assert share < 0.2
    edited = NoiseMask.from_dict(once.to_dict())
    edited.learn([page_blocks(page("x", 1)), page_blocks(page("y", 2))])
    for _ in range(6):
        edited.learn([page_blocks(page("y", 1)), page_blocks(page("y", 2))])
    assert not edited.is_confirmed
    assert all(probes.is_wanted(0, content._replace(mask=edited), True) for _ in range(100))


# Judging


def test_a_new_mask_rebaselines_without_an_observation() -> None:
    """The page's other text is another recipe's, so it says nothing; its spider is left alone."""
    shared = masks()
    facts = delivered(judged(new_page(), read(page("x", 1), shared), (None, None), 0.0).facts)
    shared.learn(shared.of(URL)[0], [page_blocks(page("x", 1)), page_blocks(page("x", 2))])
    verdict = judged(facts, read(page("x", 3), shared), ('"e"', None), 0.0)
    assert (verdict.changed, verdict.is_new) == (None, False)
    assert verdict.facts.recipe == f"blocks/3/{shared.of(URL)[1].rules_id}"
    assert verdict.facts.etag == '"e"'
    assert judged(verdict.facts, read(page("x", 4), shared), (None, None), 0.0).changed is False
    assert judged(verdict.facts, read(page("y", 4), shared), (None, None), 0.0).changed is True


def test_an_edit_at_the_visit_on_which_the_mask_changes_is_found() -> None:
    """A block that neither the old rules nor the new ones ignore is new; by the old rules a page may be the same."""
    shared = masks()
    facts = delivered(judged(new_page(), read(page("x", 1), shared), (None, None), 0.0).facts)
    shared.learn(shared.of(URL)[0], [page_blocks(page("x", 1)), page_blocks(page("x", 2))])

    def changed(markup: str) -> bool | None:
        return judged(facts, read(markup, shared, before=facts), (None, None), 0.0).changed

    assert changed(page("an edit", 3)) is True
    assert changed(page("x", 1)) is False
    assert changed(page("x", 3)) is None


def test_what_returned_to_the_living_is_no_edit() -> None:
    """Its text was not kept while it was ignored: that it is there now is no reason to call the page changed."""
    shared = masks()
    template, _ = shared.of(URL)
    shared.learn(template, [page_blocks(page("x", 1)), page_blocks(page("x", 2))])
    facts = delivered(judged(new_page(), read(page("x", 3), shared), (None, None), 0.0).facts)
    while shared.of(URL)[1].n_rules:
        shared.learn(template, [page_blocks(page("x", 4))] * 2)
    assert judged(facts, read(page("x", 5), shared, before=facts), (None, None), 0.0).changed is False
    assert judged(facts, read(page("y", 5), shared, before=facts), (None, None), 0.0).changed is True


def test_a_change_that_was_not_delivered_is_owed_through_a_new_mask() -> None:
    """Re-baselining leaves it pending."""
    shared = masks()
    facts = judged(new_page(), read(page("x", 1), shared), (None, None), 0.0).facts
    shared.learn(shared.of(URL)[0], [page_blocks(page("x", 1)), page_blocks(page("x", 2))])
    kept = rebaselined(facts, read(page("x", 2), shared), (None, None))
    assert kept.pending_fingerprint is not None
    verdict = judged(kept, read(page("x", 3), shared), (None, None), 0.0)
    assert (verdict.changed, verdict.is_new) == (False, True)


def test_a_page_that_goes_to_and_fro_is_flapping_from_the_third_return_on() -> None:
    """A, B, A, B are changes; from then on they are none, and C is one again."""
    shared, facts, outcomes = masks(), new_page(), []
    for text in "ABABABACB":
        verdict = judged(facts, read(page(text, 0), shared), (None, None), 0.0)
        outcomes.append((verdict.outcome, verdict.changed, verdict.is_new))
        facts = delivered(verdict.facts)
    changed, flapping = (Outcome.CHANGED, True, True), (Outcome.FLAPPING, False, False)
    assert outcomes == [(Outcome.CHANGED, None, True), changed, changed, changed, *[flapping] * 3, changed, flapping]
    assert flaps_between(facts) == 3
    assert flaps_between(new_page()) == 0


def test_small_changes_are_ignored_until_they_add_up() -> None:
    """What is kept is the content that was delivered last, so ten edits of one word become one change."""
    shared, words = masks(), [f"word{number}" for number in range(100)]
    facts = delivered(judged(new_page(), read(page(" ".join(words), 0), shared), (None, None), 0.2).facts)
    changed = []
    for edit in range(0, 60, 5):
        words[edit] = f"edited{edit}"
        verdict = judged(facts, read(page(" ".join(words), 0), shared), ('"new"', None), 0.2)
        facts = delivered(verdict.facts)
        changed.append(verdict.changed)
    assert changed[0] is False
    assert facts.etag == '"new"'
    assert 1 <= changed.count(True) <= 4


def test_the_size_of_a_change_is_told() -> None:
    """One of three blocks with other words: three of the six phrases are gone, three are new."""
    shared = masks()
    before = "<p>one two three four five</p><p>six seven</p><p>eight</p>"
    facts = delivered(judged(new_page(), read(before, shared), (None, None), 0.0).facts)
    verdict = judged(facts, read(before.replace("five", "FIVE"), shared), (None, None), 0.0)
    assert verdict.size is not None
    assert verdict.size.changed_share == pytest.approx(1 / 3)
    assert verdict.size.similarity == pytest.approx(3 / 9)
