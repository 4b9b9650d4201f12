"""A page whose turn comes before its facts were read: another thread reads them, and the visit follows at once."""

import sqlite3
import time
from collections import Counter
from contextlib import closing

import numpy as np
import pytest

from crawlsched.crawl.refresher import Refresher
from tests import parts
from tests.waiting import wait_until

URLS = [f"http://a.example/{number}" for number in range(5)]


@pytest.fixture
def known(tmp_path):
    """The database of five pages that wait for their first visits."""
    path = tmp_path / "crawl.db"
    refresher = parts.refresher(parts.settings(f"sqlite:///{path}", bandwidth=100.0))
    for url in URLS:
        parts.ask(refresher, url)
    parts.close(refresher)
    return path


def opened(path, **more) -> Refresher:
    return parts.refresher(parts.settings(f"sqlite:///{path}", bandwidth=100.0, **more))


def slot(refresher: Refresher) -> str | None:
    """Let one slot come; return the URL of the page whose visit begins."""
    begun = next(refresher.dispatcher.next_pages(refresher.clock(), parts.any_host), None)
    return None if begun is None else begun[1].url


def all_slots(refresher: Refresher, seconds: float = 5.0) -> list[str]:
    """Let slots come until none is used and none waits; return the URLs of the pages."""
    visited, until = list[str](), time.monotonic() + seconds
    while time.monotonic() < until:
        if (url := slot(refresher)) is not None:
            visited.append(url)
        elif not refresher.collection.reader.has_picked:
            break
    return visited


def executed(path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement, values)


def test_each_page_is_visited_once(known):
    """The slot that finds the page waits meanwhile; a crawl that does not take the page then is silent."""
    refresher = opened(known)
    assert slot(refresher) is None
    assert refresher.collection.reader.has_picked
    wait_until(lambda: refresher.silence(refresher.clock() + 1e6) > 0.0)
    assert Counter(all_slots(refresher)) == Counter(URLS)
    parts.close(refresher)


def test_a_forced_page_still_goes_first(known):
    """Its place is not taken by a page that was in line after it."""
    refresher = opened(known)
    refresher.planner.force(np.array([3]), refresher.clock())
    assert all_slots(refresher)[0] == URLS[3]
    assert refresher.stats["crawlsched/dispatched/forced"] == 1
    parts.close(refresher)


def test_first_start_requests_go_in_their_order(known):
    """They wait for one another, and known pages wait for them."""
    refresher = opened(known, starts_first=3)
    line = [4, 0, 2]
    refresher.starts.begin(refresher.clock(), 100.0)
    for page in line:
        refresher.starts.asked(page)
    visited = list[str]()
    while len(visited) < 3:
        begun = refresher.dispatcher.next_start(refresher.clock(), parts.any_host)
        assert not refresher.others_may_go(refresher.clock())
        visited += [] if begun is None else [begun[1].url]
    assert visited == [URLS[page] for page in line]
    parts.close(refresher)


def test_a_host_that_rests_by_then_is_not_asked(known):
    """The page goes when its host may be asked again."""
    refresher = opened(known)
    assert slot(refresher) is None
    now = refresher.clock()
    rest = lambda host, at: now + 60.0  # noqa: E731
    wait_until(
        lambda: not (next(refresher.dispatcher.next_pages(now, rest), None) or refresher.collection.reader.has_picked)
    )
    refresher.planner.frontier.release_host(0)
    assert Counter(all_slots(refresher)) == Counter(URLS)
    parts.close(refresher)


def test_one_pass_of_two_visits_has_no_third(known):
    """Pages that wait for their facts when the limit is reached are not visited."""
    refresher = opened(known, one_pass=2)
    assert len(all_slots(refresher)) == 2
    parts.close(refresher)


def test_a_page_forgotten_meanwhile_is_not_visited(known):
    """Nor are its facts kept, which would be another page's as soon as this one has its row."""
    refresher = opened(known)
    assert slot(refresher) is None
    (waits,) = refresher.planner.in_flight_pages
    refresher.collection.forget(np.array([waits]))
    assert Counter(all_slots(refresher)) == Counter(url for row, url in enumerate(URLS) if row != waits)
    assert waits not in refresher.collection.facts
    parts.close(refresher)


def test_a_page_whose_row_is_lost_holds_nothing_up(known, caplog):
    """It is reported and waits, and all others are visited."""
    refresher = opened(known)
    executed(known, "DELETE FROM pages WHERE url = ?", URLS[1])
    assert Counter(all_slots(refresher)) == Counter(url for url in URLS if url != URLS[1])
    assert "The page number 1 is not in the database any more" in caplog.text
    parts.close(refresher)


def test_pages_wait_for_a_store_that_does_not_answer(known, caplog):
    """Nothing is visited, nothing is lost, and the visits follow once it answers."""
    refresher = opened(known)
    executed(known, "ALTER TABLE pages RENAME TO away")
    assert slot(refresher) is None
    wait_until(lambda: "Reading what the next visits need failed" in (refresher.flush(time.time()) or caplog.text))
    assert slot(refresher) is None
    assert refresher.silence(refresher.clock() + 1e6) == 0.0
    executed(known, "ALTER TABLE away RENAME TO pages")
    refresher.flush(refresher.clock())
    assert Counter(all_slots(refresher)) == Counter(URLS)
    parts.close(refresher)
