"""What the formulas mean: Lemma 4 and V as expectations over simulated announcements, and V as a derivative."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.bandwidth import refresh_rates_with_signals
from crawlsched.crawl_value import greedy, merge_sources, noisy_value, posterior_value
from tests.inputs import tries
from tests.papers import oracle


def simulate_interval(rng, n, threshold, alpha, gammas, kappas):
    """Simulate n intervals between crawls of the policy that crawls as soon as alpha t + kappa . N(t) is the threshold.

    Returns the lengths, and the freshness exp(-alpha t - kappa . N(t)) integrated over each.
    """
    gammas, kappas = np.atleast_1d(gammas), np.atleast_1d(kappas)
    gamma = gammas.sum()
    staleness, length, freshness = np.zeros(n), np.zeros(n), np.zeros(n)
    active = np.ones(n, dtype=bool)
    while active.any():
        quiet = rng.exponential(1 / gamma, n)
        missing = (threshold - staleness) / alpha
        step = np.where(active, np.minimum(quiet, missing), 0.0)
        freshness += np.exp(-staleness) * -np.expm1(-alpha * step) / alpha
        length += step
        staleness += alpha * step
        announced = active & (quiet < missing)
        source = rng.choice(kappas.size, n, p=gammas / gamma)
        staleness[announced] += kappas[source[announced]]
        active = announced & (staleness < threshold)
    return length, freshness


def assert_mean(sample, expected):
    """The mean of the sample is the expected one, within 4.5 standard errors (and these are below 1 %)."""
    error = sample.std() / np.sqrt(sample.size)
    assert error < 0.01 * abs(expected)
    assert abs(sample.mean() - expected) < 4.5 * error


CASES = [
    pytest.param(0.3, 0.5, 1.0, 0.7, id="an announcement is worth more than a threshold"),
    pytest.param(1.0, 2.0, 0.4, 1.7, id="a few announcements"),
    pytest.param(0.05, 1.0, 0.3, 2.0, id="announcements decide"),
    pytest.param(1.0, 5.0, 0.02, 1.0, id="weak announcements"),
]


@pytest.mark.parametrize(("alpha", "gamma", "kappa", "threshold"), CASES)
def test_w_and_psi_of_lemma_4_are_means_over_simulated_intervals(alpha, gamma, kappa, threshold):
    """The mean length of an interval is psi, the mean freshness integrated over it is w."""
    length, freshness = simulate_interval(np.random.default_rng(1), 200_000, threshold, alpha, gamma, kappa)
    assert_mean(length, float(oracle.expected_interval(threshold, alpha, gamma, kappa)))
    assert_mean(freshness, float(oracle.expected_cumulative_freshness(threshold, alpha, gamma, kappa)))


def test_the_thresholds_of_theorem_1_give_the_rates_and_freshness_in_simulation():
    """Crawling when elapsed + beta n reaches a page's threshold has the rate and the freshness promised."""
    alpha, gamma, kappa = 0.18, 0.62, np.log(0.62 / 0.2)
    found = refresh_rates_with_signals([0.6], [0.7], [0.2], 1.0, bandwidth=0.25)
    threshold = alpha * found.effective_elapsed[0]
    length, freshness = simulate_interval(np.random.default_rng(11), 200_000, threshold, alpha, gamma, kappa)
    assert_mean(length, 1.0 / found.rates[0])
    objective = found.least_freshness[0] + found.threshold * found.rates[0]
    assert_mean(freshness, objective / found.rates[0])


def test_freshness_with_several_sources_is_what_the_sum_of_weights_says():
    """Changes that one source at most announces: P(fresh | n) = exp(-alpha tau - kappa . n), counted by simulation."""
    rng = np.random.default_rng(4)
    change_rate, recall, false_rate, elapsed, n = 0.6, np.array([0.3, 0.4]), np.array([0.4, 0.2]), 1.5, 2_000_000
    unsignalled = rng.poisson((1 - recall.sum()) * change_rate * elapsed, n)
    true = rng.poisson(recall * change_rate * elapsed, (n, 2))
    signals = true + rng.poisson(false_rate * elapsed, (n, 2))
    kappas = -np.log(false_rate / (recall * change_rate + false_rate))
    for seen in [(0, 0), (1, 0), (1, 2)]:
        chosen = (signals == seen).all(axis=1)
        fresh = (unsignalled[chosen] == 0) & (true[chosen].sum(axis=1) == 0)
        expected = np.exp(-(1 - recall.sum()) * change_rate * elapsed - kappas @ seen)
        assert abs(fresh.mean() - expected) < 4.5 * np.sqrt(expected * (1 - expected) / chosen.sum())


@pytest.mark.parametrize("n_signals", [(0, 0), (2, 0), (1, 1)])
def test_a_merged_source_is_close_to_the_sources_it_stands_for(n_signals):
    """`merge_sources` keeps the limit exactly, and is within a tenth of the mean gain over simulated intervals."""
    change_rate, recall, false_rate = 1.0, np.array([0.2, 0.5]), np.array([0.3, 0.1])
    gammas, alpha = recall * change_rate + false_rate, 0.3
    kappas = -np.log(false_rate / gammas)
    gamma, kappa = merge_sources(gammas, kappas)
    evidence = float(kappas @ n_signals)
    for elapsed in (1.0, 2.0, 6.0):
        threshold = alpha * elapsed + evidence
        length, freshness = simulate_interval(np.random.default_rng(3), 400_000, threshold, alpha, gammas, kappas)
        gain = (freshness - np.exp(-threshold) * length).mean()
        assert noisy_value(elapsed, evidence, alpha, gamma, kappa) == pytest.approx(gain, rel=0.1)
    assert noisy_value(np.inf, 0.0, alpha, gamma, kappa) == pytest.approx(1.0 / change_rate, rel=1e-12)


@pytest.mark.parametrize(("alpha", "gamma", "kappa", "threshold"), CASES)
def test_the_crawl_value_is_the_derivative_of_the_objective(alpha, gamma, kappa, threshold):
    """V(iota) = d(freshness) / d(crawl rate) along thresholds (appendix A), by differences of w / psi and 1 / psi."""
    step = mpmath.mpf(10) ** -12
    with mpmath.workdps(50):
        rates, gains = [], []
        for y in (threshold - step, threshold + step):
            psi = oracle.expected_interval(y, alpha, gamma, kappa)
            gains.append(oracle.expected_cumulative_freshness(y, alpha, gamma, kappa) / psi)
            rates.append(1 / psi)
        slope = (gains[1] - gains[0]) / (rates[1] - rates[0])
    assert noisy_value(threshold / alpha, 0.0, alpha, gamma, kappa) == pytest.approx(float(slope), rel=1e-9)


def test_greedy_is_the_derivative_of_the_objective():
    """Without announcements: V = d/d xi [mu xi / Delta (1 - exp(-Delta / xi))] at xi = 1 / tau, problem (5)."""
    change_rate, tau = 0.7, 1.9

    def objective(rate):
        return 3.0 * rate / change_rate * (1 - mpmath.exp(-change_rate / rate))

    with mpmath.workdps(40):
        slope = mpmath.diff(objective, 1 / mpmath.mpf(tau))
    assert greedy(tau, change_rate, 3.0) == pytest.approx(float(slope), rel=1e-13)


@tries(50)
@given(st.lists(st.floats(1e-3, 1.0), min_size=3, max_size=3), st.floats(0.01, 50.0))
def test_the_posterior_value_never_exceeds_greedy_at_its_limit_nor_the_mean_of_limits(weights, elapsed):
    """It is bounded by mu E[1 / Delta], what it is worth where there is no copy."""
    rates = np.array([0.05, 0.5, 5.0])
    weights = np.array(weights) / np.sum(weights)
    bound = weights @ (1 / rates)
    assert posterior_value(weights, rates, elapsed) <= bound * (1 + 1e-14)
    assert posterior_value(weights, rates, np.inf) == pytest.approx(bound, rel=1e-14)


def test_the_posterior_value_keeps_coming_back_where_the_mean_rate_gives_up():
    """A page that is either fast or slow outgrows the limit which GREEDY with its mean rate never passes."""
    rates, weights = np.array([0.01, 10.0]), np.array([0.5, 0.5])
    mean_limit = 1 / (weights @ rates)
    assert greedy(1e9, weights @ rates) <= mean_limit
    assert posterior_value(weights, rates, 300.0) > 50 * mean_limit
