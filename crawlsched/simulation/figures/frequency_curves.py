"""Figures 3 to 7, 11 to 14, 16, 17, 19 of "Estimating frequency of change": bias and variation of its estimators.

X/n and its improvement know only whether a page changed between two visits; X/T and its correction know when it
changed last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import comb
from typing import Any, NamedTuple

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.estimators import BiasReduced, LastModified, Naive
from crawlsched.estimators.visit_frequency import bias_reduced_moments, bias_reducing_addend, naive_moments
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, Run, Settings, repeated
from crawlsched.simulation.figures.table import Label, Numbers, Row

__all__ = ["BIAS", "CHO", "FIGURES", "REPETITIONS", "SIMULATED", "VARIATION", "last_modified_moments"]

CHO = "Cho, Garcia-Molina (2003)"
BIAS = "E[r̂]/r"
VARIATION = "σ/r"
#: What is simulated is a quantity of its own beside the exact one.
SIMULATED = "simulated "
#: Pages in a batch; each batch is simulated anew.
REPETITIONS, PAGES = 20, 500
# With fewer visits the deviation of estimates from dates is infinite, or its estimate has no standard error.
_FEW_VISITS = 10


def last_modified_moments(ratio: float, n: int, corrected: bool = True) -> tuple[float, float]:
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

    >>> [round(last_modified_moments(r, 2, corrected=False)[0] / r, 3) for r in (1e-4, 50.0)]
    [1.386, 2.0]
    >>> round(last_modified_moments(1.0, 2)[0], 2)
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


class _Kind(NamedTuple):
    """An estimator: a bank of it, what is read there, and its moments for a ratio r and n visits."""

    bank: Callable[[int], Any]
    read: Callable[[Any], FloatArray]
    moments: Callable[[float, int], tuple[Any, Any]]
    is_dated: bool = False


UNIFORM, REDUCED, FIRST, CORRECTED = "X/n", "-log((X̄ + 0.5)/(n + 0.5))", "X/T", "X'/T"
_KINDS = {
    UNIFORM: _Kind(Naive, lambda bank: bank.change_rate(), naive_moments),
    REDUCED: _Kind(BiasReduced, lambda bank: bank.change_rate(), bias_reduced_moments),
    FIRST: _Kind(
        LastModified,
        lambda bank: bank.uncorrected_change_rate(),
        lambda ratio, n: last_modified_moments(ratio, n, corrected=False),
        is_dated=True,
    ),
    CORRECTED: _Kind(LastModified, lambda bank: bank.change_rate(), last_modified_moments, is_dated=True),
}
#: An estimator and a number of visits; what is computed along it, or simulated at some points.
Curve = tuple[str, int]


def moment(quantity: str, name: str, ratio: float, n: int) -> float:
    """Return a bias or a variation, by its formula."""
    return float(_KINDS[name].moments(ratio, n)[quantity == VARIATION]) / ratio


def _exact(quantity: str, place: tuple[Label, ...], value: float) -> Row:
    """Return a number that is computed and not simulated, with nothing left to chance."""
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
                if n > 2 or not _KINDS[name].is_dated:
                    yield _exact(VARIATION, (name, n, ratio), moment(VARIATION, name, ratio, n))

    def measure(settings: Settings, case: tuple[str, int, float], rng: np.random.Generator, repetition: int) -> Numbers:
        name, n, ratio = case
        kind = _KINDS[name]
        bank = kind.bank(settings.n_pages)
        _visited([bank], rng, ratio, n)
        values = np.asarray(kind.read(bank)) / ratio
        numbers: Numbers = {(SIMULATED + BIAS, name, n, ratio): float(values.mean())}
        if settings.n_pages > 1 and (n >= _FEW_VISITS or not kind.is_dated):
            numbers[SIMULATED + VARIATION, name, n, ratio] = float(values.std(ddof=1))
        return numbers

    return repeated(("estimator", "n", "r"), measure, checked, exact)


def _points(curves: Sequence[Curve], ratios: Sequence[float]) -> list[tuple[str, int, float]]:
    return [(name, n, ratio) for name, n in curves for ratio in ratios]


# -- the paper's curves


# -- figure 6: where the improved estimator is less than 10 % biased; figure 19: the constant in it


def _region(settings: Settings) -> Iterator[Row]:
    """Find for each n up to which r the bias is below 10 %."""
    ratios = np.arange(0.01, 10.0, 0.01)
    for n in [*range(1, 21), *range(25, 101, 5)]:
        biased = np.abs(bias_reduced_moments(ratios, n)[0] / ratios - 1) > 0.1
        # From the first r on which the bias is as small as that, up to the next one where it is not.
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
    return Figure(name, CHO, title, settings, run, drawn(panel), fixed or {})


def _panel(quantity: str, x: str = "r", lines: tuple[str, ...] = ("estimator", "n"), **axes: Any) -> Panel:
    level = 1.0 if quantity == BIAS else None
    return Panel({quantity: "-", SIMULATED + quantity: "k."}, x, lines, level=level, axes={**_LOGARITHMIC, **axes})


def _dated(number: int, title: str, name: str, visits: Sequence[int], quantity: str) -> Figure:
    """Return a figure of estimates from dates; simulated are those of more than two visits, with few at most three."""
    curves = [(name, n) for n in visits]
    checked = _points([(name, n) for n in visits if n >= (3 if visits[0] < 5 else 10)], (0.1, 1.0, 5.0))
    words = {"n": ", ".join(map(str, visits))}
    run, settings = _curves(curves, DATED_RATIOS, checked), Settings(REPETITIONS, (2000,))
    return _figure(number, title, run, _panel(quantity), settings, words)


_SIMULATION, _COMPARISON = Settings(REPETITIONS, (PAGES,)), Settings(REPETITIONS, (500,))
_PAIR_PANEL = Panel(
    {BIAS: "o-", VARIATION: "o:"}, "r", ("estimator",), axes={"xscale": "log", "ylabel": "E[r̂]/r and σ/r"}
)

FIGURES = (
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
