"""Persistence: whether pages keep to their rates is seen from visits, and decides how long what they teach counts."""

import json

import numpy as np
import pytest

from crawlsched.estimators import Posterior
from crawlsched.pages import LIVE
from crawlsched.planner import DEFAULT_GRID, Plan, Planner, plan
from crawlsched.planner.knowledge import RENEWAL
from crawlsched.planner.models.rate_stationarity import Persistence, first_persistence_losses, rates_stay

DAY = 86_400.0
PRIOR = np.full(DEFAULT_GRID.size, 1 / DEFAULT_GRID.size)


def visited(renewed: float, seed: int, n_pages: int = 120, rounds: int = 40) -> Persistence:
    """Visit pages once a day; before each visit a page's rate is another one with a probability."""
    rng = np.random.default_rng(seed)
    posterior = Posterior(n_pages, DEFAULT_GRID, dtype=np.uint8, renewal=RENEWAL, counts_updates=False)
    persistence, rate = Persistence(DEFAULT_GRID), rng.lognormal(-0.5, 1.5, n_pages)
    unchanged = np.exp(-DAY * DEFAULT_GRID)
    for visit in range(rounds):
        other = rng.random(n_pages) < renewed
        rate[other] *= 10.0 ** rng.uniform(-1.0, 1.0, int(other.sum()))
        for page in range(n_pages):
            changed = bool(rng.random() < -np.expm1(-rate[page]))
            fresh = float(posterior.weights_one(page, PRIOR) @ unchanged)
            persistence.foretold(page, PRIOR, 1.0, fresh, DAY, 0.0, changed)
            posterior.update_one(page, DAY, changed, prior=PRIOR, n_updates=visit)
            persistence.visited(page, DAY, changed, 0.0, posterior, n_updates=visit)
    return persistence


def test_pages_that_keep_to_their_rates_are_seen_to() -> None:
    """Visits are foretold better by what forgets nothing."""
    assert rates_stay(visited(0.0, 1, n_pages=150, rounds=90).losses)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pages_whose_rates_become_others_now_and_then_are_not_taken_for_steady(seed: int) -> None:
    """A rate that is another one in twenty visits: what forgets nothing foretells them far worse."""
    losses = visited(0.05, seed).losses
    assert not rates_stay(losses)
    assert losses[1] > 20.0


def test_one_visit_each_decides_nothing() -> None:
    """Both foretell it alike, and that rates may change is believed until visits show otherwise."""
    persistence = visited(0.0, 1, rounds=2)
    assert persistence.losses == pytest.approx(first_persistence_losses(), abs=0.2)
    assert not rates_stay(persistence.losses)


def test_some_pages_are_watched_and_others_in_the_place_of_those_that_are_forgotten() -> None:
    """512 of a thousand, whichever are visited first."""
    posterior = Posterior(1000, DEFAULT_GRID, dtype=np.uint8, counts_updates=False)
    persistence = Persistence(DEFAULT_GRID)

    def visit_all() -> int:
        before = persistence.n_visits
        for page in range(1000):
            persistence.foretold(page, PRIOR, 1.0, 0.5, DAY, 0.0, changed=True)
            persistence.visited(page, DAY, True, 0.0, posterior)
        return persistence.n_visits - before

    assert [visit_all() for _ in range(2)] == [0, 512]
    persistence.forget(np.arange(500, 1000))
    assert [visit_all() for _ in range(2)] == [500, 512]


def test_what_is_known_of_a_page_is_where_it_begins_and_what_visits_say_besides_counts() -> None:
    """A page's row is that of the posterior at first; then the two are told the same."""
    posterior = Posterior(1, DEFAULT_GRID, dtype=np.uint8, counts_updates=False)
    persistence = Persistence(DEFAULT_GRID)
    visits = [(True, {}), (False, {"doubt": 0.3}), (True, {"time_since_modified": DAY / 10}), (False, {})]
    for n_updates, (changed, told) in enumerate(visits * 3):
        # Without renewal one is the other but for rounding, so that nothing is learned of which is right.
        fresh = float(posterior.weights_one(0, PRIOR) @ np.exp(-DAY * DEFAULT_GRID))
        persistence.foretold(0, PRIOR, 1.0, fresh, DAY, 0.0, changed)
        posterior.update_one(0, DAY, changed, n_updates=n_updates, **told)
        persistence.visited(0, DAY, changed, 0.0, posterior, n_updates=n_updates, **told)
    assert persistence.n_visits == 11
    assert persistence.losses == pytest.approx(first_persistence_losses(), abs=0.2)


def test_a_plan_keeps_what_was_found_and_a_planner_that_begins_goes_on_with_it() -> None:
    """Losses go through a plan's plain form; plans of earlier versions are read as if no visit had been seen."""
    planner = Planner(bandwidth=1.0)
    planner.load({"page": np.arange(3), "state": np.full(3, LIVE), "crawled_at": np.zeros(3)}, None, 0.0)
    data = json.loads(json.dumps(plan(planner.snapshot(), 1.0).to_dict()))
    data["persistence_losses"] = [2.0, 0.0]
    planner.adopt(Plan.from_dict(data), 1.0)
    planner.catch_up(2.0)
    assert planner.values.parameters.rates_stay
    assert plan(planner.snapshot(), 1.0, previous=planner.plan).persistence_losses.tolist() == [2.0, 0.0]
    del data["persistence_losses"]
    assert Plan.from_dict(data).persistence_losses.tolist() == first_persistence_losses().tolist()


def explored(losses: list[float]) -> int:
    """Return how many of 900 picks explore, if plans say of pages' rates what these losses mean."""
    rng, n = np.random.default_rng(4), 40
    planner = Planner(1.0, rates=np.geomspace(1e-4, 1.0, 32), exploration_rounds=5.0)
    planner.add(0, 0.0, rng.lognormal(0.0, 1.0, n), n)
    rates, last, reasons, next_plan = rng.lognormal(-3.0, 1.5, n), np.zeros(n), [], 64
    for page in range(n):
        planner.crawled(page, 0.0, changed=None)
    for slot in range(1, 900):
        pick = planner.pick(float(slot), lambda host, now: now)
        assert pick is not None
        reasons.append(pick.reason)
        changed = bool(rng.random() < -np.expm1(-rates[pick.page] * (slot - last[pick.page])))
        planner.crawled(pick.page, float(slot), changed=changed)
        last[pick.page] = slot
        if slot >= next_plan:
            next_plan += 4 * n
            data = plan(planner.snapshot(), 1.0).to_dict()
            planner.adopt(Plan.from_dict(data | {"persistence_losses": losses}), float(slot))
    return reasons.count("exploration")


def test_where_rates_stay_more_visits_are_for_what_they_teach() -> None:
    """What is learned counts for four times as many rounds there."""
    assert explored([9.0, 0.0]) > 1.2 * explored([0.0, 9.0]) > 0
