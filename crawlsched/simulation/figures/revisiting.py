"""Figure 15 and Table I of "Estimating frequency of change": changes of another kind, and what estimates are for."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray, IndexArray
from crawlsched.estimators import BiasReduced, Naive
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.frequency_curves import BIAS, CHO, REPETITIONS
from crawlsched.simulation.figures.instances import poisson_events
from crawlsched.simulation.figures.online_estimators import said
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Table

__all__ = ["FIGURES"]

# Figure 15: shapes of the gamma distribution, visits, and how long before the first of them changes have been going on.
_SHAPES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 3.0, 4.0)
# "Varying the α around its initial value of 1": as far above it as below.
_AROUND_ONE = 1.8
_VISITS = 50
_SETTLED = 20
_NAIVE, _OURS = "naive", "ours"

# Table I: days and weeks of the crawl, and visits before the first estimate.
_WEEK = 7
_WEEKS = 13
_FIRST_VISITS = 5
_UNIFORM = "uniform"
_DETECTED, _OVER_UNIFORM = "changes detected", "share of uniform"
# Changes a day are lognormal, around once in 700 days and very wide: then 23 % of the uniform policy's visits find a
# change, as in the paper (2,147,589 of 9,260,000), and the naive policy gains as much on it as there.
_MEDIAN_RATE, _SIGMA = 1 / 700, 5.0


def _gamma_changes(settings: Settings, progress: Progress) -> Table:
    """Let pages change once a second with gamma distributed intervals, and visit them every second."""
    n_pages = settings.n_pages

    def measure(shape: float, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
        changed = _visited_every_second(rng, shape, n_pages)
        banks = {_NAIVE: Naive(n_pages), _OURS: BiasReduced(n_pages)}
        for second in range(_VISITS):
            for bank in banks.values():
                bank.update(np.arange(n_pages), 1.0, changed[:, second])
        return {(BIAS, shape, name): float(np.mean(bank.change_rate())) for name, bank in banks.items()}

    return repeat(settings, ("α", "estimator"), _SHAPES, measure, progress)


def _visited_every_second(rng: np.random.Generator, shape: float, n_pages: int) -> Any:
    """Return whether each page had changed at each visit, shape (pages, visits)."""
    end = _SETTLED + _VISITS
    changed = np.zeros((n_pages, end + 1), bool)
    time = rng.gamma(shape, 1 / shape, n_pages)
    while (time <= end).any():
        going = np.flatnonzero(time <= end)
        changed[going, np.ceil(time[going]).astype(np.intp)] = True
        time += rng.gamma(shape, 1 / shape, n_pages)
    return changed[:, _SETTLED + 1 :]


def _claims_15(table: Table) -> list[Claim]:
    off = {
        shape: tuple(abs(table.one(BIAS, estimator=name, **{"α": shape}).mean - 1) for name in (_NAIVE, _OURS))
        for shape in _SHAPES
    }
    poisson = [table.one(BIAS, estimator=name, **{"α": 1.0}) for name in (_NAIVE, _OURS)]
    better = all(ours < naive for shape, (naive, ours) in off.items() if shape <= _AROUND_ONE)
    words = ", ".join(f"{ours:.0%} and {naive:.0%} at α = {shape:g}" for shape, (naive, ours) in off.items())
    return [
        Claim(
            abs(poisson[0].mean - 0.63) < 0.01 and abs(poisson[1].mean - 1) < 0.01,
            f"at α = 1 the naive estimator is 37 % off and ours not at all: {said(poisson[0])} and {said(poisson[1])} "
            "of the truth",
        ),
        Claim(
            better,
            f"ours is less biased than the naive estimator at every α around 1, from {_SHAPES[0]:g} to "
            f"{_AROUND_ONE:g}; off are ours and the naive one by {words}",
        ),
    ]


def _draw_15(table: Table, canvas: Any) -> None:
    canvas.set_size_inches(7, 5)
    axes = canvas.add_subplot()
    axes.axhline(1.0, color="black", linestyle=":")
    for name in (_NAIVE, _OURS):
        rows = table.some(BIAS, estimator=name)
        axes.errorbar(_SHAPES, [row.mean for row in rows], [np.nan_to_num(row.standard_error) for row in rows],
                      fmt="-o", markersize=4, label=name)  # fmt: skip
    axes.set(xlabel="α, shape of the change intervals", ylabel=BIAS)
    axes.set_ylim(0, 1.8)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


# -- Table I


def _crawl_by_policy(settings: Settings, progress: Progress) -> Table:
    """Count the changes that visits find with each policy, all with one visit a week and page on average."""
    n_pages = settings.n_pages

    def measure(case: int, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
        rates = rng.lognormal(np.log(_MEDIAN_RATE), _SIGMA, n_pages)
        rows, times = poisson_events(rng, np.minimum(rates, 24.0), float(_WEEK * _WEEKS))
        # The paper's pages were looked at once a day: what changed in a day shows at its end.
        day = np.zeros((n_pages, _WEEK * _WEEKS + 1), bool)
        day[rows, np.ceil(times).astype(np.intp)] = True
        seen = np.cumsum(day, axis=1)
        found = {_UNIFORM: _detected(seen, np.full(n_pages, 1 / _WEEK), 0)}
        first = _FIRST_VISITS * _WEEK
        early = np.diff(seen[:, : first + 1 : _WEEK], axis=1) > 0
        for name, bank in ((_NAIVE, Naive(n_pages)), (_OURS, BiasReduced(n_pages))):
            for number in range(_FIRST_VISITS):
                bank.update(np.arange(n_pages), float(_WEEK), early[:, number])
            wanted = np.sqrt(np.asarray(bank.change_rate()))
            frequency = wanted * (n_pages / _WEEK / max(wanted.sum(), 1e-300))
            found[name] = float(early.sum()) + _detected(seen, frequency, first)
        numbers: dict[tuple[Label, ...], float] = {}
        for name, changes in found.items():
            numbers[_DETECTED, name] = changes
            numbers[_OVER_UNIFORM, name] = changes / max(found[_UNIFORM], 1.0)
        numbers["share of visits that find a change", _UNIFORM] = found[_UNIFORM] / (n_pages * _WEEKS)
        return numbers

    return repeat(settings, ("policy",), [0], measure, progress)


def _detected(seen: IndexArray, frequency: FloatArray, start: int) -> float:
    """Count the visits, at even intervals after a day, between which a page changed.

    Parameters
    ----------
    seen : ndarray of int, shape (pages, days + 1)
        Days on which it changed, up to the end of each day.
    frequency : ndarray
        Visits a day of each page.
    start : int
        A day on which all were visited.
    """
    end = seen.shape[1] - 1
    # A visit in the middle of a day finds what the day before had. The counts of those days tell what is new.
    most = int(np.ceil(frequency.max(initial=0.0) * (end - start))) + 1
    total, before = 0, seen[:, start]
    for number in range(1, most + 1):
        with np.errstate(divide="ignore"):
            time = start + number / frequency
        going = np.flatnonzero(time <= end + 1e-9)
        if not going.size:
            break
        now = before.copy()
        now[going] = seen[going, np.minimum(np.floor(time[going] + 1e-9).astype(np.intp), end)]
        total += int((now > before).sum())
        before = now
    return float(total)


def _claims_table(table: Table) -> list[Claim]:
    share = {name: table.one(_OVER_UNIFORM, policy=name) for name in (_UNIFORM, _NAIVE, _OURS)}
    words = f"naive {said(share[_NAIVE])}, ours {said(share[_OURS])} of uniform (1.93 and 2.28 in the paper)"
    more = share[_OURS].mean / share[_NAIVE].mean - 1
    return [
        Claim(
            share[_NAIVE].mean > 1.0, f"adjusting the frequencies finds more changes than the uniform policy: {words}"
        ),
        Claim(
            share[_OURS].mean > share[_NAIVE].mean,
            f"our estimator finds more than the naive one: {more:.1%} more (18 % by the paper's table, 35 by its text)",
        ),
    ]


def _draw_table(table: Table, canvas: Any) -> None:
    canvas.set_size_inches(6, 4)
    axes = canvas.add_subplot()
    names = (_UNIFORM, _NAIVE, _OURS)
    rows = [table.one(_OVER_UNIFORM, policy=name) for name in names]
    bars = axes.bar(
        names, [row.mean for row in rows], yerr=[np.nan_to_num(row.standard_error) for row in rows], capsize=4
    )
    axes.bar_label(bars, [f"{row.mean:.0%}" for row in rows], label_type="center", color="white")
    axes.plot(names, [1.0, 1.93, 2.28], "kD", markersize=5, label="in the paper")
    axes.set(ylabel="changes detected, share of uniform")
    axes.set_ylim(0, 2.6)
    axes.legend(loc="upper left")


FIGURES = (
    Figure(
        name="frequency-of-change-15",
        paper=f"{CHO}, Figure 15",
        title="bias where change intervals have a gamma distribution",
        settings=Settings(REPETITIONS, (500,)),
        run=_gamma_changes,
        claims=_claims_15,
        draw=_draw_15,
        fixed={"changes": "one a second on average", "visits": f"{_VISITS}, one a second"},
    ),
    Figure(
        name="frequency-of-change-table-1",
        paper=f"{CHO}, Table 1",
        title="changes detected by revisit policy, on simulated pages",
        settings=Settings(REPETITIONS, (10_000,)),
        run=_crawl_by_policy,
        claims=_claims_table,
        draw=_draw_table,
        fixed={
            "time": f"{_WEEKS} weeks, {_FIRST_VISITS} weekly visits before the first estimate",
            "visits": "one a week and page on average",
            "changes a day": f"lognormal around 1/{1 / _MEDIAN_RATE:.0f}, σ = {_SIGMA}",
        },
    ),
)
