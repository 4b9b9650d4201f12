"""Figures 2 to 4 and 8 of the noisy-signals paper: accuracy of the policies by number of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import hypot
from types import MappingProxyType
from typing import Any

import numpy as np

from crawlsched.simulation.figures.distributions import Beta, Uniform
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings, unless_chance
from crawlsched.simulation.figures.instances import Instances
from crawlsched.simulation.figures.noisy_signals import (
    BANDWIDTH,
    BASELINE,
    HORIZON,
    PAPER,
    REPETITIONS,
    baseline,
    crawl_by,
    plus_minus,
)
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Row, Table
from crawlsched.simulation.history import History

__all__ = ["FIGURES", "SIGNALS", "TRUE_SIGNALS"]

#: Pages whose announcements are true but do not tell of every change (section 6.5).
TRUE_SIGNALS = Instances(recall=Beta(0.25, 0.25))
#: Pages whose announcements are not all true (section 6.6).
SIGNALS = Instances(recall=Beta(0.25, 0.25), false_signal_rate=Uniform(0.1, 0.6))
PAGES = (100, 200, 500, 750, 1000)
# The mean of a Poisson distribution, and how long announcements are discarded after a crawl, both in slots (1/R).
DELAY = 6.0
DISCARDED = 5.0
# What is less apart than this counts as on par.
PAR = 0.01
# Two policies this close may come out either way.
_SMALL = 0.001
# "Almost every case" leaves out at most so many.
_FEW = 0.1

Accuracies = Callable[[History, float, np.random.Generator], dict[str, float]]


@dataclass(frozen=True)
class _Accuracy:
    """How one of these figures is simulated.

    Attributes
    ----------
    instances : Instances
    accuracies : callable
        ``accuracies(history, horizon, rng)`` returns the accuracy of each policy.
    against : tuple of str
        What the policies are compared with: a difference on the same instances is known better than both its sides.
    """

    instances: Instances
    accuracies: Accuracies
    against: tuple[str, ...]

    def run(self, settings: Settings, progress: Progress) -> Table:
        def measure(n_pages: int, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
            assert settings.horizon is not None
            history = self.instances.draw(rng, n_pages, settings.horizon)
            found = {BASELINE: baseline(history), **self.accuracies(history, settings.horizon, rng)}
            numbers: dict[tuple[Label, ...], float] = {
                ("accuracy", n_pages, name): accuracy for name, accuracy in found.items()
            }
            for other in self.against:
                for name, accuracy in found.items():
                    if name not in (BASELINE, other):
                        numbers[f"accuracy less {other}", n_pages, name] = accuracy - found[other]
            return numbers

        return repeat(settings, ("pages", "policy"), settings.pages, measure, progress)


def _of(*policies: str) -> Accuracies:
    """Return a function that runs policies on the same history."""
    return lambda history, horizon, rng: {name: crawl_by(name, history, horizon).freshness for name in policies}


def _with_delay(history: History, horizon: float, rng: np.random.Generator) -> dict[str, float]:
    """Run GREEDY-NCIS with announcements at once and with delay, and with those soon after a crawl discarded."""
    assert history.signal_rows is not None
    assert history.signal_times is not None
    times = history.signal_times + rng.poisson(DELAY, history.signal_times.size) / BANDWIDTH
    by_time = np.lexsort((history.signal_rows, times))
    late = replace(history, signal_rows=history.signal_rows[by_time], signal_times=times[by_time])
    return {
        "GREEDY": crawl_by("GREEDY", history, horizon).freshness,
        NO_DELAY: crawl_by("GREEDY-NCIS", history, horizon).freshness,
        "GREEDY-NCIS": crawl_by("GREEDY-NCIS", late, horizon).freshness,
        # Announcements are heard at slots. Those until 5 slots after a crawl are discarded, and none of the 6th.
        "GREEDY-NCIS-D": crawl_by("GREEDY-NCIS", late, horizon, signal_delay=(DISCARDED + 0.5) / BANDWIDTH).freshness,
    }


NO_DELAY = "GREEDY-NCIS, no delay"


# -- what the paper claims


def _at(row: Row) -> str:
    pages, policy = row.labels
    return f"{policy} at m = {pages}, by {plus_minus(row)}"


def _slack(row: Row) -> float:
    return max(_SMALL, 2 * row.standard_error) if row.repetitions > 1 else _SMALL


def _on_par(table: Table) -> list[Claim]:
    worst = max(table.some(f"accuracy less {BASELINE}"), key=lambda row: abs(row.mean))
    return [
        Claim(
            abs(worst.mean) <= PAR,
            f"GREEDY and LDS are on par with the continuous optimum (within {PAR}); farthest off is {_at(worst)}",
        )
    ]


def _cis_above_greedy(table: Table) -> list[Claim]:
    least = min(table.some("accuracy less GREEDY", policy="GREEDY-CIS"), key=lambda row: row.mean)
    over = min(table.some(f"accuracy less {BASELINE}", policy="GREEDY-CIS"), key=lambda row: row.mean)
    return [
        Claim(least.mean > 0, f"GREEDY-CIS is above GREEDY at every m; least so {_at(least)}"),
        Claim(over.mean > 0, f"GREEDY-CIS is above the optimum without announcements; least so {_at(over)}"),
    ]


def _ncis_best(table: Table) -> list[Claim]:
    behind = table.some("accuracy less GREEDY-NCIS")
    nearest = max(behind, key=lambda row: row.mean - _slack(row))
    plain = [row for row in behind if row.labels[1] in ("GREEDY", "GREEDY-CIS")]
    gain = max(plain, key=lambda row: row.mean)
    approximations = [row for row in behind if "APPROX" in str(row.labels[1])]
    return [
        Claim(gain.mean < 0, f"GREEDY-NCIS is above GREEDY and GREEDY-CIS at every m; nearest comes {_at(gain)}"),
        Claim(
            nearest.mean <= _slack(nearest),
            f"nothing is above GREEDY-NCIS by more than chance; nearest comes {_at(nearest)}",
        ),
        _close_approximations(approximations),
        _far_approximations(approximations),
        _blind_trust(table),
        _better_almost_everywhere(table),
        _approximations_gain_nothing(table),
    ]


def _close_approximations(behind: list[Row]) -> Claim:
    loose = [row for row in behind if int(row.labels[0]) <= 500]
    if not loose:
        return Claim(None, "the approximations are close to GREEDY-NCIS at m up to 500, which is not among the cases")
    worst = min(loose, key=lambda row: row.mean)
    return Claim(
        worst.mean >= -PAR,
        f"the approximations are within {PAR} of GREEDY-NCIS at m up to 500; farthest off is {_at(worst)}",
    )


def _far_approximations(behind: list[Row]) -> Claim:
    tight = [row for row in behind if int(row.labels[0]) > 500]
    if not tight:
        return Claim(None, "GREEDY-NCIS is ahead of its approximations at m above 500, which is not among the cases")
    nearest = max(tight, key=lambda row: row.mean)
    return Claim(
        unless_chance(nearest.mean < 0, nearest.mean, nearest.standard_error),
        f"GREEDY-NCIS is ahead of its approximations at m above 500; nearest comes {_at(nearest)}",
    )


def _blind_trust(table: Table) -> Claim:
    tight = [row for row in table.some("accuracy less GREEDY", policy="GREEDY-CIS") if int(row.labels[0]) >= 500]
    if not tight:
        return Claim(None, "GREEDY-CIS is below GREEDY from m = 500 on, which is not among the cases")
    nearest = max(tight, key=lambda row: row.mean)
    held = unless_chance(nearest.mean < 0, nearest.mean, nearest.standard_error)
    return Claim(held, f"GREEDY-CIS is below GREEDY from m = 500 on; nearest comes {_at(nearest)}")


def _better_almost_everywhere(table: Table) -> Claim:
    """Compare GREEDY-NCIS and its approximations with both others, at every number of pages."""
    cases, worse, by_chance = 0, [], 0
    for pages in table.values("pages"):
        over_greedy = {str(row.labels[1]): row for row in table.some("accuracy less GREEDY", pages=pages)}
        trusting = over_greedy.pop("GREEDY-CIS")
        for name, gain in over_greedy.items():
            # Repetitions are of the same pages for all policies, so that this is no less than the true error.
            both = hypot(gain.standard_error, trusting.standard_error)
            for ahead, error in ((gain.mean, gain.standard_error), (gain.mean - trusting.mean, both)):
                cases += 1
                if ahead <= 0:
                    worse.append(f"{name} at m = {pages}")
                    by_chance += unless_chance(False, ahead, error) is None
    few = _FEW * cases
    return Claim(
        None if len(worse) - by_chance <= few < len(worse) else len(worse) <= few,
        f"GREEDY-NCIS and its approximations are above GREEDY and GREEDY-CIS in almost every case ({1 - _FEW:.0%}); in "
        f"{cases - len(worse)} of {cases}{', not ' + ', '.join(worse) if worse else ''}",
    )


def _approximations_gain_nothing(table: Table) -> Claim:
    most = max(int(row.labels[0]) for row in table.rows)
    if most <= 1000:
        return Claim(None, "the approximations gain nothing from announcements in the end, at m above 1000")
    rows = [row for row in table.some("accuracy less GREEDY", pages=most) if "APPROX" in str(row.labels[1])]
    nearest = max(rows, key=lambda row: row.mean)
    return Claim(
        nearest.mean <= _slack(nearest),
        f"the approximations gain nothing from announcements in the end; most has {_at(nearest)} over GREEDY",
    )


def _delay_matters_little(table: Table) -> list[Claim]:
    late = table.some(f"accuracy less {NO_DELAY}", policy="GREEDY-NCIS")
    first, last = min(late, key=lambda row: row.labels), max(late, key=lambda row: row.labels)
    mended = table.some(f"accuracy less {NO_DELAY}", policy="GREEDY-NCIS-D", pages=first.labels[0])[0]
    claims = [
        Claim(first.mean < 0, f"delay costs GREEDY-NCIS accuracy where the bandwidth is not tight: {_at(first)}"),
        Claim(
            abs(mended.mean) <= PAR and mended.mean > first.mean,
            f"discarding what comes soon after a crawl wins it back there (within {PAR}): {_at(mended)}",
        ),
    ]
    if first is last:
        return [*claims, Claim(None, "delay costs less where the bandwidth is tight, which takes two numbers of pages")]
    sentence = f"delay costs less where the bandwidth is tight: {_at(last)}"
    return [*claims, Claim(abs(last.mean) < abs(first.mean), sentence)]


# -- how they are drawn


def draw_panels(table: Table, canvas: Any) -> None:
    """Draw a panel for each number of pages, the baseline as a red line and the one without delay as a blue one."""
    pages = table.values("pages")
    lines = {BASELINE: "red", NO_DELAY: "blue"}
    policies = [str(name) for name in table.values("policy") if name not in lines]
    columns = min(len(pages), 3)
    rows = -(-len(pages) // columns)
    canvas.set_size_inches(1.2 + max(columns * (0.9 + 0.55 * len(policies)), 4), 1 + 2.8 * rows)
    for panel, n_pages in enumerate(pages, 1):
        axes = canvas.add_subplot(rows, columns, panel)
        for name, color in lines.items():
            for row in table.some("accuracy", pages=n_pages, policy=name):
                axes.axhline(row.mean, color=color, label=name)
        for place, name in enumerate(policies):
            row = table.one("accuracy", pages=n_pages, policy=name)
            axes.errorbar([place], [row.mean], [np.nan_to_num(row.standard_error)], fmt="o", capsize=4)
        axes.set_title(f"m = {n_pages}")
        axes.set_xlim(-0.5, len(policies) - 0.5)
        axes.set_xticks(range(len(policies)), policies, rotation=30, ha="right", fontsize=8)
        axes.grid(visible=True, axis="y", alpha=0.3)
        if panel % columns == 1 or columns == 1:
            axes.set_ylabel("accuracy")
    handles, labels = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=2)


def _figure(
    number: int,
    title: str,
    simulated: _Accuracy,
    claims: Callable[[Table], list[Claim]],
    pages: tuple[int, ...] = PAGES,
    fixed: Mapping[str, str] = MappingProxyType({}),
) -> Figure:
    return Figure(
        name=f"noisy-signals-{number}",
        paper=f"{PAPER}, Figure {number}",
        title=title,
        settings=Settings(REPETITIONS, pages, HORIZON),
        run=simulated.run,
        claims=claims,
        draw=draw_panels,
        fixed={"bandwidth R": f"{BANDWIDTH:g}", **simulated.instances.words(), **fixed},
    )


_POLICIES_4 = ("GREEDY", "GREEDY-CIS", "GREEDY-NCIS", "G-NCIS-APPROX-1", "G-NCIS-APPROX-2")

FIGURES = (
    _figure(
        2,
        "accuracy of GREEDY and LDS without announcements",
        _Accuracy(Instances(), _of("GREEDY", "LDS"), (BASELINE,)),
        _on_par,
    ),
    _figure(
        3,
        "accuracy of GREEDY and GREEDY-CIS where some changes are announced and no announcement is false",
        _Accuracy(TRUE_SIGNALS, _of("GREEDY", "GREEDY-CIS"), (BASELINE, "GREEDY")),
        _cis_above_greedy,
    ),
    _figure(
        4,
        "accuracy of all policies where some announcements are false",
        _Accuracy(SIGNALS, _of(*_POLICIES_4), (BASELINE, "GREEDY", "GREEDY-NCIS")),
        _ncis_best,
        (*PAGES, 10000),
    ),
    _figure(
        8,
        "accuracy of GREEDY-NCIS with announcements that come late, and of GREEDY-NCIS-D which discards some",
        _Accuracy(SIGNALS, _with_delay, (BASELINE, NO_DELAY)),
        _delay_matters_little,
        fixed={"delays": f"Poisson({DELAY:g}) slots", "discarded after a crawl for": f"{DISCARDED:g} slots"},
    ),
)
