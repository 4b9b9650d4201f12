"""Avrachenkov, Patil and Thoppe, "Online algorithms for estimating change rates of web pages": rates and claims."""

import warnings
from functools import cache

import numpy as np
import pytest

from crawlsched.estimators import LawOfLargeNumbers, Momentum, Naive, OutsideTheorem, StochasticApproximation

MARKS = (100, 200, 400, 800, 1600, 3200, 6400)


def errors(estimators, change_rate, crawl_rate, marks, n_pages, seed=0):
    """Return |estimate - truth| of each page after each number of visits in marks, per estimator.

    Visits come at random (exponential intervals), changes too, as the paper has it.
    """
    rng = np.random.default_rng(seed)
    found = {mark: [] for mark in marks}
    for k in range(1, max(marks) + 1):
        elapsed = rng.exponential(1 / crawl_rate, n_pages)
        changed = rng.random(n_pages) < -np.expm1(-change_rate * elapsed)
        for estimator in estimators:
            estimator.update(np.arange(n_pages), elapsed, changed)
        if k in found:
            found[k] = [estimator.change_rate() - change_rate for estimator in estimators]
    return np.array([found[mark] for mark in marks])


def quietly(make):
    """Make an estimator with step sizes outside the theorems without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideTheorem)
        return make()


@cache
def slopes():
    """Slope of log E|error| over log k for p = Δ, of each sequence and step size."""
    n = 1000
    made = {
        "1": LawOfLargeNumbers(n, 1.0, 1.0),
        "log k": LawOfLargeNumbers(n, 1.0, "log k"),
        "sqrt k": LawOfLargeNumbers(n, 1.0, "sqrt k"),
        "k^0.75": LawOfLargeNumbers(n, 1.0, "k^0.75"),
        "eta 0.5": quietly(lambda: StochasticApproximation(n, 1.0, eta=0.5)),
        "eta 0.6": StochasticApproximation(n, 1.0, eta=0.6),
        "eta 0.75": StochasticApproximation(n, 1.0, eta=0.75),
        "eta 0.9": StochasticApproximation(n, 1.0, eta=0.9),
        "beta 0.6": Momentum(n, 1.0, eta=1.2, beta=0.6),
        "beta 0.75": Momentum(n, 1.0),
    }
    mean = abs(errors(list(made.values()), 1.0, 1.0, MARKS, n)).mean(axis=2)
    logs = np.log(MARKS)
    return {name: np.polyfit(logs, np.log(mean[:, k]), 1)[0] for k, name in enumerate(made)}


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("name", "slope", "within"),
    [
        *((alpha, -0.5, 0.045) for alpha in ("1", "log k", "sqrt k")),
        ("k^0.75", -0.25, 0.08),
        *((f"eta {eta}", -eta / 2, 0.06) for eta in (0.5, 0.6, 0.75, 0.9)),
        *((f"beta {beta}", -beta / 2, 0.04) for beta in (0.6, 0.75)),
    ],
)
def test_theorems_1_and_2_estimators_converge_at_their_rates_and_momentum_at_the_conjectured_one(name, slope, within):
    """E|x_k - Δ| falls like max(k^-1/2, α_k/k), E|y_k - Δ| like k^-η/2, E|z_k - Δ| like k^-β/2 but for logarithms.

    Where α_k/k is not small yet (0.1 to 0.3 here for k^0.75) the bias α_k/(k/2 + α_k) falls more slowly: -0.19.
    That of η is a little steeper while the start is being forgotten.
    """
    assert slopes()[name] == pytest.approx(slope, abs=within)


@pytest.mark.parametrize(("change_rate", "visits"), [(1.0, 5), (1.0, 20), (10.0, 10), (0.2, 8)])
def test_the_law_of_large_numbers_with_alpha_one_is_biased_by_a_known_power(change_rate, visits):
    """With p = 1 and α = 1 its mean is 1 - μ^k of the truth, with μ = Δ/(Δ + p), a binomial sum."""
    law = LawOfLargeNumbers(40_000, 1.0)
    error = errors([law], change_rate, 1.0, (visits,), 40_000)[0, 0]
    expected = -change_rate * (change_rate / (change_rate + 1)) ** visits
    assert abs(error.mean() - expected) < 4 * error.std() / np.sqrt(40_000)


def test_the_naive_estimator_is_biased_by_missed_changes():
    """It converges to pΔ/(Δ + p) (section 3.4): 0.375 of Δ = 5 at p = 3."""
    naive = Naive(2000)
    error = errors([naive], 5.0, 3.0, (400,), 2000)[0, 0]
    assert abs((error + 5).mean() - 15 / 8) < 4 * error.std() / np.sqrt(2000)


def test_learned_crawl_rates_do_as_well_as_known_ones():
    """With p from the intervals the errors are of the same size, here even smaller: it knows their actual mean."""
    n = 500
    made = [
        LawOfLargeNumbers(n, 1.0),
        LawOfLargeNumbers(n),
        StochasticApproximation(n, 1.0),
        StochasticApproximation(n),
    ]
    known, learned, plain_known, plain_learned = errors(made, 1.0, 1.0, (400,), n)[0].std(axis=1)
    assert learned < 1.05 * known
    assert plain_learned < 1.05 * plain_known
