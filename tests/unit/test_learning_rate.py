"""The learning rate: pages of steady rates are learned from as Bayes says, bursty ones less, and a restart keeps it."""

import itertools
import json

import numpy as np
import pytest

from crawlsched.estimators import Posterior
from crawlsched.planner import DEFAULT_GRID, Plan, Planner, plan
from crawlsched.planner.learning_rate import LEARNING_RATES, LearningRate

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
    """For Poisson pages the full likelihood foretells as well as any, and half of it or less does not."""
    rng = np.random.default_rng(1)
    mean = DAY * np.exp(rng.normal(2.5, 1.5, 150))
    pages = [np.cumsum(rng.exponential(interval, 2000)) for interval in mean]
    rate = learned(pages, np.arange(40) * 4 * DAY)
    assert rate.best >= 0.75
    assert rate.losses[-1] < 6.0 < rate.losses[1]


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
    rate = LearningRate(np.array([1e-3, 1e-1]), [4.0, 2.0, 0.0, 1.0, 3.0])
    rate.visited(np.zeros(2), np.array([0.5, 0.5]), 20.0, 0.0, True)
    assert rate.losses == pytest.approx([4.0, 2.0, 0.0, 1.0, 3.0], rel=1e-3)


def test_a_plan_keeps_what_was_found_and_a_planner_that_begins_goes_on_with_it() -> None:
    """Losses go through a plan's plain form, and a planner without visits of its own takes them over."""
    planner = Planner(bandwidth=1.0)
    planner.load({"page": np.arange(3), "state": np.full(3, 2), "crawled_at": np.zeros(3)}, None, 0.0)
    first = plan(planner.snapshot(), 1.0)
    assert first.learning_rate == 0.5
    data = json.loads(json.dumps(first.to_dict()))
    data["learning_losses"] = [9.0, 9.0, 9.0, 0.0, 9.0]
    found = Plan.from_dict(data)
    assert found.learning_rate == 0.75
    planner.adopt(found, 1.0)
    planner.catch_up(2.0)
    assert planner.values.parameters.learning_rate == 0.75
    assert plan(planner.snapshot(), 1.0, previous=found).learning_rate == 0.75


def test_losses_of_another_number_of_rates_are_refused() -> None:
    """The message says how many there must be."""
    with pytest.raises(ValueError, match=f"losses must be {len(LEARNING_RATES)} numbers, one per learning rate, got"):
        LearningRate(np.array([1e-3, 1e-1]), [0.0])
