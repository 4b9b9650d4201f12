"""Hosts that rest: the best page of all others goes, and a host has a ladder of its own only where it needs one."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from crawlsched.crawl_value import use_compiled
from crawlsched.frontier import placement
from crawlsched.frontier.places import OWN_LADDER
from crawlsched.planner import Planner
from tests.hosts import Crawl

N_PAGES = 3000
CODES = [False, True] if importlib.util.find_spec("numba") is not None else [False]


def collection(hosts: np.ndarray, rng: np.random.Generator, alike: bool = False) -> Planner:
    """Return a planner of pages on these hosts that were all crawled once, at some time, or `alike` in all else."""
    planner = Planner(100.0, signal_delay=0.0)
    crawled_at = np.round(-rng.uniform(0.0, 1000.0, hosts.size), 3)
    columns = {
        "page": np.arange(hosts.size),
        "state": np.full(hosts.size, 2),
        "importance": rng.lognormal(0.0, 0.5, hosts.size),
        "host": hosts,
        "crawled_at": crawled_at,
        "first_seen": crawled_at,
        "n_crawls": np.ones(hosts.size, int),
    }
    likelihoods = rng.integers(0, 900, (hosts.size, planner.posterior.rates.size)).astype(np.uint16)
    if alike:
        for column in (columns["importance"], crawled_at, likelihoods):
            column[:] = column[0]
    planner.load(columns, likelihoods, 0.0)
    return planner


def crawl_of(planner: Planner, delays: dict[int, float], otherwise: float) -> Crawl:
    """Return slots in which every pick has to be the one of brute force."""
    return Crawl(planner, lambda host: delays.get(host, otherwise), lambda page, now: bool(page % 2), overrides=False)


@pytest.mark.parametrize("compiled", CODES)
@pytest.mark.parametrize("limits", [{}, {"_MOST_AWAKE": 6, "_KEPT_AWAKE": 2, "_MOST_ASIDE": 5}])
def test_while_hosts_rest_the_best_page_of_the_others_goes(
    compiled: bool, limits: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One has half of all pages and rests for long, forty share the others and rest for a while after each visit."""
    for name, value in limits.items():
        monkeypatch.setattr(placement, name, value)
    use_compiled(compiled)
    rng = np.random.default_rng(11)
    planner = collection(np.where(rng.random(N_PAGES) < 0.5, 0, rng.integers(1, 41, N_PAGES)), rng)
    crawl, frontier = crawl_of(planner, {0: 2.0}, 0.3), planner.frontier
    for _ in range(6):
        crawl.run(100)
        frontier._check(crawl.now)
    assert crawl.n_none == 0
    assert 0 in frontier._ladders.of_host
    assert len(frontier._ladders.of_host) == 1 or limits
    crawl.rests = lambda host: 0.0
    crawl.run(300)
    frontier._check(crawl.now)


@pytest.mark.parametrize("compiled", CODES)
def test_where_all_hosts_rest_no_page_goes_until_the_first_of_them_returns(compiled: bool) -> None:
    """Three hosts with a thousand pages each: what sleeps is left alone meanwhile, and nothing is looked at twice."""
    use_compiled(compiled)
    rng = np.random.default_rng(12)
    planner = collection(rng.integers(0, 3, N_PAGES), rng)
    crawl, frontier = crawl_of(planner, {}, 0.25), planner.frontier
    crawl.run(300)
    frontier._check(crawl.now)
    assert crawl.n_none > 200
    looked_at, put = [], placement.Standing.look_at

    def counted(self: placement.Standing, pages: np.ndarray) -> object:
        looked_at.append(pages.size)
        return put(self, pages)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement.Standing, "look_at", counted)
        crawl.run(300)
    assert sum(looked_at) < 300 * 32


@pytest.mark.parametrize("compiled", CODES)
def test_while_all_hosts_rest_what_sleeps_is_not_looked_at(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot at which each host is busy costs little, however many pages there are; then the best of all goes."""
    use_compiled(compiled)
    hosts = np.arange(20 * N_PAGES) % 20
    planner, undisturbed = (collection(hosts, np.random.default_rng(13)) for _ in range(2))
    for each in (planner, undisturbed):
        assert each.pick(1.0, lambda host, now: now) is not None
    looked_at, put = [], placement.Standing.look_at

    def counted(self: placement.Standing, pages: np.ndarray) -> object:
        looked_at.append(pages.size)
        return put(self, pages)

    monkeypatch.setattr(placement.Standing, "look_at", counted)
    for slot in range(10):
        assert planner.pick(1.01 + slot / 100, lambda host, now: 2.0) is None
        assert planner.frontier.waits_for_host()
    assert sum(looked_at) < hosts.size / 10
    assert planner.frontier.next_event(1.5) <= 2.0
    first, expected = (each.pick(2.0, lambda host, now: now) for each in (planner, undisturbed))
    assert first is not None
    assert expected is not None
    assert first.page == expected.page
    planner.frontier._check(2.0)


@pytest.mark.parametrize("compiled", CODES)
@pytest.mark.parametrize("given", ["crawled", "worth little", "alike", "new"])
def test_where_the_only_free_host_has_hardly_a_page_it_is_found_after_some_picks_none_of_which_looks_at_much(
    compiled: bool, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pick looks at some portions of what sleeps, and what the hosts at work have is looked at once, or twice."""
    use_compiled(compiled)
    hosts = 1 + np.arange(20 * N_PAGES) % 19
    rare = np.array([N_PAGES, 5 * N_PAGES])
    hosts[rare] = 0
    if given == "new":
        planner = Planner(100.0, signal_delay=0.0)
        planner.add(hosts, 0.0)
    else:
        planner = collection(hosts, np.random.default_rng(16), alike=given == "alike")
    if given == "worth little":
        planner.set_importance(rare, 1e-3, 0.0)
    looked_at, put = [0], placement.Standing.look_at

    def counted(self: placement.Standing, pages: np.ndarray) -> object:
        looked_at[-1] += pages.size
        return put(self, pages)

    monkeypatch.setattr(placement.Standing, "look_at", counted)
    found, now, frontier = [], 1.0, planner.frontier
    for _ in range(1000):
        looked_at.append(0)
        values = frontier.values.many(rare).at(now)
        pick = planner.pick(now, lambda host, at: at + 1e6 if host else at)
        if pick is None:
            assert frontier.waits_for_host()
            if frontier.next_event(now) > now:
                break
        else:
            assert pick.page == rare[np.argmax(np.where(np.isin(rare, found), -1.0, values))]
            found.append(pick.page)
        now += 0.01
    assert sorted(found) == rare.tolist()
    assert max(looked_at) <= 3 * 8 * frontier.values.portion
    assert sum(looked_at) <= 3 * hosts.size
    frontier._check(now)


@pytest.mark.parametrize("compiled", CODES)
def test_of_very_many_hosts_that_rest_at_once_none_needs_a_ladder_of_its_own(compiled: bool) -> None:
    """Their pages that would be awake are set aside, and come back with them."""
    use_compiled(compiled)
    rng = np.random.default_rng(13)
    planner = collection(rng.integers(0, 300, N_PAGES), rng)
    crawl, frontier = crawl_of(planner, {}, 1.0), planner.frontier
    crawl.run(400)
    frontier._check(crawl.now)
    assert np.count_nonzero(crawl.free_at > crawl.now) > 90
    assert crawl.n_none == 0
    assert not frontier._ladders.of_host


@pytest.mark.parametrize("compiled", CODES)
def test_a_host_of_which_too_many_pages_wait_pushes_its_own_cutoff_up_and_not_that_of_all(
    compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it returns before the turn ends in which they came; and nobody foresees that its beds are opened."""
    use_compiled(compiled)
    rng = np.random.default_rng(14)
    planner = collection(np.where(rng.random(4 * N_PAGES) < 0.9, 0, rng.integers(1, 41, 4 * N_PAGES)), rng)
    crawl, frontier = crawl_of(planner, {0: 0.05}, 0.0), planner.frontier
    crawl.run(200)
    rises = []
    keep_best = placement.Standing._keep_best

    def watched(self: placement.Standing, *arguments: object) -> object:
        before, kept = self.cutoff, keep_best(self, *arguments)  # type: ignore[arg-type]
        rises.append(self.cutoff - before)
        return kept

    monkeypatch.setattr(placement.Standing, "_keep_best", watched)
    n_stays = 0
    for _ in range(12):
        crawl.run(50)
        frontier._check(crawl.now)
        if frontier._resting.has_own_cutoff(0, frontier._standing.cutoff):
            n_stays += frontier._resting.stays.item(0)
            assert all(ladder.host != 0 for ladder, _, _ in frontier._crowds.beds)
    assert n_stays > 0
    assert max(rises, default=0) == 0


def test_pages_of_all_hosts_go_to_the_ladders_that_are_theirs_and_leave_them() -> None:
    """Whether a host's own, or the one that all others share; hosts that came after the last one with its own, too."""
    planner = collection(np.array([0, 7, 3, 7, 900, 3, 0]), np.random.default_rng(15))
    planner.frontier.discard(np.arange(7))
    ladders, place = planner.frontier._ladders, planner.frontier._standing.place
    ladders.give_own(7)
    ladders.give_own(3)
    before = ladders.shared.sleepers
    ladders.put(np.arange(7), np.array([5, 6, 6, 6, 5, 8, 9]))
    assert place[:7].tolist() == [5, 6 + OWN_LADDER, 6 + OWN_LADDER, 6 + OWN_LADDER, 5, 8 + OWN_LADDER, 9]
    assert [ladders.shared.sleepers - before, *(ladders.of_host[host].sleepers for host in (7, 3))] == [3, 2, 2]
    ladders.leave(np.array([1, 4, 5]), place[[1, 4, 5]])
    assert [ladders.shared.sleepers - before, *(ladders.of_host[host].sleepers for host in (7, 3))] == [2, 1, 1]
