"""The papers' rules as the frontier asks for them: the library's own values, never above their parabolas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl_value import greedy, greedy_cis, greedy_cis_plus, greedy_ncis
from crawlsched.crawl_value.rules_by_name import RULES
from crawlsched.pages import Pages
from crawlsched.planner import Planner
from crawlsched.planner.values.plug_in_values import PointValues
from tests.inputs import tries

NOW = 1_000_000_000.0
N = 40

# As functions of (elapsed, n_signals, change_rate, recall, false_signal_rate, importance).
PUBLISHED = {
    "greedy": lambda tau, n, rate, recall, false, weight: greedy(tau, rate, weight),
    "greedy_cis": lambda tau, n, rate, recall, false, weight: greedy_cis(tau, n, rate, recall, weight),
    "greedy_cis_plus": greedy_cis_plus,
    "greedy_ncis": greedy_ncis,
    "greedy_ncis_approx_1": lambda *arguments: greedy_ncis(*arguments, max_terms=1),
    "greedy_ncis_approx_2": lambda *arguments: greedy_ncis(*arguments, max_terms=2),
}
rules = pytest.mark.parametrize("rule", RULES)


def pages_with_rates(rule: str, seed: int) -> tuple[PointValues, tuple[np.ndarray, ...]]:
    """Return pages of all kinds, whose rates span twelve decades, and what `PUBLISHED` takes of them."""
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
    elapsed = NOW - pages.crawled_at[rows]
    return values, (elapsed, pages.n_signals[rows], rate, recall, false, pages.importance[rows].astype(float))


@rules
@given(seed=st.integers(0, 10**6), decades=st.floats(-6, 3))
@tries(30)
def test_no_page_reaches_a_level_before_it_is_said(rule: str, seed: int, decades: float) -> None:
    """A page is found when its time has come, whatever the rates."""
    values, _ = pages_with_rates(rule, seed)
    rows = np.arange(N)
    level = (values.value_at(rows, NOW) + 1e-9) * (1.0 + 10.0**decades)
    times = values.reaches(rows, level, NOW)
    assert (times >= NOW).all()
    before = np.minimum(np.maximum(times - 1e-3, NOW), NOW + 1e12)
    assert (values.value_at(rows, before) <= 1.0001 * level).all()


def test_of_a_page_whose_rates_are_known_every_announcement_counts_in_full() -> None:
    """Its precision is no estimate, which several announcements without a visit would put in doubt."""
    planner = Planner(1.0, crawl_value="greedy_ncis")
    planner.add(0, 0.0, n=2)
    for page in (0, 1):
        planner.pick(0.0, lambda host, now: now)
        planner.crawled(page, 0.0, None)
    planner.set_rates([0, 1], 0.01, 0.5, 0.005, 0.0)
    planner.covered([0, 1], 0, 0.0)
    for now in (1.0, 2.0, 3.0):
        planner.signalled([0], 0, now)
    expected = greedy_ncis(10.0, np.array([3, 0]), 0.01, 0.5, 0.005)
    values = planner.crawl_values.value_at(np.array([0, 1]), 10.0)
    np.testing.assert_allclose(values, expected, rtol=1e-12)
