"""Cost of a slot of replay, beside evaluating all pages at each slot with numpy and taking the best.

    python tests/benchmarks/bench_replay.py [--slots 20000] [--pages 1000 10000] [--whole]

Change rates are lognormal, each page is crawled every ten time units on average. The alternative is given the rates
(or, for the default policy, the posterior's weights) and learns nothing. Times are user CPU time of this process; the
machine's load stands below the table, since with more to do than there are processors they grow, too.

With --whole, instead: 1,000,000 slots over 10,000 pages by the default policy (demanded: 180 s),
and Figure 4 of the noisy-signals paper at m = 1000, T = 1000, one repetition, five policies (60 s).
"""

import argparse
import os
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from crawlsched.crawl_value import posterior_value, unchecked_greedy, unchecked_noisy_value
from crawlsched.planner import DEFAULT_GRID
from crawlsched.simulation import History, replay
from crawlsched.simulation.figures import FIGURES
from tests.benchmarks.ratios import keep

# What is replayed: the name, the policy, the estimator, and whether changes are announced.
CASES = (
    ("GREEDY, rates known", "greedy", "known", False),
    ("GREEDY-NCIS, rates known, announcements", "greedy_ncis", "known", True),
    ("default policy", "posterior", None, False),
    ("default policy, announcements", "posterior", None, True),
)
CRAWLS_PER_PAGE_AND_UNIT = 0.1
ALTERNATIVE_SLOTS = 20
WHOLE_SLOTS, WHOLE_PAGES = 1_000_000, 10_000
FIGURE = "noisy-signals-4"


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--slots", type=int, default=20_000)
    parser.add_argument("--pages", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    if given.whole:
        whole()
    else:
        slots_and_alternatives(given.pages, given.slots)
    print("load of the machine, mean of the last 1, 5 and 15 minutes:", *(f"{load:.1f}" for load in os.getloadavg()))


def whole() -> None:
    """Replay and simulate at the sizes for which times are demanded; print CPU seconds."""
    history = pages_that_change(WHOLE_PAGES, WHOLE_SLOTS, announced=False)
    slot, freshness = seconds_per_slot(history, WHOLE_PAGES, WHOLE_SLOTS, "posterior", None)
    took = f"{slot * WHOLE_SLOTS:.1f} s"
    print(f"{WHOLE_SLOTS:,} slots, {WHOLE_PAGES:,} pages: {took}, freshness {freshness:.4f}", flush=True)
    figure = FIGURES[FIGURE]
    start = process_time()
    figure.run(figure.with_settings(1, [1000], 1000.0, 0), lambda *_: None)
    print(f"{FIGURE}, m = 1000, T = 1000, one repetition: {process_time() - start:.1f} s", flush=True)


def slots_and_alternatives(pages: list[int], slots: int) -> None:
    """Print the table."""
    heads = f"{'what':42}{'pages':>7}{'slots/s':>10}"
    print(f"{heads}{'us a slot':>11}{'argmax us':>11}{'ratio':>8}{'fresh':>8}")
    for n_pages in pages:
        for name, policy, estimator, announced in CASES:
            history = pages_that_change(n_pages, slots, announced)
            slot, freshness = seconds_per_slot(history, n_pages, slots, policy, estimator)
            other = alternative(policy, n_pages, announced)
            print(
                f"{name:42}{n_pages:>7}{1 / slot:>10.0f}{slot * 1e6:>11.1f}"
                f"{other * 1e6:>11.1f}{other / slot:>8.1f}{freshness:>8.4f}",
                flush=True,
            )
            keep(f"replay: {name}, {n_pages} pages, numpy", other / slot)


def pages_that_change(n_pages: int, slots: int, announced: bool) -> History:
    """Return a history of so many slots, the same at every call; announcements as in the noisy-signals paper."""
    rng = np.random.default_rng(1)
    horizon = slots / (CRAWLS_PER_PAGE_AND_UNIT * n_pages)
    rate = rng.lognormal(-1.5, 1.5, n_pages)
    importance = rng.lognormal(0.0, 1.0, n_pages)
    rows, times = poisson_times(rng, rate, horizon)
    signals: dict[str, Any] = {}
    if announced:
        recall, false = rng.beta(0.25, 0.25, n_pages), rng.uniform(0.1, 0.6, n_pages)
        true = rng.random(rows.size) < recall[rows]
        false_rows, false_times = poisson_times(rng, false, horizon)
        signal_times = np.concatenate([times[true], false_times])
        order = np.argsort(signal_times, kind="stable")
        signals = {
            "signal_rows": np.concatenate([rows[true], false_rows])[order],
            "signal_times": signal_times[order],
            "recall": recall,
            "false_signal_rate": false,
        }
    return History(
        page=np.arange(n_pages),
        birth=np.zeros(n_pages),
        end=np.full(n_pages, np.inf),
        importance=importance,
        change_rows=rows,
        change_times=times,
        change_rate=rate,
        **signals,
    )


def poisson_times(rng: np.random.Generator, rate: Any, horizon: float) -> tuple[Any, Any]:
    """Return rows and times of events, by row and then by time."""
    rows = np.repeat(np.arange(rate.size), rng.poisson(rate * horizon))
    times = rng.uniform(0.0, horizon, rows.size)
    return rows, times[np.lexsort((times, rows))]


def seconds_per_slot(
    history: History, n_pages: int, slots: int, policy: str, estimator: str | None
) -> tuple[float, float]:
    """Replay; return CPU seconds a slot, and the freshness reached."""
    bandwidth = CRAWLS_PER_PAGE_AND_UNIT * n_pages
    start = process_time()
    done = replay(history, bandwidth, policy, estimator, start=0.0, end=slots / bandwidth)
    return (process_time() - start) / max(done.rows.size, 1), done.freshness


def alternative(policy: str, n_pages: int, announced: bool) -> float:
    """Return CPU seconds that it takes to evaluate all pages and to find the best."""
    rng = np.random.default_rng(2)
    elapsed, weight = rng.exponential(10.0, n_pages), rng.lognormal(0.0, 1.0, n_pages)
    rate, heard = rng.lognormal(-1.5, 1.5, n_pages), rng.poisson(1.0, n_pages).astype(float)
    weights = rng.dirichlet(np.ones(DEFAULT_GRID.size), n_pages)
    signals = (0.7 * heard, rate, np.full(n_pages, 0.7)) if announced else ()
    ways: dict[str, Callable[[], Any]] = {
        "greedy": lambda: unchecked_greedy(elapsed, rate, weight),
        "greedy_ncis": lambda: weight * unchecked_noisy_value(elapsed, 0.7 * heard, 0.5 * rate, rate, 0.7),
        "posterior": lambda: posterior_value(weights, DEFAULT_GRID, elapsed, *signals, importance=weight),
    }
    start = process_time()
    for _ in range(ALTERNATIVE_SLOTS):
        int(np.argmax(ways[policy]()))
    return (process_time() - start) / ALTERNATIVE_SLOTS


if __name__ == "__main__":
    main()
