"""Real crawls: does the rate hold, what is the ceiling against plain Scrapy, what does a large store cost?

Each crawl is a process of its own against a server process of its own on loopback. Every figure of ours stands beside
the same figure of plain Scrapy, or beside the bound that the README states, measured in the same run.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scrapy import Request
from scrapy.utils.request import fingerprint

from crawlsched.change_detection import Recipe
from crawlsched.columns.array_types import FloatArray
from crawlsched.store import Batch, NewPage, Source, Store
from tests.benchmarks.frontier_collection import collection, pages_in_blocks
from tests.benchmarks.ratios import keep
from tests.children import free_port

_BODY = b"<html><body><p>" + b"some text of a page " * 100 + b"</p></body></html>"
_SITEMAP_ENTRIES = 50_000
_LARGE_RATE = 200.0
# Two crawls that are compared go by turns of so many seconds; who was stopped has so many to come to itself.
_TURN, _COMES_TO_ITSELF = 2.0, 0.5
# Further pages are copies of the first ones: SQLite makes these thirty times as fast.
_WRITTEN_ONE_BY_ONE = 500_000
# Seconds in which the pages of a large store have all been crawled once.
_ROUND = 1e6

_SPIDER = '''
import asyncio, collections, json, math, os, resource, signal, threading, time
import psutil, scrapy
from scrapy import signals
from crawlsched.crawl.refresher import Refresher


class Recorder:
    """When each request left, and what the process took."""

    @classmethod
    def from_crawler(cls, crawler):
        self = cls()
        self.crawler, self.times, self.begun = crawler, [], time.monotonic()
        self.started = float(os.environ["BENCH_STARTED"])
        self.memory = 0
        # (when, seconds late) of a timer that should ring every 5 ms, where it was more than 5 ms late.
        self.late, self.watch = [], None
        self.parts, self.threads = collections.Counter(), {}
        self.sampled_from = None
        self.waits_for_plan = bool(crawler.settings.getdict("ADDONS"))
        if os.environ.get("BENCH_PARTS"):  # after so many seconds
            signal.signal(signal.SIGALRM, self.sample)
            signal.setitimer(signal.ITIMER_REAL, float(os.environ["BENCH_PARTS"]), 0.003)
        # Plain Scrapy's own delays come after the downloader was reached, so there the answers are what can be timed.
        paced_by_scrapy = crawler.settings.getfloat("DOWNLOAD_DELAY") > 0
        moment = signals.response_downloaded if paced_by_scrapy else signals.request_reached_downloader
        crawler.signals.connect(self.left, moment)
        crawler.signals.connect(self.closed, signals.spider_closed)
        return self

    def left(self, request):
        self.times.append(time.monotonic())
        if len(self.times) % 200 == 0:  # not when the crawl is closed, and copies stand beside what they are of
            self.memory = max(self.memory, psutil.Process().memory_info().rss)
            for thread in threading.enumerate():
                if thread.ident and thread.name.startswith("crawlsched"):
                    self.threads[thread.name] = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
            # Finite as soon as a plan is in force for all pages.
            if self.waits_for_plan and math.isfinite(Refresher.of(self.crawler).planner.in_force.rests_until):
                open("in_force", "w").close()
                self.waits_for_plan = False
        if self.watch is None:
            self.watch = asyncio.ensure_future(self.watch_the_loop())

    def sample(self, number, frame):
        """Look what the crawl's thread is at: the outermost function of ours, and whether it is learning.

        By a signal: a thread would get its turn where numpy gives up the lock, and see hardly anything else.
        """
        self.sampled_from = self.sampled_from or (time.monotonic(), len(self.times))
        part = "waits" if frame.f_code.co_name == "select" else "scrapy"
        learns = False
        while frame is not None:
            path, _, file = frame.f_code.co_filename.rpartition("/crawlsched/")
            # What sends asks Scrapy's own handlers.
            if path and file != "addon/sending.py" and frame.f_code.co_name != "download_by":
                learns = learns or file.startswith(("planner/", "frontier/"))
                part = file.removesuffix(".py") + " " + frame.f_code.co_name
            frame = frame.f_back
        self.parts[part + (", planner" if learns else "")] += 1

    async def watch_the_loop(self):
        while True:
            due = time.monotonic() + 0.005
            await asyncio.sleep(0.005)
            if time.monotonic() > due + 0.005:
                self.late.append((time.monotonic(), time.monotonic() - due))

    def closed(self, reason):
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        if self.watch is not None:
            self.watch.cancel()
        stats = {k: v for k, v in self.crawler.stats.get_stats().items() if isinstance(v, (int, float, str))}
        record = {
            "times": self.times,
            "late": self.late,
            "stats": stats,
            "parts": self.parts,
            "sampled_from": self.sampled_from,
            "threads": self.threads,
            "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            "memory": self.memory,
            "first_dispatch": (self.times[0] if self.times else 0.0) - self.started,
        }
        with open("record.json", "w") as file:
            json.dump(record, file)


class Bench(scrapy.Spider):
    name = "bench"
    custom_settings = {"EXTENSIONS": {Recorder: 0}}

    async def start(self):
        for number in range(int(self.n)):
            if self.crawler.engine._slot.closing:
                return  # Scrapy would take in all that is left, at once
            host = 1 + number % 20
            url = f"http://127.0.0.{host}:{self.port}/{number}"
            yield scrapy.Request(url)

    def parse(self, response):
        pass
'''


class _Server(asyncio.Protocol):
    """The cheapest server that speaks HTTP: it must not be what is measured."""

    port = 0
    asked_for_sitemap = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        kind = b"text/html"
        if b"/sitemap.xml" in data.split(b"\r\n", 1)[0]:
            kind, body = b"application/xml", _sitemap(self.port, self.asked_for_sitemap)
            _Server.asked_for_sitemap += 1
        else:
            # Pages of one host that are all the same would be taken for what it serves in the place of pages.
            body = _body_of(data.split(b" ", 2)[1])
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, len(body))
        self._transport.write(head + body)  # type: ignore[attr-defined]


def _body_of(path: bytes) -> bytes:
    """Return what a page says; copies (`_multiply`) say what the page says that they are copies of."""
    return path.partition(b"-")[0] + _BODY


def _sitemap(port: int, version: int) -> bytes:
    """List the 50,000 pages of one host; each time a tenth of them has another lastmod."""
    entries = (
        f"<url><loc>http://127.0.0.1:{port}/{20 * n}</loc>"
        f"<lastmod>2026-11-{1 + version % 20 if n % 10 == version % 10 else 1:02d}</lastmod></url>"
        for n in range(_SITEMAP_ENTRIES)
    )
    head = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
    return f"{head}{''.join(entries)}</urlset>".encode()


def _serve(port: int, ready: Any) -> None:
    async def run() -> None:
        hosts = [f"127.0.0.{host}" for host in range(1, 21)]
        server = await asyncio.get_running_loop().create_server(_Server, hosts, port)
        ready.set()
        await server.serve_forever()

    _Server.port = port
    asyncio.run(run())


@contextmanager
def _place(number: int = 0) -> Iterator[tuple[Path, int]]:
    """Give an empty folder, and the port of a site, a new one if none is named."""
    port, ready = number or free_port(), multiprocessing.Event()
    process = multiprocessing.Process(target=_serve, args=(port, ready), daemon=True)
    process.start()
    ready.wait(20)
    with tempfile.TemporaryDirectory() as name:
        try:
            yield Path(name), port
        finally:
            process.terminate()
            process.join()


def _crawl(folder: Path, arguments: dict[str, Any], settings: dict[str, Any], **environment: str) -> dict[str, Any]:
    return _record(folder, _begun(folder, arguments, settings, **environment))


def _begun(
    folder: Path, arguments: dict[str, Any], settings: dict[str, Any], **environment: str
) -> subprocess.Popen[bytes]:
    (folder / "bench_spider.py").write_text(textwrap.dedent(_SPIDER))
    options = [f"-a{name}={value}" for name, value in arguments.items()]
    common = {
        "TELNETCONSOLE_ENABLED": "False",
        "REMOTE_CONTROL_ENABLED": "False",
        "LOG_LEVEL": "ERROR",
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
        "CONCURRENT_ITEMS": 4,
    }
    options += [f"-s{name}={value}" for name, value in {**common, **settings}.items()]
    return subprocess.Popen(
        [sys.executable, "-m", "scrapy", "runspider", "bench_spider.py", *options],
        cwd=folder,
        env={**os.environ, "BENCH_STARTED": str(time.monotonic()), **environment},
    )


def _record(folder: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Wait for the end of a crawl, and return what it has recorded."""
    if process.wait(3600):
        raise RuntimeError(f"A crawl ended with {process.returncode}.")
    return json.loads((folder / "record.json").read_text())  # type: ignore[no-any-return]


def _ours(folder: Path, bandwidth: str, seconds: int, **settings: Any) -> dict[str, Any]:
    return {
        "ADDONS": json.dumps({"crawlsched.Addon": 500}),
        "CRAWLSCHED_DATABASE_URL": f"sqlite:///{folder / 'bench.db'}",
        "CRAWLSCHED_BANDWIDTH": bandwidth,
        "CRAWLSCHED_COLLECTION": "bench",
        "CRAWLSCHED_FINGERPRINT": "raw_bytes",
        "CRAWLSCHED_FIND_SOURCES": "False",
        "CLOSESPIDER_TIMEOUT": seconds,
        **settings,
    }


def _rate_line(name: str, record: dict[str, Any], bandwidth: float) -> str:
    times = np.array(record["times"])
    gaps = np.abs(np.diff(times) - 1 / bandwidth)
    most = max(np.searchsorted(times, times + 1.0) - np.arange(len(times)))
    achieved = (len(times) - 1) / (times[-1] - times[0])
    return (
        f"{name:<44} {achieved:8.3f}/s  off by {abs(achieved / bandwidth - 1):7.3%}   "
        f"|gap - 1/R| p50 {np.quantile(gaps, 0.5) * 1e3:5.2f} ms, p99 {np.quantile(gaps, 0.99) * 1e3:5.2f} ms, "
        f"max {gaps.max() * 1e3:6.2f} ms   most in a second {most} (bound {1.25 * bandwidth + 1:.0f})"
    )


def fill_apart(folder: Path, n_pages: int, port: int) -> None:
    """Do what `fill_file` does in a process of its own, and see that it is on the disk.

    The most memory that this one had would count for crawls that it starts.
    """
    process = multiprocessing.get_context("spawn").Process(target=fill_file, args=(folder, n_pages, port))
    process.start()
    process.join()
    if process.exitcode:
        raise RuntimeError(f"The store in {folder} could not be filled.")
    os.sync()


def fill_file(folder: Path, n_pages: int, port: int) -> None:
    """Write an SQLite file of many pages."""
    with closing(Store.open(f"sqlite:///{folder / 'bench.db'}", "bench")) as store:
        fill(store, min(n_pages, _WRITTEN_ONE_BY_ONE), port)
    _multiply(folder / "bench.db", n_pages)


def fill(store: Store, n_pages: int, port: int) -> None:
    """Write pages, each crawled a few times and a third announced, as a long crawl would leave them."""
    now = time.time()
    made = collection(n_pages, n_pages / _ROUND, announced=1 / 3, now=now).planner
    for numbers in pages_in_blocks(n_pages):
        batch = Batch(since=now, columns=made.columns(numbers), grid=made.grid)
        batch.sources[0] = Source(0, "ping", "127.0.0.1", "127.0.0.1")
        for number in numbers.tolist():
            host = f"127.0.0.{1 + number % 20}"
            url, of = f"http://{host}:{port}/{number}", "scrapy.utils.request.RequestFingerprinter"
            key = fingerprint(Request(url))
            batch.new_pages[number] = NewPage(number, url, host, key, now - 1e7, request_fingerprinter=of)
            seen = Recipe("raw_bytes").fingerprint(_body_of(b"/%d" % number), None, None, url)
            batch.contents[number] = {"fingerprint": seen.digest, "recipe": seen.recipe}
        store.save(batch)


def _multiply(database: Path, n_pages: int) -> None:
    """Copy the first pages until there are enough, last crawled at other times, with other URLs and fingerprints."""
    connection = sqlite3.connect(database)
    columns = [row[1] for row in connection.execute("PRAGMA table_info(pages)")]
    changed = {
        "page": "page + :n",
        "crawled_at": "crawled_at - (random() & 1048575)",
        "url": "url || '-' || :n",
        "url_digest": "random()",
        "request_fingerprint": "randomblob(20)",
    }
    copied = f"INSERT INTO pages SELECT {', '.join(changed.get(name, name) for name in columns)} FROM pages "
    connection.execute("PRAGMA cache_size = -2000000")
    for n in range(_WRITTEN_ONE_BY_ONE, n_pages, _WRITTEN_ONE_BY_ONE):
        with connection:
            connection.execute(copied + "WHERE page < :most", {"n": n, "most": min(n_pages - n, _WRITTEN_ONE_BY_ONE)})
    connection.close()


def rate(bandwidth: float, seconds: int) -> None:
    """R held for a minute, alone and beside a re-plan over a million pages and a sitemap of 50,000 entries."""
    print(f"\nR = {bandwidth:g}/s for {seconds} s")
    held = f"{bandwidth}/s"
    with _place() as (folder, port):
        record = _crawl(folder, {"n": 2000, "port": port}, _ours(folder, held, seconds))
        print(_rate_line("crawlsched", record, bandwidth))
    with _place() as (folder, port):
        delayed = {"DOWNLOAD_DELAY": 20 / bandwidth, "DOWNLOAD_DELAY_JITTER": 0, "CONCURRENT_REQUESTS": 1000}
        record = _crawl(folder, {"n": int(bandwidth * seconds), "port": port}, delayed)
        print(_rate_line("plain Scrapy, DOWNLOAD_DELAY = 20/R on 20 hosts", record, bandwidth))
    with _place() as (folder, port):
        fill_apart(folder, 1_000_000, port)
        sitemap = {"SOURCE_URLS": f"http://127.0.0.1:{port}/sitemap.xml", "SOURCE_INTERVAL": 20}
        settings = {f"CRAWLSCHED_{name}": value for name, value in sitemap.items()}
        record = _crawl(folder, {"n": 0, "port": port}, _ours(folder, held, seconds, **settings))
        print(_rate_line("crawlsched, 1,000,000 pages, re-plans, sitemap", record, bandwidth))
        stats = record["stats"]
        print(
            f"    {stats.get('crawlsched/replanned', 0)} plans, "
            f"{stats.get('crawlsched/resolved/changed', 0)} changed, {stats['crawlsched/resolved']} resolved"
        )


@contextmanager
def _found_pages() -> Iterator[tuple[Path, int]]:
    """Let a crawl find the pages that others visit above their ceiling; give its folder and the port of their site.

    Scrapy takes one request of start() in each turn of the event loop, and above the ceiling a turn sends many.
    """
    with tempfile.TemporaryDirectory() as name:
        with _place() as (folder, port):
            _crawl(folder, {"n": 2000, "port": port}, _ours(folder, "250/s", 20))
            shutil.copy(folder / "bench.db", name)
        yield Path(name), port


def ceiling(seconds: int) -> None:
    """Requests a second with R above what the machine can do, against plain Scrapy with its default scheduler.

    In the second half of each crawl: the first plan comes after five seconds.
    """
    n = int(seconds / 2 / _TURN)
    print("\nR above the ceiling, 20 hosts x 8 connections, everything persisted")
    with _found_pages() as (folder, port):
        rates, n_before = _compared(folder, port, n, n)
        _print_ratio("", rates[n_before:], 0.92)


def ceiling_of_many(n_pages: int) -> None:
    """Do the same over so many pages, once, while the first plan is put in force, and when it is.

    That plan is made after 5 seconds, and putting it in force takes some minutes. The next one comes after four times
    as long.
    """
    print(f"\nThe same over {n_pages:,} pages")
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        fill_apart(folder, n_pages, port)
        title = f" over {n_pages:,} pages"
        rates, n_before = _compared(folder, port, 15, 30)
        _print_ratio(f"{title}, while a plan is put in force", rates[10:n_before], 0.85)
        _print_ratio(title, rates[n_before + 5 :], 0.90)


def _compared(store: Path, number: int, least: int, further: int) -> tuple[FloatArray, int]:
    """Return the requests a second of plain Scrapy and of ours in each turn, before a plan is in force and after it.

    While one goes the other is stopped: a machine is not as fast in the next minute as it was in the last. Ours begins
    with a copy of a store. Plain Scrapy gets its requests from start() and does the same from its beginning on.

    Parameters
    ----------
    store : Path
        Where the store lies.
    number : int
        The port of its site.
    least : int
        So many turns each are taken at least, and more until a plan is in force for all pages.
    further : int
        So many turns each are taken after these.

    Returns
    -------
    rates : ndarray, shape (n, 2)
    n_before : int
        How many turns each were taken until then.
    """
    limits = {"CONCURRENT_REQUESTS": 160, "CLOSESPIDER_TIMEOUT": 0}
    with _place(number) as (folder, port):
        folders = {kind: folder / kind for kind in ("plain", "ours")}
        for own in folders.values():
            own.mkdir()
        shutil.copy(store / "bench.db", folders["ours"])
        settings = {"plain": limits, "ours": {**_ours(folders["ours"], "5000/s", 0), **limits}}
        crawls = {
            kind: _begun(own, {"n": 10**9 * (kind == "plain"), "port": port}, settings[kind])
            for kind, own in folders.items()
        }
        turns: dict[str, list[tuple[float, float]]] = {kind: [] for kind in crawls}
        while len(turns["ours"]) < least or not (folders["ours"] / "in_force").exists():
            _take_turns(crawls, turns)
        n_before = len(turns["ours"])
        for _ in range(further):
            _take_turns(crawls, turns)
        for crawl in crawls.values():
            crawl.send_signal(signal.SIGTERM)
            crawl.send_signal(signal.SIGCONT)
        times = {kind: np.array(_record(own, crawls[kind])["times"]) for kind, own in folders.items()}
    return np.transpose([_rates(times[kind], turns[kind]) for kind in ("plain", "ours")]), n_before


def _take_turns(crawls: dict[str, subprocess.Popen[bytes]], turns: dict[str, list[tuple[float, float]]]) -> None:
    """Let each of two crawls go once, while the other is stopped, and note from when to when."""
    for kind, crawl in crawls.items():
        for other in crawls.values():
            if other.poll() is not None:
                raise RuntimeError(f"A crawl ended with {other.returncode} before its time.")
            other.send_signal(signal.SIGCONT if other is crawl else signal.SIGSTOP)
        begun = time.monotonic()
        time.sleep(_TURN)
        turns[kind].append((begun + _COMES_TO_ITSELF, begun + _TURN))


def _rates(times: FloatArray, turns: list[tuple[float, float]]) -> list[float]:
    """Return the requests a second in each turn."""
    return [np.count_nonzero((times > since) & (times < until)) / (until - since) for since, until in turns]


def _print_ratio(title: str, rates: FloatArray, wanted: float = 0.0) -> None:
    """Print and keep what ours sends of what plain Scrapy does, turn by turn."""
    ratios = rates[:, 1] / rates[:, 0]
    ratio, error = ratios.mean(), ratios.std(ddof=1) / np.sqrt(ratios.size)
    asked = f" (at least {wanted:.2f} wanted)" if wanted else ""
    theirs, ours = rates.mean(axis=0)
    print(
        f"plain Scrapy {theirs:7.0f}/s   crawlsched {ours:7.0f}/s   ratio {ratio:.2f} "
        f"+-{error:.2f} of {ratios.size} turns{asked}{title}"
    )
    keep(f"crawl: requests/s above the ceiling, of plain Scrapy{title}", ratio)


_PARTS = {
    "the slot: pick, request, hand over": ("addon/scheduler _tick",),
    "the slot: the planner's pick": ("addon/scheduler _tick, planner",),
    "judging the response": ("addon/downloadermiddlewares process_response",),
    "learning from it": ("addon/downloadermiddlewares process_response, planner",),
}


def parts(seconds: int) -> None:
    """CPU a visit above the ceiling, ours by part, of the crawl's thread by samples of what it is at.

    In the second half of each crawl.
    """
    print("\nCPU a visit with R above the ceiling, ms")
    with _found_pages() as (folder, port):
        for kind in ("plain", "ours"):
            _parts_of(_sampled(folder, port, kind, seconds), kind)


def _sampled(store: Path, number: int, kind: str, seconds: int) -> dict[str, Any]:
    """Crawl above the ceiling, plain or with a copy of a store, and take samples in the second half."""
    settings, n = {"CONCURRENT_REQUESTS": 160, "CLOSESPIDER_TIMEOUT": seconds}, 1000 * seconds
    with _place(number) as (folder, port):
        if kind == "ours":
            settings, n = {**_ours(folder, "5000/s", seconds), **settings}, 0
            shutil.copy(store / "bench.db", folder)
        return _crawl(folder, {"n": n, "port": port}, settings, BENCH_PARTS=str(seconds // 2))


def _parts_of(record: dict[str, Any], kind: str) -> None:
    found, begun = record["parts"], record["sampled_from"]
    busy = sum(found.values()) - sum(n for part, n in found.items() if part.startswith("waits"))
    took, visits = record["times"][-1] - begun[0], len(record["times"]) - begun[1]
    of_a_sample = 1e3 * took / sum(found.values()) / visits
    if kind == "plain":
        print(f"{'plain Scrapy':44} {busy * of_a_sample:6.3f}")
        return
    print("crawlsched")
    for title, of_part in _PARTS.items():
        print(f"{title:44} {sum(found.pop(part, 0) for part in of_part) * of_a_sample:6.3f}")
    print(f"{'threads that write and read':44} {1e3 * sum(record['threads'].values()) / len(record['times']):6.3f}")
    scrapys = found.pop("scrapy", 0) * of_a_sample
    others = sum(n for part, n in found.items() if not part.startswith("waits")) * of_a_sample
    print(f"{'timers, signals, other middlewares of ours':44} {others:6.3f}")
    print(f"{'Scrapy, and whatever it calls':44} {scrapys:6.3f}")


def large(n_pages: int, seconds: int, folder: Path) -> None:
    """R = 200/s over ten million pages with everything persisted: rate, lateness of the event loop, and opening."""
    print(f"\nR = {_LARGE_RATE:g}/s for {seconds} s over {n_pages:,} pages")
    known = folder / "port"
    with _place(int(known.read_text()) if known.exists() else 0) as (_, port):
        if not known.exists():
            begun = time.monotonic()
            fill_apart(folder, n_pages, port)
            known.write_text(str(port))
            print(f"    the store was filled in {time.monotonic() - begun:.0f} s; it stays in {folder}")
        record = _crawl(folder, {"n": 0, "port": port}, _ours(folder, f"{_LARGE_RATE}/s", seconds))
        memory, peak = (record[name] / n_pages for name in ("memory", "peak_memory"))
        print(
            f"    first dispatch after {record['first_dispatch']:.1f} s; {memory:.0f} bytes a page in the whole "
            f"process, {peak:.0f} at most while it opens or closes"
        )
    print(_rate_line("crawlsched", record, _LARGE_RATE))
    late = np.array(record["late"] or [(0.0, 0.0)])[:, 1] * 1e3
    plans = record["stats"].get("crawlsched/replanned", 0)
    print(
        f"    the event loop was late by {late.max():.1f} ms at most (at most 50 wanted), by over 50 ms "
        f"{np.count_nonzero(late > 50)} times and by over 20 ms {np.count_nonzero(late > 20)} times; {plans} plans"
    )


def main() -> None:
    """Run all, but `large`, which takes half an hour and 10 GB of disk: ``--only large``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", choices=["rate", "ceiling", "many", "parts", "large"])
    parser.add_argument("--pages", type=int, default=10_000_000, help="for large")
    parser.add_argument("--folder", type=Path, help="for large: where the store stays for the next time")
    arguments, _ = parser.parse_known_args()
    if arguments.only in (None, "rate"):
        rate(50.0, arguments.seconds)
    if arguments.only in (None, "ceiling"):
        ceiling(max(40, arguments.seconds))
    if arguments.only in (None, "many"):
        ceiling_of_many(1_000_000)
    if arguments.only in (None, "parts"):
        parts(max(24, arguments.seconds // 3))
    if arguments.only == "large":
        with tempfile.TemporaryDirectory() as name:
            folder = arguments.folder or Path(name)
            folder.mkdir(exist_ok=True)
            large(arguments.pages, arguments.seconds, folder.resolve())


if __name__ == "__main__":
    main()
