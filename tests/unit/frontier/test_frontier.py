"""The frontier beside brute force over all pages, pick by pick, through random histories."""

from __future__ import annotations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from crawlsched.frontier import due_times, filing
from crawlsched.pages import FREE
from crawlsched.pages.intervals import Limits
from crawlsched.planner import Planner, plan

N_HOSTS = 4
N_SOURCES = 2


class BruteForce:
    """The order of a pick as the documentation states it, computed from the columns alone."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.forced: list[int] = []
        self.resting: dict[int, float] = {}

    def pick(self, now: float, busy: dict[int, float]) -> tuple[int, str] | None:
        """Return the page that has to go next and why, and let hosts rest as the frontier must."""
        planner, pages = self.planner, self.planner.pages
        self.resting = {host: until for host, until in self.resting.items() if until > now}
        inside = np.array(
            [p for p in range(pages.n) if pages.state[p] != FREE and not planner.in_flight(p)], dtype=np.intp
        )
        while inside.size:
            allowed = inside[~np.isin(pages.host[inside], list(self.resting))]
            best = self._best(allowed, now)
            if best is None:
                return None
            host = int(pages.host[best[0]])
            if busy.get(host, 0.0) > now:
                self.resting[host] = busy[host]
                continue
            return best
        return None

    def _best(self, allowed: np.ndarray, now: float) -> tuple[int, str] | None:
        planner, pages = self.planner, self.planner.pages
        for page in self.forced:
            if page in allowed:
                return page, "forced"
        shortest, longest = planner.intervals.shortest(allowed), planner.intervals.longest(allowed)
        eligible_at = np.maximum(pages.not_before[allowed], pages.crawled_at[allowed] + shortest)
        eligible = allowed[eligible_at <= now]
        longest = np.broadcast_to(longest, allowed.shape)[eligible_at <= now]
        if (longest < np.inf).any():
            # A page without a copy has no deadline.
            deadline = np.where(pages.crawled_at[eligible] > -np.inf, pages.crawled_at[eligible], np.inf) + longest
            overdue = eligible[deadline <= now]
            if overdue.size:
                return int(overdue[np.lexsort((overdue, deadline[deadline <= now]))[0]]), "overdue"
        if not eligible.size:
            return None
        values = planner.crawl_values.value_at(eligible, now)
        return int(eligible[np.argmax(values)]), "value"


class Histories(RuleBasedStateMachine):
    """Everything that can happen to a planner, in any order: each pick has to be the one of brute force, or as good."""

    #: What a page that goes for its value is worth, as a share of what the best one is.
    enough = 0.94

    @initialize(
        crawl_value=st.sampled_from(["posterior", "posterior", "greedy", "greedy_ncis", "greedy_cis"]),
        shortest=st.sampled_from([0.0, 0.0, 3.0]),
        longest=st.sampled_from([None, None, 60.0]),
        rules=st.sampled_from([(), (), (Limits(0.0, 20.0), Limits(10.0, np.inf), Limits(7.0, 7.0))]),
        bandwidth=st.sampled_from([0.2, 2.0, 50.0]),
        seed=st.integers(0, 2**16),
    )
    def begin(
        self,
        crawl_value: str,
        shortest: float,
        longest: float | None,
        rules: tuple[Limits, ...],
        bandwidth: float,
        seed: int,
    ) -> None:
        self.planner = Planner(
            bandwidth,
            crawl_value=crawl_value,
            min_crawl_interval=shortest,
            max_crawl_interval=longest,
            interval_rules=rules,
            signal_delay=1.0,
            error_interval=5.0,
            gone_interval=20.0,
        )
        self.crawl_value = crawl_value
        self.oracle = BruteForce(self.planner)
        self.rng = np.random.default_rng(seed)
        self.now = 1000.0
        self.busy: dict[int, float] = {}
        self.visits: list[int] = []
        self.planner.add(0, self.now)

    @rule(n=st.integers(1, 40), equal=st.booleans())
    def add(self, n: int, equal: bool) -> None:
        importance = 1.0 if equal else self.rng.lognormal(0.0, 2.0, n)
        rules = self.rng.integers(0, len(self.planner.intervals.rules) + 1, n).astype(np.uint8)
        self.planner.add(self.rng.integers(0, N_HOSTS, n), self.now, importance, n, interval_rules=rules)

    @rule(n=st.integers(1, 40))
    def load(self, n: int) -> None:
        pages, rates = self.planner.pages.n + np.arange(n), self.planner.posterior.rates.size
        crawled_at = np.round(self.now - self.rng.exponential(200.0, n))
        columns = {
            "page": pages,
            "state": np.full(n, 2),
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
            pending = bool(self.planner.known.work)
            if pending:  # a slice takes effect before the pick of which it is part
                work = self.planner.work(self.now)
                while work:
                    work = self.planner.work(self.now)
            wanted = self.oracle.pick(self.now, self.busy)
            # What it tells of its best page beforehand is so, and changes nothing.
            bound, value = self.planner.bound(self.now), self.planner.best_value(self.now, self.busy_until)
            pick = self.planner.pick(self.now, self.busy_until)
            assert not self.enough or value * self.enough <= bound
            given = -np.inf if pick is None else pick.crawl_value if pick.reason == "value" else np.inf
            assert value == given
            assert (pick is None) == (wanted is None)
            if pick is not None and wanted is not None:
                assert pick.reason == wanted[1]
                if pick.reason == "value":
                    self.compare(pick.page, wanted[0])
                else:
                    assert pick.page == wanted[0]
            if pick is None:
                return
            self.oracle.forced = [page for page in self.oracle.forced if page != pick.page]
            self.visits.append(pick.page)
            self.now += 1 / self.planner.bandwidth

    def busy_until(self, host: int, now: float) -> float:
        return self.busy.get(host, now)

    def compare(self, page: int, best: int) -> None:
        """A page that goes for its value is worth nearly as much as the best one, and may be crawled."""
        columns, shortest = self.planner.pages, self.planner.intervals.shortest_one(page)
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

    @precondition(lambda self: self.planner.intervals.rules)
    @rule(n=st.integers(1, 30))
    def set_intervals(self, n: int) -> None:
        pages = self.some(n)
        self.planner.set_intervals(pages, self.rng.integers(0, 4, pages.size), self.now)

    @precondition(lambda self: self.crawl_value != "posterior")
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

    @rule(host=st.integers(0, N_HOSTS - 1), seconds=st.sampled_from([0.1, 5.0, 100.0]))
    def busy_host(self, host: int, seconds: float) -> None:
        # Freed by `free_host` and not before: the frontier may have asked when the oracle had no need to.
        self.busy[host] = max(self.now + seconds, self.busy.get(host, 0.0))

    @rule(host=st.integers(0, N_HOSTS - 1))
    def free_host(self, host: int) -> None:
        self.busy.pop(host, None)
        self.oracle.resting.pop(host, None)
        self.planner.release_host(host)

    @rule(n=st.integers(0, 60))
    def replan(self, n: int) -> None:
        elapsed = self.rng.exponential(50.0, n)
        signals = self.rng.integers(0, 3, n)
        observations = {
            "page": self.rng.integers(0, self.planner.pages.n, n),
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
            self.planner.frontier._check(self.planner.frontier._now)


class SmallLimits(Histories):
    """The same with room for so few that levels, passes and looks through the column are used by some dozen pages.

    What falls due is looked at a few slots together then, so that nothing is said of values.
    """

    enough = 0.0
    limits = (
        (due_times, "_MOST_SOON", 8),
        (due_times, "_ROWS_AT_ONCE", 8),
        (filing, "_FEWEST", 4),
        (filing, "_SAMPLE", 8),
        (filing, "_PAGES_A_SLOT", 8),
    )

    def __init__(self) -> None:
        super().__init__()
        self.before = [(module, name, getattr(module, name)) for module, name, _ in self.limits]
        for module, name, value in self.limits:
            setattr(module, name, value)

    def teardown(self) -> None:
        super().teardown()
        for module, name, value in self.before:
            setattr(module, name, value)


_settings = settings(max_examples=30, stateful_step_count=40)
TestHistories = Histories.TestCase
TestHistories.settings = _settings
TestHistoriesWithSmallLimits = SmallLimits.TestCase
TestHistoriesWithSmallLimits.settings = _settings
