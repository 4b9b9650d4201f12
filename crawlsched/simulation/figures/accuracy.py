"""Figures 2 to 4 of the noisy-signals paper: accuracy of the policies by number of pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crawlsched.bandwidth import refresh_rates
from crawlsched.freshness import expected_freshness
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.instances import Instances
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Row, Table
from crawlsched.simulation.history import History
from crawlsched.simulation.replaying import replay

__all__ = ["BASELINE", "FIGURES", "PAPER"]

PAPER = "Busa-Fekete et al. (2025)"
#: The optimal continuous policy without announcements, problem (5).
BASELINE = "baseline"
BANDWIDTH = 100.0
HORIZON = 1000.0
REPETITIONS = 100
# Policies by their name in the paper, as `replay` knows them.
POLICIES = {
    "GREEDY": "greedy",
    "LDS": "lds",
}
# "On par" is within so much of the optimum.
PAR = 0.01


@dataclass(frozen=True)
class Accuracy:
    """One figure's instances and policies."""

    instances: Instances
    policies: tuple[str, ...]

    def run(self, settings: Settings, progress: Progress) -> Table:
        """Simulate every policy on the same instances."""

        def measure(n_pages: int, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
            assert settings.horizon is not None
            history = self.instances.draw(rng, n_pages, settings.horizon)
            found = {BASELINE: baseline(history)}
            for name in self.policies:
                done = replay(history, BANDWIDTH, POLICIES[name], "known", start=0.0, end=settings.horizon)
                found[name] = done.freshness
            # The same instances for all: a difference between two policies is known better than either.
            numbers: dict[tuple[Label, ...], float] = {}
            for name, accuracy in found.items():
                numbers["accuracy", n_pages, name] = accuracy
                if name != BASELINE:
                    numbers["accuracy less baseline", n_pages, name] = accuracy - found[BASELINE]
            return numbers

        return repeat(settings, ("pages", "policy"), settings.pages, measure, progress)


def baseline(history: History) -> float:
    """Return the accuracy of the optimal continuous policy that knows of no announcements."""
    assert history.change_rate is not None
    rates = refresh_rates(history.change_rate, history.importance, BANDWIDTH).rates
    return expected_freshness(rates, history.change_rate, history.importance)


def on_par(table: Table) -> list[Claim]:
    """GREEDY and LDS are on par with the optimal continuous policy."""
    rows = table.some("accuracy less baseline")
    worst = max(rows, key=lambda row: abs(row.mean))
    pages, policy = worst.labels
    return [
        Claim(
            abs(worst.mean) <= PAR,
            f"GREEDY and LDS are on par with the optimal continuous policy at every number of pages: the farthest is "
            f"{policy} at m = {pages}, off by {plus_minus(worst)} ({PAR} allowed)",
        )
    ]


def plus_minus(row: Row) -> str:
    """Say a mean with its standard error."""
    return f"{row.mean:.4f}" if np.isnan(row.standard_error) else f"{row.mean:.4f} ± {row.standard_error:.4f}"


def draw(table: Table, canvas: Any) -> None:
    """Draw a panel for each number of pages, the baseline as a red line."""
    pages = table.values("pages")
    policies = [str(name) for name in table.values("policy") if name != BASELINE]
    columns = min(len(pages), 3)
    rows = -(-len(pages) // columns)
    canvas.set_size_inches(1.2 + max(columns * (0.7 + 0.55 * len(policies)), 4), 1 + 2.6 * rows)
    for panel, n_pages in enumerate(pages, 1):
        axes = canvas.add_subplot(rows, columns, panel)
        axes.axhline(table.one("accuracy", pages=n_pages, policy=BASELINE).mean, color="red", label="Baseline")
        for place, name in enumerate(policies):
            row = table.one("accuracy", pages=n_pages, policy=name)
            axes.errorbar([place], [row.mean], [np.nan_to_num(row.standard_error)], fmt="o", capsize=4)
        axes.set_title(f"m = {n_pages}")
        axes.set_xlim(-0.5, len(policies) - 0.5)
        axes.set_xticks(range(len(policies)), policies, rotation=25 if len(policies) < 4 else 40, ha="right")
        axes.grid(visible=True, axis="y", alpha=0.3)
        if panel % columns == 1 or columns == 1:
            axes.set_ylabel("accuracy")
    canvas.axes[0].legend()


def _figure(
    number: int,
    title: str,
    instances: Instances,
    policies: tuple[str, ...],
    pages: tuple[int, ...],
    claims: Callable[[Table], list[Claim]],
) -> Figure:
    return Figure(
        name=f"noisy-signals-{number}",
        paper=f"{PAPER}, Figure {number}",
        title=title,
        settings=Settings(REPETITIONS, pages, HORIZON),
        run=Accuracy(instances, policies).run,
        claims=claims,
        draw=draw,
        fixed={"bandwidth R": f"{BANDWIDTH:g}", **instances.words()},
    )


FIGURES = (
    _figure(
        2,
        "accuracy of GREEDY and LDS without announcements",
        Instances(),
        ("GREEDY", "LDS"),
        (100, 200, 500, 750, 1000),
        on_par,
    ),
)
