"""Figure 6 of the online estimators' journal paper, and 2 of the conference paper: crawl rates by estimated changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crawlsched.bandwidth import poisson_crawl_rates
from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, Numbers, Row, Settings, repeated
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
# An estimate of 0 would never be visited, and cause a division by 0: this number serves as well.
_LEAST_RATE = 1e-9


def _visit(rng: np.random.Generator, change_rate: FloatArray, crawl_rate: FloatArray | float, n: int) -> Visits:
    """Visit each page n times at random."""
    elapsed = rng.exponential(1.0, (change_rate.size, n)) / np.reshape(crawl_rate, (-1, 1))
    changed = rng.random(elapsed.shape) < -np.expm1(-change_rate[:, np.newaxis] * elapsed)
    return elapsed, changed, np.full(change_rate.size, n)


def _best_rates(change_rate: FloatArray, importance: FloatArray | float, bandwidth: float) -> FloatArray:
    """Return the crawl rates of Algorithm 2 of Azar et al. for estimated change rates."""
    return poisson_crawl_rates(np.maximum(change_rate, _LEAST_RATE), importance, bandwidth).rates


def _mean_freshness(rates: FloatArray, change_rate: FloatArray, importance: FloatArray | float = 1.0) -> float:
    """Return the freshness that crawls at random give, Σ w p/(p + Δ) by Σ w (equation (10) of the conference paper).

    >>> _mean_freshness(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    0.25
    """
    weights = np.broadcast_to(importance, rates.shape)
    fresh = rates / np.maximum(rates + change_rate, 1e-300)
    return float((weights * fresh).sum() / weights.sum())


# -- figure 6 of the journal paper: estimated in rounds, and the bandwidth divided anew after each

# Section 5.
_FAST, _PAGES = 7, 50
_TRUTH = np.where(np.arange(_PAGES) < _FAST, 4.5 / 7, 0.5 / 43)
_IMPORTANCE = np.where(np.arange(_PAGES) < _FAST, 2.0, 1.0)
_BANDWIDTH = 5.0
_VISITS_A_ROUND = 50
# One page is shown; distances are those of all pages like it, which have the same distribution.
SHOWN = {"frequently changing page 5": (4, slice(0, _FAST)), "slowly changing page 10": (9, slice(_FAST, _PAGES))}
STEPS_6: Steps = {"LLN": {"alpha": 1.0}, "SA": {"eta": 0.75}, "SAM": {"eta": 1.3, "beta": 0.75}}


def _adapt(settings: Settings, name: str, rng: np.random.Generator, repetition: int) -> Numbers:
    """Estimate in rounds of 50 visits to each page, and divide the bandwidth anew after each."""
    best = _best_rates(_TRUTH, _IMPORTANCE, _BANDWIDTH)
    numbers: Numbers = {}
    rates, estimates = np.full(_PAGES, _BANDWIDTH / _PAGES), np.zeros(_PAGES)
    for number in range(settings.steps + 1):
        for shown, (page, alike) in SHOWN.items():
            numbers[RATE, shown, number, name] = rates[page]
            numbers[DISTANCE, shown, number, name] = float(np.abs(rates - best)[alike].mean())
        numbers[IN_ALL, "all pages", number, name] = float(np.abs(rates - best).sum() / best.sum())
        numbers[FRESHNESS, "all pages", number, name] = _mean_freshness(rates, _TRUTH, _IMPORTANCE)
        if number < settings.steps:
            # Pages that are not crawled teach nothing: they keep their estimates.
            crawled = np.flatnonzero(rates > 0)
            visits = _visit(rng, _TRUTH[crawled], rates[crawled], _VISITS_A_ROUND)
            banks = {name: bank(name, crawled.size, rates[crawled], STEPS_6[name])}
            estimates[crawled] = follow(banks, visits, [_VISITS_A_ROUND])[name][-1]
            rates = _best_rates(estimates, _IMPORTANCE, _BANDWIDTH)
    return numbers


def _optimum(settings: Settings) -> Iterator[Row]:
    best = _best_rates(_TRUTH, _IMPORTANCE, _BANDWIDTH)
    lines = {(RATE, shown): float(best[page]) for shown, (page, _) in SHOWN.items()}
    lines[FRESHNESS, "all pages"] = _mean_freshness(best, _TRUTH, _IMPORTANCE)
    for (quantity, pages), value in lines.items():
        for number in range(settings.steps + 1):
            yield Row(quantity, (pages, number, OPTIMUM), value, 0.0, 1)


# -- figure 2 of the conference paper: the bandwidth divided by what is estimated from visits at equal rates

# Experiment 2.
_N, _B = 100, 80.0
ESTIMATORS: Steps = {"Naive": {}, "LLN": {"alpha": 1.0}, "SA": {"eta": 0.75}}


def _optimize(settings: Settings, case: int, rng: np.random.Generator, repetition: int) -> Numbers:
    """Estimate all pages' change rates from visits at equal rates; divide the bandwidth by the estimates at each k."""
    n_pages = settings.n_pages
    bandwidth = _B * n_pages / _N
    marks = marks_up_to(settings.steps)
    truth = rng.random(n_pages)
    visits = _visit(rng, truth, _B / _N, marks[-1])
    best = _best_rates(truth, 1.0, bandwidth)
    estimates = follow({name: bank(name, n_pages, _B / _N, steps) for name, steps in ESTIMATORS.items()}, visits, marks)
    numbers: Numbers = {}
    for place, mark in enumerate(marks):
        divided = {name: _best_rates(columns[place], 1.0, bandwidth) for name, columns in estimates.items()}
        for name, rates in {**divided, OPTIMUM: best}.items():
            numbers[FRESHNESS, mark, name] = _mean_freshness(rates, truth)
            if name != OPTIMUM:
                numbers[DISTANCE, mark, name] = float(np.abs(rates - best).mean())
            if repetition == 0:
                numbers[RATE, mark, name] = float(rates[0])
    return numbers


_ROUND = {"xlabel": f"round of {_VISITS_A_ROUND} visits"}
_RATE_PANELS = [
    Panel({RATE: "-"}, "round", ("estimator",), where={"page": shown}, axes={"title": f"({letter}) {shown}", **_ROUND})
    for letter, shown in zip("ab", SHOWN, strict=True)
]
_LOGARITHMIC = [
    Panel({quantity: "-"}, "visits", ("estimator",), axes={"title": title, "xscale": "log"})
    for quantity, title in ((RATE, "(a) optimal crawl rate of one page"), (FRESHNESS, "(b) freshness"))
]

FIGURES = (
    Figure(
        "online-estimators-6",
        JOURNAL,
        "crawl rates that follow the estimates, and are estimated with",
        Settings(100, horizon=10),
        repeated(("page", "round", "estimator"), _adapt, list(STEPS_6), _optimum),
        drawn(*_RATE_PANELS),
        {
            "pages": "7 with Δ = 4.5/7 and weight 2, 43 with Δ = 0.5/43 and weight 1",
            "bandwidth B": f"{_BANDWIDTH:g}",
            "horizon counts": f"rounds of {_VISITS_A_ROUND} visits to each page",
            **words_of(STEPS_6),
        },
    ),
    Figure(
        "optimal-freshness-2",
        CONFERENCE,
        "optimal crawl rates and freshness by estimated change rates",
        Settings(20, (_N,), 10_000),
        repeated(("visits", "estimator"), _optimize, [0]),
        drawn(*_LOGARITHMIC),
        {
            "change rates": "uniform on [0, 1]",
            "bandwidth B": "0.8 a page",
            "horizon counts": "visits to each page",
            **words_of(ESTIMATORS),
        },
    ),
)
