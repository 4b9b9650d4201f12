"""Polls are made at the rate that they are worth: compared with fixed intervals, under one budget, with known truth."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlsched.crawl.poll_value import Brought, first_interval, poll_interval
from crawlsched.crawl_value import greedy
from crawlsched.planner import Planner, plan, prospects
from tests.hosts import never_rests

HOUR = 3600.0


def test_a_poll_is_due_when_it_is_worth_as_much_as_the_crawl_of_a_page() -> None:
    """With much evidence the value at the interval is the threshold: G/ρ (1 - (1 + ρτ) exp(-ρτ))."""
    brought = Brought(gain=2e6, loss=200.0, seconds=1e8)
    interval = poll_interval(brought, 100.0, HOUR)
    rate, fading = 2e6 / 1e8, 200.0 / 2e6
    assert greedy(interval, fading, rate) == pytest.approx(100.0, rel=0.05)


@given(st.floats(1e-3, 1e9), st.floats(1e-9, 1e3), st.floats(1.0, 1e8), st.floats(1e-6, 1e6), st.floats(1.0, 1e6))
def test_intervals_keep_within_their_limits(
    gain: float, loss: float, seconds: float, threshold: float, interval: float
) -> None:
    """Never more often than 16 times, and never more rarely than 64 times or 30 days."""
    found = poll_interval(Brought(gain, loss, seconds), threshold, interval)
    assert interval / 16 * 0.999 <= found <= max(interval, min(64 * interval, 30 * 86_400.0)) * 1.001


def test_a_source_that_never_tells_anything_fades_out_and_comes_back_when_it_does() -> None:
    """Its interval grows to 64 times what is set; a few gains bring it back below that."""
    brought, waits = Brought(), []
    for _ in range(120):
        waits.append(poll_interval(brought, 10.0, HOUR))
        brought = brought.polled(waits[-1], 0.0, 0.0)
    assert waits[0] == pytest.approx(HOUR)
    assert all(later >= sooner for sooner, later in pairwise(waits))
    assert waits[-1] == pytest.approx(64 * HOUR)
    for _ in range(10):
        brought = brought.polled(waits[-1], 40_000.0, 0.5)
    assert poll_interval(brought, 10.0, HOUR) < 16 * HOUR


# -- a simulation: sitemaps of 8 pages each, of which few are worth their polls

N_SITEMAPS, N_USEFUL, PAGES = 12, 3, 8
BANDWIDTH, INTERVAL, END, MEASURED_FROM = 0.5, 60.0, 6000.0, 2500.0


@dataclass
class World:
    """When pages change, and what the sitemaps state of that: some everything, the others nothing or lies."""

    changes: list[np.ndarray]
    stated: list[np.ndarray]


def _world(rng: np.random.Generator) -> World:
    changes, stated = [], []
    for sitemap in range(N_SITEMAPS):
        rate = 1 / 400.0 if sitemap < N_USEFUL else 1 / 3000.0
        for _ in range(PAGES):
            times = np.sort(rng.uniform(0.0, END, rng.poisson(rate * END)))
            lies = np.sort(rng.uniform(0.0, END, rng.poisson(END / 300.0)))
            changes.append(times)
            stated.append(times if sitemap < N_USEFUL else lies if sitemap % 3 == 0 else np.empty(0))
    return World(changes, stated)


def _run(world: World, *, pays_for_itself: bool) -> tuple[float, np.ndarray]:
    """Return the freshness of all pages, and how often each sitemap was polled."""
    planner = Planner(BANDWIDTH)
    pages = planner.add(0, 0.0, n=N_SITEMAPS * PAGES)
    sitemap_of = pages // PAGES
    next_poll, polled_at = np.zeros(N_SITEMAPS), np.full(N_SITEMAPS, -1.0)
    brought, n_polls = [Brought()] * N_SITEMAPS, np.zeros(N_SITEMAPS, int)
    visits: list[tuple[int, float, int, int, bool]] = []
    made, next_plan, fresh = None, 200.0, []
    for slot in range(1, int(END * BANDWIDTH)):
        now = slot / BANDWIDTH
        due = int(np.argmin(next_poll))
        if next_poll[due] <= now:
            own = pages[sitemap_of == due]
            if polled_at[due] < 0:
                planner.covered(own, due, now)
            else:
                told = [((world.stated[p] > polled_at[due]) & (world.stated[p] <= now)).any() for p in own]
                announced = own[np.array(told)]
                before, still = prospects(planner, announced, now)
                planner.signalled(announced, due, now, polled_at[due])
                after, left = prospects(planner, announced, now)
                lifted = after > before
                gains = float((after - before)[lifted].sum()), float((still - left)[lifted].sum())
                brought[due] = brought[due].polled(now - polled_at[due], *gains)
            wait = poll_interval(brought[due], planner.threshold, INTERVAL) if pays_for_itself else INTERVAL
            polled_at[due], next_poll[due] = now, now + wait
            n_polls[due] += now > MEASURED_FROM
        else:
            pick = planner.pick(now, never_rests)
            assert pick is not None
            last = planner.pages.crawled_at[pick.page]
            times = world.changes[pick.page]
            changed = bool(((times > last) & (times <= now)).any())
            found = planner.crawled(pick.page, now, changed if last > -np.inf else None)
            if found is not None:
                visits.append((found.page, found.elapsed, found.n_signals, found.source, found.changed))
        if now >= next_plan and visits:
            names = ("page", "elapsed", "n_signals", "source", "changed")
            columns = {name: np.array(c) for name, c in zip(names, zip(*visits, strict=True), strict=True)}
            made = plan(planner.snapshot(), BANDWIDTH, columns, made)
            planner.adopt(made, now)
            next_plan = now + 400.0
        if now > MEASURED_FROM and slot % 10 == 0:
            crawled = planner.pages.crawled_at[pages]
            stale = [((t > c) & (t <= now)).any() for t, c in zip(world.changes, crawled, strict=True)]
            fresh.append(1.0 - float(np.mean(stale)))
    return float(np.mean(fresh)), n_polls


@pytest.mark.statistics
def test_polling_that_pays_for_itself_keeps_pages_fresher_on_the_same_budget() -> None:
    """Of 12 sitemaps, polled at 40 % of the budget, 3 are worth it: they are polled more often than the others."""
    world = _world(np.random.default_rng(7))
    fixed, _ = _run(world, pays_for_itself=False)
    paying, n_polls = _run(world, pays_for_itself=True)
    assert paying > fixed + 0.01
    assert n_polls[:N_USEFUL].mean() > 1.8 * n_polls[N_USEFUL:].mean()


@pytest.mark.parametrize(
    ("longest", "n_pages", "n_sources", "bandwidth", "seconds"),
    [
        (3600.0, 120, 1, 10.0, 36.0),  # three rounds
        (3600.0, 120, 60, 10.0, 120.0),  # sixty sources in two minutes: a twentieth of 1,200 crawls
        (3600.0, 20, 1, 20.0, 10.0),  # no sooner
        (2.0, 120, 1, 10.0, 2.0),  # what the settings say
        (3600.0, 10**6, 1, 10.0, 3600.0),
        (3600.0, 120, 1, 0.0, 3600.0),
    ],
)
def test_a_source_of_which_nothing_is_known_is_read_every_few_rounds(
    longest: float, n_pages: int, n_sources: int, bandwidth: float, seconds: float
) -> None:
    """Within the interval that is set, and within a twentieth of the bandwidth for all of them."""
    assert first_interval(longest, n_pages, n_sources, bandwidth) == pytest.approx(seconds)
