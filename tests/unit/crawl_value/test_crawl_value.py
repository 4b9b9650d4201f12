"""Crawl values as functions: monotone, finite, the same in any company, and clear about wrong arguments."""

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
from tests.inputs import tries

stalenesses = st.floats(-6.0, 3.0).map(lambda exponent: 10.0**exponent)
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


def figure_4(n, seed=0):
    """Draw parameters as in Figure 4 of Busa-Fekete et al., with elapsed times of mean 10."""
    rng = np.random.default_rng(seed)
    change_rate, recall, false_rate = rng.random(n), rng.beta(0.25, 0.25, n), rng.uniform(0.1, 0.6, n)
    elapsed = rng.exponential(10.0, n)
    return elapsed, rng.poisson((recall * change_rate + false_rate) * elapsed), change_rate, recall, false_rate


# -- monotone, finite, never negative --------------------------------------------------------------


@tries(100)
@given(recalls, false_signal_rates, st.integers(0, 1000), st.sampled_from([None, 1, 2, 3, 10, 100]))
def test_values_rise_with_the_elapsed_time(recall, false_signal_rate, n_signals, max_terms):
    """From one elapsed time to a longer one no value falls, to 1e-12 (Lemma 2)."""
    values = greedy_ncis(STEPS, n_signals, 1.0, recall, false_signal_rate, max_terms=max_terms)
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert (np.diff(values) >= -1e-12 * values[1:]).all()


@tries(100)
@given(stalenesses, recalls, false_signal_rates, st.sampled_from([None, 1, 2, 3, 10, 100]))
def test_values_rise_with_the_announcements(elapsed, recall, false_signal_rate, max_terms):
    """One announcement more never makes a page less worth crawling, to 1e-12."""
    values = greedy_ncis(elapsed, np.arange(1001), 1.0, recall, false_signal_rate, max_terms=max_terms)
    assert np.isfinite(values).all()
    assert (values >= 0).all()
    assert (np.diff(values) >= -1e-12 * values[1:]).all()


@tries(60)
@given(
    st.floats(-4.0, 1.5).map(lambda exponent: 10.0**exponent), st.floats(-3.0, 8.0).map(lambda exponent: 10.0**exponent)
)
def test_values_do_not_jump_where_the_algorithm_changes(kappa, signal_rate):
    """A dense walk through all four ways to sum the terms: differences as small as the steps, none negative."""
    evidence = np.linspace(1e-3, 45.0, 4000)
    values = noisy_value(0.0, evidence, 1.0, signal_rate, kappa)
    differences = np.diff(values)
    assert (differences >= -1e-13 * values[1:]).all()
    # V' = exp(-u) psi(u) / alpha, and psi is at most u / alpha.
    assert (differences <= np.diff(evidence) * evidence[1:] * np.exp(-evidence[:-1]) + 1e-13 * values[1:]).all()


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


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e9])
def test_the_unit_of_time_does_not_matter(scale):
    """Rates by a factor, elapsed times by its inverse: values by its inverse."""
    elapsed, n_signals, change_rate, recall, false_rate = box(2_000)
    value = greedy_ncis(elapsed, n_signals, change_rate, recall, false_rate)
    scaled = greedy_ncis(elapsed / scale, n_signals, change_rate * scale, recall, false_rate * scale)
    np.testing.assert_allclose(scaled * scale, value, rtol=1e-11)


def test_importance_is_a_factor():
    """Twice as important is worth twice as much."""
    parameters = box(1_000)
    np.testing.assert_array_equal(greedy_ncis(*parameters, 2.0), 2.0 * greedy_ncis(*parameters))


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
    alone = [greedy(*page) for page in zip(elapsed, change_rate, importance, strict=True)]
    np.testing.assert_array_equal(greedy(elapsed, change_rate, importance), alone)
    np.testing.assert_array_equal(greedy(0.7, change_rate), greedy(np.full(40_000, 0.7), change_rate))
    np.testing.assert_array_equal(greedy(elapsed, 0.7), greedy(elapsed, np.full(40_000, 0.7)))
    columns = greedy(elapsed.reshape(200, 200), change_rate[:200])
    np.testing.assert_array_equal(columns[7], greedy(elapsed[1400:1600], change_rate[:200]))


# -- the inverse -----------------------------------------------------------------------------------


def assert_inverse(parameters, importance=1.0):
    elapsed, n_signals, *page = parameters
    value = greedy_ncis(elapsed, n_signals, *page, importance)
    found = elapsed_at_value(value, *page, importance, n_signals)
    assert (found >= 0).all()
    limit = importance / page[0]
    never = np.isinf(found)
    assert (value[never] >= limit[never] * (1 - 1e-15)).all()  # rounded up to the limit
    again = greedy_ncis(found[~never], n_signals[~never], *(part[~never] for part in page), importance)
    np.testing.assert_allclose(again, value[~never], rtol=1e-10)
    return value, found


@pytest.mark.parametrize("parameters", [box(30_000, seed=8), figure_4(30_000)], ids=["box", "figure 4"])
def test_the_elapsed_time_at_a_value_has_that_value(parameters):
    """elapsed_at_value inverts greedy_ncis, to 1e-10 in the value."""
    assert_inverse(parameters)


def test_the_elapsed_time_comes_back_where_the_value_tells_it():
    """To 1e-9 in the elapsed time, wherever a change of 1e-9 in it changes the value by more than rounding."""
    elapsed, n_signals, *page = figure_4(30_000, seed=2)
    value, found = assert_inverse((elapsed, n_signals, *page))
    longer = greedy_ncis(elapsed * (1 + 1e-4), n_signals, *page)
    told = (longer - value > 1e-4 * 1e-4 * value) & (elapsed > 0)
    assert told.mean() > 0.5
    np.testing.assert_allclose(found[told], elapsed[told], rtol=1e-9)


@tries(100)
@given(stalenesses, st.floats(-9.0, 3.0).map(lambda exponent: 10.0**exponent))
def test_without_announcements_the_inverse_is_as_exact(staleness, change_rate):
    """GREEDY inverted in closed form: the elapsed time comes back to 1e-9 below 15 changes."""
    elapsed = min(staleness, 15.0) / change_rate
    assert elapsed_at_value(greedy(elapsed, change_rate), change_rate) == pytest.approx(elapsed, rel=1e-9)


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


@tries(60)
@given(stalenesses, st.floats(-3.0, 3.0).map(lambda exponent: 10.0**exponent))
def test_useless_announcements_leave_greedy(elapsed, false_signal_rate):
    """With recall 0 the value is GREEDY's, however much is announced; with recall next to 0, next to it."""
    plain = greedy(elapsed, 1.0)
    assert greedy_ncis(elapsed, 17, 1.0, 0.0, false_signal_rate) == pytest.approx(plain, rel=1e-14)
    assert greedy_ncis(elapsed, 0, 1.0, 1e-13, false_signal_rate) == pytest.approx(plain, rel=1e-11)


def test_rare_false_announcements_approach_greedy_cis():
    """As the false signal rate tends to 0, GREEDY-NCIS becomes GREEDY-CIS, with and without announcements."""
    elapsed = np.array([0.1, 1.0, 5.0])
    for n in (0, 1, 4):
        noisy = greedy_ncis(elapsed, n, 0.7, 0.6, 1e-12)
        np.testing.assert_allclose(noisy, greedy_cis(elapsed, n, 0.7, 0.6), rtol=1e-9)


def test_many_terms_are_all_terms():
    """G-NCIS-APPROX-j rises with j, and from some j on it is GREEDY-NCIS."""
    parameters = figure_4(3_000)
    full = greedy_ncis(*parameters)
    last = np.zeros_like(full)
    for j in (1, 2, 3, 10, 100):
        approximate = greedy_ncis(*parameters, max_terms=j)
        assert (approximate >= last * (1 - 1e-13)).all()
        assert (approximate <= full * (1 + 1e-13)).all()
        last = approximate
    few = parameters[1] < 30
    np.testing.assert_allclose(greedy_ncis(*parameters, max_terms=10**6)[few], full[few], rtol=1e-12)


def test_greedy_cis_plus_trusts_good_announcements_only():
    """Precision above 0.7 and recall above 0.6 (section 6.7), both strictly, or the limits that were asked for."""
    recall, false_rate = np.array([0.9, 0.9, 0.5, 0.6]), np.array([0.1, 0.9, 0.0, 0.0])
    value = greedy_cis_plus(1.0, 1, 0.8, recall, false_rate)
    np.testing.assert_array_equal(value, [greedy_cis(1.0, 1, 0.8, 0.9), *[greedy(1.0, 0.8)] * 3])
    assert greedy_cis_plus(1.0, 1, 0.8, 0.5, 0.0, min_recall=0.4) == pytest.approx(1 / 0.8, rel=1e-15)
    assert greedy_cis_plus(1.0, 1, 0.8, 0.9, 0.9, min_precision=0.4) == pytest.approx(1 / 0.8, rel=1e-15)
    assert greedy_cis_plus(1.0, 0, 0.8, 0.9, 0.0) == greedy_cis(1.0, 0, 0.8, 0.9)


def test_a_certain_posterior_is_the_known_rate():
    """All weight on one rate gives that rate's value."""
    rates = np.array([0.1, 1.0, 10.0])
    assert posterior_value([0, 1, 0], rates, 0.7) == pytest.approx(greedy(0.7, 1.0), rel=1e-15)
    noisy = noisy_value(0.7, 0.3, 1.0, 0.5, 0.4, 3.0)
    assert posterior_value([0, 1, 0], rates, 0.7, 0.3, 0.5, 0.4, 3.0) == pytest.approx(noisy, rel=1e-15)


def test_no_signal_rate_is_no_announcements():
    """The fast path without announcements and the noisy path with a rate of 0 agree."""
    rates, weights = np.logspace(-2, 1, 24), np.full(24, 1 / 24)
    plain = posterior_value(weights, rates, 2.0)
    assert posterior_value(weights, rates, 2.0, np.zeros(1), np.zeros(1), 0.7) == pytest.approx(plain, rel=1e-14)
    assert posterior_value(weights, rates, 2.0, 0.0, 3.0, 0.0) == pytest.approx(plain, rel=1e-14)


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


# -- wrong arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: greedy(-1.0, 1.0), "elapsed must be 0 or more seconds, but -1.0 was given."),
        (lambda: greedy([1.0, np.nan], 1.0), "elapsed must be 0 or more seconds, but nan was given at index [1]."),
        (lambda: greedy(1.0, -2), "change_rate must be 0 or more per second, and finite, but -2 was given."),
        (lambda: greedy(1.0, np.inf), "change_rate must be 0 or more per second, and finite, but inf was given."),
        (lambda: greedy("soon", 1.0), "elapsed must be 0 or more seconds, but 'soon' was given."),
        (lambda: greedy(1.0, 1.0, -0.5), "importance must be 0 or more, and finite, but -0.5 was given."),
        (lambda: greedy_cis(1.0, -1, 1.0, 0.5), "n_signals must be 0 or more, and finite, but -1 was given."),
        (lambda: greedy_ncis(1.0, 0, 1.0, 1.5, 0.1), "recall must be from 0 to 1, but 1.5 was given."),
        (
            lambda: greedy_ncis(1.0, 0, 1.0, np.array([[0.5], [-0.1]]), 0.1),
            "recall must be from 0 to 1, but -0.1 was given at index [1, 0].",
        ),
        (
            lambda: greedy_ncis(1.0, 0, 1.0, 0.5, -0.1),
            "false_signal_rate must be 0 or more per second, and finite, but -0.1 was given.",
        ),
        (
            lambda: greedy_ncis(1.0, 0, 1.0, 0.5, 0.1, max_terms=0),
            "max_terms must be a whole number from 1, or None for all, but 0 was given.",
        ),
        (
            lambda: greedy_ncis(1.0, 0, 1.0, 0.5, 0.1, max_terms=1.5),
            "max_terms must be a whole number from 1, or None for all, but 1.5 was given.",
        ),
        (
            lambda: greedy_cis_plus(1.0, 0, 1.0, 0.5, 0.1, min_precision=2.0),
            "min_precision must be from 0 to 1, but 2.0 was given.",
        ),
        (
            lambda: noisy_value(1.0, -0.5, 1.0, 1.0, 1.0),
            "evidence must be 0 or more nats (infinity for a certain change), but -0.5 was given.",
        ),
        (
            lambda: elapsed_at_value(-0.1, 1.0),
            "value must be 0 or more, in importance times seconds, but -0.1 was given.",
        ),
        (
            lambda: posterior_value([0.5, 0.4], [1.0, 2.0], 1.0),
            "weights must sum to 1 over their last axis, but a sum is off by 0.1.",
        ),
        (
            lambda: posterior_value([0.5, 0.5], [1.0, 2.0, 3.0], 1.0),
            "weights must have one entry for each of the rates on its last axis, and rates must have one axis, "
            "but their shapes are (2,) and (3,).",
        ),
        (
            lambda: posterior_value([1.0], [0.0], 1.0),
            "rates must be above 0, and finite, but 0.0 was given at index [0].",
        ),
        (
            lambda: merge_sources([1.0], [np.inf]),
            "signal_weight must be 0 or more, and finite, but inf was given at index [0].",
        ),
    ],
)
def test_wrong_arguments_are_named(call, message):
    """One sentence: which argument, what it was, what is allowed."""
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message
