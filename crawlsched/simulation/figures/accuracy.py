"""Figures 2 to 5 and 8 of the noisy-signals paper: accuracy of the policies by number of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, Numbers, Run, Settings, repeated
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
from crawlsched.simulation.history import History

__all__ = ["FIGURES", "SIGNALS", "TRUE_SIGNALS", "corrupted"]

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

Accuracies = Callable[[History, float, np.random.Generator], dict[str, float]]


def _simulated(instances: Instances, accuracies: Accuracies, against: tuple[str, ...]) -> Run:
    """Simulate policies on the same instances: differences have smaller errors than accuracies."""

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
    """Run GREEDY-NCIS with prompt and with late announcements, and without those soon after a crawl."""
    assert history.signal_rows is not None
    assert history.signal_times is not None
    times = history.signal_times + rng.poisson(DELAY, history.signal_times.size) / BANDWIDTH
    by_time = np.lexsort((history.signal_rows, times))
    late = replace(history, signal_rows=history.signal_rows[by_time], signal_times=times[by_time])
    return {
        "GREEDY": crawl_by("GREEDY", history, horizon).freshness,
        NO_DELAY: crawl_by("GREEDY-NCIS", history, horizon).freshness,
        "GREEDY-NCIS": crawl_by("GREEDY-NCIS", late, horizon).freshness,
        # Announcements arrive at slots. Announcements until 5 slots after a crawl are discarded, from the 6th on none.
        "GREEDY-NCIS-D": crawl_by("GREEDY-NCIS", late, horizon, signal_delay=(DISCARDED + 0.5) / BANDWIDTH).freshness,
    }


# -- the paper's claims about figures 2, 3, 4 and 8


def _figure(
    number: int,
    title: str,
    instances: Instances,
    accuracies: Accuracies,
    against: tuple[str, ...],
    pages: tuple[int, ...] = PAGES,
    fixed: Mapping[str, str] | None = None,
) -> Figure:
    dots = Panel({"accuracy": "o"}, "policy", each="pages", levels=(BASELINE, NO_DELAY), axes={"xlabel": ""})
    words = {"bandwidth R": f"{BANDWIDTH:g}", **instances.words(), **(fixed or {})}
    run, settings = _simulated(instances, accuracies, against), Settings(REPETITIONS, pages, HORIZON)
    return Figure(f"noisy-signals-{number}", PAPER, title, settings, run, drawn(dots), words)


# -- figure 5: what wrong numbers for precision and recall cost

# Section 6.7: 5000 crawls a time step for 100,000 pages, 200 time steps, 10 repetitions.
CRAWLS_PER_PAGE = 0.05
CORRUPTIONS = (0.0, 0.1, 0.2)
POLICIES_5 = ("GREEDY", "GREEDY-CIS+", "GREEDY-NCIS")
# Pages that announce well: their number among all, and what they weigh (section 2: 26.4 % of the importance).
LABELLED, LABELLED_WEIGHT = 0.05, 0.264
# The paper's data cannot be had. The upper twentieths of these distributions begin at the thresholds of GREEDY-CIS+:
# 0.7 and 0.6.
PRECISION, RECALL = beta(1.5, 3.0), beta(1.0, 3.2)
CHANGE_RATE, IMPORTANCE = lognormal(0.05, 1.5), lognormal(1.0, 1.0)
# Draws that stand for the paper's histograms.
_SAMPLE = 100_000
LOST = "accuracy lost by corruption"


def _draw_labelled(rng: np.random.Generator, n_pages: int, horizon: float) -> History:
    """Draw pages, a twentieth of them with good announcements, and what happens to them."""
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
    """Return the same history with the share p of noise in precision and recall; the noise has shape (2, n).

    Notes
    -----
    (1 - p) x + p ξ for both; section 6.7 prints ξ for p ξ where it comes to recall, which would exceed 1.
    """
    change_rate, recall, false = known(history)
    true = recall * change_rate
    precision = np.divide(true, true + false, out=np.ones_like(true), where=true + false > 0)
    precision, recall = ((1.0 - share) * x + share * xi for x, xi in zip((precision, recall), noise, strict=True))
    # Numbers without noise stay as they were, to the last bit.
    false = false if share == 0.0 else _false_signal_rate(change_rate, precision, recall)
    return replace(history, recall=recall, false_signal_rate=false)


def _corruptions(settings: Settings, n_pages: int, rng: np.random.Generator, repetition: int) -> Numbers:
    """Simulate every policy with every corruption on the same instance."""
    history = _draw_labelled(rng, n_pages, settings.time)
    noise = rng.random((2, n_pages))
    found: dict[tuple[str, float], float] = {}
    for share in CORRUPTIONS:
        believed = corrupted(history, share, noise)
        for policy in POLICIES_5:
            # GREEDY knows of no announcements, so nothing that it knows is corrupted.
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


FIGURES = (
    _figure(2, "accuracy of GREEDY and LDS without announcements", Instances(), _of("GREEDY", "LDS"), (BASELINE,)),
    _figure(
        3,
        "accuracy of GREEDY and GREEDY-CIS where no announcement is false",
        TRUE_SIGNALS,
        _of("GREEDY", "GREEDY-CIS"),
        (BASELINE, "GREEDY"),
    ),
    _figure(
        4,
        "accuracy of all policies where some announcements are false",
        SIGNALS,
        _of(*POLICIES_4),
        (BASELINE, "GREEDY", "GREEDY-NCIS"),
        (*PAGES, 10000),
    ),
    Figure(
        "noisy-signals-5",
        PAPER,
        "accuracy where precision and recall are known wrongly",
        Settings(10, (100_000,), 200.0),
        repeated(("pages", "corruption", "policy"), _corruptions),
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
        "accuracy of GREEDY-NCIS and GREEDY-NCIS-D with late announcements",
        SIGNALS,
        _with_delay,
        (BASELINE, NO_DELAY),
        fixed={"delays": f"Poisson({DELAY:g}) slots", "discarded after a crawl for": f"{DISCARDED:g} slots"},
    ),
)
