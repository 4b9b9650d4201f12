"""Collections of pages in a steady state, as the benchmarks of the frontier need them, up to ten million pages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from crawlsched.planner import Planner
from crawlsched.planner.point_value import KnownRates
from crawlsched.planner.posterior_value import Grid, GrowingValues

__all__ = ["START", "collection", "pages_in_blocks"]

START = 1_000_000_000.0
BLOCK = 16_384
# What announcements are worth: four of five changes are announced, and two of three announcements are true.
RECALL, PRECISION = 0.8, 2 / 3

FloatArray = npt.NDArray[np.float64]


def pages_in_blocks(n: int) -> list[npt.NDArray[np.intp]]:
    """Return the numbers of `n` pages, block by block."""
    return [np.arange(begin, min(begin + BLOCK, n)) for begin in range(0, n, BLOCK)]


def collection(
    n: int,
    bandwidth: float,
    crawl_value: str = "posterior",
    signalled: float = 0.0,
    hosts: npt.NDArray[np.intp] | int = 200,
    seed: int = 1,
) -> Planner:
    """Return a planner with `n` pages, as they are in a steady state.

    Change rates spread over three decades (lognormal) and importance is heavy-tailed (Pareto). Each page was last
    crawled some part of the time ago in which its crawl value comes up to the threshold.

    Parameters
    ----------
    n : int
    bandwidth : float
        Crawls per second.
    crawl_value : str
        As for `Planner`; by the papers' rules the rates are known.
    signalled : float
        Share of the pages whose changes are announced.
    hosts : int or ndarray of int, shape (n,)
        The host of each page, or how many hosts there are.
    seed : int
    """
    rng = np.random.default_rng(seed)
    planner = Planner(bandwidth, crawl_value=crawl_value)
    planner.reserve(n)
    if crawl_value != "posterior":
        planner.known_rates = KnownRates()
        planner.known_rates.set(np.array([n - 1]), *np.full((3, 1), 1.0))  # room for all at once
    grid = Grid(planner.posterior.rates)
    threshold = None
    for pages in pages_in_blocks(n):
        true = bandwidth / n * np.exp(rng.normal(0.0, 1.7, pages.size))
        steps, weights = _learned(planner.posterior.rates, true)
        importance = 1.0 + rng.pareto(1.5, pages.size)
        values = GrowingValues(grid, weights, np.zeros(pages.size), importance)
        if threshold is None:
            threshold = _threshold(values, bandwidth * pages.size / n, pages.size)
        interval = np.minimum(_intervals(values, threshold, pages.size), 20 * n / bandwidth)
        elapsed = rng.random(pages.size) * interval
        announced = rng.random(pages.size) < signalled
        signal_rate = true * RECALL / PRECISION
        n_signals = np.where(announced, rng.poisson(signal_rate * elapsed * 0.3), 0)
        # A page that was announced is worth more at once: it has not been left alone for long since then.
        elapsed = np.where(n_signals > 0, elapsed / (1 + n_signals), elapsed)
        known_for = 20 * n / bandwidth
        columns = {
            "page": pages,
            "state": np.full(pages.size, 2, np.uint8),
            "importance": importance,
            "host": hosts[pages] if isinstance(hosts, np.ndarray) else rng.integers(0, hosts, pages.size),
            "crawled_at": START - elapsed,
            "first_seen": np.full(pages.size, START - known_for),
            "n_crawls": np.full(pages.size, 4),
            "n_signals": n_signals,
            "n_signals_total": np.where(announced, rng.poisson(signal_rate * known_for) + n_signals, 0),
            "signalled_since": np.where(announced, START - known_for, np.nan),
            "source": np.where(announced, 0, -1),
        }
        planner.pages.set_rows(pages, columns)
        if crawl_value != "posterior":
            recall, false = np.where(announced, RECALL, 0.0), np.where(announced, signal_rate * (1 - PRECISION), 0.0)
            planner.set_rates(pages, true, recall, false)
        planner.load(columns, steps, START)
    return planner


def _learned(rates: FloatArray, true: FloatArray) -> tuple[npt.NDArray[np.uint16], FloatArray]:
    """Return what a few visits have taught: compact log-likelihoods around the true rates, and their probabilities."""
    distance = np.abs(np.log(rates)[np.newaxis] - np.log(true)[:, np.newaxis])
    distance -= distance.min(axis=1, keepdims=True)
    steps = np.minimum(distance * 3000, 65535).astype(np.uint16)
    weights = np.exp(steps / -2048)
    weights /= weights.sum(axis=1, keepdims=True)
    return steps, weights


def _intervals(values: GrowingValues, threshold: float, n: int) -> FloatArray:
    """Return how long each page takes to come up to the threshold."""
    return values.crossings(np.full(n, threshold), 0.0, np.ones(n, bool))


def _threshold(values: GrowingValues, bandwidth: float, n: int) -> float:
    """Return the threshold at which the pages want just the bandwidth."""
    low, high = 1e-12, 1e18
    for _ in range(60):
        middle = (low * high) ** 0.5
        wanted = (1 / np.maximum(_intervals(values, middle, n), 1e-9)).sum()
        low, high = (middle, high) if wanted > bandwidth else (low, middle)
    return high
