"""Estimating: banks of estimators that are taught the same visits, and how far from the truth they are after each."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import BoolArray, FloatArray
from crawlsched.estimators import (
    LawOfLargeNumbers,
    MaximumLikelihood,
    Momentum,
    Naive,
    OutsideTheorem,
    StochasticApproximation,
)
from crawlsched.estimators.estimator import Estimator
from crawlsched.simulation.figures.figure import Progress, Settings
from crawlsched.simulation.figures.table import Label, Row, Table, summarize

__all__ = [
    "ERROR",
    "ESTIMATE",
    "SPREAD",
    "TRAJECTORY",
    "Visits",
    "draw_lines",
    "error_rows",
    "estimator",
    "follow",
    "generators",
    "last",
    "marks_up_to",
    "random_visits",
]


ESTIMATE = "estimate"
ERROR = "root mean square error"
SPREAD = "standard deviation"
#: The estimates of the first repetition alone.
TRAJECTORY = "trajectory"

_CLASSES: dict[str, type[Any]] = {
    "Naive": Naive,
    "MLE": MaximumLikelihood,
    "LLN": LawOfLargeNumbers,
    "SA": StochasticApproximation,
    "SAM": Momentum,
}


@dataclass(frozen=True, eq=False)
class Visits:
    """Visits to one page in each repetition.

    Attributes
    ----------
    elapsed : ndarray, shape (repetitions, n)
        Time since the visit before.
    changed : ndarray of bool, shape (repetitions, n)
    number : ndarray of int, shape (repetitions,)
        How many of them there are.
    """

    elapsed: FloatArray
    changed: BoolArray
    number: npt.NDArray[np.intp]


def generators(settings: Settings, case: int = 0) -> list[np.random.Generator]:
    """Return a generator for each repetition; more repetitions leave those before as they were."""
    children = np.random.SeedSequence([settings.seed, case]).spawn(settings.repetitions)
    return [np.random.default_rng(child) for child in children]


def random_visits(settings: Settings, change_rate: float, crawl_rate: float, n_visits: int, case: int = 0) -> Visits:
    """Draw visits that come as a Poisson process, and whether a page that changes as another had changed."""
    elapsed = np.empty((settings.repetitions, n_visits))
    chance = np.empty_like(elapsed)
    for row, rng in enumerate(generators(settings, case)):
        elapsed[row] = rng.exponential(1 / crawl_rate, n_visits)
        chance[row] = rng.random(n_visits)
    changed = chance < -np.expm1(-change_rate * elapsed)
    return Visits(elapsed, changed, np.full(settings.repetitions, n_visits))


def estimator(name: str, n_pages: int, crawl_rate: float | FloatArray, **parameters: Any) -> Estimator:
    """Return a bank of the estimator that the papers call so, a row for each page or repetition.

    Where the papers' step sizes are outside of their theorems, they are so on purpose.
    """
    rate = {} if name in ("Naive", "MLE") else {"crawl_rate": crawl_rate}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideTheorem)
        made: Estimator = _CLASSES[name](n_pages, **rate, **parameters)
    return made


def marks_up_to(n_visits: int) -> list[int]:
    """Return the numbers of visits after which estimates are read: the first ones, then about fifty."""
    marks = {*np.geomspace(1, n_visits, 16).astype(int), *np.linspace(1, n_visits, 41).astype(int)}
    return sorted(int(mark) for mark in marks)


def follow(
    banks: Mapping[str, Estimator], visits: Visits, marks: Sequence[int], progress: Progress | None = None
) -> dict[str, FloatArray]:
    """Teach all banks the visits one after the other; return their estimates, shape (marks, repetitions)."""
    found: dict[str, list[FloatArray]] = {name: [] for name in banks}
    wanted = set(marks)
    for k in range(marks[-1]):
        rows = np.flatnonzero(visits.number > k)
        for name, bank in banks.items():
            bank.update(rows, visits.elapsed[rows, k], visits.changed[rows, k])
            if k + 1 in wanted:
                found[name].append(np.asarray(bank.change_rate()))
        if progress is not None:
            progress(k + 1, marks[-1])
    return {name: np.array(estimates) for name, estimates in found.items()}


def error_rows(
    estimates: Mapping[str, FloatArray], truth: float | FloatArray, marks: Sequence[int], labels: tuple[Label, ...] = ()
) -> Iterable[Row]:
    """Give for each estimator and mark the mean estimate, its spread, its error, and the first repetition's."""
    for name, columns in estimates.items():
        for mark, values in zip(marks, columns, strict=True):
            place: tuple[Label, ...] = (*labels, mark, name)
            yield from summarize({(ESTIMATE, *place): values})
            n = values.size
            spread = float(np.std(values, ddof=1)) if n > 1 else nan
            # As for a normal distribution.
            yield Row(SPREAD, place, spread, spread / sqrt(2 * (n - 1)) if n > 1 else nan, n)
            (square,) = summarize({(ERROR, *place): (values - truth) ** 2})
            root = sqrt(square.mean)
            yield Row(ERROR, place, root, square.standard_error / (2 * root) if root else 0.0, n)
            yield Row(TRAJECTORY, place, float(values[0]), nan, 1)


def last(table: Table, quantity: str, name: str, **labels: Label) -> Row:
    """Return an estimator's row after the last visit."""
    rows = table.some(quantity, estimator=name, **labels)
    return max(rows, key=lambda row: float(table.label(row, "visits")))


def draw_lines(
    axes: Any, table: Table, quantity: str, names: Sequence[str], band: bool = False, **labels: Label
) -> None:
    """Draw a quantity against the number of visits, a line for each estimator; with 95 % of the estimates around it."""

    def place(row: Row) -> float:
        return float(table.label(row, "visits"))

    for number, name in enumerate(names):
        rows = table.some(quantity, estimator=name, **labels)
        axes.plot([place(row) for row in rows], [row.mean for row in rows], color=f"C{number}", label=name)
        spread = table.some(SPREAD, estimator=name, **labels)
        if band and not np.isnan(spread[0].mean):
            low = [row.mean - 1.96 * wide.mean for row, wide in zip(rows, spread, strict=True)]
            high = [row.mean + 1.96 * wide.mean for row, wide in zip(rows, spread, strict=True)]
            axes.fill_between([place(row) for row in rows], low, high, color=f"C{number}", alpha=0.15)
    axes.set_xlabel("visits k")
    axes.set_ylabel(ESTIMATE if quantity == TRAJECTORY else quantity)
    axes.grid(visible=True, alpha=0.3)
