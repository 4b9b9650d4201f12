"""Time of crawl values, per million, beside the obvious ways to compute them in the same run.

    python tests/benchmarks/bench_crawl_value.py [--pages 1000000]

The alternatives: the closed formula for GREEDY, the sums of Lemma 4 term by term for GREEDY-NCIS, bisection for the
inverse, and a loop over the rates for the posterior.
"""

import argparse
import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from crawlsched.crawl_value import (
    elapsed_at_value,
    greedy,
    greedy_ncis,
    noisy_value,
    posterior_value,
)
from tests.benchmarks.ratios import keep

SAMPLE = 2_000  # pages for the slow alternatives


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=1_000_000)
    pages = parser.parse_args().pages
    print(f"{'what':58}{'seconds per million':>20}{'alternative':>13}{'ratio':>9}")
    without_announcements(pages)
    with_announcements("numpy", pages)
    one_page("numpy")


def without_announcements(pages: int) -> None:
    """GREEDY and its inverse."""
    elapsed, _, change_rate, _, _ = figure_4(pages)
    formula = seconds(lambda: (1 - (1 + change_rate * elapsed) * np.exp(-change_rate * elapsed)) / change_rate)
    row(
        "greedy, elapsed of mean 10 (alternative: the closed formula)",
        seconds(lambda: greedy(elapsed, change_rate)),
        formula,
        pages,
    )
    recent = 1e-4 * elapsed
    row(
        "greedy, crawled just now (the formula has lost 4 to 8 digits)",
        seconds(lambda: greedy(recent, change_rate)),
        formula,
        pages,
    )
    value = greedy(elapsed, change_rate)
    row(
        "elapsed_at_value (alternative: 50 bisections)",
        seconds(lambda: elapsed_at_value(value, change_rate), 1),
        seconds(lambda: bisection(value, change_rate), 1),
        pages,
    )


def with_announcements(name: str, pages: int) -> None:
    """GREEDY-NCIS, its approximations, its worst parameters, and its inverse."""
    parameters = figure_4(pages)
    sample = tuple(part[:SAMPLE] for part in parameters)
    started = perf_counter()
    summed = np.array([direct_sum(*page) for page in zip(*sample, strict=True)])
    term_by_term = (perf_counter() - started) / SAMPLE * pages
    difference = (np.abs(greedy_ncis(*sample) - summed) * sample[2]).max()
    values = seconds(lambda: greedy_ncis(*parameters))
    row(f"{name}: greedy_ncis, Figure 4 (alternative: term by term)", values, term_by_term, pages)
    print(f"{'':4}largest difference of the two, as a share of importance / change_rate: {difference:.1e}")
    for max_terms in (1, 2):
        approximation = seconds(lambda j=max_terms: greedy_ncis(*parameters, max_terms=j))
        row(f"{name}: G-NCIS-APPROX-{max_terms}, Figure 4 (alternative: all terms)", approximation, values, pages)
    row(
        f"{name}: worst of {len(WORST)} kinds of pages (alternative: Figure 4)",
        max(map(worst, WORST)) * pages,
        values,
        pages,
    )
    target, n_signals = greedy_ncis(*parameters), parameters[1]
    page = parameters[2:]
    taken = seconds(lambda: elapsed_at_value(target, *page, 1.0, n_signals), 1)
    row(f"{name}: elapsed_at_value, announced (alternative: the values)", taken, values, pages)


def one_page(name: str) -> None:
    """The posterior value of a single page, as on the crawling thread."""
    rates = np.logspace(-8, -3, 28)
    weights = np.random.default_rng(0).dirichlet(np.ones(28))
    loop = seconds(lambda: sum(w * greedy(1e5, r) for w, r in zip(weights, rates, strict=True)), 30)
    print(f"{'one page, microseconds:':58}")
    for label, call in (
        ("posterior_value", lambda: posterior_value(weights, rates, 1e5)),
        ("posterior_value, announced", lambda: posterior_value(weights, rates, 1e5, 0.9, 1e-5, 0.9)),
    ):
        taken = seconds(call, 300)
        print(f"{name + ': ' + label + ' (alternative: a loop)':58}{1e6 * taken:>20.1f}{1e6 * loop:>13.1f}", end="")
        print(f"{taken / loop:>9.3f}")


def figure_4(pages: int) -> tuple[np.ndarray, ...]:
    """Draw pages as in Figure 4 of Busa-Fekete et al.: elapsed, n_signals, change_rate, recall, false_signal_rate."""
    rng = np.random.default_rng(0)
    change_rate, recall, false_rate = rng.random(pages), rng.beta(0.25, 0.25, pages), rng.uniform(0.1, 0.6, pages)
    elapsed = rng.exponential(10.0, pages)
    return elapsed, rng.poisson((recall * change_rate + false_rate) * elapsed), change_rate, recall, false_rate


# (y / kappa, kappa gamma / alpha, y): where most oscillations or most open terms are needed
WORST = [(8.0, 4.0, 1.0), (16.0, 8.0, 0.01), (60.0, 50.0, 20.0), (2000.0, 300.0, 20.0), (1e4, 700.0, 1.0)]


def worst(kind: tuple[float, float, float]) -> float:
    """Seconds for one value of such a page."""
    needed, smoothness, y = kind
    n, kappa = 100_000, y / needed
    ones = np.ones(n)
    return seconds(lambda: noisy_value(y * ones, 0.0, 1.0, smoothness / kappa, kappa), 1) / n


def direct_sum(elapsed: float, n: float, change_rate: float, recall: float, false_rate: float) -> float:
    """Lemma 4 as it is printed, in floats: every term from i = 0 to floor(iota / beta), every residual as a sum."""
    alpha, gamma = (1 - recall) * change_rate, recall * change_rate + false_rate
    kappa = math.log(gamma / false_rate)
    if alpha < 1e-9 * gamma:
        psi, q = (n + 0.0) / gamma, false_rate / gamma
        return (1 - q**n) / (1 - q) / gamma - math.exp(-kappa * n) * psi
    if kappa < 1e-6:
        y = change_rate * elapsed
        return (1 - (1 + y) * math.exp(-y)) / change_rate
    iota, beta = elapsed + kappa * n / alpha, kappa / alpha
    w = psi = 0.0
    for i in range(math.floor(iota / beta) + 1):
        rest = iota - i * beta
        w += (false_rate / (alpha + gamma)) ** i / (alpha + gamma) * residual(i, (alpha + gamma) * rest)
        psi += residual(i, gamma * rest) / gamma
        if gamma * rest < i and residual(i, (alpha + gamma) * rest) < 1e-18:
            break
    return w - math.exp(-alpha * iota) * psi


def residual(i: int, x: float) -> float:
    """R^i(x) = 1 - exp(-x) sum_{j<=i} x^j / j!."""
    if x > 700:
        return 1.0 if x > i else 0.0
    term = total = math.exp(-x)
    for j in range(1, i + 1):
        term *= x / j
        total += term
    return max(1.0 - total, 0.0)


def bisection(value: np.ndarray, change_rate: np.ndarray) -> np.ndarray:
    """Invert GREEDY by halving."""
    low, high = np.zeros(value.size), 60.0 / change_rate
    for _ in range(50):
        middle = 0.5 * (low + high)
        below = greedy(middle, change_rate) < value
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low


def seconds(call: Callable[[], Any], repetitions: int = 3) -> float:
    """Take the shortest of some runs."""
    times = []
    for _ in range(repetitions):
        started = perf_counter()
        call()
        times.append(perf_counter() - started)
    return min(times)


def row(what: str, taken: float, alternative: float, pages: int) -> None:
    """Print a measurement beside its alternative, both per million pages."""
    scale = 1e6 / pages
    print(f"{what:58}{taken * scale:>20.3f}{alternative * scale:>13.3f}{taken / alternative:>9.3f}", flush=True)
    keep(f"crawl_value: {what}", alternative / taken)


if __name__ == "__main__":
    main()
