"""What is said of the time to come: the threshold and the pages that go next, and what other bandwidths would give."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

from crawlsched.bandwidth import refresh_rates, refresh_rates_with_signals
from crawlsched.crawl_value.rules import RULES
from crawlsched.freshness import expected_freshness
from crawlsched.frontier import Pick
from crawlsched.planner import Plan, Planner, explain, forecast, plan
from crawlsched.planner.reports.outlook import Outlook
from tests.planners import load_crawled, never_rests
from tests.simulated import HOUR, World

NOW = 1e6
RATES = np.geomspace(1e-4, 1.0, 32)


def crawled(n_pages: int, seed: int = 0, **parameters: object) -> Planner:
    """Return a planner whose pages have all been crawled now; their rates are known."""
    rng = np.random.default_rng(seed)
    planner = Planner(1.0, rates=RATES, **parameters)  # type: ignore[arg-type]
    load_crawled(planner, n_pages, NOW, importance=rng.lognormal(0, 1, n_pages), crawled_at=NOW)
    # 30 nats below the likeliest rate is as good as impossible.
    rows = np.full((n_pages, RATES.size), 60_000, np.uint16)
    rows[np.arange(n_pages), rng.integers(0, RATES.size, n_pages)] = 0
    planner.posterior.unpack(np.arange(n_pages), rows)
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


class SteadyWorld:
    """Pages that change at rates of their own, and a planner that has visited each a few times, ten a second."""

    def __init__(self, n: int, n_new: int = 0, *, announced: int = 0) -> None:
        self.planner, self.now = Planner(10.0), 0.0
        self._rng = np.random.default_rng(1)
        self._rates = self._rng.lognormal(np.log(10.0 / n), 1.0, n + n_new)
        self.planner.add(np.zeros(n, int), 0.0)
        self._announced, self._stale = np.arange(announced), set[int]()
        self.planner.covered(self._announced, 0, 0.0)
        for _ in range(6):
            for _ in range(n):
                self.step()
            self.planner.adopt(plan(self.planner.snapshot(), 10.0), self.now)
        self.planner.add(np.zeros(n_new, int), self.now, 1.0, n_new)

    def step(self) -> Pick:
        """Let the next slot pass; return what went, before which the planner knew nothing of it."""
        self.now += 0.1
        changed_now = self._announced[self._rng.random(self._announced.size) < 0.1 * self._rates[self._announced]]
        self._stale.update(changed_now.tolist())
        self.planner.signalled(changed_now, 0, self.now)
        pick = self.planner.pick(self.now, never_rests)
        elapsed = self.now - self.planner.pages.crawled_at.item(pick.page)
        by_chance = self._rng.random() < -np.expm1(-self._rates[pick.page] * elapsed)
        changed = bool(pick.page in self._stale if pick.page < self._announced.size else by_chance)
        self._stale.discard(pick.page)
        self.planner.crawled(pick.page, self.now, None if elapsed == np.inf else changed)
        return pick


def test_a_first_crawl_does_not_raise_the_threshold_of_pages_that_have_a_copy() -> None:
    """One is worth thousands of times as much: before, a known page was told to wait for months after each."""
    world = SteadyWorld(50, n_new=20)
    before = world.planner.threshold
    picks = [world.step() for _ in range(20)]
    first = [pick for pick in picks if pick.is_first_copy]
    assert len(first) in (10, 11)
    assert min(pick.crawl_value for pick in first) > 100.0 * before
    assert world.planner.threshold < 2.0 * before
    assert world.planner.frontier.new


def test_the_forecast_names_most_of_the_pages_that_go_next() -> None:
    """Of twenty named at a dozen moments fifteen are among the next twenty on average, and forced ones come first."""
    world, agreed = SteadyWorld(300), []
    for _ in range(12):
        named = set(forecast(world.planner, world.now, 20).tolist())
        agreed.append(len(named & {world.step().page for _ in range(20)}))
    assert np.mean(agreed) >= 15.0
    world.planner.force([7, 3], world.now)
    assert set(forecast(world.planner, world.now, 5)[:2].tolist()) == {3, 7}


def test_the_forecast_gives_a_host_no_more_slots_than_it_lets_itself_be_asked_for() -> None:
    """Of a host that may be asked once in four slots it names a page in four, and in that order they go."""
    planner, free_at = Planner(10.0), {1: 0.0}
    planner.add(np.arange(80) % 2, 0.0, np.where(np.arange(80) % 2, 5.0, 1.0))
    pauses = {0: 0.0, 1: 0.4}
    named = forecast(planner, 1.0, 20, pauses.__getitem__).tolist()
    assert np.mean(np.array(named) % 2) == 0.25
    picked, now = [], 1.0
    for _ in range(20):
        pick = planner.pick(now, lambda host, now: max(now, free_at.get(host, now)))
        if pick.page % 2:
            free_at[1] = now + 0.4 - 1e-9
        picked.append(pick.page)
        now += 0.1
    assert named == picked


def test_pages_of_a_host_that_rests_are_named_if_it_returns_in_time() -> None:
    """It is left out of picks for half a second, and twenty visits take two; or for an hour."""
    planner = Planner(10.0)
    planner.add([0] * 20 + [1] * 20, 0.0, [1.0] * 20 + [5.0] * 20)
    free_at = {1: 1.5}
    for _ in range(2):
        assert planner.pick(1.0, lambda host, now: free_at.get(host, now)).page < 20  # type: ignore[union-attr]
    named = forecast(planner, 1.0, 20)
    assert (named[:5] < 20).all()
    assert (named[5:] >= 20).any()
    free_at[1] = 3600.0
    planner.pick(1.6, lambda host, now: free_at.get(host, now))
    assert (forecast(planner, 1.6, 20) < 20).all()


def foretold(world: SteadyWorld, n_slots: int, every: int) -> np.ndarray:
    """Ask about random pages in the first half of so many slots; return how long each waited, and what was said of it.

    That is the likely wait, and the one without announcements.
    """
    rng, told, waits = np.random.default_rng(3), dict[int, tuple[float, float, float]](), []
    for slot in range(n_slots):
        if slot < n_slots // 2 and slot % every == 0:
            page = int(rng.integers(200))
            seen = explain(world.planner, page, world.now)
            assert world.now <= seen["likely_time"] <= seen["wake_time"]
            told.setdefault(page, (world.now, seen["likely_time"], seen["wake_time"]))
        page = world.step().page
        if page in told:
            asked_at, *times = told.pop(page)
            waits.append([world.now - asked_at, *(max(time - asked_at, 0.1) for time in times)])
    assert len(waits) > 100
    return np.array(waits).T


def within_three_times(wait: np.ndarray, said: np.ndarray) -> float:
    return float(((wait >= 0.3 * said) & (wait <= 3.0 * said)).mean())


def test_a_wait_that_is_foretold_is_within_three_times_of_what_comes() -> None:
    """In four fifths of the cases."""
    wait, _, woken = foretold(SteadyWorld(200), 4000, every=12)
    assert within_three_times(wait, woken) > 0.8


@pytest.mark.statistics
def test_where_half_of_the_pages_are_announced_four_fifths_go_within_three_times_of_what_was_said() -> None:
    """The likely time is never later than the time without announcements, by which no more than that go in time."""
    wait, likely, woken = foretold(SteadyWorld(200, announced=100), 3200, every=8)
    assert within_three_times(wait, likely) > 0.87
    assert within_three_times(wait, likely) > within_three_times(wait, woken) + 0.05


def test_new_pages_of_a_host_that_may_be_asked_only_so_often_are_no_demand() -> None:
    """A shard would be given a share for them that it cannot use: the limit is in its curve already."""
    planner = Planner(bandwidth=1.0)
    planner.add([0] * 30 + [1] * 50, 0.0)
    for page in (0, 1, 2, 70, 71):
        planner.crawled(page, 1.0, None)
    limits = np.array([np.inf, 0.01])
    snapshot = planner.snapshot(lambda: limits)
    assert (snapshot.n_pages, snapshot.n_held) == (5, 48)
    made = plan(snapshot, 1.0)
    assert made.n_held == 48
    assert Plan.from_dict(made.to_dict()).n_held == 48
    assert planner.snapshot().n_held == 0
