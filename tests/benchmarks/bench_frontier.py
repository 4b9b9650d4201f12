"""What the frontier picks, beside the best page by brute force, and what a slot takes.

    python -m tests.benchmarks.bench_frontier [--pages 1000 10000 100000 1000000] [--new 0] [--slots 4000] [--rate 200]

Steady slots with no announcements and with a third of the pages announced; then the bandwidth tripled, halved, a plan
put in force, and a bandwidth that is never used up, each measured from a twentieth of a round on. Demanded: on average
0.99 of the best value, and 0.95 in 99 of 100 picks. The best value is that of all pages, or of 100,000 drawn at random
of more. CPU time.

With ``--new 1000000`` so many pages without a copy, of 100 hosts and their 10,000 directories, wait beside the known
ones: what a slot takes then, and how many go to either side.
"""

import argparse
import resource
from time import perf_counter, process_time

import numpy as np

from crawlsched.planner import plan
from tests.benchmarks.frontier_collection import START, Collection, collection

MOST_LOOKED_AT = 100_000
LOOKS = 100


def never_rests(host: int, now: float) -> float:
    """Let each host be asked at any time."""
    return now


class World:
    """A collection whose slots go by."""

    def __init__(self, given: Collection) -> None:
        self.given, self.planner = given, given.planner
        self.now, self.rng = START, np.random.default_rng(1)
        self.costs: list[float] = []
        with np.errstate(divide="ignore"):
            self.next_signal = START + self.rng.exponential(1.0 / given.signal_rate)

    def run(self, slots: int, look_every: int = 0) -> np.ndarray:
        """Let slots go by; return the value picked, by the best one, of each that was looked at."""
        ratios, planner, pages = [], self.planner, self.planner.pages
        for slot in range(slots):
            self.now += 1.0 / planner.bandwidth
            announced = np.flatnonzero(self.next_signal <= self.now) if slot % 8 == 0 else np.zeros(0, int)
            best = self.best() if look_every and slot % look_every == 0 else None
            began = process_time()
            if announced.size:
                planner.signalled(announced, 0, self.now)
            pick = planner.pick(self.now, never_rests)
            took = process_time() - began
            if best is not None:
                value = planner.crawl_values.value_at(np.array([pick.page]), self.now).item()
                ratios.append(min(value / best, 1.0))
            elapsed = self.now - pages.crawled_at.item(pick.page)
            changed = bool(self.rng.random() < -np.expm1(-self.given.change_rate.item(pick.page) * elapsed))
            began = process_time()
            planner.crawled(pick.page, self.now, changed)
            self.costs.append(took + process_time() - began)
            if announced.size:
                self.next_signal[announced] = self.now + self.rng.exponential(1.0 / self.given.signal_rate[announced])
        return np.array(ratios)

    def best(self) -> float:
        """Return what the best page is worth."""
        n = self.planner.pages.n
        pages = np.arange(n) if n <= MOST_LOOKED_AT else self.rng.integers(0, n, MOST_LOOKED_AT)
        return float(self.planner.crawl_values.value_at(pages, self.now).max())


def say(title: str, world: World, ratios: np.ndarray) -> None:
    """Print a row."""
    costs = 1e6 * np.array(world.costs)
    low = (ratios < 0.95).mean()
    print(
        f"{title:58}{ratios.mean():9.4f}{low:9.2%}{costs.mean():9.0f}{np.quantile(costs, 0.999) / 1e3:9.1f}"
        f"{costs.max() / 1e3:9.1f}",
        flush=True,
    )
    world.costs.clear()


def measure(n: int, announced: float, slots: int, rate: float) -> None:
    """Print the rows of one collection."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = perf_counter()
    world = World(collection(n, rate, announced))
    taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / n
    print(f"{n:,} pages, {announced:.0%} announced: made in {perf_counter() - began:.1f} s, {taken:.0f} bytes a page")
    twentieth, every = max(n // 20, 1), max(slots // LOOKS, 1)
    world.run(min(twentieth, 4 * slots))
    world.costs.clear()
    say("  steady", world, world.run(slots, every))
    planner = world.planner
    for title, factor in (("three times the bandwidth", 3.0), ("half of that", 0.5)):
        planner.set_bandwidth(planner.bandwidth * factor, world.now)
        world.run(min(twentieth, 4 * slots))
        say(f"  {title}", world, world.run(slots, every))
    planner.adopt(plan(planner.snapshot(), planner.bandwidth), world.now)
    say("  while a plan is put in force", world, world.run(min(twentieth, slots), every))
    world.run(max(twentieth - slots, 0))
    say("  and then", world, world.run(slots, every))
    # The rate that a crawl without a limit asks for: pages grow no older, and the level falls with each pick.
    planner.set_bandwidth(planner.bandwidth * 100.0, world.now)
    world.run(min(twentieth, 4 * slots))
    say("  a hundred times the bandwidth", world, world.run(slots, every))


def beside_new(n: int, n_new: int, slots: int, rate: float) -> None:
    """Print what a slot takes while new pages wait beside known ones."""
    world = World(collection(n, rate))
    planner, rng = world.planner, np.random.default_rng(2)
    parts = rng.integers(0, 10_000, n_new)
    began = process_time()
    planner.add(1 + parts // 100, START, rng.pareto(1.5, n_new) + 0.1, part=parts)
    print(f"{n:,} known pages, {n_new:,} new ones put in at {1e6 * (process_time() - began) / n_new:.1f} us a page")
    world.given = world.given._replace(
        change_rate=np.append(world.given.change_rate, rng.choice(world.given.change_rate, n_new)),
        signal_rate=np.append(world.given.signal_rate, np.zeros(n_new)),
    )
    world.next_signal = np.append(world.next_signal, np.full(n_new, np.inf))
    known_before = planner.pages.crawled_at[:n].copy()
    world.run(slots)
    n_known = int((planner.pages.crawled_at[:n] != known_before).sum())
    costs = 1e6 * np.array(world.costs)
    print(
        f"  {n_known} of {slots} slots visited other known pages; a slot took {costs.mean():.0f} us, "
        f"{np.quantile(costs, 0.999) / 1e3:.1f} ms in one of 1,000, {costs.max() / 1e3:.1f} ms at worst"
    )


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--new", type=int, default=0)
    parser.add_argument("--announced", type=float, nargs="+", default=[0.0, 1 / 3])
    parser.add_argument("--slots", type=int, default=4000)
    parser.add_argument("--rate", type=float, default=200.0)
    options = parser.parse_args()
    if not options.new:
        print(f"{'':58}{'of best':>9}{'< 0.95':>9}{'us':>9}{'99.9 ms':>9}{'worst ms':>9}")
    for n in options.pages:
        if options.new:
            beside_new(n, options.new, options.slots, options.rate)
            continue
        for announced in options.announced:
            measure(n, announced, options.slots, options.rate)


if __name__ == "__main__":
    main()
