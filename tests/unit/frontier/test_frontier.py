"""The frontier beside brute force over all pages, pick by pick, through random histories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crawlsched.frontier import DiscoveryShare, due_times, filing
from crawlsched.frontier.candidates import Candidates
from crawlsched.frontier.due_times import SOON, WAITING
from crawlsched.frontier.filing import LEAST_WAIT
from crawlsched.frontier.queues import FairQueue
from crawlsched.pages import FREE, LIVE
from crawlsched.planner import Planner, plan
from tests.benchmarks.bench_frontier import World
from tests.benchmarks.frontier_collection import collection
from tests.inputs import tries
from tests.planners import check_places, load_crawled, never_rests, slots

N_HOSTS = 4
N_SOURCES = 2


class BruteForce:
    """The order of a pick as the documentation states it, computed from the columns alone."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.forced: list[int] = []
        self.may_be_new = np.zeros(0, np.intp)

    def inside(self) -> np.ndarray:
        """Return the pages that wait to be picked, allowed or not."""
        pages = np.arange(self.planner.pages.n)
        in_flight = np.array([self.planner.in_flight(page) for page in pages.tolist()], bool)
        return pages[(self.planner.pages.state[pages] != FREE) & ~in_flight]

    def pick(self, now: float, busy: dict[int, float]) -> tuple[int, str] | None:
        """Return the page that has to go next and why; -1: any of the new pages that `may_be_new` gives."""
        pages, inside = self.planner.pages, self.inside()
        free = np.array([busy.get(int(host), 0.0) <= now for host in pages.host[inside]], bool)
        allowed = inside[free]
        for page in self.forced:
            if page in allowed:
                return page, "forced"
        known = allowed[pages.crawled_at[allowed] > -np.inf]
        deadline = pages.crawled_at[known] + self.planner.intervals.longest(known)
        shortest = self.planner.intervals.shortest(known)
        is_eligible = np.maximum(pages.not_before[known], pages.crawled_at[known] + shortest) <= now
        if (overdue := known[is_eligible & (deadline <= now)]).size:
            return int(overdue[np.lexsort((overdue, deadline[is_eligible & (deadline <= now)]))[0]]), "overdue"
        self.may_be_new = self._new(allowed, now)
        matters = bool((pages.importance[self.may_be_new] > 0).any())
        if matters and self.planner.frontier.share.is_due:
            return -1, "value"
        known = known[is_eligible]
        if matters:  # a page that was crawled just now may wait for its next turn
            least = np.minimum(LEAST_WAIT / self.planner.bandwidth, self.planner.intervals.longest(known))
            known = known[pages.crawled_at[known] + least <= now]
        if known.size:
            return int(known[np.argmax(self.planner.crawl_values.value_at(known, now))]), "value"
        return (-1, "value") if self.may_be_new.size else None

    def _new(self, allowed: np.ndarray, now: float) -> np.ndarray:
        """Return the new pages that may go: those of importance 0 if there are no others."""
        pages = self.planner.pages
        new = allowed[(pages.crawled_at[allowed] == -np.inf) & (pages.not_before[allowed] <= now)]
        important = new[pages.importance[new] > 0]
        return important if important.size else new


class Histories(RuleBasedStateMachine):
    """Everything that can happen to a planner, in any order: each pick has to be the one of brute force, or as good."""

    #: What a page that goes for its value is worth, as a share of what the best one is.
    enough = 0.94
    #: Whether each look sees all pages, so that the order of overdue pages is that of brute force.
    sees_all = True

    @initialize(
        settings=st.fixed_dictionaries(
            {
                "crawl_value": st.sampled_from(["posterior", "posterior", "greedy", "greedy_ncis", "greedy_cis"]),
                "min_crawl_interval": st.sampled_from([0.0, 0.0, 3.0]),
                "max_crawl_interval": st.sampled_from([None, None, 60.0]),
                "interval_rules": st.sampled_from([(), (), ((0.0, 20.0), (10.0, np.inf), (7.0, 7.0))]),
                "bandwidth": st.sampled_from([0.2, 2.0, 50.0]),
                "discovery_share": st.sampled_from([0.0, 0.5, 0.8, 1.0]),
            }
        ),
        seed=st.integers(0, 2**16),
    )
    def begin(self, settings: dict[str, Any], seed: int) -> None:
        self.planner = Planner(**settings, signal_delay=1.0, error_interval=5.0, gone_interval=20.0)
        self.knows_rates = settings["crawl_value"] != "posterior"
        self.oracle = BruteForce(self.planner)
        self.rng = np.random.default_rng(seed)
        self.now = 1000.0
        self.busy: dict[int, float] = {}
        self.visits: list[int] = []
        self.planner.add(0, self.now)

    @rule(n=st.integers(1, 40), equal=st.booleans())
    def add(self, n: int, equal: bool) -> None:
        importance = 1.0 if equal else self.rng.lognormal(0.0, 2.0, n)
        rules = self.rng.integers(0, len(self.planner.intervals.limits), n).astype(np.uint8)
        self.planner.add(self.rng.integers(0, N_HOSTS, n), self.now, importance, n, interval_rules=rules)

    @rule(n=st.integers(1, 40))
    def load(self, n: int) -> None:
        pages, rates = self.planner.pages.n + np.arange(n), self.planner.posterior.rates.size
        crawled_at = np.round(self.now - self.rng.exponential(200.0, n))
        columns = {
            "page": pages,
            "state": np.full(n, LIVE),
            "importance": np.ones(n),
            "host": self.rng.integers(0, N_HOSTS, n),
            "crawled_at": crawled_at,
            "first_seen": crawled_at,
            "n_crawls": np.ones(n, int),
        }
        self.planner.load(columns, self.rng.integers(0, 9000, (n, rates)).astype(np.uint16), self.now)

    @rule(seconds=st.sampled_from([0.0, 0.01, 0.5, 0.5, 3.0, 40.0, 3000.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(times=st.integers(1, 12))
    def pick(self, times: int) -> None:
        for _ in range(times):
            self.carry_out()  # a slice takes effect before the pick of which it is part
            wanted = self.oracle.pick(self.now, self.busy)
            pick = self.planner.pick(self.now, self.busy_until)
            if pick is None or wanted is None:
                assert pick is wanted
                return
            if wanted[1] == "overdue" and not self.sees_all:
                assert pick.reason in ("overdue", "value", "new")
            elif wanted[1] == "value":
                assert pick.reason == "value"
                self.compare(pick.page, wanted[0])
            else:
                assert (pick.page, pick.reason) == wanted
            self.oracle.forced = [page for page in self.oracle.forced if page != pick.page]
            self.visits.append(pick.page)
            self.now += 1 / self.planner.bandwidth

    @rule()
    def ask(self) -> None:
        """What a crawl asks between picks: for which hosts pages wait."""
        self.carry_out()
        frontier, pages, inside = self.planner.frontier, self.planner.pages, self.oracle.inside()
        frontier.advance(self.now)
        resting = inside[np.isin(pages.host[inside], [*self.rests()])]
        forced = [page for page in resting.tolist() if frontier.is_forced(page)]
        assert forced == sorted(set(self.oracle.forced) & set(resting.tolist()))
        eligible_at = np.maximum(
            pages.not_before[resting], pages.crawled_at[resting] + self.planner.intervals.shortest(resting)
        )
        if frontier.waits_for_host():
            assert forced or (eligible_at <= self.now).any()
        else:
            assert not forced
            assert not (eligible_at + LEAST_WAIT / self.planner.bandwidth <= self.now).any()
        assert all((frontier.place_of(page) == "out") == (pages.state.item(page) == FREE) for page in range(pages.n))

    @rule(seconds=st.sampled_from([0.5, 200.0]))
    def look_ahead(self, seconds: float) -> None:
        """Who is likely to go, in order: those out of turn first, nobody twice, and whoever goes next."""
        self.carry_out()
        frontier, pages = self.planner.frontier, self.planner.pages
        frontier.advance(self.now)  # also lets hosts return whose rest has ended
        rests = self.rests()
        first = self.oracle.pick(self.now, rests)
        n = max(pages.n, 1)
        coming = frontier.peek(n).tolist()
        assert len(set(coming)) == len(coming)
        assert set(coming) <= set(self.oracle.inside().tolist())
        out_of_turn = list(dict.fromkeys(frontier.out_of_turn(n)))
        forced = [page for page in self.oracle.forced if pages.host.item(page) not in rests]
        assert out_of_turn[: len(forced)] == forced
        assert coming[: len(out_of_turn)] == out_of_turn
        if first is not None and self.sees_all:
            assert coming[0] == first[0] if first[1] != "value" else first[0] < 0 or first[0] in coming
        hosts = [host for host, until in rests.items() if until <= self.now + seconds]
        back = frontier.returning(self.now + seconds, n).tolist()
        assert not set(pages.host[back].tolist()) & (rests.keys() - hosts)
        inside = self.oracle.inside()
        aside = [page for page in inside.tolist() if frontier.place_of(page) in ("new", "aside")]
        assert set(back) >= {page for page in aside if pages.host.item(page) in hosts}

    def rests(self) -> dict[int, float]:
        """Until when each host rests of which the frontier knows it."""
        frontier = self.planner.frontier
        return {host: frontier.rests_until(host) for host in range(N_HOSTS) if frontier.is_resting(host)}

    def carry_out(self) -> None:
        """Do all that is to be done before the next pick."""
        while self.planner.steps and self.planner.work(self.now):
            pass

    def busy_until(self, host: int, now: float) -> float:
        return self.busy.get(host, now)

    def compare(self, page: int, best: int) -> None:
        """A page that goes for its value is worth nearly as much as the best one, and may be crawled."""
        columns, shortest = self.planner.pages, self.planner.intervals.shortest(page)
        if columns.crawled_at.item(page) == -np.inf:  # in the share of discovery, or what was crawled just now waits
            assert page in self.oracle.may_be_new
            return
        if best < 0:  # it was crawled just now, and became due before there were new pages
            assert self.oracle.may_be_new.size
            return
        assert self.busy.get(int(columns.host[page]), 0.0) <= self.now
        assert max(columns.not_before.item(page), columns.crawled_at.item(page) + shortest) <= self.now
        picked, highest = self.planner.crawl_values.value_at(np.array([page, best]), self.now)
        assert picked >= self.enough * highest

    @precondition(lambda self: self.visits)
    @rule(outcome=st.sampled_from(["crawled"] * 6 + ["failed", "gone", "moved", "refused", "release"]))
    def finish(self, outcome: str) -> None:
        while self.visits:
            page = self.visits.pop()
            if outcome == "crawled":
                known = self.planner.pages.crawled_at[page] > -np.inf
                self.planner.crawled(page, self.now, bool(self.rng.random() < 0.5) if known else None)
            else:
                getattr(self.planner, outcome)(page, self.now)

    @rule(n=st.integers(1, 30), source=st.integers(0, N_SOURCES - 1))
    def signal(self, n: int, source: int) -> None:
        self.planner.signalled(self.some(n), source, self.now)

    @rule(n=st.integers(1, 10))
    def force(self, n: int) -> None:
        pages = self.rng.permutation(self.some(n))
        self.planner.force(pages, self.now)
        for page in pages.tolist():
            free = self.planner.pages.state[page] == FREE or self.planner.in_flight(page)
            if not free and page not in self.oracle.forced:
                self.oracle.forced.append(page)

    @rule(n=st.integers(1, 30))
    def reweight(self, n: int) -> None:
        pages = self.some(n)
        self.planner.set_importance(pages, self.rng.choice([0.0, 1.0, 7.5], pages.size), self.now)

    @precondition(lambda self: len(self.planner.intervals.limits) > 1)
    @rule(n=st.integers(1, 30))
    def set_intervals(self, n: int) -> None:
        pages = self.some(n)
        self.planner.set_intervals(pages, self.rng.integers(0, 4, pages.size), self.now)

    @precondition(lambda self: self.knows_rates)
    @rule(n=st.integers(1, 30))
    def know_rates(self, n: int) -> None:
        pages = self.some(n)
        rates = self.rng.lognormal(-4.0, 2.0, pages.size)
        self.planner.set_rates(pages, rates, self.rng.choice([0.0, 0.5, 0.9], pages.size), 0.3 * rates, self.now)

    @rule(n=st.integers(1, 5))
    def forget(self, n: int) -> None:
        pages = self.some(n)
        self.planner.remove(pages)
        gone = set(pages.tolist())
        self.visits = [page for page in self.visits if page not in gone]
        self.oracle.forced = [page for page in self.oracle.forced if page not in gone]

    @rule(host=st.integers(0, N_HOSTS - 1), seconds=st.sampled_from([0.1, 5.0, 100.0]), is_told=st.booleans())
    def busy_host(self, host: int, seconds: float, is_told: bool) -> None:
        # Freed by `free_host` and not before: the frontier may have asked when the oracle had no need to.
        self.busy[host] = max(self.now + seconds, self.busy.get(host, 0.0))
        if is_told:
            self.planner.frontier.rest_host(host, self.busy[host])

    @rule(host=st.integers(0, N_HOSTS - 1))
    def free_host(self, host: int) -> None:
        self.busy.pop(host, None)
        self.planner.frontier.release_host(host)

    @rule(n=st.integers(0, 60))
    def replan(self, n: int) -> None:
        elapsed = self.rng.exponential(50.0, n)
        signals = self.rng.integers(0, 3, n)
        observations = {
            "elapsed": elapsed,
            "n_signals": signals,
            "source": self.rng.integers(0, N_SOURCES, n),
            "changed": self.rng.random(n) < 1 - np.exp(-0.01 * elapsed - 0.5 * signals),
        }
        self.planner.adopt(plan(self.planner.snapshot(), self.planner.bandwidth, observations), self.now)

    @rule(bandwidth=st.sampled_from([0.5, 5.0]))
    def set_bandwidth(self, bandwidth: float) -> None:
        self.planner.set_bandwidth(bandwidth, self.now)

    def some(self, n: int) -> np.ndarray:
        """Return some distinct pages."""
        size = self.planner.pages.n
        return self.rng.choice(size, min(n, size), replace=False)

    @invariant()
    def everything_stands_where_it_should(self) -> None:
        if hasattr(self, "planner"):
            check_places(self.planner.frontier, self.planner.frontier._now)


class SmallLimits(Histories):
    """The same with room for so few that levels, sweeps and looks through the column are used by some dozen pages.

    What falls due is looked at a few slots together then, so that nothing is said of values. A look sees a part of the
    column only, so that of two overdue pages the later one may go first.
    """

    enough, sees_all = 0.0, False

    def __init__(self) -> None:
        super().__init__()
        self.limits = pytest.MonkeyPatch()
        self.limits.setattr(due_times, "_MOST_SOON", 16)
        self.limits.setattr(due_times, "ROWS_AT_ONCE", 32)
        for name, limit in (("_FEWEST", 4), ("AT_ONCE", 64), ("_MOST", 128)):
            self.limits.setattr(filing, name, limit)

    def teardown(self) -> None:
        super().teardown()
        self.limits.undo()


# The same each time. Open: whether the fault mended last (who waits for first copies stayed in the column too long) was
# the only rare one; 4,900 random histories without another are fewer than the 15,000 that were to show it.
_settings = tries(120, stateful_step_count=40, derandomize=True, database=None)
TestHistories = Histories.TestCase
TestHistories.settings = _settings
TestHistoriesWithSmallLimits = SmallLimits.TestCase
TestHistoriesWithSmallLimits.settings = _settings


def test_who_comes_while_another_has_its_turn_goes_next() -> None:
    """The turn is counted for whoever took it, though another stands before it by then."""
    turns = FairQueue[str]()
    turns.come("site")
    turns.took("site", cost=8.0)
    assert turns.first() == "site"
    turns.come("new site")
    turns.took("site")
    assert turns.first() == "new site"


def test_a_page_loaded_while_first_copies_wait_is_kept_no_longer_than_they_do() -> None:
    """Found by the histories: it waited for 16 slots after its crawl, though no first copy was left."""
    state = Histories()
    state.begin({"crawl_value": "posterior", "bandwidth": 0.2, "discovery_share": 0.0}, seed=1)
    state.pick(times=1)
    state.finish("crawled")
    state.load(n=2)
    state.pick(times=2)


def test_a_page_that_first_copies_keep_waiting_waits_for_as_many_slots_of_a_new_bandwidth() -> None:
    planner = Planner(0.2, crawl_value="greedy", discovery_share=0.0)
    planner.add(0, 1000.0)
    assert planner.pick(1000.0, never_rests) is not None
    planner.crawled(0, 1000.0, None)
    planner.add(np.array([1, 2]), 1000.0)
    first = planner.pick(1010.0, never_rests)
    assert first.is_first_copy
    planner.set_bandwidth(5.0, 1010.0)
    known = planner.pick(1010.0, never_rests)
    assert known.page == 0


def test_a_slot_is_not_lost_while_due_times_are_reckoned_anew() -> None:
    """The hosts of all candidates rest, just when a level has come down: a page far below it goes all the same."""
    n, n_worthy, now = 30_000, 1000, 1e6
    importance = np.full(n, 1e-4)
    importance[:n_worthy] = np.linspace(50.0, 100.0, n_worthy)
    planner = Planner(100.0, max_crawl_rounds=None)
    hosts = np.arange(n) >= n_worthy
    load_crawled(planner, n, now, host=hosts, importance=importance, crawled_at=10.0 * np.arange(n))
    for _ in range(1500):
        now += 0.01
        rests = any(planner.frontier._anew)
        assert planner.pick(now, lambda host, at, rests=rests: at + 5.0 * (rests and host == 0)) is not None


@pytest.mark.parametrize("n", [4000, 20_000])
def test_a_waiting_page_is_below_the_level_for_which_its_due_time_was_computed(n: int) -> None:
    """It is below the next level that it has not reached, also while the level falls with each pick."""
    world = World(collection(n, 200.0, announced=1 / 3))
    planner, frontier, due = world.planner, world.planner.frontier, world.planner.frontier._due
    n_waiting = np.zeros(3)
    for bandwidth in (200.0, 20_000.0, 20_000.0, 100.0, 200.0):
        planner.set_bandwidth(bandwidth, world.now)
        world.run(1500)
        while frontier._go_on():
            pass
        soon = world.now + 32.0 / bandwidth  # later than the next looks
        waits = np.flatnonzero(np.isin(due.place, (WAITING, SOON)) & (due.at > soon))
        levels = np.array([*frontier._lower_levels, frontier._queue.level])
        values, n_reached = planner.crawl_values.value_at(waits, world.now), due.n_reached[waits]
        assert (values < 1.03 * levels[n_reached]).all()
        n_waiting += np.bincount(n_reached, minlength=3)
    assert n_waiting.min() > n // 16, n_waiting


def test_the_levels_are_for_all_pages_although_the_first_block_decides() -> None:
    """A store is read in blocks; as many pages reach each lower level as if all had been read together."""
    n, rng = 40_000, np.random.default_rng(1)
    columns = {"importance": rng.lognormal(0.0, 1.0, n), "crawled_at": rng.uniform(0.0, 1000.0, n)}
    reached = []
    for block in (n, 1000, 400):
        planner = Planner(1.0)
        planner.reserve(n)
        for pages in np.arange(n).reshape(-1, block):
            known = {name: column[pages] for name, column in columns.items()}
            planner.load({"page": pages, "state": np.full(block, LIVE), "host": 0 * pages, **known}, None, 1000.0)
        reached.append(np.bincount(planner.frontier._due.n_reached, minlength=3))
    assert np.array(reached[1:]) == pytest.approx(np.tile(reached[0], (2, 1)), rel=0.4)


def test_due_times_are_computed_once_for_pages_that_are_loaded_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of each block, not all from the first page on."""
    monkeypatch.setattr(due_times, "ROWS_AT_ONCE", 32)
    planner, n, block = Planner(1.0), 8000, 1000
    planner.reserve(n)
    for begin in range(0, n, block):
        columns = {"importance": np.linspace(1.0, 10.0, block), "crawled_at": np.linspace(1.0, 1000.0, block)}
        pages = np.arange(begin, begin + block)
        planner.load({"page": pages, "state": np.full(block, LIVE), "host": 0 * pages, **columns}, None, 1000.0)
    n_steps = 0
    while planner.frontier._go_on():
        n_steps += 1
    assert n_steps <= n // filing.AT_ONCE + n // block


def test_pages_are_foreseen_in_the_order_in_which_they_go() -> None:
    """Those that are due by what they are worth, and behind them the others by when they fall due."""
    planner, rng = Planner(1.0, crawl_value="greedy"), np.random.default_rng(1)
    load_crawled(planner, 60, importance=rng.permutation(1.1 ** np.arange(60.0)))
    planner.set_rates(range(60), 1e-5, now=0.0)
    slots(planner, np.arange(1000.0, 1010.0), lambda *_: False)
    coming = planner.peek(1010.0, 60).tolist()
    assert [pick.page for pick in slots(planner, np.arange(1010.0, 1050.0), lambda *_: False)] == coming[:40]
    assert set(coming) == set(range(60))


def test_only_pages_worth_the_level_by_a_time_become_candidates() -> None:
    """The others are looked at again later; those of a host that rests stand aside."""
    planner, n, now = Planner(1.0), 200, 1000.0
    columns = {"importance": np.linspace(1.0, 10.0, n), "crawled_at": 4.0 * np.arange(n)}
    load_crawled(planner, n, now, host=np.arange(n) % 2, **columns)
    values = planner.crawl_values
    for until in (now, now + 200.0):
        queue, worth = Candidates(planner.pages, values), values.value_at(np.arange(n), until)
        queue.level = float(np.median(worth))
        others, aside = queue.add(np.arange(n), now, until, {1})
        assert worth[others].max() < queue.level
        assert worth[queue.going.pages].min() > 0.9 * queue.level
        assert (queue.going.hosts == 0).all()
        assert sorted([*others, *queue.going.pages, *aside.pop(1)]) == list(range(n))
        assert not aside


def test_what_goes_between_two_looks_is_worth_as_much_as_the_best_page() -> None:
    """A page that is below a raised level, but above it before the next look, still goes."""
    world = World(collection(1000, 200.0))
    world.run(500)
    of_best = world.run(1500, look_every=5)
    assert of_best.mean() > 0.998
    assert (of_best < 0.95).mean() < 0.01


def test_a_new_page_that_becomes_more_important_keeps_its_turn_and_one_that_is_worth_nothing_goes_last() -> None:
    """Of pages found together the first goes first."""
    planner = Planner(1.0)
    planner.add(0, 0.0, n=4)
    planner.frontier.advance(0.0)
    planner.set_importance([3], 2.0, 1.0)
    planner.set_importance([0], 0.0, 1.0)
    assert [planner.pick(1.0, never_rests).page for _ in range(4)] == [1, 2, 3, 0]


@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_so_many_slots_are_for_first_copies_at_the_beginning(share: float) -> None:
    """And then their share of any number of slots."""
    turns = DiscoveryShare(share, n_first=20.0)
    went = []
    for _ in range(200):
        went.append(turns.is_due)
        turns.went(is_first_copy=turns.is_due)
    assert 20 <= went.index(False) <= 20 + 1 / (1 - share) + 1e-6
    assert sum(went[100:]) == pytest.approx(100 * share, abs=1)
