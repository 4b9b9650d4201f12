"""Other objectives than freshness: copies young, changes seen soon; by brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlsched.crawl_value import age_value, delay_value
from crawlsched.crawl_value.objectives import OBJECTIVES
from crawlsched.pages import LIVE
from crawlsched.planner import DEFAULT_GRID, Planner, plan
from crawlsched.planner.reports.outlook import Outlook
from crawlsched.planner.values.objective_values import ObjectiveValues
from tests.unit.planner.test_planner_values import NOW, collection

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
HOUR = 3600.0


def integral(f, until: float, parts: int = 40) -> float:
    """Return the integral of a function from 0, by Gauss and Legendre in many parts."""
    edges = np.linspace(0.0, until, parts + 1)
    half = np.diff(edges)[:, np.newaxis] / 2
    return float((WEIGHTS * half * f(edges[:-1, np.newaxis] + half * (NODES + 1))).sum())


@given(st.floats(-8, 1).map(lambda x: 10.0**x), st.floats(-4, 2).map(lambda x: 10.0**x), st.floats(0.1, 9.0))
@settings(max_examples=80)
def test_a_value_is_the_time_times_the_cost_less_what_the_page_has_cost(rate, expected, importance) -> None:
    """V(τ) = τ c(τ) - ∫ c, for the mean age and for the mean number of changes not seen, integrated numerically."""
    elapsed = expected / rate
    # Both are ∫ s c'(s) ds: of the age c' = 1 - exp(-Δs), of the changes c' = Δ.
    age = integral(lambda s: s * -np.expm1(-rate * s), elapsed)
    assert float(age_value(elapsed, rate, importance)) == pytest.approx(importance * age, rel=1e-10)
    delay = integral(lambda s: s * rate, elapsed)
    assert float(delay_value(elapsed, rate, importance)) == pytest.approx(importance * delay, rel=1e-10)


def test_arguments_that_make_no_sense_are_refused_and_pages_that_never_change_are_worth_nothing() -> None:
    """In one sentence, as by the other crawl values."""
    assert age_value(5.0, [0.0, 0.0]).tolist() == delay_value(5.0, [0.0, 0.0]).tolist() == [0.0, 0.0]
    for value in (age_value, delay_value):
        with pytest.raises(ValueError, match="elapsed must be 0 or more"):
            value(-1.0, 1.0)
        with pytest.raises(ValueError, match="change_rate must be 0 or more per second"):
            value(1.0, -1.0)
    with pytest.raises(ValueError, match="objective must be freshness, age or delay, got 'soon'"):
        Planner(1.0, objective="soon")
    with pytest.raises(ValueError, match="objective age needs the crawl_value posterior or greedy_ncis, got 'lds'"):
        Planner(1.0, crawl_value="lds", objective="age")


@given(st.integers(0, 10_000), st.sampled_from(list(OBJECTIVES)))
@settings(max_examples=30)
def test_values_are_expectations_alike_for_one_page_and_for_many(seed: int, name: str) -> None:
    """Of a page with a copy and nothing announced the formula for each rate, by its weight; to the last bit alone."""
    estimates, rows = collection(seed)
    values = ObjectiveValues(estimates._pages, estimates, OBJECTIVES[name])
    many, columns = values.many(rows), estimates._pages
    found = many.at(NOW)
    assert [values.one(page).at(NOW) for page in rows.tolist()] == found.tolist()
    assert [many.one_at(row, NOW)[0] for row in range(rows.size)] == found.tolist()
    assert np.isfinite(found).all()
    assert (found >= 0.0).all()
    rate, _ = estimates.announcements.signals(rows)
    plain = (columns.crawled_at[rows] > -np.inf) & (rate == 0.0)
    plain &= columns.n_signals[rows] == 0
    value = {"age": age_value, "delay": delay_value}[name]
    elapsed = NOW - columns.crawled_at[rows[plain]]
    each = value(elapsed[:, np.newaxis], DEFAULT_GRID, columns.importance[rows[plain]].astype(float)[:, np.newaxis])
    expected = (estimates.value_weights(rows[plain]) * each).sum(axis=1)
    assert found[plain] == pytest.approx(expected, rel=1e-9)


@given(
    st.integers(0, 10_000),
    st.sampled_from(list(OBJECTIVES)),
    st.floats(-2, 6).map(lambda x: 10.0**x),
    st.floats(0.0, 6.0),
    st.floats(0.0, 1e5),
)
@settings(max_examples=60)
def test_no_value_exceeds_its_bounds_nor_reaches_a_level_before_it_is_said(seed, name, ahead, decades, later) -> None:
    """Parabolas lie above, for one page and for many; crossing times are early, and by little where they are seen."""
    estimates, rows = collection(seed)
    values = ObjectiveValues(estimates._pages, estimates, OBJECTIVES[name])
    many = values.many(rows)
    value, slope, half = many.parabolas(NOW, NOW + ahead)
    for share in (0.0, 0.3, 1.0):
        passed = (NOW + share * ahead) - NOW  # as the clock can tell it
        assert (many.at(NOW + passed) <= value + slope * passed + half * passed**2).all()
    bounds = [values.one(page).bound(NOW + ahead) for page in rows.tolist()]
    assert (many.at(NOW + ahead) <= bounds).all()
    moving = ~many.steady
    after = NOW + later
    aims = many.at(after)[moving] * 10.0**decades + 1e-6
    times = many.crossings(aims, after, moving)
    alone = [many.one(row).crossing(aim, after) for row, aim in zip(np.flatnonzero(moving), aims, strict=True)]
    assert times.tolist() == alone
    assert (times >= after).all()
    finite = np.minimum(times, 1e14)
    part = many.some(np.flatnonzero(moving))
    # The clock tells times to a ten-millionth of a second.
    assert (part.at(np.maximum(finite - 2e-7, after)) <= aims * (1.0 + 1e-9)).all()
    # What decides is found in a few looks.
    for _ in range(4):
        finite = np.minimum(part.crossings(aims, finite, np.ones(aims.size, bool)), 1e14)
    seen = finite < 1e13
    assert (part.at(finite + 1e-5 * (finite - NOW) + 1e-3) >= aims * (1.0 - 1e-4))[seen].all()


def crawled(objective: str, crawl_value: str, seed: int, n: int = 40) -> tuple[Planner, np.ndarray]:
    rng = np.random.default_rng(seed)
    rates = rng.lognormal(np.log(1 / HOUR), 1.5, n)
    planner = Planner(0.05, objective=objective, crawl_value=crawl_value)
    columns = {
        "page": np.arange(n),
        "state": np.full(n, LIVE, np.uint8),
        "importance": rng.uniform(0.5, 2.0, n),
        "crawled_at": rng.uniform(-HOUR, 0.0, n),
        "first_seen": np.zeros(n),
        "host": np.zeros(n, np.intp),
        "source": np.where(np.arange(n) % 3 == 0, 0, -1),
        "signalled_since": np.where(np.arange(n) % 3 == 0, 0.0, np.nan),
    }
    planner.load(columns, None, 1.0)
    if crawl_value == "greedy_ncis":
        planner.set_rates(np.arange(n), rates, 0.5 * (np.arange(n) % 3 == 0), rates * (np.arange(n) % 3 == 0), 1.0)
    return planner, rates


@pytest.mark.parametrize("crawl_value", ["posterior", "greedy_ncis"])
@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_each_slot_goes_to_the_page_that_is_worth_most(objective: str, crawl_value: str) -> None:
    """As a look at all pages finds it, with announcements, new pages and plans coming in; none is given up."""
    planner, rates = crawled(objective, crawl_value, 1)
    rng = np.random.default_rng(2)
    now, counts = 1.0, np.zeros(60)
    for slot in range(600):
        now += 20.0
        if slot % 7 == 0:
            planner.signalled(rng.choice(np.arange(0, 40, 3), 2, replace=False), 0, now)
        if slot == 100:
            planner.add(0, now, 1.0, n=3)
        if slot % 150 == 149 and crawl_value == "posterior":
            planner.adopt(plan(planner.snapshot(), 0.05), now)
        pages = np.arange(planner.pages.n)
        picked = planner.pick(now, lambda host, now: now)
        assert picked is not None
        values = planner.crawl_values.many(pages).at(now)
        assert values[picked.page] >= values.max() * (1.0 - 1e-12)
        rate = rates[picked.page] if picked.page < rates.size else 1 / HOUR
        elapsed = min(now - planner.pages.crawled_at.item(picked.page), 1e6)
        changed = bool(rng.random() < -np.expm1(-rate * elapsed))
        planner.crawled(picked.page, now, changed if crawl_value == "posterior" else None)
        counts[picked.page] += 1
    assert counts[: planner.pages.n].min() > 0
    if crawl_value == "greedy_ncis" and objective == "delay":
        silent = np.arange(40) % 3 != 0
        weight = planner.pages.importance[:40][silent].astype(float)
        wanted = np.sqrt(rates[silent] * weight)
        # At one threshold pages without announcements go at rates in proportion to the square roots of theirs.
        assert counts[:40][silent] / counts[:40][silent].sum() == pytest.approx(wanted / wanted.sum(), abs=0.01)


@pytest.mark.parametrize("objective", ["freshness", *OBJECTIVES])
def test_how_soon_changes_are_seen_is_that_of_each_pages_interval(objective: str) -> None:
    """Without announcements a page crawled every T seconds has min(1, X/T) of its changes seen within X."""
    planner, _ = crawled(objective, "posterior", 3)
    rows = np.arange(0, 40)
    planner.pages.source[rows] = -1
    within, bandwidth = 900.0, 0.05
    outlook = Outlook(800.0, within)
    outlook.add(planner, rows, 1.0)
    share = outlook.seen(bandwidth)
    # By brute force: each page's interval at a threshold, and the threshold at which the intervals use the bandwidth.
    times = np.geomspace(1.0, 1e8, 4000)
    values = np.stack([planner.crawl_values.supposing(rows, np.full(40, -t), np.zeros(40)).at(0.0) for t in times])

    def intervals(threshold: float) -> np.ndarray:
        return np.array([np.interp(threshold, values[:, row], times, right=np.inf) for row in rows])

    levels = np.geomspace(values[1].min(), values[-1].max(), 3000)
    wanted = np.array([(1 / intervals(level)).sum() for level in levels])
    waits = intervals(float(np.interp(-bandwidth, -wanted, levels)))
    weight = planner.pages.importance[rows] * (planner.values.weights(rows) @ planner.posterior.rates)
    assert share == pytest.approx(float((weight * np.minimum(within / waits, 1.0)).sum() / weight.sum()), abs=0.01)
    assert outlook.bandwidth_to_see(share) == pytest.approx(bandwidth, rel=0.02)
    assert 0.0 <= outlook.seen(bandwidth / 4) < share < outlook.seen(bandwidth * 4) <= 1.0


@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_a_plans_threshold_is_in_the_units_of_the_objective(objective: str) -> None:
    """At the threshold of its demand curve the pages want the bandwidth that the plan was made for."""
    planner, _ = crawled(objective, "posterior", 4)
    for page in range(40):
        planner.hold(page)
        planner.crawled(page, 2.0, None)
    made = plan(planner.snapshot(), 0.05)
    assert made.objective == type(made).from_dict(made.to_dict()).objective == objective
    planner.adopt(made, 2.0)
    while planner.work(2.0):
        pass
    outlook = Outlook(800.0)
    outlook.add(planner, np.arange(40), 2.0)
    thresholds, wanted = made.demand.T
    assert outlook.freshness(0.05) > 0.0
    found = np.interp(made.threshold, *_curve(outlook))
    assert found == pytest.approx(0.05, rel=0.3)  # ten thresholds a decade, steps of 9 % of time
    assert np.interp(0.05, wanted, thresholds) == pytest.approx(made.threshold, rel=0.5)


def _curve(outlook: Outlook) -> tuple[np.ndarray, np.ndarray]:
    from crawlsched.planner.reports.outlook import _LEVELS

    return _LEVELS, outlook._wanted[:-1]
