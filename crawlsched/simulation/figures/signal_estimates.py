"""Figures 10 and 11 of the noisy-signals paper: precision and recall of announcements, counted and fitted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.estimators import SignalQuality
from crawlsched.simulation.figures.distributions import Uniform
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.instances import poisson_events
from crawlsched.simulation.figures.noisy_signals import PAPER, REPETITIONS, plus_minus
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Row, Table

__all__ = ["FIGURES", "visits"]

# Appendix E.
QUALITY = Uniform(0.2, 0.95)
CHANGE_INTERVAL = Uniform(2.0, 20.0)
HORIZON = 100_000.0
# Crawls by changes: "between four times to one quarter of the change rate".
RELATIVE_RATES = (4.0, 2.0, 1.0, 0.5, 0.25)
MEASURES = ("precision", "recall")
NAIVE, FITTED = "naive", "maximum likelihood"
BIAS, SIZE, TRUE, ESTIMATE = "error", "absolute error", "true value", "estimate"
# A bias that can be seen in a picture from 0 to 1; and the order of 10^-4 that the paper gives.
CLEARLY, HARDLY = 0.05, 0.001


def visits(
    rng: np.random.Generator, precision: float, recall: float, change_rate: float, crawl_rate: float, horizon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return elapsed time, announcements and whether there was a change for every visit to one page.

    Changes, those announced among them, false announcements and crawls come as Poisson processes.
    """
    false_signal_rate = recall * change_rate * (1.0 - precision) / precision
    rows, times = poisson_events(rng, np.array([change_rate, false_signal_rate, crawl_rate]), horizon)
    changes, false, crawls = (times[rows == row] for row in range(3))
    announced = np.concatenate([changes[rng.random(changes.size) < recall], false])
    edges = np.concatenate([[0.0], crawls])
    return np.diff(edges), _count(announced, edges), _count(changes, edges) > 0


def _count(times: FloatArray, edges: FloatArray) -> Any:
    # A time at an edge belongs to the visit there.
    n_before = np.sort(times).searchsorted(edges, side="right")
    return np.diff(n_before)


def run(estimator: str, settings: Settings, progress: Progress) -> Table:
    """Estimate precision and recall of a page drawn at random, for each relative rate of crawls."""

    def measure(relative: float, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
        assert settings.horizon is not None
        true = dict(zip(MEASURES, QUALITY.draw(rng, 2).tolist(), strict=True))
        change_rate = 1.0 / float(CHANGE_INTERVAL.draw(rng, 1)[0])
        seen = visits(rng, **true, change_rate=change_rate, crawl_rate=relative * change_rate, horizon=settings.horizon)
        fit = SignalQuality.fit_naive(*seen) if estimator == NAIVE else SignalQuality.fit(*seen, interval=False)
        numbers: dict[tuple[Label, ...], float] = {}
        for name, estimate in (("precision", fit.precision), ("recall", fit.recall)):
            numbers[BIAS, relative, name, ""] = estimate - true[name]
            numbers[SIZE, relative, name, ""] = abs(estimate - true[name])
            numbers["squared error", relative, name, ""] = (estimate - true[name]) ** 2
            numbers[TRUE, relative, name, repetition] = true[name]
            numbers[ESTIMATE, relative, name, repetition] = estimate
        return numbers

    labels = ("crawls per change", "measure", "repetition")
    return repeat(settings, labels, RELATIVE_RATES, measure, progress)


# -- what the paper claims


def _at(row: Row) -> str:
    relative, name, _ = row.labels
    return f"{plus_minus(row)} ({name}, {relative:g} crawls per change)"


def _clearly_biased(table: Table) -> list[Claim]:
    claims = []
    for name in MEASURES:
        rows = table.some(BIAS, measure=name)
        worst = max(rows, key=lambda row: abs(row.mean))
        said = ", ".join(f"{row.mean:.3f} at {row.labels[0]:g}" for row in rows)
        claims.append(
            Claim(
                abs(worst.mean) >= CLEARLY,
                f"counting is clearly biased in {name}; by crawls per change, it is off by {said}",
            )
        )
    return claims


def _hardly_biased(table: Table) -> list[Claim]:
    biased = max(table.some(BIAS), key=lambda row: abs(row.mean) - _chance(row))
    largest = max(table.some(SIZE), key=lambda row: row.mean)
    overall = {name: _mean_of(table.some(BIAS, measure=name)) for name in MEASURES}
    said = ", ".join(f"{plus_minus(row)} ({name})" for name, row in overall.items())
    return [
        Claim(
            abs(biased.mean) <= max(HARDLY, _chance(biased)),
            f"the bias of the fit is of the order of 0.0001 (below {HARDLY}, or what chance explains); the worst is "
            f"{_at(biased)}",
        ),
        Claim(
            all(abs(row.mean) <= max(HARDLY, _chance(row)) for row in overall.values()),
            f"so is its absolute error, as that of the bias over all pages: {said}; one page's estimate is off by "
            f"more, on average by up to {_at(largest)}",
        ),
    ]


def _mean_of(rows: list[Row]) -> Row:
    """Return the mean of numbers that were measured apart."""
    n = len(rows)
    error = sum(row.standard_error**2 for row in rows) ** 0.5 / n
    return Row(rows[0].quantity, (), sum(row.mean for row in rows) / n, error, rows[0].repetitions)


def _chance(row: Row) -> float:
    return 3 * row.standard_error if row.repetitions > 1 else 0.0


# -- how they are drawn


def draw(table: Table, canvas: Any) -> None:
    """Draw the error of every repetition, and their mean, by crawls per change."""
    canvas.set_size_inches(10, 4.2)
    for axes, name in zip(canvas.subplots(1, 2), MEASURES, strict=True):
        axes.axhline(0.0, color="red", linewidth=1)
        for place, relative in enumerate(RELATIVE_RATES):
            at: dict[str, Label] = {"crawls per change": relative, "measure": name}
            errors = [
                estimate.mean - true.mean
                for estimate, true in zip(table.some(ESTIMATE, **at), table.some(TRUE, **at), strict=True)
            ]
            # Side by side, so that dots do not hide each other.
            beside = place + np.linspace(-0.25, 0.25, len(errors)) if len(errors) > 1 else [place]
            axes.plot(beside, errors, ".", color="tab:blue", markersize=3, alpha=0.6)
            row = table.one(BIAS, **at, repetition="")
            label = "mean" if not place else None
            axes.errorbar([place], [row.mean], [np.nan_to_num(row.standard_error)], fmt="ko", capsize=4, label=label)
        axes.set_xticks(range(len(RELATIVE_RATES)), [f"{relative:g}" for relative in RELATIVE_RATES])
        axes.set_xlabel("crawls per change")
        axes.set_ylabel(f"estimated less true {name}")
        axes.grid(visible=True, axis="y", alpha=0.3)
        axes.legend()


def _figure(number: int, title: str, estimator: str, claims: Callable[[Table], list[Claim]]) -> Figure:
    return Figure(
        name=f"noisy-signals-{number}",
        paper=f"{PAPER}, Figure {number}",
        title=title,
        settings=Settings(REPETITIONS, horizon=HORIZON),
        run=partial(run, estimator),
        claims=claims,
        draw=draw,
        fixed={
            "precision and recall": str(QUALITY),
            "time between changes": str(CHANGE_INTERVAL),
            "crawls per change": " ".join(f"{relative:g}" for relative in RELATIVE_RATES),
        },
    )


FIGURES = (
    _figure(10, "bias of precision and recall as counted interval by interval", NAIVE, _clearly_biased),
    _figure(11, "bias of precision and recall as fitted by maximum likelihood", FITTED, _hardly_biased),
)
