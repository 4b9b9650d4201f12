"""What learning costs: per crawl, per million pages, per round of the prior, per fit; each beside an alternative.

Run it with::

    python tests/benchmarks/bench_estimators.py [--pages 1000000]
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from crawlsched.estimators import (
    DEFAULT_RATES,
    BiasReduced,
    FrequencyClasses,
    GammaPosterior,
    LastModified,
    LawOfLargeNumbers,
    MaximumLikelihood,
    MomentMatching,
    Momentum,
    Naive,
    Posterior,
    SignalQuality,
    StochasticApproximation,
    UniformPrior,
    learn_prior,
)
from tests.benchmarks.ratios import keep

ONLINE = [
    Naive, BiasReduced, UniformPrior, LastModified, LawOfLargeNumbers, StochasticApproximation, Momentum,
    GammaPosterior, FrequencyClasses, Posterior,
]  # fmt: skip


def seconds(work: Callable[[], Any], repeat: int = 1) -> float:
    """Return the shortest of three runs, per repetition."""
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(repeat):
            work()
        best = min(best, time.perf_counter() - start)
    return best / repeat


def row(what: str, cost: float, unit: str, alternative: str, other: float) -> None:
    """Print one line of the table."""
    print(f"{what:<58} {cost:>9.3g} {unit:<9} {other / cost:>7.2f} x as fast as {alternative}")
    keep(f"estimators: {what}", other / cost)


def plain_python(weights: list[float], elapsed: float, changed: bool) -> list[float]:
    """Bayes' rule over the grid without numpy, as one would write it first."""
    kept = [math.exp(-rate * elapsed) for rate in DEFAULT_RATES.tolist()]
    weights = [w * (1 - k if changed else k) for w, k in zip(weights, kept, strict=True)]
    total = sum(weights)
    return [w / total for w in weights]


def one_crawl() -> None:
    """Time what each crawl costs: one update and one look at the weights."""
    print("\nOne page at a time (each crawl)")
    start = [1 / 32] * 32
    alternative = seconds(lambda: plain_python(start, 3600.0, True), 2000) * 1e6
    for dtype in (np.float64, np.uint16):
        posterior = Posterior(1000, dtype=dtype)
        name = np.dtype(dtype).name
        for what, changed in (("changed", True), ("unchanged", False)):
            cost = seconds(lambda p=posterior, c=changed: p.update_one(3, 3600.0, c), 5000) * 1e6
            row(f"Posterior {name}: update_one, {what}", cost, "µs", "lists of floats", alternative)


def many_pages(n: int) -> None:
    """Time updates of all pages at once, against one by one."""
    print(f"\n{n:,} pages at once")
    rng = np.random.default_rng(0)
    pages, elapsed, changed = np.arange(n), rng.exponential(86_400.0, n), rng.random(n) < 0.3
    for dtype in (np.float64, np.uint16):
        posterior = Posterior(n, dtype=dtype)
        name = np.dtype(dtype).name
        alone = seconds(lambda p=posterior: p.update_one(3, 3600.0, True), 5000) * n
        size = sum(column.nbytes for column in posterior.state().values()) / n
        cost = seconds(lambda p=posterior: p.update(pages, elapsed, changed))
        row(f"Posterior {name} ({size:.0f} bytes a page): update", cost, "s", "one by one", alone)
        row(f"Posterior {name}: change_rate", seconds(posterior.change_rate), "s", "its update", cost)
    print(f"\nUpdate and estimate of {n // 10:,} pages at once")
    few = slice(0, n // 10)
    baseline = math.nan
    for made in ONLINE:
        estimator = made(n // 10)

        def visit(bank: Any = estimator) -> None:
            bank.update(pages[few], elapsed[few], changed[few], time_since_modified=elapsed[few] / 2)
            bank.change_rate()

        cost = seconds(visit) / (n // 10) * 1e9
        baseline = cost if made is Naive else baseline
        row(made.__name__, cost, "ns a page", "Naive", baseline)


def long_histories() -> None:
    """Time the estimators that keep every interval, against one that does not."""
    print("\nUpdate and estimate of 1,000 pages after so many visits each")
    rng = np.random.default_rng(1)
    for visits in (10, 100, 1000):
        banks = [LawOfLargeNumbers(1000), MaximumLikelihood(1000), MomentMatching(1000)]
        for _ in range(visits):
            elapsed = rng.exponential(1.0, 1000)
            for bank in banks:
                bank.update(np.arange(1000), elapsed, rng.random(1000) < 0.5)

        def visit(bank: Any) -> None:
            bank.update(np.arange(1000), 1.0, True)
            bank.change_rate()

        costs = [seconds(lambda b=bank: visit(b)) * 1e3 for bank in banks]
        for bank, cost in zip(banks[1:], costs[1:], strict=True):
            row(f"{type(bank).__name__}, {visits} visits", cost, "ms", "LawOfLargeNumbers", costs[0])


def priors(n: int) -> None:
    """Time one round of expectation-maximisation, against the textbook's, which makes all posteriors at once."""
    print(f"\nOne round of learn_prior over {n:,} pages and 32 rates")
    rng = np.random.default_rng(2)
    posterior = Posterior(n, dtype=np.uint16)
    for _ in range(3):
        posterior.update(np.arange(n), rng.exponential(86_400.0, n), rng.random(n) < 0.3)
    stored = posterior.state()["log_likelihood"]
    groups = rng.integers(0, 1000, n)
    prior = np.full(32, 1 / 32)

    def textbook() -> None:
        joint = np.exp(stored * (-1 / 2048)) * prior
        joint /= joint.sum(axis=1, keepdims=True)
        joint.sum(axis=0)

    alternative = seconds(textbook)
    row("the whole", seconds(lambda: learn_prior(stored, iterations=1)), "s", "all at once", alternative)
    cost = seconds(lambda: learn_prior(stored, groups, prior, iterations=1))
    row("1,000 groups", cost, "s", "all at once (one group)", alternative)


def signals() -> None:
    """Time fits of signal quality from arrays and from a bank's cells."""
    print("\nSignal quality of 100,000 visits")
    rng = np.random.default_rng(3)
    elapsed = rng.exponential(10.0, 100_000)
    n_signals = rng.poisson(0.1 * elapsed)
    changed = rng.random(100_000) < -np.expm1(-(0.02 * elapsed + 1.2 * n_signals))
    bank = SignalQuality(1)
    groups = np.zeros(100_000, dtype=int)
    visits = seconds(lambda: SignalQuality.fit(elapsed, n_signals, changed)) * 1e3
    row("fit, with interval", visits, "ms", "itself", visits)
    point = seconds(lambda: SignalQuality.fit(elapsed, n_signals, changed, interval=False)) * 1e3
    row("fit, without interval", point, "ms", "with interval", visits)
    row(
        "update of a bank",
        seconds(lambda: bank.update(groups, elapsed, n_signals, changed)) * 1e3,
        "ms",
        "a fit",
        visits,
    )
    row("fit_group of a bank, with interval", seconds(lambda: bank.fit_group(0)) * 1e3, "ms", "fit from arrays", visits)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=1_000_000)
    n = parser.parse_args().pages
    one_crawl()
    many_pages(n)
    long_histories()
    priors(n)
    signals()


if __name__ == "__main__":
    main()
