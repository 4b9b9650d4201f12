"""Replay: what it means, slot by slot, against a brute force that shares no line with it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from crawlsched.bandwidth import low_discrepancy_schedule, refresh_rates
from crawlsched.cli.replay import ESTIMATORS_HELP, POLICIES_HELP
from crawlsched.crawl_value import greedy, greedy_cis, greedy_ncis
from crawlsched.estimators import LearnedRates
from crawlsched.simulation import (
    ESTIMATOR_NAMES,
    POLICIES,
    History,
    Window,
    default_estimator,
    freshness,
    replay,
    slot_times,
)
from tests.benchmarks.bench_learning import announced_pages, lognormal_pages, without_signals


def simulated(seed: int, n_pages: int = 40, duration: float = 100.0, *, signals: bool = False) -> History:
    """Pages with random lives, importances, changes, and announcements true and false; page numbers have gaps."""
    rng = np.random.default_rng(seed)
    history = announced_pages(seed, n_pages, duration)
    birth = np.where(rng.random(n_pages) < 0.7, -rng.random(n_pages), rng.random(n_pages) * duration)
    return replace(
        history if signals else without_signals(history),
        page=np.sort(rng.choice(10_000, n_pages, replace=False)),
        birth=birth,
        end=np.where(rng.random(n_pages) < 0.7, np.inf, birth + rng.random(n_pages) * duration),
        importance=rng.lognormal(0.0, 1.0, n_pages),
    )


def history_of(
    changes: list[tuple[int, float]], *, lives: list[tuple[float, float]], importance: list[float] | None = None
) -> History:
    """A history written out by hand; changes are ordered by page and time."""
    birth, end = np.array(lives, float).T
    return History(
        page=np.arange(len(lives)),
        birth=birth,
        end=end,
        importance=np.ones(len(lives)) if importance is None else np.array(importance),
        change_rows=np.array([row for row, _ in changes], np.intp),
        change_times=np.array([time for _, time in changes], float),
    )


VALUES = {
    "greedy": lambda h, tau, n: greedy(tau, h.change_rate, h.importance),
    "greedy_cis": lambda h, tau, n: greedy_cis(tau, n, h.change_rate, h.recall, h.importance),
    "greedy_ncis": lambda h, tau, n: greedy_ncis(tau, n, h.change_rate, h.recall, h.false_signal_rate, h.importance),
}


def brute_force(
    history: History, bandwidth: float, end: float, value, delay: float = 0.0
) -> list[tuple[int, float, bool]]:
    """Look at every page in every slot, and at every change and signal, by the words of the contract alone.

    What is heard, at the next slot, before the delay has passed since a crawl is discarded.
    """
    crawled_at = np.maximum(history.birth, 0.0)
    crawls = []
    for j in range(1, int(end * bandwidth) + 1):
        now = j / bandwidth
        n_signals = np.zeros(history.page.size)
        if history.signal_rows is not None:
            last = crawled_at[history.signal_rows]
            heard_at = np.ceil(history.signal_times * bandwidth - 1e-9) / bandwidth
            heard = (history.signal_times > last) & (heard_at >= last + delay) & (history.signal_times <= now)
            n_signals = np.bincount(history.signal_rows[heard], minlength=history.page.size)
        eligible = (history.birth < now) & (now < history.end)
        if not eligible.any():
            continue
        tau = np.where(eligible, now - crawled_at, 1.0)
        row = int(np.where(eligible, value(history, tau, n_signals), -1.0).argmax())
        times = history.change_times[history.change_rows == row]
        crawls.append((row, now, bool(((times > crawled_at[row]) & (times <= now)).any())))
        crawled_at[row] = now
    return crawls


def fresh_by_steps(history: History, window: Window, crawls: list[tuple[int, float, bool]]) -> float:
    """Walk through the events of every page, one by one."""
    fresh = total = 0.0
    for row, weight in enumerate(history.importance):
        begin, end = max(history.birth[row], window.start), min(history.end[row], window.end)
        if end <= max(begin, window.measure_from):
            continue
        events = [(begin, 0, "crawl"), *((t, 1, "crawl") for r, t, _ in crawls if r == row)]
        changes = history.change_times[history.change_rows == row]
        events += [(t, 0, "change") for t in changes if begin < t < end]
        events = [*sorted(events), (end, 0, "end")]
        is_fresh = True
        for (time, _, what), (following, _, _) in pairwise(events):
            is_fresh = what == "crawl"
            lasts = following - max(time, window.measure_from)
            if lasts > 0:
                fresh += weight * lasts * is_fresh
                total += weight * lasts
    return fresh / total


def alike() -> History:
    """Many pages alike, on a grid of times; rates so high that values stand still, rates and importances of 0."""
    rng, n_pages = np.random.default_rng(21), 60
    base = simulated(22, n_pages, 60.0, signals=True)
    columns = {
        "birth": rng.choice([0.0, 0.0, 3.0, 10.0], n_pages),
        "end": rng.choice([np.inf, 40.0, 60.0], n_pages),
        "importance": rng.choice([0.0, 1.0, 1.0, 2.0], n_pages),
        "change_rate": rng.choice([0.0, 0.05, 0.05, 1.0, 80.0], n_pages),
        "recall": rng.choice([0.0, 0.5, 1.0], n_pages),
        "false_signal_rate": rng.choice([0.0, 0.1], n_pages),
        "change_times": np.round(base.change_times),
        "signal_times": np.round(base.signal_times),
    }
    return replace(base, **columns)


@pytest.mark.parametrize("policy", VALUES)
@pytest.mark.parametrize("history", [simulated(0, signals=True), simulated(1), alike()], ids=["one", "two", "alike"])
def test_with_known_rates_every_pick_is_the_brute_force_argmax(policy: str, history: History) -> None:
    """Page, time and finding of each crawl, and freshness, are those of a search through all pages at every slot."""
    done = replay(history, 4.0, policy, "known", start=0.0, end=60.0, measure_from=40.0)
    crawls = brute_force(history, 4.0, 60.0, VALUES[policy])
    assert list(zip(done.rows.tolist(), done.times.tolist(), done.changed.tolist(), strict=True)) == crawls
    assert done.freshness == pytest.approx(fresh_by_steps(history, Window(0.0, 60.0, 40.0), crawls), rel=1e-12)


@pytest.mark.parametrize("estimator", ["naive", "momentum", "gamma_posterior"])
def test_with_estimated_rates_every_pick_is_the_argmax_of_what_was_learned_so_far(estimator: str) -> None:
    """One number for each page, by its own visits: of all pages the best by these goes."""
    history = simulated(33, 200)
    bandwidth, end = 20.0, 20.0
    done = replay(history, bandwidth, "greedy", estimator, start=0.0, end=end)
    lives = np.maximum(np.minimum(history.end, end) - np.maximum(history.birth, 0.0), 0.0)
    rates = LearnedRates(estimator, 200, bandwidth / (lives.sum() / end))
    crawled_at = np.maximum(history.birth, 0.0)
    for row, now, changed in zip(done.rows.tolist(), done.times.tolist(), done.changed.tolist(), strict=True):
        there = (history.birth < now) & (now < history.end)
        known = rates.change_rate(np.arange(200))
        values = greedy(np.where(there, now - crawled_at, 0.0), known, history.importance)
        assert row == int(np.where(there, values, -1.0).argmax())
        past = history.change_times[(history.change_rows == row) & (history.change_times <= now)]
        since = now - past[-1] if past.size else None
        rates.observe(row, now - crawled_at[row], changed, time_since_modified=since)
        crawled_at[row] = now


def test_late_announcements_are_discarded_as_the_noisy_signals_paper_says() -> None:
    """Up to T_delay after a crawl; without a delay other pages are crawled."""
    history = announced_pages(6, 12, 6.0)
    delayed, undelayed = (
        replay(history, 10.0, "greedy_ncis", "known", start=0.0, end=6.0, signal_delay=delay).rows.tolist()
        for delay in (0.25, 0.0)
    )
    assert delayed == [row for row, _, _ in brute_force(history, 10.0, 6.0, VALUES["greedy_ncis"], delay=0.25)]
    assert delayed != undelayed


def test_the_default_policy_with_known_rates_is_the_noisy_signals_rule() -> None:
    """A posterior without uncertainty is GREEDY-NCIS."""
    history = simulated(5, signals=True)
    done = replay(history, 5.0, "posterior", "known", start=0.0, end=100.0)
    expected = brute_force(history, 5.0, 100.0, VALUES["greedy_ncis"])
    assert done.rows.tolist() == [row for row, _, _ in expected]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_replay_may_begin_before_1970(policy: str) -> None:
    """The same pages are crawled when all times are 64 seconds earlier: nothing depends on a clock, or on chance."""
    history = simulated(9, signals=True)
    names = ("birth", "end", "change_times", "signal_times")
    earlier = replace(history, **{name: getattr(history, name) - 64.0 for name in names})
    later = replay(history, 4.0, policy, start=0.0, end=60.0)
    assert replay(earlier, 4.0, policy, start=-64.0, end=-4.0).rows.tolist() == later.rows.tolist()


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if policy != "poisson"])
def test_ties_go_to_the_lowest_page(policy: str) -> None:
    """Among pages that are alike in everything the first is crawled first, unless chance decides."""
    history = history_of([], lives=[(0.0, 9.0)] * 3)
    assert replay(history, 1.0, policy).rows[0] == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_every_slot_crawls_a_page_that_is_there(policy: str) -> None:
    """All arms conserve work: each slot at which a page is there is used, and for such a page."""
    history = simulated(6, signals=True)
    done = replay(history, 3.0, policy, start=0.0, end=100.0)
    slots = [t for t in slot_times(Window(0.0, 100.0, 0.0), 3.0) if ((history.birth < t) & (t < history.end)).any()]
    assert done.times.tolist() == slots
    assert (history.birth[done.rows] < done.times).all()
    assert (done.times < history.end[done.rows]).all()
    assert 0.0 < done.freshness < 1.0


@pytest.mark.parametrize("estimator", ESTIMATOR_NAMES)
def test_every_estimator_drives_a_plan_and_starves_no_page(estimator: str) -> None:
    """With each estimator all pages that are there throughout are crawled, the quiet ones too."""
    history = simulated(8, signals=True)
    there = np.flatnonzero((history.birth < 1) & np.isinf(history.end))
    quiet = ~np.isin(history.change_rows, there[:3])
    changes = {name: getattr(history, name)[quiet] for name in ("change_rows", "change_times")}
    history = replace(history, importance=np.ones(history.page.size), **changes)
    done = replay(history, 8.0, "harmonic", estimator, start=0.0, end=100.0)
    assert done.estimator == estimator
    if estimator != "hindsight":  # which knows that they never change
        assert np.isin(there[:3], done.rows).all()


def test_slots_do_not_drift() -> None:
    """The slots are start + j/R however many there are, at a rate that is no simple fraction too."""
    rate = 1234.5678901234567
    times = list(slot_times(Window(5.0, 205.0, 5.0), rate))
    np.testing.assert_allclose(times, [5.0 + j / rate for j in range(1, len(times) + 1)], rtol=1e-15, atol=0.0)
    assert times[-1] <= 205.0 < 5.0 + (len(times) + 1) / rate


def test_a_change_at_the_birth_or_at_the_start_is_in_the_first_copy() -> None:
    """A page counts as crawled at max(birth, start)."""
    history = history_of([(0, 1.0), (1, 2.5)], lives=[(-5.0, 9.0), (2.5, 9.0)])
    done = replay(history, 1.0, "round_robin", start=1.0, end=5.0)
    assert not done.changed.any()
    assert done.freshness == 1.0


def test_freshness_counts_importance_and_only_what_is_measured() -> None:
    """Worked by hand: a page of weight 3 stale for 1 of 2 seconds, one of weight 1 never."""
    history = history_of([(0, 3.0)], lives=[(0.0, 9.0), (0.0, 9.0)], importance=[3.0, 1.0])
    assert freshness(history, Window(0.0, 4.0, 2.0), [], []) == pytest.approx((3 * 1 + 1 * 2) / 8)
    assert freshness(history, Window(0.0, 4.0, 2.0), [0], [3.5]) == pytest.approx((3 * 1.5 + 1 * 2) / 8)


def test_without_a_living_page_there_is_no_freshness() -> None:
    """Nothing measured is nan, not 0 and not an error."""
    history = history_of([], lives=[(0.0, 1.0)])
    assert np.isnan(replay(history, 1.0, "round_robin", start=0.0, end=9.0, measure_from=5.0).freshness)


def test_lds_with_known_rates_is_the_low_discrepancy_schedule() -> None:
    """The arm that can change its plan on the way follows Algorithm 3 of Azar et al. while it does not have to."""
    rng = np.random.default_rng(3)
    change_rate = rng.lognormal(-2.0, 1.0, 30)
    history = replace(history_of([], lives=[(0.0, 1e4)] * 30), change_rate=change_rate)
    done = replay(history, 2.0, "lds", "known", start=0.0, end=500.0)
    rates = refresh_rates(change_rate, 1.0, 2.0).rates
    assert done.rows.tolist() == low_discrepancy_schedule(rates, 1000).tolist()


@pytest.mark.statistics
def test_the_default_learns_from_modification_dates_where_it_is_told_them() -> None:
    """With a visit in many changes, the date of the last one says what the visit alone cannot."""
    duration = 300.0
    history = lognormal_pages(5, 1.5, duration, n_pages=200)

    def measured(estimator: str) -> float:
        return replay(history, 15.0, "posterior", estimator, start=0.0, end=duration, measure_from=150.0).freshness

    assert measured("last_modified") > measured("posterior") + 0.005


def test_hindsight_counts_changes_by_the_time_a_page_was_there() -> None:
    """Changes at the start have been seen, and those outside of a page's life do not count."""
    history = history_of([(0, 2.0), (0, 3.0), (0, 5.0), (1, 1.0), (1, 9.0)], lives=[(0.0, 9.0), (4.0, 8.0)])
    assert history.hindsight_rates(Window(2.0, 10.0, 2.0)).tolist() == [2 / 7, 0.0]


def test_the_help_names_all_policies_and_estimators() -> None:
    """What the command line says without loading the simulation is what there is."""
    assert POLICIES_HELP.split(", ") == list(POLICIES)
    assert ESTIMATORS_HELP.split(", ") == list(ESTIMATOR_NAMES)
    assert default_estimator("round_robin") is None
