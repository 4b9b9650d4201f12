"""Figures 2 to 5 and 8 of the noisy-signals paper: accuracy of the policies by number of pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, FigureSettings, Numbers, Run, repeated
from crawlsched.simulation.figures.instances import (
    BANDWIDTH,
    BASELINE,
    PAPER,
    SECTION_6,
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

#: Pages whose announcements are all true, but not every change is announced (section 6.5).
TRUE_SIGNALS = Instances(recall=beta(0.25, 0.25))
#: Pages whose announcements are not all true (section 6.6).
SIGNALS = Instances(recall=beta(0.25, 0.25), false_signal_rate=uniform(0.1, 0.6))
POLICIES_4 = ("GREEDY", "GREEDY-CIS", "GREEDY-NCIS", "G-NCIS-APPROX-1", "G-NCIS-APPROX-2")
NO_DELAY = "GREEDY-NCIS, no delay"

Accuracies = Callable[[History, float, np.random.Generator], dict[str, float]]


def _simulated(instances: Instances, accuracies: Accuracies, against: tuple[str, ...]) -> Run:
    """Simulate all policies on the same instances, so that differences between policies have small errors."""

    def measure(settings: FigureSettings, n_pages: int, rng: np.random.Generator, repetition: int) -> Numbers:
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


def _figure(
    number: int,
    title: str,
    instances: Instances,
    accuracies: Accuracies,
    against: tuple[str, ...],
    settings: FigureSettings = SECTION_6,
    fixed: Mapping[str, str] | None = None,
) -> Figure:
    dots = Panel({"accuracy": "o"}, "policy", each="pages", levels=(BASELINE, NO_DELAY), axes={"xlabel": ""})
    words = {"bandwidth R": f"{BANDWIDTH:g}", **instances.words(), **(fixed or {})}
    run = _simulated(instances, accuracies, against)
    return Figure(f"noisy-signals-{number}", PAPER, title, settings, run, drawn(dots), words)


# -- figure 8: late announcements


def _late(delay: float, discarded: float) -> Figure:
    """Return the figure of announcements that come late; all times are in slots (1/R).

    Parameters
    ----------
    delay : float
        Mean of the Poisson distribution of delays.
    discarded : float
        How long after a crawl GREEDY-NCIS-D discards announcements.
    """

    def accuracies(history: History, horizon: float, rng: np.random.Generator) -> dict[str, float]:
        assert history.signal_rows is not None
        assert history.signal_times is not None
        times = history.signal_times + rng.poisson(delay, history.signal_times.size) / BANDWIDTH
        by_time = np.lexsort((history.signal_rows, times))
        late = replace(history, signal_rows=history.signal_rows[by_time], signal_times=times[by_time])
        # Announcements arrive at slots. The added half slot makes sure that all announcements of slot `discarded` are
        # discarded, and none of the next slot.
        until = (discarded + 0.5) / BANDWIDTH
        return {
            "GREEDY": crawl_by("GREEDY", history, horizon).freshness,
            NO_DELAY: crawl_by("GREEDY-NCIS", history, horizon).freshness,
            "GREEDY-NCIS": crawl_by("GREEDY-NCIS", late, horizon).freshness,
            "GREEDY-NCIS-D": crawl_by("GREEDY-NCIS", late, horizon, signal_delay=until).freshness,
        }

    title = "accuracy of GREEDY-NCIS and GREEDY-NCIS-D with late announcements"
    words = {"delays": f"Poisson({delay:g}) slots", "discarded after a crawl for": f"{discarded:g} slots"}
    return _figure(8, title, SIGNALS, accuracies, (BASELINE, NO_DELAY), fixed=words)


# -- figure 5: what wrong numbers for precision and recall cost

POLICIES_5 = ("GREEDY", "GREEDY-CIS+", "GREEDY-NCIS")
LOST = "accuracy lost by corruption"


@dataclass(frozen=True)
class LabelledPages:
    """How pages are drawn if only a few announce well (section 6.7)."""

    labelled: float  # the share of pages that announce well
    weight: float  # their share of the importance
    precision: Distribution
    recall: Distribution
    change_rate: Distribution
    importance: Distribution
    n_draws: int = 100_000  # numbers drawn in place of the paper's histograms

    def words(self) -> dict[str, str]:
        """Name the distribution of each quantity."""
        return {
            "precisions": self.precision.words,
            "recalls": self.recall.words,
            "highest twentieth": f"{self.labelled:.0%} of the pages with {self.weight:.1%} of the importance",
            "change rates": self.change_rate.words,
            "importances": self.importance.words,
        }

    def draw(self, rng: np.random.Generator, n_pages: int, horizon: float) -> History:
        """Draw pages and their events."""
        labelled = np.zeros(n_pages, bool)
        labelled[rng.permutation(n_pages)[: round(self.labelled * n_pages)]] = True
        precision, recall = (self._split(rng, quality, labelled) for quality in (self.precision, self.recall))
        importance = self.importance.draw(rng, n_pages)
        change_rate = self.change_rate.draw(rng, n_pages)
        if labelled.any() and not labelled.all():
            odds = self.weight / (1.0 - self.weight)
            importance[labelled] *= odds * importance[~labelled].sum() / importance[labelled].sum()
        false = _false_signal_rate(change_rate, precision, recall)
        return history_of(rng, importance, change_rate, recall, false, horizon)

    def _split(self, rng: np.random.Generator, quality: Distribution, labelled: BoolArray) -> FloatArray:
        """Give labelled pages the highest of the drawn numbers, and all other pages the lower numbers."""
        sample = np.sort(quality.draw(rng, self.n_draws))
        cut = round((1.0 - self.labelled) * self.n_draws)
        numbers: FloatArray = rng.choice(sample[:cut], labelled.size)
        numbers[labelled] = rng.choice(sample[cut:], int(labelled.sum()))
        return numbers


def _false_signal_rate(change_rate: FloatArray, precision: FloatArray, recall: FloatArray) -> FloatArray:
    """Return false announcements per time step: precision is λΔ/(λΔ + ν)."""
    rates: FloatArray = recall * change_rate * (1.0 - precision) / precision
    return rates


def corrupted(history: History, share: float, noise: FloatArray) -> History:
    """Mix noise into the precision and recall of each page, and return the changed history.

    With p = `share`, each number x becomes (1 - p) x + p ξ. `noise` has the ξ of precision, then those of recall; its
    shape is (2, n).

    Notes
    -----
    For recall, section 6.7 prints ξ instead of p ξ, so that recall could exceed 1.
    """
    change_rate, recall, false = known(history)
    true = recall * change_rate
    precision = np.divide(true, true + false, out=np.ones_like(true), where=true + false > 0)
    precision, recall = ((1.0 - share) * x + share * xi for x, xi in zip((precision, recall), noise, strict=True))
    # Numbers without noise stay as they were, to the last bit.
    false = false if share == 0.0 else _false_signal_rate(change_rate, precision, recall)
    return replace(history, recall=recall, false_signal_rate=false)


def _corruption(pages: LabelledPages, shares: tuple[float, ...] = (0.0, 0.1, 0.2), crawls: float = 0.05) -> Figure:
    """Return the figure of accuracies by the share of noise in precision and recall. One of `shares` has to be 0.

    `crawls` is the number of crawls per page and time step: 5000 for 100,000 pages (section 6.7).
    """

    def measure(settings: FigureSettings, n_pages: int, rng: np.random.Generator, repetition: int) -> Numbers:
        history = pages.draw(rng, n_pages, settings.time)
        noise = rng.random((2, n_pages))
        # GREEDY does not use announcements, so corruption does not affect it.
        greedy = crawl_by("GREEDY", history, settings.time, crawls * n_pages).freshness
        found: dict[tuple[str, float], float] = {}
        for share in shares:
            believed = corrupted(history, share, noise)
            found["GREEDY", share] = greedy
            for policy in POLICIES_5[1:]:
                found[policy, share] = crawl_by(policy, believed, settings.time, crawls * n_pages).freshness
        numbers: Numbers = {}
        for (policy, share), accuracy in found.items():
            numbers["accuracy", n_pages, share, policy] = accuracy
            numbers["accuracy less GREEDY-NCIS", n_pages, share, policy] = accuracy - found["GREEDY-NCIS", share]
            numbers[LOST, n_pages, share, policy] = found[policy, 0.0] - accuracy
        return numbers

    return Figure(
        "noisy-signals-5",
        PAPER,
        "accuracy with wrong numbers for precision and recall",
        FigureSettings(10, (100_000,), 200.0),
        repeated(("pages", "corruption", "policy"), measure),
        drawn(Panel({"accuracy": "o-"}, "corruption", ("policy",), each="pages")),
        {"bandwidth R": f"{crawls:g} per page", "corruptions p": " ".join(map(str, shares)), **pages.words()},
    )


# Section 2: few pages are labelled, and they have 26.4 % of the importance. The paper's data is not available. Here the
# highest twentieths of precision and recall begin at 0.7 and 0.6, which are the thresholds of GREEDY-CIS+.
_LABELLED_PAGES = LabelledPages(
    labelled=0.05,
    weight=0.264,
    precision=beta(1.5, 3.0),
    recall=beta(1.0, 3.2),
    change_rate=lognormal(0.05, 1.5),
    importance=lognormal(1.0, 1.0),
)

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
        replace(SECTION_6, pages=(*SECTION_6.pages, 10_000)),
    ),
    _corruption(_LABELLED_PAGES),
    _late(delay=6.0, discarded=5.0),
)
