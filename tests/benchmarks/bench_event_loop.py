"""What keeps the event loop's thread busy for long: a crawl of pages of 100 KB and of a sitemap of 50,000 entries.

CPU time of the loop's thread for each callback, so that other work on the machine counts little; of it, what Python's
collections of garbage took. The first crawl adds the entries as pages, the second finds the lastmod of all of them
changed.

Usage: python -m tests.benchmarks.bench_event_loop
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from pathlib import Path

from aiohttp import web

from tests.benchmarks.bench_change_detection import page
from tests.crawling import Project
from tests.site import Site

ENTRIES = 50_000
SPIDER = """
import asyncio
import gc
import json
import threading
import time

import scrapy

callbacks = []
began = time.time()
run = asyncio.Handle._run
loop_thread = threading.get_ident()
collecting = [0.0, 0.0]


def collected(phase, info):
    if threading.get_ident() == loop_thread:
        if phase == "start":
            collecting[0] = time.thread_time()
        else:
            collecting[1] += time.thread_time() - collecting[0]


def timed(handle):
    start, garbage = time.thread_time(), collecting[1]
    run(handle)
    seconds, garbage = time.thread_time() - start, collecting[1] - garbage
    callbacks.append((seconds, garbage, time.time() - began, repr(handle._callback)[:80]))


gc.callbacks.append(collected)
asyncio.Handle._run = timed


class Spider(scrapy.Spider):
    name = "test"
    start_urls = {urls!r}

    def parse(self, response):
        pass

    def closed(self, reason):
        with open("callbacks.json", "w") as file:
            json.dump(callbacks, file)
"""


def main() -> None:
    """Print the longest callbacks of both crawls."""
    with Site() as site, tempfile.TemporaryDirectory() as folder:
        body = page(100_000, random.Random(1)).decode()
        counts = itertools.count()
        months = itertools.cycle(range(1, 13))

        def answer(request: web.Request) -> web.Response:
            return web.Response(text=body.replace("word100", f"edit{next(counts)}", 3), content_type="text/html")

        urls = [site.page(f"/p/{number}", answer) for number in range(20)]
        site.default = lambda request: web.Response(text="x", content_type="text/html")
        base = urls[0].removesuffix("/p/0")

        def sitemap(request: web.Request) -> web.Response:
            lastmod = f"<lastmod>2026-{next(months):02d}-01</lastmod>"
            entries = "".join(f"<url><loc>{base}/e/{number}</loc>{lastmod}</url>" for number in range(ENTRIES))
            return web.Response(text=f"<urlset>{entries}</urlset>", content_type="application/xml")

        project = Project(
            Path(folder),
            SPIDER.replace("{urls!r}", repr(urls)),
            CRAWLSCHED_SOURCE_URLS=site.page("/sitemap.xml", sitemap),
            CRAWLSCHED_SOURCE_INTERVAL="1",
            CRAWLSCHED_BANDWIDTH="40/s",
            TEST_CLOSE_AFTER_RESOLVED="250",
        )
        for title in ("50,000 new entries", "50,000 announcements"):
            project.run()
            callbacks = json.loads((Path(folder) / "callbacks.json").read_text())
            longest = sorted(callbacks, reverse=True)[:10]
            over = sum(seconds > 0.005 for seconds, _, _, _ in callbacks)
            print(f"\n{title}: {len(callbacks):,} callbacks, {over} of more than 5 ms (opening, closing, and)")
            for seconds, garbage, at, what in longest:
                print(f"{1e3 * seconds:8.1f} ms ({1e3 * garbage:.1f} of garbage), {at:5.1f} s after the start: {what}")


if __name__ == "__main__":
    main()
