"""Figure 18 and section 6.3 of "Estimating frequency of change": weekly visits, and what daily ones would tell."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlsched.columns.array_types import BoolArray
from crawlsched.estimators import BiasReduced, Naive
from crawlsched.simulation.figures.figure import Claim, Figure, FigureError, Progress, Settings
from crawlsched.simulation.figures.frequency_curves import CHO, REPETITIONS
from crawlsched.simulation.figures.online_estimators import said
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Table
from crawlsched.simulation.reading import read_changes

__all__ = ["FIGURES"]

_DAYS, _WEEK = 127, 7
# Of the pages of which most changes are seen: not as often as once in three days, and three times at least.
_LEAST_CHANGES, _MOST_OFTEN = 3, 1 / 3
# The paper does not say how often its pages change. Evenly up to once in two days, most that are left change every few
# days; were they spread evenly over the logarithm, ours would be closer for 65 % and half as far off all the same.
_FASTEST = 1 / 2
_BANKS = {"naive": Naive, "ours": BiasReduced}
_OFF, _CLOSER, _SHARE = "mean distance of the ratio from 1", "share of pages for which ours is closer", "share of pages"
_RATIO_STEP, _RATIO_MOST = 0.1, 2.5


def _monitored(settings: Settings) -> BoolArray | None:
    """Read which pages of a history changed on which of its last 127 days: those that section 6.3 selects."""
    if settings.history is None:
        return None
    rows, times = read_changes(settings.history)
    days = np.floor((times - times.max(initial=0.0)) / 86_400.0).astype(np.int64)
    first = max(days.min(initial=0), -_DAYS)
    recent = (days >= first) & (days < 0)
    pages, rows = np.unique(rows[recent], return_inverse=True)
    changed = np.zeros((pages.size, -first), bool)
    changed[rows, days[recent] - first] = True
    changed = _selected(changed)
    if changed.shape[1] < 2 * _WEEK or not len(changed):
        raise FigureError(
            f"{settings.history} must hold changes (page,time) of at least {2 * _WEEK} days, and pages that changed on "
            f"{_LEAST_CHANGES} days or more and on less than a third of them."
        )
    return changed


def _selected(changed: BoolArray) -> BoolArray:
    n_changes = changed.sum(axis=1)
    selected: BoolArray = changed[(n_changes >= _LEAST_CHANGES) & (n_changes < _MOST_OFTEN * changed.shape[1])]
    return selected


def _weekly(settings: Settings, progress: Progress) -> Table:
    """Monitor pages daily, estimate from weekly visits, and compare with the projected frequency, changes a day."""
    monitored = _monitored(settings)

    def measure(case: int, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
        if monitored is None:
            rates = rng.uniform(0.0, _FASTEST, settings.n_pages)
            changed = _selected(rng.random((rates.size, _DAYS)) < -np.expm1(-rates[:, None]))
        else:  # drawn with replacement: how much hangs on which pages there are
            changed = monitored[rng.integers(len(monitored), size=len(monitored))]
        projected = changed.mean(axis=1)
        days = changed[:, : changed.shape[1] // _WEEK * _WEEK]
        weeks: BoolArray = np.any(days.reshape(len(changed), -1, _WEEK), axis=2)
        numbers: dict[tuple[Label, ...], float] = {}
        off = {}
        for name, bank_of in _BANKS.items():
            bank = bank_of(len(changed))
            for week in weeks.T:
                bank.update(np.arange(len(changed)), float(_WEEK), week)
            ratio = np.asarray(bank.change_rate()) / projected
            off[name] = np.abs(ratio - 1.0)
            numbers[_OFF, name, 0.0] = off[name].mean()
            steps = np.round(np.minimum(ratio, _RATIO_MOST) / _RATIO_STEP).astype(np.intp)
            for step, count in enumerate(np.bincount(steps, minlength=round(_RATIO_MOST / _RATIO_STEP) + 1)):
                numbers[_SHARE, name, round(step * _RATIO_STEP, 1)] = count / len(changed)
        numbers[_CLOSER, "ours", 0.0] = (off["ours"] < off["naive"]).mean()
        return numbers

    return repeat(settings, ("estimator", "ratio"), [0], measure, progress)


def _claims(table: Table) -> list[Claim]:
    closer = table.one(_CLOSER, estimator="ours", ratio=0.0)
    naive, ours = (table.one(_OFF, estimator=name, ratio=0.0) for name in _BANKS)
    return [
        Claim(closer.mean > 0.7, f"ours is closer for most pages: {said(closer)} of them (83 % in the paper)"),
        Claim(
            naive.mean > 0.35 and ours.mean < 0.6 * naive.mean,
            f"the naive estimator is more than 35 % off, ours half as much: {said(naive)} and {said(ours)}",
        ),
    ]


def _draw(table: Table, canvas: Any) -> None:
    canvas.set_size_inches(7, 5)
    axes = canvas.add_subplot()
    for name in _BANKS:
        rows = table.some(_SHARE, estimator=name)
        axes.plot([row.labels[1] for row in rows], [row.mean for row in rows], "-o", markersize=4, label=name)
    axes.axvline(1.0, color="black", linestyle=":")
    axes.set(xlabel="estimated to projected frequency of change", ylabel=_SHARE)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


FIGURES = (
    Figure(
        name="frequency-of-change-18",
        paper=f"{CHO}, Figure 18",
        title="weekly estimates and what daily visits tell, on simulated pages",
        settings=Settings(REPETITIONS, (5_000,)),
        run=_weekly,
        claims=_claims,
        draw=_draw,
        fixed={
            "time": f"{_DAYS} days, visits once a week",
            "changes a day": f"even up to {_FASTEST:g}; of these pages those with {_LEAST_CHANGES} changes or more, on "
            "less than a third of the days; or those of a given history",
        },
        takes_history=True,
    ),
)
