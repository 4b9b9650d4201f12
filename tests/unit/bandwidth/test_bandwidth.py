"""What every division of a bandwidth promises, whatever the plan."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crawlsched.bandwidth import (
    demand,
    harmonic_rates,
    poisson_crawl_rates,
    refresh_rates,
    refresh_rates_with_signals,
)
from tests.inputs import tries


def with_signals(change_rate, importance, bandwidth):
    """Divide among pages whose announcements are of all kinds: none, useless, noisy, clean, complete."""
    n_pages = np.size(change_rate)
    recall = np.resize([0.0, 0.0, 0.3, 0.9, 1.0, 0.6, 1.0], n_pages)
    false = np.resize([0.0, 2.0, 0.5, 0.1, 0.4, 0.0, 0.0], n_pages) * np.asarray(change_rate)
    return refresh_rates_with_signals(change_rate, recall, false, importance, bandwidth)


PLANS = [refresh_rates, poisson_crawl_rates, harmonic_rates, with_signals]
every_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.__name__)
seeds = st.integers(0, 2**32 - 1)
few = tries(25)


def population(seed, spread=1.5):
    """Give change rates, importances and a bandwidth from a seed; no two pages are alike."""
    rng = np.random.default_rng(seed)
    n_pages = int(rng.integers(1, 40))
    change_rate, importance = rng.lognormal(0.0, spread, n_pages), rng.lognormal(0.0, spread, n_pages)
    return change_rate, importance, n_pages * 10.0 ** rng.uniform(-2.0, 1.0)


@every_plan
@few
@given(
    change_rate=st.lists(st.floats(1e-12, 1e12) | st.just(0.0), min_size=1, max_size=12),
    importances=st.lists(st.floats(1e-12, 1e12) | st.just(0.0), min_size=12, max_size=12),
    bandwidth=st.floats(1e-12, 1e12),
)
@example(change_rate=[1.0, 255823450066.0], importances=[0.0, 3.0], bandwidth=1e-12)
def test_rates_add_up_at_any_scale(plan, change_rate, importances, bandwidth):
    """Over 24 orders of magnitude the sum is the bandwidth to 1e-12."""
    change_rate, importance = np.array(change_rate), np.array(importances[: len(change_rate)])
    found = plan(change_rate, importance, bandwidth)
    assert np.all(np.isfinite(found.rates) & (found.rates >= 0.0))
    if found.threshold > 0.0:
        assert np.sum(found.rates) == pytest.approx(bandwidth, rel=1e-12)
    else:
        # Nobody can use more: only pages that never change, or whose every change is announced.
        assert np.sum(found.rates) <= bandwidth * (1.0 + 1e-12)
    assert np.all(found.rates[(change_rate == 0.0) | (importance == 0.0)] == 0.0)


@every_plan
def test_equal_pages_get_equal_rates(plan):
    """Ten equal pages share what there is, however little: the demand curve is vertical at their crawl value."""
    for bandwidth in (1e-12, 1e-3, 0.9, 10.0):
        found = plan(np.full(70, 2.0), np.full(70, 3.0), bandwidth)
        for kind in range(7):  # `with_signals` has seven kinds of announcements
            same = found.rates[kind::7]
            np.testing.assert_allclose(same, same[0], rtol=1e-12)


def test_where_every_change_is_announced_more_bandwidth_is_of_no_use():
    """A page with recall 1 is crawled at each announcement at most; then it is always fresh."""
    found = refresh_rates_with_signals([2.0, 1.0], 1.0, [0.0, 0.5], 1.0, bandwidth=100.0)
    np.testing.assert_allclose(found.rates, [2.0, 1.5], rtol=1e-15)
    assert found.threshold == 0.0
    assert np.all(found.effective_elapsed == np.inf)


def test_where_every_change_is_announced_a_page_is_crawled_at_every_nth_announcement():
    """With recall 1 the rate is gamma/n if V(n-1) < threshold < V(n), and a mixture of two if it is V(n)."""
    change, false, p = 1.0, 3.0, 0.25  # p: the probability that an announcement is true
    value = [(1.0 - (1.0 + n * p) * (1.0 - p) ** n) / change for n in range(20)]
    seen = set()
    for bandwidth in np.linspace(0.8, 5.0, 40):
        found = refresh_rates_with_signals([change, 1.0], [1.0, 0.0], [false, 0.0], 1.0, bandwidth)
        n = (change + false) / found.rates[0]
        mixed = abs(n - round(n)) > 1e-9
        seen.add(mixed)
        if mixed:
            assert found.threshold == pytest.approx(value[int(n)], rel=1e-12)
        else:
            assert value[round(n) - 1] <= found.threshold <= value[round(n)]
            assert found.least_freshness[0] == pytest.approx((1.0 - p) ** round(n), rel=1e-12)
    assert seen == {False, True}


@every_plan
def test_no_pages_need_no_bandwidth(plan):
    """An empty collection is no error."""
    assert plan([], [], 1.0).rates.size == 0


@few
@given(seed=seeds, noisy=st.booleans())
def test_demand_is_the_inverse_of_the_threshold(seed, noisy):
    """At the threshold of a division, pages want its bandwidth; demand falls as the threshold rises."""
    change_rate, importance, bandwidth = population(seed)
    recall, false = (np.full(change_rate.size, 0.7), 0.3 * change_rate) if noisy else (0.0, 0.0)
    found = refresh_rates_with_signals(change_rate, recall, false, importance, bandwidth)
    curve = demand(found.threshold * np.array([0.5, 0.999999, 1.000001, 2.0]), change_rate, importance, recall, false)
    assert np.all(np.diff(curve) <= 0.0)
    assert curve[2] * (1.0 - 1e-12) <= bandwidth <= curve[1] * (1.0 + 1e-12)


def test_many_pages_are_the_same_problem():
    """Blocks of pages change nothing."""
    rng = np.random.default_rng(4)
    change_rate, importance = rng.lognormal(0.0, 2.0, 300), rng.lognormal(0.0, 1.0, 300)
    few_pages = refresh_rates(change_rate, importance, 20.0)
    many = refresh_rates(np.tile(change_rate, 200), np.tile(importance, 200), 4000.0)
    assert many.threshold == pytest.approx(few_pages.threshold, rel=1e-11)
    np.testing.assert_allclose(many.rates[:300], few_pages.rates, rtol=1e-9, atol=1e-9)
    # The pages that matter may all be few, and stand anywhere.
    importance = np.where(np.arange(60_000) % 2, 1.0, 1e-9)
    for weights in (importance, importance[::-1].copy()):
        found = refresh_rates(1.0, weights, 5.0)
        assert np.sum(found.rates) == pytest.approx(5.0, rel=1e-12)
        assert np.sum(found.rates[weights < 1.0]) == 0.0
