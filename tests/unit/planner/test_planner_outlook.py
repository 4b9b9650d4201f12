"""An outlook says what the planner's thresholds cost and give: against closed forms, and crawls that went on."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from crawlsched.bandwidth import refresh_rates, refresh_rates_with_signals
from crawlsched.crawl_value.rules import RULES
from crawlsched.freshness import expected_freshness
from crawlsched.planner import Planner, plan
from crawlsched.planner.reports.outlook import Outlook
from tests.simulated import HOUR, World

NOW = 1e6
RATES = np.geomspace(1e-4, 1.0, 32)


def crawled(n_pages: int, seed: int = 0, surely: bool = True, **parameters: object) -> Planner:
    """Return a planner whose pages have all been crawled now; their rates are known (or are what the prior says)."""
    rng = np.random.default_rng(seed)
    planner = Planner(1.0, rates=RATES, **parameters)  # type: ignore[arg-type]
    pages = planner.add(0, NOW, rng.lognormal(0, 1, n_pages))
    for page in pages.tolist():
        planner.crawled(page, NOW, None)
    if surely:
        # 30 nats below the likeliest rate is as good as impossible.
        rows = np.full((n_pages, RATES.size), 60_000, np.uint16)
        rows[pages, rng.integers(0, RATES.size, n_pages)] = 0
        planner.posterior.unpack(pages, rows)
    return planner


def looked_at(planner: Planner, mean_interval: float = 100.0) -> Outlook:
    outlook = Outlook(mean_interval)
    outlook.add(planner, np.arange(len(planner.pages)))
    return outlook


def known_rates(planner: Planner) -> tuple[np.ndarray, np.ndarray]:
    pages = np.arange(len(planner.pages))
    weights = planner.values.weights(pages)
    assert (weights.max(axis=1) > 1 - 1e-7).all()
    return RATES[weights.argmax(axis=1)], planner.pages.importance[pages].astype(float)


@pytest.mark.parametrize("rule", ["posterior", *RULES])
@pytest.mark.parametrize("bandwidth", [0.2, 2.0, 20.0])
def test_where_rates_are_known_it_is_the_optimum(rule: str, bandwidth: float) -> None:
    """Without announcements every rule crawls at the rates that solve problem (5), and its freshness is theirs."""
    planner = crawled(200, crawl_value=rule)
    rates, importance = known_rates(planner)
    outlook = looked_at(planner)
    best = refresh_rates(rates, importance, bandwidth)
    freshness = expected_freshness(best.rates, rates, importance)
    assert outlook.freshness(bandwidth) == pytest.approx(freshness, abs=1e-3)
    assert outlook.bandwidth(freshness) == pytest.approx(bandwidth, rel=1e-2)
    in_turn = expected_freshness(np.full(200, bandwidth / 200), rates, importance)
    assert outlook.freshness_in_turn(bandwidth) == pytest.approx(in_turn, abs=2e-3)


@pytest.mark.parametrize(
    ("signal_rate", "signal_weight"),
    [(0.1, 1.0), (0.03, 3.0), (0.5, 0.05), (0.005, 0.5)],
    ids=["true ones", "surer ones", "many that say little", "few"],
)
def test_with_announcements_of_known_quality_it_is_the_optimum(signal_rate: float, signal_weight: float) -> None:
    """The freshness is that of problem (4), solved by Theorem 1 of the noisy-signals paper."""
    planner = crawled(20, seed=1)
    pages = np.arange(20)
    planner.covered(pages, 0, NOW)
    planner.pages.signalled_since[pages] = 0.0
    planner.pages.n_signals_total[pages] = round(signal_rate * NOW)
    columns = {"signal_weights": np.full(2, signal_weight), "signal_rates": np.full(2, signal_rate)}
    planner.in_force.parameters = replace(planner.in_force.parameters, **columns)
    unsignalled, importance = known_rates(planner)
    rate, weight = planner.announcements.signals(pages)
    change_rate = unsignalled - rate * np.expm1(-weight)
    recall, false = 1 - unsignalled / change_rate, rate * np.exp(-weight)
    outlook = looked_at(planner)
    for bandwidth in (0.1, 1.0, 10.0):
        best = refresh_rates_with_signals(change_rate, recall, false, importance, bandwidth)
        # By duality: what is fresh when it is crawled, and what all crawls are worth.
        freshness = (importance @ best.least_freshness + best.threshold * bandwidth) / importance.sum()
        assert outlook.freshness(bandwidth) == pytest.approx(freshness, abs=5e-3)


def test_a_shortest_interval_bounds_what_can_be_used() -> None:
    """30 pages that may be crawled once in 50 s cannot use more than 0.6 crawls a second."""
    outlook = looked_at(crawled(30, min_crawl_interval=50.0))
    assert outlook.largest_bandwidth == pytest.approx(30 / 50.0, rel=0.02)
    assert outlook.freshness(10.0) == outlook.freshness(1000.0)
    assert outlook.bandwidth(0.9999) == np.inf


def test_a_longest_interval_that_asks_for_too_much_makes_it_crawl_in_turn() -> None:
    """At half of what the longest interval asks for, the oldest goes first: all pages in turn."""
    planner = crawled(30, max_crawl_interval=100.0)
    outlook = looked_at(planner)
    rates, importance = known_rates(planner)
    in_turn = expected_freshness(np.full(30, 0.15 / 30), rates, importance)
    assert outlook.freshness(0.15) == pytest.approx(in_turn, abs=2e-3)
    assert outlook.freshness(0.6) > outlook.freshness_in_turn(0.6)


def test_wrong_arguments_are_one_sentence() -> None:
    """The sentence names the argument."""
    with pytest.raises(ValueError, match=r"^mean_interval must be seconds above 0 and finite, got 0\.$"):
        Outlook(0)


def go_on(
    world: World, planner: Planner, now: float, days: float, learned: dict[str, list[float]]
) -> tuple[float, float]:
    """Crawl for some days and make three plans a day; return the time, and how fresh the pages were on the way."""
    fresh = []
    slots = int(days * 24 * HOUR * planner.bandwidth)
    for number, (page, time, changed) in enumerate(world.slots(planner, now, slots), 1):
        seen = planner.crawled(page, time, None if planner.pages.n_crawls[page] == 0 else changed)
        if seen is not None:
            for name, column in learned.items():
                column.append(getattr(seen, name))
        fresh.append(1.0 - world.changed_since.mean())
        if number % int(8 * HOUR * planner.bandwidth) == 0 or number == slots:
            columns = {name: np.array(column) for name, column in learned.items()}
            planner.adopt(plan(planner.snapshot(), planner.bandwidth, columns), time)
            while planner.work(time):
                pass
    return time, float(np.mean(fresh))


@pytest.mark.statistics
def test_a_crawl_that_goes_on_at_another_bandwidth_is_as_fresh_as_it_said() -> None:
    """After three days at 16 an hour, some more at 0.5, 1 and 2 times that: within 0.03 of the freshness reached.

    Half of the pages have announcements that are worth something. docs/explanation/whatif.md has more and longer runs.
    """
    world, learned = World(100, seed=3), {name: [] for name in ("elapsed", "n_signals", "source", "changed")}
    planner = world.planner(16 / HOUR, 0.0)
    now, _ = go_on(world, planner, 0.0, 3.0, learned)
    outlook = Outlook(100 / planner.bandwidth)
    outlook.add(planner, np.arange(100))
    for times in (0.5, 1.0, 2.0):
        its_world, its_planner, its = copy.deepcopy((world, planner, learned))
        its_planner.set_bandwidth(times * planner.bandwidth, now)
        settled, _ = go_on(its_world, its_planner, now, 1.0 / times**0.5, its)
        _, reached = go_on(its_world, its_planner, settled, 2.0 / times**0.5, its)
        said = outlook.freshness(its_planner.bandwidth)
        assert said == pytest.approx(reached, abs=0.03)
        assert abs(said - reached) < abs(outlook.freshness_in_turn(its_planner.bandwidth) - reached)
