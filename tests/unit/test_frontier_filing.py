"""Where pages belong: page by page as compiled, it is where numpy puts them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlsched.frontier import calendar_rows, filing_rows
from crawlsched.frontier.calendar import Calendar
from crawlsched.frontier.entries import CompactEntries
from crawlsched.frontier.ladder import LOWEST
from crawlsched.frontier.levels import bed_levels, level_above, levels_above
from crawlsched.planner import Planner


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    cutoff=st.floats(-30, 30),
    fallen=st.integers(0, 10_000),
    falling=st.booleans(),
    coarse=st.integers(0, 5),
)
def test_each_page_has_the_bed_that_numpy_gives_it(
    seed: int, cutoff: float, fallen: int, falling: bool, coarse: int
) -> None:
    """Awake above its cutoff, else under the same level; hosts with a cutoff of their own among them."""
    rng = np.random.default_rng(seed)
    n, at = 50, level_above(2.0**cutoff)
    value = np.where(rng.random(n) < 0.1, 0.0, 2.0 ** (cutoff - 3 + rng.normal(0, 3, n)))
    slope, curve = value * rng.random((2, n))
    hosts = rng.integers(0, 3, n).astype(np.int32)
    own = np.array([0, level_above(2.0 ** (cutoff + 1)) - LOWEST, 0], np.int32)
    awake, beds = np.empty(n, bool), np.empty(n, np.int32)
    limits = own, at, at - fallen, falling, coarse
    n_awake = filing_rows.belong(value, slope, curve, 0.5, hosts, *limits, awake, beds)

    levels = levels_above(value + 0.5 * (slope + 0.5 * curve))
    cutoffs = np.maximum(at, own[hosts] + LOWEST)
    assert awake.tolist() == (levels > cutoffs).tolist()
    assert n_awake == awake.sum()
    below = levels < at - fallen
    cutoffs[below] = at - fallen
    expected = bed_levels(levels[~awake], cutoffs[~awake], falling | ~below[~awake], coarse)
    assert beds[: n - n_awake].tolist() == expected.tolist()


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_each_alarm_is_set_to_the_tick_that_numpy_sets_it_to(seed: int) -> None:
    """Page by page the same ticks and the same buckets, whether the page had an alarm or not."""
    rng = np.random.default_rng(seed)
    pages = Calendar(tick=0.5, start=3.0)
    pages.reserve(200)
    for now in (4.0, 500.0):
        some = rng.choice(200, 90, replace=False)
        times = now + rng.exponential(10.0 ** rng.uniform(-1, 12, 90))
        alarm, new, current = pages._alarm.copy(), np.empty(90, np.int64), pages.number(now)
        before, kept = len(pages), CompactEntries()
        n_new, n_unset = calendar_rows.set_alarms(*kept.arrays(90), alarm, some, times, 3.0, 0.5, current, new)
        pages.set(some, times, now)
        assert alarm.tolist() == pages._alarm.tolist()
        assert len(pages) == before + n_unset
        assert sorted(new[:n_new].tolist()) == sorted(kept.all_keys())
        for key in kept.all_keys():
            assert set(kept.look(key, alarm, 0, 2**32 - 1).tolist()) <= set(pages._buckets.pages(key).tolist())
        assert kept.entries == 90


def test_pages_sleep_in_view_of_the_lowest_cutoff_of_the_last_turns() -> None:
    """A rise of the cutoff counts after 128 turns, a fall at once, and as long if it was for one turn only."""
    planner = Planner(1.0)
    planner.add(0, 0.0)
    standing, seen = planner.frontier._standing, []
    standing.calm_at(-1000)
    for turn in range(192):
        standing.cutoff = 200 if turn == 70 else 500
        standing.calm_down()
        seen.append(standing.calm)
    assert seen == [-1000] * 127 + [200] * 64 + [500]
    standing.come_down(300, -1)
    assert standing.calm == 300
