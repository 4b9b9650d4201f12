"""Exploration: the knowledge gradient is what its definition says, and pages go for it only when they should."""

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawlsched.planner import Planner, plan
from crawlsched.planner.overrides.knowledge_gradient import KnowledgeGradient
from crawlsched.simulation import History, replay

INTERVALS = np.geomspace(1e-3, 1e3, 56)


def best_plan(weights: list[mp.mpf], rates: list[float], even_interval: float, cost: float) -> mp.mpf:
    """Return the best freshness less cost per second, the page being crawled at one of the intervals or never."""
    found = mp.mpf(0)
    for interval in (mp.mpf(even_interval) * mp.mpf(float(share)) for share in INTERVALS):
        fresh = sum(
            weight * (1 - mp.exp(-rate * interval)) / (rate * interval)
            for weight, rate in zip(weights, rates, strict=True)
        )
        found = max(found, fresh - cost / interval)
    return found


def gradient_of(weights: list[float], rates: list[float], even: float, elapsed: float, cost: float) -> mp.mpf:
    """Return the knowledge gradient by Bayes' rule, outcome by outcome."""
    prior = [mp.mpf(weight) / sum(map(mp.mpf, weights)) for weight in weights]
    gradient = -best_plan(prior, rates, even, cost)
    for changed in (False, True):
        likelihood = [-mp.expm1(-rate * elapsed) if changed else mp.exp(-mp.mpf(rate) * elapsed) for rate in rates]
        joint = [share * seen for share, seen in zip(prior, likelihood, strict=True)]
        if sum(joint) > 0:
            after = [share / sum(joint) for share in joint]
            gradient += sum(joint) * best_plan(after, rates, even, cost)
    return gradient


@given(
    weights=st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4),
    elapsed=st.floats(1e-3, 1e4),
    cost=st.floats(1e-3, 1e3),
    even=st.floats(0.1, 100.0),
)
@settings(max_examples=40, deadline=None)
def test_the_knowledge_gradient_is_what_the_best_plan_gains_by_bayes_rule(
    weights: list[float], elapsed: float, cost: float, even: float
) -> None:
    """Against an oracle that updates the probabilities for both outcomes and plans anew, digit by digit."""
    rates = [0.01, 0.1, 1.0, 10.0]
    gradient = KnowledgeGradient(np.array(rates), even)
    shares = np.array([weights]) / sum(weights)
    found = gradient(shares, np.array([rates]) * elapsed, np.array([cost])).item()
    assert found == pytest.approx(float(gradient_of(weights, rates, even, elapsed, cost)), abs=1e-12)


def test_nothing_is_learned_where_the_rate_is_certain_or_the_outcome_is() -> None:
    """A known rate, a visit right after the last one, and one when every page must have changed."""
    gradient = KnowledgeGradient(np.array([0.01, 1.0]), 10.0)
    weights = np.array([[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]])
    stale = np.array([10.0, 0.0, 1e5])[:, np.newaxis] * gradient.rates
    assert gradient(weights, stale, np.full(3, 2.0)) == pytest.approx(0.0, abs=1e-12)


def poisson_pages(seed: int, n: int = 60, seconds: float = 300.0) -> History:
    """Pages whose rates differ by factors of a hundred and more."""
    rng = np.random.default_rng(seed)
    rates = rng.lognormal(-1.5, 2.0, n)
    rows = np.repeat(np.arange(n), rng.poisson(rates * seconds))
    times = rng.uniform(0.0, seconds, rows.size)
    order = np.lexsort((times, rows))
    return History(
        page=np.arange(n),
        birth=np.zeros(n),
        end=np.full(n, np.inf),
        importance=rng.lognormal(0.0, 1.0, n),
        change_rows=rows,
        change_times=times[order],
        change_rate=rates,
    )


def crawl_through(
    history: History, bandwidth: float, exploration_rounds: float | None, seconds: float = 300.0, told: float = 0.0
) -> tuple[float, list[tuple[int, str]]]:
    """Let a planner crawl a history; return the mean freshness at some slots of the second half, and all picks.

    A source announces a share `told` of the changes, and as many that there were not.
    """
    planner = Planner(bandwidth, rates=np.geomspace(1e-3, 1e2, 32), exploration_rounds=exploration_rounds)
    n = history.page.size
    changes = [history.change_times[history.change_rows == page] for page in range(n)]
    planner.add(0, 0.0, history.importance, n)
    for page in range(n):
        planner.crawled(page, 0.0, changed=None)
    is_told = np.flatnonzero(np.random.default_rng(1).random(history.change_times.size) < told)
    rows, times = (np.repeat(column[is_told], 2) for column in (history.change_rows, history.change_times))
    times[::2] = seconds - times[::2]
    order = np.argsort(times, kind="stable")
    rows, times = rows[order], times[order]
    if told:
        planner.covered(np.arange(n), 0, 0.0)
    announced, visits = 0, {name: [] for name in ("page", "elapsed", "n_signals", "source", "changed")}
    crawled_at, next_plan, picks, fresh = np.zeros(n), 64, [], []
    for slot in range(1, int(bandwidth * seconds)):
        now = slot / bandwidth
        before_now = int(times.searchsorted(now, side="right"))
        told_now = rows[announced:before_now]
        while told_now.size:  # a page that was announced twice, twice
            once, first = np.unique(told_now, return_index=True)
            planner.signalled(once, 0, now)
            told_now = np.delete(told_now, first)
        announced = before_now
        pick = planner.pick(now, lambda host, now: now)
        assert pick is not None
        picks.append((pick.page, pick.reason))
        found = changes[pick.page]
        before = found.searchsorted(crawled_at[pick.page], side="right")
        seen = planner.crawled(pick.page, now, changed=bool(found.searchsorted(now, side="right") > before))
        for name, column in visits.items():
            column.append(getattr(seen, name))
        crawled_at[pick.page] = now
        if slot == next_plan:
            next_plan += min(next_plan, 4 * n)
            columns = {name: np.array(column) for name, column in visits.items()}
            planner.adopt(plan(planner.snapshot(), bandwidth, columns if told else None), now)
        if now > seconds / 2 and slot % 20 == 0:
            copies = zip(changes, crawled_at, strict=True)
            is_fresh = [c.searchsorted(at, side="right") == c.searchsorted(now, side="right") for c, at in copies]
            fresh.append(np.average(is_fresh, weights=history.importance))
    return float(np.mean(fresh)), picks


def test_exploring_keeps_pages_fresher_where_bandwidth_is_short() -> None:
    """On histories of pages whose rates differ widely, the mean is higher than without."""
    gained = []
    for seed in (0, 2):
        history = poisson_pages(seed, 150, 1000.0)
        with_it, _ = crawl_through(history, 7.5, 20.0, 1000.0)
        without, _ = crawl_through(history, 7.5, None, 1000.0)
        gained.append(with_it - without)
    assert np.mean(gained) > 0.0, gained


def test_at_most_every_second_pick_explores_and_none_does_unless_asked() -> None:
    """The reason of the pick says so; before the first plan nobody knows what a slot is worth."""
    history = poisson_pages(7)
    _, picks = crawl_through(history, 3.0, 20.0)
    exploring = [slot for slot, (_, reason) in enumerate(picks) if reason == "exploration"]
    assert exploring
    assert min(exploring) >= 64
    assert min(np.diff(exploring)) >= 2
    _, picks = crawl_through(history, 3.0, None)
    assert {reason for _, reason in picks} == {"value"}


def test_pages_are_hardly_explored_when_a_third_of_their_changes_is_announced() -> None:
    """Where nothing is announced many slots go to what visits teach; the plans compared for that do not hear."""
    history = poisson_pages(7)
    explored = []
    for told in (0.3, 0.0):
        _, picks = crawl_through(history, 20.0, 20.0, told=told)
        explored.append(sum(reason == "exploration" for _, reason in picks[3000:]))
    assert explored[0] < 15, explored
    assert explored[1] > 100, explored


def test_pages_that_may_not_be_crawled_are_not_explored() -> None:
    """Neither those of a host that rests, nor those that wait for their shortest interval."""
    planner = Planner(1.0, exploration_rounds=20.0, min_crawl_interval=20.0)
    planner.add([0] * 50 + [1] * 50, 0.0)
    rng, last = np.random.default_rng(3), np.full(100, -np.inf)
    rates = np.where(np.arange(100) % 2, 0.3, 0.003)
    reasons, next_plan = [], 64
    for slot in range(1, 2500):
        now, resting = float(slot), 400 < slot < 900
        pick = planner.pick(now, lambda host, now, resting=resting: 900.0 if host == 1 and resting else now)
        if pick is None:
            continue
        elapsed = now - last[pick.page]
        assert not (resting and pick.page >= 50)
        assert elapsed >= 20.0
        last[pick.page] = now
        reasons.append(pick.reason)
        planner.crawled(pick.page, now, changed=bool(rng.random() < -np.expm1(-rates[pick.page] * elapsed)))
        if slot >= next_plan:
            next_plan *= 2
            planner.adopt(plan(planner.snapshot(), 1.0), now)
    assert "exploration" in reasons


def test_the_papers_rules_do_not_explore() -> None:
    """They take a mean rate for the truth, and to them a visit teaches nothing."""
    planner = Planner(1.0, crawl_value="greedy", exploration_rounds=20.0)
    planner.add(0, 0.0, n=10)
    for slot in range(1, 300):
        pick = planner.pick(float(slot), lambda host, now: now)
        assert pick is not None
        assert pick.reason == "value"
        planner.crawled(pick.page, float(slot), changed=slot % 3 == 0)
        if slot == 64:
            planner.adopt(plan(planner.snapshot(), 1.0), float(slot))


def test_the_same_replay_gives_the_same_crawls() -> None:
    """Nothing depends on chance or on the clock."""
    history = poisson_pages(1)
    first, second = (replay(history, 3.0, start=0.0, end=300.0) for _ in range(2))
    assert first.freshness == second.freshness
