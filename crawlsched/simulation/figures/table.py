"""A table: every number of a figure, with its mean and standard error over the repetitions."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import IO, NamedTuple

import numpy as np

__all__ = ["Label", "Numbers", "Row", "Table", "summarize"]

#: A value on an axis of a figure: a number of pages, a policy, a time.
Label = str | int | float
#: What one simulation measures, by (quantity, *labels).
Numbers = dict[tuple[Label, ...], float]


class Row(NamedTuple):
    """One number of a figure."""

    quantity: str  # what was measured, such as ``accuracy``
    labels: tuple[Label, ...]  # where it stands in the figure: a value for each of `Table.labels`
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
        """Return the values that a label takes, in order of their first row."""
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
