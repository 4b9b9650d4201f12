"""A collection as a crawl of some simulated days leaves it, in a real store: for tests of what looks at one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scrapy import Request
from scrapy.utils.request import fingerprint

from crawlsched.planner import Planner, plan
from crawlsched.store import Batch, NewPage, ObservationRow, Source, Store
from crawlsched.store.records import save_plan

__all__ = ["HOSTS", "Simulated", "World", "crawl"]

HOSTS = ("127.0.0.1", "127.0.0.2")
HOUR = 3600.0


@dataclass
class Simulated:
    """What is true of the collection, to be compared with what is said of it."""

    store: Store
    planner: Planner
    visits: list[ObservationRow]
    freshness: float
    world: World

    def url(self, page: int) -> str:
        """Return a page's URL."""
        return f"http://{HOSTS[page % 2]}/page/{page}"


class World:
    """Pages that change and are announced, as they truly are.

    Even pages are on hosts whose sitemaps announce 70 % of the changes and nothing else; odd pages on those whose
    sitemaps announce every page once in 6 hours, whatever happens.
    """

    def __init__(self, n_pages: int, seed: int, n_hosts: int = 2) -> None:
        self.n_hosts = n_hosts
        self.rng = np.random.default_rng(seed)
        self.rates = self.rng.lognormal(np.log(1 / (30 * HOUR)), 1.2, n_pages)
        self.changed_since = np.zeros(n_pages, bool)

    def planner(self, bandwidth: float, start: float) -> Planner:
        """Return a planner that has just heard of the pages and their sitemaps."""
        planner = Planner(bandwidth)
        pages = planner.add(np.arange(self.rates.size) % self.n_hosts, start)
        for source in range(self.n_hosts):
            planner.covered(pages[pages % self.n_hosts == source], source, start)
        return planner

    def slots(self, planner: Planner, start: float, n: int) -> Iterator[tuple[int, float, bool]]:
        """Let the planner crawl in n slots; give page, time, and whether it had changed, before that is told."""
        rng, n_pages, bandwidth = self.rng, self.rates.size, planner.bandwidth
        pages = np.arange(n_pages)
        for now in start + np.arange(1, n + 1) / bandwidth:
            changes = rng.random(n_pages) < -np.expm1(-self.rates / bandwidth)
            self.changed_since |= changes
            honest = changes & (pages % 2 == 0) & (rng.random(n_pages) < 0.7)
            babbling = (pages % 2 == 1) & (rng.random(n_pages) < 1 / (6 * HOUR * bandwidth))
            for source in range(self.n_hosts):
                planner.signalled(pages[(honest | babbling) & (pages % self.n_hosts == source)], source, now)
            pick = planner.pick(now, lambda host, time: time)
            assert pick is not None
            yield pick.page, now, bool(self.changed_since[pick.page])
            self.changed_since[pick.page] = False


def crawl(
    store: Store,
    now: float,
    *,
    n_pages: int = 120,
    bandwidth: float = 20 / HOUR,
    days: float = 3.0,
    hosts: Sequence[str] = HOSTS,
) -> Simulated:
    """Crawl the pages of a `World` for some days that end now."""
    start = now - days * 24 * HOUR
    world = World(n_pages, 7, len(hosts))
    planner = world.planner(bandwidth, start)
    visits: list[ObservationRow] = []
    for page, time, changed in world.slots(planner, start, int(days * 24 * HOUR * bandwidth) - 1):
        visits.append(_visit(planner, page, time, changed, len(visits)))
    _save(store, planner, visits, start, now, hosts)
    return Simulated(store, planner, visits, freshness=1.0 - float(world.changed_since.mean()), world=world)


def _visit(planner: Planner, page: int, now: float, changed: bool, number: int) -> ObservationRow:
    is_first = planner.pages.n_crawls[page] == 0
    seen = planner.crawled(page, now, None if is_first else changed)
    outcome, status = ("changed", 200) if changed or is_first else ("not_modified", 304)
    learned = (None, 0, -1, None) if seen is None else (seen.elapsed, seen.n_signals, seen.source, changed)
    return ObservationRow(number, page, now, *learned, outcome, status, 1000)


def _save(
    store: Store, planner: Planner, visits: list[ObservationRow], start: float, now: float, hosts: Sequence[str]
) -> None:
    lease = store.take_lease("simulated", start)
    n_pages = len(planner.pages)
    urls = [f"http://{hosts[page % len(hosts)]}/page/{page}" for page in range(n_pages)]
    store.save(
        Batch(
            since=now,
            new_pages={
                page: NewPage(page, url, hosts[page % len(hosts)], fingerprint(Request(url)), start)
                for page, url in enumerate(urls)
            },
            columns=planner.columns(np.arange(n_pages)),
            grid=planner.grid,
            observations=visits,
            announcements={(page, page % len(hosts)): (now - HOUR, 3) for page in range(n_pages)},
            sources={
                number: Source(number, "sitemap", f"http://{host}/sitemap.xml", host, polled_at=now - 60.0)
                for number, host in enumerate(hosts)
            },
        )
    )
    made = plan(planner.snapshot(), planner.bandwidth, store.reader.signal_observations(0.0))
    save_plan(store, made.to_dict(hosts), now)
    planner.adopt(made, now)
    while planner.work(now):
        pass
    lease.heartbeat(now, {"bandwidth": planner.bandwidth, "threshold": planner.threshold})
    lease.release(now)
