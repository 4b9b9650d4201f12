"""A figure: one figure or table of a paper, how it is simulated and drawn, and the table of its numbers."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isnan, nan
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from crawlsched.simulation.history import SimulationError

__all__ = [
    "Figure",
    "FigureSettings",
    "Label",
    "Numbers",
    "Progress",
    "Row",
    "Run",
    "SimulationError",
    "Table",
    "repeated",
    "summarize",
]

#: A value on an axis of a figure: a number of pages, a policy, a time.
Label = str | int | float
#: What one simulation measures, by (quantity, *labels).
Numbers = dict[tuple[Label, ...], float]


class Row(NamedTuple):
    """One number of a figure."""

    quantity: str  # what was measured, such as ``accuracy``
    labels: tuple[Label, ...]  # its place in the figure: a value for each of `Table.labels`
    mean: float  # over the repetitions
    standard_error: float  # of the mean; nan with a single repetition
    repetitions: int


@dataclass(frozen=True)
class Table:
    """The rows of a figure.

    Examples
    --------
    >>> table = Table(("pages", "policy"), (Row("accuracy", (100, "GREEDY"), 0.7, 0.01, 4),))
    >>> table.one("accuracy", pages=100, policy="GREEDY").mean
    0.7
    >>> table.values("pages")
    [100]
    """

    labels: tuple[str, ...]
    rows: tuple[Row, ...]

    def some(self, quantity: str, **labels: Label) -> list[Row]:
        """Return the rows of a quantity that have these labels."""
        places = [(self.labels.index(name), value) for name, value in labels.items()]
        return [
            row
            for row in self.rows
            if row.quantity == quantity and all(row.labels[place] == value for place, value in places)
        ]

    def one(self, quantity: str, **labels: Label) -> Row:
        """Return the only row of a quantity with these labels, or raise `KeyError`."""
        found = self.some(quantity, **labels)
        if len(found) != 1:
            raise KeyError(f"{len(found)} rows of {quantity} with {labels}")
        return found[0]

    def label(self, row: Row, name: str) -> Label:
        """Return one label of a row."""
        return row.labels[self.labels.index(name)]

    def values(self, name: str) -> list[Label]:
        """Return the values that a label takes, in the order of the rows."""
        place = self.labels.index(name)
        return list(dict.fromkeys(row.labels[place] for row in self.rows))

    def write(self, file: IO[str]) -> None:
        """Write CSV: quantity, labels, mean, standard_error (empty with a single repetition), repetitions."""
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["quantity", *self.labels, "mean", "standard_error", "repetitions"])
        for row in self.rows:
            error = "" if isnan(row.standard_error) else repr(row.standard_error)
            writer.writerow([row.quantity, *row.labels, repr(row.mean), error, row.repetitions])


def summarize(measured: Mapping[tuple[Label, ...], Sequence[float]]) -> tuple[Row, ...]:
    """Return a row for each (quantity, *labels), from its values in the repetitions.

    >>> summarize({("accuracy", 100): [0.5, 0.7]})
    (Row(quantity='accuracy', labels=(100,), mean=0.6, standard_error=0.1, repetitions=2),)
    """
    rows = []
    for (quantity, *labels), values in measured.items():
        n = len(values)
        error = float(np.std(values, ddof=1)) / n**0.5 if n > 1 else nan
        rows.append(Row(str(quantity), tuple(labels), float(np.mean(values)), error, n))
    return tuple(rows)


#: ``progress(done, total)`` is called after each part of a figure has been simulated.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class FigureSettings:
    """The settings of a figure that a user can change."""

    repetitions: int  # independent simulations, over which means and standard errors are taken
    pages: tuple[int, ...] = ()  # numbers of pages, a case for each; empty for a figure that has no such number
    horizon: float | None = None  # simulated time, in the paper's unit; None for a figure without one
    seed: int = 0  # the same seed gives the same numbers
    history: Path | None = None  # a file of real changes instead of generated ones, for figures that can use it

    @property
    def n_pages(self) -> int:
        """The number of pages of a figure that takes only one; `SimulationError` if there are several."""
        if len(self.pages) != 1:
            raise SimulationError(
                f"pages must be a single number for this figure, got {', '.join(map(str, self.pages))}."
            )
        return self.pages[0]

    @property
    def time(self) -> float:
        """The horizon of a figure that has one."""
        assert self.horizon is not None
        return self.horizon

    @property
    def steps(self) -> int:
        """The horizon of a figure that counts visits or rounds; `SimulationError` if it is not whole."""
        if self.horizon is None or self.horizon < 1 or self.horizon != int(self.horizon):
            raise SimulationError(f"horizon must be a whole number above 0 for this figure, got {self.horizon!r}.")
        return int(self.horizon)


Run = Callable[[FigureSettings, Progress], Table]
#: ``measure(settings, case, rng, repetition)``. A number whose labels occur in one repetition only (a dot in a cloud of
#: dots) has its own row, without a standard error.
Measure = Callable[[FigureSettings, Any, np.random.Generator, int], Numbers]


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper."""

    name: str  # paper and number, such as ``noisy-signals-4``
    authors: str  # of the paper, with its year
    title: str  # what it shows, one line
    settings: FigureSettings  # as printed in the paper; chosen by us if the paper prints none
    run: Run  # ``run(settings, progress)`` simulates it and returns a `Table`; most are `repeated`
    # ``draw(table, canvas)`` draws it on an empty ``matplotlib.figure.Figure``; most are `drawn`.
    draw: Callable[[Table, Any], None]
    # FigureSettings that a user cannot change, in words; every run prints them.
    fixed: Mapping[str, str] = field(default_factory=dict)
    takes_history: bool = False  # whether `FigureSettings.history` can be given

    @property
    def paper(self) -> str:
        """Authors, year and number."""
        kind, _, number = self.name.rpartition("-")
        return f"{self.authors}, {'Table' if kind.endswith('-table') else 'Figure'} {number}"

    def with_settings(
        self,
        repetitions: int | None = None,
        pages: Sequence[int] | None = None,
        horizon: float | None = None,
        seed: int = 0,
        history: Path | None = None,
    ) -> FigureSettings:
        """Return the figure's settings with some of them replaced (None: not replaced), or raise `SimulationError`."""
        default = self.settings
        if pages is not None and not default.pages:
            raise SimulationError(f"{self.name} has no number of pages to set; leave --pages out.")
        if horizon is not None and default.horizon is None:
            raise SimulationError(f"{self.name} has no horizon to set; leave --horizon out.")
        if history is not None and not self.takes_history:
            raise SimulationError(f"{self.name} takes no history; leave --history out.")
        if repetitions is not None and repetitions < 1:
            raise SimulationError(f"repetitions must be a whole number above 0, got {repetitions}.")
        if pages is not None and (not pages or min(pages) < 1):
            raise SimulationError(f"pages must be whole numbers above 0, got {', '.join(map(str, pages)) or 'none'}.")
        if horizon is not None and not 0.0 < horizon < inf:
            raise SimulationError(f"horizon must be a number above 0 and finite, got {horizon!r}.")
        if seed < 0:
            raise SimulationError(f"seed must be a whole number, 0 or more, got {seed}.")
        return replace(
            default,
            repetitions=default.repetitions if repetitions is None else repetitions,
            # Each number of pages is a case. A number given twice would be the same case twice.
            pages=default.pages if pages is None else tuple(dict.fromkeys(pages)),
            horizon=default.horizon if horizon is None else float(horizon),
            seed=seed,
            history=history,
        )


def repeated(
    labels: Sequence[str],
    measure: Measure,
    cases: Sequence[Any] | None = None,
    exact: Callable[[FigureSettings], Iterable[Row]] = lambda settings: (),
) -> Run:
    """Return a function that measures every case (by default each number of pages) in every repetition, and summarizes.

    ``exact(settings)`` gives further rows, which come first.

    Notes
    -----
    Every repetition has a child of the seed (`numpy.random.SeedSequence.spawn`), and every case a child of the
    repetition's seed. So repetitions are independent, and further repetitions do not change the first ones.

    Examples
    --------
    >>> def throw(settings, sides, rng, repetition):
    ...     return {("throw", sides): rng.integers(sides) + 1.0}
    >>> run = repeated(["sides"], throw, [6, 20])
    >>> table = run(FigureSettings(repetitions=1000, seed=1), lambda done, total: None)
    >>> [(row.quantity, row.labels, round(row.mean, 1), round(row.standard_error, 2)) for row in table.rows]
    [('throw', (6,), 3.4, 0.05), ('throw', (20,), 10.6, 0.18)]
    """

    def run(settings: FigureSettings, progress: Progress) -> Table:
        measured: dict[tuple[Label, ...], list[float]] = {}
        each = settings.pages if cases is None else cases
        total = settings.repetitions * len(each)
        progress(0, total)
        for repetition, child in enumerate(np.random.SeedSequence(settings.seed).spawn(settings.repetitions)):
            for number, (case, seed) in enumerate(zip(each, child.spawn(len(each)), strict=True), 1):
                for key, value in measure(settings, case, np.random.default_rng(seed), repetition).items():
                    measured.setdefault(key, []).append(float(value))
                progress(repetition * len(each) + number, total)
        return Table(tuple(labels), (*exact(settings), *summarize(measured)))

    return run
