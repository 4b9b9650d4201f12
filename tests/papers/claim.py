"""A claim of a paper."""

from collections.abc import Iterable
from math import isnan

# A difference of less than so many standard errors may be one of chance: that of one simulation in twenty is larger.
_CHANCE = 2.0


class Claim:
    """Something a paper says of a figure, and whether it came out.

    Attributes
    ----------
    held : bool or None
        None if these settings cannot show it, as where a number on which it rests is not known (nan).
    sentence : str
        What is claimed, and the numbers found.
    """

    def __init__(self, held: bool | None, sentence: str, *numbers: float) -> None:
        self.held = None if any(map(isnan, numbers)) else held
        self.sentence = f"{sentence}: {', '.join(f'{number:.4g}' for number in numbers)}"


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
