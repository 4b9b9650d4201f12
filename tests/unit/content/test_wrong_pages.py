"""Wrong pages: what a host serves in the place of others is found, and what only looks like it is not."""

from __future__ import annotations

from random import Random
from urllib.parse import urljoin

from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_detection import LivingBlocks
from crawlsched.content.judging import judged
from crawlsched.content.noise_masks import NoiseMasks
from crawlsched.content.reading import Body, Content, read_content
from crawlsched.content.wrong_pages import Suspicion, WrongPages, impossible_url
from crawlsched.store import PageFacts

WALL = "<h1>Please log in</h1><p>To read on you need an account, which costs nothing at all."
MASKS = NoiseMasks(read=lambda template: None)


def content(markup: str, content_type: str = "text/html") -> Content:
    return read_content(Body(markup.encode(), content_type, "utf-8", "http://a/b"), LivingBlocks(), MASKS)


def never_seen(page: int) -> PageFacts:
    return PageFacts(page, f"http://a/{page}", None, None, None, None, None, None, None, 0, None, 1)


def article(page: int, edit: str = "water") -> str:
    return f"<h1>Article {page}</h1><p>Number {page} tells of leaves and {edit}, of cups and of all that is {page}."


def seen(page: int, markup: str) -> PageFacts:
    """Facts of a page of which this was delivered."""
    facts = judged(never_seen(page), content(markup), (None, None), 0.0).facts
    return facts._replace(fingerprint=facts.pending_fingerprint, pending_fingerprint=None)


def suspect(wrong: WrongPages, facts: PageFacts, markup: str) -> Suspicion:
    now = content(markup)
    return wrong.suspect(0, facts, now, judged(facts, now, (None, None), 0.0))


def test_a_page_that_is_replaced_makes_us_ask_for_one_that_cannot_exist() -> None:
    """An edit does not; and what is known for a wrong page is one at every page, new ones included."""
    wrong = WrongPages(Random(1))
    assert suspect(wrong, seen(1, article(1)), article(1, "milk")) is Suspicion.NONE
    assert suspect(wrong, seen(2, article(2)), WALL) is Suspicion.ASK
    wrong.learn(0, content(WALL), is_told=True)
    assert suspect(wrong, seen(3, article(3)), WALL) is Suspicion.WRONG
    assert suspect(wrong, never_seen(4), WALL) is Suspicion.WRONG
    assert suspect(wrong, seen(1, article(1)), article(1, "milk")) is Suspicion.NONE


def test_three_pages_replaced_by_the_same_were_not() -> None:
    """Without any answer: the third page tells, and the first two are named when that is learned."""
    wrong = WrongPages(Random(1))
    found = [suspect(wrong, seen(1, article(1)), WALL)]
    wrong.answered(0, content(WALL).likeness)  # otherwise
    found += [suspect(wrong, seen(page, article(page)), WALL) for page in (2, 3)]
    assert found == [Suspicion.ASK, Suspicion.NONE, Suspicion.WRONG]
    assert sorted(page for page, _ in wrong.learn(0, content(WALL))) == [1, 2, 3]


def test_two_new_pages_with_one_content_are_asked_about_but_not_condemned() -> None:
    """The same article under two addresses is no wrong page."""
    wrong = WrongPages(Random(1))
    found = [suspect(wrong, never_seen(page), article(1)) for page in (1, 2)]
    wrong.answered(0, content(article(1)).likeness)  # otherwise
    found += [suspect(wrong, never_seen(page), article(1)) for page in (3, 4)]
    assert found == [Suspicion.NONE, Suspicion.ASK, Suspicion.NONE, Suspicion.NONE]


def test_no_page_is_judged_by_content_that_its_host_is_being_asked_about() -> None:
    """Pages that are visited before the answer is there wait for it, too."""
    wrong = WrongPages(Random(1))
    found = [suspect(wrong, seen(page, article(page)), WALL) for page in (1, 2)]
    assert found == [Suspicion.ASK, Suspicion.ASK]
    wrong.learn(0, content(WALL), is_told=True)
    wrong.answered(0, content(WALL).likeness)
    assert suspect(wrong, seen(3, article(3)), WALL) is Suspicion.WRONG


def test_a_page_that_lost_its_content_is_wrong_and_one_that_never_had_any_is_not() -> None:
    """An application that is drawn by scripts has no text from the start."""
    wrong = WrongPages(Random(1))
    assert suspect(wrong, seen(1, article(1)), "") is Suspicion.WRONG
    assert suspect(wrong, never_seen(2), "<div id=app></div>") is Suspicion.NONE
    assert suspect(wrong, seen(2, "<div id=app></div>"), "<div id=root></div>") is Suspicion.NONE


def test_questions_to_a_host_are_few() -> None:
    """However often pages are replaced, at most one request in twenty asks for what cannot exist."""
    wrong = WrongPages(Random(1))
    found = [
        suspect(wrong, seen(page, article(page)), f"<p>Other text of {chr(200 + page)}, altogether")
        for page in range(100)
    ]
    assert found.count(Suspicion.ASK) == 5
    assert Suspicion.WRONG not in found


def test_documents_that_are_no_pages_are_left_alone() -> None:
    """Many addresses of an interface may well answer with the same few words."""
    wrong = WrongPages(Random(1))
    out = content('{"in stock": 0}', "application/json")
    for page in range(10):
        before = judged(never_seen(page), content(f'{{"in stock": {page + 1}}}', "application/json"), (None, None), 0.0)
        facts = before.facts._replace(fingerprint=before.facts.pending_fingerprint, pending_fingerprint=None)
        assert wrong.suspect(0, facts, out, judged(facts, out, (None, None), 0.0)) is Suspicion.NONE


def test_it_can_be_switched_off_and_hosts_do_not_mix() -> None:
    """What one host does is not held against another."""
    off = WrongPages(Random(1), enabled=False)
    off.learn(0, content(WALL), is_told=True)
    assert suspect(off, seen(3, article(3)), WALL) is Suspicion.NONE
    wrong = WrongPages(Random(1))
    wrong.learn(1, content(WALL))
    assert suspect(wrong, never_seen(3), WALL) is Suspicion.NONE
    again = WrongPages(Random(1))
    again.load(0, wrong.to_list(1))
    assert suspect(again, never_seen(3), WALL) is Suspicion.WRONG


@given(st.sampled_from(["", "a", "a/b.html", "a/b?x=1", "a/b/"]), st.integers(0, 2**32))
def test_the_impossible_page_stands_beside_the_page(path: str, seed: int) -> None:
    """In the same folder, with the same ending, without a query."""
    url = f"https://example.com/{path}"
    asked = impossible_url(url, Random(seed))
    assert urljoin(asked, ".") == urljoin(url, ".")
    assert "?" not in asked
    assert asked.endswith(".html") == path.endswith(".html")


def test_error_pages_that_say_which_page_was_not_found_are_known_when_the_host_has_shown_one() -> None:
    """And the time. Pages that only say so themselves, with other numbers each, are not condemned by each other."""

    def not_found(address: str, time: str) -> Content:
        text = f"<h1>Sorry</h1><p>{address} was not found at {time}. Request 3f5a9c{time[-2:]}07b1.</p>"
        return read_content(Body(text.encode(), "text/html", "utf-8", address), LivingBlocks(), MASKS)

    wrong = WrongPages(Random(1))
    one, two = not_found("http://a/news/tea-1.html", "12:03:05"), not_found("http://a/news/7.html", "13:44:15")
    host_says = not_found("http://a/news/no-such-page-5d02_.html", "12:03:06")
    assert one.fingerprint != two.fingerprint
    facts = seen(1, article(1))
    assert wrong.suspect(0, facts, one, judged(facts, one, (None, None), 0.0)) is Suspicion.ASK
    assert one.likeness == two.likeness == host_says.likeness
    assert wrong.learn(0, host_says, is_told=True) == [(1, one.fingerprint.digest)]
    for facts in (seen(2, article(2)), never_seen(3)):
        assert wrong.suspect(0, facts, two, judged(facts, two, (None, None), 0.0)) is Suspicion.WRONG
    assert suspect(wrong, seen(4, article(4)), article(4, "milk")) is Suspicion.NONE


def _parking(address: str) -> Content:
    """A page that a host shows for every URL when its domain has expired, with the name of the URL in it."""
    name = address.rpartition("/")[2].removesuffix(".html")
    text = (
        f"<title>{name}</title><h1>This domain may be for sale!</h1><ul><li>Searches like {name}<li>Cheap flights"
        f"<li>Insurance</ul><p>The owner of a.example has not renewed it. Inquire about a.example at once."
    )
    return read_content(Body(text.encode(), "text/html", "utf-8", address), LivingBlocks(), MASKS)


def test_a_parking_page_in_the_place_of_all_pages_is_wrong() -> None:
    """The host is asked once; then its pages, and new ones, are known to be gone, whatever name they are given."""
    for addresses in (["http://a/"] * 5, [f"http://a/news/{name}.html" for name in ("tea", "cups", "pots", "x7", "y")]):
        wrong = WrongPages(Random(1))
        parked = [_parking(address) for address in addresses]
        facts = seen(1, article(1))
        assert wrong.suspect(0, facts, parked[0], judged(facts, parked[0], (None, None), 0.0)) is Suspicion.ASK
        host_says = _parking("http://a/" if addresses[0] == "http://a/" else "http://a/news/no-such-page-5d02_.html")
        assert wrong.learn(0, host_says, is_told=True) == [(1, parked[0].fingerprint.digest)]
        for page, now in enumerate(parked[1:], 2):
            facts = seen(page, article(page)) if page < 4 else never_seen(page)
            assert wrong.suspect(0, facts, now, judged(facts, now, (None, None), 0.0)) is Suspicion.WRONG
        assert suspect(wrong, seen(9, article(9)), article(9, "milk")) is Suspicion.NONE
