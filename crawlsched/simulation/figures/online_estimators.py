"""Figures 2 to 4 of the online estimators' journal paper, and 1 of the conference paper: which estimator is closest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import hypot, isnan
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
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings, unless_chance
from crawlsched.simulation.figures.table import Row, Table

__all__ = ["COMPARABLE", "CONFERENCE", "FIGURES", "JOURNAL", "judged", "said"]

JOURNAL = "Avrachenkov, Patil, Thoppe (2022)"
CONFERENCE = "Avrachenkov, Patil, Thoppe (2020)"

#: "Comparable": errors differ by at most this share of the naive estimator's, which is what a plot with it can show.
COMPARABLE = 0.1
# "Far ahead": so many times closer.
_FAR = 2.0


@dataclass(frozen=True)
class _Comparison:
    """Estimators that see the same visits to a page."""

    change_rate: float
    crawl_rate: float
    estimators: Mapping[str, Mapping[str, float]]

    def run(self, settings: Settings, progress: Progress) -> Table:
        marks = marks_up_to(settings.steps)
        visits = random_visits(settings, self.change_rate, self.crawl_rate, marks[-1])
        banks = {
            name: estimator(name, settings.repetitions, self.crawl_rate, **parameters)
            for name, parameters in self.estimators.items()
        }
        estimates = follow(banks, visits, marks, progress)
        return Table(("visits", "estimator"), tuple(error_rows(estimates, self.change_rate, marks)))

    def draw(self, table: Table, canvas: Any) -> None:
        """Draw one run of each, the mean with 95 % of the estimates, and the error."""
        names = list(self.estimators)
        canvas.set_size_inches(13, 4)
        panels = canvas.subplots(1, 3)
        draw_lines(panels[0], table, TRAJECTORY, names)
        draw_lines(panels[1], table, ESTIMATE, names, band=True)
        draw_lines(panels[2], table, ERROR, names)
        for axes, title in zip(panels, ("(a) one run", "(b) mean, 95 % of the runs", "(c) error"), strict=True):
            axes.set_title(title)
            axes.set_ylim(0, 2.2 * self.change_rate if axes is not panels[2] else 1.1 * self.change_rate)
        for axes in panels[:2]:
            axes.axhline(self.change_rate, color="black", linestyle=":", label="Δ")
        panels[0].legend()


def said(row: Row) -> str:
    """Say a mean with its standard error, if it has one."""
    return f"{row.mean:.3g}" if isnan(row.standard_error) else f"{row.mean:.3g} ± {row.standard_error:.2g}"


def judged(held: bool | None, sentence: str, *needed: float) -> Claim:
    """Return a claim that cannot be told where a number that it needs is not known, as a spread in a single run."""
    return Claim(None if any(map(isnan, needed)) else held, sentence)


def all_beat_naive(names: tuple[str, ...]) -> Callable[[Table], list[Claim]]:
    """Return the claims that estimators are comparable to each other, and outperform the naive one."""

    def claims(table: Table) -> list[Claim]:
        errors = {name: last(table, ERROR, name) for name in ("Naive", *names)}
        found = ", ".join(f"{name} {said(row)}" for name, row in errors.items())
        ours = [errors[name].mean for name in names]
        return [
            Claim(
                max(ours) - min(ours) <= COMPARABLE * errors["Naive"].mean,
                f"{', '.join(names)} are comparable (errors differ by less than {COMPARABLE:g} of Naive's): {found}",
            ),
            Claim(
                max(ours) < errors["Naive"].mean,
                f"all of them outperform Naive: {max(ours):.3g} at most, Naive {said(errors['Naive'])}",
            ),
        ]

    return claims


def likelihood_is_best(table: Table) -> list[Claim]:
    """The error of the maximum likelihood estimate decays fastest, since it uses the intervals themselves."""
    errors = {name: last(table, ERROR, name) for name in ("MLE", "LLN", "SA", "SAM")}
    best = min(errors, key=lambda name: errors[name].mean)
    found = ", ".join(f"{name} {said(row)}" for name, row in errors.items())
    return [
        *all_beat_naive(("MLE", "LLN", "SA", "SAM"))(table),
        Claim(best == "MLE", f"the error of MLE is the smallest in the end: {found}"),
    ]


def visits_are_rare(table: Table) -> list[Claim]:
    """Figure 3: momentum and the law of large numbers do well; plain stochastic approximation hardly moves."""
    means = {name: last(table, ESTIMATE, name) for name in ("LLN", "SA", "SAM")}
    errors = {name: last(table, ERROR, name) for name in means}
    spreads = {name: last(table, SPREAD, name) for name in means}
    wide = f"LLN {said(spreads['LLN'])}, SAM {said(spreads['SAM'])}, SA {said(spreads['SA'])}"
    return [
        Claim(
            means["SA"].mean * _FAR < means["SAM"].mean and errors["LLN"].mean < errors["SA"].mean,
            f"LLN and SAM are far ahead of SA: mean estimates {said(means['LLN'])}, {said(means['SAM'])} and "
            f"{said(means['SA'])}",
        ),
        judged(
            spreads["SA"].mean < spreads["SAM"].mean < spreads["LLN"].mean,
            f"LLN varies more than SAM, and SA least: deviations {wide}",
            spreads["SA"].mean,
        ),
        Claim(
            errors["LLN"].mean < errors["SAM"].mean < errors["SA"].mean,
            f"LLN's error decays faster than SAM's: {said(errors['LLN'])} and {said(errors['SAM'])} (SA "
            f"{said(errors['SA'])})",
        ),
    ]


def visits_are_less_rare(table: Table) -> list[Claim]:
    """Figure 4: all are better than with rare visits; momentum is volatile, first ahead and then behind."""
    at = sorted({int(table.label(row, "visits")) for row in table.rows})
    error = {(name, k): table.one(ERROR, estimator=name, visits=k).mean for name in ("LLN", "SA", "SAM") for k in at}
    early = [k for k in at if 3 <= k <= 100]
    ahead = [k for k in early if error["SAM", k] < min(error["LLN", k], error["SA", k])]
    late = [k for k in at if k > 400]
    claims = [
        Claim(
            len(ahead) * 2 > len(early) if early else None,
            f"SAM's error drops fastest in the first visits: smallest at {len(ahead)} of {len(early)} marks from 3 to "
            "100 visits",
        )
    ]
    ahead_by = {k: _ahead(table, k) for k in late}
    behind = [k for k in late if ahead_by[k][0] > 0]
    told = [unless_chance(by > 0, by, chance) for by, chance in ahead_by.values()]
    last_ones = (said(table.one(ERROR, estimator=name, visits=at[-1])) for name in ("LLN", "SAM"))
    claims.append(
        Claim(
            # One mark where it is worse beyond chance is enough to tell.
            None if not told or (None in told and False not in told) else all(told),
            f"after 400 visits LLN is better: at {len(behind)} of {len(late)} marks, in the end "
            f"{' against '.join(last_ones)}",
        )
    )
    spreads = {name: last(table, SPREAD, name) for name in ("SA", "SAM")}
    wider = spreads["SAM"].mean - spreads["SA"].mean
    claims.append(
        judged(
            unless_chance(wider > 0, wider, hypot(spreads["SAM"].standard_error, spreads["SA"].standard_error)),
            f"SAM is volatile: deviation {said(spreads['SAM'])}, SA {said(spreads['SA'])}",
            spreads["SA"].mean,
        )
    )
    return claims


def _ahead(table: Table, visits: int) -> tuple[float, float]:
    """Return how much smaller LLN's error is than SAM's after so many visits, and the standard error of that."""
    lln, sam = (table.one(ERROR, estimator=name, visits=visits) for name in ("LLN", "SAM"))
    return sam.mean - lln.mean, hypot(sam.standard_error, lln.standard_error)


def _figure(
    name: str,
    paper: str,
    comparison: _Comparison,
    visits: int,
    repetitions: int,
    claims: Callable[[Table], list[Claim]],
) -> Figure:
    steps = {
        who: ", ".join(f"{parameter} {value:g}" for parameter, value in parameters.items())
        for who, parameters in comparison.estimators.items()
        if parameters
    }
    return Figure(
        name=name,
        paper=f"{paper}, Figure {name.rpartition('-')[2]}",
        title=f"estimators of the change rate at Δ = {comparison.change_rate:g}, p = {comparison.crawl_rate:g}",
        settings=Settings(repetitions, horizon=visits),
        run=comparison.run,
        claims=claims,
        draw=comparison.draw,
        fixed={
            "change rate Δ": f"{comparison.change_rate:g}",
            "crawl rate p": f"{comparison.crawl_rate:g}",
            "horizon counts": "visits of a run",
            **steps,
        },
    )


_PAPERS_STEPS = {"Naive": {}, "MLE": {}, "LLN": {"alpha": 1.0}, "SA": {"eta": 0.75}}
_RARE_STEPS = {"LLN": {"alpha": 1.0}, "SA": {"eta": 0.8}, "SAM": {"eta": 0.8, "beta": 0.5}}

FIGURES = (
    _figure(
        "online-estimators-2",
        JOURNAL,
        _Comparison(5.0, 3.0, {**_PAPERS_STEPS, "SAM": {"eta": 1.3, "beta": 0.75}}),
        500,
        100,
        likelihood_is_best,
    ),
    _figure("online-estimators-3", JOURNAL, _Comparison(500.0, 3.0, _RARE_STEPS), 1000, 100, visits_are_rare),
    _figure("online-estimators-4", JOURNAL, _Comparison(500.0, 50.0, _RARE_STEPS), 1000, 100, visits_are_less_rare),
    _figure(
        "optimal-freshness-1",
        CONFERENCE,
        _Comparison(5.0, 3.0, _PAPERS_STEPS),
        500,
        1000,
        all_beat_naive(("MLE", "LLN", "SA")),
    ),
)
