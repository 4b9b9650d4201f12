"""What the low-discrepancy schedule promises."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from crawlsched.bandwidth import low_discrepancy_schedule
from tests.inputs import tries

few = tries(60)


def discrepancy(rates, slots):
    """Give the largest difference, after any slot, between what a page got and its share of the slots so far."""
    shares = rates / np.sum(rates)
    crawls = np.cumsum(np.arange(rates.size) == slots[:, None], axis=0)
    return np.max(np.abs(crawls - np.arange(1, slots.size + 1)[:, None] * shares))


@few
@given(rates=st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=20), n_slots=st.integers(1, 1500))
@example(rates=[1.0, 1.0], n_slots=1000)
@example(rates=[1.0, 1e-6], n_slots=1000)
@example(rates=[1.0, 2.0, 4.0, 8.0, 16.0], n_slots=1000)
def test_every_page_is_always_within_one_crawl_of_its_share(rates, n_slots):
    """The discrepancy is at most Tijdeman's 1 - 1/(2k - 2), below which no schedule can promise to stay."""
    rates = np.array(rates)
    slots = low_discrepancy_schedule(rates, n_slots)
    assert slots.shape == (n_slots,)
    assert discrepancy(rates, slots) <= 1.0 - 1.0 / (2 * rates.size - 2) + 1e-9


def test_a_longer_schedule_begins_with_the_shorter_one():
    """The schedule does not depend on where it ends."""
    rates = np.random.default_rng(1).lognormal(0.0, 2.0, 50)
    longer = low_discrepancy_schedule(rates, 3000)
    np.testing.assert_array_equal(low_discrepancy_schedule(rates, 1000), longer[:1000])


def test_more_pages_than_slots():
    """A million pages and a thousand slots: no page twice if all rates are equal."""
    slots = low_discrepancy_schedule(np.ones(1_000_000), 1000)
    np.testing.assert_array_equal(slots, np.arange(1000))
