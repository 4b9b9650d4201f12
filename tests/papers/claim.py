"""A claim of a paper, and the words in which numbers are said."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan

from crawlsched.simulation.figures import Row, Table
from crawlsched.simulation.figures.figure import Label

# A difference of less than so many standard errors may be one of chance: that of one simulation in twenty is larger.
_CHANCE = 2.0


@dataclass(frozen=True)
class Claim:
    """Something a paper says of a figure, and whether it came out.

    Attributes
    ----------
    held : bool or None
        None if these settings cannot show it.
    sentence : str
        What is claimed and what was found, with the numbers.
    """

    held: bool | None
    sentence: str


Claims = Iterable[Claim]


def unless_chance(held: bool, difference: float, standard_error: float) -> bool | None:
    """Return whether a claim held that rests on the sign of a difference; None where it did not and chance decides.

    Parameters
    ----------
    held : bool
        Whether the sign is the one claimed.
    difference, standard_error : float
        A mean over the repetitions, and how far off it may be; a nan of a single repetition tells nothing of chance.

    Examples
    --------
    >>> unless_chance(False, 0.001, 0.002), unless_chance(False, 0.01, 0.002), unless_chance(True, -0.001, 0.002)
    (None, False, True)
    """
    return None if not held and abs(difference) <= _CHANCE * standard_error else held


def said(row: Row, mean: str = ".3g", error: str = ".2g") -> str:
    """Say a mean with its standard error, if it has one.

    Examples
    --------
    >>> said(Row("error", (), 0.51234, 0.00123, 10)), said(Row("error", (), 0.5, float("nan"), 1), ".4f")
    ('0.512 ± 0.0012', '0.5000')
    """
    return format(row.mean, mean) + ("" if isnan(row.standard_error) else f" ± {row.standard_error:{error}}")


def last(table: Table, quantity: str, name: str, **labels: Label) -> Row:
    """Return the row whose label of a name is the greatest, such as the one after the last visit."""
    return max(table.some(quantity, **labels), key=lambda row: table.label(row, name))
