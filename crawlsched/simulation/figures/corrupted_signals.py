"""Figure 5 of the noisy-signals paper: what wrong numbers for precision and recall cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.figures.distributions import Beta, LogNormal
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.instances import history_of
from crawlsched.simulation.figures.noisy_signals import PAPER, crawl_by, plus_minus
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Row, Table
from crawlsched.simulation.history import History

__all__ = ["FIGURES", "corrupted", "false_signal_rate"]

# Section 6.7: 5000 crawls a time step for 100,000 pages, 200 time steps, 10 repetitions.
PAGES, HORIZON, REPETITIONS = (100_000,), 200.0, 10
CRAWLS_PER_PAGE = 0.05
CORRUPTIONS = (0.0, 0.1, 0.2)
POLICIES = ("GREEDY", "GREEDY-CIS+", "GREEDY-NCIS")
# Pages that announce well: their number among all, and what they weigh (section 2: 26.4 % of the importance).
LABELLED, LABELLED_WEIGHT = 0.05, 0.264
# The paper's data cannot be had. Its upper twentieths begin where GREEDY-CIS+ has its thresholds: 0.7 and 0.6.
PRECISION, RECALL = Beta(1.5, 3.0), Beta(1.0, 3.2)
CHANGE_RATE = LogNormal(0.05, 1.5)
IMPORTANCE = LogNormal(1.0, 1.0)
# Draws that stand for the paper's histograms.
_SAMPLE = 100_000
# What is less apart than this counts as close.
CLOSE = 0.01
LOST = "accuracy lost by corruption"


def draw_history(rng: np.random.Generator, n_pages: int, horizon: float) -> History:
    """Draw pages, of which a twentieth announces well, and what happens to them."""
    labelled = np.zeros(n_pages, bool)
    labelled[rng.permutation(n_pages)[: round(LABELLED * n_pages)]] = True
    precision, recall = (_split(rng, quality, labelled) for quality in (PRECISION, RECALL))
    importance = IMPORTANCE.draw(rng, n_pages)
    change_rate = CHANGE_RATE.draw(rng, n_pages)
    if labelled.any() and not labelled.all():
        odds = LABELLED_WEIGHT / (1.0 - LABELLED_WEIGHT)
        importance[labelled] *= odds * importance[~labelled].sum() / importance[labelled].sum()
    false = false_signal_rate(change_rate, precision, recall)
    return history_of(rng, importance, change_rate, recall, false, horizon)


def _split(rng: np.random.Generator, quality: Beta, labelled: Any) -> FloatArray:
    """Draw from the highest twentieth for pages that are labelled, from all below it for the others."""
    sample = np.sort(quality.draw(rng, _SAMPLE))
    cut = round((1.0 - LABELLED) * _SAMPLE)
    numbers: FloatArray = rng.choice(sample[:cut], labelled.size)
    numbers[labelled] = rng.choice(sample[cut:], int(labelled.sum()))
    return numbers


def false_signal_rate(change_rate: FloatArray, precision: FloatArray, recall: FloatArray) -> FloatArray:
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
    change_rate, recall, false = history.change_rate, history.recall, history.false_signal_rate
    assert change_rate is not None
    assert recall is not None
    assert false is not None
    true = recall * change_rate
    precision = np.divide(true, true + false, out=np.ones_like(true), where=true + false > 0)
    precision, recall = ((1.0 - share) * x + share * xi for x, xi in zip((precision, recall), noise, strict=True))
    # What nobody mixes noise into stays as it was, to the last bit.
    false = false if share == 0.0 else false_signal_rate(change_rate, precision, recall)
    return replace(history, recall=recall, false_signal_rate=false)


def run(settings: Settings, progress: Progress) -> Table:
    """Simulate every policy with every corruption on the same instances."""
    assert settings.horizon is not None
    horizon = settings.horizon

    def measure(n_pages: int, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
        history = draw_history(rng, n_pages, horizon)
        noise = rng.random((2, n_pages))
        found: dict[tuple[str, float], float] = {}
        for share in CORRUPTIONS:
            known = corrupted(history, share, noise)
            for policy in POLICIES:
                # GREEDY knows of no announcements: nothing that it knows is corrupted.
                deaf = policy == "GREEDY" and share != CORRUPTIONS[0]
                bandwidth = CRAWLS_PER_PAGE * n_pages
                found[policy, share] = (
                    found[policy, CORRUPTIONS[0]] if deaf else crawl_by(policy, known, horizon, bandwidth).freshness
                )
        numbers: dict[tuple[Label, ...], float] = {}
        for (policy, share), accuracy in found.items():
            numbers["accuracy", n_pages, share, policy] = accuracy
            numbers["accuracy less GREEDY-NCIS", n_pages, share, policy] = accuracy - found["GREEDY-NCIS", share]
            numbers[LOST, n_pages, share, policy] = found[policy, 0.0] - accuracy
        return numbers

    return repeat(settings, ("pages", "corruption", "policy"), settings.pages, measure, progress)


def _said(row: Row) -> str:
    pages, share, _ = row.labels
    return f"{plus_minus(row)} at m = {pages}, p = {share}"


def claims(table: Table) -> list[Claim]:
    """GREEDY-CIS+ is close to optimal with right numbers, and less robust to wrong ones."""
    made = []
    for pages in table.values("pages"):
        gap = {share: table.one("accuracy less GREEDY-NCIS", pages=pages, corruption=share, policy="GREEDY-CIS+")
               for share in CORRUPTIONS}  # fmt: skip
        plain = max(table.some("accuracy less GREEDY-NCIS", pages=pages, policy="GREEDY"), key=lambda row: row.mean)
        last = CORRUPTIONS[-1]
        lost = {policy: table.one(LOST, pages=pages, corruption=last, policy=policy) for policy in POLICIES}
        made += [
            Claim(
                -CLOSE <= gap[0.0].mean <= 0.0,
                f"with right numbers GREEDY-CIS+ is close to GREEDY-NCIS (within {CLOSE} below); {_said(gap[0.0])}",
            ),
            Claim(
                lost["GREEDY-CIS+"].mean > lost["GREEDY-NCIS"].mean,
                f"wrong numbers cost GREEDY-CIS+ more than GREEDY-NCIS; {_said(lost['GREEDY-CIS+'])} against "
                f"{_said(lost['GREEDY-NCIS'])}",
            ),
            Claim(
                plain.mean < 0.0,
                f"GREEDY-NCIS is above GREEDY even with wrong numbers; GREEDY comes nearest by {_said(plain)}",
            ),
        ]
    return made


def draw(table: Table, canvas: Any) -> None:
    """Draw accuracy by corruption, a group of dots for each."""
    pages = table.values("pages")
    canvas.set_size_inches(1 + 5 * len(pages), 4)
    for axes, n_pages in zip(canvas.subplots(1, len(pages), squeeze=False)[0], pages, strict=True):
        for number, policy in enumerate(POLICIES):
            rows = table.some("accuracy", pages=n_pages, policy=policy)
            places = np.arange(len(rows)) + 0.12 * (number - 1)
            errors = np.nan_to_num([row.standard_error for row in rows])
            axes.errorbar(places, [row.mean for row in rows], errors, fmt="o", capsize=4, label=policy)
        axes.set_xticks(range(len(CORRUPTIONS)), [f"p = {share:g}" for share in CORRUPTIONS])
        axes.set_title(f"m = {n_pages}")
        axes.set_ylabel("accuracy")
        axes.grid(visible=True, axis="y", alpha=0.3)
    handles, labels = canvas.axes[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=len(POLICIES))


FIGURES = (
    Figure(
        name="noisy-signals-5",
        paper=f"{PAPER}, Figure 5",
        title="accuracy where precision and recall, as in the real world, are known wrongly",
        settings=Settings(REPETITIONS, PAGES, HORIZON),
        run=run,
        claims=claims,
        draw=draw,
        fixed={
            "bandwidth R": f"{CRAWLS_PER_PAGE:g} per page",
            "corruptions p": " ".join(map(str, CORRUPTIONS)),
            "precisions": str(PRECISION),
            "recalls": str(RECALL),
            "highest twentieth": f"{LABELLED:.0%} of the pages with {LABELLED_WEIGHT:.1%} of the importance",
            "change rates": str(CHANGE_RATE),
            "importances": str(IMPORTANCE),
        },
    ),
)
