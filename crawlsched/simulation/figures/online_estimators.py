"""Figures 1 to 5 of the online estimators' journal paper, and 1 and 3 of the conference paper.

Banks of estimators learn from the same visits, and their errors after each visit are compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
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
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, FigureSettings, Label, Progress, Row, Table, summarize
from crawlsched.simulation.history import SimulationError, read_changes

__all__ = ["FIGURES"]

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


#: Visits to one page in each repetition: the time since the previous visit and whether the page changed, shape
#: (repetitions, n), and the number of visits, shape (repetitions,).
Visits = tuple[FloatArray, BoolArray, npt.NDArray[np.intp]]


def generators(settings: FigureSettings, case: int = 0) -> list[np.random.Generator]:
    """Return a generator for each repetition; further repetitions do not change the first generators."""
    children = np.random.SeedSequence([settings.seed, case]).spawn(settings.repetitions)
    return [np.random.default_rng(child) for child in children]


def random_visits(settings: FigureSettings, change_rate: float, crawl_rate: float, n_visits: int) -> Visits:
    """Draw visits and changes as Poisson processes; return each visit's interval and whether it found a change."""
    elapsed = np.empty((settings.repetitions, n_visits))
    chance = np.empty_like(elapsed)
    for row, rng in enumerate(generators(settings)):
        elapsed[row] = rng.exponential(1 / crawl_rate, n_visits)
        chance[row] = rng.random(n_visits)
    changed = chance < -np.expm1(-change_rate * elapsed)
    return elapsed, changed, np.full(settings.repetitions, n_visits)


def bank(name: str, n_pages: int, crawl_rate: float | FloatArray, parameters: Mapping[str, Any]) -> Estimator:
    """Return the bank of an estimator by its name in the papers, a row for each page or repetition.

    Some of the papers' step sizes lie outside of the theorems on purpose, so the warning about it is ignored.
    """
    rate = {} if name in ("Naive", "MLE") else {"crawl_rate": crawl_rate}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideTheorem)
        made: Estimator = _CLASSES[name](n_pages, **rate, **parameters)
    return made


def marks_up_to(n_visits: int) -> list[int]:
    """Return the numbers of visits after which estimates are read: the first few, then about fifty."""
    marks = {*np.geomspace(1, n_visits, 16).astype(int), *np.linspace(1, n_visits, 41).astype(int)}
    return sorted(int(mark) for mark in marks)


def follow(banks: Mapping[str, Estimator], visits: Visits, marks: Sequence[int]) -> dict[str, FloatArray]:
    """Let all banks learn from the visits one after the other; return their estimates, shape (marks, repetitions)."""
    found: dict[str, list[FloatArray]] = {name: [] for name in banks}
    wanted = set(marks)
    elapsed, changed, number = visits
    for k in range(marks[-1]):
        rows = np.flatnonzero(number > k)
        for name, one in banks.items():
            one.update(rows, elapsed[rows, k], changed[rows, k])
            if k + 1 in wanted:
                found[name].append(np.asarray(one.change_rate()))
    return {name: np.array(estimates) for name, estimates in found.items()}


def error_rows(
    estimates: Mapping[str, FloatArray], truth: float, marks: Sequence[int], labels: tuple[Label, ...] = ()
) -> Iterable[Row]:
    """Yield mean, spread and error of the estimates, and the first repetition's estimate, by estimator and mark."""
    for name, columns in estimates.items():
        for mark, values in zip(marks, columns, strict=True):
            place: tuple[Label, ...] = (*labels, mark, name)
            yield from summarize({(ESTIMATE, *place): values})
            n = values.size
            spread = float(np.std(values, ddof=1)) if n > 1 else nan
            # This is the standard error for a normal distribution.
            yield Row(SPREAD, place, spread, spread / sqrt(2 * (n - 1)) if n > 1 else nan, n)
            (square,) = summarize({(ERROR, *place): (values - truth) ** 2})
            root = sqrt(square.mean)
            yield Row(ERROR, place, root, square.standard_error / (2 * root) if root else 0.0, n)
            yield Row(TRAJECTORY, place, float(values[0]), nan, 1)


def words_of(steps: Steps) -> dict[str, str]:
    """Return the parameters of each estimator that has any, in words."""
    return {
        name: ", ".join(f"{parameter} {value:g}" for parameter, value in parameters.items())
        for name, parameters in steps.items()
        if parameters
    }


def _comparison(name: str, authors: str, rates: tuple[float, float], steps: Steps, size: tuple[int, int]) -> Figure:
    change_rate, crawl_rate = rates
    visits, repetitions = size

    def run(settings: FigureSettings, progress: Progress) -> Table:
        marks = marks_up_to(settings.steps)
        seen = random_visits(settings, change_rate, crawl_rate, marks[-1])
        banks = {who: bank(who, settings.repetitions, crawl_rate, chosen) for who, chosen in steps.items()}
        return Table(("visits", "estimator"), tuple(error_rows(follow(banks, seen, marks), change_rate, marks)))

    high = {"ylim": (0, 2.2 * change_rate)}
    panels = (
        Panel({TRAJECTORY: "-"}, "visits", ("estimator",), level=change_rate, axes={"title": "(a) one run", **high}),
        Panel(
            {ESTIMATE: "-"},
            "visits",
            ("estimator",),
            spread=SPREAD,
            level=change_rate,
            axes={"title": "(b) mean, 95 % of the runs", **high},
        ),
        Panel({ERROR: "-"}, "visits", ("estimator",), axes={"title": "(c) error", "ylim": (0, 1.1 * change_rate)}),
    )
    title = f"estimators of the change rate at Δ = {change_rate:g}, p = {crawl_rate:g}"
    fixed = {**_words(change_rate, crawl_rate), **words_of(steps)}
    return Figure(name, authors, title, FigureSettings(repetitions, horizon=visits), run, drawn(*panels), fixed)


def _words(change_rate: float, crawl_rate: float) -> dict[str, str]:
    return {"change rate Δ": f"{change_rate:g}", "crawl rate p": f"{crawl_rate:g}", "horizon counts": "visits of a run"}


# -- figure 5, and figure 3 of the conference paper: the effect of step sizes

#: The estimator of a panel, and its parameters by their names.
Choices = tuple[str, Steps]


def _choices(parameter: str, symbol: str, values: tuple[float, ...], **others: float) -> Steps:
    return {f"{symbol} = {value:g}": {parameter: value, **others} for value in values}


_ALPHAS: Choices = ("LLN", {"α = 1": {"alpha": 1.0}, "α = √k": {"alpha": "sqrt k"}, "α = k^0.75": {"alpha": "k^0.75"}})
_ETAS: Choices = ("SA", _choices("eta", "η", (0.5, 0.75, 1.0)))


def _step_sizes(
    name: str, authors: str, rates: tuple[float, float], panels: Mapping[str, Choices], visits: int
) -> Figure:
    change_rate, crawl_rate = rates

    def run(settings: FigureSettings, progress: Progress) -> Table:
        marks = marks_up_to(settings.steps)
        seen = random_visits(settings, change_rate, crawl_rate, marks[-1])
        rows: list[Row] = []
        for number, (panel, (kind, steps)) in enumerate(panels.items(), 1):
            banks = {who: bank(kind, settings.repetitions, crawl_rate, chosen) for who, chosen in steps.items()}
            rows += error_rows(follow(banks, seen, marks), change_rate, marks, (panel,))
            progress(number, len(panels))
        return Table(("panel", "visits", "estimator"), tuple(rows))

    drawings = [
        Panel(
            {quantity: "-"},
            "visits",
            ("estimator",),
            where={"panel": panel},
            level=change_rate if quantity == TRAJECTORY else None,
            axes={"title": f"({panel}) {kind}", "ylim": (0, high * change_rate), "ylabel": ylabel},
        )
        for quantity, high, ylabel in ((TRAJECTORY, 2.2, "estimate in one run"), (ERROR, 1.1, ERROR))
        for panel, (kind, _) in panels.items()
    ]
    chosen = {f"({panel}) {kind}": "; ".join(steps) for panel, (kind, steps) in panels.items()}
    return Figure(
        name,
        authors,
        f"step sizes at Δ = {change_rate:g}, p = {crawl_rate:g}",
        FigureSettings(100, horizon=visits),
        run,
        drawn(*drawings, columns=len(panels)),
        {**_words(change_rate, crawl_rate), **chosen},
    )


# -- figure 1: an often edited page, from its history or one generated like it

_QUANTILES = np.arange(0.02, 1.0, 0.02)
_QUANTILE = "quantile of the times between changes"
EDITED_STEPS: Steps = {
    "Naive": {},
    "MLE": {},
    "LLN": {"alpha": 1.0},
    "SA": {"eta": 0.75},
    "SAM": {"eta": 1.2, "beta": 0.6},
}


def _traces(settings: FigureSettings, n_changes: int, change_rate: float) -> tuple[list[FloatArray], float]:
    """Return the times of a page's changes in each repetition, in hours, and the rate of changes.

    If a file is given, the times are the history of the page that changes most. Otherwise a history is generated for
    each repetition.
    """
    if settings.history is None:
        drawn_times = [np.cumsum(rng.exponential(1 / change_rate, n_changes)) for rng in generators(settings)]
        return drawn_times, change_rate
    pages, times = read_changes(settings.history)
    if not pages.size:
        raise SimulationError(f"{settings.history} must hold changes (page,time) of a page, but there are none.")
    named, counts = np.unique(pages, return_counts=True)
    hours = np.unique(times[pages == named[counts.argmax()]]) / 3600.0
    if hours.size < 100:
        raise SimulationError(f"{settings.history} must hold a page with at least 100 changes, got {hours.size}.")
    hours -= hours[0]
    return [hours[1:]] * settings.repetitions, (hours.size - 1) / hours[-1]


def _visit(traces: list[FloatArray], settings: FigureSettings, crawl_rate: float, case: int) -> Visits:
    """Visit the page at random until the end of its history."""
    number = np.empty(settings.repetitions, np.intp)
    drawn_visits = []
    for row, (times, rng) in enumerate(zip(traces, generators(settings, case), strict=True)):
        visits = np.sort(rng.random(rng.poisson(crawl_rate * times[-1])) * times[-1])
        found = np.diff(times.searchsorted(visits, side="right"), prepend=0) > 0
        drawn_visits.append((np.diff(visits, prepend=0.0), found))
        number[row] = visits.size
    elapsed = np.ones((number.size, int(number.max(initial=1))))
    changed = np.zeros(elapsed.shape, bool)
    for row, (gaps, found) in enumerate(drawn_visits):
        elapsed[row, : gaps.size], changed[row, : gaps.size] = gaps, found
    return elapsed, changed, number


def _edited_page(n_changes: int, edit_rate: float, crawl_rates: tuple[float, float]) -> Figure:
    """Return the figure of a page with `n_changes` edits, `edit_rate` an hour, that is visited often or seldom."""

    def run(settings: FigureSettings, progress: Progress) -> Table:
        traces, change_rate = _traces(settings, n_changes, edit_rate)
        rows = _quantile_rows(traces, change_rate)
        for case, rate in enumerate(crawl_rates, 1):
            crawl_rate = rate * change_rate / edit_rate
            visits = _visit(traces, settings, crawl_rate, case)
            marks = marks_up_to(visits[0].shape[1])
            banks = {name: bank(name, settings.repetitions, crawl_rate, steps) for name, steps in EDITED_STEPS.items()}
            rows += error_rows(follow(banks, visits, marks), change_rate, marks, (rate,))
            progress(case, 2)
        return Table(("p", "visits", "estimator"), tuple(rows))

    quantiles = Panel(
        {TRAJECTORY: "o"},
        "visits",
        where={"p": ""},
        axes={"title": "(a) Q-Q", "xlabel": "exponential quantile, hours", "ylabel": "quantile of the changes, hours"},
    )
    panels = [
        Panel(
            {TRAJECTORY: "-"},
            "visits",
            ("estimator",),
            where={"p": rate},
            axes={
                "title": f"({letter}) p = {rate}, one run",
                "ylabel": "changes an hour",
                "ylim": (0, 2.5 * edit_rate),
            },
        )
        for letter, rate in zip("bc", crawl_rates, strict=True)
    ]
    return Figure(
        "online-estimators-1",
        JOURNAL,
        "estimators on a page that is edited often",
        FigureSettings(100),
        run,
        drawn(quantiles, *panels),
        {
            "history": f"{n_changes} changes at {edit_rate} an hour, unless one is given",
            "crawl rates p": "0.5 and 0.1 an hour (0.45 and 0.09 of the change rate of a given history)",
            **words_of(EDITED_STEPS),
        },
        takes_history=True,
    )


def _quantile_rows(traces: list[FloatArray], change_rate: float) -> list[Row]:
    """Compare the times between changes with an exponential distribution of their rate: a Q-Q plot."""
    found = np.array([np.quantile(np.diff(times, prepend=0.0), _QUANTILES) for times in traces])
    measured: dict[tuple[Label, ...], list[float]] = {}
    rows = []
    for column, share in enumerate(_QUANTILES.tolist()):
        place: tuple[Label, ...] = ("", -np.log1p(-share) / change_rate, "")
        measured[_QUANTILE, *place] = found[:, column].tolist()
        rows.append(Row(TRAJECTORY, place, float(found[0, column]), nan, 1))
    return [*summarize(measured), *rows]


_PAPERS_STEPS: Steps = {"Naive": {}, "MLE": {}, "LLN": {"alpha": 1.0}, "SA": {"eta": 0.75}}
_RARE_STEPS: Steps = {"LLN": {"alpha": 1.0}, "SA": {"eta": 0.8}, "SAM": {"eta": 0.8, "beta": 0.5}}

FIGURES = (
    # Wikipedia's "Template talk: Did you know", April to August 2020.
    _edited_page(n_changes=4043, edit_rate=1.1098, crawl_rates=(0.5, 0.1)),
    _comparison(
        "online-estimators-2", JOURNAL, (5.0, 3.0), {**_PAPERS_STEPS, "SAM": {"eta": 1.3, "beta": 0.75}}, (500, 100)
    ),
    _comparison("online-estimators-3", JOURNAL, (500.0, 3.0), _RARE_STEPS, (1000, 100)),
    _comparison("online-estimators-4", JOURNAL, (500.0, 50.0), _RARE_STEPS, (1000, 100)),
    _step_sizes(
        "online-estimators-5",
        JOURNAL,
        (500.0, 10.0),
        {
            "a": _ALPHAS,
            "b": _ETAS,
            "c": ("SAM", _choices("beta", "β", (0.4, 0.5, 0.6, 0.7), eta=0.8)),
            "d": ("SAM", _choices("eta", "η", (0.7, 0.8, 1.0, 1.2), beta=0.6)),
        },
        50_000,
    ),
    _comparison("optimal-freshness-1", CONFERENCE, (5.0, 3.0), _PAPERS_STEPS, (500, 1000)),
    _step_sizes("optimal-freshness-3", CONFERENCE, (1000.0, 200.0), {"a": _ALPHAS, "b": _ETAS}, 1000),
)
