"""The guard and the pace: no exception ends anything in silence, no second has more than its share."""

import itertools
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet import task
from twisted.internet.defer import Deferred

from crawlsched.addon import sending
from crawlsched.addon.sending import Gate
from crawlsched.crawl.guard import Guard
from crawlsched.crawl.rate import Pace
from crawlsched.exceptions import StoreError
from tests.inputs import tries
from tests.site import most_in_a_second


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def failing(error: Exception):
    """Return a function that raises."""

    def function() -> None:
        raise error

    return function


@pytest.mark.parametrize("error", [MemoryError(), OSError(28, "full"), KeyError("x"), RecursionError()])
def test_an_exception_is_said_counted_and_survived(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """One line in a row of failures, and one when it is over."""
    counted: list[str] = []
    guard = Guard(counted.append, Clock())
    assert not guard.run("the flush", failing(error))
    assert not guard.run("the flush", failing(error))
    assert guard.run("the flush", lambda: None)
    assert counted == ["crawlsched/failures"] * 2
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "The flush failed",
        "The flush works again after 2 failures.",
    ]


@pytest.mark.parametrize(("error", "after"), [(MemoryError(), [12]), (StoreError("away"), [])])
def test_what_is_hopeless_ends_the_crawl_with_a_sentence(error: Exception, after: list[int]) -> None:
    """Five failures in a row over ten seconds; others that work in between do not count.

    A database that is away is waited for, however long it takes: that is no fault of the crawl's.
    """
    clock, ends = Clock(), []
    guard = Guard(lambda name: None, clock)
    guard.give_up = lambda reason, sentence: ends.append((clock.now, reason, sentence))
    for clock.now in range(0, 300, 3):
        guard.run("the flush", failing(error))
        guard.run("the heartbeat", lambda: None)
        if ends:
            break
    assert [now for now, _, _ in ends] == after
    for _, reason, said in ends:
        assert reason == "crawlsched_failed"
        assert said.startswith("The flush has failed 5 times in a row within 12 s, the last time with MemoryError; ")


def simulated(rate: float, arrivals: list[tuple[float, str, float]]) -> list[tuple[float, str]]:
    """Let requests come to a gate, in a time of its own; return when each passed, and to which host."""
    clock, sent = task.Clock(), list[tuple[float, str]]()
    timers = itertools.count()

    def late(seconds: float) -> Deferred[None]:
        # A timer of a real event loop comes up to a millisecond late.
        return task.deferLater(clock, seconds + 0.001 * (next(timers) % 2), lambda: None)

    async def send(host: str, distance: float) -> None:
        await gate.passes(host, distance)
        sent.append((clock.seconds(), host))

    crawl_rate = SimpleNamespace(pace=Pace(rate), n_waiting=0)
    gate = Gate(crawl_rate, clock.seconds, lambda: False, lambda: False)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sending, "wait", late)
        patched.setattr(sending, "maybe_deferred_to_future", lambda deferred: deferred)
        for at, host, distance in sorted(arrivals):
            clock.callLater(at, lambda *request: Deferred.fromCoroutine(send(*request)), host, distance)
        while clock.calls:
            clock.advance(max(clock.calls[0].getTime() - clock.seconds(), 1e-9))
    assert crawl_rate.n_waiting == 0
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
