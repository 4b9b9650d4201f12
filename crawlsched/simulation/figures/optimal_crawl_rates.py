"""Figure 6 of the online estimators' journal paper, and 2 of the conference paper: crawl rates from estimates."""

from __future__ import annotations

from collections.abc import Iterator
from sys import float_info

import numpy as np

from crawlsched.bandwidth import poisson_crawl_rates
from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, FigureSettings, Numbers, Row, repeated
from crawlsched.simulation.figures.online_estimators import (
    CONFERENCE,
    JOURNAL,
    Steps,
    Visits,
    bank,
    follow,
    marks_up_to,
    words_of,
)

__all__ = ["FIGURES"]

RATE = "crawl rate"
DISTANCE = "distance from the optimal rate"
IN_ALL = "distance from the optimal rates, share of the bandwidth"
FRESHNESS = "freshness"
OPTIMUM = "optimum"


def _visit(rng: np.random.Generator, change_rate: FloatArray, crawl_rate: FloatArray | float, n: int) -> Visits:
    """Visit each page n times at random."""
    elapsed = rng.exponential(1.0, (change_rate.size, n)) / np.reshape(crawl_rate, (-1, 1))
    changed = rng.random(elapsed.shape) < -np.expm1(-change_rate[:, np.newaxis] * elapsed)
    return elapsed, changed, np.full(change_rate.size, n)


def _best_rates(
    change_rate: FloatArray, importance: FloatArray | float, bandwidth: float, least_rate: float = 1e-9
) -> FloatArray:
    """Return the crawl rates of Algorithm 2 of Azar et al. for estimated change rates.

    A page estimated at 0 would never be visited again, and would cause a division by 0. So its estimate is raised to
    the least rate.
    """
    return poisson_crawl_rates(np.maximum(change_rate, least_rate), importance, bandwidth).rates


def _mean_freshness(rates: FloatArray, change_rate: FloatArray, importance: FloatArray | float = 1.0) -> float:
    """Return the freshness with crawls at random, Σ w p/(p + Δ) / Σ w (equation (10) of the conference paper).

    >>> _mean_freshness(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    0.25
    """
    weights = np.broadcast_to(importance, rates.shape)
    fresh = rates / np.maximum(rates + change_rate, float_info.min)
    return float((weights * fresh).sum() / weights.sum())


# -- figure 6 of the journal paper: after each round of estimates, the bandwidth is divided anew

# Section 5: few pages change often, and are worth more.
_TRUTH = np.repeat([4.5 / 7, 0.5 / 43], [7, 43])
_IMPORTANCE = np.repeat([2.0, 1.0], [7, 43])
# One page of each kind is drawn. Distances are means over all pages of that kind.
SHOWN = {"frequently changing page 5": (4, slice(0, 7)), "slowly changing page 10": (9, slice(7, 50))}
STEPS_6: Steps = {"LLN": {"alpha": 1.0}, "SA": {"eta": 0.75}, "SAM": {"eta": 1.3, "beta": 0.75}}


def _adapting(bandwidth: float, n_visits: int) -> Figure:
    """Return the figure of rounds of `n_visits` visits to each page; each round divides the bandwidth anew."""
    best = _best_rates(_TRUTH, _IMPORTANCE, bandwidth)

    def measure(settings: FigureSettings, name: str, rng: np.random.Generator, repetition: int) -> Numbers:
        numbers: Numbers = {}
        rates, estimates = np.full(_TRUTH.size, bandwidth / _TRUTH.size), np.zeros(_TRUTH.size)
        for number in range(settings.steps + 1):
            for shown, (page, alike) in SHOWN.items():
                numbers[RATE, shown, number, name] = rates[page]
                numbers[DISTANCE, shown, number, name] = float(np.abs(rates - best)[alike].mean())
            numbers[IN_ALL, "all pages", number, name] = float(np.abs(rates - best).sum() / best.sum())
            numbers[FRESHNESS, "all pages", number, name] = _mean_freshness(rates, _TRUTH, _IMPORTANCE)
            if number < settings.steps:
                # Estimates of pages that are not crawled do not change.
                crawled = np.flatnonzero(rates > 0)
                visits = _visit(rng, _TRUTH[crawled], rates[crawled], n_visits)
                banks = {name: bank(name, crawled.size, rates[crawled], STEPS_6[name])}
                estimates[crawled] = follow(banks, visits, [n_visits])[name][-1]
                rates = _best_rates(estimates, _IMPORTANCE, bandwidth)
        return numbers

    def optimum(settings: FigureSettings) -> Iterator[Row]:
        lines = {(RATE, shown): float(best[page]) for shown, (page, _) in SHOWN.items()}
        lines[FRESHNESS, "all pages"] = _mean_freshness(best, _TRUTH, _IMPORTANCE)
        for (quantity, pages), value in lines.items():
            for number in range(settings.steps + 1):
                yield Row(quantity, (pages, number, OPTIMUM), value, 0.0, 1)

    panels = [
        Panel(
            {RATE: "-"},
            "round",
            ("estimator",),
            where={"page": shown},
            axes={"title": f"({letter}) {shown}", "xlabel": f"round of {n_visits} visits"},
        )
        for letter, shown in zip("ab", SHOWN, strict=True)
    ]
    return Figure(
        "online-estimators-6",
        JOURNAL,
        "crawl rates that follow estimates, which their visits improve",
        FigureSettings(100, horizon=10),
        repeated(("page", "round", "estimator"), measure, list(STEPS_6), optimum),
        drawn(*panels),
        {
            "pages": "7 with Δ = 4.5/7 and weight 2, 43 with Δ = 0.5/43 and weight 1",
            "bandwidth B": f"{bandwidth:g}",
            "horizon counts": f"rounds of {n_visits} visits to each page",
            **words_of(STEPS_6),
        },
    )


# -- figure 2 of the conference paper: estimates from visits at equal rates decide how the bandwidth is divided

ESTIMATORS: Steps = {"Naive": {}, "LLN": {"alpha": 1.0}, "SA": {"eta": 0.75}}


def _dividing(crawl_rate: float, settings: FigureSettings) -> Figure:
    """Return the figure of pages visited at equal rates, and of the division by their estimates after k visits."""

    def measure(settings: FigureSettings, case: int, rng: np.random.Generator, repetition: int) -> Numbers:
        n_pages = settings.n_pages
        marks = marks_up_to(settings.steps)
        truth = rng.random(n_pages)
        visits = _visit(rng, truth, crawl_rate, marks[-1])
        best = _best_rates(truth, 1.0, crawl_rate * n_pages)
        banks = {name: bank(name, n_pages, crawl_rate, steps) for name, steps in ESTIMATORS.items()}
        estimates = follow(banks, visits, marks)
        numbers: Numbers = {}
        for place, mark in enumerate(marks):
            divided = {name: _best_rates(rates[place], 1.0, crawl_rate * n_pages) for name, rates in estimates.items()}
            for name, rates in {**divided, OPTIMUM: best}.items():
                numbers[FRESHNESS, mark, name] = _mean_freshness(rates, truth)
                if name != OPTIMUM:
                    numbers[DISTANCE, mark, name] = float(np.abs(rates - best).mean())
                if repetition == 0:
                    numbers[RATE, mark, name] = float(rates[0])
        return numbers

    panels = [
        Panel({quantity: "-"}, "visits", ("estimator",), axes={"title": title, "xscale": "log"})
        for quantity, title in ((RATE, "(a) optimal crawl rate of one page"), (FRESHNESS, "(b) freshness"))
    ]
    return Figure(
        "optimal-freshness-2",
        CONFERENCE,
        "optimal crawl rates and freshness by estimated change rates",
        settings,
        repeated(("visits", "estimator"), measure, [0]),
        drawn(*panels),
        {
            "change rates": "uniform on [0, 1]",
            "bandwidth B": f"{crawl_rate:g} a page",
            "horizon counts": "visits to each page",
            **words_of(ESTIMATORS),
        },
    )


FIGURES = (
    _adapting(bandwidth=5.0, n_visits=50),
    # Experiment 2: a bandwidth of 80 for 100 pages.
    _dividing(crawl_rate=0.8, settings=FigureSettings(20, (100,), 10_000)),
)
