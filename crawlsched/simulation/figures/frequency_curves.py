"""Figures 3 to 7, 11 to 14, 16, 17, 19 of "Estimating frequency of change": bias and variation of its estimators.

X/n and its improvement see only that a page changed between two visits; X/T and its correction see when it did last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import comb
from typing import Any, NamedTuple

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.estimators import BiasReduced, LastModified, Naive
from crawlsched.estimators.visit_frequency import (
    best_frequency_ratio,
    bias_reduced_moments,
    bias_reducing_addend,
    naive_moments,
)
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Claim, Claims, Figure, Run, Settings, repeated
from crawlsched.simulation.figures.table import Label, Numbers, Row, Table

__all__ = ["BIAS", "CHO", "FIGURES", "REPETITIONS", "SIMULATED", "VARIATION", "last_modified_moments"]

CHO = "Cho, Garcia-Molina (2003)"
BIAS = "E[r̂]/r"
VARIATION = "σ/r"
#: What is simulated is a quantity of its own beside the exact one.
SIMULATED = "simulated "
#: Batches of so many pages, each simulated anew.
REPETITIONS, PAGES = 20, 500
# With fewer visits the deviation of estimates from dates is infinite, or its estimate has no standard error.
_FEW_VISITS = 10


def last_modified_moments(ratio: float, n: int, corrected: bool = True) -> tuple[float, float]:
    """Return mean and standard deviation of the estimates from dates of last changes after n regular visits.

    Parameters
    ----------
    ratio : float
        Changes between two visits.
    n : int
        Visits, at least 2 for the mean and 3 for the deviation (which is infinite with 2).
    corrected : bool
        X'/T (Figure 13) rather than X/T (Figure 10).

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


_UNIFORM, _REDUCED, _FIRST, _CORRECTED = "X/n", "-log((X̄ + 0.5)/(n + 0.5))", "X/T", "X'/T"
_KINDS = {
    _UNIFORM: _Kind(Naive, lambda bank: bank.change_rate(), naive_moments),
    _REDUCED: _Kind(BiasReduced, lambda bank: bank.change_rate(), bias_reduced_moments),
    _FIRST: _Kind(
        LastModified,
        lambda bank: bank.uncorrected_change_rate(),
        lambda ratio, n: last_modified_moments(ratio, n, corrected=False),
        is_dated=True,
    ),
    _CORRECTED: _Kind(LastModified, lambda bank: bank.change_rate(), last_modified_moments, is_dated=True),
}
#: An estimator and a number of visits; what is computed along it, or simulated at some points.
Curve = tuple[str, int]


def _moment(quantity: str, name: str, ratio: float, n: int) -> float:
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
                yield _exact(BIAS, (name, n, ratio), _moment(BIAS, name, ratio, n))
                if n > 2 or not _KINDS[name].is_dated:
                    yield _exact(VARIATION, (name, n, ratio), _moment(VARIATION, name, ratio, n))

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


# -- what the paper says


def _agreement(table: Table, quantity: str) -> Claim:
    """Return the claim that simulated numbers are the exact ones, within four standard errors."""
    words = f"simulation agrees with the formula for {quantity}"
    off = []
    for row in table.some(SIMULATED + quantity):
        name, n, ratio = row.labels
        apart = abs(row.mean - _moment(quantity, str(name), float(ratio), int(n)))
        off.append(apart / row.standard_error if row.standard_error > 0 else np.nan)
    if not off or np.isnan(off).any():
        return Claim(None, f"{words}: two repetitions at least are needed")
    return Claim(max(off) < 4.0, f"{words}: at most {max(off):.1f} standard errors off at {len(off)} points")


def _claims_3(table: Table) -> Claims:
    below = max(float(table.label(row, "r")) for row in table.some(BIAS) if row.mean > 0.9)
    at_two = 1 - _moment(BIAS, _UNIFORM, 2.0, 1)
    yield Claim(abs(below - 0.21) < 0.005, f"the bias is below 10 % for r < 0.21: it is for r < {below:.3f}")
    yield Claim(abs(at_two - 0.57) < 0.005, f"at r = 2 the bias is 57 % (Example 3): it is {at_two:.1%}")
    yield _agreement(table, BIAS)


def _claims_4(table: Table) -> Claims:
    one, nine = (_moment(VARIATION, _UNIFORM, ratio, n) for ratio, n in ((1.0, 1), (0.3, 9)))
    words = f"σ/r = 0.5 takes one visit at r = 1 and nine at r = 0.3: it is {one:.3f} and {nine:.3f} there"
    yield Claim(max(abs(one - 0.5), abs(nine - 0.5)) < 0.02, words)
    interval = 2 * _moment(VARIATION, _UNIFORM, 1 / 7, 10)
    words = f"at r = 1/7 with 10 visits 2σ/r is 1.5 (Example 3): it is {interval:.3f}"
    yield Claim(abs(interval - 1.5) < 0.05, words)
    yield _agreement(table, VARIATION)


def _claims_5(table: Table) -> Claims:
    ratios = np.linspace(0.01, 1, 100)
    worst = max(float(np.abs(bias_reduced_moments(ratios, n)[0] / ratios - 1).max()) for n in (3, 10, 50))
    yield Claim(worst < 0.05, f"practically unbiased for r < 1 with any n ≥ 3: at most {worst:.1%} off")
    off = _moment(BIAS, _REDUCED, 3.0, 50) - 1
    yield Claim(abs(off) < 0.05, f"with n = 50 not heavily biased until r > 3: {off:+.1%} at r = 3")
    yield _agreement(table, BIAS)


def _claims_7(table: Table) -> Claims:
    ten, forty = (_moment(VARIATION, _REDUCED, 1.5, n) for n in (10, 40))
    words = f"at r = 1.5 σ/r is 0.4 with n = 10 and 0.2 with n = 40: it is {ten:.3f} and {forty:.3f}"
    yield Claim(abs(ten - 0.4) < 0.01 and abs(forty - 0.2) < 0.01, words)
    best = {n: best_frequency_ratio(n) for n in (20, 40, 80)}
    yield Claim(abs(best[20] - 1.35) < 0.01, f"with n = 20 it is least at r = 1.35: at {best[20]:.2f}")
    words = f"and for other n at about 1.5: at {best[40]:.2f} with n = 40 and {best[80]:.2f} with n = 80"
    yield Claim(all(abs(best[n] - 1.5) < 0.1 for n in (40, 80)), words)
    yield _agreement(table, VARIATION)


def _claims_11(table: Table) -> Claims:
    great = _moment(BIAS, _FIRST, 5.0, 2)
    yield Claim(great > 1.8, f"with n = 2 the estimate is about twice the truth for r > 5: {great:.3f} times at r = 5")
    limits = {n: (_moment(BIAS, _FIRST, 200.0, n), _moment(BIAS, _FIRST, 1e-4, n)) for n in (2, 5, 10)}
    yield Claim(
        all(
            abs(high / (n / (n - 1)) - 1) < 0.01 and abs(low / (n * np.log(n / (n - 1))) - 1) < 0.01
            for n, (high, low) in limits.items()
        ),
        "the limits are n/(n - 1) for great r and n log(n/(n - 1)) for small r (Theorem D.2): "
        + "; ".join(f"n = {n}: {high:.3f} and {low:.3f}" for n, (high, low) in limits.items()),
    )
    yield _agreement(table, BIAS)


def _claims_12(table: Table) -> Claims:
    worst = max(table.some(BIAS, n=2), key=lambda row: abs(row.mean - 1))
    words = f"with n = 2 the bias is below 2 % for any r: at most {worst.mean - 1:+.2%}, at r = {worst.labels[2]:.2g}"
    yield Claim(abs(worst.mean - 1) < 0.02, words)
    example, without = (_moment(BIAS, name, 4.0, 5) - 1 for name in (_CORRECTED, _REDUCED))
    yield Claim(
        abs(example) < 0.001 and abs(without + 0.43) < 0.01,
        f"for a weekly page visited monthly five times it is below 0.1 %, and 43 % without the dates (Example 6): "
        f"{example:+.3%} and {without:+.1%}",
    )
    yield _agreement(table, BIAS)


def _claims_14(table: Table) -> Claims:
    visits = (5, 10, 20, 40)
    by_n = [[table.one(VARIATION, n=n, r=r).mean for n in visits] for r in _DATED_RATIOS]
    at_one = [_moment(VARIATION, _CORRECTED, 1.0, n) for n in visits]
    yield Claim(
        all(column == sorted(column, reverse=True) for column in by_n),
        f"the variation gets smaller as n increases, at every r: at r = 1 it is "
        f"{', '.join(f'{value:.3f}' for value in at_one)} for n = {', '.join(map(str, visits))}",
    )
    yield _agreement(table, BIAS)
    yield _agreement(table, VARIATION)


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


def _claims_6(table: Table) -> Claims:
    found = {n: table.one("unbiased up to r", n=n).mean for n in (20, 80)}
    # 3.5 is read off a graph: what rounds to it is meant.
    words = f"with n = 20 the bias is below 10 % for r < 3.5, to one digit: it is up to r = {found[20]:.2f} "
    yield Claim(found[20] >= 3.45, words + f"({_moment(BIAS, _REDUCED, 3.499, 20) - 1:.1%} at 3.5)")
    yield Claim(found[80] >= 4.99, f"with n = 80 it is for r < 5: up to r = {found[80]:.2f}")


def _addends(settings: Settings) -> Iterator[Row]:
    visits = np.arange(1, 51)
    return (_exact("a", (int(n),), a) for n, a in zip(visits, bias_reducing_addend(visits), strict=True))


def _claims_19(table: Table) -> Claims:
    """The constant that reduces the bias is near 0.5 for all n."""
    values = [row.mean for row in table.rows]
    words = f"a converges to 0.5 as n increases: {values[-1]:.4f} at n = {len(values)}"
    yield Claim(abs(values[-1] - 0.5) < 0.01, words)
    yield Claim(max(values) < 0.6, f"a is close to 0.5 even when n is small: {values[0]:.3f} at n = 1")


def _computed(rows: Callable[[Settings], Iterator[Row]]) -> Run:
    return repeated(("n",), lambda *_: {}, [None], rows)


# -- figures 16 and 17: with and without the dates of last changes

_E, _T = "r̂_e", "r̂_t"
_COMPARED = tuple(float(r) for r in (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 7, 10))
#: Visits at each r that leave the estimate without dates less than 5 % of bias; 160 and 500 are the paper's.
_ENOUGH = {0.1: 50, 0.2: 50, 0.5: 50, 1.0: 50, 2.0: 50, 3.0: 50, 4.0: 80, 5.0: 160, 6.0: 500}


def _compare(settings: Settings, case: tuple[float, int], rng: np.random.Generator, repetition: int) -> Numbers:
    ratio, n = case
    banks = {_E: BiasReduced(settings.n_pages), _T: LastModified(settings.n_pages)}
    _visited(list(banks.values()), rng, ratio, n)
    numbers: Numbers = {}
    for name, bank in banks.items():
        values = np.asarray(bank.change_rate()) / ratio
        numbers[BIAS, name, n, ratio] = float(values.mean())
        numbers[VARIATION, name, n, ratio] = float(values.std(ddof=1)) if settings.n_pages > 1 else 0.0
    return numbers


def _pairs(table: Table, quantity: str) -> dict[float, list[Row]]:
    ratios = [float(value) for value in table.values("r")]
    return {r: [table.one(quantity, estimator=name, r=r) for name in (_E, _T)] for r in ratios}


def _claims_16(table: Table) -> Claims:
    bias = {r: [row.mean for row in pair] for r, pair in _pairs(table, BIAS).items()}
    less = {r: e.mean - t.mean for r, (e, t) in _pairs(table, VARIATION).items()}
    worst = max((t - 1 for _, t in bias.values()), key=abs)
    yield Claim(abs(worst) < 0.01, f"{_T} shows no bias: at most {worst:+.2%}")
    useless = {r: e for r, (e, _) in bias.items() if r > 5}
    words = f"{_E} is biased for r > 5: {', '.join(f'{value:.2f} at {r:g}' for r, value in useless.items())}"
    yield Claim(all(value < 0.9 for value in useless.values()), words)
    below, above = ([value for r, value in less.items() if (r < 5 if low else r > 7)] for low in (True, False))
    words = f"{_T} varies as much or less for r < 5: by {min(below):+.3f} to {max(below):+.3f}"
    yield Claim(min(below) > -0.01, words)
    words = f"{_E} varies less for r > 7, around what is wrong: by {max(above):+.3f} at r = {max(less):g}"
    yield Claim(max(above) < 0, words)


def _claims_17(table: Table) -> Claims:
    worst = max(abs(row.mean - 1) for pair in _pairs(table, BIAS).values() for row in pair)
    yield Claim(worst < 0.05, f"both are less than 5 % biased with n = 160 at r = 5 and 500 at 6: at most {worst:.1%}")
    pairs = _pairs(table, VARIATION)
    less = {r: [_moment(VARIATION, name, r, _ENOUGH[r]) for name in (_CORRECTED, _REDUCED)] for r in pairs}
    within = all(t.mean < e.mean + 2 * np.nan_to_num(e.standard_error) for e, t in pairs.values())
    yield Claim(
        within and all(t < e for t, e in less.values()),
        f"{_T} varies less than {_E} at every r, by simulation within two standard errors, and by the formulas: "
        + ", ".join(f"{t:.5f} and {e:.5f} at {r:g}" for r, (t, e) in less.items()),
    )


# -- the figures

_RATIOS = np.geomspace(0.01, 10.0, 301).tolist()
_DATED_RATIOS = np.geomspace(0.02, 20.0, 61).tolist()
_SOME = (0.1, 0.5, 2.0, 5.0)
_NAIVE = [(_UNIFORM, 10)]
_VISITS = [(_UNIFORM, n) for n in (1, 2, 3, 5, 9, 15, 20, 30, 40)]
_BOTH = [(_UNIFORM, 10), *((_REDUCED, n) for n in (3, 10, 50))]
_WIDE = [(_REDUCED, n) for n in (10, 20, 40, 80)]
_LOGARITHMIC = {"xscale": "log", "ylim": (0.0, 2.2)}


def _figure(
    number: int,
    title: str,
    run: Run,
    claimed: Callable[[Table], Claims],
    panel: Panel,
    settings: Settings,
    fixed: Mapping[str, str] | None = None,
) -> Figure:
    name = f"frequency-of-change-{number}"
    return Figure(name, CHO, title, settings, run, claimed, drawn(panel), fixed or {})


def _panel(quantity: str, x: str = "r", lines: tuple[str, ...] = ("estimator", "n"), **axes: Any) -> Panel:
    level = 1.0 if quantity == BIAS else None
    return Panel({quantity: "-", SIMULATED + quantity: "k."}, x, lines, level=level, axes={**_LOGARITHMIC, **axes})


def _dated(number: int, title: str, name: str, visits: Sequence[int], quantity: str, claimed: Any) -> Figure:
    """Return a figure of estimates from dates; simulated are those of more than two visits, with few at most three."""
    curves = [(name, n) for n in visits]
    checked = _points([(name, n) for n in visits if n >= (3 if visits[0] < 5 else 10)], (0.1, 1.0, 5.0))
    words = {"n": ", ".join(map(str, visits))}
    run, settings = _curves(curves, _DATED_RATIOS, checked), Settings(REPETITIONS, (2000,))
    return _figure(number, title, run, claimed, _panel(quantity), settings, words)


_SIMULATION, _COMPARISON = Settings(REPETITIONS, (PAGES,)), Settings(REPETITIONS, (500,))
_PAIR_PANEL = Panel(
    {BIAS: "o-", VARIATION: "o:"}, "r", ("estimator",), axes={"xscale": "log", "ylabel": "E[r̂]/r and σ/r"}
)

FIGURES = (
    _figure(
        3,
        "bias of the intuitive estimator X/n",
        _curves(_NAIVE, _RATIOS, _points(_NAIVE, _SOME)),
        _claims_3,
        _panel(BIAS),
        _SIMULATION,
        {"n": "10 (the bias does not depend on it)"},
    ),
    _figure(
        4,
        "variation of X/n by the number of visits",
        _curves(_VISITS, [0.1, 0.3, 1.0, 2.0], _points([(_UNIFORM, n) for n in (1, 9, 30)], (0.3, 1.0))),
        _claims_4,
        _panel(VARIATION, "n", ("r",), xscale="linear"),
        _SIMULATION,
        {"r": "0.1, 0.3, 1, 2"},
    ),
    _figure(
        5,
        "bias of the improved estimator",
        _curves(_BOTH, _RATIOS, _points(_BOTH[1:], _SOME)),
        _claims_5,
        _panel(BIAS),
        _SIMULATION,
        {"n": "3, 10, 50"},
    ),
    _figure(
        6,
        "where the improved estimator is less than 10 % biased",
        _computed(_region),
        _claims_6,
        Panel({"unbiased from r": "-", "unbiased up to r": "-"}, "n", axes={"ylabel": "r", "title": "bias below 10 %"}),
        Settings(1),
    ),
    _figure(
        7,
        "variation of the improved estimator",
        _curves(_WIDE, np.geomspace(0.1, 10.0, 201).tolist(), _points(_WIDE[:3], (0.5, 1.5, 3.0))),
        _claims_7,
        _panel(VARIATION),
        _SIMULATION,
        {"n": "10, 20, 40, 80"},
    ),
    _dated(11, "bias of X/T", _FIRST, (2, 3, 5, 10), BIAS, _claims_11),
    _dated(12, "bias of X'/T", _CORRECTED, (2, 3, 10), BIAS, _claims_12),
    _dated(14, "variation of X'/T", _CORRECTED, (5, 10, 20, 40), VARIATION, _claims_14),
    _figure(
        16,
        "with and without the dates of last changes, n = 50",
        repeated(("estimator", "n", "r"), _compare, [(ratio, 50) for ratio in _COMPARED]),
        _claims_16,
        _PAIR_PANEL,
        _COMPARISON,
        {"n": "50"},
    ),
    _figure(
        17,
        "with and without the dates of last changes, n large enough",
        repeated(("estimator", "n", "r"), _compare, list(_ENOUGH.items())),
        _claims_17,
        _PAIR_PANEL,
        _COMPARISON,
        {"n": ", ".join(f"{n} at r = {r:g}" for r, n in _ENOUGH.items())},
    ),
    _figure(
        19,
        "the constant that reduces the bias",
        _computed(_addends),
        _claims_19,
        Panel({"a": "o-"}, "n", level=0.5, axes={"ylim": (0.0, 1.0)}),
        Settings(1),
    ),
)
