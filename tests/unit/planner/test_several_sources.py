"""Several sources of one page add up where they announce different changes, and count once where the same ones."""

import numpy as np
import pytest

from crawlsched.pages import Pages
from crawlsched.planner import Planner
from crawlsched.planner.evidence.further_sources import MOST_SOURCES, FurtherSources
from tests.planners import crawled_pages, never_rests

FIRST, SECOND = 0, 1


def _counts(planner: Planner) -> list[int]:
    return [one.n_signals for one in planner.further.of(0)]


def test_announcements_far_apart_add_up() -> None:
    """Each source counts its own, and the evidence is the sum of what each is worth."""
    planner = crawled_pages(1, sources=(FIRST, SECOND))
    planner.signalled([0], FIRST, 100.0, since=90.0)
    planner.signalled([0], SECOND, 300.0, since=200.0)
    assert _counts(planner) == [1, 1]
    planner.pick(400.0, never_rests)
    found = planner.crawled(0, 400.0, True)
    assert found.evidence == pytest.approx(2 * np.log(2))  # before anything is known a precision of one half
    assert (found.source, found.n_signals, found.further) == (FIRST, 1, ((SECOND, 1),))
    assert _counts(planner) == [0, 0]


def test_announcements_of_the_same_change_count_once() -> None:
    """The second source had not been read since before the first one announced, so it may be the same change."""
    planner = crawled_pages(1, sources=(FIRST, SECOND))
    planner.signalled([0], FIRST, 100.0, since=90.0)
    planner.signalled([0], SECOND, 105.0, since=95.0)
    assert sum(_counts(planner)) == 1


def test_a_change_that_a_visit_has_seen_is_no_news_from_another_source() -> None:
    """What the second source announces was announced before the visit by the first."""
    planner = crawled_pages(1, sources=(FIRST, SECOND))
    planner.signalled([0], FIRST, 100.0, since=90.0)
    planner.pick(102.0, never_rests)
    planner.crawled(0, 102.0, True)
    planner.signalled([0], SECOND, 105.0, since=95.0)
    assert _counts(planner) == [0, 0]
    planner.signalled([0], SECOND, 205.0, since=195.0)
    assert _counts(planner) == [0, 1]


def test_a_page_listens_to_a_bounded_number_of_sources() -> None:
    """Whoever makes up names of sources does not take memory for it."""
    pages = Pages()
    rows = pages.add(host=np.zeros(3, int), now=0.0)
    further = FurtherSources(pages)
    pages.source[rows] = 0
    for source in range(1, 50):
        further.cover(rows, source, 0.0)
    assert [len(further.of(page)) for page in rows] == [MOST_SOURCES] * 3
    further.free(rows)
    assert len(further) == 0
    further.cover(rows, 7, 0.0)
    assert [[one.source for one in further.of(page)] for page in rows] == [[0, 7]] * 3
