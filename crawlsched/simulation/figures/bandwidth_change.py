"""Figure 9 of the noisy-signals paper: GREEDY finds its new optimum by itself when the bandwidth changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.instances import Instances
from crawlsched.simulation.figures.noisy_signals import PAPER, REPETITIONS
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Table
from crawlsched.simulation.history import History, Window
from crawlsched.simulation.measuring import fresh_spans
from crawlsched.simulation.planner_arm import PlannerArm
from crawlsched.simulation.policies import make_arm
from crawlsched.simulation.replaying import crawl
from crawlsched.simulation.slots import slot_times

__all__ = ["FIGURES"]

LOW, HIGH = 100.0, 150.0
PAGES = (1000,)
HORIZON = 400.0
# The bandwidth rises at time 133 and falls at 266 of 400.
RISE, FALL = 133 / 400, 266 / 400
# Accuracy is that of the time of the last 1000 crawls.
CRAWLS = 1000
STEPS = 400
INSTANCES = Instances()
CHANGING = "100, 150, 100"
CURVES = {CHANGING: (LOW, HIGH, LOW), "100": (LOW,), "150": (HIGH,)}
COLORS = {CHANGING: "red", "100": "green", "150": "blue"}
# The accuracy has arrived when it is this near to that of a bandwidth that was always the same.
PAR = 0.01
ACCURACY, SETTLED = "accuracy", "settled accuracy less that of the same bandwidth always"


def run(settings: Settings, progress: Progress) -> Table:
    """Simulate the three curves on the same instances."""
    assert settings.horizon is not None
    horizon = settings.horizon
    times = horizon * np.arange(1, STEPS + 1) / STEPS

    def measure(n_pages: int, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
        history = INSTANCES.draw(rng, n_pages, horizon)
        curves = {name: accuracies(history, horizon, bandwidths, times) for name, bandwidths in CURVES.items()}
        numbers: dict[tuple[Label, ...], float] = {
            (ACCURACY, n_pages, name, time): value
            for name, curve in curves.items()
            for time, value in zip(times.tolist(), curve.tolist(), strict=True)
        }
        for phase, same in enumerate(("100", "150", "100")):
            last = _last_quarter(times, horizon, phase)
            difference = float((curves[CHANGING] - curves[same])[last].mean())
            numbers[SETTLED, n_pages, CHANGING, f"phase {phase + 1}"] = difference
        return numbers

    return repeat(settings, ("pages", "bandwidth", "time"), settings.pages, measure, progress)


def _phases(horizon: float) -> list[tuple[float, float]]:
    return [(0.0, RISE * horizon), (RISE * horizon, FALL * horizon), (FALL * horizon, horizon)]


def _last_quarter(times: FloatArray, horizon: float, phase: int) -> Any:
    begin, end = _phases(horizon)[phase]
    return (times > begin + 0.75 * (end - begin)) & (times <= end)


def accuracies(history: History, horizon: float, bandwidths: Sequence[float], times: FloatArray) -> FloatArray:
    """Return the accuracy of GREEDY over the last 1000 crawls before each time.

    Parameters
    ----------
    history : History
    horizon : float
    bandwidths : sequence of float
        One for each of the three phases, or one for all of them.
    times : ndarray
    """
    window = history.window(0.0, horizon)
    arm, _ = make_arm(history, window, bandwidths[0], "greedy", "known", seed=0)
    assert isinstance(arm, PlannerArm)
    rows, crawled, _ = crawl(history, window, _slots(arm, horizon, bandwidths), arm)
    copies, begins, ends = fresh_spans(history, window, rows, crawled)
    weights = history.importance[copies]
    # The window of the last 1000 crawls begins with the first of them; where there are fewer, with the start.
    earlier = crawled.searchsorted(times, side="right") - CRAWLS
    since = np.where(earlier >= 0, crawled[np.maximum(earlier, 0)], 0.0)
    fresh = _fresh_until(times, begins, ends, weights) - _fresh_until(since, begins, ends, weights)
    shares: FloatArray = fresh / ((times - since) * history.importance.sum())
    return shares


def _slots(arm: PlannerArm, horizon: float, bandwidths: Sequence[float]) -> Iterator[float]:
    """Give the times of the slots, and tell the planner when the bandwidth changes: nothing else is done."""
    phases = _phases(horizon) if len(bandwidths) > 1 else [(0.0, horizon)]
    for (begin, end), bandwidth in zip(phases, bandwidths, strict=True):
        if begin > 0.0:
            arm.planner.set_bandwidth(bandwidth, begin)
        yield from slot_times(Window(begin, end, begin), bandwidth)


def _fresh_until(times: FloatArray, begins: FloatArray, ends: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted time during which copies were fresh, from 0 to each time."""
    total = np.zeros(times.size)
    for edges, sign in ((begins, 1.0), (ends, -1.0)):
        order = np.argsort(edges)
        before = edges[order].searchsorted(times)
        weight, moment = (np.concatenate([[0.0], np.cumsum(x[order])]) for x in (weights, weights * edges))
        total += sign * (times * weight[before] - moment[before])
    return total


def claims(table: Table) -> list[Claim]:
    """The accuracy rises and falls to that of the new bandwidth by itself."""
    made = []
    for pages in table.values("pages"):
        off = [table.one(SETTLED, pages=pages, time=f"phase {phase}").mean for phase in (1, 2, 3)]
        levels = [
            np.mean([row.mean for row in table.some(ACCURACY, pages=pages, bandwidth=same)[STEPS // 2 :]])
            for same in ("100", "150")
        ]
        made.append(
            Claim(
                max(map(abs, off)) <= PAR and levels[1] > levels[0],
                f"at m = {pages} the accuracy moves between that of R = 100 ({levels[0]:.4f}) and that of R = 150 "
                f"({levels[1]:.4f}); at the end of each phase it is off by {off[0]:.4f}, {off[1]:.4f} and {off[2]:.4f} "
                f"({PAR} allowed)",
            )
        )
    return made


def draw(table: Table, canvas: Any) -> None:
    """Draw accuracy against time: changing bandwidth in red, 100 in green, 150 in blue."""
    pages = table.values("pages")
    canvas.set_size_inches(8, 1 + 3.6 * len(pages))
    for axes, n_pages in zip(canvas.subplots(len(pages), 1, squeeze=False)[:, 0], pages, strict=True):
        for name, color in COLORS.items():
            rows = table.some(ACCURACY, pages=n_pages, bandwidth=name)
            times = np.array([float(row.labels[2]) for row in rows])
            means = np.array([row.mean for row in rows])
            errors = np.nan_to_num([row.standard_error for row in rows])
            axes.plot(times, means, color=color, label=f"R = {name}", linewidth=1)
            axes.fill_between(times, means - errors, means + errors, color=color, alpha=0.2, linewidth=0)
        for moment in (RISE, FALL):
            axes.axvline(moment * float(times[-1]), color="gray", linestyle=":", linewidth=1)
        axes.set_title(f"m = {n_pages}")
        axes.set_xlabel("time")
        axes.set_ylabel("accuracy over the last 1000 crawls")
        axes.grid(visible=True, alpha=0.3)
        axes.legend()


FIGURES = (
    Figure(
        name="noisy-signals-9",
        paper=f"{PAPER}, Figure 9",
        title="accuracy of GREEDY over time when the bandwidth rises and falls",
        settings=Settings(REPETITIONS, PAGES, HORIZON),
        run=run,
        claims=claims,
        draw=draw,
        fixed={
            "bandwidth R": "100, from a third of the horizon 150, from two thirds 100",
            "accuracy over": f"the last {CRAWLS} crawls",
            **INSTANCES.words(),
        },
    ),
)
