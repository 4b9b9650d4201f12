"""Crawl values as functions: monotone, finite, and the same in any company."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl_value import (
    elapsed_at_value,
    greedy,
    greedy_cis,
    greedy_cis_plus,
    greedy_ncis,
    merge_sources,
    noisy_value,
    posterior_value,
    unchecked_noisy_value,
)
from crawlsched.crawl_value.reaching import noisy_bounds
from crawlsched.crawl_value.terms import noisy_terms
from tests.inputs import tries

recalls = st.one_of(
    st.sampled_from([0.0, 1.0]),
    st.floats(0.0, 1.0),
    st.floats(-15.0, -1.0).map(lambda exponent: 1.0 - 10.0**exponent),
)
false_signal_rates = st.one_of(st.just(0.0), st.floats(-12.0, 3.0).map(lambda exponent: 10.0**exponent))
STEPS = np.concatenate([[0.0], np.logspace(-6, 3, 400)])


@pytest.fixture(autouse=True)
def strict_arithmetic():
    """Any warning and any floating point exception fails the test."""
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        yield


def box(n, seed=0):
    """Draw parameters from the whole range of the design, limits included."""
    rng = np.random.default_rng(seed)
    recall = np.choose(
        rng.integers(0, 5, n), [np.zeros(n), np.ones(n), rng.random(n), 10 ** rng.uniform(-15, 0, n), rng.random(n)]
    )
    recall = np.where(rng.random(n) < 0.2, 1 - 10 ** rng.uniform(-15, 0, n), recall)
    false_rate = np.where(rng.random(n) < 0.15, 0.0, 10 ** rng.uniform(-9, 3, n))
    n_signals = np.floor(10 ** rng.uniform(0, 3, n)) - 1
    return 10 ** rng.uniform(-6, 3, n), n_signals, np.ones(n), recall, false_rate


# -- monotone, finite, never negative --------------------------------------------------------------


@tries(100)
@given(recalls, false_signal_rates, st.integers(0, 1000), st.sampled_from([None, 1, 2, 3, 10, 100]))
def test_values_rise_with_the_elapsed_time(recall, false_signal_rate, n_signals, max_terms):
    """From one elapsed time to a longer one no value falls, to 1e-12 (Lemma 2)."""
    values = greedy_ncis(STEPS, n_signals, 1.0, recall, false_signal_rate, max_terms=max_terms)
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert (np.diff(values) >= -1e-12 * values[1:]).all()


def test_no_value_of_the_box_is_negative_infinite_or_a_warning():
    """50,000 pages of the whole range, with every rule."""
    elapsed, n_signals, change_rate, recall, false_rate = box(50_000)
    for value in (
        greedy(elapsed, change_rate),
        greedy_cis(elapsed, n_signals, change_rate, recall),
        greedy_cis_plus(elapsed, n_signals, change_rate, recall, false_rate),
        greedy_ncis(elapsed, n_signals, change_rate, recall, false_rate),
        greedy_ncis(elapsed, n_signals, change_rate, recall, false_rate, max_terms=2),
    ):
        assert np.isfinite(value).all()
        assert (value >= 0).all()
        assert (value <= 1 + 1e-14).all()  # mu / Delta


@pytest.mark.parametrize("elapsed", [0.0, 1.0, np.inf])
@pytest.mark.parametrize(
    "rates", [(0.0, 0.0), (0.0, 1.0), (1e-300, 0.0), (1e-300, 1e-300), (1e300, 1e300), (1e-320, 0)]
)
def test_extreme_numbers_give_no_nan(elapsed, rates):
    """Rates at the ends of what a float can hold, and pages crawled never or just now."""
    change_rate, false_rate = rates
    for recall in (0.0, 1e-300, 0.5, 1.0):
        for n in (0, 1, 1e300):
            value = greedy_ncis(elapsed, n, change_rate, recall, false_rate)
            assert value >= 0.0
            assert greedy_cis(elapsed, n, change_rate, recall) >= 0.0


# -- the same in any company -----------------------------------------------------------------------


def test_a_page_has_the_same_value_alone_and_among_others():
    """Bit by bit: ties and argmax do not depend on how many pages are evaluated together."""
    elapsed, n_signals, change_rate, recall, false_rate = box(1_500, seed=3)
    together = greedy_ncis(elapsed, n_signals, change_rate, recall, false_rate)
    alone = [greedy_ncis(*page) for page in zip(elapsed, n_signals, change_rate, recall, false_rate, strict=True)]
    np.testing.assert_array_equal(together, alone)
    rates = np.logspace(-3, 2, 28)
    weights = np.random.default_rng(1).dirichlet(np.ones(28), 300)
    together = posterior_value(weights, rates, elapsed[:300], 0.4, 0.3, 0.8)
    alone = [posterior_value(w, rates, t, 0.4, 0.3, 0.8) for w, t in zip(weights, elapsed[:300], strict=True)]
    np.testing.assert_array_equal(together, alone)
    together = posterior_value(weights, rates, elapsed[:300])
    alone = [posterior_value(w, rates, t) for w, t in zip(weights, elapsed[:300], strict=True)]
    np.testing.assert_array_equal(together, alone)


def test_arguments_broadcast():
    """Columns against rows, and numbers in give a number out."""
    value = greedy_ncis(np.ones((3, 1)), np.arange(4), 0.5, 0.4, 0.1, np.ones((2, 1, 1)))
    assert value.shape == (2, 3, 4)
    assert np.ndim(greedy(1.0, 0.5)) == 0
    assert np.ndim(greedy_ncis(1.0, 1, 0.5, 0.4, 0.1)) == 0
    assert posterior_value(np.full((5, 1, 2), 0.5), [1.0, 2.0], np.ones(3), signal_rate=np.ones(3)).shape == (5, 3)
    assert elapsed_at_value(np.ones((3, 1)), np.ones(2) * 0.1).shape == (3, 2)
    assert greedy(np.empty(0), 1.0).shape == greedy_ncis(np.empty(0), 1, 1.0, 0.5, 0.1).shape == (0,)


def test_long_columns_are_the_same_in_pieces():
    """Columns too long for the processor's cache are evaluated in pieces, whatever is a column and what a number."""
    elapsed, change_rate, importance = np.random.default_rng(0).random((3, 40_000))
    some = slice(None, None, 31)
    alone = [greedy(*page) for page in zip(elapsed[some], change_rate[some], importance[some], strict=True)]
    np.testing.assert_array_equal(greedy(elapsed, change_rate, importance)[some], alone)
    np.testing.assert_array_equal(greedy(0.7, change_rate), greedy(np.full(40_000, 0.7), change_rate))
    np.testing.assert_array_equal(greedy(elapsed, 0.7), greedy(elapsed, np.full(40_000, 0.7)))
    columns = greedy(elapsed.reshape(200, 200), change_rate[:200])
    np.testing.assert_array_equal(columns[7], greedy(elapsed[1400:1600], change_rate[:200]))


# -- the inverse -----------------------------------------------------------------------------------


def test_values_already_reached_and_never_reached():
    """0 where the announcements alone are enough, infinity at the limit and where nothing can happen unannounced."""
    assert elapsed_at_value(0.0, 1.0) == 0.0
    assert elapsed_at_value(0.0, 0.0) == 0.0
    assert elapsed_at_value(0.1, 0.0) == np.inf
    assert elapsed_at_value(0.1, 1.0, importance=0.0) == np.inf
    assert elapsed_at_value(1.0, 1.0) == np.inf
    assert elapsed_at_value(np.inf, 1.0) == np.inf
    assert elapsed_at_value(0.99, 1.0) < np.inf
    assert elapsed_at_value(0.2, 1.0, 1.0, 0.5, 1.0, 0) == np.inf
    one = greedy_ncis(0.0, 1, 1.0, 0.8, 0.5)
    assert elapsed_at_value(one, 1.0, 0.8, 0.5, 1.0, 1) == 0.0
    assert elapsed_at_value(one, 1.0, 0.8, 0.5, 1.0, 0) > 0.0
    assert elapsed_at_value(0.9, 1.0, 0.8, 0.0, 1.0, 1) == 0.0


# -- the rules among each other --------------------------------------------------------------------


def test_greedy_cis_plus_trusts_good_announcements_only():
    """Precision above 0.7 and recall above 0.6 (section 6.7), both strictly, or the limits that were asked for."""
    recall, false_rate = np.array([0.9, 0.9, 0.5, 0.6]), np.array([0.1, 0.9, 0.0, 0.0])
    value = greedy_cis_plus(1.0, 1, 0.8, recall, false_rate)
    np.testing.assert_array_equal(value, [greedy_cis(1.0, 1, 0.8, 0.9), *[greedy(1.0, 0.8)] * 3])
    assert greedy_cis_plus(1.0, 1, 0.8, 0.5, 0.0, min_recall=0.4) == pytest.approx(1 / 0.8, rel=1e-15)
    assert greedy_cis_plus(1.0, 1, 0.8, 0.9, 0.9, min_precision=0.4) == pytest.approx(1 / 0.8, rel=1e-15)
    assert greedy_cis_plus(1.0, 0, 0.8, 0.9, 0.0) == greedy_cis(1.0, 0, 0.8, 0.9)


def test_a_certain_announcement_makes_the_page_worth_its_limit():
    """Evidence of infinity: the copy is stale, and the value is the mean of 1 / Delta."""
    rates, weights = np.array([0.5, 2.0]), np.array([0.25, 0.75])
    value = posterior_value(weights, rates, 0.0, np.inf, 1.5, np.inf)
    assert value == pytest.approx(weights @ (1 / (rates + 1.5)), rel=1e-14)


def test_the_unchecked_function_gives_the_checked_values():
    """What the crawling thread calls is what everyone else calls, without the checks."""
    assert unchecked_noisy_value(1.0, 0.5, 0.3, 0.4, 0.5) == noisy_value(1.0, 0.5, 0.3, 0.4, 0.5)


def test_merging_sources():
    """Equal sources add up, silent ones vanish, tiny weights keep their digits, and the two means are kept."""
    assert merge_sources([1.0, 2.0], [0.7, 0.7]) == pytest.approx((3.0, 0.7), rel=1e-13)
    assert merge_sources([0.0, 2.0], [5.0, 0.7]) == pytest.approx((2.0, 0.7), rel=1e-13)
    assert merge_sources([0.0, 0.0], [1.0, 2.0]) == (0.0, 0.0)
    assert merge_sources([1.0, 2.0], [0.0, 0.0]) == (0.0, 0.0)
    assert merge_sources([1e-9, 2e-9], [1e-9, 2e-9])[1] == pytest.approx(1.8e-9, rel=1e-8)
    gammas, kappas = np.random.default_rng(0).uniform(0, 4, (2, 50, 3))
    gamma, kappa = merge_sources(gammas, kappas)
    np.testing.assert_allclose(gamma * kappa, (gammas * kappas).sum(-1), rtol=1e-12)
    np.testing.assert_allclose(gamma * -np.expm1(-kappa), (gammas * -np.expm1(-kappas)).sum(-1), rtol=1e-12)


@given(
    st.lists(
        st.tuples(
            *(st.floats(*ends).map(lambda exponent: 10.0**exponent) for ends in ((-5, 2), (-9, 1), (-9, 6), (-4, 2)))
        ),
        min_size=1,
        max_size=200,
    )
)
@tries(200)
def test_bounds_of_noisy_values_are_never_too_low_and_at_most_a_third_too_high(numbers):
    """For all stalenesses, rates and weights; so a due time that they give is never too late."""
    y, alpha, ratio, kappa = np.array(numbers).T
    with np.errstate(under="ignore", over="ignore"):
        value, slope = noisy_terms(y, alpha, ratio * alpha, kappa)
        most, steepest = noisy_bounds(y, alpha, ratio * alpha, kappa)
    assert (most >= value * (1 - 1e-6)).all()
    assert (most <= 1.34 * value * (1 + 1e-6)).all()
    assert (steepest >= slope * (1 - 1e-6)).all()
    assert (steepest <= 2.0 * slope * (1 + 1e-6)).all()
