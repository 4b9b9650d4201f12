"""Cho and Garcia-Molina (2003), "Estimating frequency of change": curves and examples, as printed."""

import numpy as np
import pytest

from crawlsched.estimators import (
    BiasReduced,
    FrequencyClasses,
    LastModified,
    MaximumLikelihood,
    Naive,
    UniformPrior,
    best_frequency_ratio,
    best_visit_interval,
)
from crawlsched.estimators.visit_counts import bias_reduced_moments, naive_moments

DAY = 86_400.0


def visited_regularly(estimators, frequency_ratio, n_visits, n_pages, seed=0):
    """Teach banks of equal pages, visited once per time unit and changing `frequency_ratio` times in it."""
    rng = np.random.default_rng(seed)
    pages = np.arange(n_pages)
    for _ in range(n_visits):
        since = rng.exponential(1 / frequency_ratio, n_pages)
        for estimator in estimators:
            estimator.update(pages, 1.0, since < 1, time_since_modified=since)


def assert_mean(values, expected, extra=0.0):
    """The mean is the expected one within four standard errors."""
    assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(values.size) + extra


@pytest.mark.parametrize(
    ("made", "moments", "r", "n"),
    [
        *((Naive, naive_moments, r, 5) for r in (0.05, 0.21, 1.0, 2.0, 5.0)),
        *((BiasReduced, bias_reduced_moments, *at) for at in ((0.1, 3), (1, 3), (0.5, 10), (2, 10), (3, 50), (6, 50))),
    ],
)
def test_figures_3_and_5_the_estimators_are_biased_as_drawn(made, moments, r, n):
    """Mean and deviation of a bank are those of Corollary 4.2 and of equation (1)."""
    estimator = made(40_000)
    visited_regularly([estimator], r, n, 40_000, seed=n)
    mean, deviation = moments(r, n)
    assert_mean(estimator.change_rate(), mean)
    assert estimator.change_rate().std() == pytest.approx(deviation, rel=0.02)
    assert naive_moments(r, n)[0] == pytest.approx(1 - np.exp(-r))


def test_figure_7_a_visit_teaches_most_at_one_and_a_half_changes():
    """The printed numbers are claims of the figure; beyond them it is the root that they tend to.

    For n = 20 and r < 2 the text gives a bias below 0.1 %; equation (1) gives up to 0.17 %.
    """
    assert abs(bias_reduced_moments(np.linspace(0.1, 1.9, 50), 20)[0] / np.linspace(0.1, 1.9, 50) - 1).max() < 0.0018
    assert all(abs(best_frequency_ratio(n) - 1.5) < 0.1 for n in (160, 400))
    root = best_frequency_ratio(2000)  # of r e^r = 2 (e^r - 1)
    assert root * np.exp(root) == pytest.approx(2 * np.expm1(root), rel=0.01)
    # Below 18 visits σ/r falls for ever: a visit tells most where its Fisher information about log r is greatest.
    for n_visits in (2, 5, 17):
        ratios = np.linspace(0.1, 6.0, 200)
        assert (np.diff(bias_reduced_moments(ratios, n_visits)[1] / ratios) < 0).all()
        ratio = best_frequency_ratio(n_visits)
        information = ratios**2 * np.exp(-ratios) / -np.expm1(-ratios)
        assert ratio**2 * np.exp(-ratio) / -np.expm1(-ratio) >= information.max()


@pytest.mark.parametrize(
    ("made", "a_day"), [(Naive, 0.6), (BiasReduced, -np.log(4.5 / 10.5)), (UniformPrior, -np.log(5 / 12))]
)
def test_example_1_six_changes_in_ten_days(made, a_day):
    """As the introduction and appendix B say: 0.6 times a day by the naive estimator, 0.8 by the bias-reduced one."""
    estimator = made(1)
    for changed in [True] * 6 + [False] * 4:
        estimator.update(0, DAY, changed)
    assert estimator.change_rate(0) * DAY == pytest.approx(a_day)


def test_example_4_ten_visits_ten_days_apart():
    """For a weekly page: every 10 days, 0.3 % of bias, and within 35 % of the truth with 75 % probability."""
    assert float(best_visit_interval(1 / (7 * DAY))) / DAY == pytest.approx(10, abs=0.6)
    mean, _ = bias_reduced_moments(1.5, 10)
    assert abs(mean / 1.5 - 1) < 0.0035
    estimator = BiasReduced(100_000)
    visited_regularly([estimator], 1.5, 10, 100_000)
    within = abs(estimator.change_rate() / 1.5 - 1) < 0.35
    assert abs(within.mean() - 0.755) < 4 * np.sqrt(0.25 / 100_000)


def test_example_5_irregular_visits():
    """Changes after 6 and 3 hours, none after 4 and 7: 2.67 changes in 20 hours."""
    estimator = MaximumLikelihood(1)
    for hours, changed in [(6, True), (4, False), (3, True), (7, False)]:
        estimator.update(0, 3600.0 * hours, changed)
    assert estimator.change_rate(0) * 20 * 3600 == pytest.approx(2.67, abs=0.005)


def test_figures_11_and_12_the_first_version_is_biased_as_drawn_and_the_corrected_one_is_not():
    """The limits are n log(n/(n-1)) at small r and n/(n-1) at great r; corrected, within 2 % with two visits."""
    for n, r in [(2, 20.0), (5, 20.0), (10, 20.0), (2, 0.02), (5, 0.02), (10, 0.02)]:
        limit = n / (n - 1) if r > 1 else n * np.log(n / (n - 1))
        estimator = LastModified(200_000)
        visited_regularly([estimator], r, n, 200_000, seed=n)
        assert_mean(estimator.uncorrected_change_rate() / r, limit, extra=0.01)
        assert_mean(estimator.change_rate() / r, 1.0, extra=0.02 if n == 2 else 0.005)
    assert estimator.uncorrected_change_rate(0) == estimator.uncorrected_change_rate([0])[0]


def test_example_6_last_modified_dates_remove_the_bias():
    """A weekly page visited monthly, five times: 43 % low without the dates, less than 0.1 % off with them."""
    assert bias_reduced_moments(4.0, 5)[0] / 4 == pytest.approx(0.57, abs=0.01)
    n = 400_000
    with_dates, without = LastModified(n), BiasReduced(n)
    visited_regularly([with_dates, without], 4.0, 5, n)
    assert_mean(without.change_rate() / 4, 0.57, extra=0.01)
    assert_mean(with_dates.change_rate() / 4, 1.0, extra=0.001)


@pytest.mark.parametrize("rate", [0, 1])
def test_section_2_pages_are_sorted_into_weekly_and_monthly(rate):
    """After a year of visits every ten days nearly all pages of either class are in theirs."""
    rng = np.random.default_rng(rate)
    n = 2000
    classes = FrequencyClasses(n)
    for _ in range(36):
        changed = rng.random(n) < -np.expm1(-classes.rates[rate] * 10 * DAY)
        classes.update(np.arange(n), 10 * DAY, changed)
    assert np.mean([name == classes.names[rate] for name in classes.classify()]) > 0.97
