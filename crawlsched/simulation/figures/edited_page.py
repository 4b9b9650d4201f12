"""Figure 1 of the online estimators' journal paper: an often edited page, from its history or one generated like it."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.figures.estimating import (
    ERROR,
    TRAJECTORY,
    Visits,
    draw_lines,
    error_rows,
    estimator,
    follow,
    generators,
    last,
    marks_up_to,
)
from crawlsched.simulation.figures.figure import Claim, Figure, FigureError, Progress, Settings
from crawlsched.simulation.figures.online_estimators import COMPARABLE, JOURNAL, said
from crawlsched.simulation.figures.table import Label, Row, Table, summarize
from crawlsched.simulation.reading import read_changes

__all__ = ["FIGURES"]

# Wikipedia's "Template talk: Did you know", April to August 2020: edits, and edits an hour.
_CHANGES = 4043
_CHANGE_RATE = 1.1098
_CRAWL_RATES = (0.5, 0.1)
_QUANTILES = np.arange(0.02, 1.0, 0.02)
_QUANTILE = "quantile of the times between changes"
_STEPS: dict[str, dict[str, float]] = {
    "Naive": {},
    "MLE": {},
    "LLN": {"alpha": 1.0},
    "SA": {"eta": 0.75},
    "SAM": {"eta": 1.2, "beta": 0.6},
}
# A straight line is one of this correlation.
_STRAIGHT = 0.99


@dataclass(frozen=True, eq=False)
class _Traces:
    """The changes of a page in each repetition, in hours, all of about the same length."""

    times: list[FloatArray]
    change_rate: float


def _traces(settings: Settings) -> _Traces:
    """Read the history of the page that changes most in a file; without one, generate a history for each repetition."""
    if settings.history is None:
        drawn = [np.cumsum(rng.exponential(1 / _CHANGE_RATE, _CHANGES)) for rng in generators(settings)]
        return _Traces(drawn, _CHANGE_RATE)
    pages, times = read_changes(settings.history)
    if not pages.size:
        raise FigureError(f"{settings.history} must hold changes (page,time) of a page, but there are none.")
    busiest = np.unique(pages, return_counts=True)
    page = busiest[0][busiest[1].argmax()]
    hours = np.unique(times[pages == page]) / 3600.0
    if hours.size < 100:
        raise FigureError(f"{settings.history} must hold a page with at least 100 changes, got {hours.size}.")
    hours -= hours[0]
    return _Traces([hours[1:]] * settings.repetitions, (hours.size - 1) / hours[-1])


def _visit(traces: _Traces, settings: Settings, crawl_rate: float, case: int) -> Visits:
    """Visit the page at random for as long as its history is."""
    elapsed, changed = [], []
    for times, rng in zip(traces.times, generators(settings, case), strict=True):
        visits = np.sort(rng.random(rng.poisson(crawl_rate * times[-1])) * times[-1])
        elapsed.append(np.diff(visits, prepend=0.0))
        changed.append(np.diff(times.searchsorted(visits, side="right"), prepend=0) > 0)
    number = np.array([gaps.size for gaps in elapsed])
    padded = (number.size, int(number.max(initial=1)))
    found = Visits(np.ones(padded), np.zeros(padded, bool), number)
    for row, gaps in enumerate(elapsed):
        found.elapsed[row, : gaps.size], found.changed[row, : gaps.size] = gaps, changed[row]
    return found


def _run(settings: Settings, progress: Progress) -> Table:
    traces = _traces(settings)
    rows: list[Row] = list(_quantile_rows(traces))
    for case, rate in enumerate(_CRAWL_RATES, 1):
        crawl_rate = rate * traces.change_rate / _CHANGE_RATE
        visits = _visit(traces, settings, crawl_rate, case)
        marks = marks_up_to(visits.elapsed.shape[1])
        banks = {name: estimator(name, settings.repetitions, crawl_rate, **steps) for name, steps in _STEPS.items()}
        estimates = follow(banks, visits, marks)
        rows += error_rows(estimates, traces.change_rate, marks, (rate,))
        progress(case, len(_CRAWL_RATES))
    return Table(("p", "visits", "estimator"), tuple(rows))


def _quantile_rows(traces: _Traces) -> list[Row]:
    """Compare the times between changes with an exponential distribution of their rate: a Q-Q plot."""
    found = np.array([np.quantile(np.diff(times, prepend=0.0), _QUANTILES) for times in traces.times])
    measured: dict[tuple[Label, ...], list[float]] = {}
    rows = []
    for column, share in enumerate(_QUANTILES.tolist()):
        place: tuple[Label, ...] = ("", -np.log1p(-share) / traces.change_rate, "")
        measured[_QUANTILE, *place] = found[:, column].tolist()
        rows.append(Row(TRAJECTORY, place, float(found[0, column]), nan, 1))
    return [*summarize(measured), *rows]


def _claims(table: Table) -> list[Claim]:
    rows = table.some(TRAJECTORY, p="")
    theory = [float(table.label(row, "visits")) for row in rows]
    quantiles = [row.mean for row in rows]
    line = np.polyfit(theory, quantiles, 1)
    # Changes at regular intervals have one quantile only, and no correlation.
    straight = np.corrcoef(theory, quantiles)[0, 1] if np.ptp(quantiles) > 1e-9 * max(quantiles) else 0.0
    claims = [
        Claim(
            bool(straight > _STRAIGHT and 0.9 < line[0] < 1.1),
            f"(a) the quantiles lie on the diagonal: slope {line[0]:.3f}, correlation {straight:.4f}",
        )
    ]
    error = {(rate, name): last(table, ERROR, name, p=rate) for rate in _CRAWL_RATES for name in _STEPS}
    often, seldom = _CRAWL_RATES
    ours = [error[often, name].mean for name in _STEPS if name != "Naive"]
    found = ", ".join(f"{name} {said(error[often, name])}" for name in _STEPS)
    claims.append(
        Claim(
            max(ours) - min(ours) <= COMPARABLE * error[often, "Naive"].mean > COMPARABLE * max(ours),
            f"(b) at p = {often} MLE, LLN, SA and SAM are comparable and outperform Naive: errors {found}",
        )
    )
    found = ", ".join(f"{name} {said(error[seldom, name])}" for name in _STEPS)
    better = max(error[seldom, name].mean for name in ("SAM", "MLE"))
    worse = min(error[seldom, name].mean for name in ("LLN", "SA"))
    claims.append(Claim(better < worse, f"(c) at p = {seldom} SAM and MLE are better than LLN and SA: errors {found}"))
    return claims


def _draw(table: Table, canvas: Any) -> None:
    """Draw the Q-Q plot, and one run of each estimator at both crawl rates."""
    canvas.set_size_inches(13, 4)
    panels = canvas.subplots(1, 3)
    rows = table.some(TRAJECTORY, p="")
    theory = [float(table.label(row, "visits")) for row in rows]
    panels[0].plot(theory, [row.mean for row in rows], "o", markersize=3)
    panels[0].plot([0, max(theory)], [0, max(theory)], color="black", linestyle=":")
    panels[0].set(xlabel="exponential quantile, hours", ylabel="quantile of the changes, hours", title="(a) Q-Q")
    for letter, rate, axes in zip("bc", _CRAWL_RATES, panels[1:], strict=True):
        draw_lines(axes, table, TRAJECTORY, list(_STEPS), p=rate)
        heights = [row.mean for row in table.some(TRAJECTORY, p=rate, estimator="MLE")]
        axes.set_ylim(0, 2.5 * heights[-1])
        axes.set_ylabel("changes an hour")
        axes.set_title(f"({letter}) p = {rate}, one run")
    panels[1].legend()


FIGURES = (
    Figure(
        name="online-estimators-1",
        paper=f"{JOURNAL}, Figure 1",
        title="estimators on a page that is edited often",
        settings=Settings(100),
        run=_run,
        claims=_claims,
        draw=_draw,
        fixed={
            "history": f"{_CHANGES} changes at {_CHANGE_RATE} an hour, unless one is given",
            "crawl rates p": "0.5 and 0.1 an hour (0.45 and 0.09 of the change rate of a given history)",
            "LLN": "alpha 1",
            "SA": "eta 0.75",
            "SAM": "eta 1.2, beta 0.6",
        },
        takes_history=True,
    ),
)
