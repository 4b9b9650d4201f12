"""The learning rate: pages of steady rates are learned from as Bayes says, bursty ones less, and a restart keeps it."""

import itertools
import json

import numpy as np
import pytest

from crawlsched.crawl_value import use_compiled
from crawlsched.estimators import Posterior
from crawlsched.planner import DEFAULT_GRID, Plan, Planner, plan
from crawlsched.planner.models.likelihood_power import LEARNING_RATES, LearningRate, first_losses

DAY = 86_400.0


def learned(changed_at: list[np.ndarray], times: np.ndarray) -> LearningRate:
    """Visit pages at given times, and return which learning rate foretold what was found best."""
    posterior = Posterior(len(changed_at), DEFAULT_GRID)
    rate = LearningRate(posterior.rates)
    # As plans learn it: about the mean interval of 12 days, with a standard deviation of a factor of 4.5.
    prior = np.exp(-(((np.log(posterior.rates * DAY) + 2.5) / 1.5) ** 2) / 2)
    prior /= prior.sum()
    for before, now in itertools.pairwise(times.tolist()):
        for page, changes in enumerate(changed_at):
            changed = bool(((changes > before) & (changes <= now)).any())
            rate.visited(posterior.log_likelihood(page), prior, now - before, 0.0, changed)
            posterior.update_one(page, now - before, changed, 0.0)
    return rate


def test_of_pages_that_change_at_steady_rates_as_much_is_learned_as_bayes_says() -> None:
    """For Poisson pages the full likelihood foretells as well as any, and half of it does not."""
    rng = np.random.default_rng(1)
    mean = DAY * np.exp(rng.normal(2.5, 1.5, 150))
    pages = [np.cumsum(rng.exponential(interval, 2000)) for interval in mean]
    rate = learned(pages, np.arange(40) * 4 * DAY)
    assert rate.best >= 0.75
    lost = rate.losses - first_losses()
    assert lost[-1] < 2.0 < lost[0]


def test_of_pages_that_change_in_bursts_less_is_learned() -> None:
    """Pages that change daily for a week, and then not for months, are foretold better by less of the likelihood."""
    rng = np.random.default_rng(2)
    pages = []
    for _ in range(150):
        bursts = np.cumsum(rng.exponential(60 * DAY, 10))
        pages.append(np.sort(np.concatenate([start + rng.uniform(0, 9 * DAY, 7) for start in bursts])))
    assert learned(pages, np.arange(25) * 4 * DAY).best < 1.0


def test_pages_without_a_history_tell_nothing() -> None:
    """Where the likelihood is flat, all rates foretell the same and what was known stays."""
    rate = LearningRate(np.array([1e-3, 1e-1]), [0.0, 1.0, 3.0])
    rate.visited(np.zeros(2), np.array([0.5, 0.5]), 20.0, 0.0, True)
    assert rate.losses == pytest.approx([0.0, 1.0, 3.0], rel=1e-3)


def test_compiled_code_foretells_and_learns_the_same() -> None:
    """Visit by visit and compiled, or many together in numpy: losses and probabilities of no change agree."""
    pytest.importorskip("numba")
    rng = np.random.default_rng(3)
    posterior = Posterior(5, DEFAULT_GRID, dtype=np.uint8, renewal=0.003)
    prior = rng.dirichlet(np.ones(posterior.rates.size))
    plain, compiled = LearningRate(posterior.rates), LearningRate(posterior.rates)
    assert compiled.foretold(posterior.codes(5), 0, prior, 1.0, 1.0, 0.0, True, True) is None
    use_compiled(True)
    try:
        for visit in range(200):
            page, elapsed, changed = int(rng.integers(5)), DAY * 10 ** rng.uniform(-4, 2), bool(rng.random() < 0.5)
            evidence, counts = float(rng.choice([0.0, 0.4, 3.0])), visit % 5 > 0
            weights = posterior.weights_one(page, prior, 0.5)
            found = elapsed, evidence, changed
            fresh = compiled.foretold(posterior.codes(5), page, prior, 0.5, *found, counts)
            assert fresh == pytest.approx(weights @ np.exp(-posterior.rates * elapsed), rel=1e-12)
            if counts:
                plain.visited(posterior.codes(5)[page].copy(), prior, *found)
            posterior.update_one(page, elapsed, changed, evidence, prior=prior)
    finally:
        use_compiled(None)
    assert compiled.n_visits == plain.n_visits == 160
    assert compiled.losses == pytest.approx(plain.losses, rel=1e-9)


def test_where_prior_and_visits_rule_each_other_out_compiled_code_leaves_it_to_numpy() -> None:
    """Nothing is learned then, and nothing is divided by 0."""
    pytest.importorskip("numba")
    posterior, rate = Posterior(1, np.array([1e-3, 1e-1]), dtype=np.uint8), LearningRate(np.array([1e-3, 1e-1]))
    before = rate.losses.copy()
    use_compiled(True)
    try:
        for counts in (False, True):
            assert rate.foretold(posterior.codes(1), 0, np.zeros(2), 1.0, 5.0, 0.0, True, counts) is None
    finally:
        use_compiled(None)
    assert rate.n_visits == 0
    assert rate.losses.tolist() == before.tolist()


def test_a_plan_keeps_what_was_found_and_a_planner_that_begins_goes_on_with_it() -> None:
    """Losses go through a plan's plain form, and a planner without visits of its own takes them over."""
    planner = Planner(bandwidth=1.0)
    planner.load({"page": np.arange(3), "state": np.full(3, 2), "crawled_at": np.zeros(3)}, None, 0.0)
    first = plan(planner.snapshot(), 1.0)
    assert first.learning_rate == 0.5
    data = json.loads(json.dumps(first.to_dict()))
    # As an earlier version left it, which compared two smaller learning rates, too.
    data["learning_losses"] = [9.0, 9.0, 9.0, 0.0, 9.0]
    found = Plan.from_dict(data)
    assert Plan.from_dict(json.loads(json.dumps(found.to_dict()))).learning_losses.tolist() == [9.0, 0.0, 9.0]
    assert found.learning_rate == 0.75
    planner.adopt(found, 1.0)
    planner.catch_up(2.0)
    assert planner.values.parameters.learning_rate == 0.75
    assert plan(planner.snapshot(), 1.0, previous=found).learning_rate == 0.75


def test_losses_of_another_number_of_rates_are_refused() -> None:
    """The message says how many there must be."""
    with pytest.raises(ValueError, match=f"losses must be {len(LEARNING_RATES)} numbers, one per learning rate, got"):
        LearningRate(np.array([1e-3, 1e-1]), [0.0])
