"""Figures 3 to 7, 11 to 19 and Table I of "Estimating frequency of change": its estimators, and their uses.

X/n and its improvement use only whether a page changed between two visits. X/T and its correction use the time of the
page's last change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from math import comb
from pathlib import Path
from sys import float_info
from typing import Any

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.estimators import BiasReduced, LastModified, Naive
from crawlsched.estimators.estimator import Estimator
from crawlsched.estimators.visit_counts import bias_reduced_moments, bias_reducing_addend, naive_moments
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, FigureSettings, Label, Numbers, Row, Run, repeated
from crawlsched.simulation.figures.instances import Distribution, lognormal, poisson_events
from crawlsched.simulation.history import SimulationError, read_changes
from crawlsched.slot_clock import DAY

__all__ = ["BIAS", "FIGURES", "SIMULATED", "VARIATION"]

_CHO = "Cho, Garcia-Molina (2003)"
BIAS = "E[r̂]/r"
VARIATION = "σ/r"
#: The names of simulated quantities begin with this word.
SIMULATED = "simulated "
# 20 batches of 500 pages are simulated.
_SIMULATION = FigureSettings(repetitions=20, pages=(500,))


def _last_modified_moments(ratio: float, n: int, corrected: bool = True) -> tuple[float, float]:
    """Return mean and deviation of estimates from dates of last changes, for n visits with `ratio` changes in between.

    The estimate is X'/T (Figure 13), or X/T (Figure 10) if not `corrected`. The deviation is infinite for n = 2.

    Notes
    -----
    Equation (3), with 1/T = ∫ exp(-s T) ds and 1/T² = ∫ s exp(-s T) ds. If k visits found a change, T is n - k plus the
    sum of k independent times. Each of these has the density (5), whose Laplace transform is L(s) = r/(r + s) (1 -
    exp(-r - s))/(1 - exp(-r)). This leaves one integral, over s = (1 + r) u/(1 - u).

    Examples
    --------
    With two visits, X/T is too high by a factor of log 4 at small rates, and of 2 at great rates. X'/T is nearly
    unbiased:

    >>> [round(_last_modified_moments(r, 2, corrected=False)[0] / r, 3) for r in (1e-4, 50.0)]
    [1.386, 2.0]
    >>> round(_last_modified_moments(1.0, 2)[0], 2)
    0.99
    """
    nodes, weights = _nodes()
    u = (nodes + 1) / 2
    # Much of the integrand is near 1/T = 1, and its tail lies beyond r. This scale suits both.
    scale = 1.0 + ratio
    s, ds = scale * u / (1 - u), weights / 2 * scale / (1 - u) ** 2
    found = -np.expm1(-ratio)
    transform = ratio / (ratio + s) * -np.expm1(-ratio - s) / found
    mean = square = 0.0
    for k in range(1, n + 1):
        amount = k if not corrected else n - 1 if k == n else (k - 1) - k / (n * np.log1p(-k / n))
        chance = comb(n, k) * found**k * np.exp(-ratio * (n - k))
        density = np.exp(-s * (n - k)) * transform**k
        mean += chance * amount * float(density @ ds)
        square += chance * amount**2 * float((density * s) @ ds)
    return float(mean), float(np.sqrt(max(square - mean**2, 0.0)))


@cache
def _nodes() -> tuple[FloatArray, FloatArray]:
    nodes, weights = np.polynomial.legendre.leggauss(400)
    return nodes, weights


UNIFORM, REDUCED, FIRST, CORRECTED = "X/n", "-log((X̄ + 0.5)/(n + 0.5))", "X/T", "X'/T"
#: For each estimator, three functions: one makes a bank, one reads its estimates, and one returns the moments for a
#: ratio r and n visits.
_KINDS: dict[str, tuple[Callable[[int], Any], Callable[[Any], FloatArray], Callable[[float, int], tuple[Any, Any]]]] = {
    UNIFORM: (Naive, Naive.change_rate, naive_moments),
    REDUCED: (BiasReduced, BiasReduced.change_rate, bias_reduced_moments),
    FIRST: (
        LastModified,
        LastModified.uncorrected_change_rate,
        lambda ratio, n: _last_modified_moments(ratio, n, corrected=False),
    ),
    CORRECTED: (LastModified, LastModified.change_rate, _last_modified_moments),
}
_DATED = (FIRST, CORRECTED)
#: A curve of a figure: an estimator and a number of visits.
Curve = tuple[str, int]


def moment(quantity: str, name: str, ratio: float, n: int) -> float:
    """Return a bias or a variation, by its formula."""
    return float(_KINDS[name][2](ratio, n)[quantity == VARIATION]) / ratio


def _exact(quantity: str, place: tuple[Label, ...], value: float) -> Row:
    """Return the row of a computed number, which has no error."""
    return Row(quantity, place, float(value), 0.0, 1)


def _visited(banks: Sequence[Any], rng: np.random.Generator, ratio: float, n_visits: int) -> None:
    """Visit pages that change `ratio` times between two visits, with the dates of their last changes."""
    pages = np.arange(banks[0].n_pages)
    for _ in range(n_visits):
        since = rng.exponential(1 / ratio, pages.size)
        for bank in banks:
            bank.update(pages, 1.0, since < 1, time_since_modified=since)


def _curves(
    curves: Sequence[Curve], ratios: Sequence[float], checked: Sequence[tuple[str, int, float]], enough_visits: int = 10
) -> Run:
    """Compute curves at some ratios, and simulate some of their points.

    With fewer than `enough_visits` visits, the standard deviation of estimates that use dates is not simulated. There
    this deviation is infinite, or its estimate has no standard error.
    """

    def exact(settings: FigureSettings) -> Iterator[Row]:
        for name, n in curves:
            for ratio in ratios:
                yield _exact(BIAS, (name, n, ratio), moment(BIAS, name, ratio, n))
                if n > 2 or name not in _DATED:
                    yield _exact(VARIATION, (name, n, ratio), moment(VARIATION, name, ratio, n))

    def measure(
        settings: FigureSettings, case: tuple[str, int, float], rng: np.random.Generator, repetition: int
    ) -> Numbers:
        name, n, ratio = case
        make, read, _ = _KINDS[name]
        bank = make(settings.n_pages)
        _visited([bank], rng, ratio, n)
        values = np.asarray(read(bank)) / ratio
        numbers: Numbers = {(SIMULATED + BIAS, name, n, ratio): float(values.mean())}
        if settings.n_pages > 1 and (n >= enough_visits or name not in _DATED):
            numbers[SIMULATED + VARIATION, name, n, ratio] = float(values.std(ddof=1))
        return numbers

    return repeated(("estimator", "n", "r"), measure, checked, exact)


def _points(curves: Sequence[Curve], ratios: Sequence[float] = (0.1, 0.5, 2.0, 5.0)) -> list[tuple[str, int, float]]:
    return [(name, n, ratio) for name, n in curves for ratio in ratios]


# -- the paper's curves


# -- figure 6: where the improved estimator is less than 10 % biased; figure 19: the constant in it


def _region(settings: FigureSettings) -> Iterator[Row]:
    """For each n, find the largest r with a bias below 10 %."""
    ratios = np.arange(0.01, 10.0, 0.01)
    for n in [*range(1, 21), *range(25, 101, 5)]:
        biased = np.abs(bias_reduced_moments(ratios, n)[0] / ratios - 1) > 0.1
        # The range of r begins with the first bias below 10 %, and ends before the next bias above 10 %.
        start = int(np.argmin(biased))
        until = start + int(np.argmax(biased[start:]))
        yield _exact("unbiased from r", (n,), 0.0 if start == 0 else float(ratios[start]))
        yield _exact("unbiased up to r", (n,), float(ratios[until - 1]))


def _addends(settings: FigureSettings) -> Iterator[Row]:
    visits = np.arange(1, 51)
    return (_exact("a", (int(n),), a) for n, a in zip(visits, bias_reducing_addend(visits), strict=True))


def _computed(rows: Callable[[FigureSettings], Iterator[Row]]) -> Run:
    return repeated(("n",), lambda *_: {}, [None], rows)


# -- figures 16 and 17: with and without the dates of last changes

WITHOUT_DATES, WITH_DATES = "r̂_e", "r̂_t"
_COMPARED = tuple(float(r) for r in (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 7, 10))
#: For each r, the number of visits after which the estimate without dates has a bias below 5 %. The numbers 160 and 500
#: are the paper's.
ENOUGH = {0.1: 50, 0.2: 50, 0.5: 50, 1.0: 50, 2.0: 50, 3.0: 50, 4.0: 80, 5.0: 160, 6.0: 500}


def _compare(settings: FigureSettings, case: tuple[float, int], rng: np.random.Generator, repetition: int) -> Numbers:
    ratio, n = case
    banks = {WITHOUT_DATES: BiasReduced(settings.n_pages), WITH_DATES: LastModified(settings.n_pages)}
    _visited(list(banks.values()), rng, ratio, n)
    numbers: Numbers = {}
    for name, bank in banks.items():
        values = np.asarray(bank.change_rate()) / ratio
        numbers[BIAS, name, n, ratio] = float(values.mean())
        numbers[VARIATION, name, n, ratio] = float(values.std(ddof=1)) if settings.n_pages > 1 else 0.0
    return numbers


# -- the figures

_RATIOS = np.geomspace(0.01, 10.0, 301).tolist()
DATED_RATIOS = np.geomspace(0.02, 20.0, 61).tolist()
_NAIVE = [(UNIFORM, 10)]
_VISITS = [(UNIFORM, n) for n in (1, 2, 3, 5, 9, 15, 20, 30, 40)]
_BOTH = [(UNIFORM, 10), *((REDUCED, n) for n in (3, 10, 50))]
_WIDE = [(REDUCED, n) for n in (10, 20, 40, 80)]
_LOGARITHMIC = {"xscale": "log", "ylim": (0.0, 2.2)}


def _figure(
    number: int, title: str, run: Run, panel: Panel, settings: FigureSettings, fixed: Mapping[str, str] | None = None
) -> Figure:
    name = f"frequency-of-change-{number}"
    return Figure(name, _CHO, title, settings, run, drawn(panel), fixed or {})


def _panel(quantity: str, x: str = "r", lines: tuple[str, ...] = ("estimator", "n"), **axes: Any) -> Panel:
    level = 1.0 if quantity == BIAS else None
    return Panel({quantity: "-", SIMULATED + quantity: "k."}, x, lines, level=level, axes={**_LOGARITHMIC, **axes})


def _dated(number: int, title: str, name: str, visits: Sequence[int], quantity: str) -> Figure:
    """Return a figure of estimates from dates. Curves of more than a few visits are simulated, too, at three points."""
    curves = [(name, n) for n in visits]
    checked = _points([(name, n) for n in visits if n >= (3 if visits[0] < 5 else 10)], (0.1, 1.0, 5.0))
    words = {"n": ", ".join(map(str, visits))}
    run, settings = _curves(curves, DATED_RATIOS, checked), replace(_SIMULATION, pages=(2000,))
    return _figure(number, title, run, _panel(quantity), settings, words)


_PAIR_PANEL = Panel(
    {BIAS: "o-", VARIATION: "o:"}, "r", ("estimator",), axes={"xscale": "log", "ylabel": "E[r̂]/r and σ/r"}
)

_CURVES = (
    _figure(
        3,
        "bias of the intuitive estimator X/n",
        _curves(_NAIVE, _RATIOS, _points(_NAIVE)),
        _panel(BIAS),
        _SIMULATION,
        {"n": "10 (the bias does not depend on it)"},
    ),
    _figure(
        4,
        "variation of X/n by the number of visits",
        _curves(_VISITS, [0.1, 0.3, 1.0, 2.0], _points([(UNIFORM, n) for n in (1, 9, 30)], (0.3, 1.0))),
        _panel(VARIATION, "n", ("r",), xscale="linear"),
        _SIMULATION,
        {"r": "0.1, 0.3, 1, 2"},
    ),
    _figure(
        5,
        "bias of the improved estimator",
        _curves(_BOTH, _RATIOS, _points(_BOTH[1:])),
        _panel(BIAS),
        _SIMULATION,
        {"n": "3, 10, 50"},
    ),
    _figure(
        6,
        "where the improved estimator is less than 10 % biased",
        _computed(_region),
        Panel({"unbiased from r": "-", "unbiased up to r": "-"}, "n", axes={"ylabel": "r", "title": "bias below 10 %"}),
        FigureSettings(1),
    ),
    _figure(
        7,
        "variation of the improved estimator",
        _curves(_WIDE, np.geomspace(0.1, 10.0, 201).tolist(), _points(_WIDE[:3], (0.5, 1.5, 3.0))),
        _panel(VARIATION),
        _SIMULATION,
        {"n": "10, 20, 40, 80"},
    ),
    _dated(11, "bias of X/T", FIRST, (2, 3, 5, 10), BIAS),
    _dated(12, "bias of X'/T", CORRECTED, (2, 3, 10), BIAS),
    _dated(14, "variation of X'/T", CORRECTED, (5, 10, 20, 40), VARIATION),
    _figure(
        16,
        "with and without the dates of last changes, n = 50",
        repeated(("estimator", "n", "r"), _compare, [(ratio, 50) for ratio in _COMPARED]),
        _PAIR_PANEL,
        _SIMULATION,
        {"n": "50"},
    ),
    _figure(
        17,
        "with and without the dates of last changes, n large enough",
        repeated(("estimator", "n", "r"), _compare, list(ENOUGH.items())),
        _PAIR_PANEL,
        _SIMULATION,
        {"n": ", ".join(f"{n} at r = {r:g}" for r, n in ENOUGH.items())},
    ),
    _figure(
        19,
        "the constant that reduces the bias",
        _computed(_addends),
        Panel({"a": "o-"}, "n", level=0.5, axes={"ylim": (0.0, 1.0)}),
        FigureSettings(1),
    ),
)


NAIVE, OURS, _UNIFORM = "naive", "ours", "uniform"
_WEEK = timedelta(weeks=1).days


def _banks(visited: BoolArray, interval: float) -> dict[str, Estimator]:
    """Return the two estimators after they learned from visits, shape (pages, visits)."""
    banks: dict[str, Estimator] = {NAIVE: Naive(len(visited)), OURS: BiasReduced(len(visited))}
    for changed in visited.T:
        for bank in banks.values():
            bank.update(np.arange(len(visited)), interval, changed)
    return banks


# -- figure 15: changes with gamma distributed intervals


def _gamma(shapes: Sequence[float], n_visits: int, settled: int) -> Figure:
    """Return the figure of pages that change once a second on average, visited after `settled` seconds."""

    def measure(settings: FigureSettings, shape: float, rng: np.random.Generator, repetition: int) -> Numbers:
        end = settled + n_visits
        changed = np.zeros((settings.n_pages, end + 1), bool)
        time = rng.gamma(shape, 1 / shape, settings.n_pages)
        while (time <= end).any():
            going = np.flatnonzero(time <= end)
            changed[going, np.ceil(time[going]).astype(np.intp)] = True
            time += rng.gamma(shape, 1 / shape, settings.n_pages)
        banks = _banks(changed[:, settled + 1 :], 1.0)
        return {(BIAS, shape, name): float(np.mean(bank.change_rate())) for name, bank in banks.items()}

    return Figure(
        "frequency-of-change-15",
        _CHO,
        "bias where change intervals have a gamma distribution",
        _SIMULATION,
        repeated(("α", "estimator"), measure, shapes),
        drawn(Panel({BIAS: "o-"}, "α", ("estimator",), level=1.0, axes={"xlabel": "α, shape of the change intervals"})),
        {"changes": "one a second on average", "visits": f"{n_visits}, one a second"},
    )


# -- figure 18: weekly visits compared with daily ones (section 6.3)

OFF, CLOSER, _SHARE = "mean distance of the ratio from 1", "share of pages for which ours is closer", "share of pages"


def _weekly(n_days: int, fastest: float, least_changes: int = 3) -> Figure:
    """Return the figure of estimates from weekly visits, for pages monitored daily.

    Both estimators are compared with the projected frequency, for pages whose changes are mostly seen. Such pages
    change on less than a third of the days, and at least `least_changes` times.

    Parameters
    ----------
    fastest : float
        The greatest rate of simulated pages, in changes a day. Rates are uniformly distributed from 0 to this rate.
    """

    def selected(changed: BoolArray) -> BoolArray:
        n_changes = changed.sum(axis=1)
        chosen: BoolArray = changed[(n_changes >= least_changes) & (3 * n_changes < changed.shape[1])]
        return chosen

    def monitored(history: Path) -> BoolArray:
        rows, times = read_changes(history)
        days = np.floor((times - times.max(initial=0.0)) / DAY).astype(np.int64)
        first = max(days.min(initial=0), -n_days)
        recent = (days >= first) & (days < 0)
        pages, rows = np.unique(rows[recent], return_inverse=True)
        changed = np.zeros((pages.size, -first), bool)
        changed[rows, days[recent] - first] = True
        changed = selected(changed)
        if changed.shape[1] < 2 * _WEEK or not len(changed):
            raise SimulationError(
                f"{history} must hold changes (page,time) of at least {2 * _WEEK} days, and pages that changed on "
                f"{least_changes} days or more and on less than a third of them."
            )
        return changed

    def measure(settings: FigureSettings, case: None, rng: np.random.Generator, repetition: int) -> Numbers:
        if settings.history is None:
            rates = rng.uniform(0.0, fastest, settings.n_pages)
            changed = selected(rng.random((rates.size, n_days)) < -np.expm1(-rates[:, None]))
        else:  # drawn with replacement, to show how much depends on the choice of pages
            pages = monitored(settings.history)
            changed = pages[rng.integers(len(pages), size=len(pages))]
        projected = changed.mean(axis=1)
        days = changed[:, : changed.shape[1] // _WEEK * _WEEK]
        weeks: BoolArray = np.any(days.reshape(len(changed), -1, _WEEK), axis=2)
        numbers: Numbers = {}
        off = {}
        for name, bank in _banks(weeks, float(_WEEK)).items():
            ratio = np.asarray(bank.change_rate()) / projected
            off[name] = np.abs(ratio - 1.0)
            numbers[OFF, name, 0.0] = off[name].mean()
            # Pages are counted by tenths of the ratio; the last tenth includes all ratios from 2.5 on.
            tenths = np.round(np.minimum(ratio, 2.5) * 10).astype(np.intp)
            for tenth, count in enumerate(np.bincount(tenths, minlength=26)):
                numbers[_SHARE, name, tenth / 10] = count / len(changed)
        numbers[CLOSER, OURS, 0.0] = (off[OURS] < off[NAIVE]).mean()
        return numbers

    return Figure(
        "frequency-of-change-18",
        _CHO,
        "estimates from weekly visits beside daily ones, on simulated pages",
        replace(_SIMULATION, pages=(5_000,)),
        repeated(("estimator", "ratio"), measure, [None]),
        drawn(Panel({_SHARE: "o-"}, "ratio", ("estimator",), axes={"xlabel": "estimated to projected frequency"})),
        {
            "time": f"{n_days} days, visits once a week",
            "changes a day": f"even up to {fastest:g}; of these pages those with {least_changes} changes or more, on "
            "less than a third of the days; or those of a given history",
        },
        takes_history=True,
    )


# -- Table I: changes detected by revisit policy

_DETECTED, OVER_UNIFORM = "changes detected", "share of uniform"


def _by_policy(n_weeks: int, n_first: int, rate: Distribution, rate_words: str) -> Figure:
    """Return the table of changes that visits find with each policy, with one visit a week and page on average.

    Parameters
    ----------
    n_first : int
        Weekly visits before the first estimate.
    rate : Distribution
        Distribution of the pages' changes a day.
    """

    def measure(settings: FigureSettings, case: None, rng: np.random.Generator, repetition: int) -> Numbers:
        n_pages = settings.n_pages
        rows, times = poisson_events(rng, np.minimum(rate.draw(rng, n_pages), 24.0), float(_WEEK * n_weeks))
        # The paper's pages were visited once a day, so the changes of a day are found at its end.
        day = np.zeros((n_pages, _WEEK * n_weeks + 1), bool)
        day[rows, np.ceil(times).astype(np.intp)] = True
        seen = np.cumsum(day, axis=1)
        found = {_UNIFORM: _detected(seen, np.full(n_pages, 1 / _WEEK), 0)}
        first = n_first * _WEEK
        early = np.diff(seen[:, : first + 1 : _WEEK], axis=1) > 0
        for name, bank in _banks(early, float(_WEEK)).items():
            wanted = np.sqrt(np.asarray(bank.change_rate()))
            frequency = wanted * (n_pages / _WEEK / max(wanted.sum(), float_info.min))
            found[name] = float(early.sum()) + _detected(seen, frequency, first)
        numbers: Numbers = {}
        for name, changes in found.items():
            numbers[_DETECTED, name] = changes
            numbers[OVER_UNIFORM, name] = changes / max(found[_UNIFORM], 1.0)
        numbers["share of visits that find a change", _UNIFORM] = found[_UNIFORM] / (n_pages * n_weeks)
        return numbers

    return Figure(
        "frequency-of-change-table-1",
        _CHO,
        "changes detected by revisit policy, on simulated pages",
        replace(_SIMULATION, pages=(10_000,)),
        repeated(("policy",), measure, [None]),
        drawn(Panel({OVER_UNIFORM: "o"}, "policy", level=1.0, axes={"ylabel": "changes detected, share of uniform"})),
        {
            "time": f"{n_weeks} weeks, {n_first} weekly visits before the first estimate",
            "visits": "one a week and page on average",
            "changes a day": rate_words,
        },
    )


def _detected(seen: IndexArray, frequency: FloatArray, start: int) -> float:
    """Count the visits that find a change; visits are at even intervals after day `start`.

    For each page and day, `seen` has the number of days with a change up to the end of that day. `frequency` is in
    visits a day.
    """
    end = seen.shape[1] - 1
    # A visit in the middle of a day finds the state at the end of the day before. So the counts of two such days show
    # whether the page changed between two visits.
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
    *_CURVES,
    _gamma((0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 3.0, 4.0), n_visits=50, settled=20),
    # The paper does not say how often its pages change. With rates drawn evenly up to once in two days, most of these
    # pages change every few days. With rates drawn evenly on a logarithmic scale, the improved estimator would be
    # closer for 65 % of the pages. The mean distance of its ratios from 1 would still be half of the naive estimator's.
    _weekly(n_days=127, fastest=0.5),
    # Rates are spread very widely around once in 700 days. Then 23 % of the uniform policy's visits find a change, as
    # in the paper (2,147,589 of 9,260,000). The naive policy then finds more changes than the uniform policy, by the
    # same factor as in the paper.
    _by_policy(n_weeks=13, n_first=5, rate=lognormal(1 / 700, 5.0), rate_words="lognormal around 1/700, σ = 5.0"),
)
