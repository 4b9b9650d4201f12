"""Polls are made at the rate that they are worth: compared with fixed intervals, under one budget, with known truth."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl.polls import Brought, first_interval, poll_interval
from crawlsched.crawl_value import greedy

HOUR = 3600.0


def test_a_poll_is_due_when_it_is_worth_as_much_as_the_crawl_of_a_page() -> None:
    """With much evidence the value at the interval is the threshold: G/ρ (1 - (1 + ρτ) exp(-ρτ))."""
    brought = Brought(gain=2e6, loss=200.0, seconds=1e8)
    interval = poll_interval(brought, 100.0, HOUR)
    rate, fading = 2e6 / 1e8, 200.0 / 2e6
    assert greedy(interval, fading, rate) == pytest.approx(100.0, rel=0.05)


@given(st.floats(1e-3, 1e9), st.floats(1e-9, 1e3), st.floats(1.0, 1e8), st.floats(1e-6, 1e6), st.floats(1.0, 1e6))
def test_intervals_keep_within_their_limits(
    gain: float, loss: float, seconds: float, threshold: float, interval: float
) -> None:
    """Never more often than 16 times, and never more rarely than 64 times or 30 days."""
    found = poll_interval(Brought(gain, loss, seconds), threshold, interval)
    assert interval / 16 * 0.999 <= found <= max(interval, min(64 * interval, 30 * 86_400.0)) * 1.001


def test_a_source_that_never_tells_anything_fades_out_and_comes_back_when_it_does() -> None:
    """Its interval grows to 64 times what is set; a few gains bring it back below that."""
    brought, waits = Brought(), []
    for _ in range(120):
        waits.append(poll_interval(brought, 10.0, HOUR))
        brought = brought.polled(waits[-1], 0.0, 0.0)
    assert waits[0] == pytest.approx(HOUR)
    assert all(later >= sooner for sooner, later in pairwise(waits))
    assert waits[-1] == pytest.approx(64 * HOUR)
    for _ in range(10):
        brought = brought.polled(waits[-1], 40_000.0, 0.5)
    assert poll_interval(brought, 10.0, HOUR) < 16 * HOUR


# -- a simulation: sitemaps of 8 pages each, of which few are worth their polls


@pytest.mark.parametrize(
    ("longest", "n_pages", "n_sources", "bandwidth", "seconds"),
    [
        (3600.0, 120, 1, 10.0, 36.0),  # three rounds
        (3600.0, 120, 60, 10.0, 120.0),  # sixty sources in two minutes: a twentieth of 1,200 crawls
        (3600.0, 20, 1, 20.0, 10.0),  # no sooner
        (2.0, 120, 1, 10.0, 2.0),  # what the settings say
        (3600.0, 10**6, 1, 10.0, 3600.0),
        (3600.0, 120, 1, 0.0, 3600.0),
    ],
)
def test_a_source_of_which_nothing_is_known_is_read_every_few_rounds(
    longest: float, n_pages: int, n_sources: int, bandwidth: float, seconds: float
) -> None:
    """Within the interval that is set, and within a twentieth of the bandwidth for all of them."""
    assert first_interval(longest, n_pages, n_sources, bandwidth) == pytest.approx(seconds)
