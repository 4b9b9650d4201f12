"""Figures 15, 18 and Table I of "Estimating frequency of change": other changes, and what estimates are for."""

from __future__ import annotations

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.estimators import BiasReduced, Naive
from crawlsched.estimators.estimator import Estimator
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, Settings, repeated
from crawlsched.simulation.figures.frequency_curves import BIAS, CHO, REPETITIONS
from crawlsched.simulation.figures.instances import poisson_events
from crawlsched.simulation.figures.table import Numbers
from crawlsched.simulation.history import SimulationError
from crawlsched.simulation.reading import read_changes

__all__ = ["FIGURES"]

NAIVE, OURS, _UNIFORM = "naive", "ours", "uniform"
_WEEK = 7


def _banks(visited: BoolArray, interval: float) -> dict[str, Estimator]:
    """Return the two estimators after they learned from visits, shape (pages, visits)."""
    banks: dict[str, Estimator] = {NAIVE: Naive(len(visited)), OURS: BiasReduced(len(visited))}
    for changed in visited.T:
        for bank in banks.values():
            bank.update(np.arange(len(visited)), interval, changed)
    return banks


# -- figure 15: changes with gamma distributed intervals

# Shapes of the gamma distribution, visits, and how long before the first of them changes have been going on.
SHAPES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 3.0, 4.0)
_VISITS = 50
_SETTLED = 20


def _gamma_changes(settings: Settings, shape: float, rng: np.random.Generator, repetition: int) -> Numbers:
    """Let pages change once a second with gamma distributed intervals, and visit them every second."""
    end = _SETTLED + _VISITS
    changed = np.zeros((settings.n_pages, end + 1), bool)
    time = rng.gamma(shape, 1 / shape, settings.n_pages)
    while (time <= end).any():
        going = np.flatnonzero(time <= end)
        changed[going, np.ceil(time[going]).astype(np.intp)] = True
        time += rng.gamma(shape, 1 / shape, settings.n_pages)
    banks = _banks(changed[:, _SETTLED + 1 :], 1.0)
    return {(BIAS, shape, name): float(np.mean(bank.change_rate())) for name, bank in banks.items()}


# -- figure 18: weekly visits, and what daily ones would tell (section 6.3)

_DAYS = 127
# Pages whose changes are mostly seen: not as often as once in three days, and three times at least.
_LEAST_CHANGES, _MOST_OFTEN = 3, 1 / 3
# The paper does not say how often its pages change. Evenly up to once in two days, most that are left change every few
# days; were they spread evenly over the logarithm, ours would be closer for 65 % and half as far off all the same.
_FASTEST = 1 / 2
OFF, CLOSER, _SHARE = "mean distance of the ratio from 1", "share of pages for which ours is closer", "share of pages"
_RATIO_STEP, _RATIO_MOST = 0.1, 2.5


def _monitored(settings: Settings) -> BoolArray:
    """Read which pages of a history changed on which of its last 127 days: those that section 6.3 selects."""
    assert settings.history is not None
    rows, times = read_changes(settings.history)
    days = np.floor((times - times.max(initial=0.0)) / 86_400.0).astype(np.int64)
    first = max(days.min(initial=0), -_DAYS)
    recent = (days >= first) & (days < 0)
    pages, rows = np.unique(rows[recent], return_inverse=True)
    changed = np.zeros((pages.size, -first), bool)
    changed[rows, days[recent] - first] = True
    changed = _selected(changed)
    if changed.shape[1] < 2 * _WEEK or not len(changed):
        raise SimulationError(
            f"{settings.history} must hold changes (page,time) of at least {2 * _WEEK} days, and pages that changed on "
            f"{_LEAST_CHANGES} days or more and on less than a third of them."
        )
    return changed


def _selected(changed: BoolArray) -> BoolArray:
    n_changes = changed.sum(axis=1)
    selected: BoolArray = changed[(n_changes >= _LEAST_CHANGES) & (n_changes < _MOST_OFTEN * changed.shape[1])]
    return selected


def _weekly(settings: Settings, case: None, rng: np.random.Generator, repetition: int) -> Numbers:
    """Monitor pages daily, estimate from weekly visits, and compare with the projected frequency, changes a day."""
    if settings.history is None:
        rates = rng.uniform(0.0, _FASTEST, settings.n_pages)
        changed = _selected(rng.random((rates.size, _DAYS)) < -np.expm1(-rates[:, None]))
    else:  # drawn with replacement: how much hangs on which pages there are
        monitored = _monitored(settings)
        changed = monitored[rng.integers(len(monitored), size=len(monitored))]
    projected = changed.mean(axis=1)
    days = changed[:, : changed.shape[1] // _WEEK * _WEEK]
    weeks: BoolArray = np.any(days.reshape(len(changed), -1, _WEEK), axis=2)
    numbers: Numbers = {}
    off = {}
    for name, bank in _banks(weeks, float(_WEEK)).items():
        ratio = np.asarray(bank.change_rate()) / projected
        off[name] = np.abs(ratio - 1.0)
        numbers[OFF, name, 0.0] = off[name].mean()
        steps = np.round(np.minimum(ratio, _RATIO_MOST) / _RATIO_STEP).astype(np.intp)
        for step, count in enumerate(np.bincount(steps, minlength=round(_RATIO_MOST / _RATIO_STEP) + 1)):
            numbers[_SHARE, name, round(step * _RATIO_STEP, 1)] = count / len(changed)
    numbers[CLOSER, OURS, 0.0] = (off[OURS] < off[NAIVE]).mean()
    return numbers


# -- Table I: changes detected by revisit policy

# Weeks of the crawl, and visits before the first estimate.
_WEEKS = 13
_FIRST_VISITS = 5
_DETECTED, OVER_UNIFORM = "changes detected", "share of uniform"
# Changes a day are lognormal, around once in 700 days and very wide: then 23 % of the uniform policy's visits find a
# change, as in the paper (2,147,589 of 9,260,000), and the naive policy gains as much on it as there.
_MEDIAN_RATE, _SIGMA = 1 / 700, 5.0


def _crawl_by_policy(settings: Settings, case: None, rng: np.random.Generator, repetition: int) -> Numbers:
    """Count the changes that visits find with each policy, all with one visit a week and page on average."""
    n_pages = settings.n_pages
    rates = rng.lognormal(np.log(_MEDIAN_RATE), _SIGMA, n_pages)
    rows, times = poisson_events(rng, np.minimum(rates, 24.0), float(_WEEK * _WEEKS))
    # The paper's pages were looked at once a day: what changed in a day shows at its end.
    day = np.zeros((n_pages, _WEEK * _WEEKS + 1), bool)
    day[rows, np.ceil(times).astype(np.intp)] = True
    seen = np.cumsum(day, axis=1)
    found = {_UNIFORM: _detected(seen, np.full(n_pages, 1 / _WEEK), 0)}
    first = _FIRST_VISITS * _WEEK
    early = np.diff(seen[:, : first + 1 : _WEEK], axis=1) > 0
    for name, bank in _banks(early, float(_WEEK)).items():
        wanted = np.sqrt(np.asarray(bank.change_rate()))
        frequency = wanted * (n_pages / _WEEK / max(wanted.sum(), 1e-300))
        found[name] = float(early.sum()) + _detected(seen, frequency, first)
    numbers: Numbers = {}
    for name, changes in found.items():
        numbers[_DETECTED, name] = changes
        numbers[OVER_UNIFORM, name] = changes / max(found[_UNIFORM], 1.0)
    numbers["share of visits that find a change", _UNIFORM] = found[_UNIFORM] / (n_pages * _WEEKS)
    return numbers


def _detected(seen: IndexArray, frequency: FloatArray, start: int) -> float:
    """Count the visits, at even intervals after day `start`, between which a page changed.

    `seen` has the days on which each page changed, up to the end of each day; `frequency` is in visits a day.
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


FIGURES = (
    Figure(
        "frequency-of-change-15",
        CHO,
        "bias where change intervals have a gamma distribution",
        Settings(REPETITIONS, (500,)),
        repeated(("α", "estimator"), _gamma_changes, SHAPES),
        drawn(Panel({BIAS: "o-"}, "α", ("estimator",), level=1.0, axes={"xlabel": "α, shape of the change intervals"})),
        {"changes": "one a second on average", "visits": f"{_VISITS}, one a second"},
    ),
    Figure(
        "frequency-of-change-18",
        CHO,
        "weekly estimates and what daily visits tell, on simulated pages",
        Settings(REPETITIONS, (5_000,)),
        repeated(("estimator", "ratio"), _weekly, [None]),
        drawn(Panel({_SHARE: "o-"}, "ratio", ("estimator",), axes={"xlabel": "estimated to projected frequency"})),
        {
            "time": f"{_DAYS} days, visits once a week",
            "changes a day": f"even up to {_FASTEST:g}; of these pages those with {_LEAST_CHANGES} changes or more, on "
            "less than a third of the days; or those of a given history",
        },
        takes_history=True,
    ),
    Figure(
        "frequency-of-change-table-1",
        CHO,
        "changes detected by revisit policy, on simulated pages",
        Settings(REPETITIONS, (10_000,)),
        repeated(("policy",), _crawl_by_policy, [None]),
        drawn(Panel({OVER_UNIFORM: "o"}, "policy", level=1.0, axes={"ylabel": "changes detected, share of uniform"})),
        {
            "time": f"{_WEEKS} weeks, {_FIRST_VISITS} weekly visits before the first estimate",
            "visits": "one a week and page on average",
            "changes a day": f"lognormal around 1/{1 / _MEDIAN_RATE:.0f}, σ = {_SIGMA}",
        },
    ),
)
