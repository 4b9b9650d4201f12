"""A figure: one figure or table of a paper, how it is simulated, what the paper claims of it, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

from crawlsched.exceptions import CrawlschedError
from crawlsched.simulation.figures.table import Table

__all__ = ["Claim", "Figure", "FigureError", "Progress", "Settings", "unless_chance"]

# A difference of less than so many standard errors may be one of chance: that of one simulation in twenty is larger.
_CHANCE = 2.0

#: ``progress(done, total)`` is called whenever some part of a figure has been simulated.
Progress = Callable[[int, int], None]


class FigureError(CrawlschedError, ValueError):
    """A figure cannot be simulated as asked; the message is one sentence."""


@dataclass(frozen=True)
class Settings:
    """What a user can set of a figure.

    Attributes
    ----------
    repetitions : int
        Independent simulations, over which means and standard errors are taken.
    pages : tuple of int
        Numbers of pages, a case for each; empty for a figure that has no such number.
    horizon : float or None
        Simulated time, in the paper's unit; None for a figure without one.
    seed : int
        The same seed gives the same numbers.
    history : Path or None
        A file of real changes to take instead of generated ones, where a figure can.
    """

    repetitions: int
    pages: tuple[int, ...] = ()
    horizon: float | None = None
    seed: int = 0
    history: Path | None = None

    @property
    def n_pages(self) -> int:
        """The number of pages of a figure that takes only one.

        Raises
        ------
        FigureError
            If there are several.
        """
        if len(self.pages) != 1:
            raise FigureError(f"pages must be a single number for this figure, got {', '.join(map(str, self.pages))}.")
        return self.pages[0]

    @property
    def steps(self) -> int:
        """The horizon of a figure in which it is a number of visits or rounds.

        Raises
        ------
        FigureError
            If it is not a whole number.
        """
        if self.horizon is None or self.horizon < 1 or self.horizon != int(self.horizon):
            raise FigureError(f"horizon must be a whole number above 0 for this figure, got {self.horizon!r}.")
        return int(self.horizon)


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


@dataclass(frozen=True)
class Figure:
    """A figure or a table of a paper.

    Attributes
    ----------
    name : str
        Paper and number, such as ``noisy-signals-4``.
    paper : str
        Authors, year and number.
    title : str
        What it shows, one line.
    settings : Settings
        As printed in the paper, or as chosen where it is silent.
    run : callable
        ``run(settings, progress)`` simulates it and returns a `Table`; most are written with `repeat`.
    claims : callable
        ``claims(table)`` returns what the paper claims, and whether it came out.
    draw : callable
        ``draw(table, canvas)`` draws it on an empty ``matplotlib.figure.Figure``.
    fixed : mapping of str to str
        Settings that are not for the user to set, in words: what is printed with every run.
    takes_history : bool
        Whether `Settings.history` can be given.
    """

    name: str
    paper: str
    title: str
    settings: Settings
    run: Callable[[Settings, Progress], Table]
    claims: Callable[[Table], list[Claim]]
    draw: Callable[[Table, Any], None]
    fixed: Mapping[str, str] = field(default_factory=dict)
    takes_history: bool = False

    def with_settings(
        self,
        repetitions: int | None = None,
        pages: Sequence[int] | None = None,
        horizon: float | None = None,
        seed: int = 0,
        history: Path | None = None,
    ) -> Settings:
        """Return the figure's settings with some of them set; None leaves one as it is.

        Raises
        ------
        FigureError
            If a value is not possible, or the figure has no such setting.
        """
        default = self.settings
        if pages is not None and not default.pages:
            raise FigureError(f"{self.name} has no number of pages to set; leave --pages out.")
        if horizon is not None and default.horizon is None:
            raise FigureError(f"{self.name} has no horizon to set; leave --horizon out.")
        if history is not None and not self.takes_history:
            raise FigureError(f"{self.name} takes no history; leave --history out.")
        if repetitions is not None and repetitions < 1:
            raise FigureError(f"repetitions must be a whole number above 0, got {repetitions}.")
        if pages is not None and (not pages or min(pages) < 1):
            raise FigureError(f"pages must be whole numbers above 0, got {', '.join(map(str, pages)) or 'none'}.")
        if horizon is not None and not 0.0 < horizon < inf:
            raise FigureError(f"horizon must be a number above 0 and finite, got {horizon!r}.")
        if seed < 0:
            raise FigureError(f"seed must be a whole number, 0 or more, got {seed}.")
        return replace(
            default,
            repetitions=default.repetitions if repetitions is None else repetitions,
            # Each number of pages is a case of its own; named twice it would be the same case.
            pages=default.pages if pages is None else tuple(dict.fromkeys(pages)),
            horizon=default.horizon if horizon is None else float(horizon),
            seed=seed,
            history=history,
        )
