"""Wrong pages: what a host serves in the place of others is found, and what only looks like it is not."""

from random import Random
from urllib.parse import urljoin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.change_detection import Recipe
from crawlsched.change_detection.detector import Finding
from crawlsched.content.reading import Body, Content, read_content
from crawlsched.content.verdict import Circumstances, Refetch, judge
from crawlsched.crawl.wrong_pages import WrongPages
from crawlsched.store import Outcome, PageFacts

WALL = "<h1>Please log in</h1><p>To read on you need an account, which costs nothing at all."


def content(markup: str, content_type: str = "text/html", url: str = "http://a/b") -> Content:
    return read_content(Body(markup.encode(), content_type, "utf-8", url), Recipe("blocks"))


def never_seen(page: int, url: str = "") -> PageFacts:
    return PageFacts(page, url or f"http://a/{page}", None, None, None, None, None, None, None, 0, None, 1)


def article(page: int, edit: str = "water") -> str:
    return f"<h1>Article {page}</h1><p>Number {page} tells of leaves and {edit}, of cups and of all that is {page}."


def seen(page: int, markup: str, content_type: str = "text/html", url: str = "") -> PageFacts:
    """Facts of a page of which this was delivered."""
    finding = Finding(True, False, "first")
    facts = judge(never_seen(page, url), content(markup, content_type), (None, None), Circumstances(finding)).facts
    assert facts is not None
    return facts._replace(fingerprint=facts.pending_fingerprint, pending_fingerprint=None)


def suspect(wrong: WrongPages, facts: PageFacts, markup: str) -> Outcome | Refetch | None:
    return wrong.suspect(0, facts, content(markup))


def test_a_page_that_is_replaced_makes_us_ask_for_one_that_cannot_exist() -> None:
    """An edit does not; and what the host serves for such a page is wrong at every page that was delivered before."""
    wrong = WrongPages(Random(1))
    assert suspect(wrong, seen(1, article(1)), article(1, "milk")) is None
    assert suspect(wrong, seen(2, article(2)), WALL) is Refetch.IMPOSSIBLE_PAGE
    wrong.learn(0, content(WALL))
    assert suspect(wrong, seen(3, article(3)), WALL) is Outcome.WRONG
    assert suspect(wrong, seen(1, article(1)), article(1, "milk")) is None


def test_a_page_never_delivered_is_never_withheld() -> None:
    """Whatever is known of its content: the spider is to see it once."""
    wrong = WrongPages(Random(1))
    wrong.learn(0, content(WALL))
    assert suspect(wrong, never_seen(4), WALL) is None
    assert suspect(wrong, never_seen(5), "") is None


@pytest.mark.parametrize("url", ["http://a/", "http://a/index.html", "http://a"])
def test_a_home_page_is_not_the_error_page_of_its_host(url: str) -> None:
    """Though the host may serve it for all that it has not found."""
    wrong = WrongPages(Random(1))
    wrong.learn(0, content(WALL))
    assert suspect(wrong, seen(1, article(1), url=url), WALL) is None


def test_pages_that_say_the_same_words_now_are_fetched_twice_and_no_more() -> None:
    """Ten products are discontinued with the same words: that is what these pages say."""
    wrong = WrongPages(Random(1))
    found = [suspect(wrong, seen(page, article(page)), WALL) for page in range(1)]
    wrong.answered(0, content(WALL).likeness)  # otherwise: there is no such page
    found += [suspect(wrong, seen(page, article(page)), WALL) for page in range(1, 10)]
    assert found == [Refetch.IMPOSSIBLE_PAGE, *[Refetch.PAGE] * 9]


def test_a_wall_that_comes_and_goes_is_known_after_two_pages() -> None:
    """Each was itself again at the second fetch."""
    wrong = WrongPages(Random(1))
    assert not wrong.passed(0, "http://a/1", content(WALL))
    assert not wrong.passed(0, "http://a/1", content(WALL))
    assert wrong.passed(0, "http://a/2", content(WALL))
    assert suspect(wrong, seen(3, article(3)), WALL) is Outcome.WRONG


def test_no_page_is_judged_by_content_that_its_host_is_being_asked_about() -> None:
    """Pages that are visited before the answer is there wait for it, too."""
    wrong = WrongPages(Random(1))
    found = [suspect(wrong, seen(page, article(page)), WALL) for page in (1, 2)]
    assert found == [Refetch.IMPOSSIBLE_PAGE, Refetch.IMPOSSIBLE_PAGE]


def test_a_page_that_lost_its_content_is_wrong_and_one_that_never_had_any_is_not() -> None:
    """An application that is drawn by scripts has no text from the start."""
    wrong = WrongPages(Random(1))
    assert suspect(wrong, seen(1, article(1)), "") is Outcome.WRONG
    assert suspect(wrong, seen(2, "<div id=app></div>"), "<div id=root></div>") is None


def test_questions_to_a_host_are_few() -> None:
    """However often pages are replaced, at most one request in twenty asks for what cannot exist."""
    wrong = WrongPages(Random(1))
    found = [
        suspect(wrong, seen(page, article(page)), f"<p>Other text of {chr(200 + page)}, altogether and entirely")
        for page in range(100)
    ]
    assert found.count(Refetch.IMPOSSIBLE_PAGE) == 5
    assert Outcome.WRONG not in found


def test_documents_that_are_no_pages_are_left_alone() -> None:
    """Many addresses of an interface may well answer with the same few words."""
    wrong = WrongPages(Random(1))
    out = content('{"in stock": 0}', "application/json")
    for page in range(10):
        facts = seen(page, f'{{"in stock": {page + 1}}}', "application/json")
        assert wrong.suspect(0, facts, out) is None


def test_it_can_be_switched_off_and_hosts_do_not_mix() -> None:
    """What one host does is not held against another; and what is known survives."""
    off = WrongPages(Random(1), enabled=False)
    off.learn(0, content(WALL))
    assert suspect(off, seen(3, article(3)), WALL) is None
    wrong = WrongPages(Random(1))
    wrong.learn(1, content(WALL))
    assert suspect(wrong, seen(3, article(3)), WALL) is Refetch.IMPOSSIBLE_PAGE
    again = WrongPages(Random(1))
    again.load(0, wrong.to_list(1))
    assert suspect(again, seen(3, article(3)), WALL) is Outcome.WRONG


@given(st.sampled_from(["", "a", "a/b.html", "a/b?x=1", "a/b/"]), st.integers(0, 2**32))
def test_the_impossible_page_stands_beside_the_page(path: str, seed: int) -> None:
    """In the same folder, with the same ending, without a query."""
    url = f"https://example.com/{path}"
    asked = WrongPages(Random(seed)).impossible_url(url)
    assert urljoin(asked, ".") == urljoin(url, ".")
    assert "?" not in asked
    assert asked.endswith(".html") == path.endswith(".html")


NOT_FOUND = "<h1>Sorry</h1><p>{url} was not found at {time}. Request 3f5a9c{second}07b1.</p>"
PARKED = (
    "<title>{name}</title><h1>This domain may be for sale!</h1><ul><li>Searches like {name}<li>Cheap flights"
    "<li>Insurance</ul><p>The owner of a.example has not renewed it. Inquire about a.example at once."
)


@pytest.mark.parametrize("text", [NOT_FOUND, PARKED])
@pytest.mark.parametrize("names", [["tea-1", "7", "cups", "x7", "no-such-page-5d02_"], ["x"] * 5])
def test_what_names_the_page_and_the_time_is_known_in_the_place_of_all_pages(text: str, names: list[str]) -> None:
    """An error page, or that of a domain that has expired: the host is asked once."""
    wrong = WrongPages(Random(1))
    shown = []
    for second, name in enumerate(names, 10):
        url, time = f"http://a/news/{name}.html", f"12:03:{second}"
        shown.append(content(text.format(url=url, name=name, time=time, second=second), url=url))
    assert len({page.likeness for page in shown}) == 1
    assert wrong.suspect(0, seen(1, article(1)), shown[0]) is Refetch.IMPOSSIBLE_PAGE
    wrong.learn(0, shown[-1])
    for page, now in enumerate(shown[1:], 2):
        assert wrong.suspect(0, seen(page, article(page)), now) is Outcome.WRONG
    assert suspect(wrong, seen(9, article(9)), article(9, "milk")) is None
