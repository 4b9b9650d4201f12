"""A collection as a crawl of some simulated days leaves it, in a real store: for tests of what looks at one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scrapy import Request
from scrapy.utils.request import fingerprint

from crawlsched.planner import Planner, plan
from crawlsched.store import Batch, Lease, NewPage, ObservationRow, Source, Store

__all__ = ["HOSTS", "Simulated", "crawl"]

HOSTS = ("127.0.0.1", "127.0.0.2")
HOUR = 3600.0


@dataclass
class Simulated:
    """What is true of the collection, to be compared with what is said of it."""

    store: Store
    planner: Planner
    visits: list[ObservationRow]
    freshness: float

    def url(self, page: int) -> str:
        """Return a page's URL."""
        return f"http://{HOSTS[page % 2]}/page/{page}"


def crawl(
    store: Store, now: float, *, n_pages: int = 120, bandwidth: float = 20 / HOUR, days: float = 3.0
) -> Simulated:
    """Crawl simulated pages for some days that end now.

    Even pages are on a host whose sitemap announces 70 % of the changes and nothing else; odd pages on one whose
    sitemap announces every page once in 6 hours, whatever happens.
    """
    rng = np.random.default_rng(7)
    start = now - days * 24 * HOUR
    planner = Planner(bandwidth)
    rates = rng.lognormal(np.log(1 / (30 * HOUR)), 1.2, n_pages)
    pages = planner.add(np.arange(n_pages) % 2, start)
    for source in (0, 1):
        planner.covered(pages[pages % 2 == source], source, start)
    changed_since = np.zeros(n_pages, bool)
    visits: list[ObservationRow] = []
    for now_ in start + np.arange(1, int(days * 24 * HOUR * bandwidth)) / bandwidth:
        changes = rng.random(n_pages) < -np.expm1(-rates / bandwidth)
        changed_since |= changes
        honest = changes & (pages % 2 == 0) & (rng.random(n_pages) < 0.7)
        babbling = (pages % 2 == 1) & (rng.random(n_pages) < 1 / (6 * HOUR * bandwidth))
        planner.signalled(pages[honest], 0, now_)
        planner.signalled(pages[babbling], 1, now_)
        pick = planner.pick(now_, lambda host, time: time)
        assert pick is not None
        visits.append(_visit(planner, pick.page, now_, bool(changed_since[pick.page]), len(visits)))
        changed_since[pick.page] = False
    _save(store, planner, visits, start, now)
    return Simulated(store, planner, visits, freshness=1.0 - float(changed_since.mean()))


def _visit(planner: Planner, page: int, now: float, changed: bool, number: int) -> ObservationRow:
    first = planner.pages.n_crawls[page] == 0
    seen = planner.crawled(page, now, None if first else changed)
    if seen is None:
        return ObservationRow(number, page, now, None, 0, -1, None, "changed", 200, 1000)
    outcome = "changed" if changed else "not_modified"
    status = 200 if changed else 304
    return ObservationRow(number, page, now, seen.elapsed, seen.n_signals, seen.source, changed, outcome, status, 1000)


def _save(store: Store, planner: Planner, visits: list[ObservationRow], start: float, now: float) -> None:
    lease = Lease.take(store, "simulated", start)
    n_pages = len(planner.pages)
    urls = [f"http://{HOSTS[page % 2]}/page/{page}" for page in range(n_pages)]
    store.save(
        Batch(
            since=now,
            new_pages={
                page: NewPage(page, url, HOSTS[page % 2], fingerprint(Request(url)), start)
                for page, url in enumerate(urls)
            },
            columns=planner.columns(np.arange(n_pages)),
            grid=planner.grid,
            observations=visits,
            announcements={(page, page % 2): (now - HOUR, 3) for page in range(n_pages)},
            sources={
                number: Source(number, "sitemap", f"http://{host}/sitemap.xml", host, polled_at=now - 60.0)
                for number, host in enumerate(HOSTS)
            },
        )
    )
    made = plan(planner.snapshot(), planner.bandwidth, store.signal_observations(0.0))
    store.save_plan(made.to_dict(HOSTS), now)
    planner.adopt(made, now)
    while planner.work(now):
        pass
    lease.heartbeat(now, {"bandwidth": planner.bandwidth, "threshold": planner.threshold})
    lease.release(now)
