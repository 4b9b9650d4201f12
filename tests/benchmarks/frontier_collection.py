"""Collections of pages in a steady state, as the benchmarks of the frontier need them, up to ten million pages."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from crawlsched.crawl_value import elapsed_at_value
from crawlsched.planner import Planner
from crawlsched.planner.values.plug_in_values import KnownRates
from crawlsched.planner.values.rules import RULES
from crawlsched.planner.values.signalled import Grid

__all__ = ["START", "Collection", "collection", "learned_rows", "pages_in_blocks"]

START = 1_000_000_000.0
BLOCK = 16_384
# What announcements are worth: four of five changes are announced, and two of three announcements are true.
RECALL, PRECISION = 0.8, 2 / 3
# More announcements than this between two crawls are left out.
_MOST_SIGNALS = 12
# From so many cycles of a page the mean of one is told, and from so many of each page where it stands.
_CYCLES_OF_THRESHOLD, _CYCLES = 64, 8

FloatArray = npt.NDArray[np.float64]


class Collection(NamedTuple):
    """Pages, and the truth about them.

    Attributes
    ----------
    planner : Planner
    change_rate, signal_rate : ndarray of float32, shape (n,)
        True rates, per second.
    """

    planner: Planner
    change_rate: npt.NDArray[np.float32]
    signal_rate: npt.NDArray[np.float32]

    def has_changed(self, page: int, now: float, rng: np.random.Generator) -> bool:
        """Draw whether a page has changed since it was crawled, as by the truth and its announcements it may have."""
        pages, rate, log_fresh = self.planner.pages, self.change_rate.item(page), 0.0
        if self.signal_rate[page] > 0:
            rate *= 1 - RECALL
            log_fresh = pages.n_signals.item(page) * math.log1p(-PRECISION)
        return bool(rng.random() < -math.expm1(log_fresh - rate * (now - pages.crawled_at.item(page))))


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
    max_crawl_interval: float | None = None,
) -> Collection:
    """Return `n` pages as they are in a steady state.

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
    max_crawl_interval : float, optional
        As for `Planner`.
    """
    rng = np.random.default_rng(seed)
    planner = Planner(bandwidth, crawl_value=crawl_value, max_crawl_interval=max_crawl_interval)
    planner.reserve(n)
    # What a plan would have found of announcements.
    weight, rate = -np.log1p(-PRECISION), RECALL / PRECISION * bandwidth / n
    known = replace(planner.in_force.parameters, signal_weights=np.array([weight]), signal_rates=np.array([rate]))
    planner.in_force.begin(known)
    planner.in_force.adopt_below(None)
    if crawl_value != "posterior":
        planner.known.known_rates = KnownRates(RULES[crawl_value])
        planner.known.known_rates.set(np.array([n - 1]), *np.full((3, 1), 1.0))  # room for all at once
    threshold = None
    truth = np.empty((2, n), np.float32)
    for pages in pages_in_blocks(n):
        drawn = _Drawn(rng, planner.posterior.rates, bandwidth / n, pages.size, signalled, crawl_value == "posterior")
        if threshold is None:
            threshold = drawn.threshold(bandwidth * pages.size / n)
        elapsed, n_signals = drawn.steady_state(threshold)
        known_for = 20 * n / bandwidth
        before = np.where(drawn.announced, rng.poisson(drawn.signal_rate * known_for), 0)
        columns = {
            "page": pages,
            "state": np.full(pages.size, 2, np.uint8),
            "importance": drawn.importance,
            "host": hosts[pages] if isinstance(hosts, np.ndarray) else rng.integers(0, hosts, pages.size),
            "crawled_at": START - elapsed,
            "first_seen": np.full(pages.size, START - known_for),
            "n_crawls": np.full(pages.size, 4),
            "n_signals": n_signals,
            "n_signals_total": before + n_signals,
            "signalled_since": np.where(drawn.announced, START - known_for, np.nan),
            "source": np.where(drawn.announced, 0, -1),
        }
        planner.pages.set_rows(pages, columns)
        if crawl_value != "posterior":
            planner.set_rates(pages, drawn.change_rate, drawn.recall, drawn.false_signal_rate)
        planner.load(columns, drawn.steps, START)
        if crawl_value == "posterior":
            _crawl_those_above(planner, pages, threshold, rng)
        truth[:, pages] = drawn.change_rate, drawn.signal_rate
    planner.catch_up(START)
    if crawl_value == "posterior":
        # A frontier that has never seen those above the threshold, to which a steady state does not come.
        planner.known.frontier_or_none = None
        planner.catch_up(START)
        for pages in pages_in_blocks(n):
            planner.frontier.file(pages, START, falling=True)
    return Collection(planner, *truth)


def _crawl_those_above(
    planner: Planner, pages: npt.NDArray[np.intp], threshold: float, rng: np.random.Generator
) -> None:
    """Let pages that are worth more than the threshold have been crawled later, as by what is known of them they were.

    What the planner believes of announcements is not the truth.
    """
    columns, values = planner.pages, planner.frontier.values
    above = pages
    for _ in range(_MOST_SIGNALS):
        above = above[values.many(above).at(START) > threshold]
        if not above.size:
            break
        columns.crawled_at[above] += rng.random(above.size) * (START - columns.crawled_at[above])
        columns.n_signals_total[above] -= columns.n_signals[above]
        columns.n_signals[above] = 0


class _Drawn:
    """Pages drawn at random, and where they stand when each is crawled as soon as its value reaches a threshold."""

    def __init__(
        self, rng: np.random.Generator, rates: FloatArray, mean: float, n: int, signalled: float, learned: bool
    ) -> None:
        self._rng = rng
        self.change_rate = mean * np.exp(rng.normal(0.0, 1.7, n))
        self.importance = 1.0 + rng.pareto(1.5, n)
        self.announced = rng.random(n) < signalled
        self.recall = np.where(self.announced, RECALL, 0.0)
        self.signal_rate = np.where(self.announced, self.change_rate * RECALL / PRECISION, 0.0)
        self.false_signal_rate = self.signal_rate * (1 - PRECISION)
        # Of announced pages visits teach how often they change without being announced.
        self.steps, weights = learned_rows(rates, (1 - self.recall) * self.change_rate)
        self._grid, self._weights = Grid(rates), weights if learned else None
        # What an announcement takes off the log-probability of freshness, in seconds of waiting for one.
        weight = np.where(self.announced, -np.log1p(-PRECISION), 0.0)
        self._jump = weight / ((1 - self.recall) * self.change_rate)
        self._longest = 20 / mean

    def _waits(self, threshold: float) -> FloatArray:
        """Return after how long each page's value reaches the threshold if nothing is announced."""
        wait = elapsed_at_value(threshold, self.change_rate, self.recall, self.false_signal_rate, self.importance)
        if self._weights is not None:
            wait = np.where(self.announced, wait, self._learned_waits(threshold / self.importance))
        return np.minimum(wait, self._longest)

    def _learned_waits(self, aims: FloatArray) -> FloatArray:
        """Return after how long what is known of each page, and nobody announces, is worth so much; by bisection."""
        low, high = np.zeros(aims.size, np.intp), np.full(aims.size, self._grid.elapsed.size)
        while (high - low > 1).any():
            middle = (low + high) >> 1
            reached = np.vecdot(self._grid.gain[middle], self._weights) >= aims
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        below = self._grid.elapsed[low]
        missing = np.maximum(aims - np.vecdot(self._grid.gain[low], self._weights), 0.0)
        with np.errstate(divide="ignore", over="ignore"):
            waits: FloatArray = np.sqrt(below**2 + 2.0 * missing / np.vecdot(self._grid.slope[low], self._weights))
        return waits

    def _cycles(self, rng: np.random.Generator, wait: FloatArray, n: int) -> tuple[FloatArray, FloatArray]:
        """Return how long `n` cycles of each announced page take, shape (n, pages), and when announcements come."""
        came = np.cumsum(rng.exponential(1.0, (_MOST_SIGNALS, n, wait.size)), axis=0)
        came /= self.signal_rate[self.announced]
        # With i announcements it is crawled when it has waited for all but what these are worth, if not before.
        jumps = self._jump[self.announced] * np.arange(1, _MOST_SIGNALS + 1)[:, np.newaxis]
        ends = np.maximum(came, (wait - jumps)[:, np.newaxis])
        return np.minimum(ends.min(axis=0), wait), came

    def threshold(self, bandwidth: float) -> float:
        """Return the threshold at which the pages want just the bandwidth."""
        low, high = 1e-12, 1e18
        for _ in range(50):
            middle = (low * high) ** 0.5
            waits = self._waits(middle)
            # By the same cycles each time, or there would be no one threshold.
            cycles, _ = self._cycles(np.random.default_rng(0), waits[self.announced], _CYCLES_OF_THRESHOLD)
            waits[self.announced] = cycles.mean(axis=0)
            wanted = (1 / np.maximum(waits, 1e-9)).sum()
            low, high = (middle, high) if wanted > bandwidth else (low, middle)
        return high

    def steady_state(self, threshold: float) -> tuple[FloatArray, npt.NDArray[np.int64]]:
        """Return how long ago each page was crawled, and how often it has been announced since."""
        wait = self._waits(threshold)
        elapsed, n_signals = self._rng.random(wait.size) * wait, np.zeros(wait.size, np.int64)
        # At some moment of one of several cycles, the longer of which are the likelier.
        cycles, came = self._cycles(self._rng, wait[self.announced], _CYCLES)
        ends, pages = np.cumsum(cycles, axis=0), np.arange(cycles.shape[1])
        moment = self._rng.random(pages.size) * ends[-1]
        which = np.count_nonzero(ends <= moment, axis=0).clip(max=_CYCLES - 1)
        since = moment - (ends[which, pages] - cycles[which, pages])
        elapsed[self.announced] = since
        n_signals[self.announced] = np.count_nonzero(came[:, which, pages] <= since, axis=0)
        return elapsed, n_signals


def learned_rows(rates: FloatArray, true: FloatArray) -> tuple[npt.NDArray[np.uint16], FloatArray]:
    """Return what a few visits have taught: compact log-likelihoods around the true rates, and their probabilities."""
    distance = np.abs(np.log(rates)[np.newaxis] - np.log(true)[:, np.newaxis])
    distance -= distance.min(axis=1, keepdims=True)
    steps = np.minimum(distance * 3000, 65535).astype(np.uint16)
    weights = np.exp(steps / -2048)
    weights /= weights.sum(axis=1, keepdims=True)
    return steps, weights
