"""Figures 1 to 5 of the online estimators' journal paper, and 1 and 3 of the conference paper: who is closest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import hypot, inf, isnan, nan

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.estimating import (
    CONFERENCE,
    ERROR,
    ESTIMATE,
    JOURNAL,
    SPREAD,
    TRAJECTORY,
    Steps,
    Visits,
    at_the_end,
    bank,
    error_rows,
    follow,
    generators,
    listed,
    marks_up_to,
    random_visits,
    words_of,
)
from crawlsched.simulation.figures.figure import Claim, Claims, Figure, FigureError, Progress, Settings, unless_chance
from crawlsched.simulation.figures.table import Label, Row, Table, said, summarize
from crawlsched.simulation.reading import read_changes

__all__ = ["FIGURES"]

# "Comparable": errors differ by at most this share of the naive estimator's, which is what a plot with it can show.
_COMPARABLE = 0.1
# "Far ahead": so many times closer.
_FAR = 2.0


# -- figures 2 to 4, and 1 of the conference paper: estimators that see the same visits to a page


def _judged(held: bool | None, sentence: str, needed: float) -> Claim:
    """Return a claim that cannot be told where a number that it needs is not known, as a spread in a single run."""
    return Claim(None if isnan(needed) else held, sentence)


def _all_beat_naive(table: Table) -> Claims:
    """The estimators are comparable to each other, and outperform the naive one."""
    errors = at_the_end(table, ERROR)
    naive, *ours = (errors[name].mean for name in errors)
    names = ", ".join(list(errors)[1:])
    words = f"{names} are comparable (errors differ by less than {_COMPARABLE:g} of Naive's): {listed(errors)}"
    yield Claim(max(ours) - min(ours) <= _COMPARABLE * naive, words)
    words = f"all of them outperform Naive: {max(ours):.3g} at most, Naive {said(errors['Naive'])}"
    yield Claim(max(ours) < naive, words)


def _likelihood_is_best(table: Table) -> Claims:
    """The error of the maximum likelihood estimate decays fastest, since it uses the intervals themselves."""
    yield from _all_beat_naive(table)
    errors = at_the_end(table, ERROR, ("MLE", "LLN", "SA", "SAM"))
    best = min(errors, key=lambda name: errors[name].mean)
    yield Claim(best == "MLE", f"the error of MLE is the smallest in the end: {listed(errors)}")


def _visits_are_rare(table: Table) -> Claims:
    """Figure 3: momentum and the law of large numbers do well; plain stochastic approximation hardly moves."""
    means, errors, spreads = (at_the_end(table, quantity) for quantity in (ESTIMATE, ERROR, SPREAD))
    held = means["SA"].mean * _FAR < means["SAM"].mean and errors["LLN"].mean < errors["SA"].mean
    yield Claim(held, f"LLN and SAM are far ahead of SA: mean estimates {listed(means)}")
    widths = {name: row.mean for name, row in spreads.items()}
    words = f"LLN varies more than SAM, and SA least: deviations {listed(spreads)}"
    yield _judged(widths["SA"] < widths["SAM"] < widths["LLN"], words, widths["SA"])
    held = errors["LLN"].mean < errors["SAM"].mean < errors["SA"].mean
    yield Claim(held, f"LLN's error decays faster than SAM's: {listed(errors)}")


def _visits_are_less_rare(table: Table) -> Claims:
    """Figure 4: all are better than with rare visits; momentum is volatile, first ahead and then behind."""
    at = sorted({int(table.label(row, "visits")) for row in table.rows})
    error = {(name, k): table.one(ERROR, estimator=name, visits=k) for name in ("LLN", "SA", "SAM") for k in at}
    early, late = [k for k in at if 3 <= k <= 100], [k for k in at if k > 400]
    ahead = [k for k in early if error["SAM", k].mean < min(error["LLN", k].mean, error["SA", k].mean)]
    yield Claim(
        len(ahead) * 2 > len(early) if early else None,
        f"SAM's error drops fastest in the first visits: smallest at {len(ahead)} of {len(early)} marks from 3 to "
        "100 visits",
    )
    behind = [_difference(error["SAM", k], error["LLN", k]) for k in late]
    told = [unless_chance(by > 0, by, chance) for by, chance in behind]
    yield Claim(
        # One mark where it is worse beyond chance is enough to tell.
        None if not told or (None in told and False not in told) else all(told),
        f"after 400 visits LLN is better: at {sum(by > 0 for by, _ in behind)} of {len(late)} marks, in the end "
        f"{said(error['LLN', at[-1]])} against {said(error['SAM', at[-1]])}",
    )
    spreads = at_the_end(table, SPREAD, ("SAM", "SA"))
    wider, chance = _difference(*spreads.values())
    yield _judged(unless_chance(wider > 0, wider, chance), f"SAM is volatile: deviation {listed(spreads)}", wider)


def _difference(one: Row, other: Row) -> tuple[float, float]:
    return one.mean - other.mean, hypot(one.standard_error, other.standard_error)


def _comparison(
    name: str,
    authors: str,
    rates: tuple[float, float],
    steps: Steps,
    size: tuple[int, int],
    claimed: Callable[[Table], Claims],
) -> Figure:
    change_rate, crawl_rate = rates
    visits, repetitions = size

    def run(settings: Settings, progress: Progress) -> Table:
        marks = marks_up_to(settings.steps)
        seen = random_visits(settings, change_rate, crawl_rate, marks[-1])
        banks = {who: bank(who, settings.repetitions, crawl_rate, chosen) for who, chosen in steps.items()}
        return Table(("visits", "estimator"), tuple(error_rows(follow(banks, seen, marks), change_rate, marks)))

    high = {"ylim": (0, 2.2 * change_rate)}
    panels = (
        Panel({TRAJECTORY: "-"}, "visits", ("estimator",), level=change_rate, axes={"title": "(a) one run", **high}),
        Panel(
            {ESTIMATE: "-"},
            "visits",
            ("estimator",),
            spread=SPREAD,
            level=change_rate,
            axes={"title": "(b) mean, 95 % of the runs", **high},
        ),
        Panel({ERROR: "-"}, "visits", ("estimator",), axes={"title": "(c) error", "ylim": (0, 1.1 * change_rate)}),
    )
    title = f"estimators of the change rate at Δ = {change_rate:g}, p = {crawl_rate:g}"
    fixed = {**_words(change_rate, crawl_rate), **words_of(steps)}
    return Figure(name, authors, title, Settings(repetitions, horizon=visits), run, claimed, drawn(*panels), fixed)


def _words(change_rate: float, crawl_rate: float) -> dict[str, str]:
    return {"change rate Δ": f"{change_rate:g}", "crawl rate p": f"{crawl_rate:g}", "horizon counts": "visits of a run"}


# -- figure 5, and 3 of the conference paper: what the step sizes do

# Δ of the journal paper's figure.
_FAST = 500.0
# An estimator has reached its limit when its mean is this near to it.
_NEAR = 0.1
#: The estimator of a panel, and its parameters by what they are called.
Choices = tuple[str, Steps]


def _choices(parameter: str, symbol: str, values: tuple[float, ...], **others: float) -> Steps:
    return {f"{symbol} = {value:g}": {parameter: value, **others} for value in values}


_ALPHAS: Choices = ("LLN", {"α = 1": {"alpha": 1.0}, "α = √k": {"alpha": "sqrt k"}, "α = k^0.75": {"alpha": "k^0.75"}})
_ETAS: Choices = ("SA", _choices("eta", "η", (0.5, 0.75, 1.0)))


def _largest_alpha_is_slowest(table: Table) -> Claim:
    errors = at_the_end(table, ERROR, panel="a")
    worst = max(errors, key=lambda name: errors[name].mean)
    words = f"(a) LLN with α_k = k^0.75 is the worst: errors in the end {listed(errors)}"
    return Claim(worst == "α = k^0.75", words)


def _journal_claims(table: Table) -> Claims:
    yield _largest_alpha_is_slowest(table)
    plain, beta, eta = (at_the_end(table, ERROR, panel=panel) for panel in "bcd")
    best = min(plain, key=lambda name: plain[name].mean)
    yield Claim(best == "η = 0.5", f"(b) SA is best with η = 0.5: errors in the end {listed(plain)}")
    spread = at_the_end(table, SPREAD, panel="c")
    by_beta = [row.mean for row in spread.values()]
    arrived = {name: _arrival(table, name) for name in beta}
    there = ", ".join(f"{name}: {'not yet' if visits == inf else f'{visits:g}'}" for name, visits in arrived.items())
    yield _judged(
        min(arrived, key=lambda name: arrived[name]) == "β = 0.4" and by_beta == sorted(by_beta, reverse=True),
        f"(c) SAM with β = 0.4 reaches the limit first, and fluctuates most, and ever less as β grows: visits "
        f"until the mean is within {_NEAR:.0%} {there}; deviations in the end {listed(spread)}",
        by_beta[0],
    )
    best = min(beta, key=lambda name: beta[name].mean)
    yield Claim(best == "β = 0.6", f"(c) SAM is best with β = 0.6: errors in the end {listed(beta)}")
    first, *_, last = eta
    marks = sorted({int(table.label(row, "visits")) for row in table.rows})
    early = next(mark for mark in marks if mark * 10 >= marks[-1])
    fast, slow = (table.one(ERROR, panel="d", visits=early, estimator=name).mean for name in (last, first))
    yield Claim(
        fast < slow,
        f"(d) a larger η makes SAM converge faster: error after {early} visits {fast:.5g} with {last} and {slow:.5g} "
        f"with {first}",
    )
    rough, smooth = (_late_spread(table, name, marks[-1] / 2) for name in (last, first))
    words = f"(d) and fluctuate more: mean deviation over the second half {rough:.4g} ({last}), {smooth:.4g} ({first})"
    yield _judged(rough > smooth, words, rough)


def _late_spread(table: Table, name: str, half: float) -> float:
    rows = table.some(SPREAD, panel="d", estimator=name)
    late = [row.mean for row in rows if float(table.label(row, "visits")) >= half]
    return sum(late) / len(late)


def _arrival(table: Table, name: str) -> float:
    """Return the number of visits after which the mean estimate is first near to Δ; infinite if it never is."""
    rows = table.some(ESTIMATE, panel="c", estimator=name)
    near = [float(table.label(row, "visits")) for row in rows if abs(row.mean / _FAST - 1) <= _NEAR]
    return min(near, default=inf)


def _conference_claims(table: Table) -> Claims:
    yield _largest_alpha_is_slowest(table)
    errors = at_the_end(table, ERROR, panel="b")
    small, middle, large = (errors[name].mean for name in ("η = 0.5", "η = 0.75", "η = 1"))
    yield Claim(middle < small, f"(b) SA is better with η = 0.75 than with 0.5: errors in the end {listed(errors)}")
    yield Claim(large > middle, f"(b) and worse with η = 1 than with 0.75: errors in the end {listed(errors)}")


def _step_sizes(
    name: str,
    authors: str,
    rates: tuple[float, float],
    panels: Mapping[str, Choices],
    visits: int,
    claimed: Callable[[Table], Claims],
) -> Figure:
    change_rate, crawl_rate = rates

    def run(settings: Settings, progress: Progress) -> Table:
        marks = marks_up_to(settings.steps)
        seen = random_visits(settings, change_rate, crawl_rate, marks[-1])
        rows: list[Row] = []
        for number, (panel, (kind, steps)) in enumerate(panels.items(), 1):
            banks = {who: bank(kind, settings.repetitions, crawl_rate, chosen) for who, chosen in steps.items()}
            rows += error_rows(follow(banks, seen, marks), change_rate, marks, (panel,))
            progress(number, len(panels))
        return Table(("panel", "visits", "estimator"), tuple(rows))

    drawings = [
        Panel(
            {quantity: "-"},
            "visits",
            ("estimator",),
            where={"panel": panel},
            level=change_rate if quantity == TRAJECTORY else None,
            axes={"title": f"({panel}) {kind}", "ylim": (0, high * change_rate), "ylabel": ylabel},
        )
        for quantity, high, ylabel in ((TRAJECTORY, 2.2, "estimate in one run"), (ERROR, 1.1, ERROR))
        for panel, (kind, _) in panels.items()
    ]
    chosen = {f"({panel}) {kind}": "; ".join(steps) for panel, (kind, steps) in panels.items()}
    return Figure(
        name,
        authors,
        f"step sizes at Δ = {change_rate:g}, p = {crawl_rate:g}",
        Settings(100, horizon=visits),
        run,
        claimed,
        drawn(*drawings, columns=len(panels)),
        {**_words(change_rate, crawl_rate), **chosen},
    )


# -- figure 1: an often edited page, from its history or one generated like it

# Wikipedia's "Template talk: Did you know", April to August 2020: edits, and edits an hour.
_CHANGES = 4043
_CHANGE_RATE = 1.1098
_OFTEN, _SELDOM = 0.5, 0.1
_QUANTILES = np.arange(0.02, 1.0, 0.02)
_QUANTILE = "quantile of the times between changes"
_EDITED_STEPS: Steps = {
    "Naive": {},
    "MLE": {},
    "LLN": {"alpha": 1.0},
    "SA": {"eta": 0.75},
    "SAM": {"eta": 1.2, "beta": 0.6},
}
# A straight line is one of this correlation.
_STRAIGHT = 0.99


def _traces(settings: Settings) -> tuple[list[FloatArray], float]:
    """Return a page's changes in each repetition, hours, and their rate.

    They are the history of the page that changes most in a file; without one, a history is generated for each.
    """
    if settings.history is None:
        drawn_times = [np.cumsum(rng.exponential(1 / _CHANGE_RATE, _CHANGES)) for rng in generators(settings)]
        return drawn_times, _CHANGE_RATE
    pages, times = read_changes(settings.history)
    if not pages.size:
        raise FigureError(f"{settings.history} must hold changes (page,time) of a page, but there are none.")
    named, counts = np.unique(pages, return_counts=True)
    hours = np.unique(times[pages == named[counts.argmax()]]) / 3600.0
    if hours.size < 100:
        raise FigureError(f"{settings.history} must hold a page with at least 100 changes, got {hours.size}.")
    hours -= hours[0]
    return [hours[1:]] * settings.repetitions, (hours.size - 1) / hours[-1]


def _visit(traces: list[FloatArray], settings: Settings, crawl_rate: float, case: int) -> Visits:
    """Visit the page at random for as long as its history is."""
    elapsed, changed = [], []
    for times, rng in zip(traces, generators(settings, case), strict=True):
        visits = np.sort(rng.random(rng.poisson(crawl_rate * times[-1])) * times[-1])
        elapsed.append(np.diff(visits, prepend=0.0))
        changed.append(np.diff(times.searchsorted(visits, side="right"), prepend=0) > 0)
    number = np.array([gaps.size for gaps in elapsed])
    padded = (number.size, int(number.max(initial=1)))
    found = Visits(np.ones(padded), np.zeros(padded, bool), number)
    for row, gaps in enumerate(elapsed):
        found.elapsed[row, : gaps.size], found.changed[row, : gaps.size] = gaps, changed[row]
    return found


def _edited_page(settings: Settings, progress: Progress) -> Table:
    traces, change_rate = _traces(settings)
    rows = _quantile_rows(traces, change_rate)
    for case, rate in enumerate((_OFTEN, _SELDOM), 1):
        crawl_rate = rate * change_rate / _CHANGE_RATE
        visits = _visit(traces, settings, crawl_rate, case)
        marks = marks_up_to(visits.elapsed.shape[1])
        banks = {name: bank(name, settings.repetitions, crawl_rate, steps) for name, steps in _EDITED_STEPS.items()}
        rows += error_rows(follow(banks, visits, marks), change_rate, marks, (rate,))
        progress(case, 2)
    return Table(("p", "visits", "estimator"), tuple(rows))


def _quantile_rows(traces: list[FloatArray], change_rate: float) -> list[Row]:
    """Compare the times between changes with an exponential distribution of their rate: a Q-Q plot."""
    found = np.array([np.quantile(np.diff(times, prepend=0.0), _QUANTILES) for times in traces])
    measured: dict[tuple[Label, ...], list[float]] = {}
    rows = []
    for column, share in enumerate(_QUANTILES.tolist()):
        place: tuple[Label, ...] = ("", -np.log1p(-share) / change_rate, "")
        measured[_QUANTILE, *place] = found[:, column].tolist()
        rows.append(Row(TRAJECTORY, place, float(found[0, column]), nan, 1))
    return [*summarize(measured), *rows]


def _edited_claims(table: Table) -> Claims:
    rows = table.some(TRAJECTORY, p="")
    theory, quantiles = [float(table.label(row, "visits")) for row in rows], [row.mean for row in rows]
    slope = np.polyfit(theory, quantiles, 1)[0]
    # Changes at regular intervals have one quantile only, and no correlation.
    straight = np.corrcoef(theory, quantiles)[0, 1] if np.ptp(quantiles) > 1e-9 * max(quantiles) else 0.0
    words = f"(a) the quantiles lie on the diagonal: slope {slope:.3f}, correlation {straight:.4f}"
    yield Claim(bool(straight > _STRAIGHT and 0.9 < slope < 1.1), words)
    often, seldom = (at_the_end(table, ERROR, _EDITED_STEPS, p=rate) for rate in (_OFTEN, _SELDOM))
    naive, *ours = (row.mean for row in often.values())
    yield Claim(
        max(ours) - min(ours) <= _COMPARABLE * naive > _COMPARABLE * max(ours),
        f"(b) at p = {_OFTEN} MLE, LLN, SA and SAM are comparable and outperform Naive: errors {listed(often)}",
    )
    better, worse = (
        max(seldom[name].mean for name in ("SAM", "MLE")),
        min(seldom[name].mean for name in ("LLN", "SA")),
    )
    yield Claim(better < worse, f"(c) at p = {_SELDOM} SAM and MLE are better than LLN and SA: errors {listed(seldom)}")


_QUANTILE_AXES = {
    "title": "(a) Q-Q",
    "xlabel": "exponential quantile, hours",
    "ylabel": "quantile of the changes, hours",
}
_EDITED_PANELS = [
    Panel(
        {TRAJECTORY: "-"},
        "visits",
        ("estimator",),
        where={"p": rate},
        axes={"title": f"({letter}) p = {rate}, one run", "ylabel": "changes an hour", "ylim": (0, 2.5 * _CHANGE_RATE)},
    )
    for letter, rate in (("b", _OFTEN), ("c", _SELDOM))
]

_PAPERS_STEPS: Steps = {"Naive": {}, "MLE": {}, "LLN": {"alpha": 1.0}, "SA": {"eta": 0.75}}
_RARE_STEPS: Steps = {"LLN": {"alpha": 1.0}, "SA": {"eta": 0.8}, "SAM": {"eta": 0.8, "beta": 0.5}}

FIGURES = (
    Figure(
        "online-estimators-1",
        JOURNAL,
        "estimators on a page that is edited often",
        Settings(100),
        _edited_page,
        _edited_claims,
        drawn(Panel({TRAJECTORY: "o"}, "visits", where={"p": ""}, axes=_QUANTILE_AXES), *_EDITED_PANELS),
        {
            "history": f"{_CHANGES} changes at {_CHANGE_RATE} an hour, unless one is given",
            "crawl rates p": "0.5 and 0.1 an hour (0.45 and 0.09 of the change rate of a given history)",
            **words_of(_EDITED_STEPS),
        },
        takes_history=True,
    ),
    _comparison(
        "online-estimators-2",
        JOURNAL,
        (5.0, 3.0),
        {**_PAPERS_STEPS, "SAM": {"eta": 1.3, "beta": 0.75}},
        (500, 100),
        _likelihood_is_best,
    ),
    _comparison("online-estimators-3", JOURNAL, (_FAST, 3.0), _RARE_STEPS, (1000, 100), _visits_are_rare),
    _comparison("online-estimators-4", JOURNAL, (_FAST, 50.0), _RARE_STEPS, (1000, 100), _visits_are_less_rare),
    _step_sizes(
        "online-estimators-5",
        JOURNAL,
        (_FAST, 10.0),
        {
            "a": _ALPHAS,
            "b": _ETAS,
            "c": ("SAM", _choices("beta", "β", (0.4, 0.5, 0.6, 0.7), eta=0.8)),
            "d": ("SAM", _choices("eta", "η", (0.7, 0.8, 1.0, 1.2), beta=0.6)),
        },
        50_000,
        _journal_claims,
    ),
    _comparison("optimal-freshness-1", CONFERENCE, (5.0, 3.0), _PAPERS_STEPS, (500, 1000), _all_beat_naive),
    _step_sizes(
        "optimal-freshness-3", CONFERENCE, (1000.0, 200.0), {"a": _ALPHAS, "b": _ETAS}, 1000, _conference_claims
    ),
)
