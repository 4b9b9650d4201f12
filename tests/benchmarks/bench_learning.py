"""How much freshness learning costs, on simulated pages, beside the same crawler that is told the truth.

The production planner crawls generated histories (`crawlsched.simulation.replay`); nothing is set by hand. The tables:
what the default policy loses to known rates, with and without what it does against a wrong first impression; what
ChangeSignals gain beside what they gain a crawler that knows all parameters; what useless ones cost; and after how many
visits a page is followed that has changed its ways. Run it with::

    python tests/benchmarks/bench_learning.py [--only loss signals useless forget] [--seeds 0 1 2] [--seconds 150]
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

import crawlsched.planner.knowledge as knowledge
import crawlsched.planner.plans.parameters as parameters
from crawlsched.estimators import Posterior
from crawlsched.simulation import History, replay

#: Spread of the logarithm of rates, bandwidth (as a share of half the pages per second), seconds.
SETTINGS = ((1.5, 0.5, 300.0), (1.5, 0.15, 600.0), (2.0, 0.1, 1000.0))
N_PAGES = 500
SIGNALS_BANDWIDTH = 100.0
DAY = 86_400.0


def simulated(rng: np.random.Generator, change_rate: np.ndarray, importance: np.ndarray, seconds: float) -> History:
    """Make pages that change as Poisson processes, and are fresh at 0."""
    n_pages = change_rate.size
    rows = np.repeat(np.arange(n_pages), rng.poisson(change_rate * seconds))
    times = rng.uniform(0.0, seconds, rows.size)
    order = np.lexsort((times, rows))
    return History(
        page=np.arange(n_pages),
        birth=np.zeros(n_pages),
        end=np.full(n_pages, np.inf),
        importance=importance,
        change_rows=rows,
        change_times=times[order],
        change_rate=change_rate,
    )


def lognormal_pages(seed: int, sigma: float, seconds: float, n_pages: int = N_PAGES) -> History:
    """Make pages with change rates lognormal(-1.5, sigma) and importance lognormal(0, 1)."""
    rng = np.random.default_rng(seed)
    rates = rng.lognormal(-1.5, sigma, n_pages)
    return simulated(rng, rates, rng.lognormal(0.0, 1.0, n_pages), seconds)


def announced_pages(seed: int, n_pages: int, seconds: float, recall: np.ndarray | None = None) -> History:
    """Make pages with the parameters of Figure 4 of the noisy-signals paper, each with its own recall and noise."""
    rng = np.random.default_rng(seed)
    plain = simulated(rng, rng.uniform(0.0, 1.0, n_pages), rng.uniform(0.0, 1.0, n_pages), seconds)
    recall = rng.beta(0.25, 0.25, n_pages) if recall is None else recall
    false = rng.uniform(0.1, 0.6, n_pages)
    told = rng.random(plain.change_rows.size) < recall[plain.change_rows]
    false_rows = np.repeat(np.arange(n_pages), rng.poisson(false * seconds))
    rows = np.concatenate([plain.change_rows[told], false_rows])
    times = np.concatenate([plain.change_times[told], rng.uniform(0.0, seconds, false_rows.size)])
    order = np.argsort(times, kind="stable")
    columns = {"signal_rows": rows[order], "signal_times": times[order]}
    return replace(plain, **columns, recall=recall, false_signal_rate=false)


def stamped_pages(seed: int, n_pages: int, seconds: float) -> History:
    """Make pages that are announced, all of them, once a second, whatever happens."""
    history = without_signals(announced_pages(seed, n_pages, seconds))
    polls = np.arange(1.0, seconds)
    rows, times = np.tile(np.arange(n_pages), polls.size), np.repeat(polls, n_pages)
    return replace(history, signal_rows=rows, signal_times=times)


def without_signals(history: History) -> History:
    """Return the history with nothing announced."""
    return replace(history, signal_rows=None, signal_times=None)


def fresh(
    history: History, bandwidth: float, seconds: float, policy: str = "posterior", estimator: str | None = None
) -> float:
    """Return the freshness over the second half."""
    window = {"start": 0.0, "end": seconds, "measure_from": seconds / 2}
    return replay(history, bandwidth, policy, estimator, **window).freshness


def loss(seed: int, sigma: float, share: float, seconds: float, n_pages: int = N_PAGES) -> float:
    """Return what the default loses to the same crawler with the true rates."""
    history = lognormal_pages(seed, sigma, seconds, n_pages)
    run = partial(fresh, history, share * n_pages * 0.5, seconds)
    return run(estimator="known") - run()


def gain_share(seed: int, n_pages: int, seconds: float, bandwidth: float = SIGNALS_BANDWIDTH) -> tuple[float, float]:
    """Return what signals gain the default, and what they gain a crawler that knows all parameters."""
    history = announced_pages(seed, n_pages, seconds)
    plain = without_signals(history)
    learned = fresh(history, bandwidth, seconds) - fresh(plain, bandwidth, seconds)
    told = fresh(history, bandwidth, seconds, "greedy_ncis", "known")
    return learned, told - fresh(history, bandwidth, seconds, "greedy", "known")


def lost_to_useless(history: History, seconds: float, bandwidth: float = SIGNALS_BANDWIDTH) -> float:
    """Return what is lost by listening to signals that say nothing."""
    return fresh(without_signals(history), bandwidth, seconds) - fresh(history, bandwidth, seconds)


@contextmanager
def variant(doubt: float, renewal: float) -> Iterator[None]:
    """Let planners doubt and forget otherwise."""
    before = parameters.DOUBT, knowledge.RENEWAL
    parameters.DOUBT, knowledge.RENEWAL = doubt, renewal
    try:
        yield
    finally:
        parameters.DOUBT, knowledge.RENEWAL = before


def summed_up(figures: list[float]) -> str:
    """Return mean and standard error as text."""
    error = np.std(figures, ddof=1) / np.sqrt(len(figures)) if len(figures) > 1 else np.nan
    return f"{np.mean(figures):+8.4f} ±{error:.4f}"


def table_loss(seeds: list[int], pages: list[int], seconds: list[float]) -> None:
    """Print what the default loses to known rates, and what it would without its precautions."""
    print("\nFreshness lost to known rates (demanded: at most 0.010, 0.025, 0.032)")
    now = parameters.DOUBT, knowledge.RENEWAL
    for doubt, renewal in dict.fromkeys((now, (0.0, now[1]), (now[0], 0.0), (0.0, 0.0))):
        with variant(doubt, renewal):
            cells = [summed_up([loss(seed, *setting) for seed in seeds]) for setting in SETTINGS]
        print(f"doubt {doubt:g}, renewal {renewal:g}".ljust(30), *cells, flush=True)


def table_signals(seeds: list[int], pages: list[int], seconds: list[float]) -> None:
    """Print what signals gain beside what there is to gain."""
    print("\nGained by signals with Figure 4's parameters: learned, known, share (demanded: at least 0.8)")
    for n_pages, time in product(pages, seconds):
        gains = np.array([gain_share(seed, n_pages, time) for seed in seeds])
        learned, known = gains.T
        share = learned.sum() / known.sum()
        # The error of a ratio of sums, to first order.
        error = np.std(learned - share * known, ddof=1) / np.sqrt(len(seeds)) / known.mean()
        columns = (summed_up(column.tolist()) for column in gains.T)
        print(f"{n_pages} pages, {time:g} s".ljust(30), *columns, f"{share:8.3f} ±{error:.3f}", flush=True)


def table_useless(seeds: list[int], pages: list[int], seconds: list[float]) -> None:
    """Print what useless signals cost."""
    print("\nLost by listening to useless signals (demanded: at most 0.002)")
    for n_pages, time in product(pages, seconds):
        false_ones = partial(announced_pages, n_pages=n_pages, seconds=time, recall=np.zeros(n_pages))
        each_poll = partial(stamped_pages, n_pages=n_pages, seconds=time)
        for name, make in {"false ones only": false_ones, "every page at every poll": each_poll}.items():
            lost = [lost_to_useless(make(seed), time) for seed in seeds]
            print(f"{n_pages} pages, {time:g} s, {name}".ljust(45), summed_up(lost), flush=True)


def visits_until_followed(change: float, spread: float, renewal: float, *, seed: int = 1, n_pages: int = 400) -> int:
    """Return after how many visits a posterior is half of the way to a new rate, in logarithms, in the median page.

    Pages are visited once per change 100 times, and then begin to change `change` times as often. The prior is
    lognormal about their first rate with a standard deviation of `spread`. 61: not within 60 visits.
    """
    rng, rates = np.random.default_rng(seed), np.geomspace(1e-3, 1e3, 25)
    prior = np.exp(-((np.log(rates) / spread) ** 2) / 2)
    posterior, pages = Posterior(n_pages, rates, prior=prior, renewal=renewal), np.arange(n_pages)
    for visit in range(160):
        now = 1.0 if visit < 100 else change
        posterior.update(pages, 1.0, rng.random(n_pages) < -np.expm1(-now))
        if visit >= 100 and np.median(posterior.weights() @ np.log(rates)) / np.log(change) > 0.5:
            return visit - 99
    return 61


def table_forget(seeds: list[int], pages: list[int], seconds: list[float]) -> None:
    """Print after how many visits a page is followed whose rate changes tenfold, faster and slower."""
    print("\nVisits until a tenfold change of rate is followed half of the way, faster and slower")
    print("by prior, lognormal with a standard deviation of 1, 2, 100:")
    for renewal in dict.fromkeys((0.0, 0.003, knowledge.RENEWAL, 0.03)):
        cells = [
            "/".join(
                f"{np.mean([visits_until_followed(by, spread, renewal, seed=seed) for seed in seeds]):.0f}"
                for by in (10.0, 0.1)
            )
            for spread in (1.0, 2.0, 100.0)
        ]
        print(f"posterior, renewal {renewal:g}".ljust(30), *cells, flush=True)


TABLES = {"loss": table_loss, "signals": table_signals, "useless": table_useless, "forget": table_forget}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES), help="tables; all by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(range(20)), help="one history of each kind each")
    parser.add_argument("--pages", nargs="+", type=int, default=[100, 500], help="of the tables signals and useless")
    parser.add_argument("--seconds", nargs="+", type=float, default=[150.0, 1000.0], help="of the same tables")
    given = parser.parse_args()
    for name in given.only:
        TABLES[name](given.seeds, given.pages, given.seconds)


if __name__ == "__main__":
    main()
