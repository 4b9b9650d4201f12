"""The planner: learning, backing off, signals, plans."""

import json

import numpy as np
import pytest

from crawlsched.pages import ERROR, GONE, LIVE, MOVED, REFUSED
from crawlsched.planner import Observation, Plan, Planner, explain, plan
from crawlsched.planner.plans.in_force import PICKS_A_SLICE, PLAN_SLICE, SLICE
from crawlsched.planner.reports.forecast import forecast
from tests.planners import load_crawled, never_rests, slots

DAY = 86_400.0


def crawl(planner: Planner, now: float, changed: bool | None) -> int:
    pick = planner.pick(now, never_rests)
    planner.crawled(pick.page, now, changed)
    return pick.page


def test_a_visit_teaches_what_it_found() -> None:
    """The second visit to a page is an observation; the first has nothing to compare with."""
    planner = Planner(1.0)
    planner.add(0, 100.0)
    assert planner.pick(100.0, never_rests).page == 0
    assert planner.in_flight(0)
    assert planner.crawled(0, 100.0, None) is None
    assert not planner.in_flight(0)
    planner.pick(150.0, never_rests)
    found = planner.crawled(0, 160.0, True)
    assert found == Observation(page=0, time=160.0, elapsed=60.0, n_signals=0, source=-1, evidence=0.0, changed=True)
    assert planner.pages.n_crawls[0] == 2
    assert planner.pages.n_changes[0] == 1
    assert planner.pages.state[0] == LIVE


def waits(planner: Planner, outcome: str, n: int, now: float) -> list[float]:
    """Let so many visits of its page end like that, each as soon as it may go; return how long it waits after each."""
    found = []
    for _ in range(n):
        assert planner.pick(now, never_rests) is not None
        getattr(planner, outcome)(0, now)
        assert planner.pick(now + 1.0, never_rests) is None
        found.append(planner.pages.not_before[0] - now)
        now = float(planner.pages.not_before[0])
    return found


def test_errors_back_off_twice_as_long_each_time_up_to_a_day() -> None:
    """The first retry comes after error_interval; a success forgets the errors."""
    planner = Planner(1.0, error_interval=60.0)
    planner.add(0, 0.0)
    assert waits(planner, "failed", 14, 0.0) == [*(60.0 * 2**n for n in range(11)), DAY, DAY, DAY]
    assert planner.pages.state[0] == ERROR
    crawl(planner, 10 * DAY, None)
    assert planner.pages.n_errors[0] == 0
    assert waits(planner, "failed", 1, 10 * DAY + 10) == [60.0]


def test_a_retry_time_that_the_site_names_is_kept() -> None:
    """Retry-After is obeyed where it is longer than our own waiting time."""
    planner = Planner(1.0, error_interval=60.0)
    planner.add(0, 0.0)
    planner.pick(0.0, never_rests)
    planner.failed(0, 0.0, retry_at=500.0)
    assert planner.pages.not_before[0] == 500.0
    assert planner.pick(499.9, never_rests) is None
    assert planner.pick(500.0, never_rests).page == 0


@pytest.mark.parametrize(("outcome", "state"), [("gone", GONE), ("moved", MOVED), ("refused", REFUSED)])
def test_pages_that_are_not_there_are_probed_ever_more_rarely(outcome: str, state: int) -> None:
    """The interval doubles up to 30 days, and the page is never dropped."""
    planner = Planner(1.0, gone_interval=DAY)
    planner.add(0, 0.0)
    assert waits(planner, outcome, 8, 0.0) == [n * DAY for n in (1, 2, 4, 8, 16, 30, 30, 30)]
    assert planner.pages.state[0] == state


@pytest.mark.parametrize("outcome", ["gone", "refused"])
def test_a_page_that_was_there_is_tried_again_after_a_minute_then_ever_more_rarely(outcome: str) -> None:
    """Up to the 30 days of pages that never were; one whose host fails as a whole waits for its host alone."""
    planner = Planner(1.0, error_interval=60.0, gone_interval=DAY)
    planner.add(0, 0.0)
    crawl(planner, 0.0, None)
    found = waits(planner, outcome, 17, DAY)
    assert found == [*(60.0 * 2**n for n in range(16)), 30 * DAY]
    now = DAY + sum(found)
    crawl(planner, now, None)
    for _ in range(20):
        now += 7 * DAY
        assert planner.pick(now, never_rests) is not None
        getattr(planner, outcome)(0, now, now + 90.0, of_host=True)
        assert planner.pages.not_before[0] == now + 90.0
    assert planner.pages.failing(np.array([0])).all()


def test_the_return_of_a_gone_page_is_no_observation() -> None:
    """While a page was gone there was nothing that could have changed."""
    planner = Planner(1.0)
    planner.add(0, 0.0)
    crawl(planner, 0.0, None)
    planner.pick(10.0, never_rests)
    planner.gone(0, 10.0)
    planner.pick(10.0 + DAY, never_rests)
    assert planner.crawled(0, 10.0 + DAY, True) is None
    assert planner.pages.state[0] == LIVE


def test_the_first_naming_of_a_page_by_a_source_announces_nothing() -> None:
    """Only what comes after counts, and what comes right after a crawl is discarded."""
    planner = Planner(1.0, signal_delay=5.0)
    planner.add(0, 0.0, n=2)
    planner.covered([0, 1], 3, 0.0)
    assert planner.pages.source[:2].tolist() == [3, 3]
    assert planner.pages.n_signals[:2].tolist() == [0, 0]
    crawl(planner, 10.0, None)
    assert planner.signalled([0, 1], 3, 12.0) == 1
    assert planner.pages.n_signals[:2].tolist() == [0, 1]
    assert planner.signalled([0], 3, 15.0) == 1
    assert planner.pages.n_signals[0] == 1


def collection(n: int = 400) -> Planner:
    """Pages on two hosts, those of the first changing a hundred times as fast."""
    rng = np.random.default_rng(2)
    planner = Planner(10.0)
    pages = planner.add(np.arange(n) % 2, 0.0, n=None)
    rate = np.where(pages % 2 == 0, 1e-2, 1e-4)
    crawled_at = planner.pages.crawled_at
    by_chance = lambda page, now: bool(rng.random() < -np.expm1(-rate[page] * (now - crawled_at[page])))  # noqa: E731
    slots(planner, np.arange(1.0, 6 * n + 1), by_chance)
    return planner


@pytest.fixture(scope="module")
def crawled() -> Planner:
    """That collection, to be looked at only."""
    return collection()


def test_a_plan_learns_the_rates_of_each_host(crawled: Planner) -> None:
    """The prior of a host with many pages is its own."""
    made = plan(crawled.snapshot(), 10.0)
    mean = made.priors @ crawled.posterior.rates
    fast, slow = (mean[1 + made.group_hosts.index(host)] for host in (0, 1))
    assert fast > 5 * slow
    assert (made.priors > 0).all()
    assert made.priors.sum(axis=1) == pytest.approx(1.0)


def test_a_plan_keeps_its_meaning_where_hosts_have_other_numbers(crawled: Planner) -> None:
    """With names instead of numbers the groups are found again."""
    made = plan(crawled.snapshot(), 10.0)
    data = made.to_dict(host_names=["a.example", "b.example"])
    again = Plan.from_dict(json.loads(json.dumps(data)), {"a.example": 7, "b.example": 4}.__getitem__)
    assert again.group_hosts == tuple({0: 7, 1: 4}[host] for host in made.group_hosts)
    assert again.priors.tolist() == made.priors.tolist()
    nameless = Plan.from_dict(data)
    assert nameless.group_hosts == ()
    assert nameless.priors.shape[0] == 1


def test_the_demand_falls_as_the_threshold_rises_and_meets_the_bandwidth(crawled: Planner) -> None:
    """The threshold is where the demand curve comes to the bandwidth."""
    made = plan(crawled.snapshot(), 0.5)
    levels, wanted = made.demand.T
    assert (np.diff(levels) < 0).all()
    assert (np.diff(wanted) >= 0).all()
    assert np.interp(made.threshold, levels[::-1], wanted[::-1]) >= 0.5


def test_pages_of_a_host_want_together_no_more_than_it_allows(crawled: Planner) -> None:
    """Where they want less, and of hosts without a limit, the demand is what it is without one."""
    free, never = (
        plan(crawled.snapshot(lambda of=of: np.array(of)), 0.5).demand[:, 1] for of in ([np.inf] * 2, [0.0] * 2)
    )
    (of_first, of_second), limit = (
        (plan(crawled.snapshot(lambda of=of: np.array(of)), 0.5).demand[:, 1] for of in ([np.inf, 0.0], [0.0, np.inf])),
        0.05,
    )
    assert not never.any()
    assert of_first + of_second == pytest.approx(free)
    assert of_first.min() < limit < of_first.max()
    limited = plan(crawled.snapshot(lambda: np.array([limit, np.inf])), 0.5).demand[:, 1]
    assert limited == pytest.approx(np.minimum(of_first, limit) + of_second)


@pytest.mark.parametrize("rule", ["posterior", "greedy_ncis", "harmonic"])
def test_a_planner_that_does_not_pick_says_the_same_of_pages(rule: str) -> None:
    """What they are worth, and how fresh, also where the plan was there first; none of them is ever picked."""
    seen = Planner(1.0)
    seen.add(0, 0.0, n=2 * PLAN_SLICE + 9)
    slots(seen, np.arange(1_500.0), lambda page, now: page % 3 == 0)
    now, rows, made = 1_500.0, np.arange(seen.pages.n), plan(seen.snapshot(), 1.0)
    columns, likelihood = seen.columns(rows), seen.columns(rows)["log_likelihood"]
    asked, picking = Planner(1.0, crawl_value=rule, picks=False), Planner(1.0, crawl_value=rule)
    asked.adopt(made, now)
    asked.work(now)
    asked.load(columns, likelihood, now)
    picking.load(columns, likelihood, now)
    picking.adopt(made, now)
    while picking.work(now):
        pass
    for planner in (asked, picking):
        if planner.planned is not None:
            planner.planned.divide(1.0)
    for after in (0.0, 1_000.0):
        values = [planner.crawl_values.value_at(rows, now + after) for planner in (asked, picking)]
        np.testing.assert_array_equal(*values)
        np.testing.assert_array_equal(*[planner.values.fresh(rows, now + after) for planner in (asked, picking)])
    assert asked.pick(now, never_rests) is None
    assert picking.pick(now, never_rests) is not None


def test_columns_round_trip_through_a_store() -> None:
    """A planner that loads what another gave away picks the same pages."""
    planner = collection(60)
    copy = Planner(10.0)
    columns = planner.columns(np.arange(60))
    now = float(planner.pages.crawled_at[:60].max()) + 50.0
    copy.load(columns, columns["log_likelihood"], now)
    assert copy.clipped == 0
    one, other = (slots(each, now + np.arange(1.0, 31.0), lambda *_: False) for each in (planner, copy))
    assert [pick.page for pick in one] == [pick.page for pick in other]


def test_a_crawl_in_the_future_is_clipped_and_counted() -> None:
    """A clock that was wrong does not keep a page from being crawled."""
    planner = Planner(1.0)
    load_crawled(planner, 2, now=100.0, crawled_at=[50.0, 1e9])
    assert planner.clipped == 1
    assert planner.pages.crawled_at[:2].tolist() == [50.0, 100.0]


def test_announcements_do_not_wait_until_a_plan_is_adopted() -> None:
    """Slices of both are taken in turn, those of the plan with some picks between them."""
    planner = Planner(10.0)
    n_picks = 3  # between two slices, for this number of pages
    load_crawled(planner, n_picks * PICKS_A_SLICE * SLICE)
    planner.adopt(plan(planner.snapshot(), 10.0), 2.0)
    planner.signalled(np.arange(2 * SLICE), 0, 2.0)
    for _ in range(4):
        assert planner.work(2.0)
    assert planner.pages.n_signals[: planner.pages.n].sum() == 2 * SLICE
    assert planner.in_force.placed == PLAN_SLICE
    for _ in range(n_picks):
        assert planner.work(2.0)
    assert planner.in_force.placed == 2 * PLAN_SLICE


def test_few_pages_are_placed_by_a_plan_with_the_next_picks() -> None:
    """A small collection would have gone round before long."""
    planner = Planner(10.0)
    load_crawled(planner, 3 * PLAN_SLICE)
    planner.adopt(plan(planner.snapshot(), 10.0), 2.0)
    assert [planner.work(2.0) for _ in range(3)] == [True, True, False]
    assert planner.in_force.placed == 3 * PLAN_SLICE


@pytest.mark.parametrize(("longest", "n_starving"), [(20.0, 0), (None, 2)])
def test_no_page_starves(longest: float | None, n_starving: int) -> None:
    """Pages of next to no importance wait for 20 rounds and a little, not forever."""
    planner = Planner(1.0, max_crawl_rounds=longest)
    importance = np.ones(20)
    importance[[3, 7]] = 1e-9, 1e-6
    load_crawled(planner, 20, importance=importance)
    picks = slots(planner, np.arange(2.0, 2000.0), lambda page, now: page % 3 == 0)
    went = [np.flatnonzero([pick.page == page for pick in picks]) for page in range(20)]
    assert sum(not (slot > 1000).any() for slot in went) == n_starving
    if longest is not None:
        assert max(np.diff(slot, prepend=-1).max() for slot in went) < 22 * 20


def test_a_page_that_has_waited_for_too_many_rounds_does_not_go_before_its_shortest_interval_is_over() -> None:
    """One page of twenty may go once an hour; thirty rounds of two seconds pass, and it goes no second time."""
    planner = Planner(10.0, max_crawl_rounds=4.0, interval_rules=[(3600.0, np.inf)])
    planner.add(0, 0.0, n=20, interval_rules=np.eye(1, 20, dtype=np.uint8)[0])
    counts = np.bincount([pick.page for pick in slots(planner, np.arange(600) / 10.0, lambda *_: False)])
    assert counts[0] == 1
    assert counts[1:].min() > 10


def test_rounds_leave_pages_of_no_importance_and_of_resting_hosts_alone() -> None:
    """What is worth nothing to anybody needs no visit, and a host that rests gets none; the others are overdue."""
    planner = Planner(1.0, max_crawl_rounds=1.0)
    load_crawled(planner, 10, host=[0, 0, 1, *[0] * 7], importance=[1e-9, 0.0, 1e-9, *[1.0] * 7])
    # The other host is found to rest only when its page is to go.
    picks = slots(planner, np.arange(2.0, 500.0), lambda *_: False, lambda host, now: 1e9 if host == 1 else now)
    overdue = {pick.page for pick in picks if pick.reason == "overdue"}
    assert overdue & {0, 1, 2} == {0}


def test_pages_that_go_since_they_waited_for_too_long_are_foreseen() -> None:
    """What is needed for their visits is read ahead as for all others, and `crawlsched next` names them."""
    planner = Planner(1.0, max_crawl_rounds=2.0)
    waits = np.arange(2000) % 50 == 7
    columns = {"importance": np.where(waits, 1e-9, 1.0), "crawled_at": np.where(waits, 1.0, 5000.0)}
    load_crawled(planner, 2000, 5000.0, **columns)
    for slot in range(5001, 5014):
        planner.pick(float(slot), never_rests)
    coming = planner.out_of_turn(5014.0, 160)
    assert set(coming) <= set(planner.peek(5014.0, 160).tolist())
    assert set(coming) <= set(forecast(planner, 5014.0, 160).tolist())
    picks = [planner.pick(5014.0 + n, never_rests) for n in range(160)]
    assert [pick.page for pick in picks if pick.reason == "overdue"] == coming == np.flatnonzero(waits)[:10].tolist()


def test_time_stands_still_while_the_clock_is_behind() -> None:
    """A clock that is set back does no harm."""
    planner = Planner(1.0)
    planner.add(0, 1000.0)
    crawl(planner, 1000.0, None)
    assert planner.pick(500.0, never_rests).page == 0
    planner.crawled(0, 500.0, True)
    assert planner.pages.crawled_at[0] == 1000.0


def test_an_explanation_says_what_decides() -> None:
    """Each reason has its name."""
    planner = collection(50)
    now = float(planner.pages.crawled_at[:50].max()) + 1.0
    seen = explain(planner, 7, now)
    assert seen["binds"] == "value"
    assert seen["change_rate_interval"][0] <= seen["change_rate"] <= seen["change_rate_interval"][1]
    assert 0 < seen["expected_freshness"] < 1
    assert seen["crawl_value"] > 0
    assert seen["threshold"] == planner.threshold > 0
    if now < seen["wake_time"] < np.inf:
        assert planner.crawl_values.value_at(np.array([7]), seen["wake_time"]).item() == pytest.approx(
            seen["threshold"], rel=1e-3
        )
    page = planner.pick(now, never_rests).page
    assert explain(planner, page, now)["binds"] == "in_flight"
    planner.failed(page, now)
    assert explain(planner, page, now)["binds"] == "not_before"
    assert explain(planner, page, now)["next_allowed"] == now + 60.0
    planner.force([page], now)
    assert explain(planner, page, now)["binds"] == "forced"
    assert json.loads(json.dumps(seen))["state"] == "live"


def test_an_announcement_does_not_change_what_a_page_without_a_copy_is_worth() -> None:
    """It would go unnoticed until the first visit, and ties between new pages would be broken by it."""
    planner = Planner(1.0, crawl_value="greedy")
    planner.add(0, 0.0, n=2)
    planner.signalled([0], 0, 1.0)
    values = planner.crawl_values.value_at(np.arange(2), 2.0)
    assert values[0] == values[1]
    assert planner.pick(2.0, never_rests).page == 0


def test_a_snapshot_of_very_many_pages_is_an_even_sample_without_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more visited pages than are copied about as many come from each host, though pages go round the hosts."""
    monkeypatch.setattr("crawlsched.planner.sampling._SAMPLE", 1000)
    planner, n = Planner(1.0), 20_000
    load_crawled(planner, n, now=2.0, host=np.arange(n) % 20, crawled_at=1.0, n_crawls=np.arange(n) % 4)
    snapshot = planner.snapshot()
    assert snapshot.n_pages == 15_000
    assert 900 <= snapshot.pages.size <= 1100
    assert (np.diff(snapshot.pages) > 0).all()
    assert (planner.pages.n_crawls[snapshot.pages] > 0).all()
    assert np.bincount(snapshot.hosts, minlength=20)[1:4].min() > 25
