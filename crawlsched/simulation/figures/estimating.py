"""Estimating: banks of estimators that learn from the same visits, and their errors after each visit."""

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
from crawlsched.simulation.figures.figure import Settings
from crawlsched.simulation.figures.table import Label, Row, summarize

JOURNAL = "Avrachenkov, Patil, Thoppe (2022)"
CONFERENCE = "Avrachenkov, Patil, Thoppe (2020)"

ESTIMATE = "estimate"
ERROR = "root mean square error"
SPREAD = "standard deviation"
#: The estimates of the first repetition alone.
TRAJECTORY = "trajectory"

#: Estimators as the papers call them, and the parameters of each.
Steps = Mapping[str, Mapping[str, Any]]

_CLASSES: dict[str, type[Any]] = {
    "Naive": Naive,
    "MLE": MaximumLikelihood,
    "LLN": LawOfLargeNumbers,
    "SA": StochasticApproximation,
    "SAM": Momentum,
}


@dataclass(frozen=True, eq=False)
class VisitSamples:
    """Visits to one page in each repetition."""

    elapsed: FloatArray  # time since the visit before; shape (repetitions, n)
    changed: BoolArray  # shape (repetitions, n)
    number: npt.NDArray[np.intp]  # how many of them there are; shape (repetitions,)


def generators(settings: Settings, case: int = 0) -> list[np.random.Generator]:
    """Return a generator for each repetition; more repetitions leave those before as they were."""
    children = np.random.SeedSequence([settings.seed, case]).spawn(settings.repetitions)
    return [np.random.default_rng(child) for child in children]


def random_visits(settings: Settings, change_rate: float, crawl_rate: float, n_visits: int) -> VisitSamples:
    """Draw visits and changes as Poisson processes; return each visit's interval and whether it found a change."""
    elapsed = np.empty((settings.repetitions, n_visits))
    chance = np.empty_like(elapsed)
    for row, rng in enumerate(generators(settings)):
        elapsed[row] = rng.exponential(1 / crawl_rate, n_visits)
        chance[row] = rng.random(n_visits)
    changed = chance < -np.expm1(-change_rate * elapsed)
    return VisitSamples(elapsed, changed, np.full(settings.repetitions, n_visits))


def bank(name: str, n_pages: int, crawl_rate: float | FloatArray, parameters: Mapping[str, Any]) -> Estimator:
    """Return the bank of an estimator by its name in the papers, a row for each page or repetition.

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


def follow(banks: Mapping[str, Estimator], visits: VisitSamples, marks: Sequence[int]) -> dict[str, FloatArray]:
    """Let all banks learn from the visits one after the other; return their estimates, shape (marks, repetitions)."""
    found: dict[str, list[FloatArray]] = {name: [] for name in banks}
    wanted = set(marks)
    for k in range(marks[-1]):
        rows = np.flatnonzero(visits.number > k)
        for name, one in banks.items():
            one.update(rows, visits.elapsed[rows, k], visits.changed[rows, k])
            if k + 1 in wanted:
                found[name].append(np.asarray(one.change_rate()))
    return {name: np.array(estimates) for name, estimates in found.items()}


def error_rows(
    estimates: Mapping[str, FloatArray], truth: float, marks: Sequence[int], labels: tuple[Label, ...] = ()
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


def words_of(steps: Steps) -> dict[str, str]:
    """Say the parameters of each estimator that has any."""
    return {
        name: ", ".join(f"{parameter} {value:g}" for parameter, value in parameters.items())
        for name, parameters in steps.items()
        if parameters
    }
