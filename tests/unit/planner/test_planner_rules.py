"""The papers' rules as the frontier asks for them: the library's own values, never above their parabolas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl_value import greedy_ncis
from crawlsched.crawl_value.rules import RULES
from crawlsched.pages import Pages
from crawlsched.planner import Planner
from crawlsched.planner.values import PointValues
from tests.inputs import tries
from tests.planners import crawled_pages

NOW = 1_000_000_000.0
N = 40

rules = pytest.mark.parametrize("rule", RULES)


def values_of_pages(rule: str, seed: int) -> PointValues:
    """Return the values of pages of all kinds, whose rates span twelve decades."""
    rng = np.random.default_rng(seed)
    planner = Planner(1.0, crawl_value=rule)
    pages: Pages = planner.pages
    rows = planner.add(0, NOW - 1e9, n=N)
    pages.importance[rows] = rng.lognormal(0, 3, N) * (rng.random(N) < 0.95)
    rate = 10.0 ** rng.uniform(-9, 3, N) * (rng.random(N) < 0.95)
    recall = rng.choice([0.0, 1.0, *rng.random(6)], N)
    false = rate * 10.0 ** rng.uniform(-3, 3, N) * (rng.random(N) < 0.7)
    pages.crawled_at[rows] = NOW - np.minimum(10.0 ** rng.uniform(-4, 3, N) / np.maximum(rate, 1e-6), 1e9)
    pages.n_signals[rows] = rng.poisson(rng.choice([0.0, 0.5, 30.0], N))
    planner.set_rates(rows, rate, recall, false, NOW)
    values = planner.crawl_values
    assert isinstance(values, PointValues)
    return values


@rules
@given(seed=st.integers(0, 10**6), decades=st.floats(-6, 3))
@tries(30)
def test_no_page_reaches_a_level_before_it_is_said(rule: str, seed: int, decades: float) -> None:
    """A page is found when its time has come, whatever the rates."""
    values = values_of_pages(rule, seed)
    rows = np.arange(N)
    level = (values.value_at(rows, NOW) + 1e-9) * (1.0 + 10.0**decades)
    times = values.reaches(rows, level, NOW)
    assert (times >= NOW).all()
    before = np.minimum(np.maximum(times - 1e-3, NOW), NOW + 1e12)
    assert (values.value_at(rows, before) <= 1.0001 * level).all()


def test_of_a_page_whose_rates_are_known_every_announcement_counts_in_full() -> None:
    """Its precision is no estimate, which several announcements without a visit would put in doubt."""
    planner = crawled_pages(2, sources=[0], crawl_value="greedy_ncis")
    planner.set_rates([0, 1], 0.01, 0.5, 0.005, 0.0)
    for now in (1.0, 2.0, 3.0):
        planner.signalled([0], 0, now)
    expected = greedy_ncis(10.0, np.array([3, 0]), 0.01, 0.5, 0.005)
    values = planner.crawl_values.value_at(np.array([0, 1]), 10.0)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
