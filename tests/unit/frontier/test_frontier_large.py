"""Among a hundred thousand pages: some of the picks, and brute force over all of them for these."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from crawlsched.crawl_value import prepare_compiled, use_compiled
from crawlsched.frontier import Pick
from crawlsched.pages import FREE
from crawlsched.planner import plan
from tests.benchmarks.frontier_collection import START, Collection, collection, pages_in_blocks

N_PAGES, N_HOSTS, BANDWIDTH = 100_000, 3_000, 500.0
HAS_NUMBA = importlib.util.find_spec("numba") is not None


@pytest.fixture(autouse=True)
def code_in_use() -> Iterator[None]:
    """Whatever a test uses, the others use what they like."""
    yield
    use_compiled(None)


class Crawl:
    """Slots of a planner, each page of which comes back at once; one host has half of them, all rest after visits."""

    def __init__(self, given: Collection, every: int) -> None:
        self.given, self.planner, self.now, self.every = given, given.planner, START, every
        self.free_at = np.zeros(N_HOSTS)
        self.n_checked = self.n_picks = 0
        self._rng, self._pick = np.random.default_rng(5), given.planner.frontier.pick
        # Inside `Planner.pick`, when a slice of what is being adopted has run.
        given.planner.frontier.pick = self._checked  # type: ignore[method-assign]

    def run(self, n: int) -> None:
        """Crawl so many pages."""
        hosts = self.planner.pages.host
        for _ in range(n):
            self.now += 1 / self.planner.bandwidth
            pick = self.planner.pick(self.now, lambda host, now: self.free_at.item(host))
            assert pick is not None
            self.free_at[hosts.item(pick.page)] = self.now + (0.05 if hosts.item(pick.page) == 0 else 1.0)
            if self.planner.pages.crawled_at.item(pick.page) > -np.inf:
                changed = self.given.has_changed(pick.page, self.now, self._rng)
                self.planner.crawled(pick.page, self.now, changed)
            else:
                self.planner.crawled(pick.page, self.now, None)

    def _checked(self, now: float, host_free_at: Callable[[int, float], float]) -> Pick | None:
        self.n_picks += 1
        wanted = self._best(now) if self.n_picks % self.every == 0 else None
        pick = self._pick(now, host_free_at)
        if wanted is not None and pick is not None and pick.reason == "value":
            assert pick.page == wanted
            self.n_checked += 1
        return pick

    def _best(self, now: float) -> int:
        """Return the best of all pages whose hosts may be asked, the lowest of the best ones."""
        pages, best = self.planner.pages, (np.inf, -1)
        for block in pages_in_blocks(pages.n):
            allowed = block[(pages.state[block] != FREE) & (self.free_at[pages.host[block]] <= now)]
            values = self.planner.frontier.values.many(allowed).at(now)
            row = int(values.argmax())
            best = min(best, (-values.item(row), int(allowed[row])))
        return best[1]


def happenings(crawl: Crawl, crawl_value: str, rng: np.random.Generator) -> Iterator[str]:
    """Let one thing after the other happen to very many pages."""
    planner = crawl.planner
    yield "nothing"
    planner.signalled(rng.choice(N_PAGES, 20_000, replace=False), 0, crawl.now)
    yield "announcements"
    planner.set_bandwidth(10 * BANDWIDTH, crawl.now)
    yield "ten times the bandwidth"
    if crawl_value == "posterior":
        planner.adopt(plan(planner.snapshot(), planner.bandwidth), crawl.now)
    else:
        known = rng.choice(N_PAGES, 5_000, replace=False)
        rates = rng.lognormal(-7.0, 1.0, known.size)
        planner.set_rates(known, rates, 0.5, 0.3 * rates, crawl.now)
    yield "other rates"
    planner.set_importance(rng.choice(N_PAGES, 5_000, replace=False), 3.0, crawl.now)
    yield "other importance"
    planner.remove(rng.choice(N_PAGES, 5_000, replace=False))
    planner.add(rng.integers(0, N_HOSTS, 2_000), crawl.now, 1.0, 2_000)
    planner.set_bandwidth(BANDWIDTH, crawl.now)
    yield "pages go and come"


@pytest.mark.parametrize(
    ("crawl_value", "compiled", "every"),
    [
        ("posterior", False, 250),
        ("posterior", True, 25),
        ("greedy", True, 25),
        ("greedy_ncis", True, 25),
        ("greedy_ncis", False, 125),
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
    crawl = Crawl(given, every)
    for _ in happenings(crawl, crawl_value, rng):
        crawl.run(500)
    crawl.planner.frontier._check(crawl.now)
    assert crawl.n_checked > 0.9 * crawl.n_picks / every - 1
