"""What visits found of each page's announcements is in the store: a planner that begins anew decides as before."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from crawlsched.planner import Plan, Planner, explain
from crawlsched.store import Store
from tests.simulated import Simulated, crawl

NOW = 1.7e9
COUNTS = ("true_signals", "false_signals")


def reloaded(store: Store, bandwidth: float, now: float) -> Planner:
    """Return a planner that knows what the store does."""
    planner = Planner(bandwidth)
    numbers: dict[str, int] = {}

    def number(name: str) -> int:
        return numbers.setdefault(name, len(numbers))

    for block in store.load(
        1000, host_number=number, grid=planner.grid, n_rates=planner.posterior.rates.size, fingerprinter=""
    ):
        planner.load(block, block["log_likelihood"], now)
    stored = store.plans.newest()
    assert stored is not None
    planner.adopt(Plan.from_dict(stored.data, number), now)
    while planner.work(now):
        pass
    return planner


def simulated(database_url: str, days: float) -> Simulated:
    """Crawl 120 pages, those of one host announced honestly, those of the other at any time."""
    return crawl(Store.open(database_url, "simulated", upgrade=True), NOW, days=days)


@pytest.mark.statistics
def test_a_planner_that_begins_anew_knows_and_picks_the_same(database_url: str) -> None:
    """A tenth of the pages is explained as before; the next 300 slots go to the same pages, some sooner or later."""
    made = simulated(database_url, 3.0)
    before, after = made.planner, reloaded(made.store, made.planner.bandwidth, NOW)
    made.store.close()
    pages = np.arange(len(before.pages))
    for name in COUNTS:
        assert (before.own_precision.columns(pages)[name] == after.own_precision.columns(pages)[name]).all()
        assert before.own_precision.columns(pages)[name].max() > 1
    # A running mean of the values picked, which is not stored.
    after.threshold = before.threshold
    for page in pages[::11].tolist():  # an odd step: pages of both hosts
        assert explain(before, page, NOW + 1.0) == explain(after, page, NOW + 1.0)
    slots = [made.world.slots(planner, NOW, 300) for planner in (before, after)]
    state = made.world.rng.bit_generator.state, made.world.changed_since.copy()
    picked = []
    for planner, times in zip((before, after), slots, strict=True):
        made.world.rng.bit_generator.state, made.world.changed_since[:] = state
        found = []
        for page, now, changed in times:
            planner.crawled(page, now, changed)
            found.append(page)
        picked.append(found)
    # The level above which pages are due is not stored: of those that are worth nearly the same another may go first.
    assert (Counter(picked[0]) & Counter(picked[1])).total() >= 285
