"""Figures 7, 9 and 12 to 14 of the noisy-signals paper: crawls by page, and changes of the bandwidth (9)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.figures.accuracy import SIGNALS, TRUE_SIGNALS
from crawlsched.simulation.figures.drawing import Panel, drawn
from crawlsched.simulation.figures.figure import Figure, FigureSettings, Label, Numbers, Run, Table, repeated
from crawlsched.simulation.figures.instances import (
    BANDWIDTH,
    BASELINE,
    PAPER,
    SECTION_6,
    Instances,
    crawl_by,
    known,
    optimal_rates,
)
from crawlsched.simulation.history import History, Window, slot_times
from crawlsched.simulation.measuring import fresh_spans
from crawlsched.simulation.policies import make_arm
from crawlsched.simulation.replaying import crawl

__all__ = ["FIGURES", "accuracies"]

RATE, RECALL, CHANGE_RATE = "crawl rate", "recall", "change rate"
# The next two quantities are shares of all crawls.
DISTANCE = "distance from the optimal rates"
IDLE = "crawls of pages with many announcements that found no change"


def _simulated(instances: Instances, policies: tuple[str, ...], many: float = 0.9) -> Run:
    """Crawl by each policy. A page has many announcements if at least the share `many` of its changes is announced."""

    def measure(settings: FigureSettings, n_pages: int, rng: np.random.Generator, repetition: int) -> Numbers:
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
            idle = ~done.changed & (recall >= many)[done.rows]
            numbers[IDLE, n_pages, policy, "", ""] = float(idle.sum()) / done.rows.size
        return numbers

    return repeated(("pages", "policy", "instance", "page"), measure)


def _dots(n_pages: int, instance: int, quantity: str, policy: str, values: FloatArray) -> Numbers:
    return {(quantity, n_pages, policy, instance, page): value for page, value in enumerate(values.tolist())}


def values_of(table: Table, quantity: str, n_pages: Label, policy: str = "") -> FloatArray:
    """Return the data of each dot of a panel."""
    return np.array([row.mean for row in table.some(quantity, pages=n_pages, policy=policy)])


# -- figures 7 and 12 to 14: crawl rates by page


def _draw_dots(color: str, table: Table, canvas: Any) -> None:
    """Draw a dot for each page: the crawl rate achieved against the optimal one."""
    pages = table.values("pages")
    policies = [str(name) for name in table.values("policy") if name not in ("", BASELINE)]
    canvas.set_size_inches(1 + 3.4 * len(policies), 0.6 + 3.2 * len(pages))
    # The panels of a row have the same axes, so that policies can be compared.
    panels = canvas.subplots(len(pages), len(policies), squeeze=False, sharey="row")
    for line, n_pages in zip(panels, pages, strict=True):
        best = values_of(table, RATE, n_pages, BASELINE)
        shades = {"c": values_of(table, color, n_pages), "cmap": "coolwarm", "vmin": 0, "vmax": 1} if color else {}
        for axes, policy in zip(line, policies, strict=True):
            axes.axline((0, 0), slope=1, color="red", linewidth=1)
            dots = axes.scatter(best, values_of(table, RATE, n_pages, policy), 8, linewidths=0, **shades)
            axes.set(title=f"{policy}, m = {n_pages}", xlabel="optimal rate", ylabel="crawl rate achieved")
    if color:
        canvas.colorbar(dots, ax=panels, label=color)


def _figure(
    number: int, title: str, instances: Instances, policies: tuple[str, ...], pages: tuple[int, ...], color: str = ""
) -> Figure:
    words = {"bandwidth R": f"{BANDWIDTH:g}", **instances.words()}
    # Figure 7's dots are from 10 problem instances.
    run, settings = _simulated(instances, policies), replace(SECTION_6, repetitions=10, pages=pages)
    return Figure(f"noisy-signals-{number}", PAPER, title, settings, run, partial(_draw_dots, color), words)


# -- figure 9: GREEDY finds its new optimum by itself when the bandwidth changes

#: Bandwidths one after the other, and the share of the horizon at which each ends.
Phases = Sequence[tuple[float, float]]
CHANGING = "100, 150, 100"
# The bandwidth rises at time 133 and falls at 266 of 400.
CURVES: dict[str, Phases] = {
    CHANGING: ((100.0, 133 / 400), (150.0, 266 / 400), (100.0, 1.0)),
    "100": ((100.0, 1.0),),
    "150": ((150.0, 1.0),),
}
ACCURACY, SETTLED = "accuracy", "settled accuracy less that at constant bandwidth"


def _changing(n_crawls: int, n_times: int) -> Figure:
    """Return the figure of accuracies over the last `n_crawls` crawls, at `n_times` points in time."""

    def measure(settings: FigureSettings, n_pages: int, rng: np.random.Generator, repetition: int) -> Numbers:
        horizon = settings.time
        times = horizon * np.arange(1, n_times + 1) / n_times
        history = Instances().draw(rng, n_pages, horizon)
        curves = {name: accuracies(history, horizon, phases, times, n_crawls) for name, phases in CURVES.items()}
        numbers: Numbers = {
            (ACCURACY, n_pages, name, time): value
            for name, curve in curves.items()
            for time, value in zip(times.tolist(), curve.tolist(), strict=True)
        }
        for phase, (begin, end, bandwidth) in enumerate(_spans(horizon, CURVES[CHANGING]), 1):
            last = (times > begin + 0.75 * (end - begin)) & (times <= end)
            difference = float((curves[CHANGING] - curves[f"{bandwidth:g}"])[last].mean())
            numbers[SETTLED, n_pages, CHANGING, f"phase {phase}"] = difference
        return numbers

    return Figure(
        "noisy-signals-9",
        PAPER,
        "accuracy of GREEDY over time when the bandwidth rises and falls",
        replace(SECTION_6, pages=(1000,), horizon=400.0),
        repeated(("pages", "bandwidth", "time"), measure),
        drawn(Panel({ACCURACY: "-"}, "time", ("bandwidth",), each="pages")),
        {
            "bandwidth R": "100, from a third of the horizon 150, from two thirds 100",
            "accuracy over": f"the last {n_crawls} crawls",
            **Instances().words(),
        },
    )


def _spans(horizon: float, phases: Phases) -> list[tuple[float, float, float]]:
    ends = [share * horizon for _, share in phases]
    return list(zip([0.0, *ends], ends, [bandwidth for bandwidth, _ in phases], strict=False))


def accuracies(history: History, horizon: float, phases: Phases, times: FloatArray, n_crawls: int = 1000) -> FloatArray:
    """Return the accuracy of GREEDY over the last crawls before each time."""
    window = history.window(0.0, horizon)
    arm, _ = make_arm(history, window, phases[0][0], "greedy", "known", seed=0)
    rows, crawled, _ = crawl(history, window, _slots(horizon, phases), arm)
    copies, begins, ends = fresh_spans(history, window, rows, crawled)
    weights = history.importance[copies]
    # The measured time begins at the first of the last `n_crawls` crawls, or at 0 if there were fewer crawls.
    earlier = crawled.searchsorted(times, side="right") - n_crawls
    since = np.where(earlier >= 0, crawled[np.maximum(earlier, 0)], 0.0)
    fresh = _fresh_until(times, begins, ends, weights) - _fresh_until(since, begins, ends, weights)
    shares: FloatArray = fresh / ((times - since) * history.importance.sum())
    return shares


def _slots(horizon: float, phases: Phases) -> Iterator[float]:
    """Give the times of the slots; nothing else changes with the bandwidth."""
    for begin, end, bandwidth in _spans(horizon, phases):
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


FIGURES = (
    _figure(
        7, "crawl rates of GREEDY and LDS by page, against the optimal ones", Instances(), ("GREEDY", "LDS"), (100, 500)
    ),
    _changing(n_crawls=1000, n_times=400),
    _figure(
        12,
        "crawl rates of GREEDY and GREEDY-CIS by page, coloured by recall",
        TRUE_SIGNALS,
        ("GREEDY", "GREEDY-CIS"),
        (100, 300),
        RECALL,
    ),
    _figure(
        13,
        "crawl rates of GREEDY and GREEDY-CIS by page, coloured by change rate",
        TRUE_SIGNALS,
        ("GREEDY", "GREEDY-CIS"),
        (100, 300),
        CHANGE_RATE,
    ),
    _figure(
        14,
        "crawl rates of three policies where some announcements are false",
        SIGNALS,
        ("GREEDY", "GREEDY-CIS", "GREEDY-NCIS"),
        (100, 300),
        RECALL,
    ),
)
