"""Without compiled code pages are looked at a part with each pick, and stay where they are until the last part."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from crawlsched.crawl_value import use_compiled
from crawlsched.frontier import Frontier, filed
from crawlsched.frontier.candidates.candidates import Awake
from crawlsched.frontier.evaluation.evaluation import Look
from crawlsched.frontier.evaluation.evaluation_queue import SOON, Looks
from crawlsched.frontier.placement import Standing
from crawlsched.frontier.places import IN_FLIGHT, LOWEST, RUNNING
from crawlsched.frontier.sleeping.levels import LN2, STEPS, level_above, value_at
from crawlsched.planner import Planner
from tests.benchmarks.bench_frontier import BANDWIDTH, Slots
from tests.benchmarks.frontier_collection import collection
from tests.unit.frontier.test_frontier_crowds import crowded, pick_the_best

pytestmark = pytest.mark.statistics

# At least so many make a look.
PARTS = 4


@pytest.fixture(autouse=True)
def _numpy_alone() -> None:
    use_compiled(False)


def look_at_sleepers(n: int) -> tuple[Planner, Look, np.ndarray]:
    """Return a planner, a look at `n` of its sleeping pages that is about to begin, and which pages these are."""
    planner = crowded(bandwidth=100.0)
    planner.frontier.advance(0.0)
    pages = np.sort(planner.frontier._ladders.shared.highest_sleepers(n)[:n])
    return planner, Look(planner.frontier._standing, pages), pages


def test_pages_stay_in_their_beds_until_all_is_known_and_then_have_alarms() -> None:
    """Whose alarms have rung gets the next one in the last part; before that nobody is anywhere else."""
    planner, look, pages = look_at_sleepers(60)
    frontier = planner.frontier
    standing = frontier._standing
    standing.calendar.clear(pages)
    before, parts = standing.place[pages].copy(), 0
    while look.go_on():
        assert not standing.calendar.has_alarm(pages).any()
        frontier._check(0.0)
        parts += 1
        if parts < PARTS - 1:
            assert (standing.place[pages] == before).all()
    assert parts >= PARTS - 1
    assert not look.go_on()
    frontier._check(0.0)
    assert standing.calendar.has_alarm(pages[standing.place[pages] > RUNNING]).all()


@pytest.mark.parametrize("parts", range(PARTS))
def test_what_is_announced_while_it_is_looked_at_is_picked_for_what_it_is_worth_now(parts: int) -> None:
    """Half of the pages are announced after each number of parts; the look then puts only the others elsewhere."""
    planner, look, pages = look_at_sleepers(60)
    frontier = planner.frontier
    frontier._looks.look = look
    for _ in range(parts):
        assert look.go_on()
    planner.signalled(pages[::2], 0, 0.0)
    frontier._looks.finish()
    frontier._check(0.0)
    inside, now = np.ones(len(frontier), bool), 0.0
    for _ in range(100):
        now += 0.01
        pick_the_best(planner, inside, now)
    frontier._check(now)


def test_a_look_at_pages_that_have_left_meanwhile_leaves_them_alone() -> None:
    """Those that were discarded stay out, and those in flight stay so."""
    planner, look, pages = look_at_sleepers(60)
    frontier = planner.frontier
    assert look.go_on()
    frontier.discard(pages[:20])
    frontier._standing.leave(pages[20:40])
    frontier._standing.place[pages[20:40]] = IN_FLIGHT
    look.finish()
    assert {frontier.place_of(page) for page in pages[:20].tolist()} == {"out"}
    assert {frontier.place_of(page) for page in pages[20:40].tolist()} == {"in flight"}
    frontier._check(0.0)


def test_a_turn_leaves_little_to_be_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the pages looked at for picks in fifty turns, at most one in twenty is put where it belongs in one go."""
    at_once, by_parts, picking = [0], [0], [False]
    put, look, pick = Standing.put, Look.__init__, Frontier.pick

    def putting(self: Standing, pages: np.ndarray, *arguments: object, **others: object) -> None:
        at_once[0] += pages.size * picking[0]
        put(self, pages, *arguments, **others)  # type: ignore[arg-type]

    def looking(self: Look, standing: Standing, pages: np.ndarray, *arguments: object, **others: object) -> None:
        by_parts[0] += pages.size
        look(self, standing, pages, *arguments, **others)  # type: ignore[arg-type]

    def picks(self: Frontier, *arguments: object) -> object:
        picking[0] = True
        found = pick(self, *arguments)  # type: ignore[arg-type]
        picking[0] = False
        return found

    slots = Slots(collection(100_000, BANDWIDTH, "posterior", 1 / 3))
    slots.run(1600, alone=True)
    monkeypatch.setattr(Standing, "put", putting)
    monkeypatch.setattr(Look, "__init__", looking)
    monkeypatch.setattr(Frontier, "pick", picks)
    slots.run(1600, alone=True)
    assert by_parts[0] > 1600
    assert at_once[0] < by_parts[0] / 20, (at_once, by_parts)


@pytest.mark.parametrize("parts", range(PARTS))
def test_a_look_goes_on_when_hundreds_of_pages_are_filed_and_leaves_these_alone(parts: int) -> None:
    """Half of its pages are among them, worth ten times as much as before; what it knows of these is out of date."""
    planner, look, pages = look_at_sleepers(60)
    frontier = planner.frontier
    looks: Looks = frontier._looks
    looks.look = look
    for _ in range(parts):
        assert look.go_on()
    others = np.setdiff1d(np.arange(1000), pages)
    filed_now = np.append(others, pages[::2])
    planner.set_importance(filed_now, 10.0 * planner.pages.importance[filed_now], 0.0)
    assert looks.look is look
    stands = frontier._standing.place[pages[::2]].copy()
    looks.finish()
    assert (frontier._standing.place[pages[::2]] == stands).all()
    frontier._check(0.0)
    inside, now = np.ones(len(frontier), bool), 0.0
    for _ in range(100):
        now += 0.01
        pick_the_best(planner, inside, now)
    frontier._check(now)


def test_where_pages_are_filed_is_told_when_a_look_is_done_with() -> None:
    """Those whose alarms were taken back for it have others then, so that they can be put back by what is told."""
    planner, look, pages = look_at_sleepers(60)
    frontier = planner.frontier
    frontier._standing.calendar.clear(pages)
    frontier._looks.look = look
    assert look.go_on()
    known = filed(frontier, len(frontier))
    assert (known.alarm[pages[known.place[pages] > RUNNING]] > 0).all()
    assert not look.go_on()


def test_who_is_awake_is_not_looked_at_again_while_enough_is_known_and_stays_where_it_is() -> None:
    """Parabolas hold for different times; who has left is not told."""
    awake, values = Awake(), crowded(bandwidth=100.0).frontier.values.many(np.arange(4))
    parabolas = np.array([[1.0] * 4, [0.1] * 4, [0.0] * 4])
    until = np.array([12.0, 14.0, 12.0, 13.0])
    awake.add(np.arange(4), np.zeros(4, np.int32), parabolas, 10.0, values, np.arange(4), until)
    awake.discard(2)
    assert awake.ending(12.0).tolist() == []
    assert awake.ending(13.0).tolist() == [0]
    assert awake.ending(15.0).tolist() == [0, 1, 3]
    assert awake.living().tolist() == [0, 1, 3]


def test_pages_that_left_those_awake_are_gone_when_others_come_and_values_are_forgotten_with_them() -> None:
    """After a hundred looks at one page each no more values are kept than a third of these."""
    awake, values = Awake(), crowded(bandwidth=100.0).frontier.values.many(np.arange(200))
    parabola = np.array([[1.0], [0.1], [0.0]])
    for page in range(100):
        one, until = values.some(np.array([page])), np.full(1, np.inf)
        awake.add(np.array([page]), np.zeros(1, np.int32), parabola, 10.0, one, np.array([0]), until)
        if page:
            awake.discard_rows(awake.pages < page)
    assert awake.living().tolist() == awake.pages[-1:].tolist() == [99]
    assert awake.pages.size == 2  # the one before is out, and taken out with the next
    assert len(awake._values) <= 33
    assert awake.value(1).at(50.0) == values.one(99).at(50.0)


def test_most_who_are_awake_are_looked_at_again_only_after_some_turns() -> None:
    """Bounds that are good to a ten-millionth hold for three turns more than need be."""
    planner = crowded(bandwidth=100.0)
    frontier, now = planner.frontier, 0.0
    standing, inside = frontier._standing, np.ones(len(planner.frontier), bool)
    again = n_awake = 0
    for _ in range(600):
        now += 0.01
        pick_the_best(planner, inside, now)
        if frontier._looks._is_owed:
            again, n_awake = again + standing.fading().size, n_awake + standing.awake.living().size
    assert n_awake > 1000
    assert again < n_awake / 2
    frontier._check(now)


@pytest.mark.parametrize("picks", [0, 3, 9, 15])
def test_where_time_passes_without_picks_nothing_is_known_too_late(picks: int) -> None:
    """A look that was begun is done with two turns later at the latest, and all bounds hold in each turn."""
    planner = crowded(bandwidth=100.0)
    frontier, now = planner.frontier, 0.0
    standing, inside = frontier._standing, np.ones(len(planner.frontier), bool)
    tick = standing.calendar.tick
    for ticks in (1, 1, 1, 2, 1, 7, 1, 1):
        for _ in range(picks):
            now += 0.01
            pick_the_best(planner, inside, now)
        look = frontier._looks.look
        now += ticks * tick
        frontier.advance(now)
        assert ticks <= 2 or look is None or not look.go_on()
        frontier._check(now)
        assert (standing.awake._bounds[7, standing.awake._bounds[1] > -np.inf] >= standing.until).all()
    frontier.advance(now + tick)
    frontier.advance(now + 2 * tick)
    assert look is None or not look.go_on()


def test_so_many_pages_as_wait_are_looked_at_together_that_there_are_looks_enough_until_the_turn_ends() -> None:
    """More than two portions that ring in the next tick are all looked at in this turn, none of them when it ends."""
    planner = crowded(bandwidth=100.0)
    frontier, now = planner.frontier, 0.0
    standing, looks, inside = frontier._standing, frontier._looks, np.ones(len(planner.frontier), bool)
    for _ in range(100):
        now += 0.01
        pick_the_best(planner, inside, now)

    def opens_a_bed_soon() -> bool:
        highest = standing.ladders.highest()
        assert highest is not None
        return bool(np.count_nonzero(standing.awake.bounds(now) > -highest[0]) <= SOON + 8)

    # Who is in a bed that a pick would have to open is looked at before.
    while looks.look is not None or opens_a_bed_soon() or standing.until - now < 0.9 * standing.calendar.tick:
        now += 0.01
        pick_the_best(planner, inside, now)
    sleepers = frontier._ladders.shared.highest_sleepers(2000)[:240]
    sleepers = np.unique(sleepers[standing.place[sleepers] > RUNNING])
    until, tick = standing.until, standing.calendar.tick
    standing.calendar.clear(sleepers)
    standing.calendar.set(sleepers, np.full(sleepers.size, until + 0.5 * tick), standing.rung)
    assert standing.calendar.n_ahead() >= sleepers.size > 200
    while now + 0.01 < until:
        now += 0.01
        pick_the_best(planner, inside, now)
    assert standing.calendar.n_ahead() == 0
    frontier._check(now)


@pytest.mark.parametrize("n_ticks", [1, 2])
def test_a_look_at_pages_whose_alarms_ring_in_the_turn_after_next_goes_on_in_the_next_one(n_ticks: int) -> None:
    """If time has passed without picks until they ring, they are put where they belong at once."""
    planner = crowded(bandwidth=100.0)
    frontier, now = planner.frontier, 0.0
    standing, looks, inside = frontier._standing, frontier._looks, np.ones(len(planner.frontier), bool)
    for _ in range(100):
        now += 0.01
        pick_the_best(planner, inside, now)
    looks.finish()
    looks._is_owed, looks._again, looks._opening = False, [], []
    sleepers = frontier._ladders.shared.highest_sleepers(200)
    sleepers = np.unique(sleepers[standing.place[sleepers] > RUNNING])
    standing.calendar.clear(sleepers)
    until, tick = standing.until, standing.calendar.tick
    standing.calendar.set(sleepers, np.full(sleepers.size, until + 1.5 * tick), standing.rung)
    for _ in range(50):
        look = looks.look
        if look is not None and np.isin(sleepers, look._pages).any():
            break
        looks.go_on()
    assert look is not None
    assert looks._can_wait
    now = until + (n_ticks - 0.5) * tick
    frontier.advance(now)
    assert look._is_settled == (n_ticks == 2)
    frontier._check(now)
    frontier.advance(now + tick)
    assert not look.go_on()
    frontier._check(now + tick)


def test_for_a_bed_that_is_opened_the_cutoff_comes_down_no_further_than_beds_are_apart() -> None:
    """A little lets enough pages wake; more would wake all that come up there in the next turns."""
    standing = crowded(bandwidth=100.0).frontier._standing
    standing.set_cutoff(standing.cutoff + 1_000_000)
    cutoff, apart = standing.cutoff, 1 << standing._coarse
    standing.let_wake(20, np.full(30, cutoff - apart // 2))
    assert standing.cutoff == cutoff - apart // 2 - 1
    standing.let_wake(20, np.full(30, cutoff - 10_000))
    assert standing.cutoff == cutoff - apart // 2 - 1 - apart
    standing.let_wake(20, np.full(20, cutoff - 10_000))  # all of them would have to wake
    assert standing.cutoff == cutoff - apart // 2 - 1 - apart


def test_after_a_passing_rise_of_the_cutoff_pages_sleep_until_they_meet_it_on_its_way_back() -> None:
    """One that rises as fast as the cutoff comes back has its bed below half of the way; a fast one just below it."""
    standing = crowded(bandwidth=100.0).frontier._standing
    cutoff, rise = level_above(1.0), 16_000
    standing.calm.suppose(cutoff - rise)
    back = rise * standing.calm.comes_back / standing.calendar.tick * LN2 / STEPS  # of the value, a second
    level = cutoff - rise // 2
    levels, cutoffs = np.full(3, level, np.int32), np.full(3, cutoff, np.int32)
    parabolas = np.array([[value_at(level)] * 3, [0.0, back, 1e3 * back], [0.0] * 3])
    none = np.zeros(3, bool)
    beds = standing._beds(levels, cutoffs.copy(), none, none.copy(), parabolas)
    way = (beds - level) / (cutoff - level)
    assert way == pytest.approx([7 / 64, 7 / 16, 7 / 8], abs=0.03)
    # Where the cutoff is coming down to them anyhow they wait for it.
    beds = standing._beds(levels, cutoffs.copy(), none, ~none, parabolas)
    assert (beds - level) / (cutoff - level) == pytest.approx([1 / 64] * 3, abs=0.01)
    # To a host's own, which does not come back, they rise.
    beds = standing._beds(levels, cutoffs.copy(), ~none, none.copy(), parabolas)
    assert (beds - level) / (cutoff - level) == pytest.approx([7 / 8] * 3, abs=0.03)
    # While it is not known where it has been it may be coming down.
    standing.calm.suppose(LOWEST)
    beds = standing._beds(levels, cutoffs.copy(), none, none.copy(), parabolas)
    assert (beds - level) / (cutoff - level) == pytest.approx([1 / 64] * 3, abs=0.01)


def test_a_copy_that_is_made_in_the_middle_of_a_look_picks_the_same_pages() -> None:
    """The look is done with first, by the one that is copied."""
    planner = crowded(bandwidth=100.0)
    now, inside = 0.0, np.ones(len(planner.frontier), bool)
    while planner.frontier._looks.look is None or not planner.frontier._looks.look.go_on():
        now += 0.01
        pick_the_best(planner, inside, now)
    again = copy.deepcopy(planner)
    for it, left in ((planner, inside.copy()), (again, inside.copy())):
        for n in range(100):
            pick_the_best(it, left, now + 0.01 * n)
        it.frontier._check(now + 1.0)
