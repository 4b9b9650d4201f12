"""A crash loop of 60 kills, and a soak: whether a crawl comes back each time, and whether it grows in twenty minutes.

The crash loop kills a crawl at random moments and starts it again: no start is refused, no page is gone, the database
is sound after each. The soak crawls a fixed number of pages at 50/s, and reports resident memory, file descriptors,
threads and the database's size. (What kill -9 loses at most is measured in tests/integration/addon/test_crashes.py.)

Usage: python -m tests.benchmarks.bench_reliability [KILLS [SOAK_MINUTES]]
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import psutil
from aiohttp import web

from tests.crawling import VISITING_SPIDER, Project
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
        project = Project(Path(folder), VISITING_SPIDER.format(urls=urls), CLOSESPIDER_TIMEOUT="0")
        refused, n_pages = 0, 0
        for _ in range(kills):
            process = project.start()
            project.wait_for_log("Spider opened", timeout=60.0)
            time.sleep(rng.uniform(0.5, 6.0))
            process.kill()
            crawl = project.finish(process)
            refused += "cannot start" in crawl.log
            store = crawl.store()
            assert store.quick_check() == []
            before, n_pages = n_pages, store.next_page()
            assert n_pages >= before
            store.close()
        print(f"{kills} kills: {refused} starts refused, {n_pages} pages, the database is sound after each")


def soak(minutes: float) -> None:
    """Crawl for long, and look once a minute."""
    site, paths = site_of_changing_pages()
    with site, tempfile.TemporaryDirectory() as folder:
        urls = [site.url(path) for path in paths]
        project = Project(Path(folder), VISITING_SPIDER.format(urls=urls), CLOSESPIDER_TIMEOUT=str(int(60 * minutes)))
        process = project.start()
        watched, began = psutil.Process(process.pid), time.monotonic()
        looks: list[tuple[float, float, int, int, int]] = []
        print("minutes      RSS MB   descriptors   threads   database MB   visits")
        while process.poll() is None:
            time.sleep(min(60.0, 10.0 * minutes))
            try:
                rss, descriptors, threads = watched.memory_info().rss / 2**20, watched.num_fds(), watched.num_threads()
            except psutil.NoSuchProcess:
                break
            if not rss:  # it has just ended
                break
            size = sum(file.stat().st_size for file in Path(folder).glob("crawl.db*"))
            looks.append(((time.monotonic() - began) / 60, rss, descriptors, threads, size))
            held = f"{rss:11.1f} {descriptors:13d} {threads:9d} {size / 2**20:13.1f}"
            print(f"{looks[-1][0]:7.1f} {held} {len(site.times):8d}", flush=True)
        crawl = project.finish(process, timeout=60.0)
        late = [rss for minute, rss, *_ in looks if minute > minutes / 2]
        if late:
            print(f"RSS of the second half: {min(late):.1f} to {max(late):.1f} MB ({max(late) / min(late) - 1:.2%})")
        visits = crawl.stats["crawlsched/resolved"]
        print(f"{looks[-1][4] / visits:.0f} bytes of the database a visit, its pages included")


if __name__ == "__main__":
    crash_loop(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
    soak(float(sys.argv[2]) if len(sys.argv) > 2 else 20.0)
