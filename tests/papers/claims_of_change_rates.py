"""What the papers on change rates claim of their figures."""

from collections.abc import Iterable, Mapping
from math import hypot, inf, isnan

import numpy as np

from crawlsched.estimators.visit_counts import best_frequency_ratio, bias_reduced_moments
from crawlsched.simulation.figures import Row, Table
from crawlsched.simulation.figures.figure import Label
from crawlsched.simulation.figures.frequency_of_change import (
    BIAS,
    CLOSER,
    CORRECTED,
    DATED_RATIOS,
    ENOUGH,
    FIRST,
    NAIVE,
    OFF,
    OURS,
    OVER_UNIFORM,
    REDUCED,
    SHAPES,
    SIMULATED,
    UNIFORM,
    VARIATION,
    WITH_DATES,
    WITHOUT_DATES,
    moment,
)
from crawlsched.simulation.figures.online_estimators import (
    EDITED_STEPS,
    ERROR,
    ESTIMATE,
    FAST,
    OFTEN,
    SELDOM,
    SPREAD,
    TRAJECTORY,
)
from crawlsched.simulation.figures.optimal_crawl_rates import DISTANCE, ESTIMATORS, FRESHNESS, OPTIMUM, SHOWN, STEPS_6
from tests.papers.claim import Claim, Claims, last, said, unless_chance


def at_the_end(table: Table, quantity: str, names: Iterable[str] = (), **labels: Label) -> dict[str, Row]:
    """Return the row of each estimator after the last visit; of all that there are if none is named."""
    rows = table.some(quantity, **labels)
    wanted = list(names) or list(dict.fromkeys(str(table.label(row, "estimator")) for row in rows))
    return {name: last(table, quantity, "visits", estimator=name, **labels) for name in wanted}


def listed(rows: Mapping[str, Row]) -> str:
    """Say a number of each of some estimators."""
    return ", ".join(f"{name} {said(row)}" for name, row in rows.items())


# "Comparable": errors differ by at most this share of the naive estimator's, which is what a plot with it can show.
_COMPARABLE = 0.1
# "Far ahead": so many times closer.
_FAR = 2.0


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


# An estimator has reached its limit when its mean is this near to it.
_NEAR = 0.1


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
    near = [float(table.label(row, "visits")) for row in rows if abs(row.mean / FAST - 1) <= _NEAR]
    return min(near, default=inf)


def _conference_claims(table: Table) -> Claims:
    yield _largest_alpha_is_slowest(table)
    errors = at_the_end(table, ERROR, panel="b")
    small, middle, large = (errors[name].mean for name in ("η = 0.5", "η = 0.75", "η = 1"))
    yield Claim(middle < small, f"(b) SA is better with η = 0.75 than with 0.5: errors in the end {listed(errors)}")
    yield Claim(large > middle, f"(b) and worse with η = 1 than with 0.75: errors in the end {listed(errors)}")


# A straight line is one of this correlation.
_STRAIGHT = 0.99


def _edited_claims(table: Table) -> Claims:
    rows = table.some(TRAJECTORY, p="")
    theory, quantiles = [float(table.label(row, "visits")) for row in rows], [row.mean for row in rows]
    slope = np.polyfit(theory, quantiles, 1)[0]
    # Changes at regular intervals have one quantile only, and no correlation.
    straight = np.corrcoef(theory, quantiles)[0, 1] if np.ptp(quantiles) > 1e-9 * max(quantiles) else 0.0
    words = f"(a) the quantiles lie on the diagonal: slope {slope:.3f}, correlation {straight:.4f}"
    yield Claim(bool(straight > _STRAIGHT and 0.9 < slope < 1.1), words)
    often, seldom = (at_the_end(table, ERROR, EDITED_STEPS, p=rate) for rate in (OFTEN, SELDOM))
    naive, *ours = (row.mean for row in often.values())
    yield Claim(
        max(ours) - min(ours) <= _COMPARABLE * naive > _COMPARABLE * max(ours),
        f"(b) at p = {OFTEN} MLE, LLN, SA and SAM are comparable and outperform Naive: errors {listed(often)}",
    )
    better, worse = (
        max(seldom[name].mean for name in ("SAM", "MLE")),
        min(seldom[name].mean for name in ("LLN", "SA")),
    )
    yield Claim(better < worse, f"(c) at p = {SELDOM} SAM and MLE are better than LLN and SA: errors {listed(seldom)}")


def _adaptive_claims(table: Table) -> Claims:
    rounds = sorted({int(table.label(row, "round")) for row in table.rows})
    early = [number for number in rounds if 1 <= number <= 3]
    if not early:
        yield Claim(None, "the first rounds of adaptation are needed")
        return
    off = {
        name: [
            sum(table.one(DISTANCE, page=shown, estimator=name, round=number).mean for number in early) / len(early)
            for shown in SHOWN
        ]
        for name in STEPS_6
    }
    words = {name: f"{name} {' and '.join(f'{mean:.4f}' for mean in means)}" for name, means in off.items()}
    for name in ("SA", "SAM"):
        yield Claim(
            sum(off[name]) < sum(off["LLN"]),
            f"{name} is closer to the two optimal rates shown than LLN, at least initially: distances of pages like "
            f"{' and '.join(SHOWN)}, mean of rounds {early[0]} to {early[-1]}: {words[name]}; {words['LLN']}",
        )


def _optimal_claims(table: Table) -> Claims:
    at = {name: last(table, DISTANCE, "visits", estimator=name) for name in ESTIMATORS}
    fresh = {name: last(table, FRESHNESS, "visits", estimator=name) for name in (*ESTIMATORS, OPTIMUM)}
    lost = {name: fresh[OPTIMUM].mean - fresh[name].mean for name in ESTIMATORS}
    yield Claim(
        max(at["LLN"].mean, at["SA"].mean) < at["Naive"].mean,
        f"(a) the optimal crawl rates are estimated far better by LLN and SA than by Naive: mean distance {listed(at)}",
    )
    yield Claim(
        max(lost["LLN"], lost["SA"]) < lost["Naive"],
        "(b) in the end the freshness of LLN and SA is closer to the optimum's "
        f"{said(fresh[OPTIMUM])}: lost are {', '.join(f'{name} {value:.2g}' for name, value in lost.items())}",
    )
    words = f"(b) freshness does not vary much: the most that is lost in the end is {max(lost.values()):.2g}"
    yield Claim(max(lost.values()) < 0.05, words)


def _agreement(table: Table, quantity: str) -> Claim:
    """Return the claim that simulated numbers are the exact ones, within four standard errors."""
    words = f"simulation agrees with the formula for {quantity}"
    off = []
    for row in table.some(SIMULATED + quantity):
        name, n, ratio = row.labels
        apart = abs(row.mean - moment(quantity, str(name), float(ratio), int(n)))
        off.append(apart / row.standard_error if row.standard_error > 0 else np.nan)
    if not off or np.isnan(off).any():
        return Claim(None, f"{words}: two repetitions at least are needed")
    return Claim(max(off) < 4.0, f"{words}: at most {max(off):.1f} standard errors off at {len(off)} points")


def _claims_3(table: Table) -> Claims:
    below = max(float(table.label(row, "r")) for row in table.some(BIAS) if row.mean > 0.9)
    at_two = 1 - moment(BIAS, UNIFORM, 2.0, 1)
    yield Claim(abs(below - 0.21) < 0.005, f"the bias is below 10 % for r < 0.21: it is for r < {below:.3f}")
    yield Claim(abs(at_two - 0.57) < 0.005, f"at r = 2 the bias is 57 % (Example 3): it is {at_two:.1%}")
    yield _agreement(table, BIAS)


def _claims_4(table: Table) -> Claims:
    one, nine = (moment(VARIATION, UNIFORM, ratio, n) for ratio, n in ((1.0, 1), (0.3, 9)))
    words = f"σ/r = 0.5 takes one visit at r = 1 and nine at r = 0.3: it is {one:.3f} and {nine:.3f} there"
    yield Claim(max(abs(one - 0.5), abs(nine - 0.5)) < 0.02, words)
    interval = 2 * moment(VARIATION, UNIFORM, 1 / 7, 10)
    words = f"at r = 1/7 with 10 visits 2σ/r is 1.5 (Example 3): it is {interval:.3f}"
    yield Claim(abs(interval - 1.5) < 0.05, words)
    yield _agreement(table, VARIATION)


def _claims_5(table: Table) -> Claims:
    ratios = np.linspace(0.01, 1, 100)
    worst = max(float(np.abs(bias_reduced_moments(ratios, n)[0] / ratios - 1).max()) for n in (3, 10, 50))
    yield Claim(worst < 0.05, f"practically unbiased for r < 1 with any n ≥ 3: at most {worst:.1%} off")
    off = moment(BIAS, REDUCED, 3.0, 50) - 1
    yield Claim(abs(off) < 0.05, f"with n = 50 not heavily biased until r > 3: {off:+.1%} at r = 3")
    yield _agreement(table, BIAS)


def _claims_7(table: Table) -> Claims:
    ten, forty = (moment(VARIATION, REDUCED, 1.5, n) for n in (10, 40))
    words = f"at r = 1.5 σ/r is 0.4 with n = 10 and 0.2 with n = 40: it is {ten:.3f} and {forty:.3f}"
    yield Claim(abs(ten - 0.4) < 0.01 and abs(forty - 0.2) < 0.01, words)
    best = {n: best_frequency_ratio(n) for n in (20, 40, 80)}
    yield Claim(abs(best[20] - 1.35) < 0.01, f"with n = 20 it is least at r = 1.35: at {best[20]:.2f}")
    words = f"and for other n at about 1.5: at {best[40]:.2f} with n = 40 and {best[80]:.2f} with n = 80"
    yield Claim(all(abs(best[n] - 1.5) < 0.1 for n in (40, 80)), words)
    yield _agreement(table, VARIATION)


def _claims_11(table: Table) -> Claims:
    great = moment(BIAS, FIRST, 5.0, 2)
    yield Claim(great > 1.8, f"with n = 2 the estimate is about twice the truth for r > 5: {great:.3f} times at r = 5")
    limits = {n: (moment(BIAS, FIRST, 200.0, n), moment(BIAS, FIRST, 1e-4, n)) for n in (2, 5, 10)}
    yield Claim(
        all(
            abs(high / (n / (n - 1)) - 1) < 0.01 and abs(low / (n * np.log(n / (n - 1))) - 1) < 0.01
            for n, (high, low) in limits.items()
        ),
        "the limits are n/(n - 1) for great r and n log(n/(n - 1)) for small r (Theorem D.2): "
        + "; ".join(f"n = {n}: {high:.3f} and {low:.3f}" for n, (high, low) in limits.items()),
    )
    yield _agreement(table, BIAS)


def _claims_12(table: Table) -> Claims:
    worst = max(table.some(BIAS, n=2), key=lambda row: abs(row.mean - 1))
    words = f"with n = 2 the bias is below 2 % for any r: at most {worst.mean - 1:+.2%}, at r = {worst.labels[2]:.2g}"
    yield Claim(abs(worst.mean - 1) < 0.02, words)
    example, without = (moment(BIAS, name, 4.0, 5) - 1 for name in (CORRECTED, REDUCED))
    yield Claim(
        abs(example) < 0.001 and abs(without + 0.43) < 0.01,
        f"for a weekly page visited monthly five times it is below 0.1 %, and 43 % without the dates (Example 6): "
        f"{example:+.3%} and {without:+.1%}",
    )
    yield _agreement(table, BIAS)


def _claims_14(table: Table) -> Claims:
    visits = (5, 10, 20, 40)
    by_n = [[table.one(VARIATION, n=n, r=r).mean for n in visits] for r in DATED_RATIOS]
    at_one = [moment(VARIATION, CORRECTED, 1.0, n) for n in visits]
    yield Claim(
        all(column == sorted(column, reverse=True) for column in by_n),
        f"the variation gets smaller as n increases, at every r: at r = 1 it is "
        f"{', '.join(f'{value:.3f}' for value in at_one)} for n = {', '.join(map(str, visits))}",
    )
    yield _agreement(table, BIAS)
    yield _agreement(table, VARIATION)


def _claims_6(table: Table) -> Claims:
    found = {n: table.one("unbiased up to r", n=n).mean for n in (20, 80)}
    # 3.5 is read off a graph: what rounds to it is meant.
    words = f"with n = 20 the bias is below 10 % for r < 3.5, to one digit: it is up to r = {found[20]:.2f} "
    yield Claim(found[20] >= 3.45, words + f"({moment(BIAS, REDUCED, 3.499, 20) - 1:.1%} at 3.5)")
    yield Claim(found[80] >= 4.99, f"with n = 80 it is for r < 5: up to r = {found[80]:.2f}")


def _claims_19(table: Table) -> Claims:
    """The constant that reduces the bias is near 0.5 for all n."""
    values = [row.mean for row in table.rows]
    words = f"a converges to 0.5 as n increases: {values[-1]:.4f} at n = {len(values)}"
    yield Claim(abs(values[-1] - 0.5) < 0.01, words)
    yield Claim(max(values) < 0.6, f"a is close to 0.5 even when n is small: {values[0]:.3f} at n = 1")


def _pairs(table: Table, quantity: str) -> dict[float, list[Row]]:
    ratios = [float(value) for value in table.values("r")]
    return {r: [table.one(quantity, estimator=name, r=r) for name in (WITHOUT_DATES, WITH_DATES)] for r in ratios}


def _claims_16(table: Table) -> Claims:
    bias = {r: [row.mean for row in pair] for r, pair in _pairs(table, BIAS).items()}
    less = {r: e.mean - t.mean for r, (e, t) in _pairs(table, VARIATION).items()}
    worst = max((t - 1 for _, t in bias.values()), key=abs)
    yield Claim(abs(worst) < 0.01, f"{WITH_DATES} shows no bias: at most {worst:+.2%}")
    useless = {r: e for r, (e, _) in bias.items() if r > 5}
    words = f"{WITHOUT_DATES} is biased for r > 5: {', '.join(f'{value:.2f} at {r:g}' for r, value in useless.items())}"
    yield Claim(all(value < 0.9 for value in useless.values()), words)
    below, above = ([value for r, value in less.items() if (r < 5 if low else r > 7)] for low in (True, False))
    words = f"{WITH_DATES} varies as much or less for r < 5: by {min(below):+.3f} to {max(below):+.3f}"
    yield Claim(min(below) > -0.01, words)
    words = f"{WITHOUT_DATES} varies less for r > 7, around what is wrong: by {max(above):+.3f} at r = {max(less):g}"
    yield Claim(max(above) < 0, words)


def _claims_17(table: Table) -> Claims:
    worst = max(abs(row.mean - 1) for pair in _pairs(table, BIAS).values() for row in pair)
    yield Claim(worst < 0.05, f"both are less than 5 % biased with n = 160 at r = 5 and 500 at 6: at most {worst:.1%}")
    pairs = _pairs(table, VARIATION)
    less = {r: [moment(VARIATION, name, r, ENOUGH[r]) for name in (CORRECTED, REDUCED)] for r in pairs}
    within = all(t.mean < e.mean + 2 * np.nan_to_num(e.standard_error) for e, t in pairs.values())
    yield Claim(
        within and all(t < e for t, e in less.values()),
        f"{WITH_DATES} varies less than {WITHOUT_DATES} at every r, simulated (to two standard errors) and by formula: "
        + ", ".join(f"{t:.5f} and {e:.5f} at {r:g}" for r, (t, e) in less.items()),
    )


def _claims_15(table: Table) -> Claims:
    rows = {shape: [table.one(BIAS, estimator=name, **{"α": shape}) for name in (NAIVE, OURS)] for shape in SHAPES}
    naive, ours = rows[1.0]
    yield Claim(
        abs(naive.mean - 0.63) < 0.01 and abs(ours.mean - 1) < 0.01,
        f"at α = 1 the naive estimator is 37 % off and ours not at all: {said(naive)} and {said(ours)} of the truth",
    )
    off = {shape: [abs(row.mean - 1) for row in pair] for shape, pair in rows.items()}
    yield Claim(
        all(ours < naive for shape, (naive, ours) in off.items() if shape <= _AROUND_ONE),
        f"ours is less biased than the naive estimator at every α around 1, from {SHAPES[0]:g} to {_AROUND_ONE:g}; "
        "off are ours and the naive one by "
        + ", ".join(f"{ours:.0%} and {naive:.0%} at α = {shape:g}" for shape, (naive, ours) in off.items()),
    )


def _claims_18(table: Table) -> Claims:
    closer = table.one(CLOSER, estimator=OURS, ratio=0.0)
    yield Claim(closer.mean > 0.7, f"ours is closer for most pages: {said(closer)} of them (83 % in the paper)")
    naive, ours = (table.one(OFF, estimator=name, ratio=0.0) for name in (NAIVE, OURS))
    words = f"the naive estimator is more than 35 % off, ours half as much: {said(naive)} and {said(ours)}"
    yield Claim(naive.mean > 0.35 and ours.mean < 0.6 * naive.mean, words)


def _claims_table(table: Table) -> Claims:
    naive, ours = (table.one(OVER_UNIFORM, policy=name) for name in (NAIVE, OURS))
    words = f"naive {said(naive)}, ours {said(ours)} of uniform (1.93 and 2.28 in the paper)"
    yield Claim(naive.mean > 1.0, f"adjusting the frequencies finds more changes than the uniform policy: {words}")
    more = ours.mean / naive.mean - 1
    words = f"our estimator finds more than the naive one: {more:.1%} more (18 % by the paper's table, 35 by its text)"
    yield Claim(ours.mean > naive.mean, words)


# "Varying the α around its initial value of 1": as far above it as below.
_AROUND_ONE = 1.8

CLAIMS = {
    "online-estimators-1": _edited_claims,
    "online-estimators-2": _likelihood_is_best,
    "online-estimators-3": _visits_are_rare,
    "online-estimators-4": _visits_are_less_rare,
    "online-estimators-5": _journal_claims,
    "online-estimators-6": _adaptive_claims,
    "optimal-freshness-1": _all_beat_naive,
    "optimal-freshness-2": _optimal_claims,
    "optimal-freshness-3": _conference_claims,
    "frequency-of-change-3": _claims_3,
    "frequency-of-change-4": _claims_4,
    "frequency-of-change-5": _claims_5,
    "frequency-of-change-6": _claims_6,
    "frequency-of-change-7": _claims_7,
    "frequency-of-change-11": _claims_11,
    "frequency-of-change-12": _claims_12,
    "frequency-of-change-14": _claims_14,
    "frequency-of-change-15": _claims_15,
    "frequency-of-change-16": _claims_16,
    "frequency-of-change-17": _claims_17,
    "frequency-of-change-18": _claims_18,
    "frequency-of-change-19": _claims_19,
    "frequency-of-change-table-1": _claims_table,
}
