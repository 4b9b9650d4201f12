"""The threshold is that of pages with a copy, and the forecast says which pages go next."""

import numpy as np
import pytest

from crawlsched.frontier import Pick
from crawlsched.planner import Plan, Planner, explain, forecast, plan
from tests.planners import never_rests


class World:
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
    world = World(50, n_new=20)
    before = world.planner.threshold
    picks = [world.step() for _ in range(20)]
    first = [pick for pick in picks if pick.is_first_copy]
    assert len(first) in (10, 11)
    assert min(pick.crawl_value for pick in first) > 100.0 * before
    assert world.planner.threshold < 2.0 * before
    assert world.planner.frontier.new


def test_the_forecast_names_most_of_the_pages_that_go_next() -> None:
    """Of twenty named at a dozen moments fifteen are among the next twenty on average, and forced ones come first."""
    world, agreed = World(300), []
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


def test_a_wait_that_is_foretold_is_within_three_times_of_what_comes() -> None:
    """Of more than a hundred pages asked about at random moments, in four fifths."""
    world, rng = World(200), np.random.default_rng(3)
    told: dict[int, tuple[float, float]] = {}
    good = []
    for slot in range(4000):
        if slot < 2000 and slot % 12 == 0:
            page = int(rng.integers(200))
            told.setdefault(page, (world.now, explain(world.planner, page, world.now)["wake_time"]))
        page = world.step().page
        if page in told:
            asked_at, wake_time = told.pop(page)
            good.append(0.3 <= max(wake_time - asked_at, 0.1) / (world.now - asked_at) <= 3.0)
    assert len(good) > 100
    assert np.mean(good) > 0.8


@pytest.mark.statistics
def test_where_half_of_the_pages_are_announced_four_fifths_go_within_three_times_of_what_was_said() -> None:
    """The likely time is never later than the time without announcements, by which no more than that go in time."""
    world, rng = World(200, announced=100), np.random.default_rng(3)
    told: dict[int, tuple[float, float, float]] = {}
    good = []
    for slot in range(3200):
        if slot < 1600 and slot % 8 == 0 and (page := int(rng.integers(200))) not in told:
            seen = explain(world.planner, page, world.now)
            assert world.now <= seen["likely_time"] <= seen["wake_time"]
            told[page] = world.now, seen["likely_time"], seen["wake_time"]
        page = world.step().page
        if page in told:
            asked_at, *times = told.pop(page)
            good.append([0.3 <= (world.now - asked_at) / max(time - asked_at, 0.1) <= 3.0 for time in times])
    assert len(good) > 100
    likely, woken = np.mean(good, axis=0)
    assert likely > 0.87
    assert likely > woken + 0.05


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
