"""Figures: numbers that repeat, tables that are written; those of the noisy-signals paper."""

import csv
import io

import numpy as np
import pytest

from crawlsched.bandwidth import refresh_rates
from crawlsched.simulation import replay
from crawlsched.simulation.figures import FigureSettings, Row, Table, accuracy, crawl_rates, repeated
from crawlsched.simulation.figures.instances import Instances, baseline, optimal_rates


def silent(done: int, total: int) -> None:
    """Show no progress."""


def test_more_repetitions_leave_those_before_as_they_were() -> None:
    """Every repetition and every case in it has random numbers of its own, which depend on the seed alone."""

    def drawn(repetitions: int, seed: int) -> list[Row]:
        run = repeated(["repetition", "case"], lambda _, case, rng, k: {("draw", k, case): rng.random()}, [1, 2])
        return list(run(FigureSettings(repetitions, seed=seed), silent).rows)

    assert drawn(5, seed=1)[:6] == drawn(3, seed=1)
    assert len({row.mean for row in [*drawn(5, seed=1), *drawn(5, seed=2)]}) == 20


def test_a_table_is_written_with_all_digits() -> None:
    """What is read back is what was there; there is no standard error of a single repetition."""
    rows = (Row("x", (1, "a"), 1 / 3, 0.1, 2), Row("y", (2, ""), 2e-9, float("nan"), 1))
    file = io.StringIO(newline="")
    Table(("pages", "policy"), rows).write(file)
    read = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert [float(line["mean"]) for line in read] == [1 / 3, 2e-9]
    assert [line["standard_error"] for line in read] == ["0.1", ""]
    assert [(line["quantity"], line["pages"], line["policy"]) for line in read] == [("x", "1", "a"), ("y", "2", "")]


def test_instances_have_the_rates_that_they_say() -> None:
    """Changes, announcements, and those that are true come as often as each page's rates say."""
    horizon = 3000.0
    history = accuracy.SIGNALS.draw(np.random.default_rng(3), 40, horizon)
    assert history.signal_times is not None
    assert (np.diff(history.signal_times) >= 0).all()
    changes = np.bincount(history.change_rows, minlength=40)
    assert np.abs(changes - history.change_rate * horizon).max() < 5 * np.sqrt(horizon)
    signals = np.bincount(history.signal_rows, minlength=40)
    rate = history.recall * history.change_rate + history.false_signal_rate
    assert (np.abs(signals - rate * horizon) < 5 * np.sqrt(rate * horizon)).all()
    # A true announcement comes at the time of its change.
    true = np.isin(history.signal_times, history.change_times)
    shares = np.bincount(history.signal_rows[true], minlength=40) / np.maximum(changes, 1)
    assert np.abs(shares - history.recall).max() < 5 * 0.5 / np.sqrt(changes[changes > 0].min())
    assert ((history.false_signal_rate >= 0.1) & (history.false_signal_rate <= 0.6)).all()


def test_the_simulated_optimum_is_the_formula_of_the_baseline() -> None:
    """LDS at the optimal rates, which keeps to them, has the accuracy of problem (5) within its standard error."""
    differences = []
    for seed in range(8):
        history = Instances().draw(np.random.default_rng(seed), 60, 40.0)
        done = replay(history, 100.0, "lds", "known", start=0.0, end=40.0, measure_from=10.0)
        differences.append(done.freshness - baseline(history))
    # Discrete slots cost a little at 60 pages.
    assert abs(np.mean(differences)) < 4 * np.std(differences, ddof=1) / 8**0.5 + 0.002
    rates = optimal_rates(history)
    assert rates.sum() == pytest.approx(100.0)
    assert rates == pytest.approx(refresh_rates(history.change_rate, history.importance, 100.0).rates)


def test_a_changing_bandwidth_takes_effect_at_once() -> None:
    """Before the first change nothing differs; after it there is half as much again."""
    history = Instances().draw(np.random.default_rng(8), 30, 40.0)
    times = np.linspace(1.0, 40.0, 40)
    always = crawl_rates.accuracies(history, 40.0, [(100.0, 1.0)], times)
    changing = crawl_rates.accuracies(history, 40.0, [(100.0, 0.3), (150.0, 0.7), (100.0, 1.0)], times)
    before = times <= 12.0
    assert changing[before] == pytest.approx(always[before], rel=1e-12)
    between = (times > 19.0) & (times <= 28.0)
    assert (changing[between] > always[between]).all()
