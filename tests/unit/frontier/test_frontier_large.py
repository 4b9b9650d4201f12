"""Among tens of thousands of pages: some of the picks, and brute force over all of them for these."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import numpy as np
import pytest

from crawlsched.crawl_value import prepare_compiled, use_compiled
from crawlsched.planner import plan
from tests.benchmarks.frontier_collection import START, collection
from tests.hosts import Crawl

pytestmark = pytest.mark.statistics

N_PAGES, N_HOSTS, BANDWIDTH = 40_000, 1_200, 200.0
HAS_NUMBA = importlib.util.find_spec("numba") is not None


def happenings(crawl: Crawl, crawl_value: str, rng: np.random.Generator) -> Iterator[str]:
    """Let one thing after the other happen to very many pages."""
    planner = crawl.planner
    yield "nothing"
    planner.signalled(rng.choice(N_PAGES, N_PAGES // 5, replace=False), 0, crawl.now)
    yield "announcements"
    planner.set_bandwidth(10 * BANDWIDTH, crawl.now)
    yield "ten times the bandwidth"
    if crawl_value == "posterior":
        planner.adopt(plan(planner.snapshot(), planner.bandwidth), crawl.now)
    else:
        known = rng.choice(N_PAGES, N_PAGES // 20, replace=False)
        rates = rng.lognormal(-7.0, 1.0, known.size)
        planner.set_rates(known, rates, 0.5, 0.3 * rates, crawl.now)
    yield "other rates"
    planner.set_importance(rng.choice(N_PAGES, N_PAGES // 20, replace=False), 3.0, crawl.now)
    yield "other importance"
    planner.remove(rng.choice(N_PAGES, N_PAGES // 20, replace=False))
    planner.add(rng.integers(0, N_HOSTS, N_PAGES // 50), crawl.now, 1.0, N_PAGES // 50)
    planner.set_bandwidth(BANDWIDTH, crawl.now)
    yield "pages go and come"


@pytest.mark.parametrize(
    ("crawl_value", "compiled", "every"),
    [
        ("posterior", False, 500),
        ("posterior", True, 100),
        ("greedy", True, 50),
        ("greedy_ncis", True, 50),
        ("greedy_ncis", False, 250),
    ],
)
def test_whatever_happens_to_very_many_pages_the_best_of_all_goes(crawl_value: str, compiled: bool, every: int) -> None:
    """Announcements, plans and other rates come into force in slices meanwhile; hosts rest, one has half of all."""
    if compiled and not HAS_NUMBA:
        pytest.skip("needs numba")
    prepare_compiled()  # the pages are made sooner
    rng = np.random.default_rng(6)
    hosts = np.where(rng.random(N_PAGES) < 0.5, 0, rng.integers(1, N_HOSTS, N_PAGES))
    given = collection(N_PAGES, BANDWIDTH, crawl_value, signalled=1 / 3, hosts=hosts)
    use_compiled(compiled)
    changes = np.random.default_rng(5)
    crawl = Crawl(
        given.planner,
        lambda host: 0.05 if host == 0 else 1.0,
        lambda page, now: given.has_changed(page, now, changes),
        now=START,
        every=every,
    )
    for _ in happenings(crawl, crawl_value, rng):
        crawl.run(500)
    crawl.planner.frontier._check(crawl.now)
    assert crawl.n_checked > 0.9 * crawl.n_picks / every - 1
