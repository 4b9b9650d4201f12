"""No page is given up: one that was found changed at every visit is looked at again, however little there is."""

from dataclasses import replace

import numpy as np
import pytest

from crawlsched.planner.starvation import MAX_CRAWL_ROUNDS, Rounds
from crawlsched.simulation import replay
from tests.benchmarks.bench_learning import simulated

DAY = 86_400.0
N_PAGES, FAST, DAYS, ALONE = 150, (20.0, 40.0), 250.0, 30.0


def longest_waits() -> np.ndarray:
    """Crawl pages like terms of service at 0.3 crawls per change; return their longest waits, in rounds.

    Most change once a year or never, two of them 20 and 40 times a day. These were there first: how fast they are is
    known before the others come, beside which they are worth no visit.
    """
    rng, end = np.random.default_rng(3), DAYS * DAY
    rates = rng.lognormal(-0.5, 1.5, N_PAGES) / (365 * DAY)
    rates[: len(FAST)] = np.array(FAST) / DAY
    born = np.where(np.arange(N_PAGES) < len(FAST), 0.0, ALONE * DAY)
    history = replace(simulated(rng, rates, np.ones(N_PAGES), end), birth=born, end=np.full(N_PAGES, end))
    bandwidth = 0.3 * float(rates.sum())
    done = replay(history, bandwidth)
    visits = ([born[page], *done.times[done.rows == page], end] for page in range(N_PAGES))
    waits = np.array([np.diff(times).max() for times in visits])
    return waits * bandwidth / N_PAGES


def test_no_page_waits_for_longer_than_the_guard_lets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most the rounds of the guard, and one until its turn comes; without the guard a fast page waits for more."""
    longest = MAX_CRAWL_ROUNDS
    assert longest_waits().max() < longest + 1.0
    monkeypatch.setattr(Rounds, "before_pick", lambda *_: None)
    assert longest_waits()[: len(FAST)].max() > longest + 1.0
