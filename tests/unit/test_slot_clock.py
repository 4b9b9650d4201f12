"""The slot clock: exact in the long run, never a burst, whatever its caller's timers do."""

from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.slot_clock import TIMER_SLACK, SlotClock

rates = st.floats(1e-6, 1e4)
# What an event loop does to a timer: mostly a rounding, sometimes a pause, rarely a long stall.
latenesses = st.one_of(st.floats(0.0, 0.001), st.floats(0.0, 0.05), st.floats(0.0, 3.0), st.floats(0.0, 100.0))


def drive(clock: SlotClock, start: float, late: list[float]) -> list[float]:
    """Take one slot after the other, each as late as told, and return when."""
    taken, now = [], start
    for lateness in late:
        now = max(now, clock.next_time(now)) + lateness
        assert clock.is_due(now)
        clock.take(now)
        taken.append(now)
    return taken


def most_in_a_second(times: list[float]) -> int:
    return max(i - bisect_left(times, t - 1.0) + 1 for i, t in enumerate(times))


@given(rate=st.floats(0.1, 2000.0), start=st.floats(0.0, 2e9), late=st.lists(latenesses, min_size=1, max_size=300))
def test_no_second_has_more_than_a_quarter_above_the_rate_and_one(rate: float, start: float, late: list[float]) -> None:
    """However late the caller's timers are, no second sees more than 1.25 R + 1 slots."""
    times = drive(SlotClock(rate, start), start, late)
    assert most_in_a_second(times) <= 1.25 * rate + 1.0 + 1e-6


@given(rate=st.floats(1.0, 1000.0), stall=st.floats(0.0, 0.99))
def test_lateness_within_the_debt_is_paid_back_in_full(rate: float, stall: float) -> None:
    """A stall of less than the debt costs no slot: after a while the caller is on the grid again."""
    clock = SlotClock(rate, 0.0, debt=1.0)
    enough = int(6 * rate) + 20  # a second of debt takes some five seconds to pay back at 1.25 R
    times = drive(clock, 0.0, [stall] + [0.0] * enough)
    assert clock.missed == 0
    assert times[-1] == pytest.approx(enough / rate, abs=1e-6)


@given(rate=st.floats(0.01, 1000.0), stall=st.floats(0.0, 1e6), debt=st.floats(0.0, 5.0))
def test_debt_is_bounded_and_the_rest_is_counted_as_missed(rate: float, stall: float, debt: float) -> None:
    """After a stall at most `debt` seconds of slots (and always one) are owed; taken and missed make up the grid."""
    clock = SlotClock(rate, 0.0, debt=debt)
    clock.take(stall)
    due = int(stall * rate) + 1
    owed = due - 1 - clock.missed
    assert -1 <= owed <= debt * rate + 1  # one to either side is the rounding of a slot that falls on the stall's end
    assert clock.missed <= max(0.0, (stall - debt) * rate + 1)


def test_a_slot_that_nobody_takes_is_ever_later() -> None:
    """So a crawl is noticed that sends nothing; a slot that was taken, or given up, is late no more."""
    clock = SlotClock(1 / 12, 0.0)
    assert [clock.lateness(now) for now in (-5.0, 0.0, 50.0)] == [0.0, 0.0, 50.0]
    clock.skip(50.0)
    assert [clock.lateness(now) for now in (50.0, 60.0, 90.0)] == [0.0, 0.0, 30.0]
    clock.take(90.0)
    assert clock.lateness(90.0) <= 12.0


def test_the_newest_slot_is_never_missed() -> None:
    """At 12 s between slots a slot which comes 5 s late is used, although it is later than the debt of 1 s."""
    clock = SlotClock(1 / 12, 0.0)
    clock.take(0.0)
    assert clock.is_due(17.0)
    clock.take(17.0)
    assert clock.missed == 0
    clock.take(50.0)  # those at 24 and 36 were due; 48 is the newest
    assert clock.missed == 2


@given(rate=rates, idle=st.floats(0.0, 1e5))
def test_slots_with_nothing_to_do_make_no_debt(rate: float, idle: float) -> None:
    """After any idle time, `skip` leaves the next slot ahead of now, within 1/R, and none of them counts as missed."""
    clock = SlotClock(rate, 0.0)
    clock.take(0.0)
    passed = clock.skip(idle)
    assert passed == pytest.approx(int(idle * rate), abs=1)
    assert idle < clock.next_time(idle) <= idle + (1 + 1e-6) / rate + 1e-9
    assert clock.missed == 0


@given(rate=st.floats(0.1, 1000.0), n=st.integers(1, 50))
def test_each_request_without_a_slot_takes_one_away(rate: float, n: int) -> None:
    """After n payments the next slot is n places further along the grid."""
    clock = SlotClock(rate, 0.0)
    clock.take(0.0)
    for _ in range(n):
        clock.pay(0.0)
    assert clock.next_time(0.0) == pytest.approx((n + 1) / rate)


def test_an_owed_slot_pays_for_a_request_first() -> None:
    """Where slots are owed, a request without a slot uses up one of them, and the grid ahead is left whole."""
    clock = SlotClock(10.0, 0.0)
    clock.take(0.0)
    clock.take(0.35)  # slot 0.1; 0.2 and 0.3 are owed
    clock.pay(0.35)
    assert clock.skip(0.35) == 1


@given(old=st.floats(0.01, 1000.0), new=st.floats(0.01, 1000.0), at=st.floats(0.0, 20.0), stall=st.floats(0.0, 2.0))
def test_a_change_of_the_rate_makes_no_burst(old: float, new: float, at: float, stall: float) -> None:
    """In any second across the change there are no more slots than the higher of both rates allows."""
    clock, times, now = SlotClock(old, 0.0), [], 0.0
    while (now := max(now, clock.next_time(now))) < at and len(times) < 500:
        clock.take(now)
        times.append(now)
    changed_at = max([at, *times[-1:]]) + stall if len(times) < 500 else times[-1]
    clock.set_rate(new, changed_at)
    assert clock.rate == new
    times += drive(clock, changed_at, [0.0] * 200)
    assert most_in_a_second(times) <= 1.25 * max(old, new) + 1.0 + 1e-6


def test_the_new_rate_holds_from_the_change_on() -> None:
    """From 1/h to 10/s and back: the share of the interval that had passed counts at the new rate."""
    clock = SlotClock(1 / 3600, 0.0)
    clock.take(0.0)
    clock.set_rate(10.0, 1800.0)  # half an interval had passed
    assert clock.next_time(1800.0) == pytest.approx(1800.05)
    clock.take(1800.05)
    clock.set_rate(1 / 3600, 1800.1)
    assert clock.next_time(1800.1) == pytest.approx(1800.1 + 1800.0)


def test_slots_paid_ahead_are_kept_in_slots_when_the_rate_changes() -> None:
    """Ten robots.txt paid for at one slot an hour are ten slots, not ten hours, once the rate is 10/s."""
    clock = SlotClock(1 / 3600, 0.0)
    for _ in range(10):
        clock.pay(0.0)
    clock.set_rate(10.0, 0.0)
    assert clock.next_time(0.0) == pytest.approx(1.0)


@given(
    rate=st.floats(0.1, 1000.0),
    steps=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30),
)
def test_a_clock_that_jumps_ahead_never_hangs_and_never_bursts(rate: float, steps: list[float]) -> None:
    """However far `now` goes, the next slot is at most a few intervals away, and one `now` has few."""
    clock, now = SlotClock(rate, 0.0), 0.0
    clock.take(now)
    for step in steps:
        now += step
        assert clock.next_time(now) <= now + 2.0 / rate + 1e-3
        at_once = 0
        while clock.is_due(now):
            clock.take(now)
            at_once += 1
        assert at_once <= TIMER_SLACK * rate / 0.8 + 2


def test_a_wrong_rate_changes_nothing() -> None:
    """`set_rate` refuses a rate that is not positive and goes on at the old one."""
    clock = SlotClock(2.0, 0.0)
    with pytest.raises(ValueError, match="rate must be a positive number"):
        clock.set_rate(-1.0, 0.0)
    assert clock.rate == 2.0
    assert clock.next_time(0.0) == 0.0
