"""Repeating: the same simulation again and again, each time with random numbers of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from crawlsched.simulation.figures.figure import Progress, Settings
from crawlsched.simulation.figures.table import Label, Table, summarize

__all__ = ["Measure", "repeat"]

Case = TypeVar("Case")

#: ``measure(case, rng, repetition)`` returns numbers by (quantity, *labels).
Measure = Callable[[Case, np.random.Generator, int], Mapping[tuple[Label, ...], float]]


def repeat(
    settings: Settings, labels: Sequence[str], cases: Sequence[Case], measure: Measure[Case], progress: Progress
) -> Table:
    """Measure every case in every repetition, and summarize what was measured.

    Parameters
    ----------
    settings : Settings
        Its `repetitions` and `seed` are used.
    labels : sequence of str
        Names of the labels.
    cases : sequence
        What is measured apart: numbers of pages, say.
    measure : callable
        ``measure(case, rng, repetition)`` returns numbers by (quantity, *labels). A number whose labels come in one
        repetition only (a dot in a cloud of dots) is a row of its own, without a standard error.
    progress : callable
        ``progress(done, total)``.

    Notes
    -----
    Every repetition has a child of the seed (`numpy.random.SeedSequence.spawn`), and every case a child of that:
    repetitions are independent, and more of them leave those before as they were.

    Examples
    --------
    >>> settings = Settings(repetitions=1000, seed=1)
    >>> table = repeat(settings, ["sides"], [6, 20],
    ...     lambda sides, rng, repetition: {("throw", sides): rng.integers(sides) + 1.0}, lambda done, total: None)
    >>> [(row.quantity, row.labels, round(row.mean, 1), round(row.standard_error, 2)) for row in table.rows]
    [('throw', (6,), 3.4, 0.05), ('throw', (20,), 10.6, 0.18)]
    """
    measured: dict[tuple[Label, ...], list[float]] = {}
    total = settings.repetitions * len(cases)
    progress(0, total)
    for repetition, child in enumerate(np.random.SeedSequence(settings.seed).spawn(settings.repetitions)):
        for number, (case, seed) in enumerate(zip(cases, child.spawn(len(cases)), strict=True), 1):
            for key, value in measure(case, np.random.default_rng(seed), repetition).items():
                measured.setdefault(key, []).append(float(value))
            progress(repetition * len(cases) + number, total)
    return Table(tuple(labels), summarize(measured))
