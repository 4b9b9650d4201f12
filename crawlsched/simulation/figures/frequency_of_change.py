"""Figures 3 to 7, 11 to 19 and Table I of "Estimating frequency of change": its estimators, and their uses.

X/n and its improvement know only whether a page changed between two visits; X/T and its correction know when it
changed last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import comb
from typing import Any

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray, IndexArray
from crawlsched.estimators import BiasReduced, LastModified, Naive
from crawlsched.estimators.estimator import Estimator
from crawlsched.estimators.visit_counts import bias_reduced_moments, bias_reducing_addend, naive_moments
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, Label, Numbers, Row, Run, Settings, repeated
from crawlsched.simulation.figures.instances import poisson_events
from crawlsched.simulation.history import SimulationError, read_changes

__all__ = ["BIAS", "FIGURES", "REPETITIONS", "SIMULATED", "VARIATION"]

_CHO = "Cho, Garcia-Molina (2003)"
BIAS = "E[r̂]/r"
VARIATION = "σ/r"
#: Simulated values are a quantity of their own beside the exact one.
SIMULATED = "simulated "
#: Pages in a batch; each batch is simulated anew.
REPETITIONS, PAGES = 20, 500
# With fewer visits the deviation of estimates from dates is infinite, or its estimate has no standard error.
_FEW_VISITS = 10


def _last_modified_moments(ratio: float, n: int, corrected: bool = True) -> tuple[float, float]:
    """Return mean and deviation of the estimates from dates of last changes after n visits, `ratio` changes apart.

    The estimate is X'/T (Figure 13), or X/T (Figure 10) if not `corrected`. The deviation is infinite for n = 2.

    Notes
    -----
    Equation (3), with 1/T = ∫ exp(-s T) ds and 1/T² = ∫ s exp(-s T) ds: with k changed visits T is n - k and k
    independent times of the density (5), whose Laplace transform is L(s) = r/(r + s) (1 - exp(-r - s))/(1 - exp(-r)).
    One integral is left, over s = (1 + r) u/(1 - u).

    Examples
    --------
    X/T is too high by log 4 for small and by 2 for great rates, if there are two visits; X'/T hardly at all:

    >>> [round(_last_modified_moments(r, 2, corrected=False)[0] / r, 3) for r in (1e-4, 50.0)]
    [1.386, 2.0]
    >>> round(_last_modified_moments(1.0, 2)[0], 2)
    0.99
    """
    nodes, weights = _nodes()
    u = (nodes + 1) / 2
    # Much of the integrand is near 1/T = 1, and its tail beyond r: a scale between the two serves both.
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
#: For each estimator: a bank of it, what is read from the bank, and its moments for a ratio r and n visits.
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
#: An estimator and a number of visits; what is computed along it, or simulated at some points.
Curve = tuple[str, int]


def moment(quantity: str, name: str, ratio: float, n: int) -> float:
    """Return a bias or a variation, by its formula."""
    return float(_KINDS[name][2](ratio, n)[quantity == VARIATION]) / ratio


def _exact(quantity: str, place: tuple[Label, ...], value: float) -> Row:
    """Return a number that is computed and not simulated, so without an error."""
    return Row(quantity, place, float(value), 0.0, 1)


def _visited(banks: Sequence[Any], rng: np.random.Generator, ratio: float, n_visits: int) -> None:
    """Visit pages that change `ratio` times between two visits, with the dates of their last changes."""
    pages = np.arange(banks[0].n_pages)
    for _ in range(n_visits):
        since = rng.exponential(1 / ratio, pages.size)
        for bank in banks:
            bank.update(pages, 1.0, since < 1, time_since_modified=since)


def _curves(curves: Sequence[Curve], ratios: Sequence[float], checked: Sequence[tuple[str, int, float]]) -> Run:
    """Compute curves at some ratios, and simulate at some points of them."""

    def exact(settings: Settings) -> Iterator[Row]:
        for name, n in curves:
            for ratio in ratios:
                yield _exact(BIAS, (name, n, ratio), moment(BIAS, name, ratio, n))
                if n > 2 or name not in _DATED:
                    yield _exact(VARIATION, (name, n, ratio), moment(VARIATION, name, ratio, n))

    def measure(settings: Settings, case: tuple[str, int, float], rng: np.random.Generator, repetition: int) -> Numbers:
        name, n, ratio = case
        make, read, _ = _KINDS[name]
        bank = make(settings.n_pages)
        _visited([bank], rng, ratio, n)
        values = np.asarray(read(bank)) / ratio
        numbers: Numbers = {(SIMULATED + BIAS, name, n, ratio): float(values.mean())}
        if settings.n_pages > 1 and (n >= _FEW_VISITS or name not in _DATED):
            numbers[SIMULATED + VARIATION, name, n, ratio] = float(values.std(ddof=1))
        return numbers

    return repeated(("estimator", "n", "r"), measure, checked, exact)


def _points(curves: Sequence[Curve], ratios: Sequence[float]) -> list[tuple[str, int, float]]:
    return [(name, n, ratio) for name, n in curves for ratio in ratios]


# -- the paper's curves


# -- figure 6: where the improved estimator is less than 10 % biased; figure 19: the constant in it


def _region(settings: Settings) -> Iterator[Row]:
    """Find for each n the largest r with a bias below 10 %."""
    ratios = np.arange(0.01, 10.0, 0.01)
    for n in [*range(1, 21), *range(25, 101, 5)]:
        biased = np.abs(bias_reduced_moments(ratios, n)[0] / ratios - 1) > 0.1
        # From the first r on with a bias as small as that, up to the next r without it.
        start = int(np.argmin(biased))
        until = start + int(np.argmax(biased[start:]))
        yield _exact("unbiased from r", (n,), 0.0 if start == 0 else float(ratios[start]))
        yield _exact("unbiased up to r", (n,), float(ratios[until - 1]))


def _addends(settings: Settings) -> Iterator[Row]:
    visits = np.arange(1, 51)
    return (_exact("a", (int(n),), a) for n, a in zip(visits, bias_reducing_addend(visits), strict=True))


def _computed(rows: Callable[[Settings], Iterator[Row]]) -> Run:
    return repeated(("n",), lambda *_: {}, [None], rows)


# -- figures 16 and 17: with and without the dates of last changes

WITHOUT_DATES, WITH_DATES = "r̂_e", "r̂_t"
_COMPARED = tuple(float(r) for r in (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 7, 10))
#: Visits at each r that leave the estimate without dates less than 5 % of bias; 160 and 500 are the paper's.
ENOUGH = {0.1: 50, 0.2: 50, 0.5: 50, 1.0: 50, 2.0: 50, 3.0: 50, 4.0: 80, 5.0: 160, 6.0: 500}


def _compare(settings: Settings, case: tuple[float, int], rng: np.random.Generator, repetition: int) -> Numbers:
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
_SOME = (0.1, 0.5, 2.0, 5.0)
_NAIVE = [(UNIFORM, 10)]
_VISITS = [(UNIFORM, n) for n in (1, 2, 3, 5, 9, 15, 20, 30, 40)]
_BOTH = [(UNIFORM, 10), *((REDUCED, n) for n in (3, 10, 50))]
_WIDE = [(REDUCED, n) for n in (10, 20, 40, 80)]
_LOGARITHMIC = {"xscale": "log", "ylim": (0.0, 2.2)}


def _figure(
    number: int, title: str, run: Run, panel: Panel, settings: Settings, fixed: Mapping[str, str] | None = None
) -> Figure:
    name = f"frequency-of-change-{number}"
    return Figure(name, _CHO, title, settings, run, drawn(panel), fixed or {})


def _panel(quantity: str, x: str = "r", lines: tuple[str, ...] = ("estimator", "n"), **axes: Any) -> Panel:
    level = 1.0 if quantity == BIAS else None
    return Panel({quantity: "-", SIMULATED + quantity: "k."}, x, lines, level=level, axes={**_LOGARITHMIC, **axes})


def _dated(number: int, title: str, name: str, visits: Sequence[int], quantity: str) -> Figure:
    """Return a figure of estimates from dates; simulated are more than two visits, few ones at three points."""
    curves = [(name, n) for n in visits]
    checked = _points([(name, n) for n in visits if n >= (3 if visits[0] < 5 else 10)], (0.1, 1.0, 5.0))
    words = {"n": ", ".join(map(str, visits))}
    run, settings = _curves(curves, DATED_RATIOS, checked), Settings(REPETITIONS, (2000,))
    return _figure(number, title, run, _panel(quantity), settings, words)


_SIMULATION, _COMPARISON = Settings(REPETITIONS, (PAGES,)), Settings(REPETITIONS, (500,))
_PAIR_PANEL = Panel(
    {BIAS: "o-", VARIATION: "o:"}, "r", ("estimator",), axes={"xscale": "log", "ylabel": "E[r̂]/r and σ/r"}
)

_CURVES = (
    _figure(
        3,
        "bias of the intuitive estimator X/n",
        _curves(_NAIVE, _RATIOS, _points(_NAIVE, _SOME)),
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
        _curves(_BOTH, _RATIOS, _points(_BOTH[1:], _SOME)),
        _panel(BIAS),
        _SIMULATION,
        {"n": "3, 10, 50"},
    ),
    _figure(
        6,
        "where the improved estimator is less than 10 % biased",
        _computed(_region),
        Panel({"unbiased from r": "-", "unbiased up to r": "-"}, "n", axes={"ylabel": "r", "title": "bias below 10 %"}),
        Settings(1),
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
        _COMPARISON,
        {"n": "50"},
    ),
    _figure(
        17,
        "with and without the dates of last changes, n large enough",
        repeated(("estimator", "n", "r"), _compare, list(ENOUGH.items())),
        _PAIR_PANEL,
        _COMPARISON,
        {"n": ", ".join(f"{n} at r = {r:g}" for r, n in ENOUGH.items())},
    ),
    _figure(
        19,
        "the constant that reduces the bias",
        _computed(_addends),
        Panel({"a": "o-"}, "n", level=0.5, axes={"ylim": (0.0, 1.0)}),
        Settings(1),
    ),
)


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

# Shapes of the gamma distribution, visits, and how long changes have been going on before the first visit.
SHAPES = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 3.0, 4.0)
_GAMMA_VISITS = 50
_SETTLED = 20


def _gamma_changes(settings: Settings, shape: float, rng: np.random.Generator, repetition: int) -> Numbers:
    """Let pages change once a second with gamma distributed intervals, and visit them every second."""
    end = _SETTLED + _GAMMA_VISITS
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
# Pages with mostly seen changes: less often than once in three days, and three times at least.
_LEAST_CHANGES, _MOST_OFTEN = 3, 1 / 3
# The paper does not say how often its pages change. With rates even up to once in two days, most of these pages change
# every few days. With rates even on the logarithm, ours would be closer for 65 %, and half as far off all the same.
_FASTEST = 1 / 2
OFF, CLOSER, _SHARE = "mean distance of the ratio from 1", "share of pages for which ours is closer", "share of pages"
_RATIO_STEP, _RATIO_MOST = 0.1, 2.5


def _monitored(settings: Settings) -> BoolArray:
    """Read which pages of a history changed on which of its last 127 days, for the pages that section 6.3 selects."""
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
    else:  # drawn with replacement: how much depends on the choice of pages
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
    # The paper's pages were looked at once a day: changes of a day show at its end.
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
    # A visit in the middle of a day finds the state at the end of the day before. The counts of those days tell what is
    # new.
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
    Figure(
        "frequency-of-change-15",
        _CHO,
        "bias where change intervals have a gamma distribution",
        Settings(REPETITIONS, (500,)),
        repeated(("α", "estimator"), _gamma_changes, SHAPES),
        drawn(Panel({BIAS: "o-"}, "α", ("estimator",), level=1.0, axes={"xlabel": "α, shape of the change intervals"})),
        {"changes": "one a second on average", "visits": f"{_GAMMA_VISITS}, one a second"},
    ),
    Figure(
        "frequency-of-change-18",
        _CHO,
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
        _CHO,
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
