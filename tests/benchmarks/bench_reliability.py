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
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from typing import NamedTuple

import psutil
from aiohttp import web

from crawlsched.store import schema
from tests.crawling import Project
from tests.site import Site

PAGES = 400


def site_of_changing_pages() -> tuple[Site, list[str]]:
    """Make a site whose pages are others at every tenth visit."""
    site, numbers = Site(), count()

    def page(request: web.Request) -> web.Response:
        return web.Response(text=f"<p>{request.path} {next(numbers) // 10}</p>", content_type="text/html")

    site.default = page
    return site, [f"/{number}" for number in range(PAGES)]


def crash_loop(kills: int, seed: int = 1) -> None:
    """Kill a crawl again and again."""
    rng, (site, paths) = random.Random(seed), site_of_changing_pages()
    with site, tempfile.TemporaryDirectory() as folder:
        urls = [site.url(path) for path in paths]
        project = Project(Path(folder), urls, seconds=0)
        refused, n_pages = 0, 0
        for _ in range(kills):
            process = project.start()
            project.wait_for_log("Spider opened", timeout=60.0)
            time.sleep(rng.uniform(0.5, 6.0))
            crawl = project.kill(process)
            refused += "cannot start" in crawl.log
            findings, n_now = crawl.read(lambda store: (schema.damage(store.database), store.reader.next_page()))
            assert findings == []
            assert n_now >= n_pages
            n_pages = n_now
        print(f"{kills} kills: {refused} starts refused, {n_pages} pages, the database is sound after each")


class Look(NamedTuple):
    """What a crawl holds at a moment; `database` in bytes, as its readers see it, with what is still in the log."""

    minute: float
    rss: float
    descriptors: int
    threads: int
    database: int
    visits: int


def soak(minutes: float) -> None:
    """Crawl for long, and look twenty times."""
    site, paths = site_of_changing_pages()
    with site, tempfile.TemporaryDirectory() as folder:
        urls = [site.url(path) for path in paths]
        project = Project(Path(folder), urls, seconds=int(60 * minutes))
        process = project.start()
        watched, began = psutil.Process(process.pid), time.monotonic()
        looks: list[Look] = []
        print("minutes      RSS MB   descriptors   threads   database MB   visits")
        while process.poll() is None:
            time.sleep(3.0 * minutes)
            with suppress(psutil.NoSuchProcess):
                with watched.oneshot():
                    rss, descriptors = watched.memory_info().rss / 2**20, watched.num_fds()
                    threads = watched.num_threads()
                if not rss or time.monotonic() - began > 60.0 * minutes:  # it ends, or has just ended
                    continue
                minute = (time.monotonic() - began) / 60.0
                look = Look(minute, rss, descriptors, threads, _size(Path(folder) / "crawl.db"), len(site.times))
                looks.append(look)
                print(
                    f"{look.minute:7.1f} {look.rss:11.1f} {look.descriptors:13d} {look.threads:9d} "
                    f"{look.database / 2**20:13.1f} {look.visits:8d}",
                    flush=True,
                )
        project.finish(process, timeout=60.0)
    late = [look for look in looks if look.minute > minutes / 2]
    first, last = late[0], late[-1]
    most, least = (bound(look.rss for look in late) for bound in (max, min))
    descriptors, threads = ({look[field] for look in late} for field in (2, 3))
    print(
        f"second half: RSS {least:.1f} to {most:.1f} MB ({most / least - 1:.2%}), "
        f"descriptors {sorted(descriptors)}, threads {sorted(threads)}, "
        f"{(last.database - first.database) / (last.visits - first.visits):.0f} bytes of the database a visit"
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
