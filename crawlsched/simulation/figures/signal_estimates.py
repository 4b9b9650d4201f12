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
from crawlsched.simulation.figures.figure import Claim, Claims, Figure, Settings, repeated
from crawlsched.simulation.figures.instances import PAPER, REPETITIONS, poisson_events, uniform
from crawlsched.simulation.figures.table import Numbers, Row, Table, said

__all__ = ["FIGURES", "visits"]

# Appendix E.
QUALITY = uniform(0.2, 0.95)
CHANGE_INTERVAL = uniform(2.0, 20.0)
HORIZON = 100_000.0
# Crawls by changes: "between four times to one quarter of the change rate".
RELATIVE_RATES = (4.0, 2.0, 1.0, 0.5, 0.25)
MEASURES = ("precision", "recall")
BIAS, SIZE, TRUE, ESTIMATE = "error", "absolute error", "true value", "estimate"
# A bias that can be seen in a picture from 0 to 1; and the order of 10^-4 that the paper gives.
CLEARLY, HARDLY = 0.05, 0.001

Fit = Callable[[FloatArray, FloatArray, FloatArray], SignalFit]
_say = partial(said, mean=".4f", error=".4f")


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


def _clearly_biased(table: Table) -> Claims:
    for name in MEASURES:
        rows = table.some(BIAS, measure=name)
        worst = max(abs(row.mean) for row in rows)
        at = ", ".join(f"{row.mean:.3f} at {row.labels[0]:g}" for row in rows)
        yield Claim(worst >= CLEARLY, f"counting is clearly biased in {name}; by crawls per change, it is off by {at}")


def _hardly_biased(table: Table) -> Claims:
    def at(row: Row) -> str:
        return f"{_say(row)} ({row.labels[1]}, {row.labels[0]:g} crawls per change)"

    def chance(row: Row) -> float:
        return 3 * row.standard_error if row.repetitions > 1 else 0.0

    biased = max(table.some(BIAS), key=lambda row: abs(row.mean) - chance(row))
    words = f"the bias of the fit is of the order of 0.0001 (below {HARDLY}, or what chance explains); the worst is "
    yield Claim(abs(biased.mean) <= max(HARDLY, chance(biased)), words + at(biased))
    overall = {name: _mean_of(table.some(BIAS, measure=name)) for name in MEASURES}
    largest = max(table.some(SIZE), key=lambda row: row.mean)
    yield Claim(
        all(abs(row.mean) <= max(HARDLY, chance(row)) for row in overall.values()),
        "so is its absolute error, as that of the bias over all pages: "
        f"{', '.join(f'{_say(row)} ({name})' for name, row in overall.items())}; one page's estimate is off by "
        f"more, on average by up to {at(largest)}",
    )


def _mean_of(rows: list[Row]) -> Row:
    """Return the mean of numbers that were measured apart."""
    n = len(rows)
    error = sum(row.standard_error**2 for row in rows) ** 0.5 / n
    return Row(rows[0].quantity, (), sum(row.mean for row in rows) / n, error, rows[0].repetitions)


def _figure(number: int, title: str, fit: Fit, claimed: Callable[[Table], Claims]) -> Figure:
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
        claimed,
        drawn(*panels),
        {
            "precision and recall": QUALITY.words,
            "time between changes": CHANGE_INTERVAL.words,
            "crawls per change": " ".join(f"{relative:g}" for relative in RELATIVE_RATES),
        },
    )


# -- figure 6: the crawl value, and what is left of it with the first terms of its sum

# The paper does not say which page it is: this is one of section 6.6, with the lowest rate of false announcements.
CHANGE_RATE, RECALL, FALSE_SIGNAL_RATE = 0.5, 0.5, 0.1
STEPS = 200
VALUE, EXACT, LIMIT = "crawl value", "exact", "asymptotic value"
TERMS = {"1 term": 1, "2 terms": 2, "3 terms": 3}
# The approximations are called very good while they are within this share of the limit.
VERY_WELL = 0.01


def _value(settings: Settings, case: None, rng: np.random.Generator, repetition: int) -> Numbers:
    """Evaluate the crawl value and its approximations; nothing is random."""
    # Effective elapsed time: without announcements it is the elapsed time.
    elapsed = np.append(np.linspace(0.0, settings.time, STEPS + 1), np.inf)
    numbers: Numbers = {(VALUE, LIMIT, np.inf): 1.0 / CHANGE_RATE}
    for name, terms in {EXACT: None, **TERMS}.items():
        values = greedy_ncis(elapsed, 0, CHANGE_RATE, RECALL, FALSE_SIGNAL_RATE, max_terms=terms)
        numbers |= {(VALUE, name, x): value for x, value in zip(elapsed.tolist(), values.tolist(), strict=True)}
    return numbers


def _three_terms_are_enough(table: Table) -> Claims:
    """Three terms approximate very well; the caption says that all functions tend to the same value."""
    curves = {name: [row.mean for row in table.some(VALUE, function=name)] for name in (EXACT, *TERMS)}
    limit = table.one(VALUE, function=LIMIT).mean
    off = {name: float(np.abs(np.subtract(curves[name], curves[EXACT])).max()) / limit for name in TERMS}
    one, two, three = off.values()
    words = ", ".join(f"{share:.2%} with {name}" for name, share in off.items())
    yield Claim(one > two > three, f"more terms come nearer; farthest off, in shares of the asymptotic value: {words}")
    words = f"three terms approximate very well (within {VERY_WELL:.0%}); farthest off by {three:.2%}"
    yield Claim(three <= VERY_WELL, words)
    ends = {name: curve[-1] for name, curve in curves.items()}
    words = ", ".join(f"{end:.4g} ({name})" for name, end in ends.items())
    held = all(abs(end - limit) < 1e-9 * limit for end in ends.values())
    yield Claim(held, f"the asymptotic value {limit:.4g} is that of all functions; they end at {words}")


FIGURES = (
    Figure(
        "noisy-signals-6",
        PAPER,
        "the crawl value with announcements, exact and with the first terms of its sum",
        Settings(1, horizon=20.0),
        repeated(("function", "effective elapsed time"), _value, [None]),
        _three_terms_are_enough,
        drawn(Panel({VALUE: "-"}, "effective elapsed time", ("function",))),
        {
            "change rate": f"{CHANGE_RATE:g}",
            "recall": f"{RECALL:g}",
            "false signal rate": f"{FALSE_SIGNAL_RATE:g}",
            "importance": "1",
        },
    ),
    _figure(
        10, "bias of precision and recall as counted interval by interval", SignalQuality.fit_naive, _clearly_biased
    ),
    _figure(
        11,
        "bias of precision and recall as fitted by maximum likelihood",
        partial(SignalQuality.fit, interval=False),
        _hardly_biased,
    ),
)
