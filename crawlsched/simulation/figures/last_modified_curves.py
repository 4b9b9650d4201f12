"""Figures 11, 12, 14, 16 and 17 of "Estimating frequency of change": what the dates of last changes are worth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.estimators import BiasReduced, LastModified
from crawlsched.estimators.visit_frequency import bias_reduced_moments
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.frequency_curves import (
    BIAS,
    CHO,
    REPETITIONS,
    SIMULATED,
    VARIATION,
    agreement,
    curves,
    exact,
    visit,
)
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Row, Table

__all__ = ["FIGURES", "last_modified_moments"]

_FIRST, _CORRECTED = "X/T", "X'/T"
_E, _T = "r̂_e", "r̂_t"


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


@dataclass(frozen=True)
class _Exact:
    """Exact curves, and what was simulated on them."""

    estimator: str
    visits: Sequence[int]
    ratios: Sequence[float]
    checked: Sequence[tuple[int, float]]

    def run(self, settings: Settings, progress: Progress) -> Table:
        n_pages = settings.n_pages

        def measure(case: tuple[int, float], rng: np.random.Generator, repetition: int) -> Any:
            n, ratio = case
            bank = LastModified(n_pages)
            visit([bank], rng, ratio, n)
            found = bank.change_rate() if self.estimator == _CORRECTED else bank.uncorrected_change_rate()
            values = np.asarray(found) / ratio
            numbers = {(SIMULATED + BIAS, n, ratio): float(values.mean())}
            # With two visits the deviation is infinite, and with few more its estimate has no standard error.
            if n >= 10 and n_pages > 1:
                numbers[SIMULATED + VARIATION, n, ratio] = float(values.std(ddof=1))
            return numbers

        table = repeat(settings, ("n", "r"), self.checked, measure, progress)
        rows: list[Row] = []
        for n in self.visits:
            for ratio in self.ratios:
                mean, deviation = last_modified_moments(ratio, n, self.estimator == _CORRECTED)
                rows.append(exact(BIAS, (n, ratio), mean / ratio))
                if n > 2:
                    rows.append(exact(VARIATION, (n, ratio), deviation / ratio))
        return Table(table.labels, (*rows, *table.rows))

    def truth(self, moment: int) -> Callable[[Row], float]:
        """Return what is exact in place of a simulated row."""

        def of(row: Row) -> float:
            n, ratio = int(row.labels[0]), float(row.labels[1])
            return last_modified_moments(ratio, n, self.estimator == _CORRECTED)[moment] / ratio

        return of


_RATIOS = np.geomspace(0.02, 20.0, 61).tolist()
_CHECKED = (0.1, 1.0, 5.0)
_FIGURE_11 = _Exact(_FIRST, (2, 3, 5, 10), _RATIOS, [(n, r) for n in (3, 5, 10) for r in _CHECKED])
_FIGURE_12 = _Exact(_CORRECTED, (2, 3, 10), _RATIOS, [(n, r) for n in (3, 10) for r in _CHECKED])
_FIGURE_14 = _Exact(_CORRECTED, (5, 10, 20, 40), _RATIOS, [(n, r) for n in (10, 20, 40) for r in _CHECKED])


def _claims_11(table: Table) -> list[Claim]:
    great = last_modified_moments(5.0, 2, corrected=False)[0] / 5
    limits = [
        (n, last_modified_moments(200.0, n, False)[0] / 200, n / (n - 1),
         last_modified_moments(1e-4, n, False)[0] / 1e-4, n * np.log(n / (n - 1)))
        for n in (2, 5, 10)
    ]  # fmt: skip
    return [
        Claim(great > 1.8, f"with n = 2 the estimate is about twice the truth for r > 5: {great:.3f} times at r = 5"),
        Claim(
            all(abs(high / top - 1) < 0.01 and abs(low / bottom - 1) < 0.01 for _, high, top, low, bottom in limits),
            "the limits are n/(n - 1) for great r and n log(n/(n - 1)) for small r (Theorem D.2): "
            + "; ".join(f"n = {n}: {high:.3f} and {low:.3f}" for n, high, _, low, _ in limits),
        ),
        agreement(table, BIAS, _FIGURE_11.truth(0)),
    ]


def _claims_12(table: Table) -> list[Claim]:
    worst = max(table.some(BIAS, n=2), key=lambda row: abs(row.mean - 1))
    example = last_modified_moments(4.0, 5)[0] / 4 - 1
    without = float(bias_reduced_moments(4.0, 5)[0]) / 4 - 1
    return [
        Claim(
            abs(worst.mean - 1) < 0.02,
            f"with n = 2 the bias is below 2 % for any r: at most {worst.mean - 1:+.2%}, at r = {worst.labels[1]:.2g}",
        ),
        Claim(
            abs(example) < 0.001 and abs(without + 0.43) < 0.01,
            f"for a weekly page visited monthly five times it is below 0.1 %, and 43 % without the dates (Example 6): "
            f"{example:+.3%} and {without:+.1%}",
        ),
        agreement(table, BIAS, _FIGURE_12.truth(0)),
    ]


def _claims_14(table: Table) -> list[Claim]:
    by_n = [[table.one(VARIATION, n=n, r=r).mean for n in _FIGURE_14.visits] for r in _RATIOS]
    at_one = [last_modified_moments(1.0, n)[1] for n in _FIGURE_14.visits]
    return [
        Claim(
            all(column == sorted(column, reverse=True) for column in by_n),
            f"the variation gets smaller as n increases, at every r: at r = 1 it is "
            f"{', '.join(f'{value:.3f}' for value in at_one)} for n = {', '.join(map(str, _FIGURE_14.visits))}",
        ),
        agreement(table, BIAS, _FIGURE_14.truth(0)),
        agreement(table, VARIATION, _FIGURE_14.truth(1)),
    ]


def _draw(quantity: str, bottom: float, top: float) -> Callable[[Table, Any], None]:
    def draw(table: Table, canvas: Any) -> None:
        canvas.set_size_inches(7, 5)
        axes = canvas.add_subplot()
        if quantity == BIAS:
            axes.axhline(1.0, color="black", linestyle=":")
        curves(axes, table, quantity, "r", ("n",))
        axes.set_xscale("log")
        axes.set_ylim(bottom, top)
        axes.legend()

    return draw


# -- with and without the dates: Figures 16 and 17

_COMPARED = tuple(float(r) for r in (0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 6, 7, 10))
#: Visits at each r that leave the estimate without dates less than 5 % of bias; 160 and 500 are the paper's.
_ENOUGH = {0.1: 50, 0.2: 50, 0.5: 50, 1.0: 50, 2.0: 50, 3.0: 50, 4.0: 80, 5.0: 160, 6.0: 500}


def _compare(visits: dict[float, int]) -> Callable[[Settings, Progress], Table]:
    def run(settings: Settings, progress: Progress) -> Table:
        n_pages = settings.n_pages

        def measure(case: tuple[float, int], rng: np.random.Generator, repetition: int) -> Any:
            ratio, n = case
            banks = {_E: BiasReduced(n_pages), _T: LastModified(n_pages)}
            visit(list(banks.values()), rng, ratio, n)
            numbers = {}
            for name, bank in banks.items():
                values = np.asarray(bank.change_rate()) / ratio
                numbers[BIAS, name, n, ratio] = float(values.mean())
                numbers[VARIATION, name, n, ratio] = float(values.std(ddof=1)) if n_pages > 1 else 0.0
            return numbers

        return repeat(settings, ("estimator", "n", "r"), list(visits.items()), measure, progress)

    return run


def _pairs(table: Table, quantity: str) -> dict[float, tuple[Row, Row]]:
    ratios = [float(value) for value in table.values("r")]
    return {r: tuple(table.one(quantity, estimator=name, r=r) for name in (_E, _T)) for r in ratios}  # type: ignore[misc]


def _claims_16(table: Table) -> list[Claim]:
    bias, variation = _pairs(table, BIAS), _pairs(table, VARIATION)
    worst = max(bias, key=lambda r: abs(bias[r][1].mean - 1))
    useless = {r: bias[r][0].mean for r in bias if r > 5}
    below = {r: e.mean - t.mean for r, (e, t) in variation.items() if r < 5}
    above = {r: e.mean - t.mean for r, (e, t) in variation.items() if r > 7}
    return [
        Claim(abs(bias[worst][1].mean - 1) < 0.01, f"{_T} shows no bias: at most {bias[worst][1].mean - 1:+.2%}"),
        Claim(
            all(value < 0.9 for value in useless.values()),
            f"{_E} is biased for r > 5: {', '.join(f'{value:.2f} at {r:g}' for r, value in useless.items())}",
        ),
        Claim(
            min(below.values()) > -0.01,
            f"{_T} varies as much or less for r < 5: by {min(below.values()):+.3f} to {max(below.values()):+.3f}",
        ),
        Claim(
            max(above.values()) < 0,
            f"{_E} varies less for r > 7, around what is wrong: by {max(above.values()):+.3f} at r = {max(above):g}",
        ),
    ]


def _claims_17(table: Table) -> list[Claim]:
    bias, variation = _pairs(table, BIAS), _pairs(table, VARIATION)
    worst = max(abs(row.mean - 1) for pair in bias.values() for row in pair)
    less = {
        r: (last_modified_moments(r, int(e.labels[1]))[1] / r, float(bias_reduced_moments(r, int(e.labels[1]))[1]) / r)
        for r, (e, _) in variation.items()
    }
    within = all(t.mean < e.mean + 2 * np.nan_to_num(e.standard_error) for e, t in variation.values())
    return [
        Claim(worst < 0.05, f"both are less than 5 % biased with n = 160 at r = 5 and 500 at 6: at most {worst:.1%}"),
        Claim(
            within and all(t < e for t, e in less.values()),
            f"{_T} varies less than {_E} at every r, by simulation within two standard errors, and by the formulas: "
            + ", ".join(f"{t:.5f} and {e:.5f} at {r:g}" for r, (t, e) in less.items()),
        ),
    ]


def _draw_pairs(table: Table, canvas: Any) -> None:
    """Draw means as solid lines, variations as dotted ones."""
    canvas.set_size_inches(7, 5)
    axes = canvas.add_subplot()
    for color, name in (("C0", _E), ("C1", _T)):
        for quantity, style in ((BIAS, "-o"), (VARIATION, ":o")):
            rows = table.some(quantity, estimator=name)
            axes.errorbar(
                [float(table.label(row, "r")) for row in rows],
                [row.mean for row in rows],
                [np.nan_to_num(row.standard_error) for row in rows],
                fmt=style,
                color=color,
                markersize=3,
                label=f"{quantity} of {name}",
            )
    axes.set(xlabel="r", xscale="log", ylabel=f"{BIAS} and {VARIATION}")
    axes.set_ylim(0, 1.6)
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


_SIMULATION = Settings(REPETITIONS, (2000,))
_COMPARISON = Settings(REPETITIONS, (500,))


def _figure(number: int, title: str, run: Any, claims: Any, draw: Any, settings: Settings, n: str) -> Figure:
    name, paper = f"frequency-of-change-{number}", f"{CHO}, Figure {number}"
    return Figure(name, paper, title, settings, run, claims, draw, {"n": n})


FIGURES = (
    _figure(11, "bias of X/T", _FIGURE_11.run, _claims_11, _draw(BIAS, 0.8, 2.2), _SIMULATION, "2, 3, 5, 10"),
    _figure(12, "bias of X'/T", _FIGURE_12.run, _claims_12, _draw(BIAS, 0.0, 2.2), _SIMULATION, "2, 3, 10"),
    _figure(
        14, "variation of X'/T", _FIGURE_14.run, _claims_14, _draw(VARIATION, 0.0, 1.5), _SIMULATION, "5, 10, 20, 40"
    ),
    _figure(
        16,
        "with and without the dates of last changes, n = 50",
        _compare(dict.fromkeys(_COMPARED, 50)),
        _claims_16,
        _draw_pairs,
        _COMPARISON,
        "50",
    ),
    _figure(
        17,
        "with and without the dates of last changes, n large enough",
        _compare(_ENOUGH),
        _claims_17,
        _draw_pairs,
        _COMPARISON,
        ", ".join(f"{n} at r = {r:g}" for r, n in _ENOUGH.items()),
    ),
)
