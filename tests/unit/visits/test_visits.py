"""Visits: each ends exactly once."""

from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl.visits import Visits
from crawlsched.store import Outcome


def test_a_token_that_is_no_number_is_no_visit() -> None:
    """Whatever a spider puts into meta, nothing is found and nothing breaks."""
    visits = Visits()
    assert visits.get("1") is None
    assert visits.get(None) is None
    assert visits.resolve([1], Outcome.CHANGED) is None


def test_old_visits_are_found_unless_they_wait_for_a_slot() -> None:
    """A redirect that waits for its slot is no lost visit."""
    visits = Visits()
    lost = visits.open(page=1, host=0, url="http://a/1", now=0.0)
    waiting = visits.open(page=2, host=0, url="http://a/2", now=1.0)
    waiting.is_waiting = True
    visits.open(page=3, host=0, url="http://a/3", now=9.0)
    assert [lost] == visits.older_than(5.0)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60))
def test_open_visits_per_host_always_add_up(steps: list[tuple[int, bool]]) -> None:
    """However visits open and end, dispatched is resolved plus open, in all and for each host."""
    visits = Visits()
    open_now = []
    for host, end in steps:
        if end and open_now:
            visits.resolve(open_now.pop(0).token, Outcome.UNCHANGED)
        else:
            open_now.append(visits.open(page=1, host=host, url="http://a/", now=0.0))
    assert visits.dispatched == sum(visits.counts.values()) + len(visits)
    for host in range(4):
        assert visits.open_on(host) == sum(visit.host == host for visit in open_now)
