"""Figures 7 and 12 to 14 of the noisy-signals paper, crawls by page, and 9, crawls when the bandwidth changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan, nan
from typing import Any

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray
from crawlsched.simulation.figures.accuracy import SIGNALS, TRUE_SIGNALS
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Claim, Claims, Figure, Run, Settings, repeated
from crawlsched.simulation.figures.instances import (
    BANDWIDTH,
    BASELINE,
    HORIZON,
    PAPER,
    REPETITIONS,
    Instances,
    crawl_by,
    known,
    optimal_rates,
)
from crawlsched.simulation.figures.table import Label, Numbers, Table
from crawlsched.simulation.history import History, Window
from crawlsched.simulation.measuring import fresh_spans
from crawlsched.simulation.policies import make_arm
from crawlsched.simulation.replaying import crawl
from crawlsched.simulation.slots import slot_times

__all__ = ["FIGURES", "accuracies"]

# Figure 7's dots are from 10 problem instances.
INSTANCES = 10
# Which pages have many announcements, and which have hardly any.
MANY, FEW = 0.9, 0.1
# A page's crawl rate is boosted above this multiple of the optimal one, and decreased below its inverse.
BOOSTED = 1.1
# "Some pages" are at least so many of those in question.
SOME = 0.01
RATE, RECALL, CHANGE_RATE = "crawl rate", "recall", "change rate"
# In shares of all crawls.
DISTANCE = "distance from the optimal rates"
IDLE = "crawls of pages with many announcements that found no change"


def _simulated(instances: Instances, policies: tuple[str, ...]) -> Run:
    def measure(settings: Settings, n_pages: int, rng: np.random.Generator, repetition: int) -> Numbers:
        history = instances.draw(rng, n_pages, settings.time)
        change_rate, recall, _ = known(history)
        best = optimal_rates(history)
        dots = partial(_dots, n_pages, repetition)
        numbers = {**dots(RATE, BASELINE, best), **dots(RECALL, "", recall), **dots(CHANGE_RATE, "", change_rate)}
        for policy in policies:
            done = crawl_by(policy, history, settings.time)
            rates = np.bincount(done.rows, minlength=n_pages) / settings.time
            numbers |= dots(RATE, policy, rates)
            numbers[DISTANCE, n_pages, policy, "", ""] = float(np.abs(rates - best).sum() / best.sum())
            idle = ~done.changed & (recall >= MANY)[done.rows]
            numbers[IDLE, n_pages, policy, "", ""] = float(idle.sum()) / done.rows.size
        return numbers

    return repeated(("pages", "policy", "instance", "page"), measure)


def _dots(n_pages: int, instance: int, quantity: str, policy: str, values: FloatArray) -> Numbers:
    return {(quantity, n_pages, policy, instance, page): value for page, value in enumerate(values.tolist())}


def _values(table: Table, quantity: str, n_pages: Label, policy: str = "") -> FloatArray:
    """Return what belongs to each dot of a panel."""
    return np.array([row.mean for row in table.some(quantity, pages=n_pages, policy=policy)])


@dataclass(frozen=True)
class _Dots:
    """The dots of one policy at one number of pages."""

    best: FloatArray
    rate: FloatArray
    change_rate: FloatArray
    many: BoolArray
    few: BoolArray

    def ratio(self, chosen: BoolArray) -> float:
        """Return all crawls of some pages by all that would be best without announcements."""
        best = float(self.best[chosen].sum())
        return float(self.rate[chosen].sum()) / best if best > 0 else nan


def _dots_of(table: Table, pages: Label, policy: str) -> _Dots:
    recall = _values(table, RECALL, pages)
    best, rate = _values(table, RATE, pages, BASELINE), _values(table, RATE, pages, policy)
    return _Dots(best, rate, _values(table, CHANGE_RATE, pages), recall >= MANY, recall <= FEW)


# -- what the paper claims of crawl rates


def _lds_keeps_to_the_rates(table: Table) -> Claims:
    greedy, lds = (table.some(DISTANCE, policy=policy) for policy in ("GREEDY", "LDS"))
    said = [", ".join(f"{row.mean:.2%} at m = {row.labels[0]}" for row in rows) for rows in (greedy, lds)]
    words = f"the rates of LDS are very close to the optimal ones (2 % of all crawls); off by {said[1]}"
    yield Claim(max(row.mean for row in lds) <= 0.02, words)
    farther = all(one.mean > other.mean for one, other in zip(greedy, lds, strict=True))
    yield Claim(farther, f"those of GREEDY differ more, though its accuracy does not; off by {said[0]}")


def _announced_pages_are_crawled_less(table: Table) -> Claims:
    loose = [pages for pages in table.values("pages") if int(pages) <= 100]
    if loose:
        dots = _dots_of(table, loose[-1], "GREEDY-CIS")
        many, few = dots.ratio(dots.many), dots.ratio(dots.few)
        yield Claim(
            None if isnan(many) or isnan(few) else many < 1 < few,
            f"at m = {loose[-1]} GREEDY-CIS crawls pages with many announcements less and others more; "
            f"{many:.3f} and {few:.3f} of the optimal rates",
        )
    else:
        yield Claim(None, "what is said of m = 100, which is not among the cases")
    yield from _where_crawls_are_short(table)


def _where_crawls_are_short(table: Table) -> Claims:
    tight = [pages for pages in table.values("pages") if int(pages) >= 300]
    if not tight:
        yield Claim(None, "what is said of m = 300, which is not among the cases")
        return
    dots = _dots_of(table, tight[-1], "GREEDY-CIS")
    few = dots.ratio(dots.few)
    if isnan(few) or not dots.many.any():
        yield Claim(None, f"what is said of m = {tight[-1]}, which takes pages with many announcements and with few")
        return
    n = int(dots.many.sum())
    boosted = dots.many & (dots.rate > BOOSTED * dots.best)
    decreased = dots.many & (dots.rate < dots.best / BOOSTED)
    fast, slow = (float(dots.change_rate[some].mean()) if some.any() else nan for some in (boosted, decreased))
    yield Claim(
        bool(min(boosted.sum(), decreased.sum()) >= SOME * n),
        f"at m = {tight[-1]} some pages with many announcements are crawled more and some less; "
        f"{boosted.sum() / n:.0%} and {decreased.sum() / n:.0%} of them",
    )
    yield Claim(fast > slow, f"those crawled more change more often; {fast:.3f} against {slow:.3f} on average")
    yield Claim(0.8 < few < 1.2, f"pages with few announcements stay near the optimal rates; {few:.3f} of them")


def _blind_trust_costs_crawls(table: Table) -> Claims:
    for pages in table.values("pages"):
        trusting, wary = _dots_of(table, pages, "GREEDY-CIS"), _dots_of(table, pages, "GREEDY-NCIS")
        if not wary.many.any():
            yield Claim(None, f"what is said of m = {pages}, which takes pages with many announcements")
            continue
        boosted = (trusting.rate > 1.5 * np.maximum(wary.rate, wary.best)) & wary.many
        share = float(boosted.sum()) / int(wary.many.sum())
        idle = [table.one(IDLE, pages=pages, policy=policy).mean for policy in ("GREEDY-CIS", "GREEDY-NCIS")]
        yield Claim(
            share >= SOME,
            f"at m = {pages} GREEDY-CIS crawls some pages with many announcements half as often again as "
            f"GREEDY-NCIS and as the optimum without announcements; {share:.1%} of these pages",
        )
        yield Claim(
            idle[0] > idle[1],
            f"at m = {pages} false announcements cost it more crawls of such pages that find no change than "
            f"GREEDY-NCIS; {idle[0]:.1%} against {idle[1]:.1%} of all crawls",
        )


def _draw_dots(color: str, table: Table, canvas: Any) -> None:
    """Draw a dot for each page: the crawl rate achieved against the optimal one."""
    pages = table.values("pages")
    policies = [str(name) for name in table.values("policy") if name not in ("", BASELINE)]
    canvas.set_size_inches(1 + 3.4 * len(policies), 0.6 + 3.2 * len(pages))
    # The panels of a line have the same axes, so that policies can be compared.
    panels = canvas.subplots(len(pages), len(policies), squeeze=False, sharey="row")
    for line, n_pages in zip(panels, pages, strict=True):
        best = _values(table, RATE, n_pages, BASELINE)
        shades = {"c": _values(table, color, n_pages), "cmap": "coolwarm", "vmin": 0, "vmax": 1} if color else {}
        for axes, policy in zip(line, policies, strict=True):
            axes.axline((0, 0), slope=1, color="red", linewidth=1)
            dots = axes.scatter(best, _values(table, RATE, n_pages, policy), 8, linewidths=0, **shades)
            axes.set(title=f"{policy}, m = {n_pages}", xlabel="optimal rate", ylabel="crawl rate achieved")
    if color:
        canvas.colorbar(dots, ax=panels, label=color)


def _figure(
    number: int,
    title: str,
    instances: Instances,
    policies: tuple[str, ...],
    claimed: Callable[[Table], Claims],
    pages: tuple[int, ...],
    color: str = "",
) -> Figure:
    words = {"bandwidth R": f"{BANDWIDTH:g}", **instances.words()}
    run, settings = _simulated(instances, policies), Settings(INSTANCES, pages, HORIZON)
    return Figure(f"noisy-signals-{number}", PAPER, title, settings, run, claimed, partial(_draw_dots, color), words)


# -- figure 9: GREEDY finds its new optimum by itself when the bandwidth changes

LOW, HIGH = 100.0, 150.0
# The bandwidth rises at time 133 and falls at 266 of 400.
RISE, FALL = 133 / 400, 266 / 400
# Accuracy is that of the time of the last 1000 crawls.
CRAWLS = 1000
STEPS = 400
CHANGING = "100, 150, 100"
CURVES = {CHANGING: (LOW, HIGH, LOW), "100": (LOW,), "150": (HIGH,)}
# The accuracy has arrived when it is this near to that of a bandwidth that was always the same.
PAR = 0.01
ACCURACY, SETTLED = "accuracy", "settled accuracy less that of the same bandwidth always"


def _changing(settings: Settings, n_pages: int, rng: np.random.Generator, repetition: int) -> Numbers:
    """Simulate the three curves on the same instance."""
    horizon = settings.time
    times = horizon * np.arange(1, STEPS + 1) / STEPS
    history = Instances().draw(rng, n_pages, horizon)
    curves = {name: accuracies(history, horizon, bandwidths, times) for name, bandwidths in CURVES.items()}
    numbers: Numbers = {
        (ACCURACY, n_pages, name, time): value
        for name, curve in curves.items()
        for time, value in zip(times.tolist(), curve.tolist(), strict=True)
    }
    for phase, same in enumerate(("100", "150", "100")):
        begin, end = _phases(horizon)[phase]
        last = (times > begin + 0.75 * (end - begin)) & (times <= end)
        difference = float((curves[CHANGING] - curves[same])[last].mean())
        numbers[SETTLED, n_pages, CHANGING, f"phase {phase + 1}"] = difference
    return numbers


def _phases(horizon: float) -> list[tuple[float, float]]:
    return [(0.0, RISE * horizon), (RISE * horizon, FALL * horizon), (FALL * horizon, horizon)]


def accuracies(history: History, horizon: float, bandwidths: Sequence[float], times: FloatArray) -> FloatArray:
    """Return the accuracy of GREEDY over the last 1000 crawls before each time.

    Parameters
    ----------
    history : History
    horizon : float
    bandwidths : sequence of float
        One for each of the three phases, or one for all of them.
    times : ndarray
    """
    window = history.window(0.0, horizon)
    arm, _ = make_arm(history, window, bandwidths[0], "greedy", "known", seed=0)
    rows, crawled, _ = crawl(history, window, _slots(horizon, bandwidths), arm)
    copies, begins, ends = fresh_spans(history, window, rows, crawled)
    weights = history.importance[copies]
    # The window of the last 1000 crawls begins with the first of them; where there are fewer, with the start.
    earlier = crawled.searchsorted(times, side="right") - CRAWLS
    since = np.where(earlier >= 0, crawled[np.maximum(earlier, 0)], 0.0)
    fresh = _fresh_until(times, begins, ends, weights) - _fresh_until(since, begins, ends, weights)
    shares: FloatArray = fresh / ((times - since) * history.importance.sum())
    return shares


def _slots(horizon: float, bandwidths: Sequence[float]) -> Iterator[float]:
    """Give the times of the slots; nothing else changes with the bandwidth."""
    phases = _phases(horizon) if len(bandwidths) > 1 else [(0.0, horizon)]
    for (begin, end), bandwidth in zip(phases, bandwidths, strict=True):
        yield from slot_times(Window(begin, end, begin), bandwidth)


def _fresh_until(times: FloatArray, begins: FloatArray, ends: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted time during which copies were fresh, from 0 to each time."""
    total = np.zeros(times.size)
    for edges, sign in ((begins, 1.0), (ends, -1.0)):
        order = np.argsort(edges)
        before = edges[order].searchsorted(times)
        weight, moment = (np.concatenate([[0.0], np.cumsum(x[order])]) for x in (weights, weights * edges))
        total += sign * (times * weight[before] - moment[before])
    return total


def _settles(table: Table) -> Claims:
    """The accuracy rises and falls to that of the new bandwidth by itself."""
    for pages in table.values("pages"):
        off = [table.one(SETTLED, pages=pages, time=f"phase {phase}").mean for phase in (1, 2, 3)]
        curves = [table.some(ACCURACY, pages=pages, bandwidth=same) for same in ("100", "150")]
        low, high = (np.mean([row.mean for row in curve[STEPS // 2 :]]) for curve in curves)
        yield Claim(
            bool(max(map(abs, off)) <= PAR and high > low),
            f"at m = {pages} the accuracy moves between that of R = 100 ({low:.4f}) and that of R = 150 ({high:.4f}); "
            f"at the end of each phase it is off by {off[0]:.4f}, {off[1]:.4f} and {off[2]:.4f} ({PAR} allowed)",
        )


FIGURES = (
    _figure(
        7,
        "crawl rates of GREEDY and LDS by page, against the optimal ones",
        Instances(),
        ("GREEDY", "LDS"),
        _lds_keeps_to_the_rates,
        (100, 500),
    ),
    Figure(
        "noisy-signals-9",
        PAPER,
        "accuracy of GREEDY over time when the bandwidth rises and falls",
        Settings(REPETITIONS, (1000,), 400.0),
        repeated(("pages", "bandwidth", "time"), _changing),
        _settles,
        drawn(Panel({ACCURACY: "-"}, "time", ("bandwidth",), each="pages")),
        {
            "bandwidth R": "100, from a third of the horizon 150, from two thirds 100",
            "accuracy over": f"the last {CRAWLS} crawls",
            **Instances().words(),
        },
    ),
    _figure(
        12,
        "crawl rates of GREEDY and GREEDY-CIS by page, coloured by recall",
        TRUE_SIGNALS,
        ("GREEDY", "GREEDY-CIS"),
        _announced_pages_are_crawled_less,
        (100, 300),
        RECALL,
    ),
    _figure(
        13,
        "crawl rates of GREEDY and GREEDY-CIS by page, coloured by change rate",
        TRUE_SIGNALS,
        ("GREEDY", "GREEDY-CIS"),
        _where_crawls_are_short,
        (100, 300),
        CHANGE_RATE,
    ),
    _figure(
        14,
        "crawl rates of GREEDY, GREEDY-CIS and GREEDY-NCIS by page where some announcements are false",
        SIGNALS,
        ("GREEDY", "GREEDY-CIS", "GREEDY-NCIS"),
        _blind_trust_costs_crawls,
        (100, 300),
        RECALL,
    ),
)
