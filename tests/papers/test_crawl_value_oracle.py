"""Crawl values against the paper's formulas in 50-digit arithmetic, over the whole range that the design promises."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from crawlsched.crawl_value import elapsed_at_value, greedy, greedy_cis, greedy_ncis, noisy_value, posterior_value
from tests.inputs import tries
from tests.papers import oracle

ACCURACY = 1e-12  # the design promises 1e-9

stalenesses = st.floats(-6.0, 3.0).map(lambda exponent: 10.0**exponent)  # change_rate * elapsed
recalls = st.one_of(
    st.sampled_from([0.0, 1.0]),
    st.floats(0.001, 1.0),
    st.floats(-15.0, -1.0).map(lambda exponent: 10.0**exponent),
    st.floats(-15.0, -1.0).map(lambda exponent: 1.0 - 10.0**exponent),
)
false_signal_rates = st.one_of(st.just(0.0), st.floats(-12.0, 3.0).map(lambda exponent: 10.0**exponent))
counts = st.one_of(st.integers(0, 20), st.integers(0, 1000))


def exact(elapsed, n_signals, change_rate, recall, false_signal_rate):
    """Return the oracle's value; where a million terms would have to be summed, that of the Laplace transform."""
    alpha = (1 - mpmath.mpf(recall)) * mpmath.mpf(change_rate)
    true_rate = mpmath.mpf(recall) * mpmath.mpf(change_rate)
    if alpha > 0 and true_rate > 0 and false_signal_rate > 0:
        kappa = mpmath.log1p(true_rate / mpmath.mpf(false_signal_rate))
        gamma = true_rate + mpmath.mpf(false_signal_rate)
        y = alpha * mpmath.mpf(elapsed) + kappa * n_signals
        if y / kappa > 300 and gamma * kappa / alpha < 1:
            return oracle.value_by_laplace(min(y, mpmath.mpf(60)), alpha, gamma, kappa)
    return oracle.noisy_value(elapsed, n_signals, change_rate, recall, false_signal_rate)


def assert_exact(value, expected):
    assert math.isfinite(value)
    assert value >= 0.0
    if expected == 0:
        assert value == 0.0
    else:
        assert abs(float(value / expected - 1)) < ACCURACY


def test_both_oracles_agree_where_both_can_be_computed():
    """Summing the paper's terms and inverting the Laplace transform of psi give the same 25 digits."""
    for y, gamma, kappa in [(1.0, 100.0, 1 / 300), (10.0, 50.0, 0.02), (0.01, 5000.0, 1e-4), (100.0, 3.0, 0.2)]:
        summed = oracle.general_value(y, 0, 1, gamma, kappa)
        assert abs(oracle.value_by_laplace(y, 1, gamma, kappa) / summed - 1) < 1e-25


@tries(150)
@given(stalenesses, st.floats(-9.0, 2.0).map(lambda exponent: 10.0**exponent))
def test_greedy_is_exact(staleness, change_rate):
    """GREEDY agrees with R^1(Delta tau) / Delta of section 5.1."""
    elapsed = staleness / change_rate
    assert_exact(greedy(elapsed, change_rate), oracle.greedy_value(elapsed, change_rate))


@tries(150)
@given(stalenesses, recalls, false_signal_rates, counts)
def test_greedy_ncis_is_exact(elapsed, recall, false_signal_rate, n_signals):
    """GREEDY-NCIS agrees with Theorem 1 over the whole box: staleness, recall, false signals and announcements."""
    # One example in a hundred would take ten seconds: the oracle sums tens of thousands of terms.
    assume(recall < 0.3 or elapsed * false_signal_rate < 3000)
    value = greedy_ncis(elapsed, n_signals, 1.0, recall, false_signal_rate)
    assert_exact(value, exact(elapsed, n_signals, 1.0, recall, false_signal_rate))


@pytest.mark.parametrize("recall", [0.0, 1e-15, 0.3, 1 - 1e-12, 1.0])
@pytest.mark.parametrize("false_signal_rate", [0.0, 1e-9, 1.0, 1e3])
def test_greedy_ncis_is_exact_in_the_corners(recall, false_signal_rate):
    """All limits of the design: recall 0 and 1, no and many false signals, crawled just now and long ago."""
    for elapsed, n_signals in itertools.product([1e-6, 1e-2, 1.0, 1e3], [0, 1, 7, 1000]):
        value = greedy_ncis(elapsed, n_signals, 1.0, recall, false_signal_rate)
        assert_exact(value, exact(elapsed, n_signals, 1.0, recall, false_signal_rate))


@tries(80)
@given(
    st.floats(-6.0, 1.6).map(lambda exponent: 10.0**exponent),
    st.floats(-3.0, 6.0).map(lambda exponent: 10.0**exponent),
    st.floats(-3.0, 1.5).map(lambda exponent: 10.0**exponent),
)
def test_noisy_value_is_exact_where_no_announcement_is_a_whole_one(y, signal_rate, kappa):
    """By its natural parameters, with evidence that is no multiple of kappa."""
    if y / kappa > 300:
        kappa = y / 300
    value = noisy_value(0.25 * y, 0.75 * y, 1.0, signal_rate, kappa)
    assert_exact(value, oracle.general_value(0.25 * y, 0.75 * y, 1.0, signal_rate, kappa))


@tries(80)
@given(stalenesses, recalls, false_signal_rates, st.integers(0, 100), st.integers(1, 60))
def test_approximations_are_exact(elapsed, recall, false_signal_rate, n_signals, max_terms):
    """G-NCIS-APPROX-j is the sum of the first j terms of appendix A.1, for every j."""
    value = greedy_ncis(elapsed, n_signals, 1.0, recall, false_signal_rate, max_terms=max_terms)
    expected = oracle.noisy_value(elapsed, n_signals, 1.0, recall, false_signal_rate, max_terms=max_terms)
    assert_exact(value, expected)


@tries(80)
@given(stalenesses, recalls)
def test_greedy_cis_is_exact(elapsed, recall):
    """GREEDY-CIS is the value with no false signals at all, as if none had ever come."""
    assert_exact(greedy_cis(elapsed, 0, 1.0, recall), oracle.noisy_value(elapsed, 0, 1.0, recall, 0.0))
    assert greedy_cis(elapsed, 3, 1.0, recall) == pytest.approx(1.0, rel=1e-15)


@pytest.mark.parametrize("max_terms", [1, 2, 3])
def test_approximations_end_where_the_design_says(max_terms):
    """G-NCIS-APPROX-j tends to mu / Delta (1 - (nu / (Delta + nu))^j), not to mu / Delta."""
    delta, nu = 0.5, 0.3
    limit = 2.0 / delta * (1 - (nu / (delta + nu)) ** max_terms)
    assert greedy_ncis(np.inf, 5, delta, 0.4, nu, 2.0, max_terms=max_terms) == pytest.approx(limit, rel=1e-14)
    assert greedy_ncis(np.inf, 5, delta, 0.4, nu, 2.0) == pytest.approx(2.0 / delta, rel=1e-14)


def test_a_page_whose_every_change_is_announced_is_worth_nothing_before():
    """With recall 1 and nothing announced, the page cannot have changed: its value stays 0 for ever."""
    assert greedy_ncis(np.array([0.0, 1.0, 1e9, np.inf]), 0, 1.0, 1.0, 0.4).tolist() == [0.0] * 4


def test_the_posterior_value_is_the_expectation_of_the_exact_value():
    """With and without announcements, it is the weighted sum of the oracle's values."""
    rng = np.random.default_rng(7)
    rates = np.logspace(-4, 2, 24)
    weights = rng.dirichlet(np.ones(24))
    plain = sum(w * oracle.greedy_value(3.0, rate) for w, rate in zip(weights, rates, strict=True))
    assert posterior_value(weights, rates, 3.0) == pytest.approx(float(plain), rel=ACCURACY)
    noisy = sum(w * oracle.general_value(3.0, 1.25, rate, 0.7, 0.5) for w, rate in zip(weights, rates, strict=True))
    value = posterior_value(weights, rates, 3.0, evidence=1.25, signal_rate=0.7, signal_weight=0.5)
    assert value == pytest.approx(float(noisy), rel=ACCURACY)


def test_the_elapsed_time_at_a_value_is_exact():
    """Put into the oracle, the elapsed time gives the value back, to the accuracy of the value."""
    for recall, nu, n, value in [(0.0, 0.0, 0, 0.3), (0.5, 0.4, 1, 0.6), (0.99, 0.2, 2, 0.97), (0.2, 30.0, 5, 0.1)]:
        elapsed = elapsed_at_value(value, 1.0, recall, nu, 1.0, n)
        assert 0 < elapsed < np.inf
        assert abs(float(exact(elapsed, n, 1.0, recall, nu) / value - 1)) < 1e-12
