"""Tallies of what a source states, and the bounded memory by which it is judged."""

from __future__ import annotations

import numpy as np
import pytest

from crawlsched.change_signals import newest_of_each
from crawlsched.planner import Planner, plan
from crawlsched.source_reading import PartRead, SourceRead
from crawlsched.source_tally import median_delay, tallied, together

NOON = 1_790_000_000.0 // 86_400 * 86_400 + 43_200


def _read(lastmod: list[float], announced: list[bool], backwards: list[bool], alike: float = 0.0) -> SourceRead:
    pages = np.arange(len(lastmod))
    return SourceRead(
        b"",
        pages=pages,
        announced=np.array(announced),
        backwards=np.array(backwards),
        lastmod=list(lastmod),
        alike=alike,
    )


def test_announcements_and_dates_that_went_back_are_counted() -> None:
    """Over all readings."""
    quality: dict[str, object] = {"index": {"held": 1.0, "missed": 0.0}}
    for _ in range(3):
        quality = tallied(quality, _read([NOON, NOON, NOON], [True, True, False], [False, True, False]), NOON + 60)
    assert (quality["readings"], quality["announced"], quality["backwards"]) == (3, 6, 3)
    assert quality["index"] == {"held": 1.0, "missed": 0.0}


def test_the_delay_is_the_median_from_the_date_stated_to_its_reading() -> None:
    """To a factor of the square root of two; dates without a time of day and dates in the future say nothing."""
    rng = np.random.default_rng(1)
    quality: dict[str, object] = {}
    now = NOON
    for delay in rng.lognormal(np.log(600.0), 0.5, 500):
        now += 3600.0
        stated = [now - delay, now // 86_400 * 86_400, now + 5000.0]
        quality = tallied(quality, _read(stated, [True] * 3, [False] * 3), now)
    assert median_delay(quality) == pytest.approx(600.0, rel=0.5)


def test_a_site_that_stops_stamping_all_pages_alike_is_seen_within_some_readings() -> None:
    """The share of equal dates is a running mean."""
    quality: dict[str, object] = {}
    for _ in range(20):
        quality = tallied(quality, _read([NOON], [False], [False], alike=1.0), NOON)
    assert quality["alike"] == pytest.approx(1.0)
    for _ in range(15):
        quality = tallied(quality, _read([NOON], [False], [False], alike=0.01), NOON)
    assert quality["alike"] < 0.06  # type: ignore[operator]


def test_parts_of_a_site_are_tallied_by_themselves() -> None:
    """One that is stamped at each reading beside one whose dates lag an hour; the tallies are bounded."""
    quality: dict[str, object] = {}
    for reading in range(10):
        now = NOON + 7200.0 * reading
        news, shop = np.array([now - 3600.0, now - 3700.0]), np.full(30, now - 1.0)
        read = _read([*news, *shop], [True] * 32, [False] * 32, alike=30 / 32)
        read.parts = {"a/news/": PartRead(2, 0.5, news), "a/shop/": PartRead(30, 1.0, shop)}
        read.parts |= {f"a/{number}/": PartRead(0, 0.0, np.empty(0)) for number in range(200)}
        quality = tallied(quality, read, now)
    parts: dict[str, dict[str, object]] = quality["parts"]  # type: ignore[assignment]
    assert len(parts) == 100
    assert (parts["a/news/"]["announced"], parts["a/shop/"]["announced"]) == (20, 300)
    assert (parts["a/news/"]["alike"], parts["a/shop/"]["alike"]) == (pytest.approx(0.5), pytest.approx(1.0))
    assert median_delay(parts["a/news/"]) == pytest.approx(3600.0, rel=0.5)
    assert median_delay(parts["a/shop/"]) == pytest.approx(1.0, rel=0.5)
    both = together([parts["a/news/"], parts["a/shop/"]])
    assert (both["announced"], both["alike"], sum(both["delays"].values())) == (320, 0.75, 320)


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
