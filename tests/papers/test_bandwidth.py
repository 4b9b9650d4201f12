"""The reference policies against the papers: 50-digit oracle, printed tables, and simulation."""

import numpy as np
import pytest
from mpmath import mp, mpf

from crawlsched.bandwidth import (
    harmonic_rates,
    low_discrepancy_schedule,
    poisson_crawl_rates,
    refresh_rates,
    refresh_rates_with_signals,
)
from crawlsched.crawl_value.terms import noisy_terms
from crawlsched.freshness import expected_freshness
from tests.papers import oracle

SCALES = pytest.mark.parametrize("spread", [0.5, 3.0, 8.0])  # standard deviation of the logarithms


def population(seed, n_pages, spread=1.0):
    rng = np.random.default_rng(seed)
    change_rate, importance = rng.lognormal(0.0, spread, n_pages), rng.lognormal(0.0, spread, n_pages)
    return change_rate, importance, 0.1 * n_pages * float(np.median(change_rate))


def test_cho_and_garcia_molinas_example():
    """Five pages that change 1 to 5 times a day, crawled 5 times in all: 1.15, 1.36, 1.35, 1.14 and never."""
    day = 86400.0
    rates = refresh_rates(np.arange(1, 6) / day, importance=1.0, bandwidth=5.0 / day).rates * day
    np.testing.assert_allclose(rates, [1.15, 1.36, 1.35, 1.14, 0.0], atol=0.005)


@SCALES
def test_problem_5_karush_kuhn_tucker_conditions_hold_in_50_digits(spread):
    """Every crawled page has the slope Lambda, and no page given up has more (Appendix A)."""
    change_rate, importance, bandwidth = population(1, 60, spread)
    found = refresh_rates(change_rate, importance, bandwidth)
    assert 0 < np.count_nonzero(found.rates == 0.0) < 60
    for rate, change, weight in zip(found.rates, change_rate, importance, strict=True):
        slope = mpf(weight) * oracle.freshness_slope(rate, change)
        if rate > 0.0:
            assert abs(slope / mpf(found.threshold) - 1) < 1e-12
        else:
            assert slope <= mpf(found.threshold) * (1 + mpf("1e-12"))


@SCALES
def test_poisson_rates_are_algorithm_2_of_azar_and_others(spread):
    """Rates and threshold agree with the sorted prefix sums in 50 digits."""
    change_rate, importance, bandwidth = population(3, 200, spread)
    found = poisson_crawl_rates(change_rate, importance, bandwidth)
    rates, threshold = oracle.azar_rates(change_rate, importance, bandwidth)
    assert 0 < np.count_nonzero(found.rates == 0.0) < 200
    assert found.threshold == pytest.approx(float(threshold), rel=1e-13)
    # Rates are differences, sqrt(mu Delta / Lambda) - Delta: exact to rounding of the larger of the two.
    np.testing.assert_allclose(found.rates, np.array([float(r) for r in rates]), rtol=1e-12, atol=1e-14 * bandwidth)


@SCALES
def test_harmonic_rates_are_the_formula(spread):
    """Rates agree with (sqrt(Delta^2 + 4 mu Delta / Lambda) - Delta) / 2 in 50 digits, and none is 0."""
    change_rate, importance, bandwidth = population(4, 100, spread)
    found = harmonic_rates(change_rate, importance, bandwidth)
    with mp.workdps(50):
        for rate, change, weight in zip(found.rates, map(mpf, change_rate), map(mpf, importance), strict=True):
            exact = (mp.sqrt(change**2 + 4 * weight * change / mpf(found.threshold)) - change) / 2
            assert exact > 0
            assert abs(mpf(rate) / exact - 1) < 1e-12


def noisy_population(seed, n_pages):
    """Give pages as in Figure 4 of Busa-Fekete et al.: recall Beta(0.25, 0.25), false signals U(0.1, 0.6)."""
    rng = np.random.default_rng(seed)
    change_rate, importance = rng.uniform(0.0, 1.0, n_pages), rng.uniform(0.0, 1.0, n_pages)
    return change_rate, np.clip(rng.beta(0.25, 0.25, n_pages), 1e-3, 1.0), rng.uniform(0.1, 0.6, n_pages), importance


@pytest.mark.parametrize("tightness", [0.02, 0.3])
def test_theorem_1_holds_in_50_digits(tightness):
    """V is the threshold at every page's effective elapsed time, and its rate is 1/psi there."""
    pages = noisy_population(5, 25)
    found = refresh_rates_with_signals(*pages, bandwidth=25 * tightness)
    crawled = np.flatnonzero(found.rates)
    assert crawled.size > 0
    for i in crawled:
        change, recall, false, weight = (float(part[i]) for part in pages)
        elapsed = found.effective_elapsed[i]
        value = mpf(weight) * oracle.noisy_value(elapsed, 0, change, recall, false)
        assert abs(value / mpf(found.threshold) - 1) < 1e-11
        alpha, *signals = oracle.natural(change, recall, false)
        assert abs(mpf(found.rates[i]) * oracle.expected_interval(alpha * elapsed, alpha, *signals) - 1) < 1e-11
    for i in np.flatnonzero(found.rates == 0.0):
        assert pages[3][i] / pages[0][i] <= found.threshold * (1.0 + 1e-12)
        assert found.effective_elapsed[i] == np.inf


def test_problem_4_has_no_duality_gap_in_50_digits():
    """The objective mu w/psi at the rates is the dual value mu exp(-alpha iota) plus threshold times bandwidth."""
    pages, bandwidth = noisy_population(6, 15), 4.0
    found = refresh_rates_with_signals(*pages, bandwidth=bandwidth)
    primal, dual = mpf(0), mpf(found.threshold) * bandwidth
    for i in np.flatnonzero(found.rates):
        change, recall, false, weight = (float(part[i]) for part in pages)
        alpha, *signals = oracle.natural(change, recall, false)
        y = alpha * mpf(found.effective_elapsed[i])
        w, psi = (of(y, alpha, *signals) for of in (oracle.expected_cumulative_freshness, oracle.expected_interval))
        primal += mpf(weight) * w / psi
        dual += mpf(weight) * mp.exp(-y)
    assert abs(dual / primal - 1) < 1e-11


@pytest.mark.parametrize("seed", range(40))
def test_psi_of_lemma_4_is_exact(seed):
    """It comes with the crawl value as its slope, and is the printed sum in 50 digits, of at most 300 terms."""
    rng = np.random.default_rng(seed)
    change = 10.0 ** rng.uniform(-3, 3)
    recall = (rng.uniform(), 1.0 - 10.0 ** rng.uniform(-12, -1), 10.0 ** rng.uniform(-6, -1), rng.beta(0.25, 0.25))[
        seed % 4
    ]
    recall = float(np.clip(recall, 1e-9, 1.0 - 1e-13))
    false = change * 10.0 ** rng.uniform(-4, 3)
    alpha, gamma, kappa = (1.0 - recall) * change, recall * change + false, float(np.log1p(recall * change / false))
    doubt = min(10.0 ** rng.uniform(-4, 1.3), 300.0 * kappa * rng.uniform())
    exact = oracle.expected_interval(doubt, *oracle.natural(change, recall, false))
    _, slope = noisy_terms(*(np.array([each]) for each in (doubt, alpha, gamma, kappa)))
    # The slope of the crawl value is exp(-y) psi. Beyond a doubt of 20 a value is its limit to rounding.
    assert slope[0] * np.exp(doubt) == pytest.approx(float(exact), rel=1e-13 if doubt < 5.0 else 1e-10)


def test_a_low_discrepancy_schedule_comes_close_to_the_optimum():
    """At the optimal rates the schedule reaches 99 % of the continuous optimum's freshness (section 6.4, Figure 2)."""
    rng = np.random.default_rng(13)
    n_pages, bandwidth = 200, 100.0
    change_rate, importance = rng.uniform(0.0, 1.0, n_pages), rng.uniform(0.0, 1.0, n_pages)
    found = refresh_rates(change_rate, importance, bandwidth)
    slots = low_discrepancy_schedule(found.rates, 100_000)
    fresh = np.zeros(n_pages)
    for page in range(n_pages):
        times = np.flatnonzero(slots == page) / bandwidth
        if times.size > 1:
            gaps = np.diff(times)
            fresh[page] = np.sum(-np.expm1(-change_rate[page] * gaps)) / change_rate[page] / np.sum(gaps)
    reached = np.sum(importance * fresh) / np.sum(importance)
    best = expected_freshness(found.rates, change_rate, importance)
    assert 0.99 * best < reached < best * (1.0 + 1e-3)
