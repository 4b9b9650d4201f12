"""A crash loop of 60 kills, and a soak: whether a crawl comes back each time, and whether it grows in twenty minutes.

The crash loop kills a crawl at random moments and starts it again: no start is refused, no page is gone, the database
is sound after each. The soak crawls a fixed number of pages at 50/s, and reports resident memory, file descriptors,
threads and what a visit adds to the database: of its second half, when all is warm. (What kill -9 loses at most is
measured in tests/integration/addon/test_crashes.py.)

Usage: python -m tests.benchmarks.bench_reliability [KILLS [SOAK_MINUTES]]: 60 and 7 by default, 0 for none of it; what
the documentation states is of 60 kills and of 20 minutes.
"""

import random
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from itertools import count
from pathlib import Path

import numpy as np
import psutil

from crawlsched.store import schema
from tests.crawling import Project
from tests.site import Site
from tests.waiting import wait_until

PAGES = 400


def site_of_changing_pages() -> tuple[Site, list[str]]:
    """Make a site whose pages are others at every tenth visit."""
    site, numbers = Site(), count()
    site.default = lambda request: f"<p>{request.path} {next(numbers) // 10}</p>"
    return site, [f"/{number}" for number in range(PAGES)]


def crash_loop(kills: int, seed: int = 1) -> None:
    """Kill a crawl again and again."""
    rng, (site, paths) = random.Random(seed), site_of_changing_pages()
    with site, tempfile.TemporaryDirectory() as folder:
        urls = [site.url(path) for path in paths]
        project = Project(Path(folder), urls, seconds=0)
        refused, n_pages = 0, 0
        for _ in range(kills):
            process, before = project.start(), len(site.times)
            wait_until(lambda before=before: len(site.times) > before, 60.0)
            time.sleep(rng.uniform(0.5, 6.0))
            crawl = project.kill(process)
            refused += "cannot start" in crawl.log
            findings, n_now = crawl.read(lambda store: (schema.damage(store.database), store.reader.next_page()))
            assert findings == []
            assert n_now >= n_pages
            n_pages = n_now
        print(f"{kills} kills: {refused} starts refused, {n_pages} pages, the database is sound after each")


def soak(minutes: float) -> None:
    """Crawl for long, and look twenty times what the crawl holds and what is stored."""
    site, paths = site_of_changing_pages()
    looks: list[tuple[float, ...]] = []
    with site, tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), [site.url(path) for path in paths], seconds=int(60 * minutes))
        process = project.start()
        watched, ends = psutil.Process(process.pid), time.monotonic() + 60.0 * minutes
        print("  RSS MB   descriptors   threads   database MB   visits")
        while process.poll() is None:
            time.sleep(3.0 * minutes)
            if time.monotonic() < ends:
                memory, size = watched.memory_info().rss / 2**20, _size(Path(folder) / "crawl.db") / 2**20
                n_files, n_threads, n_visits = watched.num_fds(), watched.num_threads(), len(site.times)
                looks.append((memory, n_files, n_threads, size, n_visits))
                print(f"{memory:8.1f} {n_files:13d} {n_threads:9d} {size:13.1f} {n_visits:8d}", flush=True)
        project.finish(process, timeout=60.0)
    late = np.array(looks[len(looks) // 2 :])
    least, most, grown = late.min(axis=0), late.max(axis=0), late[-1] - late[0]
    print(
        f"second half: RSS {least[0]:.1f} to {most[0]:.1f} MB ({most[0] / least[0] - 1:.2%}), "
        f"descriptors {least[1]:g} to {most[1]:g}, threads {least[2]:g} to {most[2]:g}, "
        f"{2**20 * grown[3] / grown[4]:.0f} bytes of the database a visit"
    )


def _size(path: Path) -> int:
    with closing(sqlite3.connect(path, timeout=30.0)) as connection:
        n_pages, size, free = (
            connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size", "freelist_count")
        )
        return int((n_pages - free) * size)


if __name__ == "__main__":
    kills, soak_minutes = [*map(float, sys.argv[1:]), *(60.0, 7.0)[len(sys.argv) - 1 :]]
    if kills:
        crash_loop(int(kills))
    if soak_minutes:
        soak(soak_minutes)
