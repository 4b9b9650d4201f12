"""One pass: who goes first in a run, every page is tried once, best first, and then the run is over."""

import numpy as np

from crawlsched.crawl.hosts import Hosts
from crawlsched.crawl.run import OnePass, Starts
from crawlsched.planner import Planner


def _free(host: int, now: float) -> float:
    return now


def _pass(n: int, **parameters: float) -> tuple[Planner, OnePass]:
    planner = Planner(bandwidth=1.0, **parameters)
    planner.add(np.zeros(n, int), 0.0, np.arange(1.0, n + 1))
    return planner, OnePass(planner, True)


def _go(planner: Planner, one_pass: OnePass, now: float) -> int | None:
    """Visit the best page that may go, as a slot does."""
    if (pick := one_pass.pick(now, _free)) is None:
        return None
    one_pass.tried(pick.page)
    planner.crawled(pick.page, now, None)
    return pick.page


def test_the_pages_of_a_host_that_fails_are_left_to_the_next_pass() -> None:
    """A pass waits five minutes for a host, and then it is over; else it would last as long as the outage."""
    planner, hosts = Planner(bandwidth=1.0), Hosts(["a.example"])
    planner.add(np.zeros(20, int), 0.0)
    one_pass = OnePass(planner, True, hosts.failing_since)
    for now in range(1, 9):
        pick = planner.pick(float(now), hosts.free_at)
        one_pass.tried(pick.page)
        hosts.asked(0, float(now))
        hosts.failed(0, float(now), now + 0.5, 60.0)
        planner.failed(pick.page, now + 0.5)
    assert _go(planner, one_pass, 9.0) is not None  # it knows of no rest
    assert not one_pass.is_over(100.0)
    assert one_pass.is_over(310.0)


def test_pages_that_back_off_are_tried_when_no_other_is_left() -> None:
    """One that failed in an earlier run has its try in this one; one within its least interval has not."""
    planner, one_pass = _pass(2)
    planner.failed(planner.pick(1.0, _free).page, 1.0)  # type: ignore[union-attr]
    assert _go(planner, one_pass, 2.0) == 0
    assert _go(planner, one_pass, 3.0) is None
    assert not one_pass.is_over(3.0)
    assert _go(planner, one_pass, 4.0) == 1
    assert one_pass.is_over(5.0)
    planner, one_pass = _pass(1, min_crawl_interval=100.0)
    planner.crawled(planner.pick(1.0, _free).page, 1.0, None)  # type: ignore[union-attr]
    assert one_pass.is_over(2.0)


def test_news_of_a_page_let_it_go_once_more() -> None:
    """A page that was put aside comes back when there is something new about it."""
    planner, one_pass = _pass(1)
    assert _go(planner, one_pass, 1.0) == 0
    assert _go(planner, one_pass, 2.0) is None
    assert one_pass.is_over(3.0)
    planner.pages.marks[0] = 0
    one_pass.released(0, 4.0)
    assert not one_pass.is_over(4.0)
    assert _go(planner, one_pass, 5.0) == 0
    assert one_pass.is_over(6.0)


def test_nobody_waits_for_who_goes_first_longer_than_sixty_seconds_or_a_hundred_slots() -> None:
    """Whichever is longer; what is still in line goes by its value then."""
    for bandwidth, until in ((10.0, 60.0), (0.5, 200.0)):
        starts = Starts(100)
        starts.begin(0.0, bandwidth)
        starts.asked(page=1)
        assert [starts.look(now, False) for now in (until - 1.0, until)] == [False, True]
        assert not starts.line
