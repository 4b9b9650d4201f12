"""Figure 6 of the online estimators' journal paper, and 2 of the conference paper: crawl rates by estimated changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crawlsched.bandwidth import poisson_crawl_rates
from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.figures.estimating import Visits, estimator, follow, marks_up_to
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.online_estimators import CONFERENCE, JOURNAL, said
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Row, Table

__all__ = ["FIGURES", "mean_freshness"]

RATE = "crawl rate"
DISTANCE = "distance from the optimal rate"
IN_ALL = "distance from the optimal rates, share of the bandwidth"
FRESHNESS = "freshness"
OPTIMUM = "optimum"

# Section 5 of the journal paper.
_FAST, _PAGES = 7, 50
_FAST_RATE, _SLOW_RATE = 4.5 / 7, 0.5 / 43
_BANDWIDTH = 5.0
_VISITS_A_ROUND = 50
_ROUNDS = 10
_SHOWN = {"frequently changing page 5": 4, "slowly changing page 10": 9}
# Pages that are as the one shown, whose distances have the same distribution.
_ALIKE = {"frequently changing page 5": slice(0, _FAST), "slowly changing page 10": slice(_FAST, _PAGES)}
_STEPS: dict[str, dict[str, float]] = {
    "LLN": {"alpha": 1.0},
    "SA": {"eta": 0.75},
    "SAM": {"eta": 1.3, "beta": 0.75},
}
# An estimate of 0 would never be visited, and divided by nothing: this is as good as that.
_LEAST_RATE = 1e-9

# Experiment 2 of the conference paper.
_N, _B = 100, 80.0
_ESTIMATORS: dict[str, dict[str, float]] = {"Naive": {}, "LLN": {"alpha": 1.0}, "SA": {"eta": 0.75}}


def _visit(rng: np.random.Generator, change_rate: FloatArray, crawl_rate: FloatArray | float, n: int) -> Visits:
    """Visit each page n times at random."""
    elapsed = rng.exponential(1.0, (change_rate.size, n)) / np.reshape(crawl_rate, (-1, 1))
    changed = rng.random(elapsed.shape) < -np.expm1(-change_rate[:, np.newaxis] * elapsed)
    return Visits(elapsed, changed, np.full(change_rate.size, n))


def best_rates(change_rate: FloatArray, importance: FloatArray | float, bandwidth: float) -> FloatArray:
    """Return the crawl rates of Algorithm 2 of Azar et al. for estimated change rates."""
    return poisson_crawl_rates(np.maximum(change_rate, _LEAST_RATE), importance, bandwidth).rates


def mean_freshness(rates: FloatArray, change_rate: FloatArray, importance: FloatArray | float = 1.0) -> float:
    """Return the freshness that crawls at random give, Σ w p/(p + Δ) by Σ w (equation (10) of the conference paper).

    Examples
    --------
    >>> mean_freshness(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    0.25
    """
    weights = np.broadcast_to(importance, rates.shape)
    fresh = rates / np.maximum(rates + change_rate, 1e-300)
    return float((weights * fresh).sum() / weights.sum())


# -- Figure 6 of the journal paper


def _adapt(settings: Settings, progress: Progress) -> Table:
    """Estimate in rounds of 50 visits to each page, and divide the bandwidth anew after each."""
    rounds = settings.steps
    truth = np.where(np.arange(_PAGES) < _FAST, _FAST_RATE, _SLOW_RATE)
    importance = np.where(np.arange(_PAGES) < _FAST, 2.0, 1.0)
    best = best_rates(truth, importance, _BANDWIDTH)

    def measure(name: str, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
        numbers: dict[tuple[Label, ...], float] = {}
        rates, estimates = np.full(_PAGES, _BANDWIDTH / _PAGES), np.zeros(_PAGES)
        for number in range(rounds + 1):
            for shown, page in _SHOWN.items():
                numbers[RATE, shown, number, name] = rates[page]
                numbers[DISTANCE, shown, number, name] = float(np.abs(rates - best)[_ALIKE[shown]].mean())
            numbers[IN_ALL, "all pages", number, name] = float(np.abs(rates - best).sum() / best.sum())
            numbers[FRESHNESS, "all pages", number, name] = mean_freshness(rates, truth, importance)
            if number < rounds:
                # Pages that are not crawled teach nothing: they keep their estimates.
                crawled = np.flatnonzero(rates > 0)
                visits = _visit(rng, truth[crawled], rates[crawled], _VISITS_A_ROUND)
                bank = estimator(name, crawled.size, rates[crawled], **_STEPS[name])
                estimates[crawled] = follow({name: bank}, visits, [_VISITS_A_ROUND])[name][-1]
                rates = best_rates(estimates, importance, _BANDWIDTH)
        return numbers

    table = repeat(settings, ("page", "round", "estimator"), list(_STEPS), measure, progress)
    exact = [Row(RATE, (shown, number, OPTIMUM), float(best[page]), 0.0, 1) for shown, page in _SHOWN.items()
             for number in range(rounds + 1)]  # fmt: skip
    fresh = mean_freshness(best, truth, importance)
    exact += [Row(FRESHNESS, ("all pages", number, OPTIMUM), fresh, 0.0, 1) for number in range(rounds + 1)]
    return Table(table.labels, (*table.rows, *exact))


def _adaptive_claims(table: Table) -> list[Claim]:
    rounds = sorted({int(table.label(row, "round")) for row in table.rows})
    early = [number for number in rounds if 1 <= number <= 3]
    if not early:
        return [Claim(None, "the first rounds of adaptation are needed")]
    mean = {
        (name, shown): sum(table.one(DISTANCE, page=shown, estimator=name, round=number).mean for number in early)
        / len(early)
        for name in _STEPS
        for shown in _SHOWN
    }
    total = {name: sum(mean[name, shown] for shown in _SHOWN) for name in _STEPS}
    words = {name: f"{name} {' and '.join(f'{mean[name, shown]:.4f}' for shown in _SHOWN)}" for name in _STEPS}
    return [
        Claim(
            total[name] < total["LLN"],
            f"{name} is closer to the two optimal rates shown than LLN, at least initially: distances of pages like "
            f"{' and '.join(_SHOWN)}, mean of rounds {early[0]} to {early[-1]}: {words[name]}; {words['LLN']}",
        )
        for name in ("SA", "SAM")
    ]


def _draw_adaptive(table: Table, canvas: Any) -> None:
    """Draw the rates of a fast and of a slow page, by rounds, side by side so that bars do not hide each other."""
    canvas.set_size_inches(10, 4.5)
    for axes, shown, letter in zip(canvas.subplots(1, 2), _SHOWN, "ab", strict=True):
        for number, name in enumerate(_STEPS):
            # A run is what the claim is about, and not the mean: how far runs spread is what tells them apart.
            _draw_with_errors(axes, table, RATE, f"C{number}", name, of_a_run=True, page=shown)
        axes.axhline(
            table.some(RATE, page=shown, estimator=OPTIMUM)[0].mean, color="black", linestyle=":", label=OPTIMUM
        )
        axes.set(title=f"({letter}) {shown}", xlabel=f"round of {_VISITS_A_ROUND} visits")
        axes.set_ylabel("crawl rate p, ± standard deviation")
        axes.set_ylim(bottom=0)
    canvas.axes[0].legend()


def _draw_with_errors(
    axes: Any, table: Table, quantity: str, color: str, name: str, of_a_run: bool = False, **labels: Label
) -> None:
    rows = table.some(quantity, estimator=name, **labels)
    place = "round" if "round" in table.labels else "visits"
    beside = 0.1 * (int(color[1:]) - 1) if of_a_run else 0.0
    x = [float(table.label(row, place)) + beside for row in rows]
    errors = [np.nan_to_num(row.standard_error) * (row.repetitions**0.5 if of_a_run else 1.0) for row in rows]
    axes.errorbar(x, [row.mean for row in rows], errors, color=color, label=name, capsize=2)
    axes.grid(visible=True, alpha=0.3)


# -- Figure 2 of the conference paper


def _optimize(settings: Settings, progress: Progress) -> Table:
    """Estimate all pages' change rates from visits at equal rates; divide the bandwidth by the estimates at each k."""
    n_pages = settings.n_pages
    bandwidth = _B * n_pages / _N
    marks = marks_up_to(settings.steps)

    def measure(case: int, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
        truth = rng.random(n_pages)
        visits = _visit(rng, truth, _B / _N, marks[-1])
        best = best_rates(truth, 1.0, bandwidth)
        banks = {name: estimator(name, n_pages, _B / _N, **steps) for name, steps in _ESTIMATORS.items()}
        estimates = follow(banks, visits, marks)
        numbers: dict[tuple[Label, ...], float] = {}
        for place, mark in enumerate(marks):
            divided = {name: best_rates(columns[place], 1.0, bandwidth) for name, columns in estimates.items()}
            for name, rates in {**divided, OPTIMUM: best}.items():
                numbers[FRESHNESS, mark, name] = mean_freshness(rates, truth)
                if name != OPTIMUM:
                    numbers[DISTANCE, mark, name] = float(np.abs(rates - best).mean())
                if repetition == 0:
                    numbers[RATE, mark, name] = float(rates[0])
        return numbers

    return repeat(settings, ("visits", "estimator"), [n_pages], measure, progress)


def _optimal_claims(table: Table) -> list[Claim]:
    end = max(float(table.label(row, "visits")) for row in table.rows)
    at = {name: table.one(DISTANCE, estimator=name, visits=end) for name in _ESTIMATORS}
    fresh = {name: table.one(FRESHNESS, estimator=name, visits=end) for name in (*_ESTIMATORS, OPTIMUM)}
    lost = {name: fresh[OPTIMUM].mean - fresh[name].mean for name in _ESTIMATORS}
    words = ", ".join(f"{name} {said(row)}" for name, row in at.items())
    return [
        Claim(
            max(at["LLN"].mean, at["SA"].mean) < at["Naive"].mean,
            f"(a) the optimal crawl rates are estimated much better by LLN and SA than by Naive: mean distance {words}",
        ),
        Claim(
            max(lost["LLN"], lost["SA"]) < lost["Naive"],
            "(b) in the end the freshness of LLN and SA is closer to the optimum's "
            f"{said(fresh[OPTIMUM])}: lost are {', '.join(f'{name} {value:.2g}' for name, value in lost.items())}",
        ),
        Claim(
            max(lost.values()) < 0.05,
            f"(b) freshness does not vary much: the most that is lost in the end is {max(lost.values()):.2g}",
        ),
    ]


def _draw_optimal(table: Table, canvas: Any) -> None:
    """Draw the rate of one page in one run, and the mean freshness, by visits."""
    canvas.set_size_inches(10, 4)
    left, right = canvas.subplots(1, 2)
    for axes, quantity in ((left, RATE), (right, FRESHNESS)):
        for number, name in enumerate(_ESTIMATORS):
            _draw_with_errors(axes, table, quantity, f"C{number}", name)
        best = table.some(quantity, estimator=OPTIMUM)
        axes.plot([float(table.label(row, "visits")) for row in best], [row.mean for row in best], ":", color="black",
                  label=OPTIMUM)  # fmt: skip
        axes.set(xlabel="visits k", ylabel=quantity)
    for axes in (left, right):
        axes.set_xscale("log")
    optimum = table.some(FRESHNESS, estimator=OPTIMUM)[0].mean
    right.set_ylim(0.8 * optimum, 1.05 * optimum)
    left.set_title("(a) optimal crawl rate of one page")
    right.set_title("(b) freshness")
    left.legend()


def _words(steps: Mapping[str, Mapping[str, float]]) -> dict[str, str]:
    return {
        who: ", ".join(f"{name} {value:g}" for name, value in chosen.items()) for who, chosen in steps.items() if chosen
    }


FIGURES = (
    Figure(
        name="online-estimators-6",
        paper=f"{JOURNAL}, Figure 6",
        title="crawl rates that follow the estimates, and are estimated with",
        settings=Settings(100, horizon=_ROUNDS),
        run=_adapt,
        claims=_adaptive_claims,
        draw=_draw_adaptive,
        fixed={
            "pages": "7 with Δ = 4.5/7 and weight 2, 43 with Δ = 0.5/43 and weight 1",
            "bandwidth B": f"{_BANDWIDTH:g}",
            "horizon counts": f"rounds of {_VISITS_A_ROUND} visits to each page",
            **_words(_STEPS),
        },
    ),
    Figure(
        name="optimal-freshness-2",
        paper=f"{CONFERENCE}, Figure 2",
        title="optimal crawl rates and freshness by estimated change rates",
        settings=Settings(20, (_N,), 10_000),
        run=_optimize,
        claims=_optimal_claims,
        draw=_draw_optimal,
        fixed={
            "change rates": "uniform on [0, 1]",
            "bandwidth B": "0.8 a page",
            "horizon counts": "visits to each page",
            **_words(_ESTIMATORS),
        },
    ),
)
