"""Crawl values as the frontier asks for them: of the posterior, of the papers' rules, and of their plans."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl_value import greedy_ncis, posterior_value
from crawlsched.crawl_value.rules import RULES
from crawlsched.estimators import LearnedRates
from crawlsched.pages import Pages
from crawlsched.planner import DEFAULT_GRID, Planner, plan
from crawlsched.planner.evidence.announcements import COLUMNS
from crawlsched.planner.plans.parameters import Parameters, SignalGroups
from crawlsched.planner.values import POLICIES, PointValues, PosteriorValues
from tests.inputs import tries
from tests.planners import check_places, crawled_pages, load_crawled, never_rests

NOW = 1_000_000_000.0


def collection(seed: int, n: int = 60) -> tuple[PosteriorValues, np.ndarray]:
    """Return pages of all kinds and their values."""
    rng = np.random.default_rng(seed)
    planner = Planner(1.0)
    pages = planner.pages
    rows = planner.add(rng.integers(0, 3, n), NOW - 1e6, rng.lognormal(0, 2, n) * (rng.random(n) < 0.9))
    live = rows[rng.random(n) < 0.8]
    pages.crawled_at[live] = NOW - rng.exponential(10.0 ** rng.uniform(0, 6, live.size))
    for page in np.tile(live, 3).tolist():
        planner.posterior.update_one(page, rng.exponential(1e4) + 1e-3, rng.random() < 0.5)
    signalled = rows[rng.random(n) < 0.5]
    pages.source[signalled] = rng.integers(0, 3, signalled.size)
    pages.signalled_since[signalled] = NOW - 1e6
    pages.n_signals[signalled] = rng.poisson(0.7, signalled.size)
    pages.n_signals_total[signalled] = pages.n_signals[signalled] + rng.poisson(5, signalled.size)
    if seed % 2:  # numbers that do not fit into two bytes
        pages.n_signals_total[signalled[::2]] += 70_000
        pages.host[rows[pages.host[rows] == 2]] = pages.source[rows[pages.source[rows] == 2]] = 70_002
    weights, rates = np.array([1.0, 0.2, 0.0]), np.array([1e-4, 1e-3, 1e-3])
    known = Parameters(rng.dirichlet(np.ones(32), 3), np.array([1, 2, 0]), weights, rates, DEFAULT_GRID)
    planner.in_force.parameters = known
    return planner.crawl_values, rows


@given(st.integers(0, 10_000))
@tries(25)
def test_the_value_of_a_page_is_the_posterior_crawl_value(seed: int) -> None:
    """The frontier's quick formula and the library's agree, with announcements and without."""
    values, rows = collection(seed)
    rate, weight, evidence = values.announcements.gathered(rows)
    known = values._pages.crawled_at[rows] > -np.inf
    elapsed = NOW - values._pages.crawled_at[rows[known]]
    told = evidence[known], rate[known] * (weight[known] > 0), weight[known] * (rate[known] > 0)
    importance = values._pages.importance[rows[known]].astype(float)
    expected = posterior_value(values.value_weights(rows[known]), DEFAULT_GRID, elapsed, *told, importance)
    assert values.value_at(rows[known], NOW) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(0, 10_000))
@tries(25)
def test_one_page_has_the_same_value_alone_as_among_others(seed: int) -> None:
    """However many pages are asked for, and each at a time of its own."""
    values, rows = collection(seed)
    together = values.value_at(rows, NOW)
    assert together.tolist() == [values.value_at(rows[row : row + 1], NOW).item() for row in range(rows.size)]
    assert together.tolist() == values.value_at(rows, np.full(rows.size, NOW)).tolist()
    assert np.isfinite(together).all()
    assert (together >= 0).all()


@given(st.integers(0, 10_000), st.floats(-3.0, 3.0))
@tries(50)
def test_no_page_reaches_a_level_long_before_it_is_said(seed: int, decades: float) -> None:
    """A page is found when its time has come; one that was never announced is worth about the level then."""
    values, rows = collection(seed)
    rows = rows[values._pages.crawled_at[rows] > -np.inf]
    level = float(np.median(values.value_at(rows, NOW)) + 1.0) * 10.0**decades
    times, of_double = values.reaches(rows, np.outer([level, 2.0 * level], np.ones(rows.size)), NOW)
    assert (times >= NOW).all()
    assert (of_double >= times).all()
    assert (values.value_at(rows, np.clip(of_double - 1e-3, NOW, NOW + 1e10)) <= 2.04 * level)[of_double > NOW].all()
    before = np.minimum(np.maximum(times - 1e-3, NOW), NOW + 1e10)
    assert (values.value_at(rows, before) <= 1.02 * level)[times > NOW].all()
    rate, _, evidence = values.announcements.gathered(rows)
    plain = (rate == 0.0) & (evidence == 0.0) & (times > NOW + 1.0) & (times < NOW + 1e9)
    assert (values.value_at(rows, np.where(plain, times, NOW))[plain] >= 0.98 * level).all()


def check_tangents(values: PosteriorValues | PointValues, rows: np.ndarray) -> None:
    """Values follow their tangents, within a per cent, while the time since the crawl grows by a twentieth."""
    elapsed = NOW - values._pages.crawled_at[rows]
    rows, elapsed = rows[elapsed > 0.01], elapsed[elapsed > 0.01]  # shorter times are lost in rounding
    value, slope = values.values_and_slopes(rows, NOW)
    assert value.tolist() == values.value_at(rows, NOW).tolist()
    ahead = np.where(elapsed < np.inf, 0.05 * elapsed, 1e6)
    assert value + slope * ahead == pytest.approx(values.value_at(rows, NOW + ahead), rel=0.01, abs=1e-12)


@given(st.integers(0, 10_000))
@tries(50)
def test_a_value_follows_its_tangent_for_a_twentieth_of_the_time_since_the_crawl(seed: int) -> None:
    """With announcements and without; the value of a page without a copy stays."""
    values, rows = collection(seed)
    check_tangents(values, rows)


@given(seed=st.integers(0, 10_000))
@tries(25)
def test_the_same_is_known_of_the_announcements_of_many_pages_as_of_each(seed: int) -> None:
    """Rates, weights and evidence by source and site, and by own precision.

    Also of pages of one to three sources that tell something, be they few or many.
    """
    values, rows = collection(seed, n=160)
    rng = np.random.default_rng(seed)
    pages = values._pages
    pages.n_signals_total[rows[::7]] = 0
    pages.n_signals[rows[::5]] = rng.integers(0, 1000, rows[::5].size)
    values.announcements._own.load(
        rows[:50], {name: rng.exponential(5.0, 50) * (rng.random(50) < 0.5) for name in COLUMNS}
    )
    fine = [(0, 1, 0.0, 1e-3, 9), (1, 0, 2.0, 1e-6, 9)]
    values.in_force.parameters = replace(values.in_force.parameters, signal_groups=SignalGroups(fine))
    known, further = values.announcements, values.announcements._further
    covered = rows[pages.source[rows] >= 0][: rng.choice([4, 70])]
    for source in (0, 1, 2):
        further.cover(covered[rng.random(covered.size) < 0.7], source, NOW - 1e5)
    counts, total = further.table["n_signals"], further.table["n_signals_total"]
    counts[:] = rng.poisson(0.7, counts.size)
    total[:] = rng.poisson(1.5, counts.size) + counts
    alone = np.hstack([known.gathered(rows[[place]]) for place in range(rows.size)]).T
    found, announced = known.gathered(rows).T, (pages.n_signals_total[rows] > 0) | (pages.further[rows] > 0)
    np.testing.assert_allclose(found[announced], alone[announced], rtol=1e-12)
    assert not found[~announced].any()
    assert found.any(axis=0).all()


N = 40

rules = pytest.mark.parametrize("rule", RULES)


def values_of_pages(rule: str, seed: int) -> PointValues:
    """Return the values of pages of all kinds, whose rates span twelve decades."""
    rng = np.random.default_rng(seed)
    planner = Planner(1.0, crawl_value=rule)
    pages: Pages = planner.pages
    rows = planner.add(0, NOW - 1e9, n=N)
    pages.importance[rows] = rng.lognormal(0, 3, N) * (rng.random(N) < 0.95)
    rate = 10.0 ** rng.uniform(-9, 3, N) * (rng.random(N) < 0.95)
    recall = rng.choice([0.0, 1.0, *rng.random(6)], N)
    false = rate * 10.0 ** rng.uniform(-3, 3, N) * (rng.random(N) < 0.7)
    pages.crawled_at[rows] = NOW - np.minimum(10.0 ** rng.uniform(-4, 3, N) / np.maximum(rate, 1e-6), 1e9)
    pages.n_signals[rows] = rng.poisson(rng.choice([0.0, 0.5, 30.0], N))
    planner.set_rates(rows, rate, recall, false, NOW)
    values = planner.crawl_values
    assert isinstance(values, PointValues)
    return values


@rules
@given(seed=st.integers(0, 10**6), decades=st.floats(-6, 3))
@tries(30)
def test_no_page_reaches_a_level_before_it_is_said(rule: str, seed: int, decades: float) -> None:
    """A page is found when its time has come, whatever the rates."""
    values = values_of_pages(rule, seed)
    rows = np.arange(N)
    level = (values.value_at(rows, NOW) + 1e-9) * (1.0 + 10.0**decades)
    times = values.reaches(rows, level[np.newaxis], NOW)[0]
    assert (times >= NOW).all()
    before = np.minimum(np.maximum(times - 1e-3, NOW), NOW + 1e12)
    assert (values.value_at(rows, before) <= 1.0001 * level).all()


@rules
@given(seed=st.integers(0, 10**6))
@tries(30)
def test_a_value_by_known_rates_follows_its_tangent(rule: str, seed: int) -> None:
    """By every rule of the papers."""
    check_tangents(values_of_pages(rule, seed), np.arange(N))


def test_of_a_page_whose_rates_are_known_every_announcement_counts_in_full() -> None:
    """Its precision is no estimate, which several announcements without a visit would put in doubt."""
    planner = crawled_pages(2, sources=[0], crawl_value="greedy_ncis")
    planner.set_rates([0, 1], 0.01, 0.5, 0.005, 0.0)
    for now in (1.0, 2.0, 3.0):
        planner.signalled([0], 0, now)
    expected = greedy_ncis(10.0, np.array([3, 0]), 0.01, 0.5, 0.005)
    values = planner.crawl_values.value_at(np.array([0, 1]), 10.0)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


N_PAGES = 40
BANDWIDTH = 0.5
HOUR, DAY = 3600.0, 86400.0


def planner_of(policy: str, seed: int = 1, **more: object) -> tuple[Planner, np.ndarray]:
    """Return a planner whose estimator has seen pages of known rates, and has made a plan."""
    rng = np.random.default_rng(seed)
    rates = rng.lognormal(np.log(1 / HOUR), 1.5, N_PAGES)
    planner = Planner(BANDWIDTH, crawl_value=policy, learned=LearnedRates("naive", 0, 1 / 80.0), **more)  # type: ignore[arg-type]
    load_crawled(planner, N_PAGES, importance=rng.uniform(0.5, 2.0, N_PAGES))
    for number in range(1, 20):
        for page in range(N_PAGES):
            planner.hold(page)
            planner.crawled(page, number * HOUR + page, bool(rng.random() < -np.expm1(-rates[page] * HOUR)))
    now = 20 * HOUR
    planner.adopt(plan(planner.snapshot(), BANDWIDTH), now)
    while planner.work(now):
        pass
    return planner, rates


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("seed", [1, 2])
def test_each_slot_goes_to_the_page_that_is_worth_most(policy: str, seed: int) -> None:
    """As a look at all pages finds it, and to a page without a copy before; the frontier's bounds hold."""
    planner, rates = planner_of(policy, seed)
    rng = np.random.default_rng(seed)
    pages, now = np.arange(N_PAGES), 20 * HOUR
    for slot in range(400):
        now += 1 / BANDWIDTH
        values = planner.crawl_values.value_at(pages, now)
        pick = planner.pick(now, never_rests)
        assert pick.page == int(values.argmax())
        elapsed = now - planner.pages.crawled_at.item(pick.page)
        planner.crawled(pick.page, now + 0.3, bool(rng.random() < -np.expm1(-rates[pick.page] * elapsed)))
        if slot % 50 == 0:
            check_places(planner.frontier, now + 0.4)
    new = planner.add(0, now).item()
    assert planner.pick(now + 1, never_rests).page == new


@pytest.mark.parametrize("crawl_value", ["posterior", "greedy", "harmonic"])
def test_what_never_changed_is_measured_by_a_round_of_this_crawl(crawl_value: str) -> None:
    """A day is no guess for pages that are crawled every minute: none of them would seem to be worth a visit."""
    n, bandwidth = 300, 5.0
    planner = Planner(bandwidth, crawl_value=crawl_value, learned=LearnedRates("naive", 0, 1 / DAY))
    pages = planner.add(host=0, now=0.0, n=n)
    for page in pages.tolist():
        planner.hold(page)
        planner.crawled(page, 0.0, None)
    assert planner.change_rates(pages) == pytest.approx(np.full(n, 0.5 / DAY))
    first = plan(planner.snapshot(), bandwidth)
    planner.adopt(first, 60.0)
    # While a plan comes into force page by page, each slot goes to the page that is worth most all the same.
    for slot in range(400):
        now = 60.0 + slot / bandwidth
        pick = planner.pick(now, never_rests)  # a slice of the plan comes into force before it
        if pick.reason == "value":
            values = planner.crawl_values.value_at(pages, now)
            assert values[pick.page] >= 0.94 * values.max()
        planner.crawled(pick.page, now, pick.page % 7 == 0)
        if slot % 40 == 0:
            check_places(planner.frontier, now)
    still = np.array([page for page in pages.tolist() if page % 7 and planner.pages.crawled_at.item(page) > 0.0])
    assert still.size > 100
    watched = planner.pages.crawled_at[still]
    assert planner.change_rates(still) == pytest.approx(0.5 / (watched + n / bandwidth))
