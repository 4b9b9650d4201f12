"""Figure 6 of the noisy-signals paper: the crawl value, and what is left of it with the first terms of its sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from crawlsched.crawl_value import greedy_ncis
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.noisy_signals import PAPER
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Table

__all__ = ["FIGURES"]

# The paper does not say which page it is: this is one of section 6.6, with the lowest rate of false announcements.
CHANGE_RATE, RECALL, FALSE_SIGNAL_RATE = 0.5, 0.5, 0.1
# Effective elapsed time: without announcements it is the elapsed time.
HORIZON = 20.0
STEPS = 200
EXACT, LIMIT = "exact", "asymptotic value"
TERMS = (1, 2, 3)
# The approximations are called very good while they are within this share of the limit.
VERY_WELL = 0.01


def run(settings: Settings, progress: Progress) -> Table:
    """Evaluate the crawl value and its approximations; nothing is random."""
    assert settings.horizon is not None
    elapsed = np.linspace(0.0, settings.horizon, STEPS + 1)
    page = CHANGE_RATE, RECALL, FALSE_SIGNAL_RATE
    curves = {EXACT: greedy_ncis(elapsed, 0, *page)}
    ends = {EXACT: float(greedy_ncis(np.inf, 0, *page))}
    for n in TERMS:
        curves[_terms(n)] = greedy_ncis(elapsed, 0, *page, max_terms=n)
        ends[_terms(n)] = float(greedy_ncis(np.inf, 0, *page, max_terms=n))

    def measure(case: None, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
        numbers: dict[tuple[Label, ...], float] = {("crawl value", LIMIT, np.inf): 1.0 / CHANGE_RATE}
        for name, values in curves.items():
            numbers |= {
                ("crawl value", name, time): value
                for time, value in zip(elapsed.tolist(), values.tolist(), strict=True)
            }
            numbers["crawl value", name, np.inf] = ends[name]
        return numbers

    return repeat(settings, ("function", "effective elapsed time"), [None], measure, progress)


def _terms(n: int) -> str:
    return f"{n} term{'s' if n > 1 else ''}"


def claims(table: Table) -> list[Claim]:
    """Three terms approximate very well; the caption says that all functions tend to the same value."""
    curves = {
        name: [row.mean for row in table.some("crawl value", function=name)] for name in (EXACT, *map(_terms, TERMS))
    }
    limit = table.one("crawl value", function=LIMIT).mean
    off = [float(np.abs(np.subtract(curves[_terms(n)], curves[EXACT])).max()) / limit for n in TERMS]
    said = ", ".join(f"{share:.2%} with {_terms(n)}" for n, share in zip(TERMS, off, strict=True))
    ends = [curves[name][-1] for name in curves]
    said_ends = ", ".join(f"{end:.4g} ({name})" for name, end in zip(curves, ends, strict=True))
    return [
        Claim(
            off[0] > off[1] > off[2], f"more terms come nearer; farthest off, in shares of the asymptotic value: {said}"
        ),
        Claim(
            off[2] <= VERY_WELL,
            f"three terms approximate very well (within {VERY_WELL:.0%}); farthest off by {off[2]:.2%}",
        ),
        Claim(
            all(abs(end - limit) < 1e-9 * limit for end in ends),
            f"the asymptotic value {limit:.4g} is that of all functions; they end at {said_ends}",
        ),
    ]


def _curve(table: Table, name: str) -> tuple[list[float], list[float]]:
    rows = [row for row in table.some("crawl value", function=name) if np.isfinite(float(row.labels[1]))]
    return [float(row.labels[1]) for row in rows], [row.mean for row in rows]


def draw(table: Table, canvas: Any) -> None:
    """Draw the exact value as a line, the approximations dashed, the asymptotic value in red."""
    canvas.set_size_inches(7, 4.5)
    axes = canvas.add_subplot()
    axes.axhline(table.one("crawl value", function=LIMIT).mean, color="red", label=LIMIT)
    # The exact value is broad and pale, so that approximations which lie on it can be seen.
    axes.plot(*_curve(table, EXACT), color="lightgray", linewidth=5, label=EXACT)
    for number, name in enumerate(map(_terms, TERMS)):
        axes.plot(*_curve(table, name), "--", color=f"C{number}", label=name)
    axes.set_xlabel("effective elapsed time ι")
    axes.set_ylabel("crawl value V(ι)")
    axes.grid(visible=True, alpha=0.3)
    axes.legend()


FIGURES = (
    Figure(
        name="noisy-signals-6",
        paper=f"{PAPER}, Figure 6",
        title="the crawl value with announcements, exact and with the first terms of its sum",
        settings=Settings(1, horizon=HORIZON),
        run=run,
        claims=claims,
        draw=draw,
        fixed={
            "change rate": f"{CHANGE_RATE:g}",
            "recall": f"{RECALL:g}",
            "false signal rate": f"{FALSE_SIGNAL_RATE:g}",
            "importance": "1",
        },
    ),
)
