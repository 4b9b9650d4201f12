"""Deliveries: complete when the callback, its items and its requests have ended, in whatever order."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawlsched.crawl.deliveries import Delivery
from crawlsched.crawl.refresher import Refresher
from tests import parts

URLS = [f"http://a.example/{number}" for number in range(2)]


@pytest.fixture(scope="module")
def refresher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refresher]:
    """A crawl that knows two pages, 0 and 1."""
    made = parts.refresher(parts.settings(f"sqlite:///{tmp_path_factory.mktemp('book') / 'crawl.db'}"))
    made.admission.named(parts.found(URLS), made.clock())
    yield made
    parts.close(made)


def _begin(refresher: Refresher, token: int, page: int, now: float = 0.0, owed: int = 0) -> None:
    refresher.book.begin(token, Delivery(page, now, refresher.collection.facts_of(page), owed=owed))


def _ends(refresher: Refresher) -> tuple[int, int]:
    """How many deliveries were completed, and how many were not."""
    counts = refresher.stats["crawlsched/delivered"], refresher.stats["crawlsched/undelivered"]
    refresher.stats.clear()
    return counts


def test_deliveries_whose_end_is_never_announced_are_given_up(refresher: Refresher) -> None:
    """A response that another component swallowed does not wait for ever."""
    _begin(refresher, 1, 0)
    _begin(refresher, 2, 1, now=10.0)
    refresher.book.give_up(started_before=5.0)
    assert (_ends(refresher), refresher.book.pages()) == ((0, 1), [1])
    refresher.book.called_back(2, now=30.0)


def test_a_request_that_is_no_page_is_known_until_its_callback_and_items_have_ended(refresher: Refresher) -> None:
    """Its end is no page's delivery, nor is its failure one that is counted."""
    book = refresher.book
    for token in (2, 3):
        book.untracked_sent(token, now=1.0)
    book.yielded(2)
    book.called_back(2, now=2.0)
    assert book.n_untracked == 2
    _ends(refresher)
    book.output_ended(2, now=3.0)
    book.failed(3, now=3.0)
    assert (book.n_untracked, _ends(refresher)) == (0, (0, 0))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 6), st.randoms())
def test_it_ends_once_whatever_the_order(refresher: Refresher, n_yielded: int, random: object) -> None:
    """Items and requests end in any order, before or after the callback; then the page is delivered, exactly once."""
    book = refresher.book
    _ends(refresher)
    _begin(refresher, 9, 0)
    events = [lambda: book.called_back(9, now=1.0)]
    for _ in range(n_yielded):
        book.yielded(9)
        events.append(lambda: book.output_ended(9, now=1.0))
    random.shuffle(events)  # type: ignore[attr-defined]
    for event in events:
        assert refresher.stats["crawlsched/delivered"] == 0
        event()
    assert (_ends(refresher), len(book)) == ((1, 0), 0)
