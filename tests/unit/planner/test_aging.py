"""Aging: pages that slow down as they get older are known to do so, and others are left as they are."""

import itertools
import json

import numpy as np
import pytest

from crawlsched.crawl_value import use_compiled
from crawlsched.estimators import Posterior
from crawlsched.pages import Pages
from crawlsched.planner import DEFAULT_GRID, Plan, Planner, explain, plan
from crawlsched.planner.evidence import page_age_loops, page_ages
from crawlsched.planner.evidence.page_ages import Ages, keep_found, shifted
from crawlsched.planner.models.rate_decay import Aging, AgingLaw, best_law, first_aging_losses
from tests.hosts import never_rests

DAY = 86_400.0
LAW = AgingLaw(strength=9.0, half_age=10 * DAY)
# As plans learn it: about a mean interval of 60 days, with a standard deviation of a factor of 2.7.
PRIOR = np.exp(-((np.log(DEFAULT_GRID * DAY) + np.log(60)) ** 2) / 2)
PRIOR /= PRIOR.sum()


def visited(n_pages: int, strength: float, rng: np.random.Generator) -> Aging:
    """Visit pages every 20 days from when they are found, and learn from it how they age."""
    aging, posterior = Aging(DEFAULT_GRID), Posterior(n_pages, DEFAULT_GRID)
    for page, rate in enumerate(rng.choice(DEFAULT_GRID, n_pages, p=PRIOR).tolist()):
        for begin, end in itertools.pairwise((np.arange(8) * 20 * DAY).tolist()):
            lived = AgingLaw(strength, 10 * DAY).lived(begin, end)
            changed = bool(rng.random() < -np.expm1(-rate * lived))
            aging.visited(posterior.weights_one(page, PRIOR), begin, end, 20 * DAY, 0.0, changed)
            posterior.update_one(page, lived, changed)
    return aging


def test_a_page_lives_as_fast_as_its_pace_says() -> None:
    """The time that it is old for, as it were, is the integral of its pace."""
    ages = np.linspace(3 * DAY, 50 * DAY, 10_001)
    middle = (ages[1:] + ages[:-1]) / 2
    assert LAW.lived(ages[0], ages[-1]) == pytest.approx(float(LAW.paces(middle).sum() * (ages[1] - ages[0])), rel=1e-6)
    assert LAW.pace(0.0) == 10.0
    assert LAW.pace(10 * DAY) == 5.5


def test_pages_that_slow_down_are_known_to_do_so() -> None:
    """What visits find tells how much faster they are at first."""
    aging = visited(80, 9.0, np.random.default_rng(1))
    law = best_law(aging.losses, 20 * DAY)
    assert law is not None
    assert law.strength >= 3.0
    assert aging.losses[0] > 20.0


def test_of_pages_that_do_not_age_nothing_is_believed() -> None:
    """Chance is not better by 3 nats than no aging in any of five collections."""
    for seed in range(5):
        aging = visited(80, 0.0, np.random.default_rng(seed))
        assert best_law(aging.losses, 20 * DAY) is None


def test_rates_that_are_some_times_as_high_have_as_high_a_geometric_mean() -> None:
    """And probabilities still add up to 1; a rate beyond the grid becomes its last."""
    steps = np.arange(32.0)
    weights, shifts = np.vstack([PRIOR, PRIOR, np.eye(32)[30]]), np.array([0.0, 2.3, 40.0])
    found = shifted(weights, shifts)
    assert found.sum(axis=1) == pytest.approx(np.ones(3))
    assert found[:2] @ steps == pytest.approx(PRIOR @ steps + shifts[:2])
    assert found[2] == pytest.approx(np.eye(32)[31])


def test_compiled_code_moves_probabilities_to_the_same_bits() -> None:
    """Whatever the probabilities and steps, so that the same pages are picked."""
    rng = np.random.default_rng(4)
    weights, shifts = rng.dirichlet(np.full(32, 0.3), 500), rng.choice([0.0, 1.0, 3.0, 31.0, 50.0, np.pi], 500)
    shifts[:200] = rng.uniform(0, 35, 200)
    found = weights.copy()
    page_age_loops.quicken(found, np.arange(500), shifts)
    assert (found == shifted(weights, shifts)).all()
    pytest.importorskip("numba")
    compiled = weights.copy()
    use_compiled(True)
    try:
        page_ages.LOOPS.quicken(compiled, np.arange(500), shifts)
    finally:
        use_compiled(None)
    assert (compiled == found).all()


def test_ages_are_forgotten_when_they_make_no_difference_any_more() -> None:
    """Of pages found before the collection was known nothing is kept, of new ones a rounded time for 256 rounds."""
    found = np.array([50.0, 1_000.4, np.nan])
    np.testing.assert_array_equal(keep_found(found, np.inf, 2_000.0, 64.0), [np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(keep_found(found, 100.0, 2_000.0, 64.0), [np.nan, 1_000.0, np.nan])
    np.testing.assert_array_equal(keep_found(found, 100.0, 1_001.0 + 256 * 64.0, 64.0), [np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(keep_found(found, 100.0, 2_000.0, 0.0), [np.nan, 1_000.4, np.nan])


def test_of_one_page_the_same_is_kept_as_of_many() -> None:
    """Whether it was found before or after, lately or long ago, or before there was a plan."""
    pages = Pages()
    for found in (50.0, 1_000.4, 1_700.0):
        pages.add(0, found)
    kept = Ages(pages)
    for since, now, even_interval in ((np.inf, 2e3, 64.0), (100.0, 2e3, 64.0), (100.0, 1.8e4, 64.0), (0.0, 2e3, 0.0)):
        kept.known_since = since
        many = keep_found(pages.first_seen[:3], since, now, even_interval)
        alone = [kept.found_one(page, now, 1.0 / even_interval if even_interval else np.inf) for page in range(3)]
        np.testing.assert_array_equal(alone, many)


def aging_collection(seed: int) -> tuple[Planner, float]:
    """Crawl a site on which a page comes every other day, changes daily at first and then hardly ever."""
    rng = np.random.default_rng(seed)
    planner = Planner(bandwidth=2.0 / DAY)
    planner.add(0, DAY, n=20)
    born = np.full(20, -1000 * DAY)
    last = np.full(400, np.nan)
    for number in range(1, 900):
        now = DAY + number * DAY / 2
        if number > 100 and number % 4 == 0:
            planner.add(0, now)
            born = np.append(born, now)
        pick = planner.pick(now, never_rests)
        assert pick is not None
        page = pick.page
        lived = AgingLaw(30.0, 2 * DAY).lived(last[page] - born[page], now - born[page]) if last[page] > 0 else 0.0
        changed = bool(rng.random() < -np.expm1(-lived / (100 * DAY)))
        planner.crawled(page, now, changed if last[page] > 0 else None)
        last[page] = now
        if number in (64, 128, 256, 384, 512, 640, 768):
            planner.adopt(plan(planner.snapshot(), planner.bandwidth, previous=planner.plan), now)
            while planner.work(now):
                pass
    return planner, now


def test_a_crawl_learns_that_its_pages_slow_down_and_says_so_of_new_ones() -> None:
    """Pages found at the beginning are of any age; those found later change the more often the younger they are."""
    planner, now = aging_collection(1)
    law = planner.values.parameters.aging
    assert law is not None
    pages = np.flatnonzero(planner.pages.crawled_at[: planner.pages.n] > -np.inf)
    paces = planner.values.paces(pages)
    assert (paces[pages < 20] == 1.0).all()
    age = (planner.pages.crawled_at[pages] - planner.pages.first_seen[pages])[pages >= 20]
    assert np.isfinite(age).all()
    assert (np.diff(paces[pages >= 20][np.argsort(age)]) <= 0).all()
    newest = int(pages[-1])
    at_present, when_old = planner.values.weights(np.array([newest]))[0], planner.values.weights_one(newest)
    faster = np.exp(np.log(DEFAULT_GRID) @ (at_present - when_old))
    assert 1.5 < faster <= paces[-1] + 1e-9
    assert explain(planner, newest, now).unsignalled_change_rate == pytest.approx(at_present @ DEFAULT_GRID)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_the_best_page_is_picked_where_pages_age(is_compiled: bool) -> None:
    """Each pick is the page with the highest crawl value, with the age that each has."""
    if is_compiled:
        pytest.importorskip("numba")
    use_compiled(is_compiled)
    try:
        planner, now = aging_collection(2)
        assert planner.values.parameters.aging is not None
        for _ in range(100):
            now += DAY / 2
            waiting = np.arange(planner.pages.n)
            values = np.array([planner.values.one(page).at(now) for page in waiting.tolist()])
            assert planner.values.many(waiting).at(now) == pytest.approx(values, rel=1e-9)
            alone = np.array([planner.values.value_weights_one(page) for page in waiting.tolist()])
            assert (planner.values.value_weights(waiting) == alone).all()
            pick = planner.pick(now, never_rests)
            assert pick is not None
            assert pick.crawl_value == pytest.approx(values.max(), rel=2e-7)
            planner.crawled(pick.page, now, bool(pick.page % 3))
    finally:
        use_compiled(None)


def test_a_restart_knows_the_law_and_how_old_pages_are() -> None:
    """The plan brings the law and since when pages are new, the store when each was found."""
    planner, now = aging_collection(3)
    made = plan(planner.snapshot(), planner.bandwidth)
    restored = Plan.from_dict(json.loads(json.dumps(made.to_dict())))
    assert restored.known_since == made.known_since < now
    begun = Planner(bandwidth=planner.bandwidth)
    begun.adopt(restored, now)
    begun.work(now)
    pages = np.arange(planner.pages.n)
    columns = planner.columns(pages)
    # A store knows it of all pages, and to the second.
    columns["first_seen"] = np.where(np.isnan(columns["first_seen"]), DAY, columns["first_seen"])
    begun.load(columns, columns["log_likelihood"], now)
    planner.adopt(made, now)
    while planner.work(now):
        pass
    assert begun.values.parameters.aging == planner.values.parameters.aging
    assert begun.values.paces(pages) == pytest.approx(planner.values.paces(pages), rel=0.02)
    assert (begun.values.paces(pages) > 1.0).sum() > 100


def test_plans_of_earlier_versions_know_nothing_of_age() -> None:
    """They are read as if no visit had been seen."""
    data = plan(Planner(1.0).snapshot(), 1.0).to_dict()
    data.pop("aging_losses")
    assert data.pop("known_since") is None
    restored = Plan.from_dict(data)
    assert restored.aging_losses.tolist() == first_aging_losses().tolist()
    assert restored.known_since == np.inf
