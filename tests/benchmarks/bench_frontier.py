"""The frontier beside what people use instead, and by itself up to ten million pages.

    python -m tests.benchmarks.bench_frontier [--pages 10000 100000 1000000 10000000] [--picks 10000] [--only TABLE]
        [--crawl-values posterior]

Every way of choosing serves the same pages: each slot it gives out one page, which is crawled at once and comes back.
Worth is the mean posterior crawl value of the pages given out relative to the best there was (brute force over all
pages at some of the slots), exact at how many of these slots the very page that brute force finds was given out;
freshness is what a run comes to that begins in the steady state of the way itself and
takes three times as many slots as there are pages, at most a million, with true rates and what visits find drawn
from them, since a fast wrong pick is worth nothing. Times are CPU time of a pick
and the page's return, in the tables by pages, by hosts and of what happens meanwhile less what it takes to read the
clock; a machine that does other things at the same time makes both slower, and the worst most of all.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import itertools
import math
import multiprocessing
import resource
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple, Protocol

import numpy as np

from crawlsched.collection.heap import give_memory_back
from crawlsched.crawl_value import prepare_compiled, use_compiled
from crawlsched.pages.page_index import PageIndex
from crawlsched.planner import Planner, plan
from tests.benchmarks.frontier_collection import START, Collection, collection, pages_in_blocks

BANDWIDTH = 500.0
BRUTE_FORCE_SAMPLES = 12
FRESHNESS_SLOTS = 1_000_000
# Before memory is measured again.
VISITS = 3_000
# Of more pages what numpy alone picks is not run again: it picks what compiled code picks.
TWICE_AT_MOST = 100_000
TABLES = ("beside", "scale", "hosts", "slices", "memory")
# By crawl value the share of the pages with announcements, in the table by number of pages.
SCALED = {"greedy": 0.0, "greedy_ncis": 1 / 3, "posterior": 1 / 3}


class Way(Protocol):
    """A way of choosing the next page."""

    def pick(self, now: float) -> int: ...

    def crawled(self, page: int, now: float, changed: bool) -> None: ...


def resident() -> int:
    """Return the bytes that this process has in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class Ours:
    """The planner as it crawls, with its posterior updated at each visit."""

    def __init__(self, given: Collection) -> None:
        self.planner = given.planner

    def pick(self, now: float) -> int:
        pick = self.planner.pick(now, lambda host, now: now)
        assert pick is not None
        return pick.page

    def crawled(self, page: int, now: float, changed: bool) -> None:
        self.planner.crawled(page, now, changed)


class _Beside:
    """A way that keeps its own order; the planner's columns are only what pages are worth by."""

    def __init__(self, given: Collection) -> None:
        self.planner = planner = given.planner
        # The square-root rule: intervals in proportion to 1 / sqrt(rate * importance), scaled to the bandwidth.
        wanted = np.sqrt(given.change_rate * planner.pages.importance[: planner.pages.n]).astype(np.float64)
        self.interval = wanted.sum() / wanted / planner.bandwidth
        # They, too, begin in their own steady state.
        self.due = START + np.random.default_rng(2).random(wanted.size) * self.interval

    def settle(self) -> None:
        """Let pages that were not crawled yet have been crawled when this way would have done so last."""
        self._settle(self.due - self.interval)

    def _settle(self, crawled_at: np.ndarray) -> None:
        column = self.planner.pages.crawled_at[: crawled_at.size]
        np.copyto(column, crawled_at, where=column < START)

    def crawled(self, page: int, now: float, changed: bool) -> None:
        self.planner.pages.crawled_at[page] = now


class BruteForce(_Beside):
    """numpy's argmax over all pages at each slot."""

    def __init__(self, given: Collection) -> None:
        self.planner = given.planner

    def pick(self, now: float) -> int:
        return best(self.planner, now)[0]


class HeapByTime(_Beside):
    """A heap of (next crawl time, page)."""

    def __init__(self, given: Collection) -> None:
        super().__init__(given)
        self.heap = list(zip(self.due.tolist(), range(self.due.size), strict=True))
        heapq.heapify(self.heap)

    def pick(self, now: float) -> int:
        return heapq.heappop(self.heap)[1]

    def crawled(self, page: int, now: float, changed: bool) -> None:
        super().crawled(page, now, changed)
        heapq.heappush(self.heap, (now + self.interval.item(page), page))


class SqlByTime(_Beside):
    """SELECT ... ORDER BY due LIMIT 1 on an indexed column in memory."""

    def __init__(self, given: Collection) -> None:
        super().__init__(given)
        self.database = sqlite3.connect(":memory:")
        self.database.execute("CREATE TABLE pages (page INTEGER PRIMARY KEY, due REAL NOT NULL)")
        self.database.executemany("INSERT INTO pages VALUES (?, ?)", enumerate(self.due.tolist()))
        self.database.execute("CREATE INDEX due ON pages (due)")

    def pick(self, now: float) -> int:
        page: int = self.database.execute("SELECT page FROM pages ORDER BY due LIMIT 1").fetchone()[0]
        return page

    def crawled(self, page: int, now: float, changed: bool) -> None:
        super().crawled(page, now, changed)
        self.database.execute("UPDATE pages SET due = ? WHERE page = ?", (now + self.interval.item(page), page))


class ScrapyQueue(_Beside):
    """Scrapy's priority queue in memory: the floor, for it knows neither time nor worth; pages come back at its end."""

    def __init__(self, given: Collection) -> None:
        from scrapy import Request
        from scrapy.pqueues import ScrapyPriorityQueue
        from scrapy.squeues import FifoMemoryQueue
        from scrapy.utils.test import get_crawler

        self.planner = given.planner
        self.queue = ScrapyPriorityQueue(get_crawler(), FifoMemoryQueue, "")
        for page in range(self.planner.pages.n):
            self.queue.push(Request(f"http://127.0.0.1/{page}", meta={"page": page}, dont_filter=True))

    def settle(self) -> None:
        n = self.planner.pages.n
        self._settle(START - np.arange(n, 0, -1) / self.planner.bandwidth)

    def pick(self, now: float) -> int:
        self.request = self.queue.pop()
        page: int = self.request.meta["page"]
        return page

    def crawled(self, page: int, now: float, changed: bool) -> None:
        super().crawled(page, now, changed)
        self.queue.push(self.request)


COMPILED = ", compiled"
WAYS: dict[str, tuple[Callable[[Collection], Any], str]] = {
    f"crawlsched, posterior{COMPILED}": (Ours, "posterior"),
    "crawlsched, posterior": (Ours, "posterior"),
    f"crawlsched, greedy{COMPILED}": (Ours, "greedy"),
    "crawlsched, greedy": (Ours, "greedy"),
    "brute-force numpy": (BruteForce, "posterior"),
    "heap by next crawl time": (HeapByTime, "posterior"),
    "SQL ORDER BY LIMIT 1": (SqlByTime, "posterior"),
    "Scrapy's queue": (ScrapyQueue, "posterior"),
}


def alone(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a process of its own, so that what others left in memory is not counted."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def best(planner: Planner, now: float) -> tuple[int, float]:
    """Return the best page of all and what it is worth, by looking at every one."""
    found = [(-np.inf, -1)]
    for pages in pages_in_blocks(planner.pages.n):
        values = planner.frontier.values.many(pages).at(now)
        row = int(values.argmax())
        found.append((values.item(row), -int(pages[row])))
    value, page = max(found)
    return -page, value


# -- beside other ways


class Row(NamedTuple):
    """One line of the table."""

    picks_per_second: float
    median: float
    worst: float
    bytes_a_page: float
    worth: float
    exact: str
    freshness: float


def beside(n: int, name: str, n_picks: int, n_warm: int) -> Row:
    """Measure one way with `n` pages."""
    make, crawl_value = WAYS[name]
    prepare_compiled()  # ten million pages are made sooner by compiled code, if there is any
    before = resident()
    given = collection(n, BANDWIDTH, crawl_value)
    use_compiled(name.endswith(COMPILED))
    way: Way = make(given)
    gc.collect()
    memory = (resident() - before) / n - 8  # the truth is no part of what is measured
    if name == "brute-force numpy":
        n_picks, n_warm = max(5, min(n_picks, 20_000_000 // n)), 0
    took, worth, n_exact = np.empty(n_picks), [], 0
    now, rng = START, np.random.default_rng(4)
    looks = set(range(n_picks - 1, 0, -max(1, n_picks // BRUTE_FORCE_SAMPLES)))
    for slot in range(-n_warm, n_picks):
        now += 1 / BANDWIDTH
        wanted = best(given.planner, now) if slot in looks else None
        begin = time.thread_time()
        page = way.pick(now)
        picked = time.thread_time()
        if wanted is not None:
            worth.append(given.planner.frontier.values.one(page).at(now) / wanted[1])
            n_exact += page == wanted[0]
        changed = given.has_changed(page, now, rng)
        again = time.thread_time()
        way.crawled(page, now, changed)
        if slot >= 0:
            took[slot] = picked - begin + time.thread_time() - again
    speed = n_picks / took.sum(), float(np.median(took)), float(took.max())
    fresh = np.nan if is_as_ours(n, name) else freshness(given, way, now)
    return Row(*speed, memory, float(np.mean(worth)), f"{n_exact} of {len(worth)}", fresh)


def is_as_ours(n: int, name: str) -> bool:
    """Whether a way picks the very pages that another one of the table picks."""
    slow = name.startswith("crawlsched") and not name.endswith(COMPILED) and n > TWICE_AT_MOST
    return slow or name == "brute-force numpy"


def freshness(given: Collection, way: Way, now: float) -> float:
    """Return the importance-weighted share of time in which pages are fresh, in the last third of a run."""
    if isinstance(way, _Beside):
        way.settle()
    rng = np.random.default_rng(4)
    pages, rate = given.planner.pages, given.change_rate
    n = pages.n
    seen, slots = [], min(3 * n, FRESHNESS_SLOTS)
    for slot in range(slots):
        now += 1 / BANDWIDTH
        page = way.pick(now)
        waited = now - pages.crawled_at.item(page)
        way.crawled(page, now, rng.random() < -math.expm1(-rate.item(page) * waited))
        if 3 * slot >= 2 * slots and slot % (slots // 150) == 0:
            fresh = np.exp(-rate * (now - pages.crawled_at[:n]))
            seen.append(np.average(fresh, weights=pages.importance[:n]))
    return float(np.mean(seen))


def print_beside(options: argparse.Namespace) -> None:
    """Print ours beside the others."""
    names = "way", "picks/s", "median us", "worst ms", "bytes/page", "worth", "exact", "freshness", "to ours"
    print(f"\n{'pages':>10}  {names[0]:<32}" + "".join(f"{name:>11}" for name in names[1:]))
    for n in options.pages:
        ours = None
        for name in WAYS:
            row = alone(beside, n, name, options.picks, options.warm)
            ours = ours or row.picks_per_second
            digits = 0 if row.picks_per_second >= 10 else 2
            times = f"{row.median * 1e6:>11.1f}{row.worst * 1e3:>11.2f}"
            fresh = "as ours" if np.isnan(row.freshness) else f"{row.freshness:.3f}"
            rest = f"{row.bytes_a_page:>11.0f}{row.worth:>11.2f}{row.exact:>11}{fresh:>11}"
            speed = f"{row.picks_per_second:>11,.{digits}f}{times}{rest}{row.picks_per_second / ours:>11.3f}"
            print(f"{n:>10,}  {name:<32}{speed}", flush=True)


# -- by itself


class Slots:
    """Slot after slot of one planner, each timed, with the announcements that come meanwhile.

    Parameters
    ----------
    given : Collection
    delay : float, default 0
        A host may be asked again so many seconds after a visit.
    """

    def __init__(self, given: Collection, delay: float = 0.0) -> None:
        self.given, self.planner, self.now, self.delay = given, given.planner, START, delay
        self.busy: dict[int, float] = {}
        self._rng, self._changes = np.random.default_rng(3), np.random.default_rng(4)
        self._announcing = np.cumsum(given.signal_rate, dtype=np.float64)
        # The least that two readings of the clock are apart: each time that is taken contains as much.
        clock = [time.thread_time() for _ in range(10_000)]
        self._clock = min(after - before for before, after in itertools.pairwise(clock))

    def run(self, n: int, alone: bool = False) -> tuple[np.ndarray, float]:
        """Return the CPU seconds of each slot, and those of taking announcements a slot.

        `alone`: of the frontier only, without what the planner learns from a visit.
        """
        took, announcing, host = np.zeros(n), 0.0, self.planner.pages.host
        for slot in range(n):
            self.now += 1 / BANDWIDTH
            if slot % 32 == 0 and self._announcing[-1] > 0:
                came = self._rng.poisson(self._announcing[-1] * 32 / BANDWIDTH)
                pages = np.searchsorted(self._announcing, self._rng.random(came) * self._announcing[-1])
                begin = time.thread_time()
                self.planner.signalled(pages, 0, self.now)
                announcing += time.thread_time() - begin
            begin = time.thread_time()
            pick = (self.planner.frontier if alone else self.planner).pick(self.now, self._free_at)
            took[slot] = time.thread_time() - begin - self._clock
            if pick is not None:
                self.busy[host.item(pick.page)] = self.now + self.delay
                took[slot] += self._visited(pick.page, alone)
        return took, announcing / n

    def _free_at(self, host: int, now: float) -> float:
        return self.busy.get(host, 0.0)

    def _visited(self, page: int, alone: bool) -> float:
        if alone:
            self.planner.pages.crawled_at[page], self.planner.pages.n_signals[page] = self.now, 0
        # Drawn from the truth: by visits that contradict it a planner would learn of changes that come together, and go
        # on filing all pages again.
        changed = not alone and self.given.has_changed(page, self.now, self._changes)
        begin = time.thread_time()
        if alone:
            self.planner.frontier.file_one(page, self.now)
        else:
            self.planner.crawled(page, self.now, changed)
        return time.thread_time() - begin - self._clock


def told(took: np.ndarray) -> str:
    """Return what slots took, as columns of a table."""
    middle, most = np.quantile(took, [0.5, 0.999]) * 1e6
    return f"{took.size / took.sum():>11,.0f}{middle:>11.1f}{most:>11.0f}{took.max() * 1e3:>11.2f}"


COLUMNS = "".join(f"{name:>11}" for name in ("picks/s", "median us", "99.9 % us", "worst ms"))


def scale(n: int, crawl_value: str, signalled: float, picks: int, warm: int) -> tuple[float, list[Any]]:
    """Return bytes a page, and what `Slots.run` returned with numpy alone and compiled."""
    before = resident()
    given = collection(n, BANDWIDTH, crawl_value, signalled)
    gc.collect()
    memory, slots, found = (resident() - before) / n - 8, Slots(given), []
    settle(given)
    for compiled in (False, True):
        use_compiled(compiled)
        slots.run(warm, alone=True)
        found.append(slots.run(picks, alone=True))
    return memory, found


def settle(given: Collection) -> None:
    """Let the frontier be as it is long after the pages were loaded."""
    # Loaded pages are filed for a cutoff that comes down; in a steady state each was filed after its visit.
    for pages in pages_in_blocks(given.planner.pages.n):
        given.planner.frontier.file(pages, START)
    gc.collect()
    gc.freeze()  # as the crawl does after loading its pages


def print_scale(options: argparse.Namespace) -> None:
    """Print what a slot of the frontier alone costs by number of pages, with numpy alone and compiled."""
    print(f"\n{'pages':>10}  {'crawl value':<40}{COLUMNS}{'bytes/page':>11}{'to first':>11}  announcements")
    first: dict[tuple[str, str], float] = {}
    for n in options.pages:
        for crawl_value, signalled in SCALED.items():
            if crawl_value not in options.crawl_values:
                continue
            memory, found = alone(scale, n, crawl_value, signalled, options.picks, options.warm)
            name = crawl_value + (", signals on a third" if signalled else "")
            for kind, (took, announcing) in zip(("numpy", "numba"), found, strict=True):
                growth = took.mean() / first.setdefault((crawl_value, kind), took.mean())
                row = f"{n:>10,}  {name:<34}{kind:<6}{told(took)}{memory:>11.0f}{growth:>11.2f}"
                print(f"{row}  {announcing * 1e6:.0f} us a slot", flush=True)


def print_hosts(options: argparse.Namespace) -> None:
    """Print what a slot of the frontier alone costs by how the pages are spread over hosts."""
    print(f"\n{'pages':>10}  {'hosts':<40}{COLUMNS}{'resting':>11}")
    rng = np.random.default_rng(7)
    for n in options.pages:
        spread: dict[str, tuple[np.ndarray | int, float]] = {
            "one": (1, 0.0),
            "200": (200, 0.0),
            f"{min(n, 1_000_000):,}, each rests 2 s": (rng.integers(0, min(n, 1_000_000), n), 2.0),
            "one of 10,001 has half of all, rests": (
                np.where(rng.random(n) < 0.5, 0, rng.integers(1, 10_001, n)),
                0.05,
            ),
            "4,000, a thousand rest at once": (rng.integers(0, 4_000, n), 2.0),
        }
        for name, (hosts, delay) in spread.items():
            found = alone(by_hosts, n, hosts, delay, options.picks, options.warm)
            for kind, (took, resting) in zip(("numpy", "numba"), found, strict=True):
                print(f"{n:>10,}  {name:<38}{kind:<6}{told(took)}{resting:>11}", flush=True)


def by_hosts(n: int, hosts: np.ndarray | int, delay: float, picks: int, warm: int) -> list[tuple[np.ndarray, int]]:
    """Return what slots took, and how many hosts rested then, with numpy alone and compiled."""
    prepare_compiled()  # ten million pages are made sooner by compiled code, if there is any
    given, found = collection(n, BANDWIDTH, hosts=hosts), []
    slots = Slots(given, delay)
    settle(given)
    for compiled in (False, True):
        use_compiled(compiled)
        slots.run(warm, alone=True)
        took, _ = slots.run(picks, alone=True)
        found.append((took, sum(until > slots.now for until in slots.busy.values())))
    return found


def print_slices(options: argparse.Namespace) -> None:
    """Print what slots cost, learning included, while something happens to very many pages at once."""
    print(f"\n{'pages':>10}  {'meanwhile':<40}{COLUMNS}{'call ms':>11}")
    for n in options.pages:
        for kind in ("numpy", "numba"):
            for name, took, call in alone(meanwhile, n, kind == "numba", options.picks, options.warm):
                print(f"{n:>10,}  {name:<34}{kind:<6}{told(took)}{call * 1e3:>11.1f}", flush=True)


def meanwhile(n: int, compiled: bool, picks: int, warm: int) -> list[tuple[str, np.ndarray, float]]:
    """Return what happened, what slots took then, and the CPU seconds of the call that began it."""
    prepare_compiled()  # ten million pages are made sooner by compiled code, if there is any
    given, found = collection(n, BANDWIDTH, signalled=1 / 3), []
    slots, planner = Slots(given), given.planner
    announced = np.flatnonzero(given.signal_rate > 0)[:1_000_000]
    settle(given)
    use_compiled(compiled)
    slots.run(warm)
    made = plan(planner.snapshot(), BANDWIDTH)
    happenings: dict[str, Callable[[], Any]] = {
        "nothing": lambda: None,
        f"{announced.size:,} announcements": lambda: planner.signalled(announced, 0, slots.now),
        "a snapshot": planner.snapshot,
        "a new plan": lambda: planner.adopt(made, slots.now),
        "ten times the bandwidth": lambda: planner.set_bandwidth(10 * BANDWIDTH, slots.now),
    }
    for name, happen in happenings.items():
        begin = time.thread_time()
        happen()
        call = time.thread_time() - begin
        took, _ = slots.run(picks)
        found.append((name, took, call))
    return found


def memory(n: int, signalled: float, max_crawl_interval: float | None) -> dict[str, float]:
    """Return what the parts of a collection in memory take, bytes a page, and by how much the process grew.

    That is once when all pages are there, again when visits to some have been learned from, which makes room for
    all columns, and at last when each column has been written to for each page; all told with Python, numba and numpy.
    """
    prepare_compiled()
    before = resident()
    given = collection(n, BANDWIDTH, signalled=signalled, max_crawl_interval=max_crawl_interval)
    planner, index = given.planner, PageIndex()
    keys = np.random.default_rng(5).integers(0, 2**63, n, dtype=np.uint64)
    index.load([(keys, np.arange(n, dtype=np.int32))], n)
    del keys
    gc.collect()
    give_memory_back()
    grown, frontier = (resident() - before) / n - 8, planner.frontier  # the truth is no part of what is measured
    slots = Slots(given)
    slots.run(VISITS)
    del slots
    give_memory_back()
    visited = (resident() - before) / n - 8
    planner.posterior.codes(n)[...] = planner.posterior.codes(n).copy()  # what was never written to takes no memory
    for name in planner.pages.names:
        getattr(planner.pages, name)[:n] = getattr(planner.pages, name)[:n].copy()
    give_memory_back()
    written = (resident() - before) / n - 8
    rare = planner.pages.rare_facts
    calendars = [frontier._standing.calendar] + [frontier._deadlines.calendar] * (max_crawl_interval is not None)
    beds = [ladder._beds for ladder in frontier._ladders]
    return {
        "columns": planner.pages.bytes_per_row,
        "rare": sum(column.nbytes for column in rare.columns.values()) / n,
        "posterior": sum(column.nbytes for column in planner.posterior._columns.values()) / n,
        "index": index.nbytes / n,
        "place": frontier._standing.place.itemsize,
        "beds": 4 * sum(bed.entries for bed in beds) / n,
        "alarms": sum(4 + 4 * calendar._buckets.entries / n for calendar in calendars),
        "own": planner.own_precision.roots.nbytes / n,
        "process": grown,
        "visited": visited,
        "written": written,
        "all told": resident() / n - 8,
        "GB for 1e8": (written * 1e8 + before) / 1e9,
    }


def print_memory(options: argparse.Namespace) -> None:
    """Print what a page takes in the process, all told and by its parts."""
    kinds = {
        "no signals": (0.0, None),
        "signals on a third": (1 / 3, None),
        "the same, deadlines": (1 / 3, 1e9),
        "all of them overdue": (0.0, 1.0),
    }
    for number, n in enumerate(options.pages):
        for name, (signalled, longest) in kinds.items():
            parts = alone(memory, n, signalled, longest)
            if not number and name == "no signals":
                print(f"\n{'pages':>10}  {'bytes a page':<22}" + "".join(f"{part:>11}" for part in parts))
            print(f"{n:>10,}  {name:<22}" + "".join(f"{size:>11.2f}" for size in parts.values()), flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="+", default=[10_000, 100_000, 1_000_000, 10_000_000])
    parser.add_argument("--picks", type=int, default=10_000)
    parser.add_argument("--warm", type=int, default=10_000, help="picks before the measurement begins")
    parser.add_argument("--crawl-values", choices=SCALED, nargs="+", default=SCALED, help="of the table by pages")
    parser.add_argument("--only", choices=TABLES, nargs="+", default=TABLES)
    options = parser.parse_args()
    tables = print_beside, print_scale, print_hosts, print_slices, print_memory
    for name in options.only:
        dict(zip(TABLES, tables, strict=True))[name](options)


if __name__ == "__main__":
    main()
