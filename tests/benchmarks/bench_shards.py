"""What sharing a collection costs: freshness, and the database's part of 1,000 requests a second.

*Freshness*: one process beside 4 and 16, which divide the bandwidth by demand curves, or equally. All
learn rates from their visits, a third of the pages is announced, and the ten largest hosts have no Crawl-delay, one of
160 slots, or one that leaves them half of their share (the largest may be asked at every 13th slot). Differences are
means over worlds, each beside one process in the same world, with their standard errors.
*Database*: four processes with one PostgreSQL visit pages that are only simulated.
*Faults*: eight real crawls for twenty minutes, of which one, or the server, fails every twenty seconds.
Run it with::

    python -m tests.benchmarks.bench_shards [--only freshness database faults]
"""

import argparse
import multiprocessing
import os
import time
from collections import deque
from itertools import product
from typing import Any

import numpy as np
from sqlalchemy import text

from crawlsched.addon.extensions import INTERPRETER
from crawlsched.content.reading import Body
from crawlsched.crawl.collection import FLUSH_INTERVAL
from crawlsched.crawl.visits import ResponseFacts
from crawlsched.planner import Plan, Planner, plan
from crawlsched.sharing import divided, read_curve, shard_of, written_curve
from crawlsched.simulation.history import Window, visiting
from crawlsched.simulation.measuring import freshness as measured
from crawlsched.store import schema
from crawlsched.store.database import Database
from crawlsched.store.members import SharedCollection
from tests.benchmarks.bench_learning import simulated
from tests.benchmarks.faults import faults
from tests.benchmarks.ratios import keep
from tests.databases import postgresql_of_its_own
from tests.integration.refresh.processes import asked, process

DAY = 86_400.0

# -- freshness: no database, no clock


class World:
    """Pages of hosts of very different sizes, their changes, and what announces them."""

    def __init__(
        self, seed: int, delay: float | None, n_pages: int = 4_000, n_hosts: int = 400, crawls_a_page: float = 6.0
    ) -> None:
        rng, days = np.random.default_rng(seed), 12.0
        # The first third, in which most first copies are made, is not measured.
        self.begin, self.end, self.n_pages = days * DAY / 3, days * DAY, n_pages
        self.bandwidth = n_pages * crawls_a_page / self.end
        sizes = 1.0 / np.arange(1, n_hosts + 1)
        self.host = np.sort(rng.choice(n_hosts, n_pages, p=sizes / sizes.sum()))
        rates = rng.lognormal(np.log(1 / (2 * DAY)), 1.3, n_pages) * rng.lognormal(0.0, 0.7, n_hosts)[self.host]
        self.history = simulated(rng, rates, np.ones(n_pages), self.end)
        at_page, at = self.history.change_rows, self.history.change_times
        told = np.flatnonzero((rng.random(at.size) < 0.7) & (at_page % 3 == 0))
        self.announced = sorted(zip(at[told].tolist(), at_page[told].tolist(), strict=True))
        # Slots from one request to the next; nan: as many as leave a host's pages half of the bandwidth's share.
        self.delay = np.zeros(n_hosts)
        largest = np.argsort(-np.bincount(self.host))[:10]
        if delay is not None:
            half = 2.0 * n_pages / np.bincount(self.host)[largest]
            self.delay[largest] = (half if np.isnan(delay) else delay) / self.bandwidth


def _curve(made: Plan | None, n_pages: int) -> np.ndarray | None:
    packed = None if made is None else written_curve(made.demand, made.n_pages, n_pages - made.n_held)
    return None if packed is None else read_curve(packed)


def crawl(world: World, n_processes: int, by_curves: bool) -> float:
    """Let one process, or several, crawl the world; return the share of time that copies were fresh.

    Each has a planner, the hosts of 64 shards between them, and slots as often as its share of the bandwidth says.
    """
    process_of_host = np.array([shard_of(f"host{host}", 64) % n_processes for host in range(world.delay.size)])
    shards = process_of_host[world.host]
    members = [np.flatnonzero(shards == process) for process in range(n_processes)]
    local = np.empty(world.n_pages, np.intp)
    planners = []
    for pages in members:
        local[pages] = np.arange(pages.size)
        planner = Planner(world.bandwidth / n_processes)
        planner.add(world.host[pages], 0.0)
        planner.covered(np.flatnonzero(pages % 3 == 0), 0, 0.0)
        planners.append(planner)
    shares = dict.fromkeys(range(n_processes), world.bandwidth / n_processes)
    visits: list[list[tuple[float, int, bool]]] = [[] for _ in members]
    plans = [None] * n_processes
    free = np.zeros(world.delay.size)
    limits = np.divide(1.0, world.delay, out=np.full(world.delay.size, np.inf), where=world.delay > 0)
    owed = np.zeros(n_processes)
    visit, crawls = visiting(world.history, np.zeros(world.n_pages)), []
    announced, next_plan, n_plans = deque(world.announced), world.end / 500, 0

    def host_free_at(host: int, now: float) -> float:
        return max(float(free[host]), now)

    for now in np.arange(1, int(world.end * world.bandwidth)) / world.bandwidth:
        while announced and announced[0][0] <= now:
            at, page = announced.popleft()
            planners[shards[page]].signalled(np.array([local[page]]), 0, at)
        if now >= next_plan:
            n_plans += 1
            next_plan = now + world.end / 500 * min(2**n_plans, 32)
            for shard, planner in enumerate(planners):
                if not members[shard].size:
                    continue
                columns = np.array(visits[shard][-20_000:]).reshape(-1, 3).T
                known = {"elapsed": columns[0], "n_signals": columns[1].astype(int), "changed": columns[2] > 0}
                known["source"] = np.zeros(columns[0].size, int)
                snapshot = planner.snapshot(lambda: limits)
                plans[shard] = plan(snapshot, planner.bandwidth, known, plans[shard])
                planner.adopt(plans[shard], now)
            if by_curves and n_processes > 1:
                curves = {s: _curve(made, members[s].size) for s, made in enumerate(plans)}
                shares = divided(world.bandwidth, curves, {s: pages.size for s, pages in enumerate(members)})
                for shard, share in shares.items():
                    planners[shard].set_bandwidth(max(share, 1e-9), now)
        owed += [shares[shard] / world.bandwidth for shard in range(n_processes)]
        shard = int(owed.argmax())
        pick = planners[shard].pick(now, host_free_at)
        if pick is None:
            continue
        owed[shard] -= 1.0
        page = members[shard][pick.page]
        free[world.host[page]] = now + world.delay[world.host[page]]
        is_first = planners[shard].pages.n_crawls[pick.page] == 0
        changed = visit(page, now).changed
        seen = planners[shard].crawled(pick.page, now, None if is_first else changed)
        if seen is not None and seen.source == 0 and not is_first:
            visits[shard].append((seen.elapsed, seen.n_signals, changed))
        crawls.append((page, now))
    return measured(world.history, Window(0.0, world.end, world.begin), *zip(*crawls, strict=True))


ARMS = (
    *[(f"{n} processes, each with an equal part", n, False) for n in (4, 16)],
    *[(f"{n} processes", n, True) for n in (4, 16)],
)


def freshness(n_seeds: int = 4) -> None:
    """Print how fresh the same worlds are, by one process and by shards."""
    for what, delay in (("no Crawl-delay", None), ("160 slots", 160.0), ("half of its share", np.nan)):
        ones, found = [], np.empty((len(ARMS), n_seeds))
        for seed in range(n_seeds):
            world = World(seed + 1, delay)
            ones.append(crawl(world, 1, by_curves=True))
            found[:, seed] = [crawl(world, *arm) / ones[-1] for _, *arm in ARMS]
        print(f"ten largest hosts: {what}; one process: {np.mean(ones):.4f} of the time fresh, {n_seeds} worlds")
        for (name, *_, by_curves), ratios in zip(ARMS, found, strict=True):
            error = ratios.std(ddof=1) / np.sqrt(n_seeds)
            print(f"  {name}: {ratios.mean() - 1:+.2%} (standard error {error:.2%})", flush=True)
            if by_curves:
                keep(f"shards: freshness of {name} beside one of its own, {what}", float(ratios.mean()))


# -- the database's part: processes with one PostgreSQL, whose visits are simulated

HOSTS = [f"h{number}.example" for number in range(400)]
N_SHARDS, PAGES_PER_HOST = 32, 50
_WAL = "SELECT pg_current_wal_lsn() - '0/0'"
# Shards find their processes, most first copies are made, and all have as many (a quarter is given away every 30 s).
WARM_UP = 90.0


def crawling(url: str, is_first: bool, ends: Any, said: Any) -> None:
    """Crawl as a process does, but for the web: a visit ends at once."""
    INTERPRETER.begin()  # as the extension does
    database = Database(url)
    rng, sent = np.random.default_rng(os.getpid()), []
    with process(SharedCollection.open(database, "bench")) as refresher:
        for host, page in product(HOSTS if is_first else (), range(PAGES_PER_HOST)):  # while it has all shards
            refresher.admission.requested(asked(f"http://{host}/{page}"), refresher.clock())
        refresher.start_slots()
        looked = flushed = 0.0
        while (now := refresher.clock()) < ends.value:
            if now - looked > 0.1:
                looked = now
                refresher.sharing.look(now)
            if now - flushed > FLUSH_INTERVAL:
                flushed = now
                refresher.flush(now)
            if refresher.long_work.has_work:
                refresher.long_work.go_on(0.002)
            is_due = not refresher.rate.rests and refresher.rate.slots.is_due(now) and not refresher.must_wait(now)
            begun = next(refresher.dispatcher.next_pages(now, lambda host, now: now), None) if is_due else None
            if begun is None:
                # Scrapy's timers wake a crawl for the next slot, and for what is to be looked at.
                time.sleep(min(max(refresher.rate.slots.next_time(now) - now, 0.0005), 0.004))
                continue
            refresher.rate.slots.take(now)
            visit, _ = begun
            body = b"<p>Page %d of its host, as of %d</p>" % (visit.page, rng.integers(10))
            read, _ = refresher.dispatcher.reading(visit, Body(body, "text/html", "utf-8", visit.url), None)
            refresher.responses.crawled(visit, ResponseFacts(200, read(), size=len(body)), now)
            refresher.book.called_back(visit.token, now)
            refresher.book.output_ended(visit.token, now)
            sent.append(now)
    database.close()
    said.put(sent)


def database() -> None:
    """Print how much of 1,000 requests a second four processes make of one PostgreSQL, and what it writes for that.

    The first of them makes all pages before the others begin.
    """
    rate, seconds, context = 1000.0, 60.0, multiprocessing.get_context("spawn")
    said, ends = context.Queue(), context.Value("d", np.inf)
    with postgresql_of_its_own() as server:
        url = server.get_uri()
        schema.upgrade(url)
        database = Database(url)
        SharedCollection.open(database, "bench", N_SHARDS, rate)
        crawls = [context.Process(target=crawling, args=(url, n == 0, ends, said), daemon=True) for n in range(4)]
        crawls[0].start()
        while _asked(database, "SELECT count(*) FROM pages") < len(HOSTS) * PAGES_PER_HOST:
            time.sleep(0.5)
        for crawl_of in crawls[1:]:
            crawl_of.start()
        time.sleep(WARM_UP)
        begins, wal = time.time(), _asked(database, _WAL)
        time.sleep(seconds)
        wal, ends.value = _asked(database, _WAL) - wal, time.time()
        sent = np.sort(np.concatenate([said.get(timeout=120.0) for _ in crawls]))
        database.close()
    sent = sent[sent >= begins]
    ticks = np.histogram(sent, np.arange(begins, begins + seconds))[0]
    print(
        f"4 processes, {rate:g}/s, {seconds:g} s: {sent.size / seconds:.0f} visits a second "
        f"({sent.size / seconds / rate:.1%}), at most {ticks.max()} in one; {wal / sent.size:,.0f} bytes of WAL a visit"
    )


def _asked(database: Database, question: str) -> int:
    with database.reading() as connection:
        return int(connection.execute(text(question)).scalar_one())


PARTS = {"freshness": freshness, "database": database, "faults": faults}


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    for part in parser.parse_args().only:
        PARTS[part]()


if __name__ == "__main__":
    main()
