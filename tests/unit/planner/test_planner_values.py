"""Crawl values as the frontier asks for them: now, and when they reach a level."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl_value import posterior_value
from crawlsched.estimators import Posterior
from crawlsched.pages import Pages
from crawlsched.planner import DEFAULT_GRID
from crawlsched.planner.evidence.announcements import COLUMNS, Announcements, OwnPrecision
from crawlsched.planner.evidence.further_sources import FurtherSources
from crawlsched.planner.plans.in_force import InForce
from crawlsched.planner.plans.parameters import Parameters, SignalGroup, SignalGroups
from crawlsched.planner.values import PosteriorValues
from tests.inputs import tries

NOW = 1_000_000_000.0


def collection(seed: int, n: int = 60) -> tuple[PosteriorValues, np.ndarray]:
    """Return pages of all kinds and their values."""
    rng = np.random.default_rng(seed)
    pages, posterior = Pages(), Posterior(n, DEFAULT_GRID, dtype=np.uint16)
    rows = pages.add(rng.integers(0, 3, n), NOW - 1e6, rng.lognormal(0, 2, n) * (rng.random(n) < 0.9))
    live = rows[rng.random(n) < 0.8]
    pages.crawled_at[live] = NOW - rng.exponential(10.0 ** rng.uniform(0, 6, live.size))
    for _ in range(3):
        posterior.update(live, rng.exponential(1e4, live.size) + 1e-3, rng.random(live.size) < 0.5)
    signalled = rows[rng.random(n) < 0.5]
    pages.source[signalled] = rng.integers(0, 3, signalled.size)
    pages.signalled_since[signalled] = NOW - 1e6
    pages.n_signals[signalled] = rng.poisson(0.7, signalled.size)
    pages.n_signals_total[signalled] = pages.n_signals[signalled] + rng.poisson(5, signalled.size)
    if seed % 2:  # numbers that do not fit into two bytes
        pages.n_signals_total[signalled[::2]] += 70_000
        pages.host[rows[pages.host[rows] == 2]] = pages.source[rows[pages.source[rows] == 2]] = 70_002
    priors = rng.dirichlet(np.ones(32), 3)
    weights, rates = np.array([1.0, 0.2, 0.0]), np.array([1e-4, 1e-3, 1e-3])
    parameters = Parameters(priors, np.array([1, 2, 0]), weights, rates, DEFAULT_GRID)
    in_force = InForce(parameters, pages, deque(), lambda *_: None)
    announcements = Announcements(pages, in_force, FurtherSources(pages), OwnPrecision(pages))
    return PosteriorValues(pages, posterior, in_force, announcements), rows


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
    times = values.reaches(rows, level, NOW)
    assert (times >= NOW).all()
    before = np.minimum(np.maximum(times - 1e-3, NOW), NOW + 1e10)
    assert (values.value_at(rows, before) <= 1.02 * level)[times > NOW].all()
    rate, _, evidence = values.announcements.gathered(rows)
    plain = (rate == 0.0) & (evidence == 0.0) & (times > NOW + 1.0) & (times < NOW + 1e9)
    assert (values.value_at(rows, np.where(plain, times, NOW))[plain] >= 0.98 * level).all()


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
    fine = [SignalGroup(0, 1, 0.0, 1e-3, 9), SignalGroup(1, 0, 2.0, 1e-6, 9)]
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
