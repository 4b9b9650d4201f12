"""Figures 6, 10 and 11 of the noisy-signals paper: the crawl value with its first terms; precision and recall."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.crawl_value import greedy_ncis
from crawlsched.estimators import SignalFit, SignalQuality
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, Numbers, Settings, repeated
from crawlsched.simulation.figures.instances import PAPER, REPETITIONS, poisson_events, uniform

__all__ = ["FIGURES", "visits"]

# Appendix E.
QUALITY = uniform(0.2, 0.95)
CHANGE_INTERVAL = uniform(2.0, 20.0)
HORIZON = 100_000.0
# Crawls by changes: "between four times to one quarter of the change rate".
RELATIVE_RATES = (4.0, 2.0, 1.0, 0.5, 0.25)
MEASURES = ("precision", "recall")
BIAS, SIZE, TRUE, ESTIMATE = "error", "absolute error", "true value", "estimate"

Fit = Callable[[FloatArray, FloatArray, FloatArray], SignalFit]


def visits(
    rng: np.random.Generator, precision: float, recall: float, change_rate: float, crawl_rate: float, horizon: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return elapsed time, announcements and whether there was a change for every visit to one page.

    Changes, those announced among them, false announcements and crawls come as Poisson processes.
    """
    false_signal_rate = recall * change_rate * (1.0 - precision) / precision
    rows, times = poisson_events(rng, np.array([change_rate, false_signal_rate, crawl_rate]), horizon)
    changes, false, crawls = (times[rows == row] for row in range(3))
    announced = np.concatenate([changes[rng.random(changes.size) < recall], false])
    edges = np.concatenate([[0.0], crawls])
    return np.diff(edges), _count(announced, edges), _count(changes, edges) > 0


def _count(times: FloatArray, edges: FloatArray) -> Any:
    # A time at an edge belongs to the visit there.
    return np.diff(np.sort(times).searchsorted(edges, side="right"))


def _estimate(fit: Fit, settings: Settings, relative: float, rng: np.random.Generator, repetition: int) -> Numbers:
    """Estimate precision and recall of a page drawn at random, for a relative rate of crawls."""
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


def _figure(number: int, title: str, fit: Fit) -> Figure:
    styles = {TRUE: "x", ESTIMATE: ".", BIAS: "ko"}
    panels = [
        Panel(styles, "crawls per change", where={"measure": name}, level=0.0, axes={"title": name})
        for name in MEASURES
    ]
    return Figure(
        f"noisy-signals-{number}",
        PAPER,
        title,
        Settings(REPETITIONS, horizon=HORIZON),
        repeated(("crawls per change", "measure", "repetition"), partial(_estimate, fit), RELATIVE_RATES),
        drawn(*panels),
        {
            "precision and recall": QUALITY.words,
            "time between changes": CHANGE_INTERVAL.words,
            "crawls per change": " ".join(f"{relative:g}" for relative in RELATIVE_RATES),
        },
    )


# -- figure 6: the crawl value, and what is left of it with the first terms of its sum

# The paper does not say which page it is: this one is of section 6.6, with the lowest rate of false announcements.
CHANGE_RATE, RECALL, FALSE_SIGNAL_RATE = 0.5, 0.5, 0.1
STEPS = 200
VALUE, EXACT, LIMIT = "crawl value", "exact", "asymptotic value"
TERMS = {"1 term": 1, "2 terms": 2, "3 terms": 3}


def _value(settings: Settings, case: None, rng: np.random.Generator, repetition: int) -> Numbers:
    """Evaluate the crawl value and its approximations; nothing is random."""
    # Effective elapsed time: without announcements it is the elapsed time.
    elapsed = np.append(np.linspace(0.0, settings.time, STEPS + 1), np.inf)
    numbers: Numbers = {(VALUE, LIMIT, np.inf): 1.0 / CHANGE_RATE}
    for name, terms in {EXACT: None, **TERMS}.items():
        values = greedy_ncis(elapsed, 0, CHANGE_RATE, RECALL, FALSE_SIGNAL_RATE, max_terms=terms)
        numbers |= {(VALUE, name, x): value for x, value in zip(elapsed.tolist(), values.tolist(), strict=True)}
    return numbers


FIGURES = (
    Figure(
        "noisy-signals-6",
        PAPER,
        "the crawl value with announcements, exact and with its first terms",
        Settings(1, horizon=20.0),
        repeated(("function", "effective elapsed time"), _value, [None]),
        drawn(Panel({VALUE: "-"}, "effective elapsed time", ("function",))),
        {
            "change rate": f"{CHANGE_RATE:g}",
            "recall": f"{RECALL:g}",
            "false signal rate": f"{FALSE_SIGNAL_RATE:g}",
            "importance": "1",
        },
    ),
    _figure(10, "bias of precision and recall as counted interval by interval", SignalQuality.fit_naive),
    _figure(
        11, "bias of precision and recall as fitted by maximum likelihood", partial(SignalQuality.fit, interval=False)
    ),
)
