"""Figure 5 of the online estimators' journal paper, and 3 of the conference paper: what the step sizes do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from crawlsched.simulation.figures.estimating import (
    ERROR,
    ESTIMATE,
    SPREAD,
    TRAJECTORY,
    draw_lines,
    error_rows,
    estimator,
    follow,
    last,
    marks_up_to,
    random_visits,
)
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.online_estimators import CONFERENCE, JOURNAL, judged, said
from crawlsched.simulation.figures.table import Row, Table

__all__ = ["FIGURES"]

# Δ of the journal paper's figure.
_CHANGE_RATE = 500.0
# An estimator has reached its limit when its mean is this near to it.
_NEAR = 0.1


@dataclass(frozen=True)
class _Panel:
    """One estimator with several step sizes: its name in the paper, and parameters by what they are called."""

    estimator: str
    choices: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class _StepSizes:
    change_rate: float
    crawl_rate: float
    panels: Mapping[str, _Panel]

    def run(self, settings: Settings, progress: Progress) -> Table:
        marks = marks_up_to(settings.steps)
        visits = random_visits(settings, self.change_rate, self.crawl_rate, marks[-1])
        rows: list[Row] = []
        for number, (name, panel) in enumerate(self.panels.items(), 1):
            banks = {
                choice: estimator(panel.estimator, settings.repetitions, self.crawl_rate, **parameters)
                for choice, parameters in panel.choices.items()
            }
            estimates = follow(banks, visits, marks)
            rows += error_rows(estimates, self.change_rate, marks, (name,))
            progress(number, len(self.panels))
        return Table(("panel", "visits", "estimator"), tuple(rows))

    def draw(self, table: Table, canvas: Any) -> None:
        """Draw a panel for each estimator: one run above, the error over the runs below."""
        columns = len(self.panels)
        canvas.set_size_inches(4.2 * columns, 7)
        grid = canvas.subplots(2, columns, squeeze=False)
        for (name, panel), above, below in zip(self.panels.items(), grid[0], grid[1], strict=True):
            draw_lines(above, table, TRAJECTORY, list(panel.choices), panel=name)
            draw_lines(below, table, ERROR, list(panel.choices), panel=name)
            above.axhline(self.change_rate, color="black", linestyle=":")
            above.set_title(f"({name}) {panel.estimator}, one run")
            above.set_ylim(0, 2.2 * self.change_rate)
            below.set_ylim(0, 1.1 * self.change_rate)
            above.legend()

    def words(self) -> dict[str, str]:
        """Say the step sizes."""
        chosen = {f"({name}) {panel.estimator}": "; ".join(panel.choices) for name, panel in self.panels.items()}
        return {"change rate Δ": f"{self.change_rate:g}", "crawl rate p": f"{self.crawl_rate:g}", **chosen}


def _errors(table: Table, panel: str) -> dict[str, Row]:
    rows = table.some(ERROR, panel=panel)
    names = dict.fromkeys(str(table.label(row, "estimator")) for row in rows)
    return {name: last(table, ERROR, name, panel=panel) for name in names}


def _list(errors: Mapping[str, Row]) -> str:
    return ", ".join(f"{name}: {said(row)}" for name, row in errors.items())


def _law_is_slowest_with_the_largest_alpha(table: Table, panel: str) -> Claim:
    errors = _errors(table, panel)
    worst = max(errors, key=lambda name: errors[name].mean)
    return Claim(
        worst == "α = k^0.75", f"({panel}) LLN with α_k = k^0.75 is the worst: errors in the end {_list(errors)}"
    )


def _journal_claims(table: Table) -> list[Claim]:
    plain, beta, eta = (_errors(table, panel) for panel in "bcd")
    best = min(plain, key=lambda name: plain[name].mean)
    best_beta = min(beta, key=lambda name: beta[name].mean)
    spread = {name: last(table, SPREAD, name, panel="c") for name in beta}
    by_beta = [spread[name].mean for name in beta]
    arrived = {name: _arrival(table, "c", name) for name in beta}
    first_there = min(arrived, key=lambda name: arrived[name])
    there = ", ".join(f"{name}: {'not yet' if visits == inf else f'{visits:g}'}" for name, visits in arrived.items())
    first, *_, last_eta = eta
    fast, slow = (_early_errors(table, "d")[name] for name in (last_eta, first))
    rough, smooth = (_late_spread(table, "d", name) for name in (last_eta, first))
    return [
        _law_is_slowest_with_the_largest_alpha(table, "a"),
        Claim(best == "η = 0.5", f"(b) SA is best with η = 0.5: errors in the end {_list(plain)}"),
        judged(
            first_there == "β = 0.4" and by_beta == sorted(by_beta, reverse=True),
            f"(c) SAM with β = 0.4 reaches the limit first, and fluctuates most, and ever less as β grows: visits "
            f"until the mean is within {_NEAR:.0%} {there}; deviations in the end {_list(spread)}",
            *by_beta,
        ),
        Claim(best_beta == "β = 0.6", f"(c) SAM is best with β = 0.6: errors in the end {_list(beta)}"),
        Claim(
            fast.mean < slow.mean,
            f"(d) a larger η makes SAM converge faster: error after {_early_mark(table)} visits {fast.mean:.5g} with "
            f"{last_eta} and {slow.mean:.5g} with {first}",
        ),
        judged(
            rough > smooth,
            f"(d) and fluctuate more: mean deviation over the second half {rough:.4g} with {last_eta} and {smooth:.4g} "
            f"with {first}",
            rough,
        ),
    ]


def _late_spread(table: Table, panel: str, name: str) -> float:
    rows = table.some(SPREAD, panel=panel, estimator=name)
    half = max(float(table.label(row, "visits")) for row in rows) / 2
    late = [row.mean for row in rows if float(table.label(row, "visits")) >= half]
    return sum(late) / len(late)


def _arrival(table: Table, panel: str, name: str) -> float:
    """Return the number of visits after which the mean estimate is first near to Δ; infinite if it never is."""
    rows = table.some(ESTIMATE, panel=panel, estimator=name)
    near = [float(table.label(row, "visits")) for row in rows if abs(row.mean / _CHANGE_RATE - 1) <= _NEAR]
    return min(near, default=inf)


def _early_mark(table: Table) -> int:
    """Return the mark that is next above a tenth of all visits."""
    marks = sorted({int(table.label(row, "visits")) for row in table.rows})
    return next(mark for mark in marks if mark * 10 >= marks[-1])


def _early_errors(table: Table, panel: str) -> dict[str, Row]:
    mark = _early_mark(table)
    return {name: table.one(ERROR, panel=panel, visits=mark, estimator=name) for name in _errors(table, panel)}


def _conference_claims(table: Table) -> list[Claim]:
    errors = _errors(table, "b")
    return [
        _law_is_slowest_with_the_largest_alpha(table, "a"),
        Claim(
            errors["η = 0.75"].mean < errors["η = 0.5"].mean,
            f"(b) SA is better with η = 0.75 than with 0.5: errors in the end {_list(errors)}",
        ),
        Claim(
            errors["η = 1"].mean > errors["η = 0.75"].mean,
            f"(b) and worse with η = 1 than with 0.75: errors in the end {_list(errors)}",
        ),
    ]


def _choices(parameter: str, symbol: str, values: tuple[float, ...], **others: float) -> dict[str, dict[str, float]]:
    return {f"{symbol} = {value:g}": {parameter: value, **others} for value in values}


_ALPHAS: dict[str, dict[str, Any]] = {
    "α = 1": {"alpha": 1.0},
    "α = √k": {"alpha": "sqrt k"},
    "α = k^0.75": {"alpha": "k^0.75"},
}
_ETAS = _choices("eta", "η", (0.5, 0.75, 1.0))


def _figure(name: str, paper: str, steps: _StepSizes, visits: int, claims: Callable[[Table], list[Claim]]) -> Figure:
    return Figure(
        name=name,
        paper=f"{paper}, Figure {name.rpartition('-')[2]}",
        title=f"step sizes at Δ = {steps.change_rate:g}, p = {steps.crawl_rate:g}",
        settings=Settings(100, horizon=visits),
        run=steps.run,
        claims=claims,
        draw=steps.draw,
        fixed={"horizon counts": "visits of a run", **steps.words()},
    )


FIGURES = (
    _figure(
        "online-estimators-5",
        JOURNAL,
        _StepSizes(
            _CHANGE_RATE,
            10.0,
            {
                "a": _Panel("LLN", _ALPHAS),
                "b": _Panel("SA", _ETAS),
                "c": _Panel("SAM", _choices("beta", "β", (0.4, 0.5, 0.6, 0.7), eta=0.8)),
                "d": _Panel("SAM", _choices("eta", "η", (0.7, 0.8, 1.0, 1.2), beta=0.6)),
            },
        ),
        50_000,
        _journal_claims,
    ),
    _figure(
        "optimal-freshness-3",
        CONFERENCE,
        _StepSizes(1000.0, 200.0, {"a": _Panel("LLN", _ALPHAS), "b": _Panel("SA", _ETAS)}),
        1000,
        _conference_claims,
    ),
)
