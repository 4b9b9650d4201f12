"""Figures 7 and 12 to 14 of the noisy-signals paper: how often each page is crawled, and how often would be best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from crawlsched.columns.array_types import FloatArray
from crawlsched.simulation.figures.accuracy import SIGNALS, TRUE_SIGNALS
from crawlsched.simulation.figures.figure import Claim, Figure, Progress, Settings
from crawlsched.simulation.figures.instances import Instances
from crawlsched.simulation.figures.noisy_signals import BANDWIDTH, BASELINE, HORIZON, PAPER, crawl_by, optimal_rates
from crawlsched.simulation.figures.repeating import repeat
from crawlsched.simulation.figures.table import Label, Table

__all__ = ["FIGURES"]

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


@dataclass(frozen=True)
class _CrawlRates:
    """How one of these figures is simulated."""

    instances: Instances
    policies: tuple[str, ...]

    def run(self, settings: Settings, progress: Progress) -> Table:
        def measure(n_pages: int, rng: np.random.Generator, repetition: int) -> dict[tuple[Label, ...], float]:
            assert settings.horizon is not None
            history = self.instances.draw(rng, n_pages, settings.horizon)
            assert history.change_rate is not None
            assert history.recall is not None
            best = optimal_rates(history)
            numbers = _dots(RATE, n_pages, BASELINE, repetition, best)
            numbers |= _dots(RECALL, n_pages, "", repetition, history.recall)
            numbers |= _dots(CHANGE_RATE, n_pages, "", repetition, history.change_rate)
            for policy in self.policies:
                done = crawl_by(policy, history, settings.horizon)
                rates = np.bincount(done.rows, minlength=n_pages) / settings.horizon
                numbers |= _dots(RATE, n_pages, policy, repetition, rates)
                distance = float(np.abs(rates - best).sum() / best.sum())
                numbers[DISTANCE, n_pages, policy, "", ""] = distance
                idle = ~done.changed & (history.recall >= MANY)[done.rows]
                numbers[IDLE, n_pages, policy, "", ""] = float(idle.sum()) / done.rows.size
            return numbers

        return repeat(settings, ("pages", "policy", "instance", "page"), settings.pages, measure, progress)


def _dots(
    quantity: str, n_pages: int, policy: str, instance: int, values: FloatArray
) -> dict[tuple[Label, ...], float]:
    return {(quantity, n_pages, policy, instance, page): value for page, value in enumerate(values.tolist())}


def _values(table: Table, quantity: str, n_pages: Label, policy: str = "") -> FloatArray:
    """Return what belongs to each dot of a panel."""
    return np.array([row.mean for row in table.some(quantity, pages=n_pages, policy=policy)])


@dataclass(frozen=True)
class _Panel:
    """The dots of one policy at one number of pages."""

    best: FloatArray
    rate: FloatArray
    recall: FloatArray
    change_rate: FloatArray

    @property
    def many(self) -> npt.NDArray[np.bool_]:
        return self.recall >= MANY

    @property
    def few(self) -> npt.NDArray[np.bool_]:
        return self.recall <= FEW

    @property
    def boosted(self) -> npt.NDArray[np.bool_]:
        return self.rate > BOOSTED * self.best

    @property
    def decreased(self) -> npt.NDArray[np.bool_]:
        return self.rate < self.best / BOOSTED

    def ratio(self, chosen: npt.NDArray[np.bool_]) -> float:
        """Return all crawls of some pages by all that would be best without announcements."""
        best = float(self.best[chosen].sum())
        return float(self.rate[chosen].sum()) / best if best > 0 else nan


def _panel(table: Table, n_pages: Label, policy: str) -> _Panel:
    return _Panel(
        _values(table, RATE, n_pages, BASELINE),
        _values(table, RATE, n_pages, policy),
        _values(table, RECALL, n_pages),
        _values(table, CHANGE_RATE, n_pages),
    )


# -- what the paper claims


def _lds_keeps_to_the_rates(table: Table) -> list[Claim]:
    distances, said = {}, {}
    for policy in ("GREEDY", "LDS"):
        rows = table.some(DISTANCE, policy=policy)
        distances[policy] = [row.mean for row in rows]
        said[policy] = ", ".join(f"{row.mean:.2%} at m = {row.labels[0]}" for row in rows)
    return [
        Claim(
            max(distances["LDS"]) <= 0.02,
            f"the rates of LDS are very close to the optimal ones (2 % of all crawls); off by {said['LDS']}",
        ),
        Claim(
            all(greedy > lds for greedy, lds in zip(*distances.values(), strict=True)),
            f"those of GREEDY differ more, though its accuracy does not; off by {said['GREEDY']}",
        ),
    ]


def _announced_pages_are_crawled_less(table: Table) -> list[Claim]:
    return [*_where_crawls_abound(table), *_where_crawls_are_short(table)]


def _where_crawls_abound(table: Table) -> list[Claim]:
    loose = [pages for pages in table.values("pages") if int(pages) <= 100]
    if not loose:
        return [Claim(None, "what is said of m = 100, which is not among the cases")]
    panel = _panel(table, loose[-1], "GREEDY-CIS")
    many, few = panel.ratio(panel.many), panel.ratio(panel.few)
    return [
        Claim(
            None if isnan(many) or isnan(few) else many < 1 < few,
            f"at m = {loose[-1]} GREEDY-CIS crawls pages with many announcements less and others more; "
            f"{many:.3f} and {few:.3f} of the optimal rates",
        )
    ]


def _where_crawls_are_short(table: Table) -> list[Claim]:
    tight = [pages for pages in table.values("pages") if int(pages) >= 300]
    if not tight:
        return [Claim(None, "what is said of m = 300, which is not among the cases")]
    panel = _panel(table, tight[-1], "GREEDY-CIS")
    boosted, decreased = panel.many & panel.boosted, panel.many & panel.decreased
    n = max(int(panel.many.sum()), 1)
    fast, slow = (float(panel.change_rate[some].mean()) if some.any() else nan for some in (boosted, decreased))
    few = panel.ratio(panel.few)
    if isnan(few) or not panel.many.any():
        return [Claim(None, f"what is said of m = {tight[-1]}, which takes pages with many announcements and with few")]
    return [
        Claim(
            bool(min(boosted.sum(), decreased.sum()) >= SOME * n),
            f"at m = {tight[-1]} some pages with many announcements are crawled more and some less; "
            f"{boosted.sum() / n:.0%} and {decreased.sum() / n:.0%} of them",
        ),
        Claim(fast > slow, f"those crawled more change more often; {fast:.3f} against {slow:.3f} on average"),
        Claim(0.8 < few < 1.2, f"pages with few announcements stay near the optimal rates; {few:.3f} of them"),
    ]


def _blind_trust_costs_crawls(table: Table) -> list[Claim]:
    claims = []
    for pages in table.values("pages"):
        trusting, wary = _panel(table, pages, "GREEDY-CIS"), _panel(table, pages, "GREEDY-NCIS")
        boosted = (trusting.rate > 1.5 * np.maximum(wary.rate, wary.best)) & wary.many
        if not wary.many.any():
            claims.append(Claim(None, f"what is said of m = {pages}, which takes pages with many announcements"))
            continue
        share = float(boosted.sum()) / int(wary.many.sum())
        idle = [table.one(IDLE, pages=pages, policy=policy).mean for policy in ("GREEDY-CIS", "GREEDY-NCIS")]
        claims += [
            Claim(
                share >= SOME,
                f"at m = {pages} GREEDY-CIS crawls some pages with many announcements half as often again as "
                f"GREEDY-NCIS and as the optimum without announcements; {share:.1%} of these pages",
            ),
            Claim(
                idle[0] > idle[1],
                f"at m = {pages} false announcements cost it more crawls of such pages that find no change than "
                f"GREEDY-NCIS; {idle[0]:.1%} against {idle[1]:.1%} of all crawls",
            ),
        ]
    return claims


# -- how they are drawn


def _draw(color: str | None) -> Callable[[Table, Any], None]:
    def draw(table: Table, canvas: Any) -> None:
        pages = table.values("pages")
        policies = [str(name) for name in table.values("policy") if name not in ("", BASELINE)]
        canvas.set_size_inches(1 + 3.4 * len(policies), 0.6 + 3.2 * len(pages))
        panels = canvas.subplots(len(pages), len(policies), squeeze=False)
        for line, n_pages in zip(panels, pages, strict=True):
            best = _values(table, RATE, n_pages, BASELINE)
            # The panels of a line have the same axes, so that policies can be compared.
            most = max(float(_values(table, RATE, n_pages, policy).max(initial=0.0)) for policy in policies)
            shade = None if color is None else _values(table, color, n_pages)
            for axes, policy in zip(line, policies, strict=True):
                end = 1.05 * float(best.max(initial=0.0))
                axes.plot([0, end], [0, end], color="red", linewidth=1)
                shades = {} if shade is None else {"c": shade, "cmap": "coolwarm", "vmin": 0, "vmax": 1}
                dots = axes.scatter(best, _values(table, RATE, n_pages, policy), 8, linewidths=0, **shades)
                axes.set_title(f"{policy}, m = {n_pages}", fontsize=10)
                axes.set_ylim(-0.03 * most, 1.05 * most)
                axes.grid(visible=True, alpha=0.3)
            line[0].set_ylabel("crawl rate achieved")
        for axes in panels[-1]:
            axes.set_xlabel("optimal rate")
        if color is not None:
            canvas.colorbar(dots, ax=panels, label=color)

    return draw


def _figure(
    number: int,
    title: str,
    simulated: _CrawlRates,
    claims: Callable[[Table], list[Claim]],
    pages: tuple[int, ...],
    color: str | None = None,
) -> Figure:
    fixed: Mapping[str, str] = {"bandwidth R": f"{BANDWIDTH:g}", **simulated.instances.words()}
    return Figure(
        name=f"noisy-signals-{number}",
        paper=f"{PAPER}, Figure {number}",
        title=title,
        settings=Settings(INSTANCES, pages, HORIZON),
        run=simulated.run,
        claims=claims,
        draw=_draw(color),
        fixed=fixed,
    )


_TRUE = _CrawlRates(TRUE_SIGNALS, ("GREEDY", "GREEDY-CIS"))

FIGURES = (
    _figure(
        7,
        "crawl rates of GREEDY and LDS by page, against the optimal ones",
        _CrawlRates(Instances(), ("GREEDY", "LDS")),
        _lds_keeps_to_the_rates,
        (100, 500),
    ),
    _figure(
        12,
        "crawl rates of GREEDY and GREEDY-CIS by page, coloured by recall",
        _TRUE,
        _announced_pages_are_crawled_less,
        (100, 300),
        RECALL,
    ),
    _figure(
        13,
        "crawl rates of GREEDY and GREEDY-CIS by page, coloured by change rate",
        _TRUE,
        _where_crawls_are_short,
        (100, 300),
        CHANGE_RATE,
    ),
    _figure(
        14,
        "crawl rates of GREEDY, GREEDY-CIS and GREEDY-NCIS by page where some announcements are false",
        _CrawlRates(SIGNALS, ("GREEDY", "GREEDY-CIS", "GREEDY-NCIS")),
        _blind_trust_costs_crawls,
        (100, 300),
        RECALL,
    ),
)
