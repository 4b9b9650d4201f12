"""The frontier beside what people use instead: picks per second, worst pick, bytes a page, worth of the picks.

    python tests/benchmarks/bench_frontier.py [--pages 10000 100000 1000000] [--picks 3000]

Every way of choosing serves the same pages: each slot it gives out one page, which is crawled at once and comes back.
Worth is the mean posterior crawl value of the pages given out relative to the best there was (brute force over all
pages at some of the slots), since a fast wrong pick is worth nothing. Times are of a pick and the page's return.
"""

from __future__ import annotations

import argparse
import heapq
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from crawlsched.planner import Planner
from crawlsched.planner.posterior_value import Grid, GrowingValues

START = 1_000_000_000.0
BLOCK = 8192
BRUTE_FORCE_SAMPLES = 12
SCRAPY_AT_MOST = 100_000


class Way(Protocol):
    """A way of choosing the next page."""

    def pick(self, now: float) -> int: ...

    def crawled(self, page: int, now: float) -> None: ...


class Row(NamedTuple):
    """One line of the table."""

    pages: int
    way: str
    picks_per_second: float
    median: float
    worst: float
    bytes_a_page: float
    worth: float


def resident() -> int:
    """Return the bytes that this process has in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def collection(n: int, bandwidth: float, crawl_value: str = "posterior") -> Planner:
    """Make pages whose rates spread over three decades, of very unequal importance, as they are in a steady state.

    Each page was last crawled some part of the time ago in which its crawl value comes up to the threshold.
    """
    rng = np.random.default_rng(1)
    planner = Planner(bandwidth, crawl_value=crawl_value)
    planner.reserve(n)
    grid = Grid(planner.posterior.rates)
    threshold = None
    for begin in range(0, n, BLOCK):
        pages = np.arange(begin, min(begin + BLOCK, n))
        true = bandwidth / n * np.exp(rng.normal(0.0, 1.7, pages.size))
        distance = np.abs(np.log(grid.rates)[np.newaxis] - np.log(true)[:, np.newaxis])
        distance -= distance.min(axis=1, keepdims=True)
        steps = np.minimum(distance * 3000, 65535).astype(np.uint16)
        weights = np.exp(steps / -2048)
        weights /= weights.sum(axis=1, keepdims=True)
        importance = 1.0 + rng.pareto(1.5, pages.size)
        values = GrowingValues(grid, weights, np.zeros(pages.size), importance)
        if threshold is None:
            threshold = threshold_of(values, bandwidth * pages.size / n, pages.size)
        interval = crossing_times(values, threshold, pages.size)
        crawled_at = START - rng.random(pages.size) * np.minimum(interval, 20 * n / bandwidth)
        columns = {
            "page": pages,
            "state": np.full(pages.size, 2, np.uint8),
            "importance": importance,
            "host": rng.integers(0, 200, pages.size),
            "crawled_at": crawled_at,
            "first_seen": crawled_at,
            "n_crawls": np.full(pages.size, 4),
        }
        planner.load(columns, steps, START)
    return planner


def crossing_times(values: GrowingValues, threshold: float, n: int) -> np.ndarray:
    """Return how long each page takes to come up to the threshold."""
    return values.crossings(np.full(n, threshold), 0.0, np.ones(n, bool))


def threshold_of(values: GrowingValues, bandwidth: float, n: int) -> float:
    """Return the threshold at which the pages want just the bandwidth."""
    low, high = 1e-12, 1e18
    for _ in range(60):
        middle = (low * high) ** 0.5
        wanted = (1 / np.maximum(crossing_times(values, middle, n), 1e-9)).sum()
        low, high = (middle, high) if wanted > bandwidth else (low, middle)
    return high


class Ours:
    """The planner as it crawls, with its posterior updated at each visit."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner

    def pick(self, now: float) -> int:
        pick = self.planner.pick(now, lambda host, now: now)
        assert pick is not None
        return pick.page

    def crawled(self, page: int, now: float) -> None:
        self.planner.crawled(page, now, changed=page % 2 == 0)


class _Beside:
    """A way that keeps its own order; the planner's columns are only what pages are worth by."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        weights = (self.planner.values.weights(part) for part in _blocks(planner.pages.n))
        rate = np.concatenate([(w * planner.posterior.rates).sum(axis=1) for w in weights])
        # The square-root rule: intervals in proportion to 1 / sqrt(rate * importance), scaled to the bandwidth.
        wanted = np.sqrt(rate * planner.pages.importance[: planner.pages.n])
        self.interval = wanted.sum() / wanted / planner.bandwidth
        self.due = planner.pages.crawled_at[: planner.pages.n] + self.interval

    def crawled(self, page: int, now: float) -> None:
        self.planner.pages.crawled_at[page] = now


class BruteForce(_Beside):
    """numpy's argmax over all pages at each slot."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner

    def pick(self, now: float) -> int:
        return best(self.planner, now)[0]


class HeapByTime(_Beside):
    """A heap of (next crawl time, page)."""

    def __init__(self, planner: Planner) -> None:
        super().__init__(planner)
        self.heap = list(zip(self.due.tolist(), range(self.due.size), strict=True))
        heapq.heapify(self.heap)

    def pick(self, now: float) -> int:
        return heapq.heappop(self.heap)[1]

    def crawled(self, page: int, now: float) -> None:
        super().crawled(page, now)
        heapq.heappush(self.heap, (now + self.interval.item(page), page))


class SqlByTime(_Beside):
    """SELECT ... ORDER BY due LIMIT 1 on an indexed column in memory."""

    def __init__(self, planner: Planner) -> None:
        super().__init__(planner)
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE TABLE pages (page INTEGER PRIMARY KEY, due REAL NOT NULL)")
        self.database.executemany("INSERT INTO pages VALUES (?, ?)", enumerate(self.due.tolist()))
        self.database.execute("CREATE INDEX due ON pages (due)")

    def pick(self, now: float) -> int:
        page: int = self.database.execute("SELECT page FROM pages ORDER BY due LIMIT 1").fetchone()[0]
        return page

    def crawled(self, page: int, now: float) -> None:
        super().crawled(page, now)
        self.database.execute("UPDATE pages SET due = ? WHERE page = ?", (now + self.interval.item(page), page))


class ScrapyQueue(_Beside):
    """Scrapy's priority queue in memory: the floor, for it knows neither time nor worth; pages come back at its end."""

    def __init__(self, planner: Planner) -> None:
        from scrapy import Request
        from scrapy.pqueues import ScrapyPriorityQueue
        from scrapy.squeues import FifoMemoryQueue
        from scrapy.utils.test import get_crawler

        self.planner = planner
        self.queue = ScrapyPriorityQueue(get_crawler(), FifoMemoryQueue, "")
        for page in range(planner.pages.n):
            self.queue.push(Request(f"http://127.0.0.1/{page}", meta={"page": page}, dont_filter=True))

    def pick(self, now: float) -> int:
        self.request = self.queue.pop()
        page: int = self.request.meta["page"]
        return page

    def crawled(self, page: int, now: float) -> None:
        super().crawled(page, now)
        self.queue.push(self.request)


WAYS: dict[str, tuple[Callable[[Planner], Any], str]] = {
    "crawlsched, posterior": (Ours, "posterior"),
    "crawlsched, greedy": (Ours, "greedy"),
    "brute-force numpy": (BruteForce, "posterior"),
    "heap by next crawl time": (HeapByTime, "posterior"),
    "SQL ORDER BY LIMIT 1": (SqlByTime, "posterior"),
    "Scrapy's queue": (ScrapyQueue, "posterior"),
}


def _blocks(n: int) -> Iterator[np.ndarray]:
    for begin in range(0, n, BLOCK):
        yield np.arange(begin, min(begin + BLOCK, n))


def best(planner: Planner, now: float) -> tuple[int, float]:
    """Return the best page of all and what it is worth, by looking at every one."""
    found = [(-np.inf, -1)]
    for pages in _blocks(planner.pages.n):
        values = planner.values.many(pages).at(now)
        row = int(values.argmax())
        found.append((values.item(row), -int(pages[row])))
    value, page = max(found)
    return -page, value


def run(n: int, name: str, n_picks: int, n_warm: int) -> Row:
    """Measure one way with `n` pages."""
    make, crawl_value = WAYS[name]
    bandwidth = 500.0
    before = resident()
    planner = collection(n, bandwidth, crawl_value)
    way = make(planner)
    memory = (resident() - before) / n
    if name == "brute-force numpy":
        n_picks, n_warm = max(5, min(n_picks, 20_000_000 // n)), 0
    took, worth = np.empty(n_picks), []
    now = START
    looks = set(range(n_picks - 1, 0, -max(1, n_picks // BRUTE_FORCE_SAMPLES)))
    for slot in range(-n_warm, n_picks):
        now += 1 / bandwidth
        wanted = best(planner, now)[1] if slot in looks else None
        begin = time.perf_counter()
        page = way.pick(now)
        picked = time.perf_counter()
        if wanted is not None:
            worth.append(planner.values.one(page).at(now) / wanted)
        again = time.perf_counter()
        way.crawled(page, now)
        if slot >= 0:
            took[slot] = picked - begin + time.perf_counter() - again
    return Row(n, name, n_picks / took.sum(), float(np.median(took)), float(took.max()), memory, float(np.mean(worth)))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--picks", type=int, default=3000)
    parser.add_argument("--warm", type=int, default=2000, help="picks before the measurement begins")
    options = parser.parse_args()
    names = "way", "picks/s", "median us", "worst ms", "bytes/page", "worth", "to ours"
    print(f"{'pages':>10}  {names[0]:<24}" + "".join(f"{name:>11}" for name in names[1:]))
    for n in options.pages:
        ours = None
        for name in WAYS:
            if name == "Scrapy's queue" and n > SCRAPY_AT_MOST:
                continue
            row = run(n, name, options.picks, options.warm)
            ours = ours or row.picks_per_second
            speed = f"{row.picks_per_second:>11,.0f}{row.median * 1e6:>11.1f}{row.worst * 1e3:>11.2f}"
            rest = f"{row.bytes_a_page:>11.0f}{row.worth:>11.2f}{row.picks_per_second / ours:>11.3f}"
            print(f"{row.pages:>10,}  {row.way:<24}{speed}{rest}", flush=True)


if __name__ == "__main__":
    main()
