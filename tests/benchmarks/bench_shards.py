"""What sharing a collection costs: freshness, the database's part of 1,000 requests a second, and handing links over.

*Freshness*: one process beside 4 and 16, which divide the bandwidth by demand curves, or equally. All
learn rates from their visits, a third of the pages is announced, and the ten largest hosts have no Crawl-delay, one of
160 slots, or one that leaves them half of their share (the largest may be asked at every 13th slot). Differences are
means over worlds, each beside one process in the same world, with their standard errors.
*Database*: four processes with one PostgreSQL visit pages that are only simulated. *Handing over*: two of them do, and
find links to each other's shards. *Kills*: three do, of which one is killed a hundred times.
*Faults*: eight real crawls for twenty minutes, of which one, or the server, fails every twenty seconds.
Run it with::

    python -m tests.benchmarks.bench_shards [--only freshness database handing-over kills faults]
"""

import argparse
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
from crawlsched.store import host_of, schema
from crawlsched.store.database import Database
from crawlsched.store.members import SharedCollection
from tests.benchmarks.faults import faults
from tests.benchmarks.ratios import keep
from tests.databases import postgresql_of_its_own
from tests.integration.refresh.processes import asked, process

PARTS = "freshness", "database", "handing-over", "kills", "faults"
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


# -- the database's part, and handing over: processes with one PostgreSQL, whose visits are simulated

HOSTS = [f"h{number}.example" for number in range(400)]
N_SHARDS, PAGES_PER_HOST = 32, 50
_WAL = "SELECT pg_current_wal_lsn() - '0/0'"
# Shards find their processes, and most first copies are made, in so many seconds; and until all have as many, a
# quarter being given away every 30 s.
WARM_UP, EVEN = 30.0, 90.0


def visiting(url: str, is_first: bool, n_links: int, ends: Any, said: Any) -> None:
    """Crawl as a process does, but for the web: a visit ends at once; who finds links, finds them in other shards."""
    INTERPRETER.begin()  # as the extension does
    database = Database(url)
    rng, sent, links = np.random.default_rng(os.getpid()), [], 0
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
            shard, page = shard_of(host_of(visit.url), N_SHARDS), refresher.collection.numbers.item(visit.page)
            for number, host in enumerate(rng.choice(HOSTS, n_links)):
                links += 1
                refresher.admission.requested(
                    asked(f"http://{host}/link/{shard}/{page}/{number}/{now}", visit.page), now
                )
            refresher.book.called_back(visit.token, now)
            refresher.book.output_ended(visit.token, now)
            sent.append(now)
    database.close()
    said.put((sent, links))


@contextmanager
def crawling(n_processes: int, rate: float, n_links: int) -> Iterator[tuple[Any, ...]]:
    """Let processes crawl, the first of which makes all pages before the others begin.

    Give the database, the processes, what starts one more, and what ends them all and returns what each has said.
    """
    context = multiprocessing.get_context("spawn")
    said, ends = context.Queue(), context.Value("d", np.inf)
    with postgresql_of_its_own() as server:
        url = server.get_uri()
        schema.upgrade(url)
        database = Database(url)
        SharedCollection.open(database, "bench", N_SHARDS, rate)
        crawls: list[Any] = []

        def begin() -> Any:
            crawl_of = context.Process(target=visiting, args=(url, not crawls, n_links, ends, said), daemon=True)
            crawl_of.start()
            return crawl_of

        def end() -> list[Any]:
            ends.value = time.time()
            return [said.get(timeout=120.0) for _ in crawls]

        crawls.append(begin())
        while _asked(database, "SELECT count(*) FROM pages") < len(HOSTS) * PAGES_PER_HOST:
            time.sleep(0.5)
        crawls += [begin() for _ in range(n_processes - 1)]
        yield database, crawls, begin, end
        database.close()


def crawled_by(
    n_processes: int, rate: float, seconds: float, n_links: int, warm_up: float = WARM_UP
) -> tuple[Any, ...]:
    """Let processes crawl; return when each visit was, bytes of WAL meanwhile, links found, and rows about them."""
    with crawling(n_processes, rate, n_links) as (database, _, _, end):
        time.sleep(warm_up)
        begins, wal = time.time(), _asked(database, _WAL)
        time.sleep(seconds)
        wal = _asked(database, _WAL) - wal
        told = end()
        with database.reading() as connection:
            found = "SELECT url, first_seen FROM pages WHERE url LIKE '%/link/%'"
            pages = connection.execute(text(found)).all()
        waiting = _asked(database, "SELECT count(*) FROM inbox WHERE data LIKE '%/link/%'")
    sent = np.sort(np.concatenate([times for times, _ in told]))
    return sent[sent >= begins], wal, sum(links for _, links in told), pages, waiting


def killing(n_kills: int = 100, n_processes: int = 3, n_links: int = 10, seconds_between: float = 2.5) -> None:
    """Kill one process after the other, at any moment, and start another each time; print what became of links."""
    rng = np.random.default_rng(1)
    with crawling(n_processes, 60.0, n_links) as (database, crawls, begin, end):
        time.sleep(WARM_UP)
        for _ in range(n_kills):
            time.sleep(seconds_between * rng.uniform(0.5, 1.5))
            killed = int(rng.integers(n_processes))
            crawls[killed].kill()
            crawls[killed] = begin()
        time.sleep(WARM_UP)
        end()
        with process(SharedCollection.open(database, "bench")) as last:  # takes in what waits still
            until = last.clock() + WARM_UP
            while last.clock() < until and _asked(database, "SELECT count(*) FROM inbox"):
                last.sharing.look(last.clock())
                last.long_work.go_on(0.01)
                last.flush(last.clock())
        with database.reading() as connection:
            wanted = "SELECT shard, page, time FROM observations WHERE outcome IN ('new', 'changed')"
            found = {
                f"/link/{row.shard}/{row.page}/{number}/{row.time}"
                for row in connection.execute(text(wanted))
                for number in range(n_links)
            }
            urls = [url for (url,) in connection.execute(text("SELECT url FROM pages WHERE url LIKE '%/link/%'"))]
        waiting = _asked(database, "SELECT count(*) FROM inbox")
    there = {url.partition(".example")[2] for url in urls}
    print(
        f"{n_kills} kills: {len(found) // n_links:,} visits that are written down found {len(found):,} links; "
        f"{len(found - there)} are no page, {len(urls) - len(there)} are two, {len(there - found)} are of no visit, "
        f"{waiting} wait"
    )


def _asked(database: Database, question: str) -> int:
    with database.reading() as connection:
        return int(connection.execute(text(question)).scalar_one())


def database() -> None:
    """Print how much of 1,000 requests a second four processes make of one PostgreSQL, and what it writes for that."""
    rate, seconds = 1000.0, 60.0
    sent, wal, *_ = crawled_by(4, rate, seconds, 0, EVEN)
    ticks = np.histogram(sent, np.arange(sent[0], sent[0] + seconds))[0]
    print(
        f"4 processes, {rate:g}/s, {seconds:g} s: {sent.size / seconds:.0f} visits a second "
        f"({sent.size / seconds / rate:.1%}), at most {ticks.max()} in one; {wal / sent.size:,.0f} bytes of WAL a visit"
    )


def handing_over() -> None:
    """Print how soon links are pages of the shard that they belong to, and how often."""
    seconds = 30.0
    _, _, links, pages, waiting = crawled_by(2, 250.0, seconds, 4)
    delays = np.array([row.first_seen - float(row.url.rpartition("/")[2]) for row in pages])
    print(
        f"2 processes, {links:,} links: {len(pages):,} are pages and {waiting:,} wait "
        f"({'each once' if len(pages) + waiting == links else 'WRONG'}); half within {np.median(delays):.2f} s, 99 % "
        f"within {np.quantile(delays, 0.99):.2f} s; {links / (WARM_UP + seconds):.0f} a second"
    )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    for part in parser.parse_args().only:
        parts = {"freshness": freshness, "database": database, "handing-over": handing_over, "kills": killing}
        {**parts, "faults": faults}[part]()


if __name__ == "__main__":
    main()
