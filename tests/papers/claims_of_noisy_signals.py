"""What the noisy-signals paper claims of its figures."""

from dataclasses import dataclass
from functools import partial
from math import hypot, isnan, nan

import numpy as np

from crawlsched.columns.array_types import BoolArray, FloatArray
from crawlsched.simulation.figures import Row, Table
from crawlsched.simulation.figures.accuracy import CORRUPTIONS, LOST, NO_DELAY, POLICIES_5
from crawlsched.simulation.figures.crawl_rates import (
    ACCURACY,
    CHANGE_RATE,
    DISTANCE,
    FEW,
    IDLE,
    MANY,
    RATE,
    RECALL,
    SETTLED,
    STEPS,
    values_of,
)
from crawlsched.simulation.figures.figure import Label
from crawlsched.simulation.figures.instances import BASELINE
from crawlsched.simulation.figures.signal_estimates import BIAS, EXACT, LIMIT, MEASURES, SIZE, TERMS, VALUE
from tests.papers.claim import Claim, Claims, said, unless_chance

# What is less apart than this counts as on par, or as close.
PAR = 0.01


# Two policies this close may come out either way.
_SMALL = 0.001


# "Almost every case" leaves out at most so many.
_FEW = 0.1


_say = partial(said, mean=".4f", error=".4f")


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


def _dots_of(table: Table, pages: Label, policy: str) -> _Dots:
    recall = values_of(table, RECALL, pages)
    best, rate = values_of(table, RATE, pages, BASELINE), values_of(table, RATE, pages, policy)
    return _Dots(best, rate, values_of(table, CHANGE_RATE, pages), recall >= MANY, recall <= FEW)


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


# A bias that can be seen in a picture from 0 to 1; and the order of 10^-4 that the paper gives.
CLEARLY, HARDLY = 0.05, 0.001


def _clearly_biased(table: Table) -> Claims:
    for name in MEASURES:
        rows = table.some(BIAS, measure=name)
        worst = max(abs(row.mean) for row in rows)
        at = ", ".join(f"{row.mean:.3f} at {row.labels[0]:g}" for row in rows)
        yield Claim(worst >= CLEARLY, f"counting is clearly biased in {name}; by crawls per change, it is off by {at}")


def _hardly_biased(table: Table) -> Claims:
    def at(row: Row) -> str:
        return f"{_say(row)} ({row.labels[1]}, {row.labels[0]:g} crawls per change)"

    def chance(row: Row) -> float:
        return 3 * row.standard_error if row.repetitions > 1 else 0.0

    biased = max(table.some(BIAS), key=lambda row: abs(row.mean) - chance(row))
    words = f"the bias of the fit is of the order of 0.0001 (below {HARDLY}, or what chance explains); the worst is "
    yield Claim(abs(biased.mean) <= max(HARDLY, chance(biased)), words + at(biased))
    overall = {name: _mean_of(table.some(BIAS, measure=name)) for name in MEASURES}
    largest = max(table.some(SIZE), key=lambda row: row.mean)
    yield Claim(
        all(abs(row.mean) <= max(HARDLY, chance(row)) for row in overall.values()),
        "so is its absolute error, as that of the bias over all pages: "
        f"{', '.join(f'{_say(row)} ({name})' for name, row in overall.items())}; one page's estimate is off by "
        f"more, on average by up to {at(largest)}",
    )


def _mean_of(rows: list[Row]) -> Row:
    """Return the mean of numbers that were measured apart."""
    n = len(rows)
    error = sum(row.standard_error**2 for row in rows) ** 0.5 / n
    return Row(rows[0].quantity, (), sum(row.mean for row in rows) / n, error, rows[0].repetitions)


# The approximations are called very good while they are within this share of the limit.
VERY_WELL = 0.01


def _three_terms_are_enough(table: Table) -> Claims:
    """Three terms approximate very well; the caption says that all functions tend to the same value."""
    curves = {name: [row.mean for row in table.some(VALUE, function=name)] for name in (EXACT, *TERMS)}
    limit = table.one(VALUE, function=LIMIT).mean
    off = {name: float(np.abs(np.subtract(curves[name], curves[EXACT])).max()) / limit for name in TERMS}
    one, two, three = off.values()
    words = ", ".join(f"{share:.2%} with {name}" for name, share in off.items())
    yield Claim(one > two > three, f"more terms come nearer; farthest off, in shares of the asymptotic value: {words}")
    words = f"three terms approximate very well (within {VERY_WELL:.0%}); farthest off by {three:.2%}"
    yield Claim(three <= VERY_WELL, words)
    ends = {name: curve[-1] for name, curve in curves.items()}
    words = ", ".join(f"{end:.4g} ({name})" for name, end in ends.items())
    held = all(abs(end - limit) < 1e-9 * limit for end in ends.values())
    yield Claim(held, f"the asymptotic value {limit:.4g} is that of all functions; they end at {words}")


CLAIMS = {
    "noisy-signals-2": _on_par,
    "noisy-signals-3": _cis_above_greedy,
    "noisy-signals-4": _ncis_best,
    "noisy-signals-5": _plus_is_less_robust,
    "noisy-signals-6": _three_terms_are_enough,
    "noisy-signals-7": _lds_keeps_to_the_rates,
    "noisy-signals-8": _delay_matters_little,
    "noisy-signals-9": _settles,
    "noisy-signals-10": _clearly_biased,
    "noisy-signals-11": _hardly_biased,
    "noisy-signals-12": _announced_pages_are_crawled_less,
    "noisy-signals-13": _where_crawls_are_short,
    "noisy-signals-14": _blind_trust_costs_crawls,
}
