"""Where pages belong: page by page as compiled, it is where numpy puts them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crawlsched.columns.number_column import NumberColumn
from crawlsched.crawl_value import use_compiled
from crawlsched.frontier import placement_loops
from crawlsched.frontier.buckets.entries import CompactEntries, PlainEntries
from crawlsched.frontier.candidates import just_crawled_loops
from crawlsched.frontier.cutoff import Calm
from crawlsched.frontier.hosts.resting import RestingHosts
from crawlsched.frontier.places import FRESH, IN_FLIGHT, LOWEST, OUT
from crawlsched.frontier.sleeping.crowded_levels import Crowds
from crawlsched.frontier.sleeping.level_queue import Ladder
from crawlsched.frontier.sleeping.level_queues import Ladders
from crawlsched.frontier.sleeping.levels import SHARE, STEPS, bed_levels, level_above, levels_above, meeting_levels
from crawlsched.frontier.timers import timing_wheel_loops
from crawlsched.frontier.timers.timing_wheel import Calendar


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    cutoff=st.floats(-30, 30),
    fallen=st.integers(0, 10_000),
    falling=st.booleans(),
    coarse=st.integers(0, 5),
    drift=st.sampled_from([0.0, 1e-3, 10.0, 1e4, 1e9]),
    back=st.sampled_from([1e-3, 0.2, 100.0]),
    calm_is_known=st.booleans(),
    own_cutoffs=st.booleans(),
    many_hosts=st.booleans(),
)
def test_each_page_has_the_bed_that_numpy_gives_it(
    seed: int,
    cutoff: float,
    fallen: int,
    falling: bool,
    coarse: int,
    drift: float,
    back: float,
    calm_is_known: bool,
    own_cutoffs: bool,
    many_hosts: bool,
) -> None:
    """Awake above its cutoff, else under the same level; hosts with a cutoff of their own among them."""
    rng = np.random.default_rng(seed)
    n, at = 50, level_above(2.0**cutoff)
    value = np.where(rng.random(n) < 0.1, 0.0, 2.0 ** (cutoff - 3 + rng.normal(0, 3, n)))
    slope, curve = value * rng.random((2, n))
    hosts = rng.integers(0, 3, n).astype(np.int32)
    own = np.array([0, level_above(2.0 ** (cutoff + 1)) - LOWEST, 0], np.int32)
    own = np.concatenate([np.zeros(70_000 * many_hosts, np.int32), own]) if own_cutoffs else own[:0]
    pages, column = rng.permutation(n), NumberColumn(np.int32)
    column.lengthen(n)
    column[pages] = hosts + 70_000 * many_hosts
    asleep, rows, beds = np.empty(n, bool), np.empty(n, np.int64), np.empty(n, np.int32)
    calm = at - fallen if calm_is_known else LOWEST
    stays = rng.random(own.size) < 0.5
    limits = own, stays, at, calm, falling, coarse, drift, back
    parabolas = np.stack([value, slope, curve])
    n_asleep = placement_loops.belong(parabolas, 0.5, pages, column.low, column.high, *limits, asleep, rows, beds)

    levels = levels_above(value + 0.5 * (slope + 0.5 * curve))
    cutoffs = np.maximum(at, own[column[pages]] + LOWEST) if own_cutoffs else np.full(n, at)
    assert asleep.tolist() == (levels <= cutoffs).tolist()
    assert rows[:n_asleep].tolist() == np.flatnonzero(asleep).tolist()
    assert rows[n_asleep:].tolist() == np.flatnonzero(~asleep)[::-1].tolist()
    below = levels < calm
    cutoffs[below] = calm
    comes_down, aims = np.full(n_asleep, falling | (not calm_is_known)), cutoffs[asleep]
    own_stays = (cutoffs > at) & stays[column[pages]] if own_cutoffs else np.zeros(n, bool)
    comes_back = np.where(own_stays, 0.0, (cutoffs - float(calm)) * back)
    drifts = np.where(below, drift, comes_back)[asleep]
    met = meeting_levels(levels[asleep], aims, (value[asleep], slope[asleep], curve[asleep]), drifts)
    aims = np.where(comes_down, aims, met)
    expected = bed_levels(levels[asleep], cutoffs[asleep], comes_down, coarse, aims)
    assert beds[:n_asleep].tolist() == expected.tolist()
    assert (levels[asleep] <= expected).all()
    assert (expected <= cutoffs[asleep]).all()


def test_a_page_sleeps_until_shortly_before_it_meets_a_cutoff_that_comes_down_to_it() -> None:
    """7/8 of the way to the level that both reach at the same time, which is the cutoff's if that hardly falls."""
    cutoffs, drift = np.full(3, level_above(1.0), np.int32), 0.01 * STEPS
    value, slope, curve = np.array([0.5, 0.9, 0.3]), np.array([0.01, 0.02, 0.0]), np.array([0.0, 0.0, 1e-4])
    levels = levels_above(value)
    met = meeting_levels(levels, cutoffs, (value, slope, curve), drift)
    wait = (cutoffs - met) / drift
    rise = value + wait * (slope + wait * curve)
    # The cutoff's value falls about as fast as at first, until it is there.
    assert np.abs(rise - (1.0 - wait * drift * np.log(2.0) / STEPS)).max() < 1e-3
    beds = bed_levels(levels, cutoffs, False, 0, met)
    assert np.abs(beds - (levels + 7 * (met - levels) / 8)).max() < (cutoffs - levels).max() / 128
    assert meeting_levels(levels, cutoffs, (value, np.ones(3), curve), 1e-9).tolist() == cutoffs.tolist()


def test_a_cutoff_that_falls_however_fast_leaves_pages_an_eighth_of_the_way() -> None:
    """A page never sleeps just above its own value, where it would be looked at in each turn."""
    value = np.array([0.999, 0.9, 0.5, 1e-9])
    cutoffs, levels = np.full(4, level_above(1.0), np.int32), levels_above(value)
    met = meeting_levels(levels, cutoffs, (value, np.zeros(4), np.zeros(4)), 1e30)
    assert met[0] == levels[0] + (cutoffs[0] - levels[0]) // SHARE
    assert (met >= levels + (cutoffs - levels) // SHARE).all()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_each_alarm_is_set_to_the_tick_that_numpy_sets_it_to(seed: int) -> None:
    """Page by page the same ticks and the same buckets, whether the page had an alarm or not."""
    rng = np.random.default_rng(seed)
    pages = Calendar(tick=0.5, start=3.0)
    pages.reserve(200)
    for now in (4.0, 500.0):
        pages.due(now)
        some = rng.choice(200, 90, replace=False)
        times = now + rng.exponential(10.0 ** rng.uniform(-1, 12, 90))
        alarm, new, current = pages._alarm.copy(), np.empty(90, np.int64), pages.number(now)
        before, near, kept = len(pages), pages._n_near, CompactEntries()
        known = 3.0, 0.5, current, pages._gathered, pages._near, pages._nearer
        n_new, n_unset, n_near = timing_wheel_loops.set_alarms(*kept.arrays(90), alarm, some, times, *known, new)
        same = alarm[some] == pages._alarm[some]
        pages.set(some, times, now)
        assert alarm.tolist() == pages._alarm.tolist()
        assert len(pages) == before + n_unset
        assert pages._n_near == near + n_near
        assert sorted(new[:n_new].tolist()) == sorted(kept.all_keys())
        for key in kept.all_keys():
            assert set(kept.look(key, alarm, 0, 2**32 - 1).tolist()) <= set(pages._buckets.pages(key).tolist())
        assert kept.entries == np.count_nonzero((alarm[some] <= pages._last(some)) & ~same)
        pages.check()


@pytest.mark.parametrize("seed", range(5))
def test_the_alarms_of_an_epoch_are_gathered_into_the_buckets_that_numpy_puts_them_into(seed: int) -> None:
    """Of a part of the pages, those that ring after one tick and up to another."""
    alarm = np.random.default_rng(seed).integers(0, 30, 200).astype(np.uint32)
    kept, new = CompactEntries(), np.empty(120, np.int64)
    n_new, n_found = timing_wheel_loops.gather(*kept.arrays(120), alarm, 50, 170, 7, 19, np.empty(50, np.int64), new)
    near = 50 + np.flatnonzero((alarm[50:170] > 7) & (alarm[50:170] <= 19))
    assert n_found == near.size == kept.entries
    assert sorted(new[:n_new].tolist()) == np.unique(alarm[near]).tolist()
    for tick in new[:n_new].tolist():
        assert sorted(kept.look(tick, alarm, tick, tick).tolist()) == near[alarm[near] == tick].tolist()


def test_pages_that_ring_are_each_found_once_and_have_no_alarm_then() -> None:
    """Some entries are dead, and one page stands in its bucket twice."""
    kept, alarm = CompactEntries(), np.array([5, 9, 5, 6, 5, 0], np.uint32)
    kept.add(np.array([5, 5, 5, 5, 5, 6, 9]), np.array([0, 1, 2, 0, 5, 3, 1]))
    found = np.empty(6, np.int64)
    n_found = timing_wheel_loops.ring(*kept.arrays(0), alarm, np.array([5, 6]), found)
    assert sorted(found[:n_found].tolist()) == [0, 2, 3]
    assert alarm.tolist() == [0, 9, 0, 0, 5, 0]
    assert kept.all_keys() == [9]


@pytest.mark.parametrize("highest", [13, 10_000])
def test_crowded_beds_are_found_by_key_or_row_by_row(highest: int) -> None:
    """Few keys are looked up; where there are more than rows of the table, these are gone through."""
    kept = CompactEntries()
    kept.add(np.repeat([5, 9, 11, 13, 9_000], [4, 4, 2, 5, 6]), np.arange(21))
    kept.leave(np.array([9, 9_000]))
    expected = [(13, 5), (9_000, 5)] if highest > 13 else [(13, 5)]
    assert sorted(kept.crowded(5, highest, 4)) == expected
    assert sorted(kept.crowded(4, highest, 3)) == [(5, 4), (9, 3), *expected]
    assert kept.crowded(13, 13, 1) == []


def test_pages_crawled_in_a_turn_are_taken_once_and_only_where_they_still_are() -> None:
    """One came back twice, and another has gone elsewhere."""
    place, crawled = np.array([FRESH, 7, FRESH, IN_FLIGHT], np.int32), np.array([2, 1, 0, 2, 3])
    assert crawled[: just_crawled_loops.take_fresh(place, crawled)].tolist() == [2, 0]
    assert place.tolist() == [IN_FLIGHT, 7, IN_FLIGHT, IN_FLIGHT]


def test_pages_sleep_in_view_of_the_lowest_cutoff_of_the_last_turns() -> None:
    """A rise of the cutoff counts after 128 turns, a fall at once, and as long if it was for one turn only."""
    calm, seen = Calm(), []
    calm.suppose(-1000)
    for turn in range(192):
        calm.turn(200 if turn == 70 else 500, 1)
        seen.append(calm.level)
    assert seen == [-1000] * 127 + [200] * 64 + [500]
    calm.at_most(300)
    assert calm.level == 300


def test_the_speed_of_the_cutoff_is_that_of_its_lowest_from_turns_to_turns() -> None:
    """As many levels a tick as it falls in 64 turns; what rises in between counts for nothing."""
    calm, seen = Calm(), []
    calm.suppose(0)
    for turn in range(256):
        calm.turn(5000 if turn % 3 else 1000 if turn > 200 else -10 * min(turn, 128), 1)
        seen.append(calm.drift)
    assert seen[:63] == [0.0] * 63
    assert seen[63] == seen[126]
    assert seen[63] == pytest.approx(10.0, abs=0.5)
    assert seen[127] == pytest.approx(10.0, abs=0.5)
    assert seen[191] < 1.0
    assert seen[255] == 0.0


@pytest.mark.parametrize("compiled", [False, True])
@given(levels=st.lists(st.integers(-50, 50), max_size=60), n=st.integers(0, 70))
@example(levels=list(range(120)), n=100)
def test_the_highest_sleepers_are_those_that_sorting_finds(
    compiled: bool, levels: list[int], n: int, request: pytest.FixtureRequest
) -> None:
    """Level by level from the highest down, until there are enough; some left their level and came back to it."""
    if compiled:
        pytest.importorskip("numba")
    request.addfinalizer(lambda: use_compiled(None))
    use_compiled(compiled)
    place = np.array([*levels, 0], np.int32) + 1000  # so that each is that of a page asleep
    ladder = Ladder(-1, 0, lambda: place)
    pages = np.arange(len(levels))
    ladder.add(pages, place[:-1])
    ladder.leave(place[pages[::2]])
    ladder.add(pages[::2], place[pages[::2]])
    found = ladder.highest_sleepers(n)
    assert np.unique(found).size == found.size == min(n, len(levels))
    assert place[found].tolist() == np.sort(place[:-1])[::-1][: found.size].tolist()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_pages_that_are_only_looked_at_stay_in_their_beds(
    seed: int, compiled: bool, request: pytest.FixtureRequest
) -> None:
    """Whoever else comes to the beds or leaves them, those that came last are found, once each, and nobody is lost."""
    if compiled:
        pytest.importorskip("numba")
    request.addfinalizer(lambda: use_compiled(None))
    use_compiled(compiled)
    rng = np.random.default_rng(seed)
    place = np.full(400, OUT, np.int32)
    ladder = Ladder(-1, 0, lambda: place)

    def put(pages: np.ndarray) -> None:
        place[pages] = rng.choice([7, 8, 9], pages.size)
        ladder.add(pages, place[pages])

    put(np.arange(300))
    for new in range(300, 400, 2):
        level, n = int(rng.integers(7, 10)), int(rng.integers(1, 90))
        in_bed = np.flatnonzero(place == level)
        some = ladder.some(level, n)
        assert some.size == min(n, in_bed.size)
        assert np.isin(some, in_bed).all()
        assert np.unique(some).size == some.size
        coming, lowest = ladder.coming(n, 200.0)
        assert lowest is not None
        assert coming.tolist() == np.flatnonzero(place >= lowest).tolist()
        assert coming.size >= n or coming.size + np.count_nonzero(place == lowest - 1) > 200 or lowest == 7
        gone = rng.choice(some, min(3, some.size), replace=False)
        place[gone] = OUT
        ladder.leave(np.full(gone.size, level))
        put(np.append(gone[:1], [new, new + 1]))
    assert ladder.some(6, 5).size == 0
    ladder.check(np.zeros(400, np.int32))  # type: ignore[arg-type]


def test_crowded_beds_are_gone_through_once_though_their_pages_stay() -> None:
    """More is owed than there is: each page is returned once, of beds that had lost some meanwhile, too."""
    place = np.full(100, OUT, np.int32)
    ladders = Ladders(None, {}, lambda: place)  # type: ignore[arg-type]
    crowds = Crowds(ladders, RestingHosts())
    for level, pages in ((7, np.arange(30)), (8, np.arange(30, 60))):
        ladders.put(pages, np.full(pages.size, level))
        crowds.beds.append((ladders.shared, level, pages.size))
    ladders.leave(np.arange(5), place[:5])
    place[:5] = OUT
    crowds.owed = 10
    first = crowds.some(100)
    assert (first.size, crowds.owed, crowds.beds) == (10, 0, [(ladders.shared, 7, 30), (ladders.shared, 8, 20)])
    crowds.owed = 90
    pages = crowds.some(80)
    assert np.unique(pages).size == pages.size == 20 + 25
    assert (crowds.owed, crowds.beds) == (10, [])


@pytest.mark.parametrize("kept", [PlainEntries(), CompactEntries()])
def test_buckets_in_which_most_is_dead_are_found_first(kept: PlainEntries | CompactEntries) -> None:
    """Whatever buckets came and went before; one that has lost no more than a third of its pages is not found."""
    column, rng = np.ones(1000, np.uint32), np.random.default_rng(3)
    for _ in range(40):
        kept.add(rng.integers(0, 12, 20), rng.integers(0, 1000, 20))
        for key in rng.choice(kept.all_keys(), 2, replace=False).tolist():
            kept.leave(np.full(rng.integers(0, kept.living(key) + 1), key))
        for key in rng.choice(kept.all_keys(), 1).tolist():
            kept.take(key, kept.size(key), column, 1, 1)
            kept.discard(key)
        living = {key: kept.living(key) / kept.size(key) for key in kept.all_keys()}
        found = kept.wasteful(0.34).tolist()
        assert sorted(found) == sorted(key for key in living if living[key] < 0.66)
        assert [living[key] for key in found] == sorted(living[key] for key in found)
