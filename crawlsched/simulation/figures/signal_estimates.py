"""Figures 6 (first terms of the crawl value), 10 and 11 (precision and recall) of the noisy-signals paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import greedy_ncis
from crawlsched.estimators import SignalFit, SignalQuality
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, FigureSettings, Numbers, repeated
from crawlsched.simulation.figures.instances import PAPER, SECTION_6, poisson_events, uniform

__all__ = ["FIGURES", "visits"]

# Appendix E.
QUALITY = uniform(0.2, 0.95)
CHANGE_INTERVAL = uniform(2.0, 20.0)
MEASURES = ("precision", "recall")
BIAS, SIZE, TRUE, ESTIMATE = "error", "absolute error", "true value", "estimate"

Fit = Callable[[FloatArray, FloatArray, FloatArray], SignalFit]


def visits(
    rng: np.random.Generator, precision: float, recall: float, change_rate: float, crawl_rate: float, horizon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """For every visit to one page, return elapsed time, number of announcements, and whether the page changed.

    Changes, announced changes, false announcements and crawls are Poisson processes.
    """
    false_signal_rate = recall * change_rate * (1.0 - precision) / precision
    rows, times = poisson_events(rng, np.array([change_rate, false_signal_rate, crawl_rate]), horizon)
    changes, false, crawls = (times[rows == row] for row in range(3))
    announced = np.concatenate([changes[rng.random(changes.size) < recall], false])
    edges = np.concatenate([[0.0], crawls])
    return np.diff(edges), _count(announced, edges), _count(changes, edges) > 0


def _count(times: FloatArray, edges: FloatArray) -> Any:
    # An event at the time of a visit belongs to that visit.
    return np.diff(np.sort(times).searchsorted(edges, side="right"))


def _estimate(
    fit: Fit, settings: FigureSettings, relative: float, rng: np.random.Generator, repetition: int
) -> Numbers:
    """Estimate precision and recall of a page drawn at random, with `relative` crawls per change."""
    true = dict(zip(MEASURES, QUALITY.draw(rng, 2).tolist(), strict=True))
    change_rate = 1.0 / float(CHANGE_INTERVAL.draw(rng, 1)[0])
    seen = visits(rng, **true, change_rate=change_rate, crawl_rate=relative * change_rate, horizon=settings.time)
    found = fit(*seen)
    numbers: Numbers = {}
    for name, estimate in (("precision", found.precision), ("recall", found.recall)):
        numbers[BIAS, relative, name, ""] = estimate - true[name]
        numbers[SIZE, relative, name, ""] = abs(estimate - true[name])
        numbers["squared error", relative, name, ""] = (estimate - true[name]) ** 2
        numbers[TRUE, relative, name, repetition] = true[name]
        numbers[ESTIMATE, relative, name, repetition] = estimate
    return numbers


def _figure(
    number: int, title: str, fit: Fit, relative_rates: tuple[float, ...] = (4.0, 2.0, 1.0, 0.5, 0.25)
) -> Figure:
    """Return the figure of a fit, by crawls per change: "between four times to one quarter of the change rate"."""
    styles = {TRUE: "x", ESTIMATE: ".", BIAS: "ko"}
    panels = [
        Panel(styles, "crawls per change", where={"measure": name}, level=0.0, axes={"title": name})
        for name in MEASURES
    ]
    return Figure(
        f"noisy-signals-{number}",
        PAPER,
        title,
        replace(SECTION_6, pages=(), horizon=100_000.0),
        repeated(("crawls per change", "measure", "repetition"), partial(_estimate, fit), relative_rates),
        drawn(*panels),
        {
            "precision and recall": QUALITY.words,
            "time between changes": CHANGE_INTERVAL.words,
            "crawls per change": " ".join(f"{relative:g}" for relative in relative_rates),
        },
    )


# -- figure 6: the crawl value, and its approximations by the first terms of its sum

VALUE, EXACT, LIMIT = "crawl value", "exact", "asymptotic value"
TERMS = {"1 term": 1, "2 terms": 2, "3 terms": 3}


def _first_terms(change_rate: float, recall: float, false_signal_rate: float, n_steps: int = 200) -> Figure:
    """Return the figure of the crawl value of a page with these rates, and of its approximations; nothing is random."""

    def measure(settings: FigureSettings, case: None, rng: np.random.Generator, repetition: int) -> Numbers:
        # Without announcements, the effective elapsed time is the elapsed time.
        elapsed = np.append(np.linspace(0.0, settings.time, n_steps + 1), np.inf)
        numbers: Numbers = {(VALUE, LIMIT, np.inf): 1.0 / change_rate}
        for name, terms in {EXACT: None, **TERMS}.items():
            values = greedy_ncis(elapsed, 0, change_rate, recall, false_signal_rate, max_terms=terms)
            numbers |= {(VALUE, name, x): value for x, value in zip(elapsed.tolist(), values.tolist(), strict=True)}
        return numbers

    return Figure(
        "noisy-signals-6",
        PAPER,
        "the crawl value with announcements, exact and with its first terms",
        FigureSettings(1, horizon=20.0),
        repeated(("function", "effective elapsed time"), measure, [None]),
        drawn(Panel({VALUE: "-"}, "effective elapsed time", ("function",))),
        {
            "change rate": f"{change_rate:g}",
            "recall": f"{recall:g}",
            "false signal rate": f"{false_signal_rate:g}",
            "importance": "1",
        },
    )


FIGURES = (
    # The paper does not say which page it draws. This page is from section 6.6, with the lowest rate of false
    # announcements.
    _first_terms(change_rate=0.5, recall=0.5, false_signal_rate=0.1),
    _figure(10, "bias of precision and recall as counted interval by interval", SignalQuality.fit_naive),
    _figure(
        11, "bias of precision and recall as fitted by maximum likelihood", partial(SignalQuality.fit, interval=False)
    ),
)
