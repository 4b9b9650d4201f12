"""The calendar rings in time, and never does much more in one tick than in another."""

from __future__ import annotations

import importlib.util
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlsched.crawl_value import use_compiled
from crawlsched.frontier.buckets import buckets
from crawlsched.frontier.buckets.buckets import Buckets
from crawlsched.frontier.buckets.entries import CompactEntries, PlainEntries
from crawlsched.frontier.timers import timing_wheel
from crawlsched.frontier.timers.timing_wheel import Calendar

HAS_NUMBA = importlib.util.find_spec("numba") is not None


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**32),
    epoch=st.sampled_from([1, 3, 500, 2048]),
    least_dead=st.sampled_from([0, 1024]),
    compiled=st.booleans(),
)
def test_every_alarm_rings_in_its_tick_and_none_that_was_taken_back(
    seed: int, epoch: int, least_dead: int, compiled: bool
) -> None:
    """Whatever is set, moved, taken back: each alarm rings in the tick of its time, or if that is past in the next."""
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(timing_wheel, "_EPOCH", epoch)
        patched.setattr(timing_wheel, "_AT_ONCE", 7)
        patched.setattr(timing_wheel, "_MANY", 10)
        patched.setattr(buckets, "_LEAST_DEAD", least_dead)
        patched.setattr(buckets, "_WHOLE", 5)
        use_compiled(compiled and HAS_NUMBA)
        pages = Calendar(tick=1.0, start=0.0)
        pages.reserve(60)
        wanted: dict[int, int] = {}
        now = 0.5
        for _ in range(60):
            some = rng.choice(60, rng.integers(1, 20), replace=False)
            times = now + rng.exponential(rng.choice([2.0, 200.0, 20_000.0]), some.size)
            if rng.random() < 0.7:
                pages.set(some, times, now)
            else:
                for page, time in zip(some.tolist(), times.tolist(), strict=True):
                    pages.set_one(page, time, now)
            current = int(now) + 1
            wanted |= {p: max(int(t) + 1, current + 1) for p, t in zip(some.tolist(), times.tolist(), strict=True)}
            gone = rng.choice(60, 3, replace=False)
            pages.clear(gone)
            for page in gone.tolist():
                wanted.pop(page, None)
            pages.check()
            for page in pages.ahead(3).tolist():
                assert wanted.pop(page) == current + 1
            pages.check()
            now += float(rng.choice([1.0, 1.0, 5.0, 3000.0, 100_000.0]))
            assert pages.next_time() <= min([t - 1.0 for t in wanted.values()], default=np.inf)
            due = pages.due(now).tolist()
            assert sorted(due) == sorted(page for page, tick in wanted.items() if tick <= int(now) + 1)
            wanted = {page: tick for page, tick in wanted.items() if tick > int(now) + 1}
            assert len(pages) == len(wanted)


def test_an_alarm_that_is_handed_out_ahead_and_set_for_the_same_tick_again_is_not_handed_out_without_end() -> None:
    """Of ten pages that ring in the next tick each is handed out ahead three times, and all of them ring."""
    pages = Calendar(tick=1.0, start=0.0)
    pages.reserve(20)
    pages.set(np.arange(10), np.full(10, 1.5), 0.5)
    handed_out: list[int] = []
    for _ in range(20):
        some = pages.ahead(3)
        handed_out += some.tolist()
        pages.set(some, np.full(some.size, 1.5), 0.5)
        pages.check()
    assert sorted(handed_out) == sorted(3 * list(range(10)))
    pages.set(np.arange(10, 20), np.full(10, 1.7), 0.5)
    assert pages.ahead(3).size == 0
    assert sorted(pages.soonest(20).tolist()) == list(range(20))
    assert pages.due(1.5).tolist() == list(range(20))


@pytest.mark.parametrize("compiled", [False, True])
def test_what_is_left_of_those_handed_out_ahead_rings_when_its_tick_comes(compiled: bool) -> None:
    """They come once, and have no alarm any more."""
    if compiled:
        pytest.importorskip("numba")
    use_compiled(compiled)
    pages = Calendar(tick=1.0, start=0.0)
    pages.reserve(10)
    pages.set(np.arange(10), np.full(10, 1.5), 0.5)
    first = pages.ahead(3).tolist()
    assert pages.due(0.6).size == 0  # their tick has not come
    rest = pages.due(1.1).tolist()
    assert sorted(first + rest) == list(range(10))
    assert len(pages) == 0
    pages.check()
    assert pages.due(1.5).size == 0


def test_a_calendar_that_was_not_asked_for_longer_than_tick_numbers_reach_still_rings() -> None:
    """Whatever was set rings when it is asked for again, near alarms and far ones."""
    pages = Calendar(tick=1e-3, start=0.0)
    pages.reserve(3)
    pages.set(np.arange(3), np.array([0.1, 100.0, 1e5]), 0.0)
    assert sorted(pages.due(1e7).tolist()) == [0, 1, 2]
    pages.check()


def test_no_tick_gathers_many_more_alarms_than_ring_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300,000 alarms set at once for the next 30,000 ticks, ten a tick are gathered, and all ring in time."""
    n, ticks = 300_000, 30_000
    pages = Calendar(tick=1.0, start=0.0)
    pages.reserve(n)
    pages.set(np.arange(n), np.random.default_rng(1).random(n) * ticks, 0.5)
    gathered: list[int] = []
    add = Calendar._add

    def counted(self: Calendar, some: np.ndarray, alarms: np.ndarray) -> None:
        gathered[-1] += some.size
        add(self, some, alarms)

    monkeypatch.setattr(Calendar, "_add", counted)
    rung = 0
    for tick in range(1, 6_000):
        gathered.append(0)
        due = pages.due(tick + 0.5)
        assert due.size < 60
        rung += due.size
        assert pages._buckets.entries < 10 * 3 * timing_wheel._EPOCH
    assert rung == pytest.approx(10 * 6_000, rel=0.05)
    assert sum(gathered) == pytest.approx(10 * 6_000, rel=0.05)
    assert max(gathered) < 60


@given(
    far=st.lists(st.integers(0, 12), min_size=1, max_size=60),
    n=st.integers(1, 70),
    at_once=st.integers(1, 20),
)
def test_the_soonest_beyond_the_buckets_are_found_whatever_the_parts(far: list[int], n: int, at_once: int) -> None:
    """The same alarms as sorting all of them gives, many alike or none, each page once."""
    pages = Calendar(tick=1.0, start=0.0)
    pages.reserve(len(far))
    pages.set(np.arange(len(far)), 3.0 * timing_wheel._EPOCH + np.array(far), 0.5)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(timing_wheel, "_AT_ONCE", at_once)
        found = pages.soonest(n).tolist()
    assert len(set(found)) == len(found)
    assert [far[page] for page in found] == sorted(far)[:n]


def test_looking_for_the_soonest_takes_little_memory() -> None:
    """Less than a byte for each of 2,000,000 alarms in no bucket, where copying their pages takes eight."""
    n = 2_000_000
    pages = Calendar(tick=1.0, start=0.0)
    pages.reserve(n)
    pages.set(np.arange(n), 3.0 * timing_wheel._EPOCH + np.arange(n) % 1000, 0.5)
    tracemalloc.start()
    try:
        assert pages.soonest(100).size == 100
        assert tracemalloc.get_traced_memory()[1] < n
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compiled", [False, True])
def test_alarms_beyond_the_buckets_are_known_and_those_of_pages_that_come_meanwhile_ring(compiled: bool) -> None:
    """Far alarms are told by `next_time` and `soonest`; pages added while others are gathered are gathered, too."""
    if compiled:
        pytest.importorskip("numba")
    use_compiled(compiled)
    epoch = timing_wheel._EPOCH
    pages = Calendar(tick=1.0, start=0.0)
    pages.reserve(10)
    pages.set(np.arange(10), 10.0 * epoch + np.arange(10)[::-1], 0.5)
    assert 0.0 < pages.next_time() <= 10 * epoch
    assert pages.soonest(3).tolist() == [9, 8, 7]
    assert pages._buckets.entries == 0
    rung: list[int] = []
    for now in range(1, 13 * epoch, 7):
        if pages._alarm.size < 2000:
            new = np.arange(pages._alarm.size, pages._alarm.size + 50)
            pages.reserve(pages._alarm.size + 50)
            pages.set(new, np.full(50, 2.6 * epoch), float(now))
        if now % 70 == 1:
            pages.check()
        rung += pages.due(float(now)).tolist()
        assert (now < 2.6 * epoch) == (not rung)
    assert sorted(rung) == list(range(2010))
    assert sorted(rung[-10:]) == list(range(10))
    assert pages.next_time() == np.inf
    assert pages.soonest(3).size == 0


@pytest.mark.parametrize("compiled", [False, True])
def test_dead_entries_stay_few_and_are_swept_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch, compiled: bool) -> None:
    """Pages that move from bucket to bucket for long leave at most half as many dead entries as there are pages."""
    if compiled:
        pytest.importorskip("numba")
    use_compiled(compiled)
    bucket_of = np.zeros(20_000, np.uint32)
    kept = Buckets(lambda: bucket_of, lambda key: (key, key))
    kept.add(np.zeros(20_000, np.int64), np.arange(20_000))
    monkeypatch.setattr(buckets, "_WHOLE", 512)
    rng = np.random.default_rng(1)
    for turn in range(2_000):
        if turn == 1_500:  # what is kept moves over when the code in use changes
            use_compiled(False)
            kept.adapt()
        some = rng.choice(20_000, 50, replace=False)
        key = int(rng.integers(100))
        bucket_of[some] = key
        kept.add(np.full(some.size, key), some)
        kept.sweep(20_000)
        assert kept.entries < 1.5 * 20_000 + buckets._LEAST_DEAD
    kept.check()
    for key in range(100):
        expected = np.flatnonzero(bucket_of == key)
        assert (kept.pop(key) == expected).all() if expected.size else key not in kept or not kept.pop(key).size


@pytest.mark.parametrize("compiled", [False, True])
def test_who_sets_very_many_alarms_leaves_no_heap_of_dead_entries_to_the_next_tick(compiled: bool) -> None:
    """While all pages are filed again slice by slice and no tick ends, entries stay as few as if ticks had ended."""
    use_compiled(compiled and HAS_NUMBA)
    pages, rng = Calendar(tick=1.0, start=0.0), np.random.default_rng(2)
    pages.reserve(10_000)
    for turn in range(10):
        for begin in range(0, 10_000, 250):
            pages.set(np.arange(begin, begin + 250), rng.uniform(10.0, 500.0, 250), 0.5)
        if turn:
            assert pages._buckets.entries < 1.5 * 10_000 + buckets._LEAST_DEAD
    pages.check()


@pytest.mark.parametrize("kind", [PlainEntries, CompactEntries])
def test_a_swept_bucket_holds_what_lives_once(kind: type[PlainEntries] | type[CompactEntries]) -> None:
    """Of 200 entries, half of them dead and each page there twice, 50 stay, and other buckets as they are."""
    column = np.arange(200, dtype=np.uint32) % 2
    kept = kind()
    kept.add(np.full(200, 7), np.tile(np.arange(100), 2))
    kept.add(np.full(5, 8), np.arange(5))
    kept.sweep(7, column, 1, 1)
    assert sorted(kept.look(7, column, 0, 1).tolist()) == list(range(1, 100, 2))
    assert kept.look(8, column, 0, 1).size == 5
    assert kept.entries == kept.size(7) + kept.size(8) == 55
    assert kept.living(7) == 200
    kept.sweep(7, column, 2, 2)
    assert kept.size(7) == 0
    assert 7 in kept


def test_small_buckets_are_swept_one_after_the_other_until_enough_was_looked_at_or_a_large_one_comes() -> None:
    """Each holds what lives then, keys without a bucket are passed over, and the rest stays as it was."""
    kept, column = CompactEntries(), np.zeros(100, np.uint32)
    pages = np.arange(60)
    column[pages] = np.where(pages % 2, pages // 10, 99)  # every second one lives where it was put
    kept.add(pages // 10, pages)
    keys = np.array([0, 77, 1, 2, 3])
    assert kept.sweep_some(keys, column, keys, keys, largest=10, most=20) == (3, 20)
    assert [kept.size(key) for key in range(6)] == [5, 5, 10, 10, 10, 10]
    assert kept.look(1, column, 1, 1).tolist() == [19, 17, 15, 13, 11]
    kept.add(np.array([4, 4]), np.array([41, 43]))
    keys = np.array([3, 4, 5])
    assert kept.sweep_some(keys, column, keys, keys, largest=10, most=1000) == (1, 10)
    assert [kept.size(key) for key in range(6)] == [5, 5, 10, 5, 12, 10]
    assert kept.entries == 47


def test_pages_are_handed_out_ahead_if_they_are_as_many_as_is_asked_for() -> None:
    """Some by some of those that are more than five; and whoever they are in the end."""
    pages = Calendar(tick=1.0, start=0.0)
    pages.reserve(20)
    pages.set(np.arange(8), np.full(8, 1.5), 0.5)
    assert [pages.ahead(3, 5).tolist() for _ in range(4)] == [[0, 1, 2], [3, 4, 5], [6, 7], []]
    pages.set(np.arange(8, 12), np.full(4, 1.5), 0.5)
    assert pages.ahead(3, 5).tolist() == []
    assert [pages.ahead(3, 0).tolist() for _ in range(3)] == [[8, 9, 10], [11], []]
    pages.check()
    assert pages.due(1.5).size == 0
