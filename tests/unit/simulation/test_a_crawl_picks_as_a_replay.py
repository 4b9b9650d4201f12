"""What the settings of a crawl make decides as a replay does: the same page in each slot of the same history."""

import numpy as np
import pytest

from crawlsched.estimators.learned_rates import POINT_ESTIMATORS, LearnedRates
from crawlsched.planner.from_settings import planner_for
from crawlsched.settings import Settings
from crawlsched.simulation.history import History
from crawlsched.simulation.replaying import replay
from tests.planners import load_crawled, never_rests

N_PAGES, BANDWIDTH, END = 12, 0.5, 600.0


def some_history() -> History:
    rng = np.random.default_rng(3)
    rates = rng.lognormal(np.log(1 / 40.0), 1.0, N_PAGES)
    changes = [np.sort(rng.uniform(0.0, END, rng.poisson(rate * END))) for rate in rates]
    return History(
        page=np.arange(N_PAGES),
        birth=np.zeros(N_PAGES),
        end=np.full(N_PAGES, np.inf),
        importance=2.0 ** rng.integers(-1, 2, N_PAGES),
        change_rows=np.repeat(np.arange(N_PAGES), [len(times) for times in changes]),
        change_times=np.concatenate(changes),
    )


def crawl_of(history: History, guess: float | None = None, **settings: object) -> list[int]:
    """Let a crawl's planner pick, and tell it what each visit finds; `guess`: its first guess of crawls per second."""
    given = {f"CRAWLSCHED_{name}": value for name, value in settings.items()}
    # The papers let a page starve that is not worth its crawls, as a replay does.
    planner = planner_for(Settings.from_scrapy({**given, "CRAWLSCHED_BANDWIDTH": BANDWIDTH}), max_crawl_rounds=None)
    if guess is not None:
        assert planner.learned is not None
        planner.learned = LearnedRates(str(settings["ESTIMATOR"]), 0, guess)
    load_crawled(planner, N_PAGES, importance=history.importance)
    picked = []
    for slot in range(1, int(END * BANDWIDTH) + 1):
        now = slot / BANDWIDTH
        pick = planner.pick(now, never_rests)
        before, times = planner.pages.crawled_at.item(pick.page), history.change_times[history.change_rows == pick.page]
        past = times[times <= now]
        since = float(now - past[-1]) if past.size else None
        planner.crawled(pick.page, now, bool((past > before).any()), time_since_modified=since)
        picked.append(pick.page)
    return picked


@pytest.mark.parametrize("estimator", POINT_ESTIMATORS)
def test_by_each_estimator(estimator: str) -> None:
    """With the one rate guessed beforehand equal, every slot goes to the page that the replay crawls."""
    history = some_history()
    replayed = replay(history, BANDWIDTH, "greedy", estimator, start=0.0, end=END)
    even_interval = N_PAGES / BANDWIDTH
    picked = crawl_of(history, 1.0 / even_interval, CRAWL_VALUE="greedy", ESTIMATOR=estimator)
    assert picked == replayed.rows.tolist()
    assert len(set(picked)) > N_PAGES // 2


@pytest.mark.parametrize("policy", ["round_robin", "uniform"])
def test_in_turn(policy: str) -> None:
    """Without rates, too."""
    history = some_history()
    replayed = replay(history, BANDWIDTH, policy, start=0.0, end=END)
    assert crawl_of(history, CRAWL_VALUE=policy) == replayed.rows.tolist()
