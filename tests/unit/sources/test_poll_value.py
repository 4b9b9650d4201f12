"""Sources are polled sooner while their polls are worth a slot, and later while they are not."""

from itertools import accumulate, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl.polls import first_interval, next_interval

HOUR = 3600.0


@given(st.floats(1e-3, 1e9), st.floats(1.0, 1e7), st.booleans())
def test_intervals_keep_within_their_limits(wait: float, first: float, pays: bool) -> None:
    """Never more often than 16 times, and never more rarely than 64 times or 30 days."""
    found = next_interval(wait, first, pays=pays)
    assert first / 16 <= found <= max(first, min(64 * first, 30 * 86_400.0))


def test_a_source_that_never_tells_anything_fades_out_and_comes_back_when_it_does() -> None:
    """Its interval grows to 64 times what is set; six polls that pay bring it back to that."""
    waits = list(accumulate(repeat(False, 20), lambda wait, pays: next_interval(wait, HOUR, pays=pays), initial=HOUR))
    assert waits == sorted(waits)
    assert waits[-1] == 64 * HOUR
    back = accumulate(repeat(True, 6), lambda wait, pays: next_interval(wait, HOUR, pays=pays), initial=waits[-1])
    assert list(back)[-1] == HOUR


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
