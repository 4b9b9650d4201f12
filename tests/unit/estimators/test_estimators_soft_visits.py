"""Visits that say less or more than changed or unchanged: a 304 in doubt, a change whose time is known."""

import numpy as np
import pytest

from crawlsched.estimators import Posterior
from crawlsched.planner import Planner, explain

RATES = np.geomspace(1e-6, 1e-1, 12)


def test_the_time_of_a_change_finds_rates_that_visits_alone_cannot() -> None:
    """A page that changes every minute, visited every hour: only times tell, also those below 1 s."""
    rng, rate = np.random.default_rng(1), 1 / 60.0
    rates = np.geomspace(1e-6, 1, 60)
    blind, told = Posterior(1, rates), Posterior(1, rates)
    n = 200
    for since in rng.exponential(1 / rate, n):
        blind.update_one(0, 3_600.0, True)
        told.update_one(0, 3_600.0, True, time_since_modified=float(since))
    # The mean of n exponential times is off by 1/sqrt(n) of itself; the grid by half a step of a ratio of 1.26.
    assert told.change_rate(0) == pytest.approx(rate, rel=4 / n**0.5 + 0.13)
    assert blind.change_rate(0) > 10 * rate


def test_a_time_before_the_last_visit_says_no_more_than_that_it_changed() -> None:
    """Nor do times of pages with announcements, whose unsignalled changes are what the grid is about."""
    plain, late, announced, timed = (Posterior(1, RATES) for _ in range(4))
    plain.update_one(0, 100.0, True)
    late.update_one(0, 100.0, True, time_since_modified=5_000.0)
    announced.update_one(0, 100.0, True, 1.0)
    timed.update_one(0, 100.0, True, 1.0, time_since_modified=5.0)
    assert (plain.weights(0) == late.weights(0)).all()
    assert (announced.weights(0) == timed.weights(0)).all()


def test_the_planner_passes_them_on() -> None:
    """A 304 in doubt leaves a page's rate higher than one that is believed; a change long ago leaves it lower."""

    def rate(**said: float) -> float:
        planner = Planner(bandwidth=1.0)
        planner.add(host=0, now=0.0, n=1)
        planner.crawled(0, 1.0, changed=None)
        changed = "time_since_modified" in said or said.pop("changed", 0.0) > 0
        planner.crawled(0, 100_001.0, changed=changed, **said)
        return explain(planner, 0, 100_001.0)["change_rate"]

    assert rate(doubt=0.2) > rate()
    assert rate(time_since_modified=90_000.0) < rate(changed=1.0)
