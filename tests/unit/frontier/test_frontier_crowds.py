"""A cutoff that comes down to crowds of pages, some of which are announced."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from crawlsched.crawl_value import use_compiled
from crawlsched.frontier import frontier, membership, values
from crawlsched.frontier.evaluation import evaluation_queue
from crawlsched.frontier.sleeping import crowded_levels
from crawlsched.frontier.sleeping.level_queue import Ladder
from crawlsched.frontier.sleeping.levels import FALLING_SHARE
from crawlsched.planner import Planner

pytestmark = pytest.mark.statistics

HAS_NUMBA = importlib.util.find_spec("numba") is not None
N_PAGES = 3000


def crowded(bandwidth: float) -> Planner:
    """Return a planner of pages that are worth nearly the same, a third of them announced some times."""
    rng = np.random.default_rng(5)
    planner = Planner(bandwidth, signal_delay=0.0)
    crawled_at = np.round(-rng.uniform(0.0, 1000.0, N_PAGES), 3)
    columns = {
        "page": np.arange(N_PAGES),
        "state": np.full(N_PAGES, 2),
        "importance": rng.choice([1.0, 1.001, 1.002], N_PAGES),
        "host": np.zeros(N_PAGES, int),
        "crawled_at": crawled_at,
        "first_seen": crawled_at,
        "n_crawls": np.ones(N_PAGES, int),
    }
    likelihoods = np.tile(rng.integers(0, 900, planner.posterior.rates.size), (N_PAGES, 1)).astype(np.uint16)
    planner.load(columns, likelihoods, 0.0)
    for _ in range(3):
        planner.signalled(np.sort(rng.choice(N_PAGES // 3, 200, replace=False)), 0, 0.0)
        while planner.work(0.0):  # more than a slice is announced in slices
            pass
    return planner


def foresee_small_crowds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let beds of four pages be crowded, and be found from afar and often, but not be opened ahead."""
    for name, value in (("_CROWD", 4), ("_FORESEEN", 4000), ("_LOOKED_FOR_EVERY", 32)):
        monkeypatch.setattr(crowded_levels, name, value)
    for module in (evaluation_queue, membership):
        monkeypatch.setattr(module, "SOON", -1)


def pick_the_best(planner: Planner, inside: np.ndarray, now: float) -> None:
    """Pick a page, and take it out of those inside; each third has to be the one that brute force picks."""
    is_compared = round(100 * now) % 3 == 0  # slots are 0.01 s apart
    best = _best_of(planner, np.flatnonzero(inside), now) if is_compared else None
    pick = planner.frontier.pick(now, lambda host, at: at)
    assert pick is not None
    assert best in (None, pick.page)
    inside[pick.page] = False


def _best_of(planner: Planner, pages: np.ndarray, now: float) -> int:
    return int(pages[planner.frontier.values.many(pages).at(now).argmax()])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_cutoff_that_comes_down_to_crowds_of_announced_pages_and_others_picks_as_brute_force_does(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With numpy alone they stay in their bed while they are looked at, a part with each pick."""
    if compiled and not HAS_NUMBA:
        pytest.skip("needs numba")
    use_compiled(compiled)
    foresee_small_crowds(monkeypatch)
    for module, name, value in (
        (membership, "OPENED", 4),
        (evaluation_queue, "OPENED", 4),
        (values, "_PORTION", 6),
        (frontier, "_LAGGING", 4),  # so that looks have the time for it
    ):
        monkeypatch.setattr(module, name, value)
    taken = []
    name = "take" if compiled else "some"
    method = getattr(Ladder, name)

    def counted(self: Ladder, level: int, n: int) -> np.ndarray:
        pages: np.ndarray = method(self, level, n)
        taken.append(pages.size)
        return pages

    monkeypatch.setattr(Ladder, name, counted)
    planner = crowded(bandwidth=100.0)
    inside = np.ones(N_PAGES, bool)
    now = 0.0
    for slot in range(450):
        now += 0.01
        pick_the_best(planner, inside, now)
        if slot % 50 == 0:
            planner.frontier._check(now)
    assert sum(taken) > 30


@pytest.mark.skipif(not HAS_NUMBA, reason="needs numba")
def test_a_crowded_bed_is_opened_in_parts_before_a_pick_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With compiled code: some of its pages at a time until none is left there; picks are as brute force has them."""
    use_compiled(True)
    monkeypatch.setattr(crowded_levels, "_CROWD", N_PAGES)  # none is thinned out
    for name, value in (("_CROWDED", 4), ("_PART", 3), ("SOON", N_PAGES), ("OPENED", 4)):
        monkeypatch.setattr(membership, name, value)
    planner = crowded(bandwidth=100.0)
    frontier, inside, now, n_opened = planner.frontier, np.ones(N_PAGES, bool), 0.0, 0
    standing = frontier._standing
    for _ in range(300):
        now += 0.01
        pick_the_best(planner, inside, now)
        if frontier._opening is None:
            continue
        ladder, level = frontier._opening
        bed = ladder.next_bed()
        assert standing.cutoff < level
        while frontier._opening == (ladder, level):
            looked_at = standing._n_looked_at
            frontier._open_part()
            assert standing._n_looked_at - looked_at <= 3
        frontier._check(now)
        if bed is not None and bed[0] == level and bed[1] > 4:
            n_opened += 1
            following = ladder.next_bed()
            assert following is None or following[0] < level
    assert n_opened > 3


@pytest.mark.parametrize("compiled", [False, True])
def test_of_a_crowded_bed_no_more_pages_are_looked_at_than_there_are(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that come back to where they were are not taken again, and close to the cutoff there is no lower bed."""
    if compiled and not HAS_NUMBA:
        pytest.skip("needs numba")
    use_compiled(compiled)
    foresee_small_crowds(monkeypatch)
    planner, left, taken = crowded(bandwidth=100.0), [0], []
    name = "take" if compiled else "some"
    foresee, take = crowded_levels.Crowds.foresee, getattr(crowded_levels.Crowds, name)

    def foreseeing(self: crowded_levels.Crowds, cutoff: int, most: float) -> None:
        foresee(self, cutoff, most)
        assert all(level < cutoff - FALLING_SHARE for _, level, _ in self.beds)
        left[0] = sum(n for _, _, n in self.beds)

    def taking(self: crowded_levels.Crowds, *most: int) -> np.ndarray:
        pages: np.ndarray = take(self, *most)
        assert np.unique(pages).size == pages.size
        left[0] -= pages.size
        taken.append(pages.size)
        return pages

    monkeypatch.setattr(crowded_levels.Crowds, "foresee", foreseeing)
    monkeypatch.setattr(crowded_levels.Crowds, name, taking)
    now = 0.0
    for _ in range(450):
        now += 0.01
        assert planner.frontier.pick(now, lambda host, at: at) is not None
        assert left[0] >= 0
    assert sum(taken) > 10


def test_with_numpy_alone_a_pick_looks_at_what_looks_have_no_time_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more pages of crowded beds are owed than some portions, they are looked at at once, and none is lost."""
    use_compiled(False)
    foresee_small_crowds(monkeypatch)
    monkeypatch.setattr(values, "_PORTION", 6)
    planner, inside, now, n_looked_at = crowded(bandwidth=100.0), np.ones(N_PAGES, bool), 0.0, []
    frontier = planner.frontier
    standing, crowding = frontier._standing, frontier._crowds
    for _ in range(450):
        now += 0.01
        if crowding.beds and now < standing.until and not crowding.are_unforeseen(planner.frontier.values.portion):
            crowding.owed = 4 * planner.frontier.values.portion
            looked_at, look = standing._n_looked_at, frontier._looks.look
            pick_the_best(planner, inside, now)
            if not frontier._has_looked:
                assert crowding.owed == 0
                assert frontier._looks.look is look  # that goes on with the next pick
                n_looked_at.append(standing._n_looked_at - looked_at)
                frontier._check(now)
        else:
            pick_the_best(planner, inside, now)
    assert len(n_looked_at) > 10
    assert sum(n_looked_at) > 3 * len(n_looked_at)


def test_compiled_code_may_be_switched_off_while_a_crowd_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the turn ends beds stand in the arrays of compiled code, though numpy looks at them."""
    if not HAS_NUMBA:
        pytest.skip("needs numba")
    foresee_small_crowds(monkeypatch)
    use_compiled(True)
    planner, inside, now = crowded(bandwidth=100.0), np.ones(N_PAGES, bool), 0.0
    for slot in range(450):
        now += 0.01
        if slot % 40 == 25:
            use_compiled(slot % 80 == 25)
        pick_the_best(planner, inside, now)


def test_a_page_whose_alarm_rings_in_a_bed_that_is_opened_in_the_same_pick_is_looked_at_once() -> None:
    """All that is awake has left, so that the pick which begins a turn has to open the bed in which an alarm rings."""
    use_compiled(False)
    planner, now = crowded(bandwidth=100.0), 0.0
    frontier = planner.frontier
    inside = np.ones(N_PAGES, bool)
    for _ in range(5):
        standing = frontier._standing
        pages = standing.awake.living()
        frontier.discard(pages)
        inside[pages] = False
        page = int(frontier._ladders.shared.highest_sleepers(1)[0])
        standing.calendar.set_one(page, standing.until + 1e-3, standing.rung)
        now = standing.until + 1e-3
        pick_the_best(planner, inside, now)
        frontier._check(now)
