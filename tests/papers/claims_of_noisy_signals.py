"""What the noisy-signals paper claims of its figures."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from math import hypot, nan

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray
from crawlsched.simulation.figures import Row, Table, crawl_rates
from crawlsched.simulation.figures.accuracy import LOST, NO_DELAY, POLICIES_5
from crawlsched.simulation.figures.figure import Label
from crawlsched.simulation.figures.instances import BASELINE
from crawlsched.simulation.figures.signal_estimates import BIAS, EXACT, LIMIT, MEASURES, TERMS, VALUE
from tests.papers.claim import Claim, Claims, unless_chance

# What is less apart than this counts as on par, or as close.
PAR = 0.01
# Two policies this close may come out either way.
_SMALL = 0.001
# "Almost every case" leaves out at most so many.
_FEW = 0.1
OVER_GREEDY, BEHIND_NCIS, OVER_OPTIMUM = (f"accuracy less {other}" for other in ("GREEDY", "GREEDY-NCIS", BASELINE))


def _least(rows: Iterable[Row]) -> float:
    """Return the least mean; nan if there are none, of which nothing can be told."""
    return min((row.mean for row in rows), default=nan)


def _most(rows: Iterable[Row]) -> float:
    return max((row.mean for row in rows), default=nan)


def _more_than_chance(rows: Iterable[Row]) -> float:
    """Return by how much the highest is above 0, less what two standard errors explain."""
    return max(row.mean - max(_SMALL, 2 * np.nan_to_num(row.standard_error)) for row in rows)


def noisy_signals_2(table: Table) -> Claims:
    worst = max(abs(row.mean) for row in table.some(OVER_OPTIMUM))
    yield Claim(worst <= PAR, "GREEDY and LDS are on par with the continuous optimum", worst)


def noisy_signals_3(table: Table) -> Claims:
    for quantity, words in ((OVER_GREEDY, "GREEDY at every m"), (OVER_OPTIMUM, "the optimum without announcements")):
        least = _least(table.some(quantity, policy="GREEDY-CIS"))
        yield Claim(least > 0, f"GREEDY-CIS is above {words}", least)


def noisy_signals_4(table: Table) -> Claims:
    behind = table.some(BEHIND_NCIS)
    plain = _most(row for row in behind if row.labels[1] in ("GREEDY", "GREEDY-CIS"))
    yield Claim(plain < 0, "GREEDY-NCIS is above GREEDY and GREEDY-CIS at every m", plain)
    nearest = _more_than_chance(behind)
    yield Claim(nearest <= 0, "nothing is above GREEDY-NCIS by more than chance", nearest)
    approximations = [row for row in behind if "APPROX" in str(row.labels[1])]
    worst = _least(row for row in approximations if int(row.labels[0]) <= 500)
    yield Claim(worst >= -PAR, "the approximations are close to GREEDY-NCIS at m up to 500", worst)
    tight = [row for row in approximations if int(row.labels[0]) > 500]
    yield _below(tight, "the approximations are behind GREEDY-NCIS at m above 500")
    trusting = [row for row in table.some(OVER_GREEDY, policy="GREEDY-CIS") if int(row.labels[0]) >= 500]
    yield _below(trusting, "GREEDY-CIS is below GREEDY from m = 500 on")
    yield _better_almost_everywhere(table)
    most = max(int(row.labels[0]) for row in table.rows)
    gains = [row for row in table.some(OVER_GREEDY, pages=most) if "APPROX" in str(row.labels[1])]
    gain = _more_than_chance(gains) if most > 1000 else nan
    yield Claim(gain <= 0, "the approximations gain nothing from announcements in the end, at m above 1000", gain)


def _below(rows: list[Row], words: str) -> Claim:
    nearest = max(rows, key=lambda row: row.mean, default=Row("", (), nan, nan, 0))
    return Claim(unless_chance(nearest.mean < 0, nearest.mean, nearest.standard_error), words, nearest.mean)


def _better_almost_everywhere(table: Table) -> Claim:
    """Compare GREEDY-NCIS and its approximations with both others, at every number of pages."""
    told = []
    for pages in table.values("pages"):
        over_greedy = {str(row.labels[1]): row for row in table.some(OVER_GREEDY, pages=pages)}
        trusting = over_greedy.pop("GREEDY-CIS")
        for gain in over_greedy.values():
            # Repetitions are of the same pages for all policies, so that this is no less than the true error.
            both = hypot(gain.standard_error, trusting.standard_error)
            for ahead, error in ((gain.mean, gain.standard_error), (gain.mean - trusting.mean, both)):
                told.append(unless_chance(ahead > 0, ahead, error))
    few, worse = _FEW * len(told), len(told) - told.count(True)
    held = None if told.count(False) <= few < worse else worse <= few
    words = "GREEDY-NCIS and its approximations are above GREEDY and GREEDY-CIS in almost every case: not in so many of"
    return Claim(held, words, worse, len(told))


def noisy_signals_8(table: Table) -> Claims:
    lost = f"accuracy less {NO_DELAY}"
    first, *_, last = sorted(table.some(lost, policy="GREEDY-NCIS"), key=lambda row: row.labels) * 2
    mended = table.one(lost, policy="GREEDY-NCIS-D", pages=first.labels[0]).mean
    yield Claim(first.mean < 0, "delay costs GREEDY-NCIS accuracy where the bandwidth is not tight", first.mean)
    held = abs(mended) <= PAR and mended > first.mean
    yield Claim(held, "discarding what comes soon after a crawl wins it back there", mended)
    tight = last.mean if last is not first else nan
    yield Claim(abs(tight) < abs(first.mean), "delay costs less where the bandwidth is tight", tight)


def noisy_signals_5(table: Table) -> Claims:
    """GREEDY-CIS+ is close to optimal with right numbers, and less robust to wrong ones."""
    for m in table.values("pages"):
        gap = table.one(BEHIND_NCIS, pages=m, corruption=0.0, policy="GREEDY-CIS+").mean
        yield Claim(-PAR <= gap <= 0.0, f"with right numbers GREEDY-CIS+ is close to GREEDY-NCIS at m = {m}", gap)
        wrong = {"pages": m, "corruption": 0.2}
        plus, ncis = (table.one(LOST, policy=name, **wrong).mean for name in POLICIES_5[1:])
        yield Claim(plus > ncis, f"wrong numbers cost GREEDY-CIS+ more than GREEDY-NCIS at m = {m}", plus, ncis)
        plain = _most(table.some(BEHIND_NCIS, pages=m, policy="GREEDY"))
        yield Claim(plain < 0.0, f"GREEDY-NCIS is above GREEDY even with wrong numbers at m = {m}", plain)


# A page's crawl rate is boosted above this multiple of the optimal one, and decreased below its inverse.
BOOSTED = 1.1
# "Some pages" are at least so many of those in question.
SOME = 0.01


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

    def share(self, chosen: BoolArray) -> float:
        """Return how many of the pages with many announcements are chosen."""
        return float(chosen[self.many].mean()) if self.many.any() else nan


def _dots_of(table: Table, pages: Label, policy: str) -> _Dots:
    of = partial(crawl_rates.values_of, table, n_pages=pages)
    recall = of(crawl_rates.RECALL)
    best, rate = (of(crawl_rates.RATE, policy=name) for name in (BASELINE, policy))
    return _Dots(best, rate, of(crawl_rates.CHANGE_RATE), recall >= 0.9, recall <= 0.1)


def noisy_signals_7(table: Table) -> Claims:
    greedy, lds = ([row.mean for row in table.some(crawl_rates.DISTANCE, policy=name)] for name in ("GREEDY", "LDS"))
    yield Claim(max(lds) <= 0.02, "the rates of LDS are very close to the optimal ones (2 % of all crawls)", *lds)
    farther = all(one > other for one, other in zip(greedy, lds, strict=True))
    yield Claim(farther, "those of GREEDY differ more, though its accuracy does not", *greedy)


def noisy_signals_12(table: Table) -> Claims:
    for pages in [pages for pages in table.values("pages") if int(pages) <= 100][-1:]:
        dots = _dots_of(table, pages, "GREEDY-CIS")
        many, few = dots.ratio(dots.many), dots.ratio(dots.few)
        words = "at m = 100 GREEDY-CIS crawls pages with many announcements less and others more"
        yield Claim(many < 1 < few, words, many, few)
    yield from noisy_signals_13(table)


def noisy_signals_13(table: Table) -> Claims:
    for pages in [pages for pages in table.values("pages") if int(pages) >= 300][-1:]:
        dots = _dots_of(table, pages, "GREEDY-CIS")
        boosted = dots.many & (dots.rate > BOOSTED * dots.best)
        decreased = dots.many & (dots.rate < dots.best / BOOSTED)
        shares = dots.share(boosted), dots.share(decreased)
        words = "at m = 300 some pages with many announcements are crawled more and some less"
        yield Claim(min(shares) >= SOME, words, *shares)
        fast, slow = (float(dots.change_rate[some].mean()) if some.any() else nan for some in (boosted, decreased))
        yield Claim(fast > slow, "those crawled more change more often", fast, slow)
        few = dots.ratio(dots.few)
        yield Claim(0.8 < few < 1.2, "pages with few announcements stay near the optimal rates", few)


def noisy_signals_14(table: Table) -> Claims:
    for m in table.values("pages"):
        trusting, wary = _dots_of(table, m, "GREEDY-CIS"), _dots_of(table, m, "GREEDY-NCIS")
        boosted = wary.share(trusting.rate > 1.5 * np.maximum(wary.rate, wary.best))
        words = f"at m = {m} GREEDY-CIS crawls some pages with many announcements half as often again as is best"
        yield Claim(boosted >= SOME, words, boosted)
        blind, seeing = (
            table.one(crawl_rates.IDLE, pages=m, policy=name).mean for name in ("GREEDY-CIS", "GREEDY-NCIS")
        )
        words = f"at m = {m} false announcements cost it more crawls that find no change than GREEDY-NCIS"
        yield Claim(blind > seeing, words, blind, seeing)


def noisy_signals_9(table: Table) -> Claims:
    """The accuracy rises and falls to that of the new bandwidth by itself."""
    for m in table.values("pages"):
        off = [abs(table.one(crawl_rates.SETTLED, pages=m, time=f"phase {phase}").mean) for phase in (1, 2, 3)]
        curves = [table.some(crawl_rates.ACCURACY, pages=m, bandwidth=same) for same in ("100", "150")]
        low, high = (float(np.mean([row.mean for row in curve[len(curve) // 2 :]])) for curve in curves)
        words = f"at m = {m} the accuracy moves between those of R = 100 and R = 150, and is near them in the end"
        yield Claim(max(off) <= PAR and high > low, words, low, high, *off)


# A bias that can be seen in a picture from 0 to 1; and the order of 10^-4 that the paper gives.
CLEARLY, HARDLY = 0.05, 0.001


def noisy_signals_10(table: Table) -> Claims:
    for name in MEASURES:
        off = [abs(row.mean) for row in table.some(BIAS, measure=name)]
        yield Claim(max(off) >= CLEARLY, f"counting is clearly biased in {name}", *off)


def noisy_signals_11(table: Table) -> Claims:
    """The bias is of the order of 0.0001, or what chance explains; and so it is over all pages."""
    for of in (*([row] for row in table.some(BIAS)), *(table.some(BIAS, measure=name) for name in MEASURES)):
        off = abs(sum(row.mean for row in of)) / len(of)
        chance = 3 * sum(np.nan_to_num(row.standard_error) ** 2 for row in of) ** 0.5 / len(of)
        yield Claim(off <= max(HARDLY, chance), f"the fit is hardly biased in {of[0].labels[1]}", off)


# The approximations are called very good while they are within this share of the limit.
VERY_WELL = 0.01


def noisy_signals_6(table: Table) -> Claims:
    """Three terms approximate very well; the caption says that all functions tend to the same value."""
    curves = {name: [row.mean for row in table.some(VALUE, function=name)] for name in (EXACT, *TERMS)}
    limit = table.one(VALUE, function=LIMIT).mean
    one, two, three = (float(np.abs(np.subtract(curves[name], curves[EXACT])).max()) / limit for name in TERMS)
    yield Claim(one > two > three, "more terms come nearer: farthest off in shares of the limit", one, two, three)
    yield Claim(three <= VERY_WELL, "three terms approximate very well", three)
    ends = [curve[-1] for curve in curves.values()]
    held = all(abs(end - limit) < 1e-9 * limit for end in ends)
    yield Claim(held, "the asymptotic value is that of all functions", limit, *ends)
