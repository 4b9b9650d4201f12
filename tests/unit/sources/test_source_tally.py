"""Tallies of what a source states, and the bounded memory by which it is judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crawlsched.change_signals import newest_of_each
from crawlsched.crawl.source_reading import SourceRead
from crawlsched.crawl.source_tally import tallied
from crawlsched.planner import Planner, plan

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200


def _read(lastmod: list[float], announced: list[bool], backwards: list[bool]) -> SourceRead:
    pages = np.arange(len(lastmod))
    return SourceRead(
        b"",
        pages=pages,
        announced=np.array(announced),
        backwards=np.array(backwards),
        lastmod=list(lastmod),
    )


def test_announcements_and_dates_that_went_back_are_counted() -> None:
    """Over all readings."""
    quality: dict[str, object] = {"index": {"held": 1.0, "missed": 0.0}}
    for _ in range(3):
        quality = tallied(quality, _read([NOON, NOON, NOON], [True, True, False], [False, True, False]), NOON + 60)
    assert (quality["announced"], quality["backwards"]) == (6, 3)
    assert quality["index"] == {"held": 1.0, "missed": 0.0}


def _delays(delays: np.ndarray) -> dict[str, Any]:
    """Tallies of a source of which one date was read so late each; one has no time of day, and one is yet to come."""
    stated = [*(NOON - delays), NOON // 86_400 * 86_400, NOON + 5000.0]
    return tallied({}, _read(stated, [True] * len(stated), [False] * len(stated)), NOON)


def test_delays_run_from_the_date_stated_to_its_reading() -> None:
    """Dates without a time of day and in the future say nothing; the newest hundred are remembered."""
    delays = np.arange(250.0, 0.0, -1.0)
    assert _delays(delays[-9:])["late"] == sorted(delays[-9:], reverse=True)
    assert len(_delays(delays)["late"]) == 100


def test_a_stamp_on_all_pages_is_one_date() -> None:
    """A thousand pages with the same date are no thousand observations."""
    stamped = tallied({}, _read([NOON] * 1000, [True] * 1000, [False] * 1000), NOON + 60.0)
    assert stamped["late"] == [60.0]


def _visits(rng: np.random.Generator, n: int, signal_weight: float) -> dict[str, np.ndarray]:
    elapsed = rng.exponential(100.0, n)
    n_signals = rng.poisson(0.01 * elapsed)
    changed = rng.random(n) < 1 - np.exp(-(0.002 * elapsed + signal_weight * n_signals))
    columns = {"page": rng.integers(0, 50, n), "elapsed": elapsed, "n_signals": n_signals, "changed": changed}
    return {**columns, "source": np.zeros(n, int)}


def _joined(newer: dict[str, np.ndarray], older: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([newer[name], older[name]]) for name in newer}


@pytest.mark.parametrize(("before", "after", "wanted"), [(0.0, 2.5, (1.8, 3.5)), (2.5, 0.0, (0.0, 0.1))])
def test_a_source_that_changes_its_ways_is_known_again_within_bounded_visits(
    before: float, after: float, wanted: tuple[float, float]
) -> None:
    """However long it lied or was honest, a thousand visits that heard of it are all that counts."""
    rng = np.random.default_rng(3)
    old = _visits(rng, 60_000, before)
    planner = Planner(1.0)
    planner.add(0, 0.0, n=50)
    new = _visits(rng, 8_000, after)
    heard = int((new["n_signals"] > 0).sum())
    assert 1_000 < heard < 6_000
    made = plan(planner.snapshot(), 1.0, newest_of_each(_joined(new, old), 1_000))
    assert wanted[0] <= made.signal_weights[0] <= wanted[1]
    whole = plan(planner.snapshot(), 1.0, _joined(new, old))
    assert not wanted[0] <= whole.signal_weights[0] <= wanted[1]
