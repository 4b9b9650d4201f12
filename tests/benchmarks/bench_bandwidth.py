"""How fast a bandwidth is divided, and in how much memory.

Each figure stands beside a plain alternative measured in the same run: halving, on whole arrays, of the threshold and
of each page's interval; and for the schedule, a search through all pages in every slot. Run it with::

    python tests/benchmarks/bench_bandwidth.py [--pages 10000000]
"""

import argparse
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

from crawlsched.bandwidth import (
    demand,
    harmonic_rates,
    low_discrepancy_schedule,
    poisson_crawl_rates,
    refresh_rates,
    refresh_rates_with_signals,
)
from tests.benchmarks.ratios import keep

HALVINGS = 60


def population(n_pages: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Make change rates and importances of very different pages, and a bandwidth that leaves some out."""
    rng = np.random.default_rng(0)
    return rng.lognormal(0.0, 2.0, n_pages), rng.lognormal(0.0, 1.0, n_pages), n_pages / 10


def halved(wanted: Callable[[float], np.ndarray], bandwidth: float, n_halvings: int = HALVINGS) -> np.ndarray:
    """Halve the logarithm of the threshold until the rates add up."""
    low, high = -60.0, 60.0
    for _ in range(n_halvings):
        middle = (low + high) / 2.0
        low, high = (middle, high) if wanted(np.exp(middle)).sum() > bandwidth else (low, middle)
    return wanted(np.exp(low))


def plain_refresh_rates(
    change_rate: np.ndarray, importance: np.ndarray, bandwidth: float, n_halvings: int = HALVINGS
) -> np.ndarray:
    """Solve problem (5) by halving the threshold and, for each, every page's interval."""

    def wanted(threshold: float) -> np.ndarray:
        share = threshold * change_rate / importance
        low, high = np.full(share.shape, -40.0), np.full(share.shape, 5.0)  # logarithms of change_rate / rate
        for _ in range(n_halvings):
            middle = (low + high) / 2.0
            x = np.exp(middle)
            below = 1.0 - (1.0 + x) * np.exp(-x) < share
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.where(share < 1.0, change_rate * np.exp(-low), 0.0)

    return halved(wanted, bandwidth, n_halvings)


def plain_harmonic_rates(change_rate: np.ndarray, importance: np.ndarray, bandwidth: float) -> np.ndarray:
    """Halve the threshold of the never-starving plan."""
    useful = 4.0 * importance * change_rate
    return halved(lambda t: (np.sqrt(change_rate**2 + useful / t) - change_rate) / 2.0, bandwidth)


def plain_poisson_rates(change_rate: np.ndarray, importance: np.ndarray, bandwidth: float) -> np.ndarray:
    """Halve the threshold of crawls at random times."""
    useful = importance * change_rate
    return halved(lambda t: np.maximum(np.sqrt(useful / t) - change_rate, 0.0), bandwidth)


def plain_schedule(rates: np.ndarray, n_slots: int) -> np.ndarray:
    """Crawl in each slot the page that is furthest behind its share."""
    shares = rates / rates.sum()
    credit, order = np.zeros(rates.size), np.empty(n_slots, dtype=np.intp)
    for slot in range(n_slots):
        credit += shares
        order[slot] = page = np.argmax(credit)
        credit[page] -= 1.0
    return order


def seconds(function: Callable[..., Any], *arguments: Any) -> float:
    """Time one call."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def peak_bytes(function: Callable[..., Any], *arguments: Any) -> int:
    """Measure the most memory that one call holds at a time, arguments not counted."""
    tracemalloc.start()
    function(*arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def in_a_process_of_its_own(n_pages: int) -> tuple[float, float]:
    """Run `refresh_rates` alone; give seconds, and bytes a page by which the process grew."""
    command = [sys.executable, __file__, "--alone", str(n_pages)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    took, grew = answer.stdout.split()
    return float(took), float(grew)


def alone(n_pages: int) -> None:
    """Print the seconds that `refresh_rates` takes, and the bytes a page by which it raises the peak."""
    pages = population(n_pages)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = seconds(refresh_rates, *pages)
    print(took, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / n_pages)


def row(name: str, took: float, n: int, plain: float, n_plain: int, plain_name: str) -> None:
    """Print a line that compares the time per page (or slot) with the alternative's."""
    ours, theirs = took / n * 1e9, plain / n_plain * 1e9
    print(f"{name:28} {n:>11,} {took:8.2f} s {ours:9.0f} ns   {plain_name:34} {theirs:9.0f} ns  {theirs / ours:8.1f} x")
    keep(f"bandwidth: {name}", theirs / ours)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=10_000_000)
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.alone:
        alone(arguments.alone)
        return
    few, some = population(20_000), population(1_000_000)
    print(f"{'':28} {'pages':>11} {'time':>10} {'per page':>12}   {'alternative':34} {'per page':>12}  {'faster':>10}")
    took, grew = in_a_process_of_its_own(arguments.pages)
    plain = seconds(plain_refresh_rates, *few)
    row("refresh_rates", took, arguments.pages, plain, few[0].size, "halving threshold and intervals")
    signals = np.random.default_rng(1).beta(0.25, 0.25, 20_000), np.random.default_rng(2).uniform(0.1, 0.6, 20_000)
    noisy = seconds(refresh_rates_with_signals, few[0], *signals, *few[1:])
    halving = seconds(
        lambda: halved(lambda t: demand(t, few[0], few[1], *signals) * np.ones(1), few[2], n_halvings=HALVINGS)
    )
    row("refresh_rates_with_signals", noisy, 20_000, halving, 20_000, "halving the threshold of `demand`")
    for name, ours, theirs in [
        ("poisson_crawl_rates", poisson_crawl_rates, plain_poisson_rates),
        ("harmonic_rates", harmonic_rates, plain_harmonic_rates),
    ]:
        row(name, seconds(ours, *some), some[0].size, seconds(theirs, *some), some[0].size, "halving the threshold")
    rates = population(10_000)[0]
    row(
        "low_discrepancy_schedule",
        seconds(low_discrepancy_schedule, rates, 1_000_000),
        1_000_000,
        seconds(plain_schedule, rates, 20_000),
        20_000,
        "argmax of 10,000 credits (per slot)",
    )
    ours, theirs = peak_bytes(refresh_rates, *some) / 1e6, peak_bytes(plain_refresh_rates, *some, 1) / 1e6
    print(f"\nMemory of refresh_rates besides its arguments, its result included: {ours:.0f} bytes a page;")
    print(f"  of halving on whole arrays {theirs:.0f}, {theirs / ours:.1f} times as much.")
    print(f"  A process with {arguments.pages:,} pages grew by {grew:.0f} bytes a page while it ran.")
    print(f"\nAllowed: 60 s for 10,000,000 pages ({took / arguments.pages * 1e7:.1f} s here), 100 bytes a page.")


if __name__ == "__main__":
    main()
