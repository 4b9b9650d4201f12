"""Replay of a collection so large that the frontier looks at pages before their alarms ring."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from crawlsched.crawl_value import greedy, use_compiled
from crawlsched.frontier.timers.timing_wheel import Calendar
from crawlsched.planner.values import plug_in_values
from crawlsched.simulation import History, replay

HAS_NUMBA = importlib.util.find_spec("numba") is not None
N_PAGES = 4_000
N_SLOTS = 2_000
# Slots of 1/11 s: some of those that end a tick of 32 are, as floats, before its end and nearer to it than a rounding.
BANDWIDTH = 11.0


@pytest.fixture(autouse=True)
def as_at_the_start() -> Iterator[None]:
    """Take back what tests choose."""
    yield
    use_compiled(None)


def large(seed: int) -> History:
    """Pages that never leave, with rates over three decades."""
    rng = np.random.default_rng(seed)
    return History(
        page=np.arange(N_PAGES),
        birth=np.full(N_PAGES, -1.0),
        end=np.full(N_PAGES, np.inf),
        importance=rng.lognormal(0.0, 1.0, N_PAGES),
        change_rows=np.zeros(0, np.intp),
        change_times=np.zeros(0),
        change_rate=rng.lognormal(-6.0, 1.5, N_PAGES),
    )


def brute_force(history: History) -> np.ndarray:
    """Return the best of all pages at each slot."""
    crawled_at, rows = np.zeros(N_PAGES), np.empty(N_SLOTS, np.intp)
    for slot in range(N_SLOTS):
        now = (slot + 1) / BANDWIDTH
        rows[slot] = row = greedy(now - crawled_at, history.change_rate, history.importance).argmax()
        crawled_at[row] = now
    return rows


def test_alarms_handed_out_ahead_of_a_time_that_rounds_into_the_next_tick_are_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over some thousand slots the picks are those of a search through all pages, with numba as without."""
    # So few at a time that some are left over when the tick ends, by compiled code too.
    monkeypatch.setattr(plug_in_values, "_PORTION_COMPILED", 96)
    handed_out: list[int] = []
    ahead = Calendar.ahead

    def counted(self: Calendar, *arguments: Any) -> np.ndarray:
        pages = ahead(self, *arguments)
        handed_out.append(pages.size)
        return pages

    monkeypatch.setattr(Calendar, "ahead", counted)
    history = large(0)
    expected = brute_force(history)
    for compiled in (False, True)[: 1 + HAS_NUMBA]:
        use_compiled(compiled)
        handed_out.clear()
        done = replay(history, BANDWIDTH, "greedy", "known", start=0.0, end=(N_SLOTS + 0.5) / BANDWIDTH)
        np.testing.assert_array_equal(done.rows, expected)
        assert sum(handed_out) > 10 * N_SLOTS
