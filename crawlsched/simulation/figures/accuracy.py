"""Figures 2 to 5 and 8 of the noisy-signals paper: accuracy of the policies by number of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import hypot

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Claim, Claims, Figure, Run, Settings, repeated, unless_chance
from crawlsched.simulation.figures.instances import (
    BANDWIDTH,
    BASELINE,
    HORIZON,
    PAPER,
    REPETITIONS,
    Distribution,
    Instances,
    baseline,
    beta,
    crawl_by,
    history_of,
    known,
    lognormal,
    uniform,
)
from crawlsched.simulation.figures.table import Numbers, Row, Table, said
from crawlsched.simulation.history import History

__all__ = ["FIGURES", "SIGNALS", "TRUE_SIGNALS", "corrupted", "draw_labelled"]

#: Pages whose announcements are true but do not tell of every change (section 6.5).
TRUE_SIGNALS = Instances(recall=beta(0.25, 0.25))
#: Pages whose announcements are not all true (section 6.6).
SIGNALS = Instances(recall=beta(0.25, 0.25), false_signal_rate=uniform(0.1, 0.6))
PAGES = (100, 200, 500, 750, 1000)
POLICIES_4 = ("GREEDY", "GREEDY-CIS", "GREEDY-NCIS", "G-NCIS-APPROX-1", "G-NCIS-APPROX-2")
# The mean of a Poisson distribution, and how long announcements are discarded after a crawl, both in slots (1/R).
DELAY = 6.0
DISCARDED = 5.0
NO_DELAY = "GREEDY-NCIS, no delay"
# What is less apart than this counts as on par, or as close.
PAR = 0.01
# Two policies this close may come out either way.
_SMALL = 0.001
# "Almost every case" leaves out at most so many.
_FEW = 0.1

Accuracies = Callable[[History, float, np.random.Generator], dict[str, float]]
_say = partial(said, mean=".4f", error=".4f")


def _simulated(instances: Instances, accuracies: Accuracies, against: tuple[str, ...]) -> Run:
    """Simulate policies on the same instances; a difference on these is known better than both its sides."""

    def measure(settings: Settings, n_pages: int, rng: np.random.Generator, repetition: int) -> Numbers:
        history = instances.draw(rng, n_pages, settings.time)
        found = {BASELINE: baseline(history), **accuracies(history, settings.time, rng)}
        numbers: Numbers = {("accuracy", n_pages, name): accuracy for name, accuracy in found.items()}
        for other in against:
            for name, accuracy in found.items():
                if name not in (BASELINE, other):
                    numbers[f"accuracy less {other}", n_pages, name] = accuracy - found[other]
        return numbers

    return repeated(("pages", "policy"), measure)


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


# -- what the paper claims of figures 2, 3, 4 and 8


def _at(row: Row) -> str:
    pages, policy = row.labels
    return f"{policy} at m = {pages}, by {_say(row)}"


def _lowest(rows: list[Row]) -> Row:
    return min(rows, key=lambda row: row.mean)


def _highest(rows: list[Row]) -> Row:
    return max(rows, key=lambda row: row.mean)


def _slack(row: Row) -> float:
    return max(_SMALL, 2 * row.standard_error) if row.repetitions > 1 else _SMALL


def _on_par(table: Table) -> Claims:
    worst = max(table.some(f"accuracy less {BASELINE}"), key=lambda row: abs(row.mean))
    words = f"GREEDY and LDS are on par with the continuous optimum (within {PAR}); farthest off is {_at(worst)}"
    yield Claim(abs(worst.mean) <= PAR, words)


def _cis_above_greedy(table: Table) -> Claims:
    least = _lowest(table.some("accuracy less GREEDY", policy="GREEDY-CIS"))
    over = _lowest(table.some(f"accuracy less {BASELINE}", policy="GREEDY-CIS"))
    yield Claim(least.mean > 0, f"GREEDY-CIS is above GREEDY at every m; least so {_at(least)}")
    yield Claim(over.mean > 0, f"GREEDY-CIS is above the optimum without announcements; least so {_at(over)}")


def _ncis_best(table: Table) -> Claims:
    behind = table.some("accuracy less GREEDY-NCIS")
    plain = _highest([row for row in behind if row.labels[1] in ("GREEDY", "GREEDY-CIS")])
    yield Claim(plain.mean < 0, f"GREEDY-NCIS is above GREEDY and GREEDY-CIS at every m; nearest comes {_at(plain)}")
    nearest = max(behind, key=lambda row: row.mean - _slack(row))
    words = f"nothing is above GREEDY-NCIS by more than chance; nearest comes {_at(nearest)}"
    yield Claim(nearest.mean <= _slack(nearest), words)
    approximations = [row for row in behind if "APPROX" in str(row.labels[1])]
    loose = [row for row in approximations if int(row.labels[0]) <= 500]
    words = f"the approximations are within {PAR} of GREEDY-NCIS at m up to 500"
    if loose:
        worst = _lowest(loose)
        yield Claim(worst.mean >= -PAR, f"{words}; farthest off is {_at(worst)}")
    else:
        yield Claim(None, f"{words}, which is not among the cases")
    tight = [row for row in approximations if int(row.labels[0]) > 500]
    yield _below(tight, "the approximations are behind GREEDY-NCIS at m above 500")
    trusting = [row for row in table.some("accuracy less GREEDY", policy="GREEDY-CIS") if int(row.labels[0]) >= 500]
    yield _below(trusting, "GREEDY-CIS is below GREEDY from m = 500 on")
    yield _better_almost_everywhere(table)
    yield _approximations_gain_nothing(table)


def _below(rows: list[Row], words: str) -> Claim:
    if not rows:
        return Claim(None, f"{words}, which is not among the cases")
    nearest = _highest(rows)
    held = unless_chance(nearest.mean < 0, nearest.mean, nearest.standard_error)
    return Claim(held, f"{words}; nearest comes {_at(nearest)}")


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
    words = "the approximations gain nothing from announcements in the end"
    most = max(int(row.labels[0]) for row in table.rows)
    if most <= 1000:
        return Claim(None, f"{words}, at m above 1000")
    rows = [row for row in table.some("accuracy less GREEDY", pages=most) if "APPROX" in str(row.labels[1])]
    nearest = _highest(rows)
    return Claim(nearest.mean <= _slack(nearest), f"{words}; most has {_at(nearest)} over GREEDY")


def _delay_matters_little(table: Table) -> Claims:
    late = table.some(f"accuracy less {NO_DELAY}", policy="GREEDY-NCIS")
    first, last = min(late, key=lambda row: row.labels), max(late, key=lambda row: row.labels)
    mended = table.some(f"accuracy less {NO_DELAY}", policy="GREEDY-NCIS-D", pages=first.labels[0])[0]
    yield Claim(first.mean < 0, f"delay costs GREEDY-NCIS accuracy where the bandwidth is not tight: {_at(first)}")
    held = abs(mended.mean) <= PAR and mended.mean > first.mean
    yield Claim(held, f"discarding what comes soon after a crawl wins it back there (within {PAR}): {_at(mended)}")
    if first is last:
        yield Claim(None, "delay costs less where the bandwidth is tight, which takes two numbers of pages")
    else:
        words = f"delay costs less where the bandwidth is tight: {_at(last)}"
        yield Claim(abs(last.mean) < abs(first.mean), words)


def _figure(
    number: int,
    title: str,
    instances: Instances,
    accuracies: Accuracies,
    against: tuple[str, ...],
    claimed: Callable[[Table], Claims],
    pages: tuple[int, ...] = PAGES,
    fixed: Mapping[str, str] | None = None,
) -> Figure:
    dots = Panel({"accuracy": "o"}, "policy", each="pages", levels=(BASELINE, NO_DELAY), axes={"xlabel": ""})
    words = {"bandwidth R": f"{BANDWIDTH:g}", **instances.words(), **(fixed or {})}
    run, settings = _simulated(instances, accuracies, against), Settings(REPETITIONS, pages, HORIZON)
    return Figure(f"noisy-signals-{number}", PAPER, title, settings, run, claimed, drawn(dots), words)


# -- figure 5: what wrong numbers for precision and recall cost

# Section 6.7: 5000 crawls a time step for 100,000 pages, 200 time steps, 10 repetitions.
CRAWLS_PER_PAGE = 0.05
CORRUPTIONS = (0.0, 0.1, 0.2)
POLICIES_5 = ("GREEDY", "GREEDY-CIS+", "GREEDY-NCIS")
# Pages that announce well: their number among all, and what they weigh (section 2: 26.4 % of the importance).
LABELLED, LABELLED_WEIGHT = 0.05, 0.264
# The paper's data cannot be had. Its upper twentieths begin where GREEDY-CIS+ has its thresholds: 0.7 and 0.6.
PRECISION, RECALL = beta(1.5, 3.0), beta(1.0, 3.2)
CHANGE_RATE, IMPORTANCE = lognormal(0.05, 1.5), lognormal(1.0, 1.0)
# Draws that stand for the paper's histograms.
_SAMPLE = 100_000
LOST = "accuracy lost by corruption"


def draw_labelled(rng: np.random.Generator, n_pages: int, horizon: float) -> History:
    """Draw pages, of which a twentieth announces well, and what happens to them."""
    labelled = np.zeros(n_pages, bool)
    labelled[rng.permutation(n_pages)[: round(LABELLED * n_pages)]] = True
    precision, recall = (_split(rng, quality, labelled) for quality in (PRECISION, RECALL))
    importance = IMPORTANCE.draw(rng, n_pages)
    change_rate = CHANGE_RATE.draw(rng, n_pages)
    if labelled.any() and not labelled.all():
        odds = LABELLED_WEIGHT / (1.0 - LABELLED_WEIGHT)
        importance[labelled] *= odds * importance[~labelled].sum() / importance[labelled].sum()
    false = _false_signal_rate(change_rate, precision, recall)
    return history_of(rng, importance, change_rate, recall, false, horizon)


def _split(rng: np.random.Generator, quality: Distribution, labelled: BoolArray) -> FloatArray:
    """Draw from the highest twentieth for pages that are labelled, from all below it for the others."""
    sample = np.sort(quality.draw(rng, _SAMPLE))
    cut = round((1.0 - LABELLED) * _SAMPLE)
    numbers: FloatArray = rng.choice(sample[:cut], labelled.size)
    numbers[labelled] = rng.choice(sample[cut:], int(labelled.sum()))
    return numbers


def _false_signal_rate(change_rate: FloatArray, precision: FloatArray, recall: FloatArray) -> FloatArray:
    """Return false announcements per time step: precision is λΔ/(λΔ + ν)."""
    rates: FloatArray = recall * change_rate * (1.0 - precision) / precision
    return rates


def corrupted(history: History, share: float, noise: FloatArray) -> History:
    """Return the same history of pages whose precision and recall are known wrongly.

    Parameters
    ----------
    history : History
    share : float
        p: how much noise is mixed in.
    noise : ndarray, shape (2, n)
        ξ for precision and for recall, from 0 to 1.

    Notes
    -----
    (1 - p) x + p ξ for both; section 6.7 prints ξ for p ξ where it comes to recall, which would exceed 1.
    """
    change_rate, recall, false = known(history)
    true = recall * change_rate
    precision = np.divide(true, true + false, out=np.ones_like(true), where=true + false > 0)
    precision, recall = ((1.0 - share) * x + share * xi for x, xi in zip((precision, recall), noise, strict=True))
    # What nobody mixes noise into stays as it was, to the last bit.
    false = false if share == 0.0 else _false_signal_rate(change_rate, precision, recall)
    return replace(history, recall=recall, false_signal_rate=false)


def _corruptions(settings: Settings, n_pages: int, rng: np.random.Generator, repetition: int) -> Numbers:
    """Simulate every policy with every corruption on the same instance."""
    history = draw_labelled(rng, n_pages, settings.time)
    noise = rng.random((2, n_pages))
    found: dict[tuple[str, float], float] = {}
    for share in CORRUPTIONS:
        believed = corrupted(history, share, noise)
        for policy in POLICIES_5:
            # GREEDY knows of no announcements: nothing that it knows is corrupted.
            found[policy, share] = (
                found[policy, CORRUPTIONS[0]]
                if policy == "GREEDY" and share != CORRUPTIONS[0]
                else crawl_by(policy, believed, settings.time, CRAWLS_PER_PAGE * n_pages).freshness
            )
    numbers: Numbers = {}
    for (policy, share), accuracy in found.items():
        numbers["accuracy", n_pages, share, policy] = accuracy
        numbers["accuracy less GREEDY-NCIS", n_pages, share, policy] = accuracy - found["GREEDY-NCIS", share]
        numbers[LOST, n_pages, share, policy] = found[policy, 0.0] - accuracy
    return numbers


def _plus_is_less_robust(table: Table) -> Claims:
    """GREEDY-CIS+ is close to optimal with right numbers, and less robust to wrong ones."""

    def at(row: Row) -> str:
        return f"{_say(row)} at m = {row.labels[0]}, p = {row.labels[1]}"

    for pages in table.values("pages"):
        behind = "accuracy less GREEDY-NCIS"
        gap = table.one(behind, pages=pages, corruption=0.0, policy="GREEDY-CIS+")
        words = f"with right numbers GREEDY-CIS+ is close to GREEDY-NCIS (within {PAR} below); {at(gap)}"
        yield Claim(-PAR <= gap.mean <= 0.0, words)
        plus, ncis = (table.one(LOST, pages=pages, corruption=CORRUPTIONS[-1], policy=name) for name in POLICIES_5[1:])
        words = f"wrong numbers cost GREEDY-CIS+ more than GREEDY-NCIS; {at(plus)} against {at(ncis)}"
        yield Claim(plus.mean > ncis.mean, words)
        plain = _highest(table.some(behind, pages=pages, policy="GREEDY"))
        words = f"GREEDY-NCIS is above GREEDY even with wrong numbers; GREEDY comes nearest by {at(plain)}"
        yield Claim(plain.mean < 0.0, words)


FIGURES = (
    _figure(
        2, "accuracy of GREEDY and LDS without announcements", Instances(), _of("GREEDY", "LDS"), (BASELINE,), _on_par
    ),
    _figure(
        3,
        "accuracy of GREEDY and GREEDY-CIS where some changes are announced and no announcement is false",
        TRUE_SIGNALS,
        _of("GREEDY", "GREEDY-CIS"),
        (BASELINE, "GREEDY"),
        _cis_above_greedy,
    ),
    _figure(
        4,
        "accuracy of all policies where some announcements are false",
        SIGNALS,
        _of(*POLICIES_4),
        (BASELINE, "GREEDY", "GREEDY-NCIS"),
        _ncis_best,
        (*PAGES, 10000),
    ),
    Figure(
        "noisy-signals-5",
        PAPER,
        "accuracy where precision and recall, as in the real world, are known wrongly",
        Settings(10, (100_000,), 200.0),
        repeated(("pages", "corruption", "policy"), _corruptions),
        _plus_is_less_robust,
        drawn(Panel({"accuracy": "o-"}, "corruption", ("policy",), each="pages")),
        {
            "bandwidth R": f"{CRAWLS_PER_PAGE:g} per page",
            "corruptions p": " ".join(map(str, CORRUPTIONS)),
            "precisions": PRECISION.words,
            "recalls": RECALL.words,
            "highest twentieth": f"{LABELLED:.0%} of the pages with {LABELLED_WEIGHT:.1%} of the importance",
            "change rates": CHANGE_RATE.words,
            "importances": IMPORTANCE.words,
        },
    ),
    _figure(
        8,
        "accuracy of GREEDY-NCIS with announcements that come late, and of GREEDY-NCIS-D which discards some",
        SIGNALS,
        _with_delay,
        (BASELINE, NO_DELAY),
        _delay_matters_little,
        fixed={"delays": f"Poisson({DELAY:g}) slots", "discarded after a crawl for": f"{DISCARDED:g} slots"},
    ),
)
