"""Precision, recall and false rate recovered from visits lie within their intervals 95 % of the time."""

from __future__ import annotations

import numpy as np
import pytest

from crawlsched.estimators import SignalQuality
from crawlsched.estimators.recall_interval import recall_interval

RUNS, VISITS = 240, 500
DAY = 86_400.0


def _visits(rng: np.random.Generator, precision: float, recall: float) -> tuple[np.ndarray, ...]:
    """Pages that change once a day are visited at random; changes and announcements are simulated one by one."""
    elapsed = rng.exponential(0.7 * DAY, VISITS)
    changes = rng.poisson(elapsed / DAY)
    told = rng.binomial(changes, recall)
    false_rate = recall * (1 - precision) / precision / DAY
    return elapsed, told + rng.poisson(false_rate * elapsed), changes > 0


@pytest.mark.parametrize("seed", [1, 2])
def test_the_truth_lies_within_the_intervals(seed: int) -> None:
    """For precision and recall anywhere between 0.15 and 0.9, in 95 % of runs but for three standard errors."""
    rng = np.random.default_rng(seed)
    inside = np.zeros((RUNS // 2, 3), bool)
    for run in range(RUNS // 2):
        precision, recall = rng.uniform(0.15, 0.9, 2)
        visits = _visits(rng, precision, recall)
        fit = SignalQuality.fit(*visits)
        low, high = fit.precision_interval
        _, least, most = recall_interval(*visits)
        rarest, most_often = fit.false_signal_rate_interval(float(visits[1].sum()))
        false_rate = recall * (1 - precision) / precision / DAY
        inside[run] = low <= precision <= high, least <= recall <= most, rarest <= false_rate <= most_often
    error = np.sqrt(0.05 * 0.95 / inside.shape[0])
    assert (inside.mean(axis=0) >= 0.95 - 3 * error).all(), inside.mean(axis=0)


def test_without_announcements_nothing_is_known() -> None:
    """The interval is everything."""
    assert recall_interval([10.0] * 20, [0] * 20, [True, False] * 10) == (0.0, 0.0, 1.0)


def test_the_interval_narrows_with_the_visits() -> None:
    """Four times the visits, about half the width."""
    rng = np.random.default_rng(5)
    elapsed, n, changed = _visits(rng, 0.7, 0.5)
    widths = [np.subtract(*recall_interval(elapsed[:m], n[:m], changed[:m])[:0:-1]) for m in (125, 500)]
    assert widths[1] == pytest.approx(widths[0] / 2, rel=0.5)
