"""What a request says of its page is taken over and kept: a refresher over a real database, without a crawl."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from crawlsched.crawl.collection import FoundPage
from crawlsched.crawl.deliveries import Delivery
from crawlsched.crawl.page_requests import AdmissionResult, PageRequest
from crawlsched.crawl.refresher import Refresher
from crawlsched.crawl.request_templates import RequestTemplate
from crawlsched.pages.marks import NEWS, RECRAWL, START, UNTRACKED
from tests import parts
from tests.rows import name_of

URL = "http://a.example/page"
Open = Callable[[], Refresher]


@pytest.fixture
def opened(tmp_path):
    """Open it, again and again; what was open before ends first."""
    settings = parts.settings(f"sqlite:///{tmp_path / 'crawl.db'}")
    with ExitStack() as last:

        def open_it():
            last.close()
            refresher = parts.refresher(settings, clock=lambda: 1_000.0)
            last.callback(parts.close, refresher)
            return refresher

        yield open_it


def _ask(
    refresher: Refresher, data: dict[str, Any] | None = None, *, url: str = URL, again: bool = False, **more: Any
) -> tuple[AdmissionResult, int]:
    """Ask for a page, and return what became of that and which page it is."""
    template = RequestTemplate(data) if data else None
    page = FoundPage(url, name_of(url), "a.example", more.pop("importance", None), template)
    result = refresher.admission.requested(PageRequest(page, again, **more), 1_000.0)
    return result, refresher.collection.index.page(name_of(url))


def _crawled(refresher: Refresher, page: int) -> None:
    """Let a page have been visited once."""
    refresher.planner.hold(page)
    refresher.planner.crawled(page, 1_000.0, None)


def test_the_newest_request_is_kept_over_a_restart(opened):
    """Callback, headers and data of the last request for a page are those of its next visit."""
    refresher = opened()
    _, page = _ask(refresher, {"callback": "parse_item", "meta": {"price": 10}})
    _crawled(refresher, page)
    assert _ask(refresher, {"callback": "parse_product", "meta": {"price": 12}}) == (AdmissionResult.KNOWN, page)
    refresher = opened()
    assert refresher.collection.facts_of(page).template_data == {"callback": "parse_product", "meta": {"price": 12}}
    marks = refresher.planner.pages.marks
    assert marks[page] & NEWS


def test_of_a_page_that_nobody_has_visited_the_first_request_of_each_run_counts(opened):
    """Also where its site has named it, or an earlier run; importance that is stated always counts."""
    refresher = opened()
    first, later = {"callback": "item", "meta": {"shelf": 1}}, {"callback": "look", "errback": "failed"}
    pages = [_ask(refresher, first)[1], _ask(refresher, first, url=URL + "/again", again=True)[1]]
    refresher.admission.named([FoundPage(URL + "/named", name_of(URL + "/named"), "a.example")], 1_000.0)
    admitted, named = _ask(refresher, first, url=URL + "/named", again=True)
    assert admitted is AdmissionResult.NEW
    for page, url in zip([*pages, named], (URL, URL + "/again", URL + "/named"), strict=True):
        assert _ask(refresher, later, url=url, importance=3.0) == (AdmissionResult.KNOWN, page)
        assert _ask(refresher, later, url=url, again=True) == (AdmissionResult.ONCE, page)
        assert refresher.collection.facts_of(page).template_data == first
        assert refresher.planner.pages.importance[page] == 3.0
    start = _ask(refresher, {"callback": "parse"}, again=True, is_start=True)
    assert start == (AdmissionResult.ONCE, pages[0])  # plain Scrapy delivers both
    refresher = opened()  # where the callbacks have other names
    assert _ask(refresher, {"callback": "parse_item"}) == (AdmissionResult.NEW, pages[0])
    assert _ask(refresher, later) == (AdmissionResult.KNOWN, pages[0])
    assert refresher.collection.facts_of(pages[0]).template_data == {"callback": "parse_item"}


def test_a_page_that_links_to_itself_keeps_its_callback(opened):
    """Scrapy's filter would have refused that request; with dont_filter it goes out once."""
    refresher = opened()
    _, page = _ask(refresher, {"callback": "parse"})
    assert _ask(refresher, {"callback": "parse_item"}, found_on=page) == (AdmissionResult.KNOWN, page)
    assert refresher.collection.facts_of(page).template_data == {"callback": "parse"}
    assert _ask(refresher, {"callback": "parse_item"}, found_on=page, again=True) == (AdmissionResult.ONCE, page)
    assert refresher.collection.facts_of(page).template_data == {"callback": "parse"}


def test_dont_filter_and_start_requests(opened):
    """A start request asks for a delivery, a second one of it goes out as it stands, as does any with dont_filter."""
    refresher = opened()
    _, page = _ask(refresher, again=True, is_start=True)
    assert _ask(refresher, again=True, is_start=True) == (AdmissionResult.ONCE, page)
    refresher = opened()
    assert not refresher.book.owed(page)
    assert _ask(refresher, again=True, is_start=True) == (AdmissionResult.NEW, page)  # nobody has visited it
    assert refresher.book.owed(page) == START
    assert _ask(refresher, again=True) == (AdmissionResult.ONCE, page)
    assert _ask(refresher, importance=3.0)[0] is AdmissionResult.KNOWN
    assert refresher.planner.pages.importance[page] == 3.0


def test_what_is_owed_is_given_once(opened):
    """What is asked for while a delivery is under way is not lost; behind untracked requests it is once in each run."""
    refresher = opened()
    _, page = _ask(refresher)
    _crawled(refresher, page)
    book = refresher.book
    facts = refresher.collection.facts_of(page)
    book.ask(page, RECRAWL, 1_000.0)
    book.begin(1, Delivery(page, 1_000.0, facts, owed=book.owed(page)))
    book.ask(page, RECRAWL, 1_000.0)
    book.untracked_sent(2, 1_000.0)
    book.failed(2, 1_000.0)
    book.called_back(1, 1_000.0)
    assert book.owed(page) == RECRAWL
    book.begin(3, Delivery(page, 1_000.0, facts, owed=RECRAWL))
    book.called_back(3, 1_000.0)
    assert book.owed(page) == 0  # no untracked request came of it this time
    refresher.planner.pages.marks[page] |= UNTRACKED
    assert book.owed(page) == 0
    refresher.planner.pages.crawled_at[page] = 999.0  # in an earlier run
    assert book.owed(page) == UNTRACKED
