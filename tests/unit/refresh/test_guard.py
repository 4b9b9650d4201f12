"""The guard and the watchdog: no exception ends anything in silence."""

import pytest

from crawlsched.crawl.guard import Guard, Watchdog
from crawlsched.exceptions import StoreError


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
        "The flush failed and is tried again",
        "The flush works again after 2 failures.",
    ]


def test_what_is_hopeless_ends_the_crawl_with_a_sentence() -> None:
    """Five failures in a row over ten seconds; others that work in between do not count."""
    clock, ends = Clock(), []
    guard = Guard(lambda name: None, clock)
    guard.give_up = lambda reason, sentence: ends.append((reason, sentence))
    for second in range(0, 24, 3):
        clock.now = second
        guard.run("the flush", failing(MemoryError()))
        guard.run("the heartbeat", lambda: None)
        if ends:
            break
    assert clock.now == 12
    assert ends[0][0] == "crawlsched_failed"
    assert ends[0][1].startswith("The flush has failed 5 times in a row within 12 s, the last time with MemoryError; ")


def test_a_database_that_is_away_is_waited_for() -> None:
    """However long it takes: that is no fault of the crawl's."""
    clock, ends = Clock(), []
    guard = Guard(lambda name: None, clock)
    guard.give_up = lambda reason, sentence: ends.append(reason)
    for second in range(1000):
        clock.now = second
        guard.run("reading", failing(StoreError("away")))
    assert not ends


def test_the_watchdog_barks_after_a_minute_of_silence() -> None:
    """Where slots are rarer than that, after three of them."""
    for distance, expected in ((0.1, 60.0), (100.0, 300.0)):
        dog, now = Watchdog(0.0), 0.0
        while dog.look(now, dispatched=3, may=True, distance=distance) is None:
            now += 2.0
            assert now < 1000.0
        assert now == pytest.approx(expected, abs=2.0)


@pytest.mark.parametrize("quiet", ["pause", "requests"])
def test_the_watchdog_rests(quiet: str) -> None:
    """In a pause, or with nothing to do, or while requests go out."""
    dog = Watchdog(0.0)
    for second in range(0, 1000, 2):
        sent = second if quiet == "requests" else 0
        assert dog.look(float(second), dispatched=sent, may=quiet == "requests", distance=1.0) is None
