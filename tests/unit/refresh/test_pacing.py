"""Pacing: whatever comes to the line at whatever time, no second has more than 1.25 R + 1."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl.pacing import Line, Pace
from tests.inputs import tries
from tests.site import most_in_a_second


def simulated(rate: float, arrivals: list[tuple[float, str, float]]) -> list[tuple[float, str]]:
    """Let requests come and go as `PacedHandlers` does; return when each was sent, and to which host."""
    line: Line[str] = Line(Pace(rate))
    sent: list[tuple[float, str]] = []
    waiting, now = sorted(arrivals), 0.0
    while waiting or len(line):
        while waiting and waiting[0][0] <= now:
            _, host, distance = waiting.pop(0)
            line.join(host, host, distance)
        while (host := line.leave(now)) is not None:
            sent.append((now, host))
        coming = [waiting[0][0]] if waiting else []
        # A timer of a real event loop comes up to a millisecond late.
        now = max(now + 1e-6, min([line.next_time(now) + 0.001 * (len(sent) % 2), *coming]))
    return sent


@tries(60)
@given(
    rate=st.floats(0.5, 300.0),
    arrivals=st.lists(
        st.tuples(st.floats(0.0, 5.0), st.sampled_from("abc"), st.sampled_from([0.0, 0.0, 0.3])),
        min_size=1,
        max_size=80,
    ),
)
def test_no_second_has_more_than_its_share(rate: float, arrivals: list[tuple[float, str, float]]) -> None:
    """And everything that came is sent once."""
    sent = simulated(rate, arrivals)
    assert len(sent) == len(arrivals)
    assert most_in_a_second([time for time, _ in sent]) <= 1.25 * rate + 1


def test_hosts_keep_their_distance_and_let_others_pass() -> None:
    """A DOWNLOAD_DELAY that Scrapy has kept is not lost by waiting."""
    sent = simulated(100.0, [(0.0, "slow", 0.5)] * 4 + [(0.0, "quick", 0.0)] * 4)
    slow = [time for time, host in sent if host == "slow"]
    assert all(after - before >= 0.5 for before, after in pairwise(slow))
    assert max(time for time, host in sent if host == "quick") < 0.1


def test_a_burst_leaves_at_the_pace() -> None:
    """What 150 hosts' robots.txt let go at once takes thirteen seconds at ten a second."""
    sent = simulated(10.0, [(3.0, str(number), 0.0) for number in range(150)])
    assert 13.0 < sent[-1][0] - sent[0][0] < 13.5


def test_the_rate_can_change_while_others_wait() -> None:
    """What is left of a distance shrinks with it."""
    pace = Pace(1 / 60)
    pace.sent(0.0)
    assert pace.next_time(1.0) > 40.0
    pace.set_rate(20.0, 1.0)
    assert pace.next_time(1.0) < 1.05


def test_it_is_behind_while_much_waits_for_the_pace_and_not_for_a_host() -> None:
    """At twenty a second three may wait; a host's own delay is in nobody's way."""
    line: Line[int] = Line(Pace(20.0))
    for number in range(9):
        line.join(number, "slow", 5.0)
    line.leave(0.0)
    assert not line.is_behind(0.1)
    for number in range(4):
        line.join(number, f"quick{number}")
    assert line.is_behind(0.1)
    line.leave(0.1)
    assert not line.is_behind(0.1)
